"""The door to hybrid dynamics."""

import numpy as np
from numba import njit, types

from kfdyn._kernels.sizes import ORDERED_SWEEP, size
from kfdyn._kernels.vectors import aligned, keep, pointer
from kfdyn.dynamics._kernels.fused.articulated import filter_room
from kfdyn.dynamics._kernels.fused.hybrid import hold, hybrid_dynamics
from kfdyn.multibody._kernels.doors.arguments import (
    IN,
    INDICES,
    LANES,
    ROWS,
    VECTORS,
    finite,
    finite_where,
    fit,
    flat,
    rows_finite,
    sound,
)
from kfdyn.multibody._kernels.doors.table import borrow, claim, give_back, plan_at

SIGNATURE = types.boolean(types.intp, INDICES, IN, IN, IN, IN, IN, IN, *ROWS, VECTORS, VECTORS)


@njit(**ORDERED_SWEEP)
def hybrid(model, prescribed, q, v, tau, a, forces, gravity, rows, block, counter, all_tau, all_a):
    """All of tau and of a (rows nv,); ``prescribed`` (nv,) is 1 where a is given and 0 where tau is.

    Only what is given is looked at. ``forces`` (rows 6 n,) may be empty, gravity (rows 3,) may be one for all.
    """
    plan = plan_at(model)
    n, nq, nv = plan.n, plan.nq, plan.nv
    if not (q.size == rows * nq and prescribed.size == nv and v.size == tau.size == a.size == rows * nv):
        return False
    if not (all_tau.size == all_a.size == rows * nv and fit(forces, gravity, 6 * n, rows)):
        return False
    arrays, held = (flat(q), flat(v), flat(tau), flat(a), flat(forces), flat(gravity)), np.zeros(n + 1, np.int64)
    q_all, v_all, tau_all, a_all = pointer(arrays[0]), pointer(arrays[1]), pointer(arrays[2]), pointer(arrays[3])
    f_all, g_all, pushed, falls = pointer(arrays[4]), pointer(arrays[5]), forces.size, gravity.size
    marks = pointer(prescribed)
    hold(plan, marks, pointer(held))
    room, fine = borrow(model, filter_room(plan, size(LANES, 1))), True
    at = claim(counter, -1, block)
    while at < rows and fine:
        end = min(at + block, rows)
        fine = (
            sound(plan, q_all, at, end)
            and finite(v_all, at * nv, end * nv)
            and finite_where(tau_all, marks, nv, 0, at, end)
            and finite_where(a_all, marks, nv, 1, at, end)
            and rows_finite(f_all, pushed, 6 * n, at, end)
            and rows_finite(g_all, falls, 3, at, end)
            and hybrid_dynamics(
                LANES, plan, marks, pointer(held), q_all, v_all, tau_all, a_all, f_all, pushed > 0, g_all, falls > 3,
                at, end, aligned(room), pointer(all_tau), pointer(all_a),
            )
            and finite(pointer(all_tau), at * nv, end * nv)
            and finite(pointer(all_a), at * nv, end * nv)
        )  # fmt: skip
        at = claim(counter, at, block)
    give_back(model, room)
    keep((arrays, held))
    return fine
