"""The inverse of the mass matrix: the filter along ancestors and the smoother down to i, for unit measurements i."""

import numpy as np
from numba import njit

from kfdyn.dynamics._kernels.fused.forward import DOF, gather_body
from kfdyn.dynamics._kernels.fused.outward import BODY, ETA, SHIFT, get3, inertia_body, load_angles, outward_body, put3
from kfdyn.dynamics._kernels.fused.spatial import add, cross, dot, scale
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, size
from kfdyn.estimation._kernels.vectors import get, put, zero


@njit(**ORDERED_SWEEP)
def mass_matrix_inverse(tag, layout, q, first, last, out, margin):
    """𝓜⁻¹ of rows first … last into the flat ``out``, symmetric to the bit; margin as in forward dynamics.

    𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK) on unit vectors (SKO "mass-inverse"): O(N²), half of it by symmetry.
    """
    lanes = size(tag, 1)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    work, H, dofs = np.empty(n * BODY * lanes), np.empty(nv * 6 * lanes), np.empty(nv * DOF * lanes)
    q_buf, trig, still = np.empty(nq * lanes), np.empty(nq * lanes), np.zeros(nv * lanes)
    least, eps = np.empty(lanes), np.zeros(nv * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        load_angles(tag, q, nq, at, count, False, q_buf)
        load_angles(tag, q, nq, at, count, True, trig)
        for k in layout.order:
            outward_body(tag, layout, k, q_buf, still, trig, False, work, H)
            inertia_body(tag, layout, k, False, work)
        put(tag, least, 0, zero(tag) + np.inf)
        for step in range(n):
            gather_body(tag, layout, layout.order[n - 1 - step], still, work, H, dofs, least)
        for l in range(count):
            margin[at + l] = least[l]
        for place in range(n):
            k = layout.order[place]
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                measure_unit(tag, layout, k, i, work, H, dofs, eps)
                for earlier in range(place + 1):
                    j = layout.order[earlier]
                    answer_body(tag, layout, j, i, work, H, dofs, eps, at, count, out)


@njit(**ORDERED)
def measure_unit(tag, layout, k, i, work, H, dofs, eps):
    """ε of a unit measurement at dof i of body k: 1 there, −h z at the dofs measured after it, along the ancestors."""
    for other in range(layout.v_start[-1]):
        put(tag, eps, other, zero(tag))
    o = zero(tag)
    n, f = (o, o, o), (o, o, o)
    start = i
    while k >= 0:
        for j in range(max(start, layout.v_start[k]), layout.v_start[k + 1]):
            e = o - (dot(get3(tag, H, 6 * j), n) + dot(get3(tag, H, 6 * j + 3), f))
            if j == i:
                e = e + 1.0
            put(tag, eps, j, e)
            g = e * get(tag, dofs, DOF * j + 7)
            n = add(n, scale(g, get3(tag, dofs, DOF * j)))
            f = add(f, scale(g, get3(tag, dofs, DOF * j + 3)))
        n = add(n, cross(get3(tag, work, k * BODY + SHIFT), f))
        k = layout.parent[k]
        start = 0


@njit(**ORDERED)
def answer_body(tag, layout, k, i, work, H, dofs, eps, at, count, out):
    """The smoother at body k for column i: λ⁺ = φ*λ(p), a = (ε − uλ)/d, λ += h*a; a is entry (k's dofs, i)."""
    here, lanes, nv = k * BODY, size(tag, 1), layout.v_start[-1]
    o = zero(tag)
    alpha, acc = (o, o, o), (o, o, o)
    p = layout.parent[k]
    if p >= 0:
        alpha = get3(tag, work, p * BODY + ETA)
        acc = add(get3(tag, work, p * BODY + ETA + 3), cross(alpha, get3(tag, work, here + SHIFT)))
    begin, end = layout.v_start[k], layout.v_start[k + 1]
    for back in range(end - begin):
        j = end - 1 - back
        pull = dot(get3(tag, dofs, DOF * j), alpha) + dot(get3(tag, dofs, DOF * j + 3), acc)
        rate = (get(tag, eps, j) - pull) * get(tag, dofs, DOF * j + 7)
        put(tag, eps, j, rate)
        alpha = add(alpha, scale(rate, get3(tag, H, 6 * j)))
        acc = add(acc, scale(rate, get3(tag, H, 6 * j + 3)))
    put3(tag, work, here + ETA, alpha)
    put3(tag, work, here + ETA + 3, acc)
    for j in range(begin, end):
        if j <= i or not (begin <= i < end):
            for l in range(count):
                value = eps[j * lanes + l]
                out[((at + l) * nv + j) * nv + i] = value
                out[((at + l) * nv + i) * nv + j] = value
