"""Motion on the configuration space: q moved by dv, and the dv between two q."""

import math

from kfdyn.multibody._kernels.rotations import (
    quaternion_exp,
    quaternion_log,
    quaternion_product,
    rotate,
    unit_quaternion,
)
from kfdyn.multibody._kernels.vectors import add, cross, dot, high, inner, jit, low, scale, sub
from kfdyn.multibody.hinge import Coordinates

SCREWS, POSE = int(Coordinates.SCREWS), int(Coordinates.POSE)


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
