"""Forward dynamics: one outward sweep, one gather, one scatter, on as many configurations as a vector has lanes."""

import numpy as np
from numba import njit

from kfdyn.dynamics._kernels.fused.outward import (
    BODY,
    BOUNDS,
    ETA,
    FORCE,
    INERTIA,
    SHIFT,
    get3,
    inertia_body,
    load_angles,
    outward_body,
    put3,
)
from kfdyn.dynamics._kernels.fused.spatial import add, cross, dot, scale, symmetric_apply
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, size
from kfdyn.estimation._kernels.vectors import get, put, smaller, sqrt, zero

#: Numbers kept for each dof beside its row of H: u = P h 6, innovation ε, 1/d.
DOF = 8

#: What is below this part of the composite body's inertia is rounding. A false alarm costs time, not truth: the engine
#: then decides.
_ROUNDING = 64 * 2.220446049250313e-16


@njit(**ORDERED_SWEEP)
def forward_dynamics(tag, layout, q, v, tau, forces, gravity, first, last, a, margin):
    """a of rows first … last; all arrays flat. ``forces`` may be empty; gravity has one row, or one for each.

    THEORY (2)–(4) with scalar measurements in succession. margin[row] is the least d − rounding over the dofs: where
    it is not positive, some hinge has no inertia and a means nothing. About 700 flops for a body on one dof.
    """
    lanes = size(tag, 1)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    work, H, dofs = np.empty(n * BODY * lanes), np.empty(nv * 6 * lanes), np.empty(nv * DOF * lanes)
    q_buf, trig, v_buf, tau_buf = np.empty(nq * lanes), np.empty(nq * lanes), np.empty(nv * lanes), np.empty(nv * lanes)
    least, g_buf, f_buf = np.empty(lanes), np.empty(3 * lanes), np.empty((n * 6 if forces.size else 0) * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        load_angles(tag, q, nq, at, count, False, q_buf)
        load_angles(tag, q, nq, at, count, True, trig)
        load_angles(tag, v, nv, at, count, False, v_buf)
        load_angles(tag, tau, nv, at, count, False, tau_buf)
        if gravity.size == 3:
            load_angles(tag, gravity, 3, 0, 1, False, g_buf)
        else:
            load_angles(tag, gravity, 3, at, count, False, g_buf)
        if forces.size:
            load_angles(tag, forces, n * 6, at, count, False, f_buf)
        for k in layout.order:
            outward_body(tag, layout, k, q_buf, v_buf, trig, True, work, H)
            inertia_body(tag, layout, k, True, work)
            here = k * BODY
            if layout.parent[k] < 0:
                put3(tag, work, here + ETA + 3, add(get3(tag, work, here + ETA + 3), scale(-1.0, get3(tag, g_buf, 0))))
            if forces.size:
                for i in range(6):
                    put(tag, work, here + FORCE + i, get(tag, work, here + FORCE + i) - get(tag, f_buf, k * 6 + i))
        put(tag, least, 0, zero(tag) + np.inf)
        for step in range(n):
            k = layout.order[n - 1 - step]
            gather_body(tag, layout, k, tau_buf, work, H, dofs, least)
        for k in layout.order:
            scatter_body(tag, layout, k, work, H, dofs, v_buf)
        for l in range(count):
            margin[at + l] = least[l]
            for i in range(nv):
                a[(at + l) * nv + i] = v_buf[i * lanes + l]


@njit(**ORDERED)
def get6(tag, work, at):
    a, b = get3(tag, work, at), get3(tag, work, at + 3)
    return a[0], a[1], a[2], b[0], b[1], b[2]


@njit(**ORDERED)
def gather_body(tag, layout, k, tau, work, H, dofs, least):
    """Measure the dofs of hinge k one by one, then add the body to its parent (THEORY (2), (3); R86 8.2–8.9)."""
    here = k * BODY
    J, C = get6(tag, work, here + INERTIA), get6(tag, work, here + INERTIA + 15)
    B0, B1, B2 = (
        get3(tag, work, here + INERTIA + 6),
        get3(tag, work, here + INERTIA + 9),
        get3(tag, work, here + INERTIA + 12),
    )
    n, f = get3(tag, work, here + FORCE), get3(tag, work, here + FORCE + 3)
    turning, mass = get(tag, work, here + BOUNDS), get(tag, work, here + BOUNDS + 1)
    for i in range(layout.v_start[k], layout.v_start[k + 1]):
        w, s = get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3)
        # u = P h, d = h u + r
        x = symmetric_apply(J, w)
        y = symmetric_apply(C, s)
        u = (x[0] + dot(B0, s), x[1] + dot(B1, s), x[2] + dot(B2, s))
        t = (
            y[0] + B0[0] * w[0] + B1[0] * w[1] + B2[0] * w[2],
            y[1] + B0[1] * w[0] + B1[1] * w[1] + B2[1] * w[2],
            y[2] + B0[2] * w[0] + B1[2] * w[1] + B2[2] * w[2],
        )
        d = (dot(w, u) + dot(s, t)) + layout.armature[i]
        room = d - _ROUNDING * (turning * dot(w, w) + mass * dot(s, s) + layout.armature[i])
        put(tag, least, 0, smaller(get(tag, least, 0), room))
        inverse = 1.0 / d
        eps = get(tag, tau, i) - (dot(w, n) + dot(s, f))
        put3(tag, dofs, DOF * i, u)
        put3(tag, dofs, DOF * i + 3, t)
        put(tag, dofs, DOF * i + 6, eps)
        put(tag, dofs, DOF * i + 7, inverse)
        # z⁺ = z + g ε, P⁺ = P − g u*
        gu, gt = scale(inverse, u), scale(inverse, t)
        n, f = add(n, scale(eps, gu)), add(f, scale(eps, gt))
        J = (
            J[0] - gu[0] * u[0], J[1] - gu[0] * u[1], J[2] - gu[0] * u[2],
            J[3] - gu[1] * u[1], J[4] - gu[1] * u[2], J[5] - gu[2] * u[2],
        )  # fmt: skip
        C = (
            C[0] - gt[0] * t[0], C[1] - gt[0] * t[1], C[2] - gt[0] * t[2],
            C[3] - gt[1] * t[1], C[4] - gt[1] * t[2], C[5] - gt[2] * t[2],
        )  # fmt: skip
        B0 = (B0[0] - gu[0] * t[0], B0[1] - gu[0] * t[1], B0[2] - gu[0] * t[2])
        B1 = (B1[0] - gu[1] * t[0], B1[1] - gu[1] * t[1], B1[2] - gu[1] * t[2])
        B2 = (B2[0] - gu[2] * t[0], B2[1] - gu[2] * t[1], B2[2] - gu[2] * t[2])
    p = layout.parent[k]
    if p < 0:
        return
    # + P⁺ η
    alpha, acc = get3(tag, work, here + ETA), get3(tag, work, here + ETA + 3)
    x, y = symmetric_apply(J, alpha), symmetric_apply(C, acc)
    n = (n[0] + x[0] + dot(B0, acc), n[1] + x[1] + dot(B1, acc), n[2] + x[2] + dot(B2, acc))
    f = (
        f[0] + y[0] + B0[0] * alpha[0] + B1[0] * alpha[1] + B2[0] * alpha[2],
        f[1] + y[1] + B0[1] * alpha[0] + B1[1] * alpha[1] + B2[1] * alpha[2],
        f[2] + y[2] + B0[2] * alpha[0] + B1[2] * alpha[1] + B2[2] * alpha[2],
    )
    # to the parent: φ z⁺ and φ P⁺ φ*, φ = [[1, l~], [0, 1]]
    l = get3(tag, work, here + SHIFT)
    up = p * BODY
    put3(tag, work, up + FORCE, add(get3(tag, work, up + FORCE), add(n, cross(l, f))))
    put3(tag, work, up + FORCE + 3, add(get3(tag, work, up + FORCE + 3), f))
    reach = mass * dot(l, l)
    bound = turning + 2.0 * sqrt(turning * reach) + reach
    put(tag, work, up + BOUNDS, get(tag, work, up + BOUNDS) + bound)
    put(tag, work, up + BOUNDS + 1, get(tag, work, up + BOUNDS + 1) + mass)
    c0, c1, c2 = cross(l, (C[0], C[1], C[2])), cross(l, (C[1], C[3], C[4])), cross(l, (C[2], C[4], C[5]))
    D0 = (B0[0] + c0[0], B0[1] + c1[0], B0[2] + c2[0])  # B + l~ C, row by row
    D1 = (B1[0] + c0[1], B1[1] + c1[1], B1[2] + c2[1])
    D2 = (B2[0] + c0[2], B2[1] + c1[2], B2[2] + c2[2])
    a0, a1, a2 = cross(l, B0), cross(l, B1), cross(l, B2)  # columns of l~ B*
    d0, d1, d2 = cross(l, D0), cross(l, D1), cross(l, D2)  # rows of (B + l~C) l~*
    new = (
        J[0] + a0[0] + d0[0], J[1] + a1[0] + d0[1], J[2] + a2[0] + d0[2],
        J[3] + a1[1] + d1[1], J[4] + a2[1] + d1[2], J[5] + a2[2] + d2[2],
    )  # fmt: skip
    for i in range(6):
        put(tag, work, up + INERTIA + i, get(tag, work, up + INERTIA + i) + new[i])
        put(tag, work, up + INERTIA + 15 + i, get(tag, work, up + INERTIA + 15 + i) + C[i])
    put3(tag, work, up + INERTIA + 6, add(get3(tag, work, up + INERTIA + 6), D0))
    put3(tag, work, up + INERTIA + 9, add(get3(tag, work, up + INERTIA + 9), D1))
    put3(tag, work, up + INERTIA + 12, add(get3(tag, work, up + INERTIA + 12), D2))


@njit(**ORDERED)
def scatter_body(tag, layout, k, work, H, dofs, a):
    """λ⁺ = φ*λ(p), then a = (ε − uλ)/d and λ ← λ + h*a dof by dof, the last measured first (R86 8.10–8.13)."""
    here = k * BODY
    alpha, acc = get3(tag, work, here + ETA), get3(tag, work, here + ETA + 3)
    p = layout.parent[k]
    if p >= 0:
        spin = get3(tag, work, p * BODY + ETA)
        l = get3(tag, work, here + SHIFT)
        acc = add(acc, add(get3(tag, work, p * BODY + ETA + 3), cross(spin, l)))
        alpha = add(alpha, spin)
    first, last = layout.v_start[k], layout.v_start[k + 1]
    for back in range(last - first):
        i = last - 1 - back
        pull = dot(get3(tag, dofs, DOF * i), alpha) + dot(get3(tag, dofs, DOF * i + 3), acc)
        rate = (get(tag, dofs, DOF * i + 6) - pull) * get(tag, dofs, DOF * i + 7)
        put(tag, a, i, rate)
        alpha = add(alpha, scale(rate, get3(tag, H, 6 * i)))
        acc = add(acc, scale(rate, get3(tag, H, 6 * i + 3)))
    put3(tag, work, here + ETA, alpha)
    put3(tag, work, here + ETA + 3, acc)
