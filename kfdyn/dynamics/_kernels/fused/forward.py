"""Forward dynamics: one outward sweep, one gather, one scatter, on as many configurations as a vector has lanes."""

import numpy as np
from numba import njit

from kfdyn.dynamics._kernels.fused.articulated import DOF, GAIN, NU, SLOT, gather_body
from kfdyn.dynamics._kernels.fused.memory import block_at, collect3, get3, put3
from kfdyn.dynamics._kernels.fused.numbers import INLINED
from kfdyn.dynamics._kernels.fused.outward import BODY, ETA, ORIENTATION, SHIFT, outward_body, place_world
from kfdyn.dynamics._kernels.fused.plan import KIND, PARENT, REVOLUTE, V_END, V, at, planned, tables
from kfdyn.dynamics._kernels.fused.spatial import add, add_cross, dot, dot6, scale
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, size
from kfdyn.estimation._kernels.vectors import get, keep, pointer, spread, zero


@njit(**ORDERED_SWEEP)
def forward_dynamics(tag, layout, q, v, tau, forces, gravity, first, last, a, margin):
    """a of rows first … last; all arrays flat. ``forces`` may be empty; gravity has one row, or one for each.

    THEORY (2)–(4) with scalar measurements in succession. margin[row] is the least d − rounding over the dofs: where
    it is not positive, some hinge has no inertia and a means nothing. About 600 flops for a body on one dof.
    """
    n, nv, lanes = layout.parent.size, layout.v_start[-1], size(tag, 1)
    index, real = tables(layout)
    plan = planned(layout, index, real)
    work, H, dofs = np.empty((n + 1) * BODY * lanes), np.empty(nv * 6 * lanes), np.empty(nv * DOF * lanes)
    sums = np.zeros((plan.slots + 1) * SLOT * lanes)
    _sweep(
        tag, plan, pointer(q), pointer(v), pointer(tau), pointer(forces), forces.size > 0, pointer(gravity),
        gravity.size > 3, first, last, pointer(work), pointer(H), pointer(dofs), pointer(sums),
        pointer(a), pointer(margin),
    )  # fmt: skip
    keep((index, real, work, H, dofs, sums))


@njit(**INLINED)
def _sweep(tag, plan, q, v, tau, forces, pushed, gravity, many, first, last, work, H, dofs, sums, a, margin):
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    place_world(tag, work)
    row = first
    while row < last:
        start, step, row = block_at(row, last, lanes)
        g_at, g_step = (3 * start, 3 * step) if many else (0, 0)
        for t in range(1, n + 1):
            outward_body(tag, plan, t, q, start * nq, step * nq, v, start * nv, step * nv, True, work, H)
        least = zero(tag) + np.inf
        for back in range(n):
            least = gather_body(
                tag, plan, n - back, tau, start * nv, step * nv, forces, pushed, start * 6 * n, step * 6 * n,
                True, work, H, dofs, sums, least,
            )  # fmt: skip
        put3(tag, work, ETA + 3, scale(-1.0, collect3(tag, gravity, g_at, g_step)))  # the world's acceleration
        for t in range(1, n + 1):
            scatter_body(tag, plan, t, work, H, dofs, a, start * nv, step * nv)
        spread(tag, margin, start, step, least)


@njit(**INLINED)
def scatter_body(tag, plan, t, work, H, dofs, a, a_at, a_step):
    """λ⁺ = φ*λ(p), then a = ν − g*λ and λ ← λ + h*a dof by dof, the last measured first, + η (R86 8.10–8.13)."""
    here, up, i = t * BODY, at(plan, t, PARENT) * BODY, at(plan, t, V)
    spin, acc = get3(tag, work, up + ETA), get3(tag, work, up + ETA + 3)
    l = get3(tag, work, here + SHIFT)
    if at(plan, t, KIND) == REVOLUTE:
        gain = DOF * i + GAIN  # φ g, so that it meets the parent's λ and need not wait for λ⁺
        rate = get(tag, dofs, DOF * i + NU) - dot(get3(tag, dofs, gain), spin) - dot(get3(tag, dofs, gain + 3), acc)
        spread(tag, a, a_at + i, a_step, rate)
        z = here + ORIENTATION
        axis = (get(tag, work, z + 2), get(tag, work, z + 5), get(tag, work, z + 8))
        alpha = add(add(get3(tag, work, here + ETA), spin), scale(rate, axis))
        acc = add_cross(add(get3(tag, work, here + ETA + 3), acc), spin, l)
        put3(tag, work, here + ETA, alpha)
        put3(tag, work, here + ETA + 3, acc)
    else:
        last = at(plan, t, V_END)
        _scatter_hinge(tag, i, last, spin, add_cross(acc, spin, l), here, work, H, dofs, a, a_at, a_step)


@njit(**ORDERED)
def _scatter_hinge(tag, first, last, alpha, acc, here, work, H, dofs, a, a_at, a_step):
    for back in range(last - first):
        i = last - 1 - back
        gain = DOF * i + GAIN
        rate = get(tag, dofs, DOF * i + NU) - dot6(get3(tag, dofs, gain), get3(tag, dofs, gain + 3), alpha, acc)
        spread(tag, a, a_at + i, a_step, rate)
        alpha = add(alpha, scale(rate, get3(tag, H, 6 * i)))
        acc = add(acc, scale(rate, get3(tag, H, 6 * i + 3)))
    put3(tag, work, here + ETA, add(alpha, get3(tag, work, here + ETA)))
    put3(tag, work, here + ETA + 3, add(acc, get3(tag, work, here + ETA + 3)))
