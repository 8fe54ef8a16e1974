"""Forward dynamics: one outward sweep, one gather, one scatter, on as many configurations as a vector has lanes."""

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import align_stack, get, spread, zero
from kfdyn.dynamics._kernels.fused.articulated import DOF, GAIN, NU, gather_body, lay_out
from kfdyn.multibody._kernels.fused.memory import collect3, get3, lanes_at, put3, settle
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import BODY, ETA, ORIENTATION, SHIFT, sweep_outward
from kfdyn.multibody._kernels.fused.plan import KIND, PARENT, REVOLUTE, SLIDE, V_END, V, at
from kfdyn.multibody._kernels.fused.spatial import add, add_cross, dot, dot6, scale


@njit(**INLINED)
def forward_dynamics(tag, plan, q, v, tau, forces, pushed, gravity, many, first, last, room, a):
    """a of rows first … last, and whether all are sound; all arrays flat. Gravity has one row, or ``many``.

    THEORY (2)–(4) with scalar measurements in succession. Where the least d of a row's dofs is not more than rounding,
    some hinge has no inertia, and the row becomes NaN. About 600 flops for a body on one dof.
    """
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    sums, dofs, H, work, _ = lay_out(tag, plan, room)
    align_stack()
    fine = True
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        g_at, g_step = (3 * start, 3 * step) if many else (0, 0)
        sweep_outward(tag, plan, q, start * nq, step * nq, v, start * nv, step * nv, True, work, H)
        least = zero(tag) + np.inf
        for back in range(n):
            least = gather_body(
                tag, plan, n - back, tau, start * nv, step * nv, forces, pushed, start * 6 * n, step * 6 * n,
                True, work, H, dofs, sums, least,
            )  # fmt: skip
        put3(tag, work, ETA + 3, scale(-1.0, collect3(tag, gravity, g_at, g_step)))  # the world's acceleration
        for t in range(1, n + 1):
            scatter_body(tag, plan, t, work, H, dofs, a, start * nv, step * nv)
        if not settle(tag, least, a, start * nv, step * nv, nv):
            fine = False
    return fine


@njit(**INLINED)
def scatter_body(tag, plan, t, work, H, dofs, a, a_at, a_step):
    """λ⁺ = φ*λ(p), then a = ν − g*λ and λ ← λ + h*a dof by dof, the last measured first, + η (R86 8.10–8.13)."""
    here, up, i = t * BODY, at(plan, t, PARENT) * BODY, at(plan, t, V)
    spin, acc = get3(tag, work, up + ETA), get3(tag, work, up + ETA + 3)
    l = get3(tag, work, here + SHIFT)
    kind = at(plan, t, KIND)
    if kind <= SLIDE:
        gain = DOF * i + GAIN  # φ g, so that it meets the parent's λ and need not wait for λ⁺
        rate = get(tag, dofs, DOF * i + NU) - dot(get3(tag, dofs, gain), spin) - dot(get3(tag, dofs, gain + 3), acc)
        spread(tag, a, a_at + i, a_step, rate)
        alpha = add(get3(tag, work, here + ETA), spin)
        acc = add_cross(add(get3(tag, work, here + ETA + 3), acc), spin, l)
        if kind == REVOLUTE:
            z = here + ORIENTATION
            alpha = add(alpha, scale(rate, (get(tag, work, z + 2), get(tag, work, z + 5), get(tag, work, z + 8))))
        else:
            acc = add(acc, scale(rate, get3(tag, H, 6 * i + 3)))
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
