"""What is read off a swept batch: link terms, accelerations, frames, Jacobians, sums over bodies."""

from kfdyn.multibody._kernels.vectors import (
    add,
    apply,
    apply_transposed,
    cross,
    dot,
    get,
    high,
    jit,
    low,
    put6,
    scale,
    sub,
)


@jit
def link_terms(layout, gravity, force, R, p, V, l, inertia, xi, eta):
    """Lever arms, inertias and bias forces of a swept batch; gravity joins eta at the roots."""
    for b in range(len(R)):
        for k in range(layout.parent.size):
            parent = layout.parent[k]
            for i in range(3):
                l[b, k, i] = p[b, k, i]
                if parent < 0:
                    eta[b, k, 3 + i] -= gravity[b, i]
                else:
                    l[b, k, i] -= p[b, parent, i]
            m, Rk, M = layout.mass[k], R[b, k], inertia[b, k]
            c = apply(Rk, get(layout.com, k))
            omega = get(V[b], k)
            # M(k) = [[J, m p~], [-m p~, m 1]], J = R J_body R*; one triangle is copied to the other, so that
            # the inertia is symmetric to the bit  (R86 3.1)
            for i in range(6):
                for j in range(6):
                    M[i, j] = 0.0
            for j in range(3):
                column = apply(Rk, apply(layout.J[k], get(Rk, j)))
                for i in range(j + 1):
                    M[i, j] = M[j, i] = column[i]
                M[3 + j, 3 + j] = m
            M[0, 4] = M[4, 0] = -m * c[2]
            M[1, 3] = M[3, 1] = m * c[2]
            M[0, 5] = M[5, 0] = m * c[1]
            M[2, 3] = M[3, 2] = -m * c[1]
            M[1, 5] = M[5, 1] = -m * c[0]
            M[2, 4] = M[4, 2] = m * c[0]
            # xi = [w x J w; m w x (w x p)] - f_ext  (R86 4.4)
            torque = cross(omega, apply(M, omega))
            centrifugal = scale(m, cross(omega, cross(omega, c)))
            for i in range(3):
                xi[b, k, i] = torque[i] - force[b, k, i]
                xi[b, k, 3 + i] = centrifugal[i] - force[b, k, 3 + i]


@jit
def accelerations(layout, acc, p, H, A):
    """alpha(k) = phi* alpha(p) + H* beta-dot + eta along layout.order (R86 5.4-5.5); A comes in as eta."""
    for b in range(len(A)):
        for k in layout.order:
            parent = layout.parent[k]
            angular, linear = low(A[b], k), high(A[b], k)
            if parent >= 0:
                above = low(A[b], parent)
                angular = add(angular, above)
                linear = add(linear, high(A[b], parent))
                linear = add(linear, cross(above, sub(get(p[b], k), get(p[b], parent))))
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                angular = add(angular, scale(acc[b, i], low(H[b], i)))
                linear = add(linear, scale(acc[b, i], high(H[b], i)))
            put6(A[b], k, angular, linear)


@jit
def frame_motion(body, rotation, position, R, p, V, A, R_out, p_out, V_out, A_out):
    """Pose, velocity and classical acceleration of a frame fixed to ``body``: phi* from the body's origin."""
    at = (position[0], position[1], position[2])
    for b in range(len(R)):
        Rb = R[b, body]
        r = apply(Rb, at)
        for i in range(3):
            row = get(Rb, i)
            for j in range(3):
                R_out[b, i, j] = dot(row, (rotation[0, j], rotation[1, j], rotation[2, j]))
        p_out[b, 0], p_out[b, 1], p_out[b, 2] = add(get(p[b], body), r)
        omega, alpha = low(V[b], body), low(A[b], body)
        rate = cross(omega, r)
        put6(V_out, b, omega, add(high(V[b], body), rate))
        put6(A_out, b, alpha, add(add(high(A[b], body), cross(alpha, r)), cross(omega, rate)))


@jit
def jacobian(layout, x, p, H, J):
    """J (batch, 6, nv), zeros given: columns phi*(k, frame) H*(k) along layout.order, the path to x."""
    for b in range(len(J)):
        for k in layout.order:
            l = sub(get(x, b), get(p[b], k))
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                shift = cross(low(H[b], i), l)
                for j in range(3):
                    J[b, j, i] = H[b, i, j]
                    J[b, 3 + j, i] = H[b, i, 3 + j] + shift[j]


@jit
def totals(layout, R, p, V, com, momentum, kinetic):
    """Mass centre (batch,3), momentum about it (batch,6), kinetic energy of the bodies (batch,)."""
    total = layout.mass.sum()
    for b in range(len(R)):
        c = (0.0, 0.0, 0.0)
        for k in range(layout.mass.size):
            c = add(c, scale(layout.mass[k], add(get(p[b], k), apply(R[b, k], get(layout.com, k)))))
        if total > 0.0:
            c = scale(1.0 / total, c)
        angular, linear, energy = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0
        for k in range(layout.mass.size):
            m, Rk = layout.mass[k], R[b, k]
            r = apply(Rk, get(layout.com, k))
            omega, velocity = low(V[b], k), high(V[b], k)
            # h = M(k) V(k) at the body's origin, then phi to the mass centre of all
            h_v = scale(m, add(velocity, cross(omega, r)))
            h_omega = apply(Rk, apply(layout.J[k], apply_transposed(Rk, omega)))
            h_omega = add(h_omega, scale(m, cross(r, velocity)))
            energy += 0.5 * (dot(omega, h_omega) + dot(velocity, h_v))
            linear = add(linear, h_v)
            angular = add(angular, add(h_omega, cross(sub(get(p[b], k), c), h_v)))
        com[b, 0], com[b, 1], com[b, 2] = c
        put6(momentum, b, angular, linear)
        kinetic[b] = energy
