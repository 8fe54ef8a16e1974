"""Small pictures for the panels, as arrays: heat maps without matplotlib, which takes longer than the dynamics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array

Image = NDArray[np.uint8]

# From −1 through 0 to 1: orange, white, blue (those of kfdyn.viz, told apart by the colour-blind).
_LOW, _ZERO, _HIGH = np.array([213.0, 94, 0]), np.array([255.0, 255, 255]), np.array([0.0, 114, 178])


def correlation(cov: Array) -> Array:
    """Correlations of a covariance; rows that are zero stay zero.

    Parameters
    ----------
    cov : (n, n)
        Positive semi-definite.

    Returns
    -------
    (n, n) array
        1 on the diagonal but where the variance is 0.

    Examples
    --------
    >>> correlation(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    deviation = np.sqrt(np.maximum(np.diag(cov), 0.0))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return np.clip(scale[:, None] * cov * scale, -1.0, 1.0)


def heat_map(values: Array, pixels: int = 320) -> Image:
    """Numbers from −1 to 1 as a square picture of about so many pixels, (m, m, 3)."""
    x = np.clip(values, -1.0, 1.0)[..., None]
    colours = np.where(x < 0, _ZERO + (_ZERO - _LOW) * x, _ZERO + (_HIGH - _ZERO) * x)
    side = max(1, round(pixels / max(1, len(values))))
    return np.repeat(np.repeat(colours.round().astype(np.uint8), side, axis=0), side, axis=1)


def side_by_side(*images: Image, gap: int = 12) -> Image:
    """Pictures of one height in a row."""
    space = np.full((images[0].shape[0], gap, 3), 255, dtype=np.uint8)
    row = [part for image in images for part in (image, space)]
    return np.concatenate(row[:-1], axis=1)
