"""The door to forward dynamics."""

import numpy as np
from numba import njit, types

from kfdyn.dynamics._kernels.doors.arguments import BLOCK, IN, LANES, ROWS, VECTORS, finite, fit, flat, part, sound
from kfdyn.dynamics._kernels.doors.table import layout_at
from kfdyn.dynamics._kernels.fused.forward import forward_dynamics
from kfdyn.estimation._kernels.sizes import ORDERED_SWEEP

SIGNATURE = types.boolean(types.intp, IN, IN, IN, IN, IN, *ROWS, VECTORS)


@njit(**ORDERED_SWEEP)
def forward(model, q, v, tau, forces, gravity, first, last, rows, a):
    """a (rows nv,); NaN where a hinge has no inertia, and near a row that is not sound.

    ``forces`` (rows 6 n,) may be empty, gravity (rows 3,) may be one for all.
    """
    layout = layout_at(model)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and v.size == tau.size == a.size == rows * nv and fit(forces, gravity, 6 * n, rows)):
        return False
    q_all, v_all, tau_all, f_all, g_all = flat(q), flat(v), flat(tau), flat(forces), flat(gravity)
    margin = np.empty(min(BLOCK, last - first))
    fine = True
    for at in range(first, last, BLOCK):
        end = min(at + BLOCK, last)
        own_q, own_v, own_tau = part(q_all, nq, at, end), part(v_all, nv, at, end), part(tau_all, nv, at, end)
        f, g, into = part(f_all, 6 * n, at, end), part(g_all, 3, at, end), a[at * nv : end * nv]
        if sound(layout, own_q) and finite(own_v) and finite(own_tau) and finite(f) and finite(g):
            forward_dynamics(LANES, layout, own_q, own_v, own_tau, f, g, 0, end - at, into, margin)
            for i in range(end - at):
                if not margin[i] > 0.0:
                    into[i * nv : (i + 1) * nv] = np.nan
                    fine = False
        else:
            into[:] = np.nan
            fine = False
    return fine
