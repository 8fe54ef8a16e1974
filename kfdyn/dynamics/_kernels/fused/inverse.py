"""Inverse dynamics: one outward sweep of motion, one gather of forces (Newton–Euler; R86 section 7)."""

import numpy as np
from numba import njit

from kfdyn.dynamics._kernels.fused.outward import (
    BODY,
    ETA,
    FORCE,
    OMEGA,
    ORIENTATION,
    SHIFT,
    get3,
    get9,
    half,
    load_angles,
    outward_body,
    put3,
)
from kfdyn.dynamics._kernels.fused.spatial import add, apply, cross, dot, rotate_symmetric, scale, symmetric_apply
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, size
from kfdyn.estimation._kernels.vectors import get, put


@njit(**ORDERED_SWEEP)
def inverse_dynamics(tag, layout, q, v, acceleration, forces, gravity, first, last, tau):
    """tau of rows first … last; all arrays flat. ``forces`` and ``acceleration`` may be empty (zero).

    α = φ*α(p) + H*a + η outward, f = Σ φf + Mα + ξ inward, tau = H f + R a. About 350 flops for a body on one dof.
    """
    lanes = size(tag, 1)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    work, H = np.empty(n * BODY * lanes), np.empty(nv * 6 * lanes)
    q_buf, trig, v_buf = np.empty(nq * lanes), np.empty(nq * lanes), np.empty(nv * lanes)
    a_buf, t_buf = np.zeros(nv * lanes), np.empty(nv * lanes)
    g_buf, f_buf = np.empty(3 * lanes), np.empty((n * 6 if forces.size else 0) * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        load_angles(tag, q, nq, at, count, False, q_buf)
        load_angles(tag, q, nq, at, count, True, trig)
        load_angles(tag, v, nv, at, count, False, v_buf)
        if acceleration.size:
            load_angles(tag, acceleration, nv, at, count, False, a_buf)
        if gravity.size == 3:
            load_angles(tag, gravity, 3, 0, 1, False, g_buf)
        else:
            load_angles(tag, gravity, 3, at, count, False, g_buf)
        if forces.size:
            load_angles(tag, forces, n * 6, at, count, False, f_buf)
        for k in layout.order:
            outward_body(tag, layout, k, q_buf, v_buf, trig, True, work, H)
            move_body(tag, layout, k, a_buf, g_buf, work, H)
            if forces.size:
                for i in range(6):
                    f = k * BODY + FORCE + i
                    put(tag, work, f, get(tag, work, f) - get(tag, f_buf, k * 6 + i))
        for step in range(n):
            press_body(tag, layout, layout.order[n - 1 - step], a_buf, work, H, t_buf)
        for l in range(count):
            for i in range(nv):
                tau[(at + l) * nv + i] = t_buf[i * lanes + l]


@njit(**ORDERED)
def move_body(tag, layout, k, a, g, work, H):
    """α(k) = φ*α(p) + H*a + η, and the body's own force Mα + ξ (R86 5.4–5.6, 4.4)."""
    here = k * BODY
    alpha, acc = get3(tag, work, here + ETA), get3(tag, work, here + ETA + 3)
    p = layout.parent[k]
    if p < 0:
        acc = add(acc, scale(-1.0, get3(tag, g, 0)))
    else:
        spin = get3(tag, work, p * BODY + ETA)
        acc = add(acc, add(get3(tag, work, p * BODY + ETA + 3), cross(spin, get3(tag, work, here + SHIFT))))
        alpha = add(alpha, spin)
    for i in range(layout.v_start[k], layout.v_start[k + 1]):
        rate = get(tag, a, i)
        alpha = add(alpha, scale(rate, get3(tag, H, 6 * i)))
        acc = add(acc, scale(rate, get3(tag, H, 6 * i + 3)))
    put3(tag, work, here + ETA, alpha)
    put3(tag, work, here + ETA + 3, acc)
    R, omega, m, b = get9(tag, work, here + ORIENTATION), get3(tag, work, here + OMEGA), layout.mass[k], layout.J[k]
    c = half(layout.com, k, 0)
    J = rotate_symmetric(R, (b[0, 0], b[0, 1], b[0, 2], b[1, 1], b[1, 2], b[2, 2]))
    p_mass = apply(R, (m * c[0], m * c[1], m * c[2]))
    moment = add(symmetric_apply(J, alpha), cross(p_mass, acc))
    moment = add(moment, cross(omega, symmetric_apply(J, omega)))
    force = add(scale(m, acc), add(cross(alpha, p_mass), cross(omega, cross(omega, p_mass))))
    put3(tag, work, here + FORCE, moment)
    put3(tag, work, here + FORCE + 3, force)


@njit(**ORDERED)
def press_body(tag, layout, k, a, work, H, tau):
    """tau = H f + R a, and f(p) += φ f (R86 4.1–4.3)."""
    here = k * BODY
    n, f = get3(tag, work, here + FORCE), get3(tag, work, here + FORCE + 3)
    for i in range(layout.v_start[k], layout.v_start[k + 1]):
        felt = dot(get3(tag, H, 6 * i), n) + dot(get3(tag, H, 6 * i + 3), f)
        put(tag, tau, i, felt + layout.armature[i] * get(tag, a, i))
    p = layout.parent[k]
    if p >= 0:
        up = p * BODY
        l = get3(tag, work, here + SHIFT)
        put3(tag, work, up + FORCE, add(get3(tag, work, up + FORCE), add(n, cross(l, f))))
        put3(tag, work, up + FORCE + 3, add(get3(tag, work, up + FORCE + 3), f))
