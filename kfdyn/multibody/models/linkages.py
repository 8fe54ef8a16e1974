"""Mechanisms with loops: four-bar, slider–crank, Peaucellier's linkage, a row of four-bars."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.loops.loop import Loop
from kfdyn.multibody.parts.body import Body, Frame
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.system import System
from kfdyn.spatial import spatial_inertia


def rod(length: float, mass: float) -> Array:
    """Inertia of a thin rod along x from its hinge, with a little thickness so that it may turn about itself."""
    J = mass * length**2 / 12
    return spatial_inertia(mass, [length / 2, 0, 0], np.diag([1e-3 * J, J, J]))


def four_bar(
    ground: float = 2.0, crank: float = 1.0, coupler: float = 2.2, rocker: float = 1.6, density: float = 1.0
) -> System:
    """Four-bar linkage in the x-z plane: crank and rocker on the ground, a coupler between, closed at a point.

    q is the angles of crank, coupler (against the crank) and rocker about −y: zero is along x, positive is upwards.
    The point is closed in space, in three rows of which two are independent.

    Parameters
    ----------
    ground, crank, coupler, rocker : float
        Lengths; the rocker's pivot is at (ground, 0, 0).
    density : float
        Mass per length of the bars.

    Returns
    -------
    System
        3 bodies, 3 hinges, one loop, one degree of freedom.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> linkage = four_bar()
    >>> q = kf.assemble(linkage, four_bar_configuration(0.4))
    >>> ends = [kf.frame_pose(linkage, q, name).position for name in ("coupler_end", "rocker_end")]
    >>> bool(np.abs(ends[0] - ends[1]).max() < 1e-10)
    True
    """
    down = (0.0, -1.0, 0.0)
    bodies = [
        Body("crank", rod(crank, density * crank), Hinge.revolute(down)),
        Body("coupler", rod(coupler, density * coupler), Hinge.revolute(down), "crank", position=[crank, 0, 0]),
        Body("rocker", rod(rocker, density * rocker), Hinge.revolute(down), position=[ground, 0, 0]),
    ]
    frames = {
        "coupler_end": Frame("coupler", position=[coupler, 0, 0]),
        "rocker_end": Frame("rocker", position=[rocker, 0, 0]),
    }
    loop = Loop("rocker_end", "coupler_end", rows="point", name="coupler to rocker")
    return System(bodies, frames=frames, name="four_bar", loops=[loop])


def four_bar_configuration(
    angle: float,
    ground: float = 2.0,
    crank: float = 1.0,
    coupler: float = 2.2,
    rocker: float = 1.6,
    crossed: bool = False,
) -> Array:
    """The closed q (3,) of a four-bar linkage for an angle of its crank, by plane geometry (Freudenstein).

    Parameters
    ----------
    angle : float
        Of the crank.
    ground, crank, coupler, rocker : float
        Lengths, as for :func:`four_bar`.
    crossed : bool
        The other branch.

    Returns
    -------
    (3,) array

    Examples
    --------
    >>> four_bar_configuration(0.0, ground=1.0, crank=1.0, coupler=1.0, rocker=1.0, crossed=True).round(6) + 0.0
    array([0., 0., 0.])
    """
    tip = crank * np.array([np.cos(angle), np.sin(angle)])
    d = np.array([ground, 0.0]) - tip
    reach = float(np.hypot(*d))
    cosine = (reach**2 + coupler**2 - rocker**2) / (2 * reach * coupler) if reach else 2.0
    if reach == 0 and np.isclose(coupler, rocker):
        cosine = 1.0
    if abs(cosine) > 1 + 1e-12:
        raise ModelError(f"a four-bar linkage of these lengths does not close at the crank angle {angle:.6g}")
    inner = np.arccos(np.clip(cosine, -1, 1)) * (-1 if crossed else 1)
    along = np.arctan2(d[1], d[0]) + inner
    end = tip + coupler * np.array([np.cos(along), np.sin(along)])
    rest = end - np.array([ground, 0.0])
    return np.array([angle, along - angle, np.arctan2(rest[1], rest[0])])


def slider_crank(crank: float = 1.0, coupler: float = 2.5, slider_mass: float = 2.0, density: float = 1.0) -> System:
    """Slider and crank in the x-z plane: crank and coupler about −y, a block that slides along x, a pin between.

    q is the angles of crank and coupler (against the crank), the pin's angle and the block's place x. The block
    carries the pin, so that the loop closes a pose: six rows, of which three are independent.

    Parameters
    ----------
    crank, coupler : float
        Lengths.
    slider_mass, density : float
        Mass of the block, and per length of the bars.

    Returns
    -------
    System
        4 bodies, one loop, one degree of freedom.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> engine = slider_crank()
    >>> q = kf.assemble(engine, [0.0, 0.1, -0.1, 3.4])
    >>> np.isclose(q[3], np.cos(q[0]) + np.sqrt(2.5**2 - np.sin(q[0]) ** 2))
    np.True_
    """
    down = (0.0, -1.0, 0.0)
    block = spatial_inertia(slider_mass, np.zeros(3), 0.1 * slider_mass * np.eye(3))
    bodies = [
        Body("crank", rod(crank, density * crank), Hinge.revolute(down)),
        Body("coupler", rod(coupler, density * coupler), Hinge.revolute(down), "crank", position=[crank, 0, 0]),
        # a trace of inertia keeps the mass matrix of the open tree regular
        Body("pin", 1e-3 * np.eye(6), Hinge.revolute(down), "slider"),
        Body("slider", block, Hinge.prismatic([1, 0, 0])),
    ]
    frames = {"coupler_end": Frame("coupler", position=[coupler, 0, 0])}
    loop = Loop("pin", "coupler_end", rows="pose", name="coupler to slider")
    return System(bodies, frames=frames, name="slider_crank", loops=[loop])


def peaucellier(arm: float = 3.0, side: float = 1.2, crank: float = 1.1, density: float = 1.0) -> System:
    """Peaucellier's linkage in the x-z plane, which turns a circle into a straight line.

    Two arms from the origin end in opposite corners of a rhombus; one of its other corners is on a crank about
    (crank, 0, 0), whose circle goes through the origin, and the last one, frame "pen", moves along a line x = const.

    Parameters
    ----------
    arm, side, crank : float
        Lengths of the two arms, of the rhombus' four sides, and of the crank.
    density : float
        Mass per length.

    Returns
    -------
    System
        7 bars, 3 loops at points, one degree of freedom.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> linkage = peaucellier()
    >>> q = kf.assemble(linkage, peaucellier_configuration(0.3))
    >>> np.isclose(kf.frame_pose(linkage, q, "pen").position[0], (3.0**2 - 1.2**2) / 2.2)
    np.True_
    """
    down = (0.0, -1.0, 0.0)

    def bar(name: str, length: float, parent: str | None = None, at: float = 0.0) -> Body:
        return Body(name, rod(length, density * length), Hinge.revolute(down), parent, position=[at, 0, 0])

    bodies = [
        bar("upper_arm", arm),
        bar("lower_arm", arm),
        bar("crank", crank, at=crank),
        bar("upper_in", side, "upper_arm", arm),
        bar("lower_in", side, "lower_arm", arm),
        bar("upper_out", side, "upper_arm", arm),
        bar("lower_out", side, "lower_arm", arm),
    ]
    lengths = {"crank": crank} | {f"{h}_{k}": side for h in ("upper", "lower") for k in ("in", "out")}
    frames = {f"{name}_end": Frame(name, position=[length, 0, 0]) for name, length in lengths.items()}
    frames["pen"] = frames["upper_out_end"]
    loops = [
        Loop("crank_end", "upper_in_end", rows="point", name="inner corner, upper"),
        Loop("crank_end", "lower_in_end", rows="point", name="inner corner, lower"),
        Loop("upper_out_end", "lower_out_end", rows="point", name="pen"),
    ]
    return System(bodies, frames=frames, name="peaucellier", loops=loops)


def peaucellier_configuration(angle: float, arm: float = 3.0, side: float = 1.2, crank: float = 1.1) -> Array:
    """The closed q (7,) of Peaucellier's linkage for an angle of its crank, by plane geometry.

    Parameters
    ----------
    angle : float
        Of the crank about (crank, 0, 0).
    arm, side, crank : float
        Lengths, as for :func:`peaucellier`.

    Returns
    -------
    (7,) array

    Examples
    --------
    >>> peaucellier_configuration(0.0).shape
    (7,)
    """
    inner = np.array([crank + crank * np.cos(angle), crank * np.sin(angle)])
    r = float(np.hypot(*inner))
    direction = np.arctan2(inner[1], inner[0])
    # corners of the rhombus lie on both sides of the line from the origin through its other corners
    cosine = (arm**2 + r**2 - side**2) / (2 * arm * r)
    if abs(cosine) > 1:
        raise ModelError(f"Peaucellier's linkage does not close at the crank angle {angle:.6g}")
    half = float(np.arccos(cosine))
    pen = (arm**2 - side**2) / r * np.array([np.cos(direction), np.sin(direction)])
    q = np.zeros(7)
    q[:3] = direction + half, direction - half, angle
    for i, a in enumerate(q[:2]):
        corner = arm * np.array([np.cos(a), np.sin(a)])
        for k, target in ((3 + i, inner), (5 + i, pen)):
            to = target - corner
            q[k] = np.arctan2(to[1], to[0]) - a
    return q


def four_bar_chain(n: int, density: float = 1.0) -> System:
    """A row of n parallelogram four-bars, each on the coupler of the one before: many local loops.

    Parameters
    ----------
    n : int
        Number of linkages.
    density : float
        Mass per length of the bars.

    Returns
    -------
    System
        3 n bodies and hinges, n loops, n degrees of freedom.

    Examples
    --------
    >>> four_bar_chain(2).nv
    6
    """
    if n < 1:
        raise ModelError(f"four_bar_chain needs at least one linkage, got {n}")
    down = (0.0, -1.0, 0.0)
    bodies, frames, loops = [], {}, []
    carrier: str | None = None
    for i in range(n):
        bodies += [
            Body(f"left_{i}", rod(1.0, density), Hinge.revolute(down), carrier),
            Body(f"top_{i}", rod(0.8, 0.8 * density), Hinge.revolute(down), f"left_{i}", position=[1.0, 0, 0]),
            Body(f"right_{i}", rod(1.0, density), Hinge.revolute(down), carrier, position=[0.8, 0, 0]),
        ]
        frames[f"top_end_{i}"] = Frame(f"top_{i}", position=[0.8, 0, 0])
        frames[f"right_end_{i}"] = Frame(f"right_{i}", position=[1.0, 0, 0])
        loops.append(Loop(f"right_end_{i}", f"top_end_{i}", rows="point", name=f"linkage {i}"))
        carrier = f"top_{i}"
    return System(bodies, frames=frames, name=f"four_bar_chain({n})", loops=loops)
