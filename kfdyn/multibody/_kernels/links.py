"""Every body's lever arm, inertia and bias force, off a swept batch."""

from kfdyn.multibody._kernels.facts import facts_of, get3, get9, pointer, set3
from kfdyn.multibody._kernels.vectors import apply, apply_transposed, cross, inner, jit, scale, sub


@jit
def link_terms(layout, gravity, force, R, p, V, l, inertia, xi, eta):
    """Lever arms, inertias and bias forces of a swept batch; gravity joins eta at the roots."""
    facts = facts_of(layout)
    n = facts.n
    for b in range(len(R)):
        g = get3(pointer(gravity, 3 * b), 0)
        for k in range(n):
            at = b * n + k
            _link(
                facts, k, g, pointer(force, 6 * at), pointer(R, 9 * at), pointer(p, 3 * n * b), pointer(V, 6 * at),
                pointer(l, 3 * at), pointer(inertia, 36 * at), pointer(xi, 6 * at), pointer(eta, 6 * at),
            )  # fmt: skip


@inner
def _link(facts, k, g, force, R, p, V, l, M, xi, eta):
    parent, m, R, omega = facts.parent[k], facts.mass[k], get9(R, 0), get3(V, 0)
    x = get3(p, 3 * k)
    if parent < 0:
        set3(eta, 3, sub(get3(eta, 3), g))
    else:
        x = sub(x, get3(p, 3 * parent))
    set3(l, 0, x)
    # M(k) = [[J, m p~], [-m p~, m 1]], J = R J_body R*; one triangle is copied to the other, so that
    # the inertia is symmetric to the bit  (R86 3.1)
    J, c = get9(facts.J, 9 * k), apply(R, get3(facts.com, 3 * k))
    for i in range(36):
        M[i] = 0.0
    for j in range(3):
        row = (R[0], R[1], R[2]) if j == 0 else (R[3], R[4], R[5]) if j == 1 else (R[6], R[7], R[8])
        column = apply(R, apply(J, row))
        for i in range(j + 1):
            M[6 * i + j] = M[6 * j + i] = column[i]
        M[7 * (3 + j)] = m
    M[4] = M[24] = -m * c[2]
    M[9] = M[19] = m * c[2]
    M[5] = M[30] = m * c[1]
    M[15] = M[20] = -m * c[1]
    M[11] = M[31] = -m * c[0]
    M[16] = M[26] = m * c[0]
    # xi = [w x J w; m w x (w x p)] - f_ext  (R86 4.4)
    torque = cross(omega, apply(R, apply(J, apply_transposed(R, omega))))
    centrifugal = scale(m, cross(omega, cross(omega, c)))
    set3(xi, 0, sub(torque, get3(force, 0)))
    set3(xi, 3, sub(centrifugal, get3(force, 3)))
