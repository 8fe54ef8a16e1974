"""Figures: covariance and inertia ellipsoids, systems as skeletons. matplotlib is imported when something is drawn.

Parameters
----------
ax : matplotlib.axes.Axes
    Axes, flat or with ``projection="3d"``.
system : System
    The robot.
q : (nq,)
    One configuration.
"""

from kfdyn.viz.animation import animate
from kfdyn.viz.ellipsoids import draw_ellipse, draw_ellipsoid, ellipse_points, ellipsoid_points
from kfdyn.viz.fit_figures import plot_fit
from kfdyn.viz.inertias import draw_inertias
from kfdyn.viz.sensors import draw_observability, draw_sensors
from kfdyn.viz.skeleton import draw_system, skeleton
from kfdyn.viz.style import COLORS, STYLE

__all__ = [
    "COLORS",
    "STYLE",
    "animate",
    "draw_ellipse",
    "draw_ellipsoid",
    "draw_inertias",
    "draw_observability",
    "draw_sensors",
    "draw_system",
    "ellipse_points",
    "ellipsoid_points",
    "plot_fit",
    "skeleton",
]
