"""Compiled outward sweep and what is read off it; one configuration at a time, looped over a batch.

World orientation throughout, reference at each body's origin. Vectors are 3-tuples inside, so that
nothing is allocated per body. Imported on first use only: numba is slow to load.
"""

import math

import numpy as np
from numba import njit

SCREWS, BALL, POSE = 0, 1, 2
jit = njit(cache=True, nogil=True)


# --- three-vectors -------------------------------------------------------------------------------


@jit
def get(a, i):
    """Row a[i, :3] as a tuple."""
    return a[i, 0], a[i, 1], a[i, 2]


@jit
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@jit
def sub(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@jit
def scale(s, a):
    return s * a[0], s * a[1], s * a[2]


@jit
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@jit
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@jit
def apply(A, x):
    """A x for a 3 x 3 array and a tuple."""
    return (
        A[0, 0] * x[0] + A[0, 1] * x[1] + A[0, 2] * x[2],
        A[1, 0] * x[0] + A[1, 1] * x[1] + A[1, 2] * x[2],
        A[2, 0] * x[0] + A[2, 1] * x[1] + A[2, 2] * x[2],
    )


@jit
def apply_transposed(A, x):
    """A* x for a 3 x 3 array and a tuple."""
    return (
        A[0, 0] * x[0] + A[1, 0] * x[1] + A[2, 0] * x[2],
        A[0, 1] * x[0] + A[1, 1] * x[1] + A[2, 1] * x[2],
        A[0, 2] * x[0] + A[1, 2] * x[1] + A[2, 2] * x[2],
    )


@jit
def put6(a, i, top, bottom):
    a[i, 0], a[i, 1], a[i, 2] = top
    a[i, 3], a[i, 4], a[i, 5] = bottom


# --- rotations -----------------------------------------------------------------------------------


@jit
def turn(R, w, angle):
    """R <- exp(w~ angle) R for a unit vector w (Rodrigues), column by column."""
    s, c = math.sin(angle), math.cos(angle)
    h = 2.0 * math.sin(0.5 * angle) ** 2  # 1 - cos, without cancellation
    for j in range(3):
        x = (R[0, j], R[1, j], R[2, j])
        y = cross(w, x)
        d = h * dot(w, x)
        for i in range(3):
            R[i, j] = c * x[i] + s * y[i] + d * w[i]


@jit
def unit_quaternion(q, at):
    """The quaternion (x, y, z, w) at q[at:], divided by its length."""
    x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
    r = 1.0 / math.sqrt(x * x + y * y + z * z + w * w)
    return x * r, y * r, z * r, w * r


@jit
def rotate(e, x):
    """Turn the vector x by the unit quaternion e."""
    n = (e[0], e[1], e[2])
    t = scale(2.0, cross(n, x))
    return add(x, add(scale(e[3], t), cross(n, t)))


@jit
def quaternion_product(a, b):
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@jit
def turn_by_quaternion(R, e):
    """R <- R R(e)."""
    x = rotate(e, (1.0, 0.0, 0.0))
    y = rotate(e, (0.0, 1.0, 0.0))
    z = rotate(e, (0.0, 0.0, 1.0))
    for i in range(3):
        r = (R[i, 0], R[i, 1], R[i, 2])
        R[i, 0], R[i, 1], R[i, 2] = dot(r, x), dot(r, y), dot(r, z)


# --- the outward sweep ---------------------------------------------------------------------------


@jit
def across(omega, velocity, alpha, a, l, h_omega, h_v):
    """Move from one frame to the next, l away, moving against it at H* beta = [h_omega; h_v] (R86 5.1-5.6).

    alpha, a carry the acceleration that is left when the parent's acceleration and beta-dot are 0:
    eta = [w x H_w* beta; w x H_v* beta + w_p x (w_p x l + H_v* beta)] at each step, shifted by phi*.
    """
    rate = add(cross(omega, l), h_v)
    a = add(a, add(cross(alpha, l), cross(omega, rate)))
    alpha = add(alpha, cross(omega, h_omega))
    omega = add(omega, h_omega)
    a = add(a, cross(omega, h_v))
    return omega, add(velocity, rate), alpha, a


@jit
def outward(layout, q, v, R, p, H, V, eta):
    """Fill R (n,3,3), p (n,3), H (nv,6), V (n,6), eta (n,6) for the bodies of layout.order.

    H rows are world-oriented, at the child's origin. About 150 flops per one-dof body.
    """
    zero = (0.0, 0.0, 0.0)
    for k in layout.order:
        parent = layout.parent[k]
        Rk, first, last = R[k], layout.v_start[k], layout.v_start[k + 1]
        l = get(layout.position, k)
        omega, velocity, x = zero, zero, zero
        if parent < 0:
            Rk[:, :] = layout.rotation[k]
        else:
            Rp = R[parent]
            l = apply(Rp, l)
            for i in range(3):
                for j in range(3):
                    Rk[i, j] = (
                        Rp[i, 0] * layout.rotation[k, 0, j]
                        + Rp[i, 1] * layout.rotation[k, 1, j]
                        + Rp[i, 2] * layout.rotation[k, 2, j]
                    )
            omega = get(V, parent)
            velocity = (V[parent, 3], V[parent, 4], V[parent, 5])
            x = get(p, parent)
        # to the hinge frame, fixed in the parent
        omega, velocity, alpha, a = across(omega, velocity, zero, zero, l, zero, zero)
        x = add(x, l)
        at = layout.q_start[k]
        if layout.coordinates[k] == SCREWS:
            for i in range(first, last):
                s = layout.screws[i]
                w = apply(Rk, (s[0], s[1], s[2]))
                u = apply(Rk, (s[3], s[4], s[5]))
                angle = q[at + i - first]
                l = scale(angle, u)
                if s[0] != 0.0 or s[1] != 0.0 or s[2] != 0.0:
                    wu = cross(w, u)
                    h = 2.0 * math.sin(0.5 * angle) ** 2
                    l = add(l, add(scale(h, wu), scale(angle - math.sin(angle), cross(w, wu))))
                    turn(Rk, w, angle)
                put6(H, i, w, u)
                # the origin moves on by l: shift this row and the earlier ones of the hinge, phi*
                for j in range(first, i + 1):
                    c = cross(get(H, j), l)
                    H[j, 3] += c[0]
                    H[j, 4] += c[1]
                    H[j, 5] += c[2]
                h_v = scale(v[i], (H[i, 3], H[i, 4], H[i, 5]))
                omega, velocity, alpha, a = across(omega, velocity, alpha, a, l, scale(v[i], w), h_v)
                x = add(x, l)
        else:
            l = zero
            if layout.coordinates[k] == POSE:
                l = apply(Rk, (q[at], q[at + 1], q[at + 2]))
                at += 3
            turn_by_quaternion(Rk, unit_quaternion(q, at))
            h_omega, h_v = zero, zero
            for i in range(first, last):
                s = layout.screws[i]
                w = apply(Rk, (s[0], s[1], s[2]))
                u = apply(Rk, (s[3], s[4], s[5]))
                put6(H, i, w, u)
                h_omega = add(h_omega, scale(v[i], w))
                h_v = add(h_v, scale(v[i], u))
            omega, velocity, alpha, a = across(omega, velocity, alpha, a, l, h_omega, h_v)
            x = add(x, l)
        p[k, 0], p[k, 1], p[k, 2] = x
        put6(V, k, omega, velocity)
        put6(eta, k, alpha, a)


@jit
def workspace(layout):
    n, nv = layout.parent.size, layout.armature.size
    return np.empty((n, 3, 3)), np.empty((n, 3)), np.empty((nv, 6)), np.empty((n, 6)), np.empty((n, 6))


# --- read off the sweep --------------------------------------------------------------------------


@jit
def links(layout, q, v, gravity, force, R, p, l, H, V, inertia, xi, eta):
    """All terms of the equations of motion, body by body, for a batch."""
    for b in range(len(q)):
        outward(layout, q[b], v[b], R[b], p[b], H[b], V[b], eta[b])
        for k in range(layout.parent.size):
            parent = layout.parent[k]
            if parent < 0:
                l[b, k] = p[b, k]
                for i in range(3):
                    eta[b, k, 3 + i] -= gravity[b, i]
            else:
                for i in range(3):
                    l[b, k, i] = p[b, k, i] - p[b, parent, i]
            m, Rk, M = layout.mass[k], R[b, k], inertia[b, k]
            c = apply(Rk, get(layout.com, k))
            omega = get(V[b], k)
            # J in world orientation: R J R*
            for j in range(3):
                column = apply(Rk, apply(layout.J[k], get(Rk, j)))
                for i in range(3):
                    M[i, j] = column[i]
                    M[i, 3 + j] = 0.0
                    M[3 + i, j] = 0.0
                    M[3 + i, 3 + j] = m if i == j else 0.0
            for i in range(3):
                for j in range(i):
                    M[i, j] = M[j, i]  # one triangle, so that the inertia is symmetric to the bit
            M[0, 4], M[0, 5], M[1, 5] = -m * c[2], m * c[1], -m * c[0]
            M[1, 3], M[2, 3], M[2, 4] = m * c[2], -m * c[1], m * c[0]
            for i in range(3):
                for j in range(3):
                    M[3 + i, j] = M[j, 3 + i]
            # xi = [w x J w; m w x (w x p)] - f_ext  (R86 4.4)
            torque = cross(omega, apply(M[:3, :3], omega))
            centrifugal = scale(m, cross(omega, cross(omega, c)))
            for i in range(3):
                xi[b, k, i] = torque[i] - force[b, k, i]
                xi[b, k, 3 + i] = centrifugal[i] - force[b, k, 3 + i]


@jit
def frame_motion(layout, q, v, acc, body, rotation, position, R_out, p_out, V_out, A_out):
    """Pose, velocity and classical acceleration of a frame on ``body``; layout.order is its path."""
    R, p, H, V, eta = workspace(layout)
    A = np.empty_like(V)
    for b in range(len(q)):
        outward(layout, q[b], v[b], R, p, H, V, eta)
        for k in layout.order:
            # alpha(k) = phi* alpha(p) + H* beta-dot + eta  (R86 5.4-5.5)
            parent = layout.parent[k]
            angular, linear = get(eta, k), (eta[k, 3], eta[k, 4], eta[k, 5])
            if parent >= 0:
                l = sub(get(p, k), get(p, parent))
                above = get(A, parent)
                angular = add(angular, above)
                linear = add(linear, add((A[parent, 3], A[parent, 4], A[parent, 5]), cross(above, l)))
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                angular = add(angular, scale(acc[b, i], get(H, i)))
                linear = add(linear, scale(acc[b, i], (H[i, 3], H[i, 4], H[i, 5])))
            put6(A, k, angular, linear)
        r = apply(R[body], (position[0], position[1], position[2]))
        R_out[b] = R[body] @ rotation
        omega, alpha = get(V, body), get(A, body)
        p_out[b, 0], p_out[b, 1], p_out[b, 2] = add(get(p, body), r)
        put6(V_out, b, omega, add((V[body, 3], V[body, 4], V[body, 5]), cross(omega, r)))
        shifted = add(cross(alpha, r), cross(omega, cross(omega, r)))
        put6(A_out, b, alpha, add((A[body, 3], A[body, 4], A[body, 5]), shifted))


@jit
def frame_jacobian(layout, q, body, position, J):
    """J (batch, 6, nv), zeros given: columns phi*(k, frame) H*(k) along layout.order, the frame's path."""
    R, p, H, V, eta = workspace(layout)
    rest = np.zeros(layout.armature.size)
    for b in range(len(q)):
        outward(layout, q[b], rest, R, p, H, V, eta)
        x = add(get(p, body), apply(R[body], (position[0], position[1], position[2])))
        for k in layout.order:
            l = sub(x, get(p, k))
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                shift = cross(get(H, i), l)
                for j in range(3):
                    J[b, j, i] = H[i, j]
                    J[b, 3 + j, i] = H[i, 3 + j] + shift[j]


@jit
def totals(layout, q, v, com, momentum, kinetic):
    """Mass centre (batch,3), momentum about it (batch,6), kinetic energy of the bodies (batch,)."""
    R, p, H, V, eta = workspace(layout)
    total = layout.mass.sum()
    for b in range(len(q)):
        outward(layout, q[b], v[b], R, p, H, V, eta)
        c = (0.0, 0.0, 0.0)
        for k in range(layout.mass.size):
            c = add(c, scale(layout.mass[k], add(get(p, k), apply(R[k], get(layout.com, k)))))
        if total > 0.0:
            c = scale(1.0 / total, c)
        angular, linear, energy = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0
        for k in range(layout.mass.size):
            m, r = layout.mass[k], apply(R[k], get(layout.com, k))
            omega, velocity = get(V, k), (V[k, 3], V[k, 4], V[k, 5])
            # h = M(k) V(k) at the body's origin, then phi to the mass centre of all
            h_v = scale(m, add(velocity, cross(omega, r)))
            J_omega = apply(R[k], apply(layout.J[k], apply_transposed(R[k], omega)))
            h_omega = add(J_omega, scale(m, cross(r, velocity)))
            energy += 0.5 * (dot(omega, h_omega) + dot(velocity, h_v))
            linear = add(linear, h_v)
            angular = add(angular, add(h_omega, cross(sub(get(p, k), c), h_v)))
        com[b, 0], com[b, 1], com[b, 2] = c
        put6(momentum, b, angular, linear)
        kinetic[b] = energy


# --- motion on the configuration space -----------------------------------------------------------


@jit
def exp_coefficients(t):
    """(1 - cos t)/t^2 and (t - sin t)/t^3, by series where the quotients cancel."""
    if t < 0.1:
        s = t * t
        return (
            0.5 - s * (1 / 24 - s * (1 / 720 - s * (1 / 40320 - s / 3628800))),
            1 / 6 - s * (1 / 120 - s * (1 / 5040 - s * (1 / 362880 - s / 39916800))),
        )
    return 2.0 * (math.sin(0.5 * t) / t) ** 2, (t - math.sin(t)) / t**3


@jit
def quaternion_exp(w):
    half = 0.5 * math.sqrt(dot(w, w))
    s = 0.5 * (1.0 - half * half / 6.0) if half < 1e-4 else 0.5 * math.sin(half) / half
    return s * w[0], s * w[1], s * w[2], math.cos(half)


@jit
def quaternion_log(e):
    """Rotation vector of length at most pi; e and -e are the same rotation."""
    sign = -1.0 if e[3] < 0.0 else 1.0
    n = (sign * e[0], sign * e[1], sign * e[2])
    size = math.sqrt(dot(n, n))
    # 2 atan2(size, w) / size -> 2 / w as size -> 0
    s = 2.0 / (sign * e[3]) if size < 1e-12 else 2.0 * math.atan2(size, sign * e[3]) / size
    return scale(s, n)


@jit
def integrate(layout, q, dv, out):
    """Q moved by dv for a batch: screws add, quaternions and poses by the exponential of H* dv."""
    for b in range(len(q)):
        for k in range(layout.parent.size):
            at, first, last = layout.q_start[k], layout.v_start[k], layout.v_start[k + 1]
            if layout.coordinates[k] == SCREWS:
                for i in range(last - first):
                    out[b, at + i] = q[b, at + i] + dv[b, first + i]
                continue
            w, u = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            for i in range(first, last):
                s = layout.screws[i]
                w = add(w, scale(dv[b, i], (s[0], s[1], s[2])))
                u = add(u, scale(dv[b, i], (s[3], s[4], s[5])))
            turned = at + 3 if layout.coordinates[k] == POSE else at
            e = unit_quaternion(q[b], turned)
            if layout.coordinates[k] == POSE:
                f, g = exp_coefficients(math.sqrt(dot(w, w)))
                wu = cross(w, u)
                t = rotate(e, add(u, add(scale(f, wu), scale(g, cross(w, wu)))))
                for i in range(3):
                    out[b, at + i] = q[b, at + i] + t[i]
            e = quaternion_product(e, quaternion_exp(w))
            r = 1.0 / math.sqrt(e[0] ** 2 + e[1] ** 2 + e[2] ** 2 + e[3] ** 2)
            for i in range(4):
                out[b, turned + i] = r * e[i]


@jit
def difference(layout, left_inverse, tolerance, q, q2, dv):
    """The dv that integrate turns q into q2 by; returns a body whose hinge cannot do it, or -1."""
    for b in range(len(q)):
        for k in range(layout.parent.size):
            at, first, last = layout.q_start[k], layout.v_start[k], layout.v_start[k + 1]
            if layout.coordinates[k] == SCREWS:
                for i in range(last - first):
                    dv[b, first + i] = q2[b, at + i] - q[b, at + i]
                continue
            turned = at + 3 if layout.coordinates[k] == POSE else at
            x, y, z, s = unit_quaternion(q[b], turned)
            inverse = (-x, -y, -z, s)
            w = quaternion_log(quaternion_product(inverse, unit_quaternion(q2[b], turned)))
            u = (0.0, 0.0, 0.0)
            if layout.coordinates[k] == POSE:
                t = (q2[b, at] - q[b, at], q2[b, at + 1] - q[b, at + 1], q2[b, at + 2] - q[b, at + 2])
                t = rotate(inverse, t)
                angle = math.sqrt(dot(w, w))
                if angle < 0.1:
                    s = angle * angle
                    g = 1 / 12 + s * (1 / 720 + s * (1 / 30240 + s * (1 / 1209600 + s / 47900160)))
                else:
                    g = (1.0 - 0.5 * angle / math.tan(0.5 * angle)) / angle**2
                wt = cross(w, t)
                u = add(t, add(scale(-0.5, wt), scale(g, cross(w, wt))))
            # dv = H^-* [w; u]; what H* dv does not reach, no beta of this hinge does
            left_w, left_u = w, u
            for i in range(first, last):
                h, s6 = left_inverse[i], layout.screws[i]
                d = dot((h[0], h[1], h[2]), w) + dot((h[3], h[4], h[5]), u)
                dv[b, i] = d
                left_w = sub(left_w, scale(d, (s6[0], s6[1], s6[2])))
                left_u = sub(left_u, scale(d, (s6[3], s6[4], s6[5])))
            size = 1.0 + math.sqrt(dot(w, w) + dot(u, u))
            if math.sqrt(dot(left_w, left_w) + dot(left_u, left_u)) > tolerance * size:
                return k
    return -1
