"""Hybrid dynamics: forward dynamics in which some measurements are missing and the accelerations given instead.

H*a of a prescribed dof joins η, and its gain is 0. Its force is read off what passes by: behind the free dofs of its
hinge the hinge's force is P⁺λ⁺ + z⁺, so tau = h P⁺ λ⁺ + h z⁺ + R a, of the same form as a free dof's acceleration.
"""

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import (
    align_stack,
    all_beyond,
    collect,
    get,
    item,
    put,
    set_item,
    smaller,
    spread,
    zero,
)
from kfdyn.dynamics._kernels.fused.articulated import (
    _ROUNDING,
    DOF,
    GAIN,
    NU,
    bound,
    gather_body,
    lay_out,
    pass_on,
    prior,
    reduced_by,
    shifted,
)
from kfdyn.dynamics._kernels.fused.forward import scatter_body
from kfdyn.multibody._kernels.fused.memory import collect3, get3, lanes_at, put3
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import BODY, ETA, SHIFT, axis_of, sweep_outward
from kfdyn.multibody._kernels.fused.plan import (
    ALL_MASS,
    KIND,
    PARENT,
    REVOLUTE,
    V_END,
    V,
    at,
    of,
)
from kfdyn.multibody._kernels.fused.spatial import (
    add,
    add_apply,
    add_cross,
    add_symmetric,
    apply_transposed,
    dot,
    dot6,
    scale,
    symmetric_apply,
)


@njit(**INLINED)
def hybrid_dynamics(
    tag, plan, prescribed, held, q, v, tau, a, forces, pushed, gravity, many, first, last, room, all_tau, all_a
):
    """All of tau and a of rows first … last, given tau of the free dofs and a of those ``prescribed`` (nv,), not 0.

    SKO "hybrid", dof by dof; other entries of tau and a are not used. ``held`` (n + 1,) says which bodies have such a
    dof. Whether all free dofs have inertia; the rest as in forward dynamics, room included.
    """
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    sums, dofs, H, work, _ = lay_out(tag, plan, room)
    align_stack()
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        g_at, g_step = (3 * start, 3 * step) if many else (0, 0)
        at_v, by_v = start * nv, step * nv
        sweep_outward(tag, plan, q, start * nq, step * nq, v, at_v, by_v, True, work, H)
        for t in range(1, n + 1):
            if item(held, t):
                _prescribe(tag, plan, t, prescribed, a, at_v, by_v, work, H)
        least = zero(tag) + np.inf
        for back in range(n):
            t = n - back
            if item(held, t):
                least = _gather_held(
                    tag, plan, t, prescribed, tau, a, at_v, by_v, forces, pushed, start * 6 * n, step * 6 * n, work, H,
                    dofs, sums, least,
                )  # fmt: skip
            else:
                least = gather_body(
                    tag, plan, t, tau, at_v, by_v, forces, pushed, start * 6 * n, step * 6 * n, True, work, H, dofs,
                    sums, least,
                )  # fmt: skip
        put3(tag, work, ETA + 3, scale(-1.0, collect3(tag, gravity, g_at, g_step)))  # the world's acceleration
        for t in range(1, n + 1):
            if item(held, t):
                _scatter_held(tag, plan, t, prescribed, work, H, dofs, all_tau, all_a, at_v, by_v)
            else:
                scatter_body(tag, plan, t, work, H, dofs, all_a, at_v, by_v)
        for i in range(nv):
            if item(prescribed, i):
                spread(tag, all_a, at_v + i, by_v, collect(tag, a, at_v + i, by_v))
            else:
                spread(tag, all_tau, at_v + i, by_v, collect(tag, tau, at_v + i, by_v))
        if not all_beyond(least, 0.0):
            return False
    return True


@njit(**ORDERED)
def hold(plan, prescribed, held):
    """Mark the bodies of whose dofs some are prescribed."""
    for t in range(1, plan.n + 1):
        for i in range(at(plan, t, V), at(plan, t, V_END)):
            if item(prescribed, i):
                set_item(held, t, 1)


@njit(**ORDERED)
def _prescribe(tag, plan, t, prescribed, a, a_at, a_step, work, H):
    """η ← η + H_p* a_p; the row of a revolute hinge goes to ``H`` like those of the others."""
    eta, o = t * BODY + ETA, zero(tag)
    for i in range(at(plan, t, V), at(plan, t, V_END)):
        if at(plan, t, KIND) == REVOLUTE:
            put3(tag, H, 6 * i, axis_of(tag, t, work))
            put3(tag, H, 6 * i + 3, (o, o, o))
        if item(prescribed, i):
            rate = collect(tag, a, a_at + i, a_step)
            put3(tag, work, eta, add(get3(tag, work, eta), scale(rate, get3(tag, H, 6 * i))))
            put3(tag, work, eta + 3, add(get3(tag, work, eta + 3), scale(rate, get3(tag, H, 6 * i + 3))))


@njit(**ORDERED)
def _gather_held(
    tag, plan, t, prescribed, tau, a, v_at, v_step, forces, pushed, f_at, f_step, work, H, dofs, sums, least
):
    """P and z of a body of whose dofs some are prescribed: the others measured one by one, the rest handed on."""
    J, B, C, z = prior(tag, plan, t, forces, pushed, f_at, f_step, True, True, work, sums)
    rounding = bound(tag, plan, t, C, work, sums)
    first, last = at(plan, t, V), at(plan, t, V_END)
    for i in range(first, last):
        if not item(prescribed, i):
            w, v, armature = get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3), item(plan.armature, i)
            u, s = add_apply(symmetric_apply(J, w), B, v), add_symmetric(apply_transposed(B, w), C, v)
            d = dot6(w, v, u, s) + armature
            weight = of(plan, t, ALL_MASS) * dot(v, v) + armature
            least = smaller(least, d - rounding * dot(w, w) - _ROUNDING * weight)
            inverse = 1.0 / d
            eps = collect(tag, tau, v_at + i, v_step) - dot6(w, v, z[0], z[1])
            g = (scale(inverse, u), scale(inverse, s))
            put3(tag, dofs, DOF * i + GAIN, g[0])
            put3(tag, dofs, DOF * i + GAIN + 3, g[1])
            put(tag, dofs, DOF * i + NU, eps * inverse)
            z = (add(z[0], scale(eps, g[0])), add(z[1], scale(eps, g[1])))
            J, B, C = reduced_by(J, B, C, g[0], g[1], u, s)
    for i in range(first, last):
        if item(prescribed, i):  # tau = ν − g λ⁺ with ν = h z⁺ + R a and g = −P⁺h
            w, v = get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3)
            u, s = add_apply(symmetric_apply(J, w), B, v), add_symmetric(apply_transposed(B, w), C, v)
            put3(tag, dofs, DOF * i + GAIN, scale(-1.0, u))
            put3(tag, dofs, DOF * i + GAIN + 3, scale(-1.0, s))
            nu = dot6(w, v, z[0], z[1]) + item(plan.armature, i) * collect(tag, a, v_at + i, v_step)
            put(tag, dofs, DOF * i + NU, nu)
    if at(plan, t, PARENT):
        l = get3(tag, work, t * BODY + SHIFT)
        J, B, C = shifted(J, B, C, l)
        pass_on(tag, plan, t, J, B, C, (add_cross(z[0], l, z[1]), z[1]), True, sums)
    return least


@njit(**ORDERED)
def _scatter_held(tag, plan, t, prescribed, work, H, dofs, tau, a, v_at, v_step):
    """Forces of the prescribed dofs at λ⁺, then accelerations of the free ones, the last measured first."""
    here, up, first, last = t * BODY, at(plan, t, PARENT) * BODY, at(plan, t, V), at(plan, t, V_END)
    alpha = get3(tag, work, up + ETA)
    acc = add_cross(get3(tag, work, up + ETA + 3), alpha, get3(tag, work, here + SHIFT))
    for i in range(first, last):
        if item(prescribed, i):
            spread(tag, tau, v_at + i, v_step, _felt(tag, i, dofs, alpha, acc))
    for back in range(last - first):
        i = last - 1 - back
        if not item(prescribed, i):
            rate = _felt(tag, i, dofs, alpha, acc)
            spread(tag, a, v_at + i, v_step, rate)
            alpha = add(alpha, scale(rate, get3(tag, H, 6 * i)))
            acc = add(acc, scale(rate, get3(tag, H, 6 * i + 3)))
    put3(tag, work, here + ETA, add(alpha, get3(tag, work, here + ETA)))
    put3(tag, work, here + ETA + 3, add(acc, get3(tag, work, here + ETA + 3)))


@njit(**INLINED)
def _felt(tag, i, dofs, alpha, acc):
    """ν − g λ."""
    gain = DOF * i + GAIN
    return get(tag, dofs, DOF * i + NU) - dot6(get3(tag, dofs, gain), get3(tag, dofs, gain + 3), alpha, acc)
