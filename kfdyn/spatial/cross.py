"""Cross products in three and six dimensions: l~, V~ and V̄.

Spatial vectors are [angular; linear]. A *motion* is a velocity [ω; v] or an acceleration, a *force* is
[moment; force] or a momentum. The two 6-D products are the rates at which a motion and a force fixed
in a body change when the body, and the reference point with it, moves with spatial velocity V.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.spatial._arrays import trailing


def skew(l: ArrayLike) -> Array:
    """Matrix l~ of the cross product: l~ x = l × x.

    Parameters
    ----------
    l : (..., 3)

    Returns
    -------
    (..., 3, 3)
        Skew-symmetric: (l~)* = −l~.

    Notes
    -----
    Source: R86 section 3, SRB. Cost: six copies per matrix.

    Examples
    --------
    >>> from kfdyn.spatial import skew
    >>> skew([1.0, 2.0, 3.0]) @ [0.0, 0.0, 1.0]
    array([ 2., -1.,  0.])
    """
    return _skew(trailing(l, (3,), "l"))


def _skew(l: Array) -> Array:
    out = np.zeros((*l.shape, 3))
    out[..., 2, 1] = l[..., 0]
    out[..., 0, 2] = l[..., 1]
    out[..., 1, 0] = l[..., 2]
    # 0 - x rather than -x: no negative zeros to print in matrices of zeros
    out[..., 1, 2] -= l[..., 0]
    out[..., 2, 0] -= l[..., 1]
    out[..., 0, 1] -= l[..., 2]
    return out


def cross_motion(V: ArrayLike) -> Array:
    """Spatial cross product on motions: V~ = [[ω~, 0], [v~, ω~]].

    V~ X = [ω × x_ω; v × x_ω + ω × x_v]. It is antisymmetric, V~ X = −X~ V, and V~ V = 0.

    Parameters
    ----------
    V : (..., 6)
        Spatial velocity [ω; v].

    Returns
    -------
    (..., 6, 6)

    Notes
    -----
    Source: SRB (the operator written with a tilde). Featherstone's ``crm`` and Pinocchio's ``Motion.cross``
    are the same operator.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import cross_motion
    >>> V = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> cross_motion(V) @ V
    array([0., 0., 0., 0., 0., 0.])
    """
    V = trailing(V, (6,), "V")
    out = np.zeros((*V.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = _skew(V[..., :3])
    out[..., 3:, :3] = _skew(V[..., 3:])
    return out


def cross_force(V: ArrayLike) -> Array:
    """Spatial cross product on forces: V̄ = [[ω~, v~], [0, ω~]] = −(V~)*.

    V̄ f = [ω × N + v × F; ω × F] for f = [N; F]. Dual to :func:`cross_motion`: (V̄ f)*X = −f*(V~ X), so
    the power f*X of a force and a motion carried along by one body does not change.

    Parameters
    ----------
    V : (..., 6)
        Spatial velocity [ω; v].

    Returns
    -------
    (..., 6, 6)

    Notes
    -----
    Source: SRB (the operator written with a bar); its V*V̄ = 0 is why a body-derivative gyroscopic term does
    no work. Featherstone's ``crf`` is the same operator, sign included.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import cross_force, cross_motion
    >>> V = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> np.array_equal(cross_force(V), -cross_motion(V).T)
    True
    """
    V = trailing(V, (6,), "V")
    out = np.zeros((*V.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = _skew(V[..., :3])
    out[..., :3, 3:] = _skew(V[..., 3:])
    return out
