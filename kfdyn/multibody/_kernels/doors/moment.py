"""The door to the mass centre."""

from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.multibody._kernels.doors.arguments import IN, LANES, ROWS, VECTORS, finite, flat, sound
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at
from kfdyn.multibody._kernels.fused.energy import energy_room, mass_moment

SIGNATURE = types.boolean(types.intp, IN, *ROWS, VECTORS)


@njit(**ORDERED_SWEEP)
def moment(model, q, rows, block, counter, out):
    """Mass centre times mass (rows 3,)."""
    plan = plan_at(model)
    if not (q.size == rows * plan.nq and out.size == 3 * rows):
        return False
    array = flat(q)
    q_all, room, fine = pointer(array), borrow(model, energy_room(plan, size(LANES, 1))), True
    at = claim(counter, -1, block)
    while at < rows and fine:
        end = min(at + block, rows)
        fine = sound(plan, q_all, at, end)
        if fine:
            mass_moment(LANES, plan, q_all, at, end, aligned(room), pointer(out))
            fine = finite(pointer(out), 3 * at, 3 * end)
        at = claim(counter, at, block)
    give_back(model, room)
    keep(array)
    return fine
