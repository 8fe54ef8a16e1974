"""The door to the inverse of the mass matrix."""

import numpy as np
from numba import njit, types

from kfdyn.dynamics._kernels.doors.arguments import BLOCK, IN, LANES, MATRICES, ROWS, flat, part, sound
from kfdyn.dynamics._kernels.doors.table import layout_at
from kfdyn.dynamics._kernels.fused.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.estimation._kernels.sizes import ORDERED_SWEEP

SIGNATURE = types.boolean(types.intp, IN, *ROWS, MATRICES)


@njit(**ORDERED_SWEEP)
def mass_inverse(model, q, first, last, rows, out):
    """𝓜⁻¹ (rows nv, nv); NaN as in forward dynamics."""
    layout = layout_at(model)
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and out.shape == (rows * nv, nv)):
        return False
    q_all, entries, margin = flat(q), out.reshape(out.size), np.empty(min(BLOCK, last - first))
    fine = True
    for at in range(first, last, BLOCK):
        end = min(at + BLOCK, last)
        own, into = part(q_all, nq, at, end), entries[at * nv * nv : end * nv * nv]
        if sound(layout, own):
            mass_matrix_inverse(LANES, layout, own, 0, end - at, into, margin)
            for i in range(end - at):
                if not margin[i] > 0.0:
                    into[i * nv * nv : (i + 1) * nv * nv] = np.nan
                    fine = False
        else:
            into[:] = np.nan
            fine = False
    return fine
