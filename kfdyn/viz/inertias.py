"""Spatial inertias, or spatial covariances, as ellipsoids on the hinges they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.viz.ellipsoids import draw_ellipse, draw_ellipsoid
from kfdyn.viz.skeleton import equal_metres, plane_axes, skeleton

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_inertias(
    ax: Axes,
    system: System,
    q: ArrayLike,
    inertias: Sequence[ArrayLike],
    size: float,
    block: Literal["linear", "angular"] = "linear",
    plane: str = "xz",
    bodies: Sequence[int] | None = None,
    **style: Any,
) -> None:
    """Draw one block of each 6 × 6 inertia as an ellipsoid at the body's hinge.

    The linear block of P(k) is the mass that hinge k's far side opposes to a pull without turning: m·1, a sphere, for
    rigid bodies, and less along the directions in which the hinges outboard give way. In the other reading
    it is the covariance of the force in hinge k given the torques outboard of it. Semi-axes are the square
    roots of the eigenvalues, so M ⪯ P ⪯ ℛ are ellipsoids one inside the other.

    Parameters
    ----------
    inertias : sequence of n_bodies (6, 6)
        World orientation, at the hinge points: ``filt.P``, ``filt.P_plus``, ``ss.Q``, composite inertias, ...
    size
        Metres that stand for the square root of a unit.
    block
        Which diagonal block to draw.
    plane
        The two world axes of a flat drawing.
    bodies
        Which bodies to draw; all if not given.
    **style
        For :func:`draw_ellipsoid`, or for :func:`draw_ellipse` on flat axes.

    Examples
    --------
    Of three rods, the articulated inertias that the filter finds:

    >>> import matplotlib.pyplot as plt
    >>> import kfdyn as kf
    >>> arm, q = kf.models.uniform_chain(3), [0.1, 0.2, 0.3]
    >>> ax = plt.figure().gca()
    >>> draw_inertias(ax, arm, q, kf.riccati(kf.as_estimation(arm, q)).P, size=0.1, plane="xy")
    >>> len(ax.patches)
    3
    >>> plt.close()
    """
    if len(inertias) != system.n_bodies:
        raise ShapeError(f"inertias must be one for each of the {system.n_bodies} bodies, got {len(inertias)}")
    if block not in ("linear", "angular"):
        raise ModelError(f"block must be 'linear' or 'angular', got {block!r}")
    part = slice(3, 6) if block == "linear" else slice(0, 3)
    hinges = skeleton(system, q).hinges
    for k in range(system.n_bodies) if bodies is None else bodies:
        cov = np.asarray(inertias[k], dtype=float)
        if cov.shape != (6, 6):
            raise ShapeError(f"body {system.body_names[k]!r}: its inertia must have shape (6, 6), got {cov.shape}")
        if ax.name == "3d":
            draw_ellipsoid(ax, cov[part, part], hinges[k], size, **style)
        else:
            rows = plane_axes(plane)
            draw_ellipse(ax, cov[part, part][np.ix_(rows, rows)], hinges[k][rows], size, **style)
    if ax.name == "3d":  # where a surface sets the limits of its axes one by one, and spheres would be discs
        equal_metres(ax)
