"""The door to the inverse of the mass matrix."""

import numpy as np
from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.dynamics._kernels.fused.mass_matrix_inverse import mass_matrix_inverse, mass_matrix_inverse_room
from kfdyn.multibody._kernels.doors.arguments import IN, LANES, MATRICES, ROWS, finite, flat, sound
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at

SIGNATURE = types.boolean(types.intp, IN, *ROWS, MATRICES)


@njit(**ORDERED_SWEEP)
def mass_inverse(model, q, rows, block, counter, out):
    """𝓜⁻¹ (rows nv, nv); NaN as in forward dynamics."""
    plan = plan_at(model)
    nv = plan.nv
    if not (q.size == rows * plan.nq and out.shape == (rows * nv, nv)):
        return False
    array = flat(q)
    q_all, room, fine = pointer(array), borrow(model, mass_matrix_inverse_room(plan, size(LANES, 1))), True
    at = claim(counter, -1, block)
    while at < rows:
        end = min(at + block, rows)
        if sound(plan, q_all, at, end):
            fine &= mass_matrix_inverse(LANES, plan, q_all, at, end, aligned(room), pointer(out))
            fine &= finite(pointer(out), at * nv * nv, end * nv * nv)
        else:
            out[at * nv : end * nv] = np.nan
            fine = False
        at = claim(counter, at, block)
    give_back(model, room)
    keep(array)
    return fine
