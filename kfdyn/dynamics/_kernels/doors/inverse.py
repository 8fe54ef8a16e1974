"""The door to inverse dynamics."""

from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.dynamics._kernels.fused.inverse import inverse_dynamics, inverse_room
from kfdyn.multibody._kernels.doors.arguments import (
    IN,
    LANES,
    ROWS,
    VECTORS,
    finite,
    fit,
    flat,
    rows_finite,
    sound,
)
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at

SIGNATURE = types.boolean(types.intp, IN, IN, IN, IN, IN, *ROWS, VECTORS)


@njit(**ORDERED_SWEEP)
def inverse(model, q, v, acceleration, forces, gravity, rows, block, counter, tau):
    """tau (rows nv,); arguments as in forward dynamics, and ``acceleration`` may be empty, too."""
    plan = plan_at(model)
    n, nq, nv = plan.n, plan.nq, plan.nv
    if not (q.size == rows * nq and v.size == tau.size == rows * nv and fit(forces, gravity, 6 * n, rows)):
        return False
    if acceleration.size != 0 and acceleration.size != tau.size:
        return False
    arrays = flat(q), flat(v), flat(acceleration), flat(forces), flat(gravity)
    q_all, v_all, a_all = pointer(arrays[0]), pointer(arrays[1]), pointer(arrays[2])
    f_all, g_all, pushed, falls = pointer(arrays[3]), pointer(arrays[4]), forces.size, gravity.size
    speeding = acceleration.size
    room, fine = borrow(model, inverse_room(plan, size(LANES, 1), pushed > 0)), True
    at = claim(counter, -1, block)
    while at < rows and fine:
        end = min(at + block, rows)
        fine = (
            sound(plan, q_all, at, end)
            and finite(v_all, at * nv, end * nv)
            and rows_finite(a_all, speeding, nv, at, end)
            and rows_finite(f_all, pushed, 6 * n, at, end)
            and rows_finite(g_all, falls, 3, at, end)
        )
        if fine:
            inverse_dynamics(
                LANES, plan, q_all, v_all, a_all, speeding > 0, f_all, pushed > 0, g_all, falls > 3, at, end,
                aligned(room), pointer(tau),
            )  # fmt: skip
            fine = finite(pointer(tau), at * nv, end * nv)
        at = claim(counter, at, block)
    give_back(model, room)
    keep(arrays)
    return fine
