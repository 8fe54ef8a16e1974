"""The gather of articulated body inertias and forces: the Kalman filter of THEORY (2), (3), one dof at a time."""

from numba import njit

from kfdyn.dynamics._kernels.fused.memory import collect3, get3, get6, put3
from kfdyn.dynamics._kernels.fused.numbers import INLINED
from kfdyn.dynamics._kernels.fused.outward import BODY, ETA, OMEGA, ORIENTATION, SHIFT, inertia_of
from kfdyn.dynamics._kernels.fused.plan import (
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
    V_END,
    V,
    at,
    of,
)
from kfdyn.dynamics._kernels.fused.spatial import add, cross, dot, scale, symmetric_apply
from kfdyn.estimation._kernels.sizes import ORDERED
from kfdyn.estimation._kernels.vectors import collect, get, item, put, smaller, sqrt, zero

#: Numbers kept for each dof beside its row of H: u = P h 6, innovation ε, 1/d.
DOF = 8

#: Numbers of a slot: P = [J B; B* C] as J 6, B 9, C 6; force z 6; bound of the composite body's moment of inertia.
P_J, P_B, P_C, Z, BOUND, SLOT = 0, 6, 15, 21, 27, 28

#: What is below this part of the composite body's inertia is rounding. A false alarm costs time, not truth: the engine
#: then decides.
_ROUNDING = 64 * 2.220446049250313e-16


@njit(**INLINED)
def gather_body(tag, plan, t, tau, tau_at, tau_step, forces, pushed, f_at, f_step, moving, work, H, dofs, sums, least):
    """P and z of body t, its dofs measured one by one, the rest added to its parent (R86 8.2–8.9)."""
    J, B, C, z = prior(tag, plan, t, forces, pushed, f_at, f_step, moving, work, sums)
    i = at(plan, t, V)
    if at(plan, t, KIND) == REVOLUTE:
        here = t * BODY + ORIENTATION
        w = (get(tag, work, here + 2), get(tag, work, here + 5), get(tag, work, here + 8))
        u, s = symmetric_apply(J, w), transposed_apply(B, w)
        d = dot(w, u) + of(plan, t, ARMATURE)
        weight = bound(tag, plan, t, sums) + of(plan, t, ARMATURE)
        put(tag, least, 0, smaller(get(tag, least, 0), d - _ROUNDING * weight))
        eps = zero(tag)
        if moving:
            eps = collect(tag, tau, tau_at + i, tau_step) - dot(w, z[0])
        J, B, C, z = update(tag, J, B, C, z, u, s, d, eps, moving, dofs, i)
        if at(plan, t, PARENT):
            pass_on(tag, plan, t, J, B, C, z, moving, work, sums)
    else:
        _gather_hinge(tag, plan, t, J, B, C, z, tau, tau_at, tau_step, moving, work, H, dofs, sums, least)


@njit(**ORDERED)
def _gather_hinge(tag, plan, t, J, B, C, z, tau, tau_at, tau_step, moving, work, H, dofs, sums, least):
    """The rest of :func:`gather_body` for hinges other than revolute ones."""
    turning = bound(tag, plan, t, sums)
    for i in range(at(plan, t, V), at(plan, t, V_END)):
        w, v = get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3)
        u = add(symmetric_apply(J, w), matrix_apply(B, v))
        s = add(transposed_apply(B, w), symmetric_apply(C, v))
        armature = item(plan.armature, i)
        d = (dot(w, u) + dot(v, s)) + armature
        weight = turning * dot(w, w) + of(plan, t, ALL_MASS) * dot(v, v) + armature
        put(tag, least, 0, smaller(get(tag, least, 0), d - _ROUNDING * weight))
        eps = zero(tag)
        if moving:
            eps = collect(tag, tau, tau_at + i, tau_step) - (dot(w, z[0]) + dot(v, z[1]))
        J, B, C, z = update(tag, J, B, C, z, u, s, d, eps, moving, dofs, i)
    if at(plan, t, PARENT):
        pass_on(tag, plan, t, J, B, C, z, moving, work, sums)


@njit(**INLINED)
def matrix_apply(B, x):
    """B x for a matrix of nine numbers, row by row."""
    return (
        B[0] * x[0] + B[1] * x[1] + B[2] * x[2],
        B[3] * x[0] + B[4] * x[1] + B[5] * x[2],
        B[6] * x[0] + B[7] * x[1] + B[8] * x[2],
    )


@njit(**INLINED)
def transposed_apply(B, x):
    """B* x for a matrix of nine numbers, row by row."""
    return (
        B[0] * x[0] + B[3] * x[1] + B[6] * x[2],
        B[1] * x[0] + B[4] * x[1] + B[7] * x[2],
        B[2] * x[0] + B[5] * x[1] + B[8] * x[2],
    )


@njit(**INLINED)
def prior(tag, plan, t, forces, pushed, f_at, f_step, moving, work, sums):
    """P = Σ φP⁺φ* + M and z = Σ φz⁺ + ξ, ξ = [ω × Jω; m ω × (ω × p)] − external force."""
    slot = at(plan, t, IN) * SLOT
    M, p = inertia_of(tag, plan, t, work)
    J, C = get6(tag, sums, slot + P_J), get6(tag, sums, slot + P_C)
    m = of(plan, t, MASS)
    n, f = get3(tag, sums, slot + Z), get3(tag, sums, slot + Z + 3)
    if moving:
        omega = get3(tag, work, t * BODY + OMEGA)
        n = add(n, cross(omega, symmetric_apply(M, omega)))
        f = add(f, cross(omega, cross(omega, p)))
        if pushed:
            row = f_at + at(plan, t, FORCE_ROW)
            n = add(n, scale(-1.0, collect3(tag, forces, row, f_step)))
            f = add(f, scale(-1.0, collect3(tag, forces, row + 3, f_step)))
    J = (J[0] + M[0], J[1] + M[1], J[2] + M[2], J[3] + M[3], J[4] + M[4], J[5] + M[5])
    B = slot + P_B
    B = (
        get(tag, sums, B), get(tag, sums, B + 1) - p[2], get(tag, sums, B + 2) + p[1],
        get(tag, sums, B + 3) + p[2], get(tag, sums, B + 4), get(tag, sums, B + 5) - p[0],
        get(tag, sums, B + 6) - p[1], get(tag, sums, B + 7) + p[0], get(tag, sums, B + 8),
    )  # fmt: skip
    C = (C[0] + m, C[1], C[2], C[3] + m, C[4], C[5] + m)
    return J, B, C, (n, f)


@njit(**INLINED)
def bound(tag, plan, t, sums):
    """Of the composite body's moment of inertia about the hinge point; a constant of the plan where nothing slides."""
    turning = zero(tag)
    if at(plan, t, LOOSE):
        own = abs(of(plan, t, MOMENT)) + abs(of(plan, t, MOMENT + 3)) + abs(of(plan, t, MOMENT + 5))
        turning = get(tag, sums, at(plan, t, IN) * SLOT + BOUND) + own
    else:
        turning = turning + of(plan, t, ALL_MOMENT)
    return turning


@njit(**INLINED)
def update(tag, J, B, C, z, u, s, d, eps, moving, dofs, i):
    """P⁺ = P − g [u; s]* and z⁺ = z + g ε with g = [u; s]/d; u, s, ε, 1/d are kept for the scatter."""
    inverse = 1.0 / d
    put3(tag, dofs, DOF * i, u)
    put3(tag, dofs, DOF * i + 3, s)
    put(tag, dofs, DOF * i + 6, eps)
    put(tag, dofs, DOF * i + 7, inverse)
    a, b = scale(inverse, u), scale(inverse, s)
    if moving:
        z = (add(z[0], scale(eps, a)), add(z[1], scale(eps, b)))
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
    return J, B, C, z


@njit(**INLINED)
def pass_on(tag, plan, t, J, B, C, z, moving, work, sums):
    """Add z⁺ + P⁺η and P⁺ to the parent's: φ z⁺ and φ P⁺ φ*, φ = [[1, l~], [0, 1]]."""
    here, base, out = t * BODY, at(plan, t, BASE) * SLOT, at(plan, t, OUT) * SLOT
    l = get3(tag, work, here + SHIFT)
    if at(plan, at(plan, t, PARENT), LOOSE):
        turning = bound(tag, plan, t, sums)
        reach = of(plan, t, ALL_MASS) * dot(l, l)
        turning = turning + 2.0 * sqrt(turning * reach) + reach
        put(tag, sums, out + BOUND, get(tag, sums, base + BOUND) + turning)
    if moving:
        alpha, acc = get3(tag, work, here + ETA), get3(tag, work, here + ETA + 3)
        n = add(z[0], add(symmetric_apply(J, alpha), matrix_apply(B, acc)))
        f = add(z[1], add(transposed_apply(B, alpha), symmetric_apply(C, acc)))
        put3(tag, sums, out + Z, add(get3(tag, sums, base + Z), add(n, cross(l, f))))
        put3(tag, sums, out + Z + 3, add(get3(tag, sums, base + Z + 3), f))
    # D = B + l~ C, and J + l~ B* + D l~*
    x, y, w = l
    D = (
        B[0] + (y * C[2] - w * C[1]), B[1] + (y * C[4] - w * C[3]), B[2] + (y * C[5] - w * C[4]),
        B[3] + (w * C[0] - x * C[2]), B[4] + (w * C[1] - x * C[4]), B[5] + (w * C[2] - x * C[5]),
        B[6] + (x * C[1] - y * C[0]), B[7] + (x * C[3] - y * C[1]), B[8] + (x * C[4] - y * C[2]),
    )  # fmt: skip
    new = (
        J[0] + (y * B[2] - w * B[1]) + (y * D[2] - w * D[1]),
        J[1] + (y * B[5] - w * B[4]) + (w * D[0] - x * D[2]),
        J[2] + (y * B[8] - w * B[7]) + (x * D[1] - y * D[0]),
        J[3] + (w * B[3] - x * B[5]) + (w * D[3] - x * D[5]),
        J[4] + (w * B[6] - x * B[8]) + (x * D[4] - y * D[3]),
        J[5] + (x * B[7] - y * B[6]) + (x * D[7] - y * D[6]),
    )  # fmt: skip
    for i in range(6):
        put(tag, sums, out + P_J + i, get(tag, sums, base + P_J + i) + new[i])
        put(tag, sums, out + P_C + i, get(tag, sums, base + P_C + i) + C[i])
    for i in range(9):
        put(tag, sums, out + P_B + i, get(tag, sums, base + P_B + i) + D[i])
