"""Compiled outward sweep over a batch of configurations, and what is read off it.

World orientation throughout, reference at each body's origin. Vectors are 3-tuples inside, so that
nothing is allocated per body. Imported on first use only: numba is slow to load. One file, since numba's
cache looks for changes only in the file of the function that is called.
"""

import math

from numba import njit

SCREWS, BALL, POSE = 0, 1, 2
jit = njit(cache=True, nogil=True, error_model="numpy")
# Called from compiled code only: no doors for Python or C, which would take longer to compile than they do.
DOORLESS: dict = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(nogil=True, error_model="numpy", **DOORLESS)


# --- three-vectors -------------------------------------------------------------------------------


@inner
def get(a, i):
    """Row a[i, :3] as a tuple."""
    return a[i, 0], a[i, 1], a[i, 2]


low = get


@inner
def high(a, i):
    """Row a[i, 3:] as a tuple: the linear half of a spatial vector."""
    return a[i, 3], a[i, 4], a[i, 5]


@inner
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inner
def sub(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inner
def scale(s, a):
    return s * a[0], s * a[1], s * a[2]


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inner
def apply(A, x):
    """A x for a 3 x 3 array and a tuple."""
    return (
        A[0, 0] * x[0] + A[0, 1] * x[1] + A[0, 2] * x[2],
        A[1, 0] * x[0] + A[1, 1] * x[1] + A[1, 2] * x[2],
        A[2, 0] * x[0] + A[2, 1] * x[1] + A[2, 2] * x[2],
    )


@inner
def apply_transposed(A, x):
    """A* x for a 3 x 3 array and a tuple."""
    return (
        A[0, 0] * x[0] + A[1, 0] * x[1] + A[2, 0] * x[2],
        A[0, 1] * x[0] + A[1, 1] * x[1] + A[2, 1] * x[2],
        A[0, 2] * x[0] + A[1, 2] * x[1] + A[2, 2] * x[2],
    )


@inner
def copy3(A, out):
    """Entry by entry: a slice assignment would have numba compile its error messages, 5 s of them."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, j]


@inner
def put6(a, i, top, bottom):
    a[i, 0], a[i, 1], a[i, 2] = top
    a[i, 3], a[i, 4], a[i, 5] = bottom


# --- rotations -----------------------------------------------------------------------------------


@inner
def turn(R, a, angle):
    """R <- R exp(a~ angle) for a unit vector a in the moving frame (Rodrigues), row by row.

    Turning from the left by exp(w~ angle), w = R a, is the same on paper, but w inherits R's rounding, is
    no longer a unit vector, and the error grows with every hinge of a chain instead of adding up.
    """
    s, c = math.sin(angle), math.cos(angle)
    h = 2.0 * math.sin(0.5 * angle) ** 2  # 1 - cos, without cancellation
    for i in range(3):
        x = get(R, i)
        y = cross(x, a)
        d = h * dot(a, x)
        for j in range(3):
            R[i, j] = c * x[j] + s * y[j] + d * a[j]


@inner
def unit_quaternion(q, at):
    """The quaternion (x, y, z, w) at q[at:], divided by its length."""
    x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
    r = 1.0 / math.sqrt(x * x + y * y + z * z + w * w)
    return x * r, y * r, z * r, w * r


@inner
def rotate(e, x):
    """Turn the vector x by the unit quaternion e."""
    n = (e[0], e[1], e[2])
    t = scale(2.0, cross(n, x))
    return add(x, add(scale(e[3], t), cross(n, t)))


@inner
def quaternion_product(a, b):
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inner
def turn_by_quaternion(R, e):
    """R <- R R(e)."""
    x = rotate(e, (1.0, 0.0, 0.0))
    y = rotate(e, (0.0, 1.0, 0.0))
    z = rotate(e, (0.0, 0.0, 1.0))
    for i in range(3):
        r = (R[i, 0], R[i, 1], R[i, 2])
        R[i, 0], R[i, 1], R[i, 2] = dot(r, x), dot(r, y), dot(r, z)


# --- the outward sweep ---------------------------------------------------------------------------


@inner
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


@inner
def outward_one(layout, q, v, R, p, H, V, eta):
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
            copy3(layout.rotation[k], Rk)
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
            velocity = high(V, parent)
            x = get(p, parent)
        # to the hinge frame, fixed in the parent
        omega, velocity, alpha, a = across(omega, velocity, zero, zero, l, zero, zero)
        x = add(x, l)
        at = layout.q_start[k]
        if layout.coordinates[k] == SCREWS:
            for i in range(first, last):
                axis, slide = low(layout.screws, i), high(layout.screws, i)
                angle = q[at + i - first]
                put6(H, i, apply(Rk, axis), apply(Rk, slide))
                l = scale(angle, slide)
                turns = dot(axis, axis) > 0.0
                if turns:
                    # exp of a screw: l = (angle + (1 - cos) a~ + (angle - sin) a~ a~) slide
                    c = cross(axis, slide)
                    h = 2.0 * math.sin(0.5 * angle) ** 2
                    l = add(l, add(scale(h, c), scale(angle - math.sin(angle), cross(axis, c))))
                l = apply(Rk, l)
                if turns:
                    turn(Rk, axis, angle)
                # the origin moves on by l: shift this row and the earlier ones of the hinge, phi*
                for j in range(first, i + 1):
                    c = cross(get(H, j), l)
                    H[j, 3] += c[0]
                    H[j, 4] += c[1]
                    H[j, 5] += c[2]
                h_v = scale(v[i], high(H, i))
                omega, velocity, alpha, a = across(omega, velocity, alpha, a, l, scale(v[i], low(H, i)), h_v)
                x = add(x, l)
        else:
            l = zero
            if layout.coordinates[k] == POSE:
                l = apply(Rk, (q[at], q[at + 1], q[at + 2]))
                at += 3
            turn_by_quaternion(Rk, unit_quaternion(q, at))
            h_omega, h_v = zero, zero
            for i in range(first, last):
                w = apply(Rk, low(layout.screws, i))
                u = apply(Rk, high(layout.screws, i))
                put6(H, i, w, u)
                h_omega = add(h_omega, scale(v[i], w))
                h_v = add(h_v, scale(v[i], u))
            omega, velocity, alpha, a = across(omega, velocity, alpha, a, l, h_omega, h_v)
            x = add(x, l)
        p[k, 0], p[k, 1], p[k, 2] = x
        put6(V, k, omega, velocity)
        put6(eta, k, alpha, a)


@jit
def outward(layout, q, v, R, p, H, V, eta):
    """The sweep for a batch; compiled once, whatever is read off it afterwards."""
    for b in range(len(q)):
        outward_one(layout, q[b], v[b], R[b], p[b], H[b], V[b], eta[b])


# --- read off the sweep --------------------------------------------------------------------------


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


# --- motion on the configuration space -----------------------------------------------------------


@inner
def exp_coefficients(t):
    """(1 - cos t)/t^2 and (t - sin t)/t^3, by series where the quotients cancel."""
    if t < 0.1:
        s = t * t
        return (
            0.5 - s * (1 / 24 - s * (1 / 720 - s * (1 / 40320 - s / 3628800))),
            1 / 6 - s * (1 / 120 - s * (1 / 5040 - s * (1 / 362880 - s / 39916800))),
        )
    return 2.0 * (math.sin(0.5 * t) / t) ** 2, (t - math.sin(t)) / t**3


@inner
def quaternion_exp(w):
    half = 0.5 * math.sqrt(dot(w, w))
    s = 0.5 * (1.0 - half * half / 6.0) if half < 1e-4 else 0.5 * math.sin(half) / half
    return s * w[0], s * w[1], s * w[2], math.cos(half)


@inner
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
                w = add(w, scale(dv[b, i], low(layout.screws, i)))
                u = add(u, scale(dv[b, i], high(layout.screws, i)))
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
                d = dot(low(left_inverse, i), w) + dot(high(left_inverse, i), u)
                dv[b, i] = d
                left_w = sub(left_w, scale(d, low(layout.screws, i)))
                left_u = sub(left_u, scale(d, high(layout.screws, i)))
            size = 1.0 + math.sqrt(dot(w, w) + dot(u, u))
            if math.sqrt(dot(left_w, left_w) + dot(left_u, left_u)) > tolerance * size:
                return k
    return -1
