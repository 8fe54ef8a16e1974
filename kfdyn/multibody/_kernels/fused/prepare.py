"""The making of a plan: bodies numbered, their frames turned, places handed out; once for each layout."""

from math import atan2, sqrt

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import ORDERED, ORDERED_SWEEP
from kfdyn._kernels.vectors import item, pointer, set_item
from kfdyn.multibody._kernels.facts import facts_of
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.plan import (
    _BODY,
    _FRAME,
    _FREE,
    _LOOKS_AT,
    _NEXT,
    _PLACE,
    _SLOT,
    _WAITING,
    _YOUNGEST,
    ALL_MASS,
    ALL_MOMENT,
    ARMATURE,
    BALL,
    BASE,
    COLUMN,
    COLUMN_END,
    END,
    FIRST,
    FORCE_ROW,
    IN,
    INDEX,
    KIND,
    LOOSE,
    MASS,
    MOMENT,
    OUT,
    OWN_END,
    PARENT,
    POSE,
    POSITION,
    REAL,
    REVOLUTE,
    ROTATION,
    SCREWS,
    SLIDE,
    SNAP,
    SPLIT,
    TWIST,
    TWISTED,
    V_END,
    Q,
    V,
)
from kfdyn.multibody._kernels.fused.spatial import apply, apply_transposed, compose, cross, dot, scale
from kfdyn.multibody.hinge import Coordinates

_SCREWS, _POSE = int(Coordinates.SCREWS), int(Coordinates.POSE)

#: Of a rotation's entries: less is rounding.
_NOTHING = 1e-15

#: Bodies outboard of one that are very many: the bound of their moment of inertia, which grows with their number's
#: cube, says little then.
_MANY = 1000


@njit(**ORDERED_SWEEP)
def prepare(layout):
    """Tables index and real, and the numbers of slots and of snaps; about 300 flops for each body, done once."""
    n = layout.parent.size
    index, real = np.zeros((n + 1) * INDEX + layout.armature.size, np.int64), np.zeros((n + 1) * REAL)
    facts = facts_of(layout)
    i, r = pointer(index), pointer(real)
    _number(facts, i)
    snaps = _close(facts.n, i)
    _turn_frames(facts, i, r)
    return index, real, _assign_slots(facts.n, i), snaps


@njit(**ORDERED)
def _number(facts, index):
    """Count bodies, each followed by all that is outboard of it, and their dofs; note what each hinge is."""
    for t in range(facts.n + 1):
        set_item(index, t * INDEX + _YOUNGEST, -1)
        set_item(index, t * INDEX + _LOOKS_AT, -1)
    for t in range(facts.n):
        k = item(facts.order, t)
        youngest = (item(facts.parent, k) + 1) * INDEX + _YOUNGEST
        set_item(index, (k + 1) * INDEX + _NEXT, item(index, youngest))
        set_item(index, youngest, k)
    left, column, body = 0, 0, 0
    for t in range(1, facts.n + 1):
        k = item(index, body * INDEX + _YOUNGEST)
        while k >= 0:
            set_item(index, left * INDEX + _WAITING, k)
            left += 1
            k = item(index, (k + 1) * INDEX + _NEXT)
        left -= 1
        k = item(index, left * INDEX + _WAITING)
        body = k + 1
        row, parent = t * INDEX, item(index, (item(facts.parent, k) + 1) * INDEX + _PLACE)
        set_item(index, body * INDEX + _PLACE, t)
        set_item(index, row + _BODY, k)
        set_item(index, row + PARENT, parent)
        set_item(index, row + KIND, _kind(facts, k))
        set_item(index, row + Q, item(facts.q_start, k))
        set_item(index, row + V, item(facts.v_start, k))
        set_item(index, row + V_END, item(facts.v_start, k + 1))
        set_item(index, row + FORCE_ROW, 6 * k)
        if item(index, parent * INDEX + _LOOKS_AT) < 0 and item(index, row + KIND) == REVOLUTE:
            set_item(index, parent * INDEX + _LOOKS_AT, k)
        set_item(index, row + COLUMN, column)
        for i in range(item(facts.v_start, k), item(facts.v_start, k + 1)):
            set_item(index, (facts.n + 1) * INDEX + column, i)
            column += 1
        set_item(index, row + OWN_END, column)


@njit(**ORDERED)
def _kind(facts, k):
    if item(facts.coordinates, k) != _SCREWS:
        return POSE if item(facts.coordinates, k) == _POSE else BALL
    i = item(facts.v_start, k)
    if item(facts.v_start, k + 1) != i + 1:
        return SCREWS
    turns, slides = _three(facts.screws, 6 * i), _three(facts.screws, 6 * i + 3)
    if dot(turns, turns) == 0.0:
        return SLIDE
    return REVOLUTE if dot(slides, slides) == 0.0 else SCREWS


@njit(**INLINED)
def _three(a, i):
    return item(a, i), item(a, i + 1), item(a, i + 2)


@njit(**INLINED)
def _nine(a, i):
    x, y, z = _three(a, i), _three(a, i + 3), _three(a, i + 6)
    return x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]


@njit(**INLINED)
def _transposed(R):
    return R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]


@njit(**ORDERED)
def _turn_frames(facts, index, real):
    """Choose the bodies' frames, describe the bodies in them, and bound what is outboard of each."""
    for i in range(3):
        set_item(real, _FRAME + 4 * i, 1.0)
    for t in range(1, facts.n + 1):
        row, body = t * INDEX, t * REAL
        k = item(index, row + _BODY)
        S = _frame(facts, k, item(index, row + KIND), item(index, row + _LOOKS_AT))
        for i in range(9):
            set_item(real, body + _FRAME + i, S[i])
        _describe(facts, k, _nine(real, item(index, row + PARENT) * REAL + _FRAME), S, row, body, index, real)
    for step in range(facts.n):
        t = facts.n - step
        _bound(facts, item(index, t * INDEX + _BODY), t * INDEX, t * REAL, index, real)


@njit(**ORDERED)
def _frame(facts, k, kind, child):
    """The body's frame in the layout's: z the axis, x the common normal with the axis of ``child``."""
    if kind != REVOLUTE:
        return 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0
    z = _three(facts.screws, 6 * item(facts.v_start, k))
    z = scale(1.0 / sqrt(dot(z, z)), z)
    x = (0.0, 0.0, 0.0)
    if child >= 0:
        x = cross(z, apply(_nine(facts.rotation, 9 * child), _three(facts.screws, 6 * item(facts.v_start, child))))
    if dot(x, x) < _NOTHING * _NOTHING:  # parallel axes, or none: any x will do
        x = (1.0, 0.0, 0.0) if abs(z[0]) < 0.7 else (0.0, 1.0, 0.0)
    for _ in range(2):  # twice is enough, even if x was made of rounding
        x = scale(1.0 / sqrt(dot(x, x)), x)
        d = dot(x, z)
        x = (x[0] - d * z[0], x[1] - d * z[1], x[2] - d * z[2])
    x = scale(1.0 / sqrt(dot(x, x)), x)
    y = cross(z, x)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@njit(**ORDERED)
def _describe(facts, k, Sp, S, row, body, index, real):
    """The body's floats, seen in frames Sp of its parent and S of its own."""
    R = compose(_transposed(Sp), compose(_nine(facts.rotation, 9 * k), S))
    if item(index, row + KIND) == REVOLUTE:  # R = Rz(a) Rx(alpha) Rz(b)
        c, s = 1.0, 0.0
        if abs(R[2]) > _NOTHING:
            set_item(index, row + TWISTED, 1)
            r = sqrt(R[2] * R[2] + R[5] * R[5])
            c, s = -R[5] / r, R[2] / r
        tilt = (c, s, R[8], s * R[2] - c * R[5], atan2(-(c * R[1] + s * R[4]), c * R[0] + s * R[3]))
        for i in range(5):
            set_item(real, body + TWIST + i, tilt[i])
    m, p = item(facts.mass, k), apply_transposed(S, _three(facts.com, 3 * k))
    position = apply_transposed(Sp, _three(facts.position, 3 * k))
    J = compose(_transposed(S), compose(_nine(facts.J, 9 * k), S))
    for i in range(9):
        set_item(real, body + ROTATION + i, R[i])
    for i in range(3):
        set_item(real, body + POSITION + i, position[i])
        set_item(real, body + FIRST + i, m * p[i])
    # J = j + x g* + g x* + y h* + h y* with j = J_zz, g = (., J_xy, J_xz), h = (0, ., J_yz): cheap to turn
    moment = (J[0], J[1], J[2], J[4], J[5], J[8])
    split = (0.5 * (J[0] - J[8]), J[1], J[2], 0.5 * (J[4] - J[8]), J[5], J[8])
    for i in range(6):
        set_item(real, body + MOMENT + i, moment[i])
        set_item(real, body + SPLIT + i, split[i])
    set_item(real, body + MASS, m)
    set_item(real, body + ALL_MASS, m)
    set_item(real, body + ALL_MOMENT, abs(J[0]) + abs(J[4]) + abs(J[8]))
    if item(index, row + V) < item(index, row + V_END):
        set_item(real, body + ARMATURE, item(facts.armature, item(index, row + V)))


@njit(**ORDERED)
def _bound(facts, k, row, body, index, real):
    """Mass outboard, and a bound of its moment of inertia about the hinge point; loose where slides change it."""
    p, l = item(index, row + PARENT), _three(real, body + POSITION)
    mass, moment = item(real, body + ALL_MASS), item(real, body + ALL_MOMENT)
    reach = mass * dot(l, l)
    up = p * REAL
    set_item(real, up + ALL_MASS, item(real, up + ALL_MASS) + mass)
    set_item(real, up + ALL_MOMENT, item(real, up + ALL_MOMENT) + (moment + 2.0 * sqrt(moment * reach) + reach))
    kind = item(index, row + KIND)
    loose = kind == POSE or item(index, row + LOOSE) > 0
    if SLIDE <= kind <= SCREWS:
        for i in range(item(facts.v_start, k), item(facts.v_start, k + 1)):
            slide = _three(facts.screws, 6 * i + 3)
            loose = loose or dot(slide, slide) > 0.0
    if item(index, row + END) - row // INDEX > _MANY:
        set_item(index, p * INDEX + LOOSE, 2)
    elif loose and item(index, p * INDEX + LOOSE) == 0:
        set_item(index, p * INDEX + LOOSE, 1)


@njit(**ORDERED)
def _assign_slots(n, index):
    """Hand a body's slot on to its parent, so that a chain needs one and a tree as many as branches are open."""
    left, used = 0, 1
    for step in range(n):
        row = (n - step) * INDEX
        p, slot = item(index, row + PARENT), item(index, row + _SLOT)
        up = p * INDEX + _SLOT
        set_item(index, row + IN, slot)
        if p > 0 and item(index, up) == 0:
            if slot == 0 and left > 0:
                left -= 1
                slot = item(index, left * INDEX + _FREE)
            elif slot == 0:
                slot = used
                used += 1
            set_item(index, up, slot)
            set_item(index, row + OUT, slot)
        else:
            set_item(index, row + BASE, item(index, up))
            set_item(index, row + OUT, item(index, up))
            if slot > 0:
                set_item(index, left * INDEX + _FREE, slot)
                left += 1
    return used


@njit(**ORDERED)
def _close(n, index):
    """END, COLUMN_END and SNAP of every body; how many columns are kept in all."""
    for t in range(n + 1):
        set_item(index, t * INDEX + END, t + 1)
        set_item(index, t * INDEX + COLUMN_END, item(index, t * INDEX + OWN_END))
    for step in range(n):
        row = (n - step) * INDEX
        up = item(index, row + PARENT) * INDEX
        set_item(index, up + END, max(item(index, up + END), item(index, row + END)))
        set_item(index, up + COLUMN_END, max(item(index, up + COLUMN_END), item(index, row + COLUMN_END)))
    snaps = 0
    for t in range(1, n + 1):
        row, end = t * INDEX, item(index, t * INDEX + END)
        set_item(index, row + SNAP, -1)
        if end > t + 1 and item(index, row + INDEX + END) < end:  # more than one child
            set_item(index, row + SNAP, snaps)
            snaps += item(index, row + COLUMN_END) - item(index, row + OWN_END)
    return snaps
