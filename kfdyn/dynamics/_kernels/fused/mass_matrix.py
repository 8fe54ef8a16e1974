"""The mass matrix by composite bodies: a gather of ℛ, then walks from each hinge to the root (SKO "mass-algorithm")."""

from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import align_stack, beyond, get, item, put
from kfdyn.multibody._kernels.fused.memory import clear, get3, get6, lanes_at, put3, write_out
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import (
    BODY,
    SHIFT,
    axis_of,
    inertia_of,
    place_world,
    sweep_outward,
)
from kfdyn.multibody._kernels.fused.plan import (
    ALL_MASS,
    ARMATURE,
    BASE,
    IN,
    KIND,
    OUT,
    PARENT,
    REVOLUTE,
    V_END,
    V,
    at,
    of,
)
from kfdyn.multibody._kernels.fused.spatial import add, add_cross, cross, dot, dot6, scale, symmetric_apply

#: Numbers of a composite body: moment of inertia about the hinge point 6, first moment 3. Its mass is a constant.
FIRST, SLOT = 6, 9


@njit(**INLINED)
def mass_matrix_room(plan, lanes):
    """How many floats :func:`mass_matrix` works in."""
    return ((plan.n + 1) * BODY + plan.nv * (6 + plan.nv) + plan.slots * SLOT) * lanes


@njit(**INLINED)
def mass_matrix(tag, plan, q, first, last, room, out):
    """𝓜 of rows first … last into the flat ``out``, zeros between unrelated hinges included. O(N depth)."""
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    sums, work = room, beyond(room, plan.slots * SLOT * lanes)
    H = beyond(work, (n + 1) * BODY * lanes)
    entries = beyond(H, nv * 6 * lanes)
    align_stack()
    clear(tag, sums, SLOT)
    clear(tag, entries, nv * nv)
    place_world(tag, work)
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        sweep_outward(tag, plan, q, start * nq, step * nq, q, 0, 0, False, work, H)
        for back in range(n):
            weigh_body(tag, plan, n - back, work, H, sums, entries)
        write_out(tag, entries, nv * nv, out, start * nv * nv, step * nv * nv)


@njit(**INLINED)
def weigh_body(tag, plan, t, work, H, sums, entries):
    """ℛ of body t, what its hinge asks of the hinges inboard of it, and ℛ(p) += φ ℛ φ* (R86 7.9).

    The parallel axis theorem: J + 2 r·l 1 − r l* − l r* with r = p + m l / 2.
    """
    here, slot, m = t * BODY, at(plan, t, IN) * SLOT, of(plan, t, ALL_MASS)
    J, p = inertia_of(tag, plan, t, work)
    S = get6(tag, sums, slot)
    J, p = (
        (J[0] + S[0], J[1] + S[1], J[2] + S[2], J[3] + S[3], J[4] + S[4], J[5] + S[5]),
        add(p, get3(tag, sums, slot + FIRST)),
    )
    l = get3(tag, work, here + SHIFT)
    if at(plan, t, KIND) == REVOLUTE:
        w = axis_of(tag, t, work)
        moment, force, i = symmetric_apply(J, w), cross(w, p), at(plan, t, V)
        put(tag, entries, i * plan.nv + i, dot(w, moment) + of(plan, t, ARMATURE))
        walk(tag, plan, t, i, moment, force, work, H, entries)
    else:
        _weigh_hinge(tag, plan, t, J, p, m, work, H, entries)
    if at(plan, t, PARENT):
        base, out = at(plan, t, BASE) * SLOT, at(plan, t, OUT) * SLOT
        r = add(p, scale(0.5 * m, l))
        x, y, z = r[0] * l[0], r[1] * l[1], r[2] * l[2]
        added = (
            J[0] + 2.0 * (y + z), J[1] - r[0] * l[1] - l[0] * r[1], J[2] - r[0] * l[2] - l[0] * r[2],
            J[3] + 2.0 * (x + z), J[4] - r[1] * l[2] - l[1] * r[2], J[5] + 2.0 * (x + y),
        )  # fmt: skip
        for i in range(6):
            put(tag, sums, out + i, get(tag, sums, base + i) + added[i])
        put3(tag, sums, out + FIRST, add(get3(tag, sums, base + FIRST), add(p, scale(m, l))))


@njit(**INLINED)
def walk(tag, plan, t, i, moment, force, work, H, entries):
    """f = ℛ h of dof i of body t, seen by the hinges inboard of the body: 𝓜(i, j) = h(j) φ f."""
    nv = plan.nv
    j = at(plan, t, PARENT)
    l = get3(tag, work, t * BODY + SHIFT)
    while j:
        moment = add_cross(moment, l, force)
        first = at(plan, j, V)
        if at(plan, j, KIND) == REVOLUTE:
            value = dot(axis_of(tag, j, work), moment)
            put(tag, entries, i * nv + first, value)
            put(tag, entries, first * nv + i, value)
        else:
            for other in range(first, at(plan, j, V_END)):
                value = dot6(get3(tag, H, 6 * other), get3(tag, H, 6 * other + 3), moment, force)
                put(tag, entries, i * nv + other, value)
                put(tag, entries, other * nv + i, value)
        l = get3(tag, work, j * BODY + SHIFT)
        j = at(plan, j, PARENT)


@njit(**ORDERED)
def _weigh_hinge(tag, plan, t, J, p, m, work, H, entries):
    nv, first = plan.nv, at(plan, t, V)
    for i in range(first, at(plan, t, V_END)):
        w, s = get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3)
        moment, force = add_cross(symmetric_apply(J, w), p, s), add_cross(scale(m, s), w, p)
        for other in range(first, i + 1):
            value = dot6(get3(tag, H, 6 * other), get3(tag, H, 6 * other + 3), moment, force)
            if other == i:
                value = value + item(plan.armature, i)
            put(tag, entries, i * nv + other, value)
            put(tag, entries, other * nv + i, value)
        walk(tag, plan, t, i, moment, force, work, H, entries)
