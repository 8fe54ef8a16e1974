"""The operational space compliance of frames: the filter's gains of all bodies, then a tree of those that matter.

Kept are bodies with frames, and bodies where branches with frames meet: fewer than 2k for k frames. A force on kept
body b is filtered hinge by hinge down to the next kept body p, or the world: X = ψ(p, b), and the hinges between answer
with S = Σ (h x)* d⁻¹ (h x), x being what has come to them of X. Then, from the roots to the leaves,

    Ω(b, b) = X* Ω(p, p) X + S,   Ω(b, c) = X* Ω(p, c) for all c kept before      THEORY section 4, SKO 48–50

and a frame is its body seen from a lever's length away.
"""

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import align_stack, all_beyond, beyond, get, item, put, zero
from kfdyn.dynamics._kernels.fused.articulated import DOF, GAIN, INVERSE, filter_room, gather_body, lay_out, one_dof
from kfdyn.multibody._kernels.fused.memory import clear, get3, get9, lanes_at, put3, real9, write_out
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import BODY, ORIENTATION, SHIFT, sweep_outward
from kfdyn.multibody._kernels.fused.plan import (
    _FRAME,
    FORCE_ROW,
    KIND,
    PARENT,
    REVOLUTE,
    SLIDE,
    V_END,
    V,
    at,
)
from kfdyn.multibody._kernels.fused.spatial import add, add_cross, apply, apply_transposed, dot, dot6, scale

#: Numbers of a path: X column by column 36, h x 6, S row by row 36 (what is above its diagonal is not used).
_SEEN, _ANSWER, _PATH = 36, 42, 78


@njit(**INLINED)
def compliance_room(plan, lanes, frames, kept):
    """How many floats :func:`operational_space_compliance` works in."""
    return filter_room(plan, lanes) + (_PATH + 36 * (frames * frames + (kept + 1) * (kept + 1))) * lanes


@njit(**INLINED)
def operational_space_compliance(tag, plan, k, place, arms, kept, rank, q, first, last, room, out):
    """Ω of k frames, ``arms`` (3 k,) away from bodies at ``place`` (k,), for rows first … last into the flat ``out``.

    Symmetric to the bit. Whether all hinges have inertia. O(N + k²): beside the filter about 150 flops for a hinge that
    is inboard of a frame, 400 for each pair of ``kept`` bodies.
    """
    n, nq, lanes, width = plan.n, plan.nq, size(tag, 1), kept + 1
    sums, dofs, H, work, rest = lay_out(tag, plan, room)
    path, blocks = rest, beyond(rest, _PATH * lanes)
    entries = beyond(blocks, 36 * width * width * lanes)
    align_stack()
    clear(tag, blocks, 36 * width * width)
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        sweep_outward(tag, plan, q, start * nq, step * nq, q, 0, 0, False, work, H)
        least = zero(tag) + np.inf
        for back in range(n):
            least = gather_body(tag, plan, n - back, q, 0, 0, q, False, 0, 0, False, work, H, dofs, sums, least)
        if not all_beyond(least, 0.0):
            return False
        for t in range(1, n + 1):
            if item(rank, t):
                inboard = _filter_force(tag, plan, t, rank, work, H, dofs, path)
                _answer_force(tag, item(rank, t), item(rank, inboard), width, path, blocks)
        for f in range(k):
            for g in range(f + 1):
                block = 36 * (width * item(rank, item(place, f)) + item(rank, item(place, g)))
                _shift_block(tag, k, f, g, place, arms, block, work, blocks, entries)
        write_out(tag, entries, 36 * k * k, out, start * 36 * k * k, step * 36 * k * k)
    return True


@njit(**ORDERED)
def place_frames(plan, bodies, positions, place, arms, rank):
    """Where frames at ``positions`` (3 k,) on ``bodies`` (k,) are in the plan; how many bodies are kept.

    Kept bodies are numbered from 1 in the plan's order in ``rank``, the others are 0 there.
    """
    kept = _keep_bodies(plan, bodies, place, rank)
    for f in range(bodies.size):  # the plan has turned the bodies' frames
        arm = apply_transposed(
            real9(plan, place[f], _FRAME), (positions[3 * f], positions[3 * f + 1], positions[3 * f + 2])
        )
        arms[3 * f], arms[3 * f + 1], arms[3 * f + 2] = arm
    return kept


@njit(**ORDERED)
def _keep_bodies(plan, bodies, place, rank):
    """Number the kept bodies from 1 in the plan's order, the others 0; where frames are; how many are kept."""
    n = plan.n
    where, branches = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    for t in range(1, n + 1):
        where[at(plan, t, FORCE_ROW) // 6] = t
    for f in range(bodies.size):
        place[f] = where[bodies[f]]
        rank[place[f]] = 1
    for back in range(n):
        t = n - back
        if branches[t] > 1:
            rank[t] = 1
        if rank[t] or branches[t]:
            branches[at(plan, t, PARENT)] += 1
    kept = 0
    for t in range(1, n + 1):
        if rank[t]:
            kept += 1
            rank[t] = kept
    return kept


@njit(**INLINED)
def _filter_force(tag, plan, t, rank, work, H, dofs, path):
    """X = ψ(p, t) and S of unit forces on body t, p being the kept body next inboard, or the world; return p."""
    for i in range(36):
        put(tag, path, i, zero(tag) + (1.0 if i % 7 == 0 else 0.0))
        put(tag, path, _ANSWER + i, zero(tag))
    while True:
        kind, i = at(plan, t, KIND), at(plan, t, V)
        if kind <= SLIDE:
            axis, l, a, b = one_dof(tag, plan, t, work, H, dofs)
            for c in range(6):
                n, f = get3(tag, path, 6 * c), get3(tag, path, 6 * c + 3)
                seen = dot(axis, n) if kind == REVOLUTE else dot(axis, f)
                put(tag, path, _SEEN + c, seen)
                put3(tag, path, 6 * c, add(add_cross(n, l, f), scale(-1.0 * seen, a)))
                put3(tag, path, 6 * c + 3, add(f, scale(-1.0 * seen, b)))
            _add_answer(tag, get(tag, dofs, DOF * i + INVERSE), path)
        else:
            l = get3(tag, work, t * BODY + SHIFT)
            _filter_at_hinge(tag, i, at(plan, t, V_END), l, H, dofs, path)
        t = at(plan, t, PARENT)
        if t == 0 or item(rank, t):
            return t


@njit(**ORDERED)
def _filter_at_hinge(tag, first, last, l, H, dofs, path):
    for i in range(first, last):
        gain = DOF * i + GAIN
        for c in range(6):
            n, f = get3(tag, path, 6 * c), get3(tag, path, 6 * c + 3)
            seen = dot6(get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3), n, f)
            put(tag, path, _SEEN + c, seen)
            put3(tag, path, 6 * c, add(n, scale(-1.0 * seen, get3(tag, dofs, gain))))
            put3(tag, path, 6 * c + 3, add(f, scale(-1.0 * seen, get3(tag, dofs, gain + 3))))
        _add_answer(tag, get(tag, dofs, DOF * i + INVERSE), path)
    for c in range(6):
        put3(tag, path, 6 * c, add_cross(get3(tag, path, 6 * c), l, get3(tag, path, 6 * c + 3)))


@njit(**INLINED)
def _add_answer(tag, inverse, path):
    """S += (h x)* d⁻¹ (h x)."""
    for i in range(6):
        weighed = inverse * get(tag, path, _SEEN + i)
        for j in range(i + 1):
            place = _ANSWER + 6 * i + j
            put(tag, path, place, get(tag, path, place) + weighed * get(tag, path, _SEEN + j))


@njit(**INLINED)
def _answer_force(tag, r, p, width, path, blocks):
    """Blocks of Ω between kept body r and those numbered before it, and its own; p is the next one inboard.

    Without one, r has nothing in common with any before it: those blocks are 0 and have never been anything else.
    """
    if p:
        for c in range(1, r):
            above, here, there = 36 * (width * p + c), 36 * (width * r + c), 36 * (width * c + r)
            for i in range(6):
                for j in range(6):
                    value = _column_by(tag, path, 6 * i, blocks, above + j, 6)
                    put(tag, blocks, here + 6 * i + j, value)
                    put(tag, blocks, there + 6 * j + i, value)
    own, above = 36 * (width * r + r), 36 * (width * p + p)
    for j in range(6):
        if p:
            for i in range(6):  # a column of Ω(p, p) X; the place of h x is free now
                put(tag, path, _SEEN + i, _column_by(tag, path, 6 * j, blocks, above + 6 * i, 1))
        for i in range(j, 6):
            value = get(tag, path, _ANSWER + 6 * i + j)
            if p:
                value = value + _column_by(tag, path, 6 * i, path, _SEEN, 1)
            put(tag, blocks, own + 6 * i + j, value)
            put(tag, blocks, own + 6 * j + i, value)


@njit(**INLINED)
def _column_by(tag, path, column, values, start, step):
    """Column of X times six numbers."""
    total = get(tag, path, column) * get(tag, values, start)
    for i in range(1, 6):
        total = total + get(tag, path, column + i) * get(tag, values, start + step * i)
    return total


@njit(**INLINED)
def _shift_block(tag, k, f, g, place, arms, block, work, blocks, entries):
    """Ω(f, g) = φ* Ω φ from the bodies' origins to the frames', and its mirror image Ω(g, f)."""
    right, left = _arm(tag, g, place, arms, work), _arm(tag, f, place, arms, work)
    for i in range(6):
        row = block + 6 * i
        x, y = get3(tag, blocks, row), get3(tag, blocks, row + 3)
        y = add_cross(y, x, right)
        for j in range(3):
            put(tag, entries, 6 * k * (6 * f + i) + 6 * g + j, x[j])
            put(tag, entries, 6 * k * (6 * f + i) + 6 * g + 3 + j, y[j])
    rows = 6 * k * 6 * f + 6 * g
    for j in range(6):
        low = rows + j
        x = (get(tag, entries, low), get(tag, entries, low + 6 * k), get(tag, entries, low + 12 * k))
        low = rows + 18 * k + j
        y = (get(tag, entries, low), get(tag, entries, low + 6 * k), get(tag, entries, low + 12 * k))
        y = add_cross(y, x, left)
        for i in range(3):
            put(tag, entries, low + 6 * k * i, y[i])
    for i in range(6):
        for j in range(i if f == g else 6):
            put(tag, entries, 6 * k * (6 * g + j) + 6 * f + i, get(tag, entries, 6 * k * (6 * f + i) + 6 * g + j))


@njit(**INLINED)
def _arm(tag, f, place, arms, work):
    """From the body's origin to the frame's, world orientation."""
    R = get9(tag, work, item(place, f) * BODY + ORIENTATION)
    return apply(R, (item(arms, 3 * f), item(arms, 3 * f + 1), item(arms, 3 * f + 2)))
