"""The door to forward dynamics."""

import numpy as np
from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.dynamics._kernels.fused.articulated import filter_room
from kfdyn.dynamics._kernels.fused.forward import forward_dynamics
from kfdyn.multibody._kernels.doors.arguments import (
    IN,
    LANES,
    ROWS,
    VECTORS,
    finite,
    fit,
    flat,
    rows_finite,
    sound,
)
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at

SIGNATURE = types.boolean(types.intp, IN, IN, IN, IN, IN, *ROWS, VECTORS)


@njit(**ORDERED_SWEEP)
def forward(model, q, v, tau, forces, gravity, rows, block, counter, a):
    """a (rows nv,); NaN where a hinge has no inertia, and near a row that is not sound.

    ``forces`` (rows 6 n,) may be empty, gravity (rows 3,) may be one for all.
    """
    plan = plan_at(model)
    n, nq, nv = plan.n, plan.nq, plan.nv
    if not (q.size == rows * nq and v.size == tau.size == a.size == rows * nv and fit(forces, gravity, 6 * n, rows)):
        return False
    arrays = flat(q), flat(v), flat(tau), flat(forces), flat(gravity)
    q_all, v_all, tau_all = pointer(arrays[0]), pointer(arrays[1]), pointer(arrays[2])
    f_all, g_all, pushed, falls = pointer(arrays[3]), pointer(arrays[4]), forces.size, gravity.size
    room, fine = borrow(model, filter_room(plan, size(LANES, 1))), True
    at = claim(counter, -1, block)
    while at < rows:
        end = min(at + block, rows)
        if (
            sound(plan, q_all, at, end)
            and finite(v_all, at * nv, end * nv)
            and finite(tau_all, at * nv, end * nv)
            and rows_finite(f_all, pushed, 6 * n, at, end)
            and rows_finite(g_all, falls, 3, at, end)
        ):
            fine &= forward_dynamics(
                LANES, plan, q_all, v_all, tau_all, f_all, pushed > 0, g_all, falls > 3, at, end, aligned(room),
                pointer(a),
            )  # fmt: skip
            fine &= finite(pointer(a), at * nv, end * nv)
        else:
            a[at * nv : end * nv] = np.nan
            fine = False
        at = claim(counter, at, block)
    give_back(model, room)
    keep(arrays)
    return fine
