"""The gather of articulated body inertias and forces: the Kalman filter of THEORY (2), (3), one dof at a time."""

from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import beyond, collect, fabs, get, item, put, smaller, sqrt, zero
from kfdyn.multibody._kernels.fused.memory import clear, collect3, get3, get6, put3, put6, put9
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import (
    BODY,
    ETA,
    OMEGA,
    ORIENTATION,
    SHIFT,
    axis_of,
    inertia_of,
    place_world,
)
from kfdyn.multibody._kernels.fused.plan import (
    ALL_MASS,
    ALL_MOMENT,
    ARMATURE,
    BASE,
    FORCE_ROW,
    IN,
    KIND,
    LOOSE,
    MASS,
    MOMENT,
    OUT,
    PARENT,
    REVOLUTE,
    SLIDE,
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
    apply,
    apply_transposed,
    cross,
    dot,
    dot6,
    scale,
    symmetric_apply,
)

#: Numbers kept for each dof beside its row of H: gain 6, ν = ε/d, 1/d. The gain g = P h/d is that of the dof; for a
#: revolute hinge or a slide it is φ g, what the parent sees of it.
GAIN, NU, INVERSE, DOF = 0, 6, 7, 8

#: Numbers of a slot: P = [J B; B* C] as J 6, B 9, C 6; force z 6; bounds of the composite body's moments of inertia 3.
P_J, P_B, P_C, Z, BOUND, SLOT = 0, 6, 15, 21, 27, 30

#: What is below this part of the composite body's inertia is rounding. A false alarm costs time, not truth: the engine
#: then decides.
_ROUNDING = 64 * 2.220446049250313e-16


@njit(**INLINED)
def filter_room(plan, lanes):
    """How many floats a filter works in, as :func:`lay_out` shares them out."""
    return ((plan.n + 1) * BODY + plan.nv * (6 + DOF) + (plan.slots + 1) * SLOT) * lanes


@njit(**INLINED)
def lay_out(tag, plan, room):
    """Where sums, dofs, rows of H and bodies stand in a room, and what is behind them; slot 0 and the world are set."""
    lanes = size(tag, 1)
    dofs = beyond(room, (plan.slots + 1) * SLOT * lanes)
    H = beyond(dofs, plan.nv * DOF * lanes)
    work = beyond(H, plan.nv * 6 * lanes)
    clear(tag, room, SLOT)
    place_world(tag, work)
    return room, dofs, H, work, beyond(work, (plan.n + 1) * BODY * lanes)


@njit(**INLINED)
def one_dof(tag, plan, t, work, H, dofs):
    """Of a hinge of one dof: its axis, l, and φ g = [a; b]."""
    i = at(plan, t, V)
    axis = axis_of(tag, t, work) if at(plan, t, KIND) == REVOLUTE else get3(tag, H, 6 * i + 3)
    l, gain = get3(tag, work, t * BODY + SHIFT), DOF * i + GAIN
    return axis, l, get3(tag, dofs, gain), get3(tag, dofs, gain + 3)


@njit(**INLINED)
def gather_body(tag, plan, t, tau, tau_at, tau_step, forces, pushed, f_at, f_step, moving, work, H, dofs, sums, least):
    """P and z of body t, its dofs measured one by one, the rest added to its parent (R86 8.2–8.9).

    z holds P η beforehand: then z⁺ = z + g ε, and ε is what THEORY section 3 calls SKO's. Returns the least d −
    rounding so far.
    """
    J, B, C, z = prior(tag, plan, t, forces, pushed, f_at, f_step, moving, False, work, sums)
    rounding = bound(tag, plan, t, C, work, sums)
    if at(plan, t, KIND) == REVOLUTE:  # H = [w*, 0]
        axis = t * BODY + ORIENTATION
        w = (get(tag, work, axis + 2), get(tag, work, axis + 5), get(tag, work, axis + 8))
        u, s, load = symmetric_apply(J, w), apply_transposed(B, w), dot(w, z[0])
        d = dot(w, u) + of(plan, t, ARMATURE)
        least = smaller(least, d - rounding)
        _take_dof(tag, plan, t, J, B, C, z, u, s, d, load, tau, tau_at, tau_step, moving, work, dofs, sums)
    elif at(plan, t, KIND) == SLIDE:  # H = [0, w*]
        w = get3(tag, H, 6 * at(plan, t, V) + 3)
        u, s, load = apply(B, w), symmetric_apply(C, w), dot(w, z[1])
        d = dot(w, s) + of(plan, t, ARMATURE)
        least = smaller(least, d - _ROUNDING * (of(plan, t, ALL_MASS) + of(plan, t, ARMATURE)))
        _take_dof(tag, plan, t, J, B, C, z, u, s, d, load, tau, tau_at, tau_step, moving, work, dofs, sums)
    else:
        least = _gather_hinge(
            tag, plan, t, J, B, C, z, tau, tau_at, tau_step, moving, work, H, dofs, sums, rounding, least
        )
    return least


@njit(**INLINED)
def _take_dof(tag, plan, t, J, B, C, z, u, s, d, load, tau, tau_at, tau_step, moving, work, dofs, sums):
    """Measure the one dof of a hinge, given P h = [u; s], d and h z, and pass the rest on."""
    i, l, inverse = at(plan, t, V), get3(tag, work, t * BODY + SHIFT), 1.0 / d
    put(tag, dofs, DOF * i + INVERSE, inverse)
    # φ P⁺ φ* = φ P φ* − φu (φu)*/d: the shift does not wait for the measurement
    u = add_cross(u, l, s)
    a, b = scale(inverse, u), scale(inverse, s)
    put3(tag, dofs, DOF * i + GAIN, a)
    put3(tag, dofs, DOF * i + GAIN + 3, b)
    if moving:
        eps = collect(tag, tau, tau_at + i, tau_step) - load
        put(tag, dofs, DOF * i + NU, eps * inverse)
        z = (add(add_cross(z[0], l, z[1]), scale(eps, a)), add(z[1], scale(eps, b)))
    if at(plan, t, PARENT):
        J, B, C = shifted(J, B, C, l)
        J, B, C = reduced_by(J, B, C, a, b, u, s)
        pass_on(tag, plan, t, J, B, C, z, moving, sums)


@njit(**ORDERED)
def _gather_hinge(tag, plan, t, J, B, C, z, tau, tau_at, tau_step, moving, work, H, dofs, sums, rounding, least):
    """The rest of :func:`gather_body` for hinges of any number of dofs."""
    for i in range(at(plan, t, V), at(plan, t, V_END)):
        w, v = get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3)
        u = add_apply(symmetric_apply(J, w), B, v)
        s = add_symmetric(apply_transposed(B, w), C, v)
        armature = item(plan.armature, i)
        d = dot6(w, v, u, s) + armature
        weight = of(plan, t, ALL_MASS) * dot(v, v) + armature
        least = smaller(least, d - rounding * dot(w, w) - _ROUNDING * weight)
        inverse = 1.0 / d
        a, b = scale(inverse, u), scale(inverse, s)
        put3(tag, dofs, DOF * i + GAIN, a)
        put3(tag, dofs, DOF * i + GAIN + 3, b)
        put(tag, dofs, DOF * i + INVERSE, inverse)
        if moving:
            eps = collect(tag, tau, tau_at + i, tau_step) - dot6(w, v, z[0], z[1])
            put(tag, dofs, DOF * i + NU, eps * inverse)
            z = (add(z[0], scale(eps, a)), add(z[1], scale(eps, b)))
        J, B, C = reduced_by(J, B, C, a, b, u, s)
    if at(plan, t, PARENT):
        l = get3(tag, work, t * BODY + SHIFT)
        J, B, C = shifted(J, B, C, l)
        z = (add_cross(z[0], l, z[1]), z[1])
        # By way of a spare slot: the compiler would join this end to that of gather_body, whose numbers then could not
        # stay in registers.
        spare, base, out = plan.slots * SLOT, at(plan, t, BASE) * SLOT, at(plan, t, OUT) * SLOT
        total = (*J, *B, *C, *z[0], *z[1])
        for i in range(BOUND):
            put(tag, sums, spare + i, total[i])
        for i in range(BOUND):
            put(tag, sums, out + i, get(tag, sums, base + i) + get(tag, sums, spare + i))
    return least


@njit(**INLINED)
def prior(tag, plan, t, forces, pushed, f_at, f_step, moving, held, work, sums):
    """P = Σ φP⁺φ* + M and z = Σ φz⁺ + ξ + Pη with ξ = [ω × Jω; m ω × (ω × p)] − external force.

    Unless ``held``, η of a hinge of one dof on the world is 0.
    """
    slot = at(plan, t, IN) * SLOT
    n, f = get3(tag, sums, slot + Z), get3(tag, sums, slot + Z + 3)
    if moving and pushed:
        row = f_at + at(plan, t, FORCE_ROW)
        n = add(n, scale(-1.0, collect3(tag, forces, row, f_step)))
        f = add(f, scale(-1.0, collect3(tag, forces, row + 3, f_step)))
    M, p = inertia_of(tag, plan, t, work)
    J, C = get6(tag, sums, slot + P_J), get6(tag, sums, slot + P_C)
    m = of(plan, t, MASS)
    if moving:
        omega = get3(tag, work, t * BODY + OMEGA)
        n = add_cross(n, omega, symmetric_apply(M, omega))
        f = add_cross(f, omega, cross(omega, p))
    J = (J[0] + M[0], J[1] + M[1], J[2] + M[2], J[3] + M[3], J[4] + M[4], J[5] + M[5])
    B = slot + P_B
    B = (
        get(tag, sums, B), get(tag, sums, B + 1) - p[2], get(tag, sums, B + 2) + p[1],
        get(tag, sums, B + 3) + p[2], get(tag, sums, B + 4), get(tag, sums, B + 5) - p[0],
        get(tag, sums, B + 6) - p[1], get(tag, sums, B + 7) + p[0], get(tag, sums, B + 8),
    )  # fmt: skip
    C = (C[0] + m, C[1], C[2], C[3] + m, C[4], C[5] + m)
    if moving and (held or at(plan, t, PARENT) or at(plan, t, KIND) > SLIDE):
        alpha, acc = get3(tag, work, t * BODY + ETA), get3(tag, work, t * BODY + ETA + 3)
        n = add(n, add_apply(symmetric_apply(J, alpha), B, acc))
        f = add(f, add_symmetric(apply_transposed(B, alpha), C, acc))
    return J, B, C, (n, f)


@njit(**INLINED)
def bound(tag, plan, t, C, work, sums):
    """What is rounding in a moment of inertia about the hinge point; and sum up the parent's bound.

    A part of a bound of the composite body's moment of inertia, which is a constant of the plan unless the body is
    LOOSE. Then it is summed up by the parallel axis theorem. What a hinge has taken out of P stays in the bound, since
    its rounding stays in P; so all mass counts, and not only what C tells to move along. Where very many bodies are
    outboard that would be far too much, and most of the rounding has faded on its way: there C does tell. Axis of the
    world by axis, √(moment) being what adds up: a planar chain that lies in two of them moves as one heavy body out of
    its plane, and its hinges need not know. A revolute hinge adds its armature.
    """
    all_mass, turning = zero(tag) + of(plan, t, ALL_MASS), zero(tag) + of(plan, t, ALL_MOMENT)
    mass, about = (all_mass, all_mass, all_mass), (turning, turning, turning)
    if at(plan, t, LOOSE):
        own = abs(of(plan, t, MOMENT)) + abs(of(plan, t, MOMENT + 3)) + abs(of(plan, t, MOMENT + 5))
        x, y, z = get3(tag, sums, at(plan, t, IN) * SLOT + BOUND)
        about = (x + own, y + own, z + own)
        if at(plan, t, LOOSE) > 1:
            mass = (smaller(all_mass, fabs(C[0])), smaller(all_mass, fabs(C[3])), smaller(all_mass, fabs(C[5])))
        turning = about[0] + about[1] + about[2]
    if at(plan, at(plan, t, PARENT), LOOSE) and at(plan, t, PARENT):
        x, y, z = get3(tag, work, t * BODY + SHIFT)
        mx, my, mz = sqrt(mass[0]), sqrt(mass[1]), sqrt(mass[2])
        x, y, z = fabs(x), fabs(y), fabs(z)
        a, b, c = sqrt(about[0]) + my * z + mz * y, sqrt(about[1]) + mz * x + mx * z, sqrt(about[2]) + mx * y + my * x
        far = get3(tag, sums, at(plan, t, BASE) * SLOT + BOUND)
        put3(tag, sums, at(plan, t, OUT) * SLOT + BOUND, add(far, (a * a, b * b, c * c)))
    if at(plan, t, KIND) == REVOLUTE:
        if at(plan, t, LOOSE):
            w = axis_of(tag, t, work)
            side = fabs(w[0]) * sqrt(about[0]) + fabs(w[1]) * sqrt(about[1]) + fabs(w[2]) * sqrt(about[2])
            turning = side * side
        turning = turning + of(plan, t, ARMATURE)
    return _ROUNDING * turning


@njit(**INLINED)
def reduced_by(J, B, C, a, b, u, s):
    """P − [a; b] [u; s]*, which is symmetric."""
    J = (
        J[0] - a[0] * u[0], J[1] - a[0] * u[1], J[2] - a[0] * u[2],
        J[3] - a[1] * u[1], J[4] - a[1] * u[2], J[5] - a[2] * u[2],
    )  # fmt: skip
    B = (
        B[0] - a[0] * s[0], B[1] - a[0] * s[1], B[2] - a[0] * s[2],
        B[3] - a[1] * s[0], B[4] - a[1] * s[1], B[5] - a[1] * s[2],
        B[6] - a[2] * s[0], B[7] - a[2] * s[1], B[8] - a[2] * s[2],
    )  # fmt: skip
    C = (
        C[0] - b[0] * s[0], C[1] - b[0] * s[1], C[2] - b[0] * s[2],
        C[3] - b[1] * s[1], C[4] - b[1] * s[2], C[5] - b[2] * s[2],
    )  # fmt: skip
    return J, B, C


@njit(**INLINED)
def shifted(J, B, C, l):
    """φ P φ*, φ = [[1, l~], [0, 1]]: J + l~ B* + D l~*, D = B + l~ C, and C."""
    x, y, z = l
    D = (
        B[0] + y * C[2] - z * C[1], B[1] + y * C[4] - z * C[3], B[2] + y * C[5] - z * C[4],
        B[3] + z * C[0] - x * C[2], B[4] + z * C[1] - x * C[4], B[5] + z * C[2] - x * C[5],
        B[6] + x * C[1] - y * C[0], B[7] + x * C[3] - y * C[1], B[8] + x * C[4] - y * C[2],
    )  # fmt: skip
    J = (
        J[0] + y * B[2] - z * B[1] + y * D[2] - z * D[1],
        J[1] + y * B[5] - z * B[4] + z * D[0] - x * D[2],
        J[2] + y * B[8] - z * B[7] + x * D[1] - y * D[0],
        J[3] + z * B[3] - x * B[5] + z * D[3] - x * D[5],
        J[4] + z * B[6] - x * B[8] + x * D[4] - y * D[3],
        J[5] + x * B[7] - y * B[6] + x * D[7] - y * D[6],
    )
    return J, D, C


@njit(**INLINED)
def pass_on(tag, plan, t, J, B, C, z, moving, sums):
    """Add what the parent sees of body t to the parent's sum, or begin the sum with it."""
    base, out = at(plan, t, BASE) * SLOT, at(plan, t, OUT) * SLOT
    if base == 0:  # nothing yet: what a chain always does
        put6(tag, sums, out + P_J, J)
        put9(tag, sums, out + P_B, B)
        put6(tag, sums, out + P_C, C)
        if moving:
            put3(tag, sums, out + Z, z[0])
            put3(tag, sums, out + Z + 3, z[1])
    else:
        for i in range(6):
            put(tag, sums, out + P_J + i, get(tag, sums, base + P_J + i) + J[i])
            put(tag, sums, out + P_C + i, get(tag, sums, base + P_C + i) + C[i])
        for i in range(9):
            put(tag, sums, out + P_B + i, get(tag, sums, base + P_B + i) + B[i])
        if moving:
            put3(tag, sums, out + Z, add(get3(tag, sums, base + Z), z[0]))
            put3(tag, sums, out + Z + 3, add(get3(tag, sums, base + Z + 3), z[1]))
