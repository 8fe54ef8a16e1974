"""The outward sweep in world orientation: orientation, l, angular velocity and bias acceleration of every body."""

from numba import njit

from kfdyn._kernels.vectors import collect, get, put, zero
from kfdyn.multibody._kernels.fused.hinges import cross_hinge, screw3
from kfdyn.multibody._kernels.fused.memory import clear, get3, get9, put3, put9, real3, real9
from kfdyn.multibody._kernels.fused.numbers import INLINED, reduced, sine_cosine
from kfdyn.multibody._kernels.fused.plan import (
    FIRST,
    KIND,
    OFFSET,
    PARENT,
    POSITION,
    REVOLUTE,
    ROTATION,
    SLIDE,
    SPLIT,
    TILT,
    TWIST,
    TWISTED,
    Q,
    V,
    at,
    of,
)
from kfdyn.multibody._kernels.fused.spatial import add, apply, compose, cross, mix, scale

#: Numbers kept for each body: orientation 9 (its third column is a revolute hinge's axis), l 3, angular velocity 3,
#: η or λ 6. Row 0 is the world.
ORIENTATION, SHIFT, OMEGA, ETA, BODY = 0, 9, 12, 15, 21

# Of a revolute hinge's angle, until η is there.
SINE, COSINE = ETA, ETA + 1


@njit(**INLINED)
def place_world(tag, work):
    """Row 0: at rest, orientation 1."""
    clear(tag, work, BODY)
    for i in range(3):
        put(tag, work, ORIENTATION + 4 * i, zero(tag) + 1.0)


@njit(**INLINED)
def sweep_outward(tag, plan, q, q_at, q_step, v, v_at, v_step, moving, work, H):
    """Fill R, l, ω, η of every body; about 150 flops for a revolute hinge.

    Rows of H of other hinges than revolute ones go to ``H``, six numbers each. Sines and cosines come first: each is a
    long chain of operations, and here the processor does those of several bodies side by side.
    """
    for t in range(1, plan.n + 1):
        prepare_sine(tag, plan, t, q, q_at, q_step, work)
    for t in range(1, plan.n + 1):
        outward_body(tag, plan, t, q, q_at, q_step, v, v_at, v_step, moving, work, H)


@njit(**INLINED)
def prepare_sine(tag, plan, t, q, q_at, q_step, work):
    """Sine and cosine of body t's angle, if its hinge is revolute."""
    if at(plan, t, KIND) == REVOLUTE:
        s, c = sine_cosine(reduced(tag, collect(tag, q, q_at + at(plan, t, Q), q_step)) + of(plan, t, OFFSET))
        put(tag, work, t * BODY + SINE, s)
        put(tag, work, t * BODY + COSINE, c)


@njit(**INLINED)
def outward_body(tag, plan, t, q, q_at, q_step, v, v_at, v_step, moving, work, H):
    here, up = t * BODY, at(plan, t, PARENT) * BODY
    R = get9(tag, work, up + ORIENTATION)
    l = apply(R, real3(plan, t, POSITION))
    o = zero(tag)
    omega = (o, o, o)
    if moving:
        omega = get3(tag, work, up + OMEGA)
    if at(plan, t, KIND) == REVOLUTE:
        s, c = get(tag, work, here + SINE), get(tag, work, here + COSINE)
        R = turned(plan, t, R, s, c)
        z = (R[2], R[5], R[8])
        put9(tag, work, here + ORIENTATION, R)
        put3(tag, work, here + SHIFT, l)
        if moving:  # R86 5.1–5.6 with H* = [z; 0]
            spin = scale(collect(tag, v, v_at + at(plan, t, V), v_step), z)
            put3(tag, work, here + ETA, cross(omega, spin))
            put3(tag, work, here + ETA + 3, cross(omega, cross(omega, l)))
            put3(tag, work, here + OMEGA, add(omega, spin))
    elif at(plan, t, KIND) == SLIDE:
        R = compose(R, real9(plan, t, ROTATION))
        i = at(plan, t, V)
        z = apply(R, screw3(plan, i, 3))
        l = add(l, scale(collect(tag, q, q_at + at(plan, t, Q), q_step), z))
        put9(tag, work, here + ORIENTATION, R)
        put3(tag, work, here + SHIFT, l)
        put3(tag, H, 6 * i, (o, o, o))
        put3(tag, H, 6 * i + 3, z)
        if moving:  # H* = [0; z]: Coriolis' acceleration beside the centripetal one
            slide = scale(2.0 * collect(tag, v, v_at + i, v_step), z)
            put3(tag, work, here + ETA, (o, o, o))
            put3(tag, work, here + ETA + 3, cross(omega, add(cross(omega, l), slide)))
            put3(tag, work, here + OMEGA, omega)
    else:
        R = compose(R, real9(plan, t, ROTATION))
        R, l, omega, alpha, a = cross_hinge(tag, plan, t, q, q_at, q_step, v, v_at, v_step, moving, R, l, omega, H)
        put9(tag, work, here + ORIENTATION, R)
        put3(tag, work, here + SHIFT, l)
        if moving:
            put3(tag, work, here + OMEGA, omega)
            put3(tag, work, here + ETA, alpha)
            put3(tag, work, here + ETA + 3, a)


@njit(**INLINED)
def turned(plan, t, R, s, c):
    """R Rz(a) Rx(alpha) Rz(b + q), given the sine and cosine of b + q: from the parent's orientation to the body's."""
    x, y, z = (R[0], R[3], R[6]), (R[1], R[4], R[7]), (R[2], R[5], R[8])
    if at(plan, t, TWISTED):
        x, y = mix(of(plan, t, TWIST), of(plan, t, TWIST + 1), x, y)
    y, z = mix(of(plan, t, TILT), of(plan, t, TILT + 1), y, z)
    x, y = mix(c, s, x, y)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@njit(**INLINED)
def inertia_of(tag, plan, t, work):
    """Moment of inertia (six numbers) and m p of body t about its hinge point, world orientation.

    R J R* = j + sym(x g) + sym(y h), the columns of R being x, y, z: 45 operations, 20 fewer than by two products.
    """
    R = get9(tag, work, t * BODY + ORIENTATION)
    x, y = (R[0], R[3], R[6]), (R[1], R[4], R[7])
    a = real3(plan, t, SPLIT)
    g = apply(R, a)
    b, c, j = of(plan, t, SPLIT + 3), of(plan, t, SPLIT + 4), of(plan, t, SPLIT + 5)
    h = (b * R[1] + c * R[2], b * R[4] + c * R[5], b * R[7] + c * R[8])
    moment = (
        j + 2.0 * (x[0] * g[0] + y[0] * h[0]),
        x[0] * g[1] + g[0] * x[1] + y[0] * h[1] + h[0] * y[1],
        x[0] * g[2] + g[0] * x[2] + y[0] * h[2] + h[0] * y[2],
        j + 2.0 * (x[1] * g[1] + y[1] * h[1]),
        x[1] * g[2] + g[1] * x[2] + y[1] * h[2] + h[1] * y[2],
        j + 2.0 * (x[2] * g[2] + y[2] * h[2]),
    )
    return moment, apply(R, real3(plan, t, FIRST))


@njit(**INLINED)
def axis_of(tag, t, work):
    """The axis of body t's revolute hinge: the third column of its orientation."""
    z = t * BODY + ORIENTATION
    return get(tag, work, z + 2), get(tag, work, z + 5), get(tag, work, z + 8)
