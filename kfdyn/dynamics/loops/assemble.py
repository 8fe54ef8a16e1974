"""Bring a state onto loops: Gauss–Newton in the metric 𝓜, an impact, and the projection after every step of a march."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.loops.cut_joint import Cut
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody import System, frame_pose, integrate
from kfdyn.multibody.calls.arguments import expect_finite
from kfdyn.multibody.kinds import expect_loops
from kfdyn.multibody.loops.closure import (
    CLOSED,
    LEFT_OPEN,
    close_loops,
    gap_units,
    loop_slices,
    plain_step,
    warn_left_open,
    worst_gap,
)
from kfdyn.multibody.loops.loop import Loop


class Impact(NamedTuple):
    """Velocities after a blow, (..., nv), and the impulses of each loop's rows, (..., r), as they act on frame_b.

    Examples
    --------
    >>> import kfdyn as kf
    >>> wall = kf.models.pendulum(length=1.0).with_loops([kf.Loop(None, "bob", rows=(1,))])
    >>> kf.impact(wall, [0.2], [3.0]).v
    array([0.])
    """

    v: Array
    impulses: list[Array]


def assemble(system: System, q_guess: ArrayLike, tolerance: float = CLOSED) -> Array:
    """Close the loops of a system from a guess, with steps that are shortest in the metric of its mass matrix.

    ::

        q ← q ⊖ 𝓜⁻¹J*Ω⁺ gap(q),     Ω = J𝓜⁻¹J*          halved until the gap shrinks

    Parameters
    ----------
    system : System
        With loops. Those that hold rates alone are left as they are.
    q_guess : (..., nq)
        Where to begin; which branch of a linkage is reached depends on it.
    tolerance : float
        Largest gap, in metres and radians, that counts as closed; a mechanism smaller than a metre is measured by its
        size.

    Returns
    -------
    (..., nq) array
        On the loops.

    Raises
    ------
    ModelError
        If the loops do not close from there; with the loop and its residual.

    Warns
    -----
    UserWarning
        If dependent rows differ by the digits that lengths and axes were written with, up to 1e-6 of a radian or of the
        mechanism's size: then all that can be closed is, and the gap that is left is told.

    Notes
    -----
    Where the mass matrix is singular the steps are shortest in plain coordinates. Where bodies bend the metric is
    𝓜 + K, so that hinges close the loops, and modes as far as their stiffness lets them. Source: THEORY section 12.

    Examples
    --------
    The tip of a double pendulum is put a metre to the side:

    >>> import kfdyn as kf
    >>> frames = {"tip": kf.Frame("lower", position=[0, 0, -1.0])}
    >>> arm = kf.System(kf.models.double_pendulum().bodies, frames=frames)
    >>> held = arm.with_loops([kf.Loop("tip", None, rows="point", anchor=[-1.0, 0.0, 0.0])])
    >>> q = kf.assemble(held, [0.3, 0.8])
    >>> kf.frame_pose(held, q, "tip").position.round(9) + 0.0, np.rad2deg(q).round(6)
    (array([-1.,  0.,  0.]), array([ 30., 120.]))
    """
    states = States.of(system, q_guess)
    system = system.stiffened

    plain = plain_step(system)

    def step(q: Array, gap: Array) -> tuple[Array, Array]:
        try:
            cut = Cut(system, q[None], positions_only=True)
            move = -cut.response(cut.solve(gap[None])[0])[0]
            return move, cut.reached(gap[None])[0]
        except SingularError:
            return plain(q, gap)

    closed = np.array([close_loops(system, q, step, tolerance) for q in states["q"]]).reshape(states.size, system.nq)
    warn_left_open(system, closed, tolerance)
    return closed.reshape(*states.lead, system.nq)


def impact(system: System, q: ArrayLike, v: ArrayLike, restitution: ArrayLike = 0.0) -> Impact:
    """Velocities after loops close or contacts are made at once: the cut joint's equations on velocities.

    ::

        p = −(1 + e) Ω⁺ J v,     v⁺ = v + 𝓜⁻¹J*p,     J v⁺ = −e J v,     Ω = J𝓜⁻¹J*

    Parameters
    ----------
    system : System
        With the loops or contacts that are struck.
    q, v : (..., nq), (..., nv)
        State before; v None is at rest.
    restitution : scalar or (...)
        Coefficient e, 0 (nothing rebounds) to 1 (no energy is lost).

    Returns
    -------
    Impact
        ``v`` after, and ``impulses`` loop by loop.

    Notes
    -----
    O(N + r³). With e = 0 it is the projection of v on the loops that is shortest in the metric 𝓜, and loses the
    kinetic energy of what was taken away (Carnot). All rows rebound: there is no friction. Source: THEORY section 12.

    Examples
    --------
    A pendulum that hits a wall comes back half as fast:

    >>> import kfdyn as kf
    >>> wall = kf.models.pendulum(length=1.0).with_loops([kf.Loop(None, "bob", rows=(1,))])
    >>> kf.impact(wall, [0.2], [3.0], restitution=0.5).v
    array([-1.5])
    """
    expect_loops(system)
    states = States.of(system, q, np.zeros(system.nv) if v is None else v)
    e = np.broadcast_to(np.asarray(restitution, float), states.lead).reshape(-1, 1)
    if not ((e >= 0) & (e <= 1)).all():
        raise ModelError(f"restitution must be from 0 to 1, got {restitution!r:.60}")
    cut = Cut(system, states["q"], states["v"])
    now, wanted = states["v"], -e * cut.of_rates(states["v"])
    p = np.zeros_like(wanted)
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        for _ in range(2):  # once more for what rounding left
            missing = expect_finite(system, wanted - cut.of_rates(now), "the velocity across the loops", q=q, v=v)
            more = cut.solve(missing)[0]
            p, now = p + more, now + cut.response(more)
    for made, what in ((p, "the impulse"), (now, "the velocity after the impact")):
        expect_finite(system, made, what, q=q, v=v)
    lead = states.lead
    impulses = [p[:, own].reshape(*lead, own.stop - own.start) for own in loop_slices(system)]
    return Impact(now.reshape(*lead, system.nv), impulses)


def project(system: System, q: Array, v: Array) -> tuple[Array, Array]:
    """Positions (B, nq) near the loops and velocities (B, nv) moved onto them; a few steps, all states at once.

    Ω is taken once, where the states are: they are so near that each step divides the gap by its square root.
    """
    cut, unit, last = Cut(system, q, v), gap_units(system, q), np.inf
    for _ in range(12):
        gap = cut.gap()
        size = whole = float(np.abs(gap / unit).max(initial=0.0))
        if size <= 0.1 * CLOSED:
            break
        f = cut.solve(gap)[0]
        if whole <= LEFT_OPEN:  # what else is open is not to be closed
            size = float(np.abs(cut.reached(gap) / unit).max(initial=0.0))
        if size <= 0.1 * CLOSED or (size >= 0.5 * last and size <= 100 * CLOSED):
            break
        if not size < last:
            name, off = worst_gap(system, q)
            raise ModelError(
                f"loop {name} opened by {off:.3g} in one step and does not close again; take shorter steps"
            )
        last = size
        q = integrate(cut.base, q, -cut.response(f))
        cut.move(q, v)
    for _ in range(2):
        v = v - cut.response(cut.solve(cut.of_rates(v))[0])
        if last == np.inf or last < 1e-4:
            break
    return q, v


def onto_loops(system: System, q: Array, v: Array) -> tuple[System, Array, Array]:
    """The system with its contacts anchored at q (..., nq), and the state moved onto the loops, if it is near them."""
    flat_q, flat_v = q.reshape(-1, system.nq), v.reshape(-1, system.nv)
    where = flat_q if q.ndim > 1 else q
    loops = tuple(_anchored(system, loop, where) for loop in system.loops)
    held = system.without_loops.with_loops(loops)
    cut, unit = Cut(held, flat_q, flat_v), gap_units(held, flat_q)
    if (np.abs(cut.gap()) > LEFT_OPEN * unit).any():
        name, off = worst_gap(held, flat_q)
        raise ModelError(
            f"loop {name} is open by {off:.3g} (m or rad) where the motion is to begin; close it first: "
            "q = kf.assemble(system, q)"
        )
    rates, made_of = np.abs(cut.of_rates(flat_v)), (np.abs(cut.J) @ np.abs(flat_v)[..., None])[..., 0]
    if (rates > LEFT_OPEN * (unit + made_of)).any():
        raise ModelError(
            f"the velocities where the motion is to begin open the loops at {rates.max():.3g} (m/s or rad/s); bring "
            "them onto the loops first: v = kf.impact(system, q, v).v"
        )
    q, v = back_onto_loops(held, q, v)
    warn_left_open(held, q.reshape(-1, system.nq), level=4)
    return held, q, v


def back_onto_loops(system: System, q: Array, v: Array) -> tuple[Array, Array]:
    """Positions and velocities (...) of a state near the loops, on them."""
    if not np.isfinite(q).all() or not np.isfinite(v).all():
        return q, v  # told by the march
    size = math.prod(q.shape[:-1])
    q_new, v_new = project(system, q.reshape(size, system.nq), v.reshape(size, system.nv))
    return q_new.reshape(q.shape), v_new.reshape(v.shape)


def _anchored(system: System, loop: Loop, q: Array) -> Loop:
    """A contact that holds rates alone, with an anchor where q puts it, if its rows are rates of positions at all."""
    if loop.holds_positions or not integrable(loop):
        return loop
    name = loop.frame_a or loop.frame_b
    assert name is not None
    pose = frame_pose(system, q, name)
    rotation = (
        pose.rotation if loop.frame_a is not None or loop.angular else np.broadcast_to(np.eye(3), pose.rotation.shape)
    )
    return loop.anchored(rotation, pose.position)


def integrable(loop: Loop) -> bool:
    """Tell whether the rates that a contact with the world holds are rates of positions.

    All three rows of a kind are. Some linear rows along axes that turn with the frame are not (a skate, a wheel); along
    the world's axes they are. One or two angular rows never are.
    """
    if loop.rolling is not None:
        return False
    linear = len(loop.rows) - len(loop.angular)
    if len(loop.angular) not in (0, 3):
        return False
    return linear in (0, 3) or (loop.frame_a is None and not loop.angular)
