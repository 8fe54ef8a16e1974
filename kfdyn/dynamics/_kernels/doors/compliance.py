"""The door to the operational space compliance."""

import numpy as np
from numba import njit, types

from kfdyn.dynamics._kernels.doors.arguments import (
    BLOCK,
    IN,
    INDICES,
    LANES,
    MATRICES,
    ROWS,
    VECTORS,
    flat,
    part,
    sound,
)
from kfdyn.dynamics._kernels.doors.table import layout_at
from kfdyn.dynamics._kernels.fused.compliance import operational_space_compliance
from kfdyn.estimation._kernels.sizes import ORDERED_SWEEP

SIGNATURE = types.boolean(types.intp, INDICES, VECTORS, IN, *ROWS, MATRICES)


@njit(**ORDERED_SWEEP)
def compliance(model, bodies, positions, q, first, last, rows, out):
    """Ω (rows 6 k, 6 k) of frames at ``positions`` (3 k,) on ``bodies`` (k,)."""
    layout = layout_at(model)
    nq, wide = layout.q_start[-1], 6 * bodies.size
    if not (q.size == rows * nq and positions.size == 3 * bodies.size and out.shape == (rows * wide, wide)):
        return False
    q_all, entries, margin = flat(q), out.reshape(out.size), np.empty(min(BLOCK, last - first))
    for at in range(first, last, BLOCK):
        end = min(at + BLOCK, last)
        own, into = part(q_all, nq, at, end), entries[at * wide * wide : end * wide * wide]
        if not sound(layout, own):
            return False
        operational_space_compliance(LANES, layout, bodies, positions, own, 0, end - at, into, margin)
        for i in range(end - at):
            if not margin[i] > 0.0:
                return False
    return True
