"""A hinge of any kind, seen in one fixed orientation: where it leads, its rows of H, its bias acceleration."""

from numba import njit

from kfdyn._kernels.sizes import ORDERED
from kfdyn._kernels.vectors import collect, item, zero
from kfdyn.multibody._kernels.fused.memory import get3, put3
from kfdyn.multibody._kernels.fused.numbers import reduced, sine_cosine
from kfdyn.multibody._kernels.fused.plan import KIND, POSE, SCREWS, V_END, Q, V, at
from kfdyn.multibody._kernels.fused.spatial import across, add, apply, compose, cross, from_quaternion, scale, turn


@njit(**ORDERED)
def cross_hinge(tag, plan, t, q, q_at, q_step, v, v_at, v_step, moving, R, total, omega, H):
    """From the hinge frame R, ``total`` away from the parent's origin, to the body's: R, l, ω, and η = [alpha; a].

    Rows of H, six numbers each, go to ``H``. Not inlined: hinges other than rotations are rare.
    """
    first, last, place = at(plan, t, V), at(plan, t, V_END), q_at + at(plan, t, Q)
    o = zero(tag)
    none = (o, o, o)
    alpha, a = none, none
    if moving:
        omega, alpha, a = across(omega, alpha, a, total, none, none)
    if at(plan, t, KIND) <= SCREWS:
        for i in range(first, last):
            axis, slide = screw3(plan, i, 0), screw3(plan, i, 3)
            angle = collect(tag, q, place + i - first, q_step)
            h_omega, h_v = apply(R, axis), apply(R, slide)
            turns = axis[0] != 0.0 or axis[1] != 0.0 or axis[2] != 0.0
            slides = slide[0] != 0.0 or slide[1] != 0.0 or slide[2] != 0.0
            l = none
            if turns:
                s, c = sine_cosine(reduced(tag, angle))
                if slides:  # exp of a screw: l = (angle + (1 − cos) a~ + (angle − sin) a~a~) slide
                    n = cross(axis, slide)
                    l = add(scale(angle, slide), add(scale(1.0 - c, n), scale(angle - s, cross(axis, n))))
                    l = apply(R, l)
                R = turn(R, axis, s, c)
            elif slides:
                l = scale(angle, h_v)
            put3(tag, H, 6 * i, h_omega)
            put3(tag, H, 6 * i + 3, h_v)
            if slides:  # the origin moves on by l: this row and the earlier ones of the hinge are shifted, φ*
                for j in range(first, i + 1):
                    put3(tag, H, 6 * j + 3, add(get3(tag, H, 6 * j + 3), cross(get3(tag, H, 6 * j), l)))
                total = add(total, l)
            if moving:
                rate = collect(tag, v, v_at + i, v_step)
                h_v = scale(rate, get3(tag, H, 6 * i + 3))
                omega, alpha, a = across(omega, alpha, a, l, scale(rate, h_omega), h_v)
        return R, total, omega, alpha, a
    l = none
    if at(plan, t, KIND) == POSE:
        l = apply(
            R, (collect(tag, q, place, q_step), collect(tag, q, place + 1, q_step), collect(tag, q, place + 2, q_step))
        )
        total = add(total, l)
        place += 3
    x, y = collect(tag, q, place, q_step), collect(tag, q, place + 1, q_step)
    z, w = collect(tag, q, place + 2, q_step), collect(tag, q, place + 3, q_step)
    R = compose(R, from_quaternion(x, y, z, w))
    h_omega, h_v = none, none
    for i in range(first, last):
        h, u = apply(R, screw3(plan, i, 0)), apply(R, screw3(plan, i, 3))
        put3(tag, H, 6 * i, h)
        put3(tag, H, 6 * i + 3, u)
        if moving:
            rate = collect(tag, v, v_at + i, v_step)
            h_omega = add(h_omega, scale(rate, h))
            h_v = add(h_v, scale(rate, u))
    if moving:
        omega, alpha, a = across(omega, alpha, a, l, h_omega, h_v)
    return R, total, omega, alpha, a


@njit(**ORDERED)
def screw3(plan, i, part):
    """Three floats of dof i's screw."""
    return item(plan.screws, 6 * i + part), item(plan.screws, 6 * i + part + 1), item(plan.screws, 6 * i + part + 2)
