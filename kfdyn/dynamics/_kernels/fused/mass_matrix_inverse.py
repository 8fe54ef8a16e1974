"""The inverse of the mass matrix: filter and smoother for all unit measurements at once, hinge by hinge.

Column i is a measurement of 1 at dof i and 0 elsewhere. On its way to the root the filter carries z(i), on its way back
the smoother λ(i), six numbers each, kept for all columns side by side: at hinge k all columns outboard are served
together, and none waits for another. Entries of unrelated dofs k, i come from z(k) and λ(i) at the body where their
branches meet (THEORY section 4): 𝓜⁻¹(k, i) = −z(k)* λ(i).
"""

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import align_stack, beyond, get, put, zero
from kfdyn.dynamics._kernels.fused.articulated import DOF, GAIN, INVERSE, filter_room, gather_body, lay_out, one_dof
from kfdyn.multibody._kernels.fused.memory import clear, get3, lanes_at, put3, settle, write_out
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import BODY, SHIFT, sweep_outward
from kfdyn.multibody._kernels.fused.plan import (
    COLUMN,
    COLUMN_END,
    END,
    KIND,
    OWN_END,
    REVOLUTE,
    SLIDE,
    SNAP,
    V_END,
    V,
    at,
    entry,
)
from kfdyn.multibody._kernels.fused.spatial import add, add_cross, dot, dot6, scale


@njit(**INLINED)
def mass_matrix_inverse_room(plan, lanes):
    """How many floats :func:`mass_matrix_inverse` works in."""
    return filter_room(plan, lanes) + (plan.nv * (6 + plan.nv) + plan.snaps * 6) * lanes


@njit(**INLINED)
def mass_matrix_inverse(tag, plan, q, first, last, room, out):
    """𝓜⁻¹ of rows first … last into the flat ``out``, symmetric to the bit; NaN as in forward dynamics.

    𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK) on unit vectors (SKO "mass-inverse"): O(N²), half of it by symmetry.
    """
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    sums, dofs, H, work, rest = lay_out(tag, plan, room)
    columns, snaps = rest, beyond(rest, nv * 6 * lanes)
    entries = beyond(snaps, plan.snaps * 6 * lanes)
    align_stack()
    clear(tag, entries, nv * nv)
    fine = True
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        sweep_outward(tag, plan, q, start * nq, step * nq, q, 0, 0, False, work, H)
        least = zero(tag) + np.inf
        for back in range(n):
            t = n - back
            least = gather_body(tag, plan, t, q, 0, 0, q, False, 0, 0, False, work, H, dofs, sums, least)
            measure_units(tag, plan, t, work, H, dofs, columns, snaps, entries)
        clear(tag, columns, 6 * nv)
        for t in range(1, n + 1):
            answer_units(tag, plan, t, work, H, dofs, columns, entries)
            if at(plan, t, SNAP) >= 0:
                _meet(tag, plan, t, columns, snaps, entries)
        write_out(tag, entries, nv * nv, out, start * nv * nv, step * nv * nv)
        if not settle(tag, least, out, start * nv * nv, step * nv * nv, nv * nv):
            fine = False
    return fine


@njit(**INLINED)
def measure_units(tag, plan, t, work, H, dofs, columns, snaps, entries):
    """−ε = h z of all columns outboard of hinge t, put in entries, −1 of its own; z⁺ = z + g ε, φ z⁺ (R86 8.3–8.8)."""
    own, end = at(plan, t, OWN_END), at(plan, t, COLUMN_END)
    if at(plan, t, SNAP) >= 0:
        place = 6 * (at(plan, t, SNAP) - own)
        for c in range(6 * own, 6 * end):
            put(tag, snaps, place + c, get(tag, columns, c))
    kind, i = at(plan, t, KIND), at(plan, t, V)
    if kind <= SLIDE:
        axis, l, a, b = one_dof(tag, plan, t, work, H, dofs)
        for c in range(own, end):
            n, f = get3(tag, columns, 6 * c), get3(tag, columns, 6 * c + 3)
            pull = dot(axis, n) if kind == REVOLUTE else dot(axis, f)
            put(tag, entries, i * plan.nv + entry(plan, c), pull)
            put3(tag, columns, 6 * c, add(add_cross(n, l, f), scale(-1.0 * pull, a)))
            put3(tag, columns, 6 * c + 3, add(f, scale(-1.0 * pull, b)))
        put3(tag, columns, 6 * own - 6, a)
        put3(tag, columns, 6 * own - 3, b)
    else:
        _measure_hinge(tag, plan, t, own, end, work, H, dofs, columns, entries)


@njit(**ORDERED)
def _measure_hinge(tag, plan, t, own, end, work, H, dofs, columns, entries):
    o, first = zero(tag), at(plan, t, V)
    l = get3(tag, work, t * BODY + SHIFT)
    for c in range(at(plan, t, COLUMN), end):
        n, f, begin = (o, o, o), (o, o, o), entry(plan, c)
        if c >= own:
            n, f, begin = get3(tag, columns, 6 * c), get3(tag, columns, 6 * c + 3), first
        for i in range(begin, at(plan, t, V_END)):
            pull = dot6(get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3), n, f)
            if c < own and i == begin:
                pull = o - 1.0
            put(tag, entries, i * plan.nv + entry(plan, c), pull)
            n = add(n, scale(-1.0 * pull, get3(tag, dofs, DOF * i + GAIN)))
            f = add(f, scale(-1.0 * pull, get3(tag, dofs, DOF * i + GAIN + 3)))
        put3(tag, columns, 6 * c, add_cross(n, l, f))
        put3(tag, columns, 6 * c + 3, f)


@njit(**INLINED)
def answer_units(tag, plan, t, work, H, dofs, columns, entries):
    """λ⁺ = φ*λ(p), a = ν − g*λ, λ += h*a of all columns outboard of hinge t and its own (R86 8.10–8.13)."""
    own, end, nv = at(plan, t, OWN_END), at(plan, t, COLUMN_END), plan.nv
    kind, i = at(plan, t, KIND), at(plan, t, V)
    if kind <= SLIDE:
        axis, l, a, b = one_dof(tag, plan, t, work, H, dofs)
        inverse = get(tag, dofs, DOF * i + INVERSE)
        c = own - 1
        alpha, acc = get3(tag, columns, 6 * c), get3(tag, columns, 6 * c + 3)
        put(tag, entries, i * nv + i, inverse - dot6(a, b, alpha, acc))
        for c in range(own, end):
            alpha, acc, j = get3(tag, columns, 6 * c), get3(tag, columns, 6 * c + 3), entry(plan, c)
            pull = get(tag, entries, i * nv + j) * inverse
            rate = (0.0 - pull - dot(a, alpha)) - dot(b, acc)
            put(tag, entries, i * nv + j, rate)
            put(tag, entries, j * nv + i, rate)
            acc = add_cross(acc, alpha, l)
            if kind == REVOLUTE:
                alpha = add(alpha, scale(rate, axis))
            else:
                acc = add(acc, scale(rate, axis))
            put3(tag, columns, 6 * c, alpha)
            put3(tag, columns, 6 * c + 3, acc)
    else:
        _answer_hinge(tag, plan, t, own, end, work, H, dofs, columns, entries)


@njit(**ORDERED)
def _answer_hinge(tag, plan, t, own, end, work, H, dofs, columns, entries):
    first, last, nv = at(plan, t, V), at(plan, t, V_END), plan.nv
    l = get3(tag, work, t * BODY + SHIFT)
    for c in range(at(plan, t, COLUMN), end):
        alpha, acc, j = get3(tag, columns, 6 * c), get3(tag, columns, 6 * c + 3), entry(plan, c)
        acc = add_cross(acc, alpha, l)
        for back in range(last - first):
            i = last - 1 - back
            rate = zero(tag) - dot6(get3(tag, dofs, DOF * i + GAIN), get3(tag, dofs, DOF * i + GAIN + 3), alpha, acc)
            if c >= own or i >= j:
                rate = rate - get(tag, entries, i * nv + j) * get(tag, dofs, DOF * i + INVERSE)
            if c >= own or i <= j:
                put(tag, entries, i * nv + j, rate)
                put(tag, entries, j * nv + i, rate)
            alpha = add(alpha, scale(rate, get3(tag, H, 6 * i)))
            acc = add(acc, scale(rate, get3(tag, H, 6 * i + 3)))
        put3(tag, columns, 6 * c, alpha)
        put3(tag, columns, 6 * c + 3, acc)


@njit(**ORDERED)
def _meet(tag, plan, t, columns, snaps, entries):
    """Entries between the branches that meet in body t."""
    nv = plan.nv
    place = 6 * (at(plan, t, SNAP) - at(plan, t, OWN_END))
    branch, end = t + 1, at(plan, t, END)
    while branch < end:
        after = at(plan, branch, COLUMN_END)
        for c in range(at(plan, branch, COLUMN), after):
            alpha, acc, i = get3(tag, columns, 6 * c), get3(tag, columns, 6 * c + 3), entry(plan, c)
            for other in range(after, at(plan, t, COLUMN_END)):
                z, j = place + 6 * other, entry(plan, other)
                rate = 0.0 - dot6(get3(tag, snaps, z), get3(tag, snaps, z + 3), alpha, acc)
                put(tag, entries, i * nv + j, rate)
                put(tag, entries, j * nv + i, rate)
        branch = at(plan, branch, END)
