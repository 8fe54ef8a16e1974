"""The door to the mass matrix."""

from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.dynamics._kernels.fused.mass_matrix import mass_matrix, mass_matrix_room
from kfdyn.multibody._kernels.doors.arguments import IN, LANES, MATRICES, ROWS, finite, flat, sound
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at

SIGNATURE = types.boolean(types.intp, IN, *ROWS, MATRICES)


@njit(**ORDERED_SWEEP)
def mass(model, q, rows, block, counter, out):
    """𝓜 (rows nv, nv)."""
    plan = plan_at(model)
    if not (q.size == rows * plan.nq and out.shape == (rows * plan.nv, plan.nv)):
        return False
    array = flat(q)
    q_all, room, fine = pointer(array), borrow(model, mass_matrix_room(plan, size(LANES, 1))), True
    at = claim(counter, -1, block)
    while at < rows and fine:
        end = min(at + block, rows)
        fine = sound(plan, q_all, at, end)
        if fine:
            mass_matrix(LANES, plan, q_all, at, end, aligned(room), pointer(out))
            fine = finite(pointer(out), at * plan.nv * plan.nv, end * plan.nv * plan.nv)
        at = claim(counter, at, block)
    give_back(model, room)
    keep(array)
    return fine
