"""Spatial inertia: mass, mass centre and rotational inertia of a body in one 6×6 matrix.

    M = [[J, m p~], [−m p~, m 1]],   J = J_c − m p~p~

about a frame origin, p leading from it to the mass centre. In the other reading M is the process noise
covariance of the body's node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.spatial._arrays import check_rotation, index_of, symmetric, together, trailing
from kfdyn.spatial.cross import _skew
from kfdyn.spatial.transform import rigid_transform, transform_inertia

STRUCTURE_TOLERANCE = 1e-9  # of the largest entry of the block; rounding of shifts and sums stays far below
LEVER_TOLERANCE = 1e-7  # of √(J m): a point mass shifted there and back keeps J, so this unit, by rounding only


class InertiaParameters(NamedTuple):
    """The ten numbers of a body.

    mass (...), com (..., 3): frame origin to mass centre, inertia_com (..., 3, 3): about the mass centre.

    Examples
    --------
    A rod of 2 kg and one metre along x, held at its end:

    >>> rod = inertia_parameters(spatial_inertia(2.0, [0.5, 0, 0], np.diag([0.0, 1 / 6, 1 / 6])))
    >>> float(rod.mass), rod.com, float(rod.inertia_com[1, 1].round(6))
    (2.0, array([0.5, 0. , 0. ]), 0.166667)
    """

    mass: Array
    com: Array
    inertia_com: Array


def spatial_inertia(mass: ArrayLike, com: ArrayLike, inertia_com: ArrayLike) -> Array:
    """Spatial inertia about the frame origin, M = [[J, m p~], [−m p~, m 1]] with J = J_c − m p~p~.

    Parameters
    ----------
    mass : (...)
    com : (..., 3)
        p, from the frame origin to the mass centre.
    inertia_com : (..., 3, 3)
        J_c, rotational inertia about the mass centre, in the frame's axes; symmetric.

    Returns
    -------
    (..., 6, 6)

    Notes
    -----
    Source: R86 (3.1); SRB, parallel axis theorem. Signs are not judged here, a hole is a negative mass;
    :func:`validate_inertia` judges a whole body.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> M6 = spatial_inertia(2.0, [0.0, 0.0, 0.5], np.diag([0.1, 0.1, 0.05]))
    >>> np.diag(M6)
    array([0.6 , 0.6 , 0.05, 2.  , 2.  , 2.  ])
    """
    m = trailing(mass, (), "mass")
    p = trailing(com, (3,), "com")
    J_c = symmetric(trailing(inertia_com, (3, 3), "inertia_com"), "inertia_com")
    out = np.zeros((*together((m, 0, "mass"), (p, 1, "com"), (J_c, 2, "inertia_com")), 6, 6))
    m = m[..., None, None]
    cross = _skew(p)
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        out[..., :3, :3] = J_c - m * (cross @ cross)
        out[..., :3, 3:] = m * cross
        out[..., 3:, :3] = -m * cross + 0.0
    out[..., 3:, 3:] = m * np.eye(3)
    beyond = np.asarray(~np.isfinite(out).all(axis=(-2, -1)))
    if beyond.any():
        raise ModelError(
            f"mass times the square of com{index_of(beyond)} is beyond 1e308; are they in the right units?"
        )
    return out


def inertia_parameters(M6: ArrayLike) -> InertiaParameters:
    """Mass, mass centre and central inertia back from a spatial inertia: the inverse of spatial_inertia.

    Parameters
    ----------
    M6 : (..., 6, 6)
        A spatial inertia; a matrix without that structure (an articulated inertia, say) is an error.

    Returns
    -------
    InertiaParameters
        ``(mass (...), com (..., 3), inertia_com (..., 3, 3))``. A mass-less body has its com at the origin.

    Notes
    -----
    Source: R86 (3.1); J_c = J + m p~p~ loses digits when the mass centre is far from the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import inertia_parameters, spatial_inertia
    >>> inertia_parameters(spatial_inertia(2.0, [0.0, 0.0, 0.5], np.eye(3))).com
    array([0. , 0. , 0.5])
    """
    M6 = trailing(M6, (6, 6), "M6")
    fault = structure_fault(M6)
    if fault.any():
        raise ModelError(
            f"M6{index_of(fault)} is not a spatial inertia [[J, m p~], [-m p~, m 1]]; "
            "build it with spatial_inertia, and note that an articulated inertia has no mass centre"
        )
    return _parameters(M6)


def _parameters(M6: Array) -> InertiaParameters:
    mass = np.trace(M6[..., 3:, 3:], axis1=-2, axis2=-1) / 3
    first = 0.5 * (M6[..., [2, 0, 1], [4, 5, 3]] - M6[..., [1, 2, 0], [5, 3, 4]])  # m p
    com = np.divide(first, mass[..., None], out=np.zeros_like(first), where=mass[..., None] != 0)
    inertia_com = M6[..., :3, :3] + _skew(first) @ _skew(com)
    return InertiaParameters(mass, com, 0.5 * (inertia_com + np.swapaxes(inertia_com, -1, -2)))


def structure_fault(M6: Array) -> NDArray[np.bool_]:
    """Mask (...) of ``M6`` (..., 6, 6) that are not symmetric or not of the form [[J, m p~], [−m p~, m 1]]."""
    rebuilt = np.zeros_like(M6)
    mass, com, _ = _parameters(M6)
    lever = mass[..., None, None] * _skew(com)
    J = M6[..., :3, :3]
    rebuilt[..., :3, :3] = 0.5 * (J + np.swapaxes(J, -1, -2))
    rebuilt[..., :3, 3:] = lever
    rebuilt[..., 3:, :3] = -lever
    rebuilt[..., 3:, 3:] = mass[..., None, None] * np.eye(3)
    angular, linear = (np.abs(M6[..., part, part]).max(axis=(-2, -1)) for part in (slice(3), slice(3, 6)))
    lever_scale, error = np.sqrt(angular) * np.sqrt(linear), np.abs(M6 - rebuilt)
    return np.asarray(
        (error[..., :3, :3].max(axis=(-2, -1)) > STRUCTURE_TOLERANCE * angular)
        | (error[..., 3:, 3:].max(axis=(-2, -1)) > STRUCTURE_TOLERANCE * linear)
        | (error[..., :3, 3:].max(axis=(-2, -1)) > LEVER_TOLERANCE * lever_scale)
        | (error[..., 3:, :3].max(axis=(-2, -1)) > LEVER_TOLERANCE * lever_scale)
    )


def shift_inertia(M6: ArrayLike, l: ArrayLike) -> Array:
    """Spatial inertia about another point: M(x) = φ(x, y) M(y) φ*(x, y), the parallel axis theorem.

    Parameters
    ----------
    M6 : (..., 6, 6)
        M(y).
    l : (..., 3)
        l(x, y), from the new point x to the old point y.

    Returns
    -------
    (..., 6, 6)
        M(x).

    Notes
    -----
    Source: SRB, parallel axis theorem.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import shift_inertia, spatial_inertia
    >>> M_c = spatial_inertia(2.0, [0, 0, 0], np.eye(3))
    >>> np.array_equal(shift_inertia(M_c, [0, 0, 3]), spatial_inertia(2.0, [0, 0, 3], np.eye(3)))
    True
    """
    return transform_inertia(rigid_transform(l), M6)


def rotate_inertia(M6: ArrayLike, rotation: ArrayLike) -> Array:
    """Spatial inertia about the same point in other axes: R̄ M R̄*, R̄ = diag(R, R).

    Parameters
    ----------
    M6 : (..., 6, 6)
        In the old axes.
    rotation : (..., 3, 3)
        R takes coordinates in the old axes to coordinates in the new ones.

    Returns
    -------
    (..., 6, 6)

    Notes
    -----
    Source: SRB, time derivative of the spatial inertia (its first line).

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import rotate_inertia, rotation_from_axis_angle, spatial_inertia
    >>> M6 = spatial_inertia(1.0, [0, 0, 0], np.diag([1.0, 2.0, 3.0]))
    >>> np.diag(rotate_inertia(M6, rotation_from_axis_angle([0, 0, 1], np.pi / 2))).round(14)
    array([2., 1., 3., 1., 1., 1.])
    """
    R = check_rotation(trailing(rotation, (3, 3), "rotation"))
    return transform_inertia(rigid_transform(np.zeros(3), R), M6)


def combine_inertia(M6: ArrayLike, axis: int = 0) -> Array:
    """Spatial inertia of bodies rigidly joined: the sum Σ M of their inertias about one point.

    Parameters
    ----------
    M6 : (..., 6, 6)
        Spatial inertias about a common point, in common axes.
    axis : int
        The leading axis that runs over the bodies.

    Returns
    -------
    (..., 6, 6)
        Without that axis.

    Notes
    -----
    The composite body inertia is this sum along the tree, ℛ(k) = Σ φ ℛ(j) φ* + M(k).

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import combine_inertia, inertia_parameters, spatial_inertia
    >>> dumbbell = spatial_inertia([1.0, 3.0], [[-1.0, 0, 0], [1.0, 0, 0]], np.zeros((3, 3)))
    >>> inertia_parameters(combine_inertia(dumbbell)).com
    array([0.5, 0. , 0. ])
    """
    M6 = symmetric(trailing(M6, (6, 6), "M6"), "M6")
    leading = M6.ndim - 2
    if not -leading <= axis < leading:
        raise ModelError(f"axis {axis} is not one of the {leading} leading axes of M6; stack the bodies on one")
    return M6.sum(axis=axis % leading)


def momentum(M6: ArrayLike, V: ArrayLike) -> Array:
    """Spatial momentum h = M V about the point of M and V.

    Parameters
    ----------
    M6 : (..., 6, 6)
    V : (..., 6)

    Returns
    -------
    (..., 6)
        [angular; linear].

    Notes
    -----
    Source: SRB, recapitulation.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import momentum, spatial_inertia
    >>> momentum(spatial_inertia(2.0, [0, 0, 0], np.eye(3)), [1, 0, 0, 0, 0, 3])
    array([1., 0., 0., 0., 0., 6.])
    """
    M6, V = trailing(M6, (6, 6), "M6"), trailing(V, (6,), "V")
    together((M6, 2, "M6"), (V, 1, "V"))
    return np.einsum("...ij,...j->...i", M6, V)


def kinetic_energy(M6: ArrayLike, V: ArrayLike) -> Array:
    """Kinetic energy ½ V*MV, the same about every point of the body.

    Parameters
    ----------
    M6 : (..., 6, 6)
    V : (..., 6)

    Returns
    -------
    (...)

    Notes
    -----
    Source: R86 (3.2); SRB, recapitulation.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import kinetic_energy, spatial_inertia
    >>> kinetic_energy(spatial_inertia(2.0, [0, 0, 0], np.eye(3)), [1, 0, 0, 0, 0, 3])
    np.float64(9.5)
    """
    return 0.5 * np.einsum("...i,...i->...", trailing(V, (6,), "V"), momentum(M6, V))
