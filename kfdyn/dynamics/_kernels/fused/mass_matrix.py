"""The mass matrix by composite bodies: a gather of ℛ, then walks from each hinge to the root (SKO "mass-algorithm")."""

import numpy as np
from numba import njit

from kfdyn.dynamics._kernels.fused.outward import BODY, ORIENTATION, SHIFT, get3, get9, half, load_angles, outward_body
from kfdyn.dynamics._kernels.fused.spatial import add, apply, cross, dot, rotate_symmetric, scale, symmetric_apply
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, size
from kfdyn.estimation._kernels.vectors import get, put, zero

#: Numbers of a composite body: moment of inertia about the hinge point 6, first moment 3, mass 1.
MOMENT, FIRST, MASS, COMPOSITE = 0, 6, 9, 10


@njit(**ORDERED_SWEEP)
def mass_matrix(tag, layout, q, first, last, out):
    """𝓜 of rows first … last into the flat ``out``, zeros between unrelated hinges included. O(N depth)."""
    lanes = size(tag, 1)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    work, H, body = np.empty(n * BODY * lanes), np.empty(nv * 6 * lanes), np.empty(n * COMPOSITE * lanes)
    q_buf, trig, still = np.empty(nq * lanes), np.empty(nq * lanes), np.zeros(nv * lanes)
    entry = np.empty(lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        load_angles(tag, q, nq, at, count, False, q_buf)
        load_angles(tag, q, nq, at, count, True, trig)
        for k in layout.order:
            outward_body(tag, layout, k, q_buf, still, trig, False, work, H)
            own_body(tag, layout, k, work, body)
        for row in range(at, at + count):
            for i in range(nv * nv):
                out[row * nv * nv + i] = 0.0
        for step in range(n):
            k = layout.order[n - 1 - step]
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                w, s = get3(tag, H, 6 * i), get3(tag, H, 6 * i + 3)
                p = get3(tag, body, k * COMPOSITE + FIRST)
                J = moment_of(tag, body, k)
                moment = add(symmetric_apply(J, w), cross(p, s))
                force = add(scale(get(tag, body, k * COMPOSITE + MASS), s), cross(w, p))
                j = k
                while j >= 0:  # f(i) = ℛ h seen by the hinges inboard
                    for other in range(layout.v_start[j], min(layout.v_start[j + 1], i + 1 if j == k else nv)):
                        value = dot(get3(tag, H, 6 * other), moment) + dot(get3(tag, H, 6 * other + 3), force)
                        if other == i:
                            value = value + layout.armature[i]
                        put(tag, entry, 0, value)
                        for l in range(count):
                            out[((at + l) * nv + i) * nv + other] = entry[l]
                            out[((at + l) * nv + other) * nv + i] = entry[l]
                    moment = add(moment, cross(get3(tag, work, j * BODY + SHIFT), force))
                    j = layout.parent[j]
            if layout.parent[k] >= 0:
                join_body(tag, layout, k, work, body)


@njit(**ORDERED)
def moment_of(tag, body, k):
    a, b = get3(tag, body, k * COMPOSITE), get3(tag, body, k * COMPOSITE + 3)
    return a[0], a[1], a[2], b[0], b[1], b[2]


@njit(**ORDERED)
def own_body(tag, layout, k, work, body):
    """The body's own inertia, world orientation, about its hinge point."""
    here = k * COMPOSITE
    R = get9(tag, work, k * BODY + ORIENTATION)
    b, m, c = layout.J[k], layout.mass[k], half(layout.com, k, 0)
    J = rotate_symmetric(R, (b[0, 0], b[0, 1], b[0, 2], b[1, 1], b[1, 2], b[2, 2]))
    p = apply(R, (m * c[0], m * c[1], m * c[2]))
    for i in range(6):
        put(tag, body, here + MOMENT + i, J[i])
    for i in range(3):
        put(tag, body, here + FIRST + i, p[i])
    put(tag, body, here + MASS, zero(tag) + m)


@njit(**ORDERED)
def join_body(tag, layout, k, work, body):
    """ℛ(p) += φ ℛ(k) φ*: the parallel axis theorem with l (R86 7.9). J + 2 p·l 1 − p l* − l p* + m (l·l 1 − l l*)."""
    here, up = k * COMPOSITE, layout.parent[k] * COMPOSITE
    l, p, m = get3(tag, work, k * BODY + SHIFT), get3(tag, body, here + FIRST), get(tag, body, here + MASS)
    J = moment_of(tag, body, k)
    r = add(p, scale(0.5 * m, l))  # then the added moment is 2 r·l 1 − r l* − l r*
    d = 2.0 * dot(r, l)
    added = (
        J[0] + (d - 2.0 * r[0] * l[0]), J[1] - (r[0] * l[1] + l[0] * r[1]), J[2] - (r[0] * l[2] + l[0] * r[2]),
        J[3] + (d - 2.0 * r[1] * l[1]), J[4] - (r[1] * l[2] + l[1] * r[2]), J[5] + (d - 2.0 * r[2] * l[2]),
    )  # fmt: skip
    moved = add(p, scale(m, l))
    for i in range(6):
        put(tag, body, up + MOMENT + i, get(tag, body, up + MOMENT + i) + added[i])
    for i in range(3):
        put(tag, body, up + FIRST + i, get(tag, body, up + FIRST + i) + moved[i])
    put(tag, body, up + MASS, get(tag, body, up + MASS) + m)
