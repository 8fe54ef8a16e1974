"""The door to the mass matrix."""

from numba import njit, types

from kfdyn.dynamics._kernels.doors.arguments import BLOCK, IN, LANES, MATRICES, ROWS, flat, part, sound
from kfdyn.dynamics._kernels.doors.table import layout_at
from kfdyn.dynamics._kernels.fused.mass_matrix import mass_matrix
from kfdyn.estimation._kernels.sizes import ORDERED_SWEEP

SIGNATURE = types.boolean(types.intp, IN, *ROWS, MATRICES)


@njit(**ORDERED_SWEEP)
def mass(model, q, first, last, rows, out):
    """𝓜 (rows nv, nv)."""
    layout = layout_at(model)
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and out.shape == (rows * nv, nv)):
        return False
    q_all, entries = flat(q), out.reshape(out.size)
    for at in range(first, last, BLOCK):
        end = min(at + BLOCK, last)
        own = part(q_all, nq, at, end)
        if not sound(layout, own):
            return False
        mass_matrix(LANES, layout, own, 0, end - at, entries[at * nv * nv : end * nv * nv])
    return True
