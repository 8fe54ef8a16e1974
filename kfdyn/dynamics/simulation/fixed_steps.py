"""A motion marched with fixed steps: compiled where it can be, else step by step, until it leaves the numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.simulation.compiled_stepper import MARCH, TABLEAUX, March
from kfdyn.dynamics.simulation.driven import Driven
from kfdyn.dynamics.simulation.equation import Motion
from kfdyn.dynamics.simulation.integrators import Step, euler_step, implicit_step, rk4_step
from kfdyn.dynamics.simulation.symplectic.variational import symplectic_step
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import KfdynError

FIXED_STEP: dict[str, Callable[[Motion, float, float, Array, Array], Step]] = {
    "rk4": rk4_step,
    "symplectic": symplectic_step,
    "implicit": implicit_step,
    "euler": euler_step,
}
# rad/s or m/s beyond which a failing step is the integrator's doing, and where energies would soon overflow.
EXPLODED, OVERFLOW = 1e8, 1e100


def march(
    driven: Motion, q: Array, v: Array, times: Array, method: str, substeps: int, advance: Callable[[float], None]
) -> tuple[Array, Array, Array, Array | None]:
    """March with fixed steps, in compiled code where it knows the method and the system.

    q, v (nt, ...), work (nt, ...), and the driving torques if they are known. Motions that compiled code has no answer
    for go on step by step, which finds one, or the words.
    """
    lead, nt = q.shape[:-1], times.size
    if method not in TABLEAUX or MARCH.serving(driven.system) is None or isinstance(driven, Driven):
        return *step_by_step(driven, q, v, times, method, substeps, advance), None
    marching = March(driven, method, substeps, lead)
    if marching.is_known:
        marched = marching.in_blocks(q, v, times, advance)
        for row in np.flatnonzero(marched.reached < nt - 1):
            where = tuple(int(i) for i in np.unravel_index(row, lead)) if lead else ()
            i, alone = int(marched.reached[row]), driven.of_row(where, lead)
            rest = step_by_step(
                alone, marched.q[i, row], marched.v[i, row], times[i:], method, substeps, advance, where
            )
            marched.q[i:, row], marched.v[i:, row] = rest[:2]
            marched.work[i:, row] = marched.work[i, row] + rest[2]
        q_all, v_all, work = (x.reshape((nt, *lead, *x.shape[2:])) for x in marched[:3])
        return q_all, v_all, work, None
    marched, tau = marching.by_stages(q, v, times, advance)
    i = int(marched.reached)
    if i < nt - 1:
        rest = step_by_step(driven, marched.q[i], marched.v[i], times[i:], method, substeps, advance)
        marched.q[i:], marched.v[i:], marched.work[i:] = rest[0], rest[1], marched.work[i] + rest[2]
    return marched.q, marched.v, marched.work, tau


def step_by_step(
    driven: Motion,
    q: Array,
    v: Array,
    times: Array,
    method: str,
    substeps: int,
    advance: Callable[[float], None],
    where: tuple[int, ...] = (),
) -> tuple[Array, Array, Array]:
    """March with fixed steps of Python's; refuse to go on with what is no number. ``where`` is a motion of a batch."""
    step = own_way(driven.system, f"{method}_step") or FIXED_STEP[method]
    onto_loops = None if method == "symplectic" else own_way(driven.system, "back_onto_loops")  # it is on them
    lead = q.shape[:-1]
    q_all = np.empty((times.size, *q.shape))
    v_all = np.empty((times.size, *v.shape))
    work_all = np.zeros((times.size, *lead))
    q_all[0], v_all[0], work = q, v, np.zeros(lead)
    for i in range(1, times.size):
        start, h = float(times[i - 1]), float(times[i] - times[i - 1]) / substeps
        for j in range(substeps):
            t = start + j * h
            with np.errstate(over="ignore", invalid="ignore"):  # told below, with the time and a cure
                try:
                    q, v, done = step(driven.beginning(t), t, h, q, v)
                    if onto_loops is not None:
                        q, v = onto_loops(driven.damped(h) if method == "implicit" else driven.system, q, v)
                    q, v = driven.onto(t + h, q, v)
                except KfdynError as error:
                    if np.isfinite(v).all() and np.abs(v).max(initial=0.0) < EXPLODED:
                        error.args = (f"{error} (in the step at t = {t:.6g} s{motion_of(where)})", *error.args[1:])
                        raise
                    raise _exploded(driven, method, t, h, where) from error
            if not (np.isfinite(q).all() and np.abs(v).max(initial=0.0) < OVERFLOW):  # NaN is not less either
                raise _exploded(driven, method, t, h, where)
            work = work + done
        q_all[i], v_all[i], work_all[i] = q, v, work
        advance(float(times[i]))
    return q_all, v_all, work_all


def motion_of(where: tuple[int, ...]) -> str:
    """Name a motion of a batch; return nothing where there is one."""
    return f" of motion [{', '.join(map(str, where))}]" if where else ""


def _exploded(driven: Motion, method: str, t: float, h: float, where: tuple[int, ...]) -> KfdynError:
    cure = "take more substeps"
    if driven.damping.any() or driven.stiffness.any() or driven.system.elastic.any():
        cure += ", or method 'implicit', which is stable for stiff dampers, springs and modes"
    return KfdynError(
        f"the motion of system {driven.system.name!r} became infinite or NaN at t = {t:.6g} s{motion_of(where)}: "
        f"{method} is unstable with steps of {h:.3g} s; {cure}"
    )
