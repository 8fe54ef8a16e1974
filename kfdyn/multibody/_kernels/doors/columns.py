"""The door to the Jacobian of a frame."""

import numpy as np
from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.multibody._kernels.doors.arguments import IN, LANES, ROWS, VECTORS, flat, sound
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at
from kfdyn.multibody._kernels.fused.jacobian import jacobian, jacobian_room, path_to

SIGNATURE = types.boolean(types.intp, types.intp, VECTORS, IN, *ROWS, VECTORS)


@njit(**ORDERED_SWEEP)
def columns(model, body, position, q, rows, block, counter, out):
    """J (rows 6 nv,) of the frame at ``position`` (3,) on ``body``."""
    plan = plan_at(model)
    if not (q.size == rows * plan.nq and position.size == 3 and out.size == rows * 6 * plan.nv):
        return False
    array, path = flat(q), np.empty(plan.n, np.int64)
    begin = path_to(plan, body, path)
    q_all, room, fine = pointer(array), borrow(model, jacobian_room(plan, size(LANES, 1))), True
    at = claim(counter, -1, block)
    while at < rows and fine:
        end = min(at + block, rows)
        fine = sound(plan, q_all, at, end)
        if fine:
            jacobian(LANES, plan, pointer(path), begin, pointer(position), q_all, at, end, aligned(room), pointer(out))
        at = claim(counter, at, block)
    give_back(model, room)
    keep((array, path))
    return fine
