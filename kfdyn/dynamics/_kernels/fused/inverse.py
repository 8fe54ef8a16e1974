"""Inverse dynamics: one outward sweep of motion, one gather of forces (Newton–Euler; R86 section 7), in body frames.

Without articulated inertias nothing but vectors crosses a hinge, and turning five of them costs less than turning
every body's inertia to the world's orientation.
"""

from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import align_stack, beyond, collect, get, item, put, spread, zero
from kfdyn.multibody._kernels.fused.hinges import cross_hinge, screw3
from kfdyn.multibody._kernels.fused.memory import clear, collect3, get3, get9, lanes_at, put3, put9, real3, real9
from kfdyn.multibody._kernels.fused.numbers import INLINED, reduced, sine_cosine
from kfdyn.multibody._kernels.fused.outward import turned
from kfdyn.multibody._kernels.fused.plan import (
    ARMATURE,
    BASE,
    FIRST,
    FORCE_ROW,
    IN,
    KIND,
    MASS,
    MOMENT,
    OFFSET,
    OUT,
    PARENT,
    POSITION,
    REVOLUTE,
    ROTATION,
    SLIDE,
    TILT,
    TWIST,
    TWISTED,
    V_END,
    Q,
    V,
    at,
    of,
)
from kfdyn.multibody._kernels.fused.spatial import (
    add,
    add_apply,
    add_cross,
    apply,
    apply_transposed,
    compose,
    dot,
    dot6,
    scale,
    symmetric_apply,
)

#: Numbers kept for each body, all in its own frame: sine and cosine of its angle, ω 3, α 3, acceleration of its origin
#: 3, A = α~ + ω~ω~ 9, moment and force 6. Row 0 is the world.
TRIG, OMEGA, ALPHA, ACC, RATE, FORCE, BODY = 0, 2, 5, 8, 11, 20, 26

#: Numbers kept for hinges other than revolute ones: orientation in the parent's frame 9, l 3; of a slide only l.
HINGE = 12


@njit(**INLINED)
def inverse_room(plan, lanes, pushed):
    """How many floats :func:`inverse_dynamics` works in."""
    turns = plan.n + 1 if pushed else 1
    return ((plan.n + 1) * (BODY + HINGE) + plan.nv * 6 + plan.slots * 6 + turns * 9) * lanes


@njit(**INLINED)
def inverse_dynamics(tag, plan, q, v, a, speeding, forces, pushed, gravity, many, first, last, room, tau):
    """tau of rows first … last; all arrays flat. Without ``speeding`` a is 0; gravity has one row, or ``many``.

    α = φ*α(p) + H*a + η outward, f = Σ φf + Mα + ξ inward, tau = H f + R a. About 250 flops for a body on one dof.
    """
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    sums, work = room, beyond(room, plan.slots * 6 * lanes)
    H = beyond(work, (n + 1) * BODY * lanes)
    hinges = beyond(H, nv * 6 * lanes)
    turns = beyond(hinges, (n + 1) * HINGE * lanes)
    align_stack()
    clear(tag, sums, 6)
    clear(tag, work, BODY)
    for i in range(9):
        put(tag, turns, i, zero(tag) + (1.0 if i % 4 == 0 else 0.0))
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        g_at, g_step = (3 * start, 3 * step) if many else (0, 0)
        put3(tag, work, ACC, scale(-1.0, collect3(tag, gravity, g_at, g_step)))
        at_v, by_v = start * nv, step * nv
        for t in range(1, n + 1):
            move_body(
                tag, plan, t, q, start * nq, step * nq, v, a, at_v, by_v, speeding, pushed, work, H, hinges, turns
            )
            if pushed:
                place = start * 6 * n + at(plan, t, FORCE_ROW)
                R = get9(tag, turns, 9 * t)
                for half in range(2):
                    own, force = t * BODY + FORCE + 3 * half, collect3(tag, forces, place + 3 * half, step * 6 * n)
                    put3(tag, work, own, add(get3(tag, work, own), scale(-1.0, apply_transposed(R, force))))
        for back in range(n):
            press_body(tag, plan, n - back, a, speeding, tau, at_v, by_v, work, H, hinges, sums)


@njit(**INLINED)
def inward(plan, t, s, c, x):
    """(Rz(a) Rx(alpha) Rz(b + q))* x: a vector of the parent's frame seen in the body's."""
    x, y, z = x
    if at(plan, t, TWISTED):
        ca, sa = of(plan, t, TWIST), of(plan, t, TWIST + 1)
        x, y = ca * x + sa * y, ca * y - sa * x
    ct, st = of(plan, t, TILT), of(plan, t, TILT + 1)
    y, z = ct * y + st * z, ct * z - st * y
    return c * x + s * y, c * y - s * x, z


@njit(**INLINED)
def outward(plan, t, s, c, x):
    """Rz(a) Rx(alpha) Rz(b + q) x: a vector of the body's frame seen in the parent's."""
    x, y, z = x
    x, y = c * x - s * y, s * x + c * y
    ct, st = of(plan, t, TILT), of(plan, t, TILT + 1)
    y, z = ct * y - st * z, st * y + ct * z
    if at(plan, t, TWISTED):
        ca, sa = of(plan, t, TWIST), of(plan, t, TWIST + 1)
        x, y = ca * x - sa * y, sa * x + ca * y
    return x, y, z


@njit(**INLINED)
def move_body(tag, plan, t, q, q_at, q_step, v, a, v_at, v_step, speeding, pushed, work, H, hinges, turns):
    """ω, α(k) = φ*α(p) + H*a + η, and the body's own force Mα + ξ (R86 5.4–5.6, 4.4)."""
    here, parent = t * BODY, at(plan, t, PARENT)
    up = parent * BODY
    if at(plan, t, KIND) == REVOLUTE:
        s, c = sine_cosine(reduced(tag, collect(tag, q, q_at + at(plan, t, Q), q_step)) + of(plan, t, OFFSET))
        put(tag, work, here + TRIG, s)
        put(tag, work, here + TRIG + 1, c)
        i = at(plan, t, V)
        rate = collect(tag, v, v_at + i, v_step)
        omega = inward(plan, t, s, c, get3(tag, work, up + OMEGA))
        alpha = inward(plan, t, s, c, get3(tag, work, up + ALPHA))
        acc = add_apply(get3(tag, work, up + ACC), get9(tag, work, up + RATE), real3(plan, t, POSITION))
        acc = inward(plan, t, s, c, acc)
        spin = zero(tag)
        if speeding:
            spin = collect(tag, a, v_at + i, v_step)
        alpha = (alpha[0] + omega[1] * rate, alpha[1] - omega[0] * rate, alpha[2] + spin)
        omega = (omega[0], omega[1], omega[2] + rate)
        if pushed:
            put9(tag, turns, 9 * t, turned(plan, t, get9(tag, turns, 9 * parent), s, c))
        own_force(tag, plan, t, omega, alpha, acc, work)
    elif at(plan, t, KIND) == SLIDE:
        i, R = at(plan, t, V), real9(plan, t, ROTATION)
        slide = screw3(plan, i, 3)
        l = add(real3(plan, t, POSITION), scale(collect(tag, q, q_at + at(plan, t, Q), q_step), apply(R, slide)))
        put3(tag, hinges, HINGE * t, l)
        acc = add_apply(get3(tag, work, up + ACC), get9(tag, work, up + RATE), l)
        omega, acc = apply_transposed(R, get3(tag, work, up + OMEGA)), apply_transposed(R, acc)
        acc = add_cross(acc, omega, scale(2.0 * collect(tag, v, v_at + i, v_step), slide))
        if speeding:
            acc = add(acc, scale(collect(tag, a, v_at + i, v_step), slide))
        if pushed:
            put9(tag, turns, 9 * t, compose(get9(tag, turns, 9 * parent), R))
        own_force(tag, plan, t, omega, apply_transposed(R, get3(tag, work, up + ALPHA)), acc, work)
    else:
        _move_hinge(tag, plan, t, q, q_at, q_step, v, a, v_at, v_step, speeding, pushed, work, H, hinges, turns)


@njit(**ORDERED)
def _move_hinge(tag, plan, t, q, q_at, q_step, v, a, v_at, v_step, speeding, pushed, work, H, hinges, turns):
    """The same for hinges of any number of dofs: cross them in the parent's orientation, then turn."""
    parent = at(plan, t, PARENT)
    up, o = parent * BODY, zero(tag)
    R, l = real9(plan, t, ROTATION), real3(plan, t, POSITION)
    R = (o + R[0], o + R[1], o + R[2], o + R[3], o + R[4], o + R[5], o + R[6], o + R[7], o + R[8])
    l = (o + l[0], o + l[1], o + l[2])
    omega, spin = get3(tag, work, up + OMEGA), get3(tag, work, up + ALPHA)
    R, l, omega, alpha, acc = cross_hinge(tag, plan, t, q, q_at, q_step, v, v_at, v_step, True, R, l, omega, H)
    acc = add_cross(add(acc, get3(tag, work, up + ACC)), spin, l)
    alpha = add(alpha, spin)
    if speeding:
        for i in range(at(plan, t, V), at(plan, t, V_END)):
            rate = collect(tag, a, v_at + i, v_step)
            alpha = add(alpha, scale(rate, get3(tag, H, 6 * i)))
            acc = add(acc, scale(rate, get3(tag, H, 6 * i + 3)))
    put9(tag, hinges, HINGE * t, R)
    put3(tag, hinges, HINGE * t + 9, l)
    if pushed:
        put9(tag, turns, 9 * t, compose(get9(tag, turns, 9 * parent), R))
    own_force(tag, plan, t, apply_transposed(R, omega), apply_transposed(R, alpha), apply_transposed(R, acc), work)


@njit(**INLINED)
def own_force(tag, plan, t, omega, alpha, acc, work):
    """[Jα + ω × Jω + m p × a; m a + A m p] with A = α~ + ω~ω~, which also leads on to the children."""
    here = t * BODY
    x, y, z = omega
    A = (
        -1.0 * (y * y) - z * z, x * y - alpha[2], x * z + alpha[1],
        x * y + alpha[2], -1.0 * (x * x) - z * z, y * z - alpha[0],
        x * z - alpha[1], y * z + alpha[0], -1.0 * (x * x) - y * y,
    )  # fmt: skip
    put3(tag, work, here + OMEGA, omega)
    put3(tag, work, here + ALPHA, alpha)
    put3(tag, work, here + ACC, acc)
    put9(tag, work, here + RATE, A)
    a, b = real3(plan, t, MOMENT), real3(plan, t, MOMENT + 3)
    J, p = (a[0], a[1], a[2], b[0], b[1], b[2]), real3(plan, t, FIRST)
    moment = add_cross(add_cross(symmetric_apply(J, alpha), p, acc), omega, symmetric_apply(J, omega))
    put3(tag, work, here + FORCE, moment)
    put3(tag, work, here + FORCE + 3, add_apply(scale(of(plan, t, MASS), acc), A, p))


@njit(**INLINED)
def press_body(tag, plan, t, a, speeding, tau, v_at, v_step, work, H, hinges, sums):
    """tau = H f + R a, and f(p) += φ f (R86 4.1–4.3)."""
    here, slot = t * BODY, at(plan, t, IN) * 6
    n = add(get3(tag, work, here + FORCE), get3(tag, sums, slot))
    f = add(get3(tag, work, here + FORCE + 3), get3(tag, sums, slot + 3))
    if at(plan, t, KIND) == REVOLUTE:
        i = at(plan, t, V)
        felt = n[2]
        if speeding:
            felt = felt + of(plan, t, ARMATURE) * collect(tag, a, v_at + i, v_step)
        spread(tag, tau, v_at + i, v_step, felt)
        if at(plan, t, PARENT):
            s, c = get(tag, work, here + TRIG), get(tag, work, here + TRIG + 1)
            pass_on(tag, plan, t, real3(plan, t, POSITION), outward(plan, t, s, c, n), outward(plan, t, s, c, f), sums)
    elif at(plan, t, KIND) == SLIDE:
        i, R = at(plan, t, V), real9(plan, t, ROTATION)
        felt = dot(screw3(plan, i, 3), f)
        if speeding:
            felt = felt + of(plan, t, ARMATURE) * collect(tag, a, v_at + i, v_step)
        spread(tag, tau, v_at + i, v_step, felt)
        if at(plan, t, PARENT):
            pass_on(tag, plan, t, get3(tag, hinges, HINGE * t), apply(R, n), apply(R, f), sums)
    else:
        _press_hinge(tag, plan, t, n, f, a, speeding, tau, v_at, v_step, H, hinges, sums)


@njit(**ORDERED)
def _press_hinge(tag, plan, t, n, f, a, speeding, tau, v_at, v_step, H, hinges, sums):
    R = get9(tag, hinges, HINGE * t)
    n, f = apply(R, n), apply(R, f)
    for i in range(at(plan, t, V), at(plan, t, V_END)):
        felt = dot6(get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3), n, f)
        if speeding:
            felt = felt + item(plan.armature, i) * collect(tag, a, v_at + i, v_step)
        spread(tag, tau, v_at + i, v_step, felt)
    if at(plan, t, PARENT):
        pass_on(tag, plan, t, get3(tag, hinges, HINGE * t + 9), n, f, sums)


@njit(**INLINED)
def pass_on(tag, plan, t, l, n, f, sums):
    base, out = at(plan, t, BASE) * 6, at(plan, t, OUT) * 6
    put3(tag, sums, out, add(get3(tag, sums, base), add_cross(n, l, f)))
    put3(tag, sums, out + 3, add(get3(tag, sums, base + 3), f))
