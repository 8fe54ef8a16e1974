"""The door to the kinetic energy."""

from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.multibody._kernels.doors.arguments import IN, LANES, ROWS, VECTORS, finite, flat, sound
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at
from kfdyn.multibody._kernels.fused.energy import energy_room, kinetic_energy

SIGNATURE = types.boolean(types.intp, IN, IN, *ROWS, VECTORS)


@njit(**ORDERED_SWEEP)
def kinetic(model, q, v, rows, block, counter, out):
    """Kinetic energy (rows,)."""
    plan = plan_at(model)
    nv = plan.nv
    if not (q.size == rows * plan.nq and v.size == rows * nv and out.size == rows):
        return False
    arrays = flat(q), flat(v)
    q_all, v_all = pointer(arrays[0]), pointer(arrays[1])
    room, fine = borrow(model, energy_room(plan, size(LANES, 1))), True
    at = claim(counter, -1, block)
    while at < rows and fine:
        end = min(at + block, rows)
        fine = sound(plan, q_all, at, end) and finite(v_all, at * nv, end * nv)
        if fine:
            kinetic_energy(LANES, plan, q_all, v_all, at, end, aligned(room), pointer(out))
            fine = finite(pointer(out), at, end)
        at = claim(counter, at, block)
    give_back(model, room)
    keep(arrays)
    return fine
