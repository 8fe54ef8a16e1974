"""A covariance as an ellipse or ellipsoid: {x : x* Σ^-1 x = 1}, which also exists when Σ is singular."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Polygon


# Rounding of a covariance that was computed, against its largest entry.
NEGATIVE = 1e-9


def ellipse_points(cov: ArrayLike, center: ArrayLike = (0.0, 0.0), size: float = 1.0, n: int = 100) -> Array:
    """Return points of the ellipse {x : x* Σ^-1 x = size²} about ``center``.

    They are center + size Σ^½ u for u on the unit circle, so that a singular Σ gives a segment or a point.

    Parameters
    ----------
    cov : (2, 2)
        Σ, positive semi-definite. The shadow of an ellipsoid on two axes is the ellipse of that sub-block.
    center : (2,)
    size
        1 for one standard deviation.
    n
        Number of points; the first is repeated at the end.

    Returns
    -------
    (n + 1, 2) array

    Examples
    --------
    >>> ellipse_points([[4.0, 0.0], [0.0, 1.0]], n=4).round(6).tolist()
    [[2.0, 0.0], [0.0, 1.0], [-2.0, 0.0], [-0.0, -1.0], [2.0, -0.0]]
    """
    angle = np.linspace(0, 2 * np.pi, n + 1)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return _point(center, 2) + size * circle @ _factor(cov, 2)


def ellipsoid_points(cov: ArrayLike, center: ArrayLike = (0.0, 0.0, 0.0), size: float = 1.0, n: int = 24) -> Array:
    """Return points of the ellipsoid {x : x* Σ^-1 x = size²} about ``center``, on circles of latitude.

    Parameters
    ----------
    cov : (3, 3)
        Σ, positive semi-definite.
    center : (3,)
    size
        1 for one standard deviation.
    n
        Latitudes less one; there are twice as many meridians.

    Returns
    -------
    (n + 1, 2 n + 1, 3) array

    Examples
    --------
    >>> points = ellipsoid_points([[1.0, 0, 0], [0, 1, 0], [0, 0, 9]], center=[0, 0, 1])
    >>> float(points[..., 2].max())
    4.0
    """
    latitude, longitude = np.linspace(0, np.pi, n + 1)[:, None], np.linspace(0, 2 * np.pi, 2 * n + 1)
    ball = np.stack(
        [
            np.sin(latitude) * np.cos(longitude),
            np.sin(latitude) * np.sin(longitude),
            np.cos(latitude) * np.ones_like(longitude),
        ],
        axis=-1,
    )
    return _point(center, 3) + size * ball @ _factor(cov, 3)


def draw_ellipse(ax: Axes, cov: ArrayLike, center: ArrayLike = (0.0, 0.0), size: float = 1.0, **style: Any) -> Polygon:
    """Draw the ellipse of a 2 × 2 covariance; ``style`` goes to matplotlib's Polygon.

    Parameters
    ----------
    cov : (2, 2)
        Σ, positive semi-definite.
    center : (2,)
        Where it is drawn.
    size : float
        1 for one standard deviation.
    **style
        For matplotlib's Polygon.

    Returns
    -------
    Polygon
        What was drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> ax = plt.figure().gca()
    >>> patch = draw_ellipse(ax, [[4.0, 0.0], [0.0, 1.0]], center=[1.0, 0.0], facecolor="none")
    >>> float(patch.get_xy()[:, 0].max())
    3.0
    >>> plt.close()
    """
    from matplotlib.patches import Polygon

    patch = Polygon(ellipse_points(cov, center, size), closed=True, **style)
    ax.add_patch(patch)
    ax.autoscale_view()
    return patch


def draw_ellipsoid(
    ax: Any, cov: ArrayLike, center: ArrayLike = (0.0, 0.0, 0.0), size: float = 1.0, n: int = 24, **style: Any
) -> Any:
    """Draw the ellipsoid of a 3 × 3 covariance as a surface; ``style`` goes to ``plot_surface``.

    Parameters
    ----------
    ax
        Axes of matplotlib, with ``projection="3d"``.
    cov : (3, 3)
        Σ, positive semi-definite.
    center : (3,)
        Where it is drawn.
    size : float
        1 for one standard deviation.
    n : int
        Latitudes less one.
    **style
        For ``plot_surface``.

    Returns
    -------
    Poly3DCollection
        What was drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> ax = plt.figure().add_subplot(projection="3d")
    >>> surface = draw_ellipsoid(ax, np.diag([1.0, 2.0, 3.0]), center=[0, 0, 1], color="#0072B2")
    >>> len(ax.collections)
    1
    >>> plt.close()
    """
    x, y, z = np.moveaxis(ellipsoid_points(cov, center, size, n), -1, 0)
    style = {"rstride": 1, "cstride": 1, "linewidth": 0, "antialiased": True, "alpha": 0.35, **style}
    return ax.plot_surface(x, y, z, **style)


def _factor(cov: ArrayLike, size: int) -> Array:
    """Return the symmetric factor Σ^½ of a covariance."""
    sigma = np.asarray(cov, dtype=float)
    if sigma.shape != (size, size):
        raise ShapeError(f"the covariance to draw must have shape ({size}, {size}), got {sigma.shape}")
    if not np.isfinite(sigma).all():
        raise ModelError("the covariance to draw has entries that are not finite")
    largest = float(np.abs(sigma).max())
    if np.abs(sigma - sigma.T).max() > NEGATIVE * largest:
        raise ModelError("the covariance to draw is not symmetric")
    spectrum, axes = np.linalg.eigh(sigma)
    if spectrum[0] < -NEGATIVE * largest:
        raise ModelError(f"the covariance to draw is indefinite: its smallest eigenvalue is {spectrum[0]:.3g}")
    return np.asarray((axes * np.sqrt(np.maximum(spectrum, 0.0))) @ axes.T, dtype=np.float64)


def _point(center: ArrayLike, size: int) -> Array:
    point = np.asarray(center, dtype=float)
    if point.shape != (size,):
        raise ShapeError(f"center must have shape ({size},), got {point.shape}")
    return point
