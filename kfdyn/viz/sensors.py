"""Draw sensors on a robot, and the accuracy of each hinge's estimate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors import ExternalForce, ForceTorque, Observability, Sensor
from kfdyn.errors import ShapeError
from kfdyn.multibody import System, frame_pose
from kfdyn.viz.skeleton import draw_system, plane_axes, skeleton
from kfdyn.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = {"imu": ("s", "blue"), "force": ("D", "green"), "push": ("*", "vermilion")}
WORDS = {"imu": "inertial unit", "force": "force–torque sensor", "push": "external force"}


def draw_sensors(
    ax: Axes, system: System, q: ArrayLike, sensors: Iterable[Sensor], plane: str = "xz", size: float = 8.0
) -> dict[str, int]:
    """Mark sensors where they are: squares for inertial ones, diamonds for force–torque, stars for external forces.

    Parameters
    ----------
    sensors : iterable of kf.sensors
        Those at hinges (torques, accelerations) are not drawn.
    plane : str
        The two world axes of a flat drawing.
    size : float
        Of the marks, in points.

    Returns
    -------
    dict
        How many of each kind were drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> drawn = draw_sensors(plt.figure().gca(), arm, [0.3, 0.4], [kf.sensors.Imu("lower", 0.1)])
    >>> drawn
    {'inertial unit': 1}
    >>> plt.close()
    """
    rows = [0, 1, 2] if ax.name == "3d" else plane_axes(plane)
    drawn: dict[str, int] = {}
    for sensor in sensors:
        kind, frame = _kind(system, sensor)
        if frame is None:
            continue
        mark, color = MARKS[kind]
        word = WORDS[kind]
        label = word if word not in drawn else None
        drawn[word] = drawn.get(word, 0) + 1
        point = frame_pose(system, q, frame).position[rows]
        style: dict[str, Any] = {
            "color": COLORS[color],
            "markeredgecolor": "white",
            "linestyle": "none",
            "label": label,
        }
        ax.plot(*point[:, None], marker=mark, markersize=size, zorder=4, **style)
    return drawn


def _kind(system: System, sensor: Sensor) -> tuple[str, str | None]:
    if isinstance(sensor, ForceTorque):
        return "force", sensor.frame or system.body_names[sensor.sites(system)[0].k]
    frame = getattr(sensor, "frame", None)
    return ("push" if isinstance(sensor, ExternalForce) else "imu"), frame


def draw_observability(
    ax: Axes, seen: Observability, plane: str = "xz", largest: float | None = None, sensors: bool = True
) -> Any:
    """Draw the robot with each hinge coloured by the standard deviation of its acceleration; crosses: undetermined.

    Parameters
    ----------
    ax
        Flat axes of matplotlib.
    seen : Observability
        Of one configuration.
    plane : str
        The two world axes of the drawing.
    largest : float, optional
        The end of the colour scale, which is logarithmic over three decades; the largest finite one if not given.
    sensors : bool
        Whether to mark the sensors too.

    Returns
    -------
    PathCollection
        The coloured hinges, for a colour bar.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import kfdyn as kf
    >>> seen = kf.observability(kf.models.double_pendulum(), [0.3, 0.4], [kf.sensors.Imu("lower", 0.01)])
    >>> draw_observability(plt.figure().gca(), seen).get_array().round(3).tolist()
    [0.1, 0.141]
    >>> plt.close()
    """
    from matplotlib.colors import LogNorm

    problem = seen.problem
    if problem.lead:
        raise ShapeError(f"a drawing is of one configuration, but the layout was looked at in {problem.lead}")
    system, q, rows = problem.system, problem.q[0], plane_axes(plane)
    draw_system(ax, system, q, plane, color=COLORS["pale"], linewidth=2.4)
    start, points = system.layout.v_start, skeleton(system, q).hinges[:, rows]
    of_hinge = np.array([np.max(seen.std("a")[start[k] : start[k + 1]], initial=0.0) for k in range(system.n_bodies)])
    moving, lost = np.diff(start) > 0, np.isinf(of_hinge)
    good = moving & ~lost
    top = largest or of_hinge[good].max(initial=1e-12)
    scale = LogNorm(1e-3 * top, top, clip=True)  # hinges of fingers and of trunks differ by orders
    y, z = points[good].T
    marks = ax.scatter(y, z, c=of_hinge[good], cmap="viridis_r", norm=scale, s=55, zorder=3, edgecolor="white")
    if lost.any():
        ax.plot(*points[lost].T, "x", color=COLORS["vermilion"], mew=2, zorder=4, label="undetermined")
    if sensors:
        draw_sensors(ax, system, q, problem.sensors, plane)
    ax.set_aspect("equal")
    ax.margins(0.15, 0.05)
    return marks
