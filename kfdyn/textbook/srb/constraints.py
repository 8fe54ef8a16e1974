"""Constraints in place of a hinge, and natural coordinates: SRB's alternatives to minimal coordinates.

A body on a pin is one coordinate, or a free body with 5 constraints, or 9 natural coordinates (two points of the body
and a unit vector) with 8 constraints. All three are one motion; the package computes the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.errors import ShapeError
from kfdyn.textbook.algebra import Array, block, cross, identity, solve, tilde, zeros


def constraint_rows(H: Array) -> Array:
    """Return N (r, n), r = n − m, with N H* = 0 for the joint map H (m, n): what a hinge does not allow.

    Parameters
    ----------
    H : array, shape (m, n)
        Joint map, of full rank.

    Examples
    --------
    >>> import numpy as np
    >>> constraint_rows(np.array([[1.0, 2.0]])) @ np.array([1.0, 2.0])
    array([0.])
    """
    H = np.array(H)
    m, n = H.shape
    pivots: list[int] = []
    for i in range(m):
        left = [j for j in range(n) if j not in pivots]
        best = max(left, key=lambda j: abs(H[i, j]))
        H[i] = H[i] / H[i, best]
        for other in range(m):
            if other != i:
                H[other] = H[other] - H[other, best] * H[i]
        pivots.append(best)
    rest = [j for j in range(n) if j not in pivots]
    N = zeros((n - m, n), H)
    for row, j in enumerate(rest):
        N[row, j] = N[row, j] + 1
        for i, pivot in enumerate(pivots):
            N[row, pivot] = -H[i, j]
    return N


def hinge_as_constraints(M: Array, b: Array, H: Array, eta: Array, force: Array) -> tuple[Array, Array]:
    """Return α (n,) of a body on a hinge and the hinge's force (n,), as a free body with n − m constraints.

    ::

        M α + b = f + N*λ,     N (α − η) = 0,     N H* = 0

    Parameters
    ----------
    M, b : (n, n), (n,)
        Spatial inertia and gyroscopic force about the hinge.
    H, eta : (m, n), (n,)
        Joint map; acceleration that the hinge has without θ̈.
    force : (n,)
        Spatial force on the body, the hinge's own drive included.

    Returns
    -------
    alpha, reaction : (n,), (n,)
        Spatial acceleration, and N*λ, which does no work: H N*λ = 0.

    Notes
    -----
    Of a pin n = 6, m = 1: "free 6 dof body, with 5 motion constraints" (SRB, motion coordinates). O(n³), and the
    constraints must be kept from drifting when integrated; a hinge has neither price.

    Examples
    --------
    A rod of 3 kg and 2 m that falls from the horizontal turns at 3g/2l; the pin carries a quarter of its weight.

    >>> import numpy as np, kfdyn as kf
    >>> M = kf.spatial.spatial_inertia(3.0, [1.0, 0, 0], np.diag([0, 1.0, 1.0]))
    >>> weight = np.array([0, 3 * 9.81, 0, 0, 0, -3 * 9.81])
    >>> y_axis = np.array([[0, 1.0, 0, 0, 0, 0]])
    >>> alpha, reaction = kf.textbook.srb.hinge_as_constraints(M, np.zeros(6), y_axis, np.zeros(6), weight)
    >>> round(float(alpha[1] / 9.81), 9), round(float(reaction[5] / (3 * 9.81)), 9)
    (0.75, 0.25)
    """
    N = constraint_rows(H)
    whole = block([[M, -N.T], [N, zeros((len(N), len(N)), M)]])
    y = solve(whole, np.concatenate([force - b, N @ eta]), "the body with its constraints")
    return y[: len(M)], N.T @ y[len(M) :]


def particle_rates(place: Any, p1: Array, p2: Array, u: Array) -> Array:
    """Return B (3, 9) with ẋ = B q̇ for the particle x = p1 + a d + b u + c d × u, d = p2 − p1, q = (p1, p2, u).

    Parameters
    ----------
    place : three numbers
        a, b and c.
    p1, p2, u : array, shape (3,)
        The coordinates.

    Examples
    --------
    The particle at p1 moves with it:

    >>> import numpy as np
    >>> particle_rates((0, 0, 0), np.zeros(3), np.eye(3)[0], np.eye(3)[1])[:, :3]
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    (a, b, c), d, one = place, p2 - p1, identity(3, p1)
    return np.concatenate([(1 - a) * one + c * tilde(u), a * one - c * tilde(u), b * one + c * tilde(d)], axis=1)


def natural_coordinates(masses: Array, places: Array, p1: Array, p2: Array, u: Array) -> tuple[Array, Array]:
    """Return mass matrix (9, 9) and constraint gradients (3, 9) of a free body in coordinates (p1, p2, u).

    ::

        x_i = p1 + a_i d + b_i u + c_i d × u,     d = p2 − p1;     d·d, u·u and d·u stay what they are

    Parameters
    ----------
    masses, places : (k,), (k, 3)
        Particles and their constant (a, b, c).
    p1, p2, u : (3,)
        Two points of the body, and a unit vector fixed in it.

    Returns
    -------
    M, G : (9, 9), (3, 9)
        Σ m B*B with ẋ = B q̇, and G with G q̇ = 0: 9 coordinates, 6 dofs.

    Notes
    -----
    No angle, quaternion or rotation matrix occurs. Source: SRB, constraints approach.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> x, y = np.eye(3)[:2]
    >>> M, G = kf.textbook.srb.natural_coordinates([1.0, 1.0], [[0, 0, 0], [1, 0, 0]], 0 * x, x, y)
    >>> np.diag(M), np.linalg.matrix_rank(G)
    (array([1., 1., 1., 1., 1., 1., 0., 0., 0.]), np.int64(3))
    """
    p1, p2, u, places = (np.asarray(x) for x in (p1, p2, u, places))
    if places.shape != (len(masses), 3):
        raise ShapeError(f"places must have shape ({len(masses)}, 3), one (a, b, c) a mass, got {places.shape}")
    d, M = p2 - p1, zeros((9, 9), p1)
    for m, place in zip(masses, places):
        B = particle_rates(place, p1, p2, u)
        M = M + m * (B.T @ B)
    none = zeros(3, p1)
    return M, np.array([np.concatenate(row) for row in ((-d, d, none), (none, none, u), (-u, u, d))])


def pin_in_natural_coordinates(
    masses: Array, places: Array, p1: Array, p2: Array, u: Array, rate: Any, gravity: Array
) -> tuple[Array, Any]:
    """Return q̈ (9,) and θ̈ of a body on a pin at p1 along u: 9 natural coordinates and 8 constraints.

    Parameters
    ----------
    masses, places, p1, p2, u
        As in :func:`natural_coordinates`; p2 must be off the axis.
    rate : number
        θ̇.
    gravity : (3,)
        Acceleration of gravity.

    Returns
    -------
    q_ddot, theta_ddot : (9,), number
        Accelerations of the coordinates, and of the angle they stand for.

    Notes
    -----
    p1 and u rest (6 constraints; u·u is one of them), d·d and d·u stay: 8. With u at rest the coordinates have no
    Coriolis term, only the constraint d·d has: d·d̈ = −ḋ·ḋ. Source: SRB, constraints approach.

    Examples
    --------
    A bob of 2 kg at 0.5 m, let go from the horizontal:

    >>> import numpy as np, kfdyn as kf
    >>> x, y, z = np.eye(3)
    >>> masses, places = [2.0], [[1.0, 0.0, 0.0]]
    >>> srb = kf.textbook.srb
    >>> q_ddot, a = srb.pin_in_natural_coordinates(masses, places, 0 * x, 0.5 * x, y, 0.0, -9.81 * z)
    >>> float(a.round(9))
    19.62
    """
    p1, p2, u, gravity = (np.asarray(x) for x in (p1, p2, u, gravity))
    M, own = natural_coordinates(masses, places, p1, p2, u)
    d, one, none = p2 - p1, identity(3, p1), zeros((3, 3), p1)
    turned = cross(u, d)
    weight = zeros(9, p1)
    for m, place in zip(masses, np.asarray(places)):
        weight = weight + m * (particle_rates(place, p1, p2, u).T @ gravity)
    fixed = block([[one, none, none], [none, none, one]])
    G = np.concatenate([fixed, own[[0, 2]]])
    off = zeros(8, p1)
    off[6] = off[6] - rate * rate * (turned @ turned)
    whole = block([[M, G.T], [G, zeros((8, 8), p1)]])
    q_ddot = solve(whole, np.concatenate([weight, off]), "the body with its constraints")[:9]
    return q_ddot, (turned @ q_ddot[3:6]) / (turned @ turned)
