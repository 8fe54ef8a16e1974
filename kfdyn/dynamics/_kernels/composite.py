"""Composite body inertias and the mass matrix made of them, in world orientation (SKO "mass-algorithm")."""

from typing import Any

from numba import njit

from kfdyn.multibody._kernels.vectors import add, cross, dot, get, high, low, scale

SWEEP: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**SWEEP)
def composite_inertias(layout, l, inertia):
    """R(p) += phi(p,k) R(k) phi*(p,k), leaves to roots; ``inertia`` (batch, n, 6, 6) arrives as M (R86 7.9).

    A rigid body's inertia about a point is m, h = m p and J; about a point -l away it is

        m,   h + m l,   J + 2 (l.h) 1 - l h* - h l* + m (l.l 1 - l l*)

    About 60 flops per body, an eighth of the congruence.
    """
    for b in range(len(inertia)):
        for step in range(layout.order.size):
            k = layout.order[layout.order.size - 1 - step]
            p = layout.parent[k]
            if p < 0:
                continue
            own, above = inertia[b, k], inertia[b, p]
            m, r = own[3, 3], get(l[b], k)
            h = (own[2, 4], own[0, 5], own[1, 3])
            moved = add(h, scale(m, r))
            spread = dot(r, add(h, moved))
            for i in range(3):
                above[i, i] += spread
                above[3 + i, 3 + i] += m
                for j in range(3):
                    above[i, j] += own[i, j] - r[i] * h[j] - moved[i] * r[j]
            for i, j, along in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                x = moved[along]
                above[i, 3 + j] -= x
                above[3 + j, i] -= x
                above[j, 3 + i] += x
                above[3 + i, j] += x


@njit(**SWEEP)
def mass_matrix(layout, l, H, composite, out):
    """Fill out (batch, nv, nv), zeros given: column i is H phi(., k) R(k) H*(i) along the ancestors of k (R86 7.11).

    Rotors are added on the diagonal. About 66 flops per dof and 12 per pair of related dofs.
    """
    for b in range(len(out)):
        M = out[b]
        for k in range(layout.parent.size):
            R = composite[b, k]
            for i in range(layout.v_start[k], layout.v_start[k + 1]):
                w, u = low(H[b], i), high(H[b], i)
                moment = _row(R, 0, w, u), _row(R, 1, w, u), _row(R, 2, w, u)
                force = _row(R, 3, w, u), _row(R, 4, w, u), _row(R, 5, w, u)
                j, last = k, i + 1
                while j >= 0:
                    for o in range(layout.v_start[j], last):
                        M[i, o] = M[o, i] = dot(low(H[b], o), moment) + dot(high(H[b], o), force)
                    moment = add(moment, cross(get(l[b], j), force))  # phi(p(j), j)
                    j = layout.parent[j]
                    last = layout.v_start[j + 1]
                M[i, i] += layout.armature[i]


@njit(nogil=True, inline="always")
def _row(R, i, w, u):
    return R[i, 0] * w[0] + R[i, 1] * w[1] + R[i, 2] * w[2] + R[i, 3] * u[0] + R[i, 4] * u[1] + R[i, 5] * u[2]
