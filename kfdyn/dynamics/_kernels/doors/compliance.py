"""The door to the operational space compliance."""

import numpy as np
from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.dynamics._kernels.fused.compliance import compliance_room, operational_space_compliance, place_frames
from kfdyn.multibody._kernels.doors.arguments import IN, INDICES, LANES, MATRICES, ROWS, VECTORS, finite, flat, sound
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at

SIGNATURE = types.boolean(types.intp, INDICES, VECTORS, IN, *ROWS, MATRICES)


@njit(**ORDERED_SWEEP)
def compliance(model, bodies, positions, q, rows, block, counter, out):
    """Ω (rows 6 k, 6 k) of frames at ``positions`` (3 k,) on ``bodies`` (k,)."""
    plan, k = plan_at(model), bodies.size
    if not (q.size == rows * plan.nq and positions.size == 3 * k and out.shape == (rows * 6 * k, 6 * k)):
        return False
    place, arms, rank = np.empty(k, np.int64), np.empty(3 * k), np.zeros(plan.n + 1, np.int64)
    kept = place_frames(plan, bodies, positions, place, arms, rank)
    array = flat(q)
    q_all, room, fine = pointer(array), borrow(model, compliance_room(plan, size(LANES, 1), k, kept)), True
    at = claim(counter, -1, block)
    while at < rows and fine:
        end = min(at + block, rows)
        fine = sound(plan, q_all, at, end) and operational_space_compliance(
            LANES, plan, k, pointer(place), pointer(arms), kept, pointer(rank), q_all, at, end, aligned(room),
            pointer(out),
        ) and finite(pointer(out), at * 36 * k * k, end * 36 * k * k)  # fmt: skip
        at = claim(counter, at, block)
    give_back(model, room)
    keep((place, arms, rank, array))
    return fine
