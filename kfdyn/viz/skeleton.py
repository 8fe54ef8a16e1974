"""A system as a skeleton: a stroke from each hinge to the hinges and frames it carries, a dot at each hinge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System, frame_pose
from kfdyn.multibody.calls.arguments import configuration
from kfdyn.multibody.links import open_terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {"x": 0, "y": 1, "z": 2}


class Skeleton(NamedTuple):
    """Hinge points (n_bodies, 3), and strokes (n_strokes, 2, 3) between points of the same body."""

    hinges: Array
    strokes: Array


def skeleton(system: System, q: ArrayLike) -> Skeleton:
    """Return points and strokes of a system in one configuration.

    Each body is drawn from its own hinge to the hinges of its children, to its named frames, and, if it
    carries neither, to its mass centre.

    Returns
    -------
    Skeleton

    Examples
    --------
    >>> from kfdyn.multibody.models import double_pendulum
    >>> skeleton(double_pendulum(), [0.0, 0.0]).strokes[:, 1].tolist()
    [[0.0, 0.0, -1.0], [0.0, 0.0, -2.0]]
    """
    here = configuration(system, q)
    if here.ndim != 1:
        raise ShapeError(f"a skeleton is of one configuration: q must have shape ({system.nq},), got {here.shape}")
    terms = open_terms(system, here)
    p, R = terms.position, terms.rotation
    ends: list[tuple[int, Array]] = [(int(up), p[k]) for k, up in enumerate(system.parent) if up >= 0]
    for name, frame in system.frames.items():
        ends.append((system.body_index(frame.body), frame_pose(system, here, name).position))
    for k in sorted(set(range(system.n_bodies)) - {body for body, _ in ends}):
        ends.append((k, p[k] + R[k] @ system.open_tree.layout.com[k]))
    return Skeleton(p, np.array([[p[body], end] for body, end in ends]))


def draw_system(
    ax: Axes,
    system: System,
    q: ArrayLike,
    plane: str = "xz",
    color: str = "#555555",
    linewidth: float = 3.0,
    alpha: float = 1.0,
) -> Skeleton:
    """Draw a system in three dimensions, or on a plane when ``ax`` has two; a dotted line leads to the world's origin.

    Parameters
    ----------
    plane
        The two world axes of a flat drawing, as "xz".
    color : str
        Of strokes and hinges.
    linewidth, alpha : float
        Width of the strokes in points, and opacity.

    Returns
    -------
    Skeleton
        What was drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from kfdyn.multibody.models import uniform_chain
    >>> drawn = draw_system(plt.figure().gca(), uniform_chain(3), [0.1, 0.2, 0.3], plane="xy")
    >>> drawn.hinges.shape
    (3, 3)
    >>> plt.close()
    """
    drawn = skeleton(system, q)
    rows = [0, 1, 2] if ax.name == "3d" else plane_axes(plane)
    style: dict[str, Any] = {"color": color, "alpha": alpha}
    for stroke in drawn.strokes:
        ax.plot(*stroke[:, rows].T, linewidth=linewidth, solid_capstyle="round", **style)
    points = drawn.hinges[:, rows].T
    ax.plot(*points, "o", markersize=1.6 * linewidth, markerfacecolor="white", markeredgewidth=linewidth / 2, **style)
    for stroke in to_base(system, drawn):
        ax.plot(*stroke[:, rows].T, linestyle=":", linewidth=linewidth / 2, zorder=0, **style)
    equal_metres(ax)
    return drawn


def equal_metres(ax: Axes) -> None:
    """Make a metre equally long in every direction; in three dimensions, of what has been drawn so far."""
    ax.set_aspect("equal", adjustable="datalim")


def to_base(system: System, drawn: Skeleton) -> Array:
    """Return strokes (n, 2, 3) from the world's origin to each tree's first hinge, unless it is there or free."""
    roots = [k for k in np.flatnonzero(system.parent < 0) if system.bodies[k].hinge.kind != "free"]
    ends = drawn.hinges[[k for k in roots if drawn.hinges[k].any()]]
    return np.stack([np.zeros_like(ends), ends], axis=1)


def plane_axes(plane: str) -> list[int]:
    """Return the indices of the two world axes named by ``plane``."""
    if len(plane) != 2 or len(set(plane)) != 2 or not set(plane) <= set(AXES):
        raise ModelError(f"plane must name two different world axes, as 'xz', got {plane!r}")
    return [AXES[letter] for letter in plane]
