"""Components that belong together because rotations mix them: vectors in space, recognised in a covariance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.estimation.model.blocks import FloatArray

_ROUNDED = 1e-12  # of a block's largest entry: how exactly a covariance shows what it is


def of_vectors(stack: FloatArray) -> NDArray[np.bool_]:
    """Which of the covariances (..., 6k, 6k) are those of pairs of vectors, moment and force, that share nothing.

    ::

        Q = diag of [[J, m p~], [−m p~, m 1]]

    Then no axis is a unit: each vector's components are known to the rounding of its largest, for they were turned.

    Examples
    --------
    >>> import kfdyn as kf
    >>> of_vectors(kf.as_estimation(kf.models.double_pendulum(), [0.1, 0.2]).Q.stacked())
    array([ True,  True])
    """
    lead, n = stack.shape[:-2], stack.shape[-1]
    if not n or n % 6:
        return np.zeros(lead, dtype=bool)
    size = np.abs(stack).max(axis=(-2, -1))
    pairs = stack.reshape(*lead, n // 6, 6, n // 6, 6)
    apart = ~np.eye(n // 6, dtype=bool)[:, None, :, None] & (pairs != 0)
    own = np.einsum("...iaib->...iab", pairs)
    lever, mass = own[..., :3, 3:], own[..., 3:, 3:]
    lever = np.abs(lever + np.swapaxes(lever, -1, -2)).max(axis=(-3, -2, -1))
    mass = np.abs(mass - mass[..., :1, :1] * np.eye(3)).max(axis=(-3, -2, -1))
    return ~apart.any(axis=(-4, -3, -2, -1)) & (np.maximum(lever, mass) <= _ROUNDED * size)


def vector_deviations(stack: FloatArray) -> FloatArray:
    """√ of the variances summed over each vector of such covariances, for each of its components, (..., 6k)."""
    variance = np.abs(np.diagonal(stack, axis1=-2, axis2=-1))
    sums = variance.reshape(*variance.shape[:-1], -1, 3).sum(axis=-1)
    return np.repeat(np.sqrt(sums), 3, axis=-1)
