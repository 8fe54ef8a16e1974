"""The outward sweep on numbers: orientation, hinge maps, bias acceleration and bias force of every body."""

from numba import njit

from kfdyn.dynamics._kernels.fused.numbers import principal, sine_cosine
from kfdyn.dynamics._kernels.fused.spatial import (
    across,
    add,
    apply,
    compose,
    cross,
    from_quaternion,
    rotate_symmetric,
    scale,
    symmetric_apply,
    turn,
)
from kfdyn.estimation._kernels.sizes import ORDERED, size
from kfdyn.estimation._kernels.vectors import get, put, zero
from kfdyn.multibody.hinge import Coordinates

SCREWS, POSE = int(Coordinates.SCREWS), int(Coordinates.POSE)

#: Numbers kept for each body: orientation 9, l 3, angular velocity 3, inertia or P 21, force z 6, η or λ 6, and
#: bounds of the composite body's moment of inertia and mass, against which rounding is judged.
ORIENTATION, SHIFT, OMEGA, INERTIA, FORCE, ETA, BOUNDS, BODY = 0, 9, 12, 15, 36, 42, 48, 50


@njit(**ORDERED)
def get3(tag, work, at):
    return get(tag, work, at), get(tag, work, at + 1), get(tag, work, at + 2)


@njit(**ORDERED)
def put3(tag, work, at, x):
    put(tag, work, at, x[0])
    put(tag, work, at + 1, x[1])
    put(tag, work, at + 2, x[2])


@njit(**ORDERED)
def get9(tag, work, at):
    a, b, c = get3(tag, work, at), get3(tag, work, at + 3), get3(tag, work, at + 6)
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


@njit(**ORDERED)
def constant9(tag, array, k):
    """A constant 3 x 3 matrix in every lane."""
    o = zero(tag)
    a = array[k]
    return (
        o + a[0, 0], o + a[0, 1], o + a[0, 2],
        o + a[1, 0], o + a[1, 1], o + a[1, 2],
        o + a[2, 0], o + a[2, 1], o + a[2, 2],
    )  # fmt: skip


@njit(**ORDERED)
def plain9(array, k):
    a = array[k]
    return a[0, 0], a[0, 1], a[0, 2], a[1, 0], a[1, 1], a[1, 2], a[2, 0], a[2, 1], a[2, 2]


@njit(**ORDERED)
def half(array, i, at):
    """Three numbers of row i, from column ``at``."""
    return array[i, at], array[i, at + 1], array[i, at + 2]


@njit(**ORDERED)
def outward_body(tag, layout, k, q, v, trig, moving, work, H):
    """Fill R, l, ω, η of body k and its rows of H; its parent's must be there. About 200 flops for one dof.

    q, v are buffers of numbers; trig holds the angles reduced for sine and cosine. Rows of H lie in ``H``, six
    numbers each.
    """
    here = k * BODY
    parent = layout.parent[k]
    first, last, at = layout.v_start[k], layout.v_start[k + 1], layout.q_start[k]
    o = zero(tag)
    none = (o, o, o)
    omega, alpha, a, total = none, none, none, none
    if parent < 0:
        R = constant9(tag, layout.rotation, k)
    else:
        Rp = get9(tag, work, parent * BODY + ORIENTATION)
        R = compose(Rp, plain9(layout.rotation, k))
        total = apply(Rp, half(layout.position, k, 0))
        if moving:
            omega = get3(tag, work, parent * BODY + OMEGA)
            omega, alpha, a = across(omega, alpha, a, total, none, none)
    if layout.coordinates[k] == SCREWS:
        for i in range(first, last):
            axis, slide = half(layout.screws, i, 0), half(layout.screws, i, 3)
            angle = get(tag, q, at + i - first)
            h_omega, h_v = apply(R, axis), apply(R, slide)
            turns = axis[0] != 0.0 or axis[1] != 0.0 or axis[2] != 0.0
            slides = slide[0] != 0.0 or slide[1] != 0.0 or slide[2] != 0.0
            l = none
            if turns:
                s, c = sine_cosine(get(tag, trig, at + i - first))
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
                rate = get(tag, v, i)
                h_v = scale(rate, get3(tag, H, 6 * i + 3))
                omega, alpha, a = across(omega, alpha, a, l, scale(rate, h_omega), h_v)
    else:
        l = none
        if layout.coordinates[k] == POSE:
            l = apply(R, get3(tag, q, at))
            total = add(total, l)
            at += 3
        R = compose(R, from_quaternion(get(tag, q, at), get(tag, q, at + 1), get(tag, q, at + 2), get(tag, q, at + 3)))
        h_omega, h_v = none, none
        for i in range(first, last):
            w, u = apply(R, half(layout.screws, i, 0)), apply(R, half(layout.screws, i, 3))
            put3(tag, H, 6 * i, w)
            put3(tag, H, 6 * i + 3, u)
            if moving:
                h_omega = add(h_omega, scale(get(tag, v, i), w))
                h_v = add(h_v, scale(get(tag, v, i), u))
        if moving:
            omega, alpha, a = across(omega, alpha, a, l, h_omega, h_v)
    for i in range(9):
        put(tag, work, here + ORIENTATION + i, R[i])
    put3(tag, work, here + SHIFT, total)
    put3(tag, work, here + OMEGA, omega)
    put3(tag, work, here + ETA, alpha)
    put3(tag, work, here + ETA + 3, a)


@njit(**ORDERED)
def inertia_body(tag, layout, k, moving, work):
    """M(k) and ξ(k) = [ω × Jω; m ω × (ω × p)] of body k, world orientation; M as 21 numbers [J 6; m p~ 9; m 1 6]."""
    here = k * BODY
    R = get9(tag, work, here + ORIENTATION)
    m = layout.mass[k]
    b = layout.J[k]
    J = rotate_symmetric(R, (b[0, 0], b[0, 1], b[0, 2], b[1, 1], b[1, 2], b[2, 2]))
    c = half(layout.com, k, 0)
    p = apply(R, (m * c[0], m * c[1], m * c[2]))
    o = zero(tag)
    for i in range(6):
        put(tag, work, here + INERTIA + i, J[i])
    skew = (o, -1.0 * p[2], p[1], p[2], o, -1.0 * p[0], -1.0 * p[1], p[0], o)
    for i in range(9):
        put(tag, work, here + INERTIA + 6 + i, skew[i])
    mass = (o + m, o, o, o + m, o, o + m)
    for i in range(6):
        put(tag, work, here + INERTIA + 15 + i, mass[i])
    put(tag, work, here + BOUNDS, o + (abs(b[0, 0]) + abs(b[1, 1]) + abs(b[2, 2])))
    put(tag, work, here + BOUNDS + 1, o + abs(m))
    if moving:
        omega = get3(tag, work, here + OMEGA)
        put3(tag, work, here + FORCE, cross(omega, symmetric_apply(J, omega)))
        put3(tag, work, here + FORCE + 3, cross(omega, cross(omega, p)))
    else:
        put3(tag, work, here + FORCE, (o, o, o))
        put3(tag, work, here + FORCE + 3, (o, o, o))


@njit(**ORDERED)
def load_angles(tag, rows, width, first, count, reduced, buffer):
    """Copy rows into lanes, reduced to principal angles where asked; spare lanes repeat the last row."""
    lanes = size(tag, 1)
    for l in range(lanes):
        at = (first + min(l, count - 1)) * width
        for i in range(width):
            x = rows[at + i]
            buffer[i * lanes + l] = principal(x) if reduced else x
