"""The outward sweep: poses, hinge maps, velocities and bias accelerations (R86 5.1-5.6)."""

import math

from kfdyn.multibody._kernels.rotations import turn, turn_by_quaternion, unit_quaternion
from kfdyn.multibody._kernels.vectors import add, apply, copy3, cross, dot, get, high, inner, jit, low, put6, scale
from kfdyn.multibody.hinge import Coordinates

SCREWS, POSE = int(Coordinates.SCREWS), int(Coordinates.POSE)


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
