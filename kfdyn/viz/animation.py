"""Animate a simulated motion as HTML or GIF, by matplotlib alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody import frame_pose
from kfdyn.viz.skeleton import AXES, plane_axes, skeleton

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

_BOUND = {2: 5.991, 3: 7.815}  # quantiles of χ² with two and three degrees at 95 %
MOST_FRAMES = 400  # of one picture: some megabytes

#: A :class:`kfdyn.dynamics.Trajectory`, which this room cannot name: read for system, t, q, kinetic and potential.
Motion = Any


def animate(
    trajectory: Motion,
    path: str | Path | None = None,
    plane: str | None = "xz",
    fps: float = 25.0,
    speed: float = 1.0,
    trail: str | None = None,
    ellipse: str | None = None,
    energy: bool = False,
    size: float = 4.0,
    figure: Figure | None = None,
) -> FuncAnimation:
    """Animate a robot that was simulated, or whose motion was estimated.

    Parameters
    ----------
    trajectory : Trajectory
        What :func:`kfdyn.simulate` returns, of one motion; or what filters and smoothers of a
        :class:`kfdyn.MotionModel` do.
    path : str or path, optional
        Write it there: ``.html`` is a page with buttons that needs nothing else, ``.gif`` is for slides.
    plane : str or None
        The two world axes to look at, as "xz"; None draws in three dimensions.
    fps : float
        Frames a second.
    speed : float
        Seconds of the motion in a second of the picture.
    trail : str, optional
        A body or frame that leaves a trail.
    ellipse : str, optional
        Of a motion that was estimated: a body or frame about which the ellipse is drawn that holds its position with
        95 %.
    energy : bool
        Whether to draw kinetic, potential and total energy beside it.
    size : float
        Inches of the picture's side.
    figure : matplotlib.figure.Figure, optional
        Draw there instead of on a figure of its own.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        Shown by notebooks through its ``to_jshtml()``.

    Raises
    ------
    ModelError
        For a batch of motions, an empty one, a file of another kind, or more than 400 frames.

    Examples
    --------
    >>> import matplotlib, numpy as np, kfdyn as kf
    >>> matplotlib.use("Agg")
    >>> fall = kf.simulate(kf.models.double_pendulum(), [1.5, 0.2], [0.0, 0.0], np.linspace(0, 0.4, 41))
    >>> moving = animate(fall, fps=20, trail="lower")
    >>> len(list(moving.new_frame_seq()))
    9
    """
    from kfdyn.viz.film import Film

    moments = _frames(trajectory, fps, speed)
    bones = [skeleton(trajectory.system, trajectory.q[i]) for i in moments]
    rows = [0, 1, 2] if plane is None else plane_axes(plane)
    figure = _new_figure(2 * size if energy else size, size) if figure is None else figure
    grid = figure.add_gridspec(1, 2 if energy else 1)
    ax: Any = figure.add_subplot(grid[0], projection="3d" if plane is None else None)
    _frame(ax, bones, rows, list(AXES) if plane is None else list(plane))
    style = {"color": "#555555", "linewidth": 3, "solid_capstyle": "round"}
    lines = [ax.plot(*stroke[:, rows].T, **style)[0] for stroke in bones[0].strokes]
    (hinges,) = ax.plot(*bones[0].hinges[:, rows].T, "o", color="#555555", mfc="white", ms=5)
    (trace,) = ax.plot(*([] for _ in rows), color="#0072B2", lw=1)
    bounds = None if ellipse is None else _ellipses(trajectory, ellipse, rows)
    (ring,) = ax.plot(*([] for _ in rows), color="#D55E00", lw=1.5)
    points = None if trail is None else _points(trajectory, trail)[:, rows]
    mark = _draw_energy(figure.add_subplot(grid[1]), trajectory) if energy else None

    def draw(i: int) -> list[Any]:
        for line, stroke in zip(lines, bones[i].strokes):
            _set(line, stroke[:, rows].T)
        _set(hinges, bones[i].hinges[:, rows].T)
        if points is not None:
            _set(trace, points[: moments[i] + 1].T)  # all moments, those between frames too: else it has corners
        if bounds is not None:
            _set(ring, bounds[moments[i]].T)
        if mark is not None:
            mark.set_xdata([trajectory.t[moments[i]]] * 2)
        return [*lines, hinges, ring, trace]

    moving = Film(figure, draw, frames=len(moments), interval=1000 / fps, blit=False)
    # Else matplotlib scolds whoever looks at it only later, or not at all.
    moving._draw_was_started = True  # type: ignore[attr-defined]
    if path is not None:
        _save(moving, Path(path), fps)
    return moving


def _frames(trajectory: Motion, fps: float, speed: float) -> NDArray[np.int64]:
    """Choose the moments of a trajectory that are shown."""
    t, q = np.asarray(trajectory.t), np.asarray(trajectory.q)
    if q.ndim != 2:
        raise ModelError(f"an animation is of one motion; q has shape {q.shape}: choose one, as trajectory[0]")
    if not (fps > 0 and speed > 0):
        raise ModelError(f"fps and speed must be positive, got {fps} and {speed}")
    count = int((t[-1] - t[0]) / speed * fps + 1e-9) + 1
    if count > MOST_FRAMES:
        raise ModelError(f"that would be {count} frames, more than {MOST_FRAMES}; lower fps, raise speed or show less")
    wanted = t[0] + np.arange(count) * speed / fps
    after = np.searchsorted(t, wanted).clip(1, t.size - 1) if t.size > 1 else np.zeros(count, dtype=np.int64)
    before = np.maximum(after - 1, 0)
    return np.where(wanted - t[before] < t[after] - wanted, before, after)


def _ellipses(motion: Any, frame: str, rows: list[int]) -> Array:
    """Return outlines (N, 60, axes) that hold the position of a frame with 95 %: of a solid in space three rings."""
    if not hasattr(motion, "position_cov"):
        raise ModelError("a simulated motion is known exactly; an ellipse is of one that was estimated")
    plane = np.stack([np.cos(np.linspace(0, 2 * np.pi, 60)), np.sin(np.linspace(0, 2 * np.pi, 60))])
    if len(rows) == 2:
        outline = plane
    else:
        outline = np.concatenate([np.insert(plane, axis, 0.0, axis=0) for axis in range(3)], axis=1)
    cov = motion.position_cov(frame)[:, rows][:, :, rows]
    values, vectors = np.linalg.eigh(cov)
    radius = np.sqrt(_BOUND[len(rows)])
    roots = radius * vectors * np.sqrt(np.clip(values, 0.0, None))[:, None, :]
    return np.asarray(_points(motion, frame)[:, None, rows] + (roots @ outline).swapaxes(1, 2))


def _points(trajectory: Motion, trail: str) -> Array:
    return np.asarray(frame_pose(trajectory.system, trajectory.q, trail).position)


def _frame(ax: Any, bones: list[Any], rows: list[int], names: list[str]) -> None:
    """Set equal axes that hold the whole motion."""
    points = np.concatenate([np.concatenate([b.strokes.reshape(-1, 3), b.hinges]) for b in bones])[:, rows]
    middle, half = (points.max(0) + points.min(0)) / 2, 0.55 * float(np.ptp(points, axis=0).max()) + 1e-9
    for name, label, centre in zip("xyz", names, middle):
        getattr(ax, f"set_{name}lim")(centre - half, centre + half)
        getattr(ax, f"set_{name}label")(f"{label} [m]")
    if len(rows) == 3:
        ax.set_box_aspect([1, 1, 1], zoom=0.86)  # no layout knows of the labels beside the box
        ax.locator_params(nbins=5)
    else:
        ax.set_box_aspect(1)


def _draw_energy(ax: Any, trajectory: Motion) -> Any:
    for values, name, color in (
        (trajectory.kinetic, "kinetic", "#0072B2"),
        (trajectory.potential, "potential", "#E69F00"),
        (trajectory.kinetic + trajectory.potential, "together", "black"),
    ):
        ax.plot(trajectory.t, values, color=color, label=name)
    ax.set_xlabel("t [s]")
    ax.set_ylabel("energy [J]")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)  # above: no curve is there
    return ax.axvline(trajectory.t[0], color="#999999")


def _set(line: Any, data: Array) -> None:
    if len(data) == 3:
        line.set_data_3d(*data)
    else:
        line.set_data(*data)


def _new_figure(width: float, height: float) -> Figure:
    """Make a figure that no window manager keeps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(moving: FuncAnimation, path: Path, fps: float) -> None:
    if path.suffix == ".html":
        path.write_text(moving.to_jshtml(fps=round(fps)), encoding="utf-8")
    elif path.suffix == ".gif":
        from matplotlib.animation import PillowWriter

        moving.save(path, writer=PillowWriter(fps=round(fps)))
    else:
        raise ModelError(f"{path.name}: an animation is written as .html or .gif")
