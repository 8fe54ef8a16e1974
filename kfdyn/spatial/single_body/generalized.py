"""Other generalised velocities V = Aβ, and the generalised forces that power then dictates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ShapeError
from kfdyn.spatial._arrays import Array, symmetric, together, trailing


class GeneralizedEquations(NamedTuple):
    """inertia (..., m, m) and bias (..., m) of: inertia dβ/dt + bias = generalised force.

    Examples
    --------
    Constrain a body to turn about z alone, one quasi-velocity for six:

    >>> from kfdyn.spatial import spatial_inertia
    >>> rod = spatial_inertia(2.0, [0.5, 0, 0], np.diag([0.0, 1 / 6, 1 / 6]))
    >>> about_z = np.eye(6)[:, 2:3]
    >>> equations = change_velocities(about_z, rod, np.zeros(6))
    >>> equations.inertia.round(6), equations.bias
    (array([[0.666667]]), array([0.]))
    """

    inertia: Array
    bias: Array


def generalized_force(A: ArrayLike, f: ArrayLike) -> Array:
    """Generalised force that belongs to β when V = Aβ: T = A*f, so that T*β = f*V.

    Parameters
    ----------
    A : (..., n, m)
    f : (..., n)
        Force whose power is f*V.

    Returns
    -------
    (..., m)

    Notes
    -----
    With A square, β₁ = A^-1β has T₁ = A*T. Source: SRB, generalised forces from power. The hinge map
    is the same rule: V = H*β gives T = Hf, the measurement of the other reading.

    Examples
    --------
    >>> from kfdyn.spatial.single_body import generalized_force
    >>> generalized_force([[2.0]], [3.0])  # half the velocity, twice the force
    array([6.])
    """
    A, f = trailing(A, (None, None), "A"), trailing(f, (None,), "f")
    _fit(A, f, "f")
    return np.einsum("...ij,...i->...j", A, f)


def change_velocities(
    A: ArrayLike, inertia: ArrayLike, bias: ArrayLike, drift: ArrayLike | None = None
) -> GeneralizedEquations:
    """Equations of motion for β when V = Aβ: A*MA dβ/dt + A*(b + M (dA/dt) β) = A*f.

    Parameters
    ----------
    A : (..., n, m)
        Change of generalised velocities, square or tall.
    inertia : (..., n, n)
        M of M dV/dt + b = f.
    bias : (..., n)
        b.
    drift : (..., n), optional
        (dA/dt) β; zero for a constant A.

    Returns
    -------
    GeneralizedEquations
        The generalised force that goes with them is :func:`generalized_force`.

    Notes
    -----
    Source: SRB, transforming generalised velocities. Cost: one congruence.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial.single_body import change_velocities
    >>> change_velocities(2 * np.eye(2), np.eye(2), [1.0, 0.0]).inertia
    array([[4., 0.],
           [0., 4.]])
    """
    A = trailing(A, (None, None), "A")
    M = symmetric(trailing(inertia, (A.shape[-2], A.shape[-2]), "inertia"), "inertia")
    b = trailing(bias, (None,), "bias")
    _fit(A, b, "bias")
    together((A, 2, "A"), (M, 2, "inertia"), (b, 1, "bias"))
    if drift is not None:
        c = trailing(drift, (None,), "drift")
        _fit(A, c, "drift")
        b = b + np.einsum("...ij,...j->...i", M, c)
    MA = M @ A
    changed = np.swapaxes(A, -1, -2) @ MA
    return GeneralizedEquations(0.5 * (changed + np.swapaxes(changed, -1, -2)), generalized_force(A, b))


def _fit(A: Array, x: Array, name: str) -> None:
    if A.shape[-2] != x.shape[-1]:
        raise ShapeError(f"A has {A.shape[-2]} rows but {name} has {x.shape[-1]} entries; they must agree")
    together((A, 2, "A"), (x, 1, name))
