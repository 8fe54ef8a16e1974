"""Gyroscopic terms b of M dβ/dt + b = f, and the rate of the spatial inertia they come from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.spatial._arrays import Array, symmetric, together, trailing
from kfdyn.spatial.cross import cross_force, cross_motion
from kfdyn.spatial.inertia import momentum


def angular_part(V: ArrayLike) -> Array:
    """Angular component V^ω = [ω; 0] of a spatial vector, (..., 6) to (..., 6).

    Parameters
    ----------
    V : (..., 6)
        Spatial vector [ω; v].

    Returns
    -------
    (..., 6) array
        [ω; 0].

    Notes
    -----
    V = V^ω + V^v. Source: SRB, "some notation".

    Examples
    --------
    >>> from kfdyn.spatial.single_body import angular_part
    >>> angular_part([1, 2, 3, 4, 5, 6])
    array([1., 2., 3., 0., 0., 0.])
    """
    return trailing(V, (6,), "V") * np.repeat([1.0, 0.0], 3)


def linear_part(V: ArrayLike) -> Array:
    """Linear component V^v = [0; v] of a spatial vector, (..., 6) to (..., 6).

    Parameters
    ----------
    V : (..., 6)
        Spatial vector [ω; v].

    Returns
    -------
    (..., 6) array
        [0; v].

    Notes
    -----
    V = V^ω + V^v. Source: SRB, "some notation".

    Examples
    --------
    >>> from kfdyn.spatial.single_body import linear_part
    >>> linear_part([1, 2, 3, 4, 5, 6])
    array([0., 0., 0., 4., 5., 6.])
    """
    return trailing(V, (6,), "V") * np.repeat([0.0, 1.0], 3)


def inertia_rate(M6: ArrayLike, V: ArrayLike) -> Array:
    """Rate of the spatial inertia when the body moves past its reference with V: dM/dt = V̄M − MV~.

    Parameters
    ----------
    M6 : (..., 6, 6)
        Spatial inertia about the reference point, in inertial axes.
    V : (..., 6)
        Spatial velocity of the body relative to the reference: V^ω for a point that moves with the body (then
        V̄^ω = V~^ω and dM/dt = V~^ω M − M V~^ω), the inertially referenced V for a point fixed in space.

    Returns
    -------
    (..., 6, 6)
        Symmetric, since V~ = −V̄*.

    Notes
    -----
    Source: SRB, time derivative of the spatial inertia, and of the inertially referenced one.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import inertia_rate
    >>> M6 = spatial_inertia(1.0, [0, 0, 0], np.diag([1.0, 2.0, 3.0]))
    >>> inertia_rate(M6, [0, 0, 1, 0, 0, 0])[0, 1]  # a spin about z makes J_xy grow at J_xx − J_yy
    np.float64(-1.0)
    """
    M6, V = symmetric(trailing(M6, (6, 6), "M6"), "M6"), trailing(V, (6,), "V")
    together((M6, 2, "M6"), (V, 1, "V"))
    half = cross_force(V) @ M6
    return half + np.swapaxes(half, -1, -2)


def gyroscopic_about_point(M6: ArrayLike, V: ArrayLike) -> Array:
    """Gyroscopic term at a point of the body, inertial derivative: b = V̄^ω M V^ω = [ω × Jω; m ω × (ω × p)].

    Parameters
    ----------
    M6 : (..., 6, 6)
        Spatial inertia about the point; at the mass centre p = 0 and b = [ω × J_cω; 0].
    V : (..., 6)
        Spatial velocity of the point. Its linear part has no influence.

    Returns
    -------
    (..., 6)

    Notes
    -----
    Does no work at the mass centre; elsewhere it does. Source: SRB, equations at the CM and at a point.
    Cost: the cheapest of the four, and no linear velocity need be known.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import gyroscopic_about_point
    >>> M6 = spatial_inertia(2.0, [0.5, 0, 0], np.eye(3))
    >>> gyroscopic_about_point(M6, [0, 0, 3, 9, 9, 9])  # the pull that keeps the mass centre circling
    array([ 0.,  0.,  0., -9.,  0.,  0.])
    """
    spin = angular_part(V)
    return np.einsum("...ij,...j->...i", cross_force(spin), momentum(M6, spin)) + 0.0


def gyroscopic_about_body(M6: ArrayLike, V: ArrayLike) -> Array:
    """Gyroscopic term for the body derivative, and for the inertially referenced velocity: b = V̄ M V = V̄h.

    Parameters
    ----------
    M6 : (..., 6, 6)
        Spatial inertia about a point of the body in the body's axes, or about a fixed point in inertial axes.
    V : (..., 6)
        Spatial velocity at that point in those axes.

    Returns
    -------
    (..., 6)

    Notes
    -----
    Does no work: V*V̄ = 0. Source: SRB, equations with the body derivative, and inertially referenced.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import gyroscopic_about_body
    >>> V = np.array([0.0, 0.0, 3.0, 1.0, 0.0, 0.0])
    >>> b = gyroscopic_about_body(spatial_inertia(2.0, [0.5, 0, 0], np.eye(3)), V)
    >>> b, V @ b
    (array([ 0.,  0.,  3., -9.,  6.,  0.]), np.float64(0.0))
    """
    return np.einsum("...ij,...j->...i", cross_force(V), momentum(M6, V)) + 0.0


def gyroscopic_in_frame(M6: ArrayLike, V: ArrayLike, frame_velocity: ArrayLike) -> Array:
    """Gyroscopic term in a frame that itself moves with spatial velocity F: b = V̄MV + M F~V.

    The four formulations are four frames: F = 0 (inertially referenced), F = V (body derivative), and
    F = V^v (inertial derivative at a point, or at the mass centre).

    Parameters
    ----------
    M6 : (..., 6, 6)
        Spatial inertia about the frame's origin, in its axes.
    V, frame_velocity : (..., 6)
        Spatial velocities of body and frame at the frame's origin, in its axes.

    Returns
    -------
    (..., 6)

    Notes
    -----
    Derivation: in the frame, momentum obeys dh/dt + F̄h = f and the body's inertia has the rate W̄M − MW~ with
    W = V − F; so b = (W̄M − MW~)V + F̄MV. Hence spatial momentum is constant in a frame exactly when F̄h = 0,
    which the mass centre satisfies since h_v = m v_c, and b works exactly when V*M F~V ≠ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import gyroscopic_about_body, gyroscopic_in_frame
    >>> M6, V = spatial_inertia(2.0, [0.5, 0, 0], np.eye(3)), np.arange(6.0)
    >>> np.array_equal(gyroscopic_in_frame(M6, V, V), gyroscopic_about_body(M6, V))
    True
    """
    F = trailing(frame_velocity, (6,), "frame_velocity")
    V = trailing(V, (6,), "V")
    together((V, 1, "V"), (F, 1, "frame_velocity"))
    carried = np.einsum("...ij,...j->...i", cross_motion(F), V)
    return gyroscopic_about_body(M6, V) + momentum(M6, carried)
