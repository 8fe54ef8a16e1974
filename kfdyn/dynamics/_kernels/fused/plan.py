"""What a sweep needs of each body, side by side: frames turned so that hinges are simple, places for what it keeps.

A body on one rotation gets a frame of its own whose z is the axis and whose x is the common normal of the axis and the
next one. Then Rz(a) Rx(alpha) Rz(b + q) leads from the parent's frame to it, with a = 0 along a chain (Denavit and
Hartenberg's angles; the origin stays where it is). No answer depends on the choice of these frames.
"""

from math import atan2, hypot, sqrt
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from kfdyn.dynamics._kernels.fused.numbers import INLINED
from kfdyn.dynamics._kernels.fused.spatial import apply, apply_transposed, compose, cross, dot, scale
from kfdyn.estimation._kernels.sizes import ORDERED
from kfdyn.estimation._kernels.vectors import item, pointer
from kfdyn.multibody.hinge import Coordinates

_SCREWS, _POSE = int(Coordinates.SCREWS), int(Coordinates.POSE)

#: Columns of ``index``. Bodies are counted from 1 in sweep order; 0 is the world. Slots hold what a gather sums up: a
#: body's sum so far is at IN; with its own part it is added to what is at BASE and put at OUT. Slot 0 is always zero.
#: LOOSE: something outboard slides. FORCE_ROW: where the body's external force is in a row of such.
PARENT, KIND, TWISTED, Q, V, V_END, FORCE_ROW, IN, BASE, OUT, LOOSE, INDEX = range(12)

#: Kinds of hinges.
REVOLUTE, SCREWS, BALL, POSE = 0, 1, 2, 3

#: Columns of ``real``: rotation 9, cosine and sine of a and of alpha, b, position of the hinge in the parent's frame 3,
#: moment of inertia about the hinge point 6, m p 3, m; the moment as j + sym(x g) + sym(y h), see below; the
#: armature of the first dof; mass of all outboard, and a bound of their moment of inertia where that is constant.
ROTATION, TWIST, TILT, OFFSET, POSITION, MOMENT, FIRST, MASS = 0, 9, 11, 13, 14, 17, 23, 26
SPLIT, ARMATURE, ALL_MASS, ALL_MOMENT, REAL = 27, 33, 34, 35, 36

#: Of a rotation's entries: less is rounding.
_NOTHING = 1e-15


class Plan(NamedTuple):
    """Pointers to tables over bodies (row 0 is the world) and dofs, and sizes."""

    index: Any
    real: Any
    screws: Any
    armature: Any
    n: int
    nq: int
    nv: int
    slots: int


@njit(**INLINED)
def of(plan, t, column):
    """A float of body t."""
    return item(plan.real, t * REAL + column)


@njit(**INLINED)
def at(plan, t, column):
    """An index of body t."""
    return item(plan.index, t * INDEX + column)


def tables(layout):
    """The tables of a plan, index and real: those of a layout that has been prepared, or room for them."""
    raise NotImplementedError("called from compiled code only")


@overload(tables)
def _tables(layout):
    if "index" in layout.fields:
        return lambda layout: (layout.index, layout.real)

    def room(layout):
        n = layout.parent.size
        return np.zeros((n + 1) * INDEX, np.int64), np.zeros((n + 1) * REAL)

    return room


@njit(**INLINED)
def planned(layout, index, real):
    """The plan of a layout."""
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    slots = _slots(layout, index, real)
    return Plan(
        pointer(index),
        pointer(real),
        pointer(layout.screws),
        pointer(layout.armature),
        layout.parent.size,
        nq,
        nv,
        slots,
    )


def _slots(layout, index, real):
    """Number of slots, the tables being filled; about 300 flops for each body, unless that was done before."""
    raise NotImplementedError("called from compiled code only")


@overload(_slots)
def _slots_of(layout, index, real):
    if "slots" in layout.fields:
        return lambda layout, index, real: layout.slots
    return lambda layout, index, real: _prepare(layout, index, real)


@njit(**ORDERED)
def _prepare(layout, index, real):
    n = layout.parent.size
    place, child, frame = np.zeros(n + 1, np.int64), np.full(n + 1, -1), np.zeros((n + 1) * 9)
    for t in range(n):  # parents first
        k = layout.order[t]
        place[k] = t + 1
        row, parent = (t + 1) * INDEX, 0
        if layout.parent[k] >= 0:
            parent = place[layout.parent[k]]
        index[row + PARENT] = parent
        index[row + KIND] = _kind(layout, k)
        index[row + Q], index[row + V], index[row + V_END] = layout.q_start[k], layout.v_start[k], layout.v_start[k + 1]
        index[row + FORCE_ROW] = 6 * k
        if child[parent] < 0 and index[row + KIND] == REVOLUTE:
            child[parent] = k
    for i in range(3):
        frame[4 * i] = 1.0
    for t in range(n):
        k = layout.order[t]
        Sp = _nine(frame, 9 * index[(t + 1) * INDEX + PARENT])
        S = _frame(layout, k, index[(t + 1) * INDEX + KIND], child[t + 1])
        for i in range(9):
            frame[9 * (t + 1) + i] = S[i]
        _describe(layout, k, Sp, S, (t + 1) * INDEX, (t + 1) * REAL, index, real)
    _bound(layout, index, real)
    return _assign_slots(n, index)


@njit(**ORDERED)
def _nine(a, i):
    return a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5], a[i + 6], a[i + 7], a[i + 8]


@njit(**ORDERED)
def _matrix(a, k):
    return a[k, 0, 0], a[k, 0, 1], a[k, 0, 2], a[k, 1, 0], a[k, 1, 1], a[k, 1, 2], a[k, 2, 0], a[k, 2, 1], a[k, 2, 2]


@njit(**ORDERED)
def _transposed(R):
    return R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]


@njit(**ORDERED)
def _row(a, i, j):
    return a[i, j], a[i, j + 1], a[i, j + 2]


@njit(**ORDERED)
def _kind(layout, k):
    if layout.coordinates[k] != _SCREWS:
        return POSE if layout.coordinates[k] == _POSE else BALL
    i = layout.v_start[k]
    if layout.v_start[k + 1] != i + 1:
        return SCREWS
    turns, slides = _row(layout.screws, i, 0), _row(layout.screws, i, 3)
    return REVOLUTE if dot(turns, turns) > 0.0 and dot(slides, slides) == 0.0 else SCREWS


@njit(**ORDERED)
def _frame(layout, k, kind, child):
    """The body's frame in the layout's: z the axis, x the common normal with the axis of ``child``."""
    if kind != REVOLUTE:
        return 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0
    z = _row(layout.screws, layout.v_start[k], 0)
    z = scale(1.0 / sqrt(dot(z, z)), z)
    x = (0.0, 0.0, 0.0)
    if child >= 0:
        x = cross(z, apply(_matrix(layout.rotation, child), _row(layout.screws, layout.v_start[child], 0)))
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
def _describe(layout, k, Sp, S, row, body, index, real):
    """The body's floats, seen in frames Sp of its parent and S of its own."""
    R = compose(_transposed(Sp), compose(_matrix(layout.rotation, k), S))
    if index[row + KIND] == REVOLUTE:  # R = Rz(a) Rx(alpha) Rz(b)
        c, s = 1.0, 0.0
        if abs(R[2]) > _NOTHING:
            index[row + TWISTED] = 1
            r = hypot(R[2], R[5])
            c, s = -R[5] / r, R[2] / r
        real[body + TWIST], real[body + TWIST + 1] = c, s
        real[body + TILT], real[body + TILT + 1] = R[8], s * R[2] - c * R[5]
        real[body + OFFSET] = atan2(-(c * R[1] + s * R[4]), c * R[0] + s * R[3])
    m, p = layout.mass[k], apply_transposed(S, _row(layout.com, k, 0))
    position = apply_transposed(Sp, _row(layout.position, k, 0))
    J = compose(_transposed(S), compose(_matrix(layout.J, k), S))
    for i in range(9):
        real[body + ROTATION + i] = R[i]
    for i in range(3):
        real[body + POSITION + i], real[body + FIRST + i] = position[i], m * p[i]
    real[body + MASS] = m
    moment = (J[0], J[1], J[2], J[4], J[5], J[8])
    # J = j + x g* + g x* + y h* + h y* with j = J_zz, g = (., J_xy, J_xz), h = (0, ., J_yz): cheap to turn
    split = (0.5 * (J[0] - J[8]), J[1], J[2], 0.5 * (J[4] - J[8]), J[5], J[8])
    for i in range(6):
        real[body + MOMENT + i], real[body + SPLIT + i] = moment[i], split[i]
    if index[row + V] < index[row + V_END]:
        real[body + ARMATURE] = layout.armature[index[row + V]]


@njit(**ORDERED)
def _bound(layout, index, real):
    """Mass outboard, and a bound of its moment of inertia about the hinge point; loose where slides change it."""
    n = layout.parent.size
    for t in range(1, n + 1):
        b = t * REAL
        real[b + ALL_MASS] = abs(real[b + MASS])
        real[b + ALL_MOMENT] = abs(real[b + MOMENT]) + abs(real[b + MOMENT + 3]) + abs(real[b + MOMENT + 5])
    for step in range(n):
        t = n - step
        b, k, p = t * REAL, layout.order[t - 1], index[t * INDEX + PARENT]
        l = (real[b + POSITION], real[b + POSITION + 1], real[b + POSITION + 2])
        reach, moment = real[b + ALL_MASS] * dot(l, l), real[b + ALL_MOMENT]
        real[p * REAL + ALL_MASS] += real[b + ALL_MASS]
        real[p * REAL + ALL_MOMENT] += moment + 2.0 * sqrt(moment * reach) + reach
        loose = index[t * INDEX + KIND] == POSE or index[t * INDEX + LOOSE] == 1
        if index[t * INDEX + KIND] == SCREWS:
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                slide = _row(layout.screws, i, 3)
                loose = loose or dot(slide, slide) > 0.0
        if loose:
            index[p * INDEX + LOOSE] = 1


@njit(**ORDERED)
def _assign_slots(n, index):
    """Hand a body's slot on to its parent, so that a chain needs one and a tree as many as branches are open."""
    own, free, left, used = np.zeros(n + 1, np.int64), np.empty(n + 1, np.int64), 0, 1
    for step in range(n):
        t = n - step
        row = t * INDEX
        p, slot = index[row + PARENT], own[t]
        index[row + IN] = slot
        if p > 0 and own[p] == 0:
            if slot == 0 and left > 0:
                left -= 1
                slot = free[left]
            elif slot == 0:
                slot = used
                used += 1
            own[p] = slot
            index[row + OUT] = slot
        else:
            index[row + BASE], index[row + OUT] = own[p], own[p]
            if slot > 0:
                free[left] = slot
                left += 1
    return used
