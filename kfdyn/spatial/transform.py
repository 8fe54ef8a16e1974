"""Rigid body transformations φ(x, y): the transition matrix of multibody dynamics.

One 6×6 matrix moves everything between two frames x and y of a rigid body. Forces and momenta travel
from y to x with φ(x, y), velocities from x to y with its transpose, inertias with both:

    f(x) = φ(x, y) f(y),   V(y) = φ*(x, y) V(x),   M(x) = φ(x, y) M(y) φ*(x, y)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.spatial._arrays import (
    ROTATION_TOLERANCE,
    check_rotation,
    index_of,
    symmetric,
    together,
    trailing,
)
from kfdyn.spatial.cross import _skew


def rigid_transform(l: ArrayLike, rotation: ArrayLike | None = None) -> Array:
    """Rigid body transformation φ(x, y) = [[1, l~], [0, 1]], or [[R, l~R], [0, R]] between rotated frames.

    Parameters
    ----------
    l : (..., 3)
        From the origin of x to the origin of y, in the axes of x.
    rotation : (..., 3, 3), optional
        R takes coordinates in y to coordinates in x. Without it both frames have the same orientation.

    Returns
    -------
    (..., 6, 6)

    Notes
    -----
    A semigroup, as a transition matrix must be: φ(x, z) = φ(x, y) φ(y, z), φ(x, x) = 1, φ^-1(x, y) = φ(y, x).
    For a body k and its parent p, φ(p, k) takes l and R from the parent to the child.
    Source: R86 (3.5), (3.6); SRB. Note that in R86 (3.5) l must be read as leading from k to m.

    Examples
    --------
    >>> from kfdyn.spatial import rigid_transform
    >>> phi = rigid_transform([2.0, 0.0, 0.0])
    >>> phi @ [0, 0, 0, 0, 1, 0]  # a force along y, two metres away: a moment about z
    array([0., 0., 2., 0., 1., 0.])
    >>> phi.T @ [0, 0, 1, 0, 0, 0]  # a spin about z: a speed along y, two metres away
    array([0., 0., 1., 0., 2., 0.])
    """
    l = trailing(l, (3,), "l")
    if rotation is None:
        R = np.eye(3)
    else:
        R = check_rotation(trailing(rotation, (3, 3), "rotation"))
    together((l, 1, "l"), (R, 2, "rotation"))
    return _rigid(l, R)


def _rigid(l: Array, R: Array) -> Array:
    upper = _skew(l) @ R
    out = np.zeros((*upper.shape[:-2], 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = R
    out[..., :3, 3:] = upper
    return out


def inverse_transform(phi: ArrayLike) -> Array:
    """Inverse φ^-1(x, y) = φ(y, x) = [[R*, (l~R)*], [0, R*]], by transposing blocks.

    Parameters
    ----------
    phi : (..., 6, 6)
        A rigid body transformation.

    Returns
    -------
    (..., 6, 6)

    Notes
    -----
    Source: R86 (3.6). Cost: copies only, no elimination.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import inverse_transform, rigid_transform
    >>> phi = rigid_transform([1.0, 2.0, 3.0])
    >>> np.array_equal(inverse_transform(phi), rigid_transform([-1.0, -2.0, -3.0]))
    True
    """
    phi = trailing(phi, (6, 6), "phi")
    out = _inverse(phi)
    error = np.abs(phi @ out - np.eye(6)).max(axis=(-2, -1))
    fault = error > ROTATION_TOLERANCE * (1 + np.abs(phi).max(axis=(-2, -1)))
    if fault.any():
        raise ModelError(f"phi{index_of(fault)} is not rigid, [[R, l~R], [0, R]]; build it with rigid_transform")
    return out


def _inverse(phi: Array) -> Array:
    out = np.zeros_like(phi)
    out[..., :3, :3] = out[..., 3:, 3:] = np.swapaxes(phi[..., :3, :3], -1, -2)
    out[..., :3, 3:] = np.swapaxes(phi[..., :3, 3:], -1, -2)
    return out


def transform_velocity(phi: ArrayLike, V: ArrayLike) -> Array:
    """Spatial velocity at y from the one at x: V(y) = φ*(x, y) V(x).

    Parameters
    ----------
    phi : (..., 6, 6)
        φ(x, y).
    V : (..., 6)
        Spatial velocity of the body at x.

    Returns
    -------
    (..., 6)

    Notes
    -----
    Source: SRB, recapitulation of the spatial notation.

    Examples
    --------
    >>> from kfdyn.spatial import rigid_transform, transform_velocity
    >>> transform_velocity(rigid_transform([2.0, 0.0, 0.0]), [0, 0, 1, 0, 0, 0])
    array([0., 0., 1., 0., 2., 0.])
    """
    phi, V = _pair(phi, V, "V")
    return np.einsum("...ji,...j->...i", phi, V)


def transform_force(phi: ArrayLike, f: ArrayLike) -> Array:
    """Spatial force about x from the one about y: f(x) = φ(x, y) f(y).

    Parameters
    ----------
    phi : (..., 6, 6)
        φ(x, y).
    f : (..., 6)
        Spatial force [moment; force] about y.

    Returns
    -------
    (..., 6)

    Notes
    -----
    Source: SRB, recapitulation of the spatial notation. Power f*V is the same at x and at y.

    Examples
    --------
    >>> from kfdyn.spatial import rigid_transform, transform_force
    >>> transform_force(rigid_transform([2.0, 0.0, 0.0]), [0, 0, 0, 0, 1, 0])
    array([0., 0., 2., 0., 1., 0.])
    """
    phi, f = _pair(phi, f, "f")
    return np.einsum("...ij,...j->...i", phi, f)


def transform_momentum(phi: ArrayLike, h: ArrayLike) -> Array:
    """Spatial momentum about x from the one about y: h(x) = φ(x, y) h(y).

    Parameters
    ----------
    phi : (..., 6, 6)
        φ(x, y).
    h : (..., 6)
        Spatial momentum [angular; linear] about y.

    Returns
    -------
    (..., 6)

    Notes
    -----
    Source: SRB, recapitulation of the spatial notation. A momentum moves as a force does.

    Examples
    --------
    >>> from kfdyn.spatial import rigid_transform, transform_momentum
    >>> transform_momentum(rigid_transform([0.0, 3.0, 0.0]), [0, 0, 0, 1, 0, 0])
    array([ 0.,  0., -3.,  1.,  0.,  0.])
    """
    phi, h = _pair(phi, h, "h")
    return np.einsum("...ij,...j->...i", phi, h)


def transform_inertia(phi: ArrayLike, M6: ArrayLike) -> Array:
    """Spatial inertia about x from the one about y: M(x) = φ(x, y) M(y) φ*(x, y).

    Parameters
    ----------
    phi : (..., 6, 6)
        φ(x, y).
    M6 : (..., 6, 6)
        Spatial inertia about y.

    Returns
    -------
    (..., 6, 6)
        Symmetric to the last bit.

    Notes
    -----
    Source: SRB, the parallel axis theorem in six dimensions. The same congruence moves articulated and
    composite inertias, and, in the other reading, covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import rigid_transform, spatial_inertia, transform_inertia
    >>> at_y = spatial_inertia(2.0, [0.0, 0.0, 0.0], np.eye(3))
    >>> transform_inertia(rigid_transform([0.0, 0.0, 3.0]), at_y)[0, 0]  # 1 + 2 · 3²
    np.float64(19.0)
    """
    phi = trailing(phi, (6, 6), "phi")
    M6 = symmetric(trailing(M6, (6, 6), "M6"), "M6")
    together((phi, 2, "phi"), (M6, 2, "M6"))
    out = phi @ M6 @ np.swapaxes(phi, -1, -2)
    return 0.5 * (out + np.swapaxes(out, -1, -2))


def _pair(phi: ArrayLike, x: ArrayLike, name: str) -> tuple[Array, Array]:
    phi, x = trailing(phi, (6, 6), "phi"), trailing(x, (6,), name)
    together((phi, 2, "phi"), (x, 1, name))
    return phi, x
