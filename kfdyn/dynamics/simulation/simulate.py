"""simulate: march a system through time, and report what should not have changed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.simulation.adaptive import Solver, solve_adaptively
from kfdyn.dynamics.simulation.compiled_stepper import TABLEAUX
from kfdyn.dynamics.simulation.driven import Course
from kfdyn.dynamics.simulation.driven import driven as follow
from kfdyn.dynamics.simulation.equation import Law
from kfdyn.dynamics.simulation.fixed_steps import FIXED_STEP, march, motion_of
from kfdyn.dynamics.simulation.hinge_forces import HingeForces
from kfdyn.dynamics.simulation.motion_arguments import motion
from kfdyn.dynamics.simulation.trajectory import Trajectory
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System, kinetic_energy
from kfdyn.multibody import momentum as spatial_momentum
from kfdyn.multibody.calls.arguments import batch, checked, configuration, expect_one, expect_system
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid
from kfdyn.multibody.parts.body import as_floats

ADAPTIVE = get_args(Solver)


def simulate(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    t: ArrayLike,
    torque: Law | ArrayLike | None = None,
    *,
    method: str = "rk4",
    substeps: int = 1,
    damping: bool | ArrayLike = False,
    stiffness: bool | ArrayLike = False,
    rest: ArrayLike | None = None,
    stops: bool | ArrayLike = False,
    stop_damping: ArrayLike | None = None,
    friction: bool | ArrayLike = False,
    friction_speed: float = 0.01,
    effort: bool | ArrayLike = False,
    external_forces: Law | ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    courses: Mapping[str, Course] | None = None,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    progress: bool = False,
) -> Trajectory:
    """Simulate 𝓜 v̇ + c = τ − B v − K (q ⊖ rest) from a state, or from a batch of them.

    Parameters
    ----------
    system : System
        What moves.
    q, v : (..., nq), (..., nv)
        State at t[0]; leading axes broadcast and are so many motions at once (fixed-step methods only).
    t : (nt,)
        Increasing times at which the motion is wanted.
    torque : callable(t, q, v), LinearFeedback, array (..., nv) or None
        Driving generalised force; an array is constant in time. The callable gets the whole batch, once at every
        stage of a step. A :class:`kfdyn.LinearFeedback` is a law, or a sequence of samples, that the loop over steps
        knows.
    method : str
        Fixed step: "rk4" (order 4), "symplectic" (order 2, energy error bounded, momentum kept), "implicit"
        (order 1, damping and springs implicit as measurement noise, stable for stiff dampers), "euler" (order 1,
        semi-implicit). Adaptive, by scipy: "RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA".
    substeps : int
        Fixed steps between two times of ``t``.
    damping, stiffness : bool, scalar or (nv,)
        B and K of the hinges: True takes ``system.damping``, ``system.stiffness``; False, none.
    rest : (nq,), optional
        Where the springs are slack; ``system.neutral()`` if not given.
    stops : bool, scalar or (nv,)
        Springs with dampers that push where q is beyond ``system.lower`` or ``system.upper``: their stiffness, or True
        for I/(0.01 s)² with I the inertia that the coordinate feels at ``system.neutral()``, 1/(𝓜⁻¹)_jj; False, none.
    stop_damping : scalar or (nv,), optional
        Damping of the stops; critical for I if not given, 2 √(k I).
    friction : bool, scalar or (nv,)
        Coulomb friction μ of the hinges, regularised: −μ tanh(v/v₀). True takes ``system.friction``; False, none.
    friction_speed : float
        v₀ in rad/s or m/s. A hinge that should stick creeps at a part of it.
    effort : bool, scalar or (nv,)
        Clip the driving torque: True at ±``system.effort``; False, not at all.
    external_forces : callable(t, q, v), array (..., n_bodies, 6) or None
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.
    courses : dict of str to callable(t), optional
        Hinges that are driven as a function of time, which gives position, rate and acceleration of the hinge, as
        many numbers as it has in q, v and v; their entries in ``q`` and ``v`` are not read, and ``tau`` tells what it
        took. For trees and "rk4" only.
    rtol, atol : float
        Tolerances of the adaptive solvers.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Trajectory
        ``t, q, v, tau, kinetic, potential, work, momentum``, and ``energy``, ``energy_drift``, ``report()``.

    Notes
    -----
    With loops, positions and velocities are brought back onto them after every step, by the shortest way in the
    metric 𝓜 ("rk4", "implicit", "euler"), or are on them by construction ("symplectic", there RATTLE, which knows no
    non-holonomic loops); a contact without an anchor is anchored where the motion begins.

    Fixed steps of a tree, with or without couplings ("rk4", "euler", "implicit"), are one compiled loop over steps and
    motions; where a torque or a force is a function of Python's, that is called once at every stage and nothing else is
    Python. The work of "euler" and "implicit" is that of the torques asked for at the beginning of a step.

    Limits of q and effort, Coulomb friction, damping and springs of the system are ignored unless asked for; limits of
    v, actuators and contacts are not modelled. Stops, friction and clipping are explicit in every method but
    "symplectic", and are put together by Python at every stage; a step that is too long for them is warned of. Their
    work is in ``work``, that of springs of the stops included; ``tau`` is what the motors gave.

    O(N) per step and motion: one forward dynamics for "euler" and "implicit", four for "rk4". A step of "symplectic"
    solves its implicit equations by some ten evaluations of momenta, forces and 𝓜⁻¹: it takes as long as some ten
    steps by "rk4" for one motion, some five in a batch of a hundred; several times as long under a law, with couplings,
    loops or stiff dampers, where Python puts the evaluations together. Source: THEORY section 6; R86 section 12
    (numerical studies).

    Examples
    --------
    >>> from kfdyn.multibody.models import double_pendulum
    >>> swing = simulate(double_pendulum(), [1.0, 0.5], [0.0, 0.0], np.linspace(0, 2, 201))
    >>> swing.q.shape, swing.worst_energy_drift < 1e-5
    ((201, 2), True)
    """
    expect_system(system)
    times = _increasing(t)
    if method not in FIXED_STEP and method not in ADAPTIVE:
        known = ", ".join([*FIXED_STEP, *ADAPTIVE])
        raise ModelError(f"there is no method {method!r} to simulate with; take one of {known}")
    if not isinstance(substeps, int | np.integer) or substeps < 1:
        raise ModelError(f"substeps must be a whole number of at least 1, got {substeps!r}")
    for what, asked in (("stops", stops), ("friction", friction), ("courses", courses or False)):
        if not (isinstance(asked, bool | np.bool_) and not asked):
            expect_one(system, f"simulate with {what}")
    if method not in TABLEAUX:
        expect_one(system, f"simulate by {method!r}")
    if method == "symplectic":
        expect_rigid(system, method, "take rk4, implicit, euler or a solver of scipy's")
    if method in ADAPTIVE:
        expect_no_loops(system, method, "a solver of scipy's would leave them; take rk4, implicit or euler")
    lead, (q_flat, v_flat) = batch(
        system, q=(configuration(system, q), 1), v=(checked(system, v, (system.nv,), "v"), 1)
    )
    q0, v0 = q_flat.reshape((*lead, system.nq)), v_flat.reshape((*lead, system.nv))
    onto_loops = own_way(system, "onto_loops")
    if onto_loops is not None:
        system, q0, v0 = onto_loops(system, q0, v0)
    driven = motion(
        system, torque, damping, stiffness, rest, external_forces, gravity, stops=stops, stop_damping=stop_damping,
        friction=friction, friction_speed=friction_speed, effort=effort,
    )  # fmt: skip
    if driven.hinges is not None and method in ("rk4", "euler", "implicit") and q0.size:
        _warn_of_long_steps(driven.hinges, q0.reshape(-1, system.nq)[0], times, substeps)
    if courses:
        if method != "rk4":
            raise ModelError(f"hinges are driven by method 'rk4' alone, got {method!r}")
        driven = follow(driven, courses, float(times[0]))
        q0, v0 = driven.onto(float(times[0]), q0, v0)
    tau = None
    with _bar(progress, times, f"{system.name} by {method}") as advance:
        if method in FIXED_STEP:
            q_all, v_all, work, tau = march(driven, q0, v0, times, method, int(substeps), advance)
            steps = (times.size - 1) * int(substeps)
        elif lead:
            raise ShapeError(
                f"{method} simulates one motion, but q and v have leading axes {lead}: each would want its own "
                f"step; call it for one at a time, or take one of {', '.join(FIXED_STEP)}"
            )
        else:
            if not (rtol > 0 and atol > 0):
                raise ModelError(f"rtol and atol must be positive, got rtol = {rtol}, atol = {atol}")
            solver = cast(Solver, method)
            q_all, v_all, work, steps = solve_adaptively(driven, q0, v0, times, solver, rtol, atol, advance)
    trajectory = Trajectory(
        system=system,
        t=times,
        q=q_all,
        v=v_all,
        tau=driven.driving_along(times, q_all, v_all) if tau is None else tau,
        kinetic=kinetic_energy(system, q_all, v_all),
        potential=driven.potential(q_all),
        work=work,
        momentum=spatial_momentum(system, q_all, v_all),
        method=method,
        steps=steps,
    )
    _warn_of_energy_from_nowhere(trajectory)
    return trajectory


def _warn_of_long_steps(hinges: HingeForces, q: Array, times: Array, substeps: int) -> None:
    """Say that steps are too long for the stops or the friction of a hinge, and how many would do."""
    h = float(np.diff(times).max(initial=0.0)) / substeps
    parts, dof = hinges.substeps(q, h)
    if parts > 1:
        warnings.warn(
            f"steps of {h:.3g} s are too long for the stop or the friction at dof {dof} of system "
            f"{hinges.system.name!r}, which would chatter; take substeps={parts * substeps}, a softer stop, a larger "
            "friction_speed, or method 'symplectic' or 'Radau'",
            RuntimeWarning,
            stacklevel=3,
        )


# Kinetic energy above so many times all that a motion ever had is the integrator's doing: 2 would do in exact numbers.
FROM_NOWHERE = 10.0


def _warn_of_energy_from_nowhere(found: Trajectory) -> None:
    """Say that a motion is none whose kinetic energy neither it, gravity, springs nor anybody's work accounts for."""
    had = found.kinetic[0] + np.abs(found.potential).max(axis=0) + np.maximum(found.work, 0.0).max(axis=0)
    reached = found.kinetic.max(axis=0)
    wrong = np.argwhere(reached > FROM_NOWHERE * had)
    if len(wrong):
        where = tuple(int(i) for i in wrong[0])
        step = (found.t[-1] - found.t[0]) / max(found.steps, 1)
        warnings.warn(
            f"the motion of system {found.system.name!r}{motion_of(where)} is none: its kinetic energy reaches "
            f"{reached[where]:.2g} J where {had[where]:.2g} J is all that it had or was given; {found.method} is "
            f"unstable with steps of some {step:.3g} s; take more substeps",
            RuntimeWarning,
            stacklevel=3,
        )


def _increasing(t: ArrayLike) -> Array:
    times = as_floats(t, "t")
    if times.ndim != 1 or times.size == 0:
        raise ShapeError(f"t must have shape (nt,), nt >= 1, got {times.shape}")
    if not np.isfinite(times).all():
        raise ModelError("t has entries that are not finite")
    back = np.flatnonzero(np.diff(times) <= 0)
    if back.size:
        i = int(back[0])
        raise ModelError(f"t must increase, but t[{i}] = {times[i]:.6g} is followed by t[{i + 1}] = {times[i + 1]:.6g}")
    return times.copy()


@contextmanager
def _bar(show: bool, times: Array, what: str) -> Iterator[Callable[[float], None]]:
    """Yield a function of the time reached; with ``show`` it moves a bar."""
    if not show:
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task(what, total=float(times[-1] - times[0]))
        yield lambda now: bar.update(task, completed=now - float(times[0]))
