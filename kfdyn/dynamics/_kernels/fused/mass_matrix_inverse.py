"""The inverse of the mass matrix: the filter along ancestors and the smoother down to i, for unit measurements i."""

import numpy as np
from numba import njit

from kfdyn.dynamics._kernels.fused.articulated import DOF, SLOT, gather_body
from kfdyn.dynamics._kernels.fused.mass_matrix import axis_of
from kfdyn.dynamics._kernels.fused.memory import block_at, get3, put3, write_out
from kfdyn.dynamics._kernels.fused.numbers import INLINED
from kfdyn.dynamics._kernels.fused.outward import BODY, ETA, SHIFT, outward_body, place_world
from kfdyn.dynamics._kernels.fused.plan import KIND, PARENT, REVOLUTE, V_END, V, at, planned, tables
from kfdyn.dynamics._kernels.fused.spatial import add, cross, dot, scale
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, size
from kfdyn.estimation._kernels.vectors import get, keep, pointer, put, spread, zero


@njit(**ORDERED_SWEEP)
def mass_matrix_inverse(tag, layout, q, first, last, out, margin):
    """𝓜⁻¹ of rows first … last into the flat ``out``, symmetric to the bit; margin as in forward dynamics.

    𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK) on unit vectors (SKO "mass-inverse"): O(N²), half of it by symmetry.
    """
    n, nv, lanes = layout.parent.size, layout.v_start[-1], size(tag, 1)
    index, real = tables(layout)
    plan = planned(layout, index, real)
    work, H, dofs = np.empty((n + 1) * BODY * lanes), np.empty(nv * 6 * lanes), np.empty(nv * DOF * lanes)
    sums, least = np.zeros(plan.slots * SLOT * lanes), np.empty(lanes)
    eps, entries = np.empty(nv * lanes), np.zeros(nv * nv * lanes)
    _sweep(
        tag, plan, pointer(q), first, last, pointer(work), pointer(H), pointer(dofs), pointer(sums), pointer(least),
        pointer(eps), pointer(entries), pointer(out), pointer(margin),
    )  # fmt: skip
    keep((index, real, work, H, dofs, sums, least, eps, entries))


@njit(**INLINED)
def _sweep(tag, plan, q, first, last, work, H, dofs, sums, least, eps, entries, out, margin):
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    place_world(tag, work)
    row = first
    while row < last:
        start, step, row = block_at(row, last, lanes)
        for t in range(1, n + 1):
            outward_body(tag, plan, t, q, start * nq, step * nq, q, 0, 0, False, work, H)
        put(tag, least, 0, zero(tag) + np.inf)
        for back in range(n):
            gather_body(tag, plan, n - back, q, 0, 0, q, False, 0, 0, False, work, H, dofs, sums, least)
        spread(tag, margin, start, step, get(tag, least, 0))
        for t in range(1, n + 1):
            for i in range(at(plan, t, V), at(plan, t, V_END)):
                measure_unit(tag, plan, t, i, work, H, dofs, eps)
                for k in range(1, t + 1):
                    answer_body(tag, plan, k, t, i, work, H, dofs, eps, entries)
        write_out(tag, entries, nv * nv, out, start * nv * nv, step * nv * nv)


@njit(**INLINED)
def measure_unit(tag, plan, t, i, work, H, dofs, eps):
    """ε of a unit measurement at dof i of body t: 1 there, −h z at the dofs measured after it, along the ancestors."""
    o = zero(tag)
    for other in range(plan.nv):
        put(tag, eps, other, o)
    n, f = (o, o, o), (o, o, o)
    k = t
    while k:
        if at(plan, k, KIND) == REVOLUTE:
            j = at(plan, k, V)
            e = o - dot(axis_of(tag, k, work), n)
            if j == i:
                e = o + 1.0
            put(tag, eps, j, e)
            g = e * get(tag, dofs, DOF * j + 7)
            n = add(n, scale(g, get3(tag, dofs, DOF * j)))
            f = add(f, scale(g, get3(tag, dofs, DOF * j + 3)))
        else:
            for j in range(max(i, at(plan, k, V)) if k == t else at(plan, k, V), at(plan, k, V_END)):
                e = o - (dot(get3(tag, H, 6 * j), n) + dot(get3(tag, H, 6 * j + 3), f))
                if j == i:
                    e = o + 1.0
                put(tag, eps, j, e)
                g = e * get(tag, dofs, DOF * j + 7)
                n = add(n, scale(g, get3(tag, dofs, DOF * j)))
                f = add(f, scale(g, get3(tag, dofs, DOF * j + 3)))
        n = add(n, cross(get3(tag, work, k * BODY + SHIFT), f))
        k = at(plan, k, PARENT)


@njit(**INLINED)
def answer_body(tag, plan, k, t, i, work, H, dofs, eps, entries):
    """The smoother at body k for column i: λ⁺ = φ*λ(p), a = (ε − uλ)/d, λ += h*a; a is entry (k's dofs, i)."""
    here, up, nv = k * BODY, at(plan, k, PARENT) * BODY, plan.nv
    alpha = get3(tag, work, up + ETA)
    acc = add(get3(tag, work, up + ETA + 3), cross(alpha, get3(tag, work, here + SHIFT)))
    if at(plan, k, KIND) == REVOLUTE:
        j = at(plan, k, V)
        pull = dot(get3(tag, dofs, DOF * j), alpha) + dot(get3(tag, dofs, DOF * j + 3), acc)
        rate = (get(tag, eps, j) - pull) * get(tag, dofs, DOF * j + 7)
        put(tag, entries, j * nv + i, rate)
        put(tag, entries, i * nv + j, rate)
        alpha = add(alpha, scale(rate, axis_of(tag, k, work)))
        put3(tag, work, here + ETA, alpha)
        put3(tag, work, here + ETA + 3, acc)
    else:
        put3(tag, work, here + ETA, alpha)
        put3(tag, work, here + ETA + 3, acc)
        _answer_hinge(tag, at(plan, k, V), at(plan, k, V_END), k == t, i, nv, here, work, H, dofs, eps, entries)


@njit(**ORDERED)
def _answer_hinge(tag, begin, end, own, i, nv, here, work, H, dofs, eps, entries):
    alpha, acc = get3(tag, work, here + ETA), get3(tag, work, here + ETA + 3)
    for back in range(end - begin):
        j = end - 1 - back
        pull = dot(get3(tag, dofs, DOF * j), alpha) + dot(get3(tag, dofs, DOF * j + 3), acc)
        rate = (get(tag, eps, j) - pull) * get(tag, dofs, DOF * j + 7)
        if j <= i or not own:
            put(tag, entries, j * nv + i, rate)
            put(tag, entries, i * nv + j, rate)
        alpha = add(alpha, scale(rate, get3(tag, H, 6 * j)))
        acc = add(acc, scale(rate, get3(tag, H, 6 * j + 3)))
    put3(tag, work, here + ETA, alpha)
    put3(tag, work, here + ETA + 3, acc)
