"""The door to hybrid dynamics."""

import numpy as np
from numba import njit, types

from kfdyn.dynamics._kernels.doors.arguments import (
    BLOCK,
    IN,
    INDICES,
    LANES,
    ROWS,
    VECTORS,
    finite,
    finite_where,
    fit,
    flat,
    part,
    sound,
)
from kfdyn.dynamics._kernels.doors.table import layout_at
from kfdyn.dynamics._kernels.fused.hybrid import hybrid_dynamics
from kfdyn.estimation._kernels.sizes import ORDERED_SWEEP

SIGNATURE = types.boolean(types.intp, INDICES, IN, IN, IN, IN, IN, IN, *ROWS, VECTORS, VECTORS)


@njit(**ORDERED_SWEEP)
def hybrid(model, prescribed, q, v, tau, a, forces, gravity, first, last, rows, all_tau, all_a):
    """All of tau and of a (rows nv,); ``prescribed`` (nv,) is 1 where a is given and 0 where tau is.

    Only what is given is looked at. ``forces`` (rows 6 n,) may be empty, gravity (rows 3,) may be one for all.
    """
    layout = layout_at(model)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and prescribed.size == nv and v.size == tau.size == a.size == rows * nv):
        return False
    if not (all_tau.size == all_a.size == rows * nv and fit(forces, gravity, 6 * n, rows)):
        return False
    q_all, v_all, tau_all, a_all, f_all, g_all = flat(q), flat(v), flat(tau), flat(a), flat(forces), flat(gravity)
    margin = np.empty(min(BLOCK, last - first))
    for at in range(first, last, BLOCK):
        end = min(at + BLOCK, last)
        own_q, own_v = part(q_all, nq, at, end), part(v_all, nv, at, end)
        own_tau, own_a = part(tau_all, nv, at, end), part(a_all, nv, at, end)
        f, g = part(f_all, 6 * n, at, end), part(g_all, 3, at, end)
        if not (sound(layout, own_q) and finite(own_v) and finite(f) and finite(g)):
            return False
        if not (finite_where(own_tau, prescribed, 0) and finite_where(own_a, prescribed, 1)):
            return False
        tau_into, a_into = all_tau[at * nv : end * nv], all_a[at * nv : end * nv]
        hybrid_dynamics(
            LANES, layout, prescribed, own_q, own_v, own_tau, own_a, f, g, 0, end - at, tau_into, a_into, margin
        )
        for i in range(end - at):
            if not margin[i] > 0.0:
                return False
    return True
