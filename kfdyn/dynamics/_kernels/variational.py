"""Lagrange's side of a motion: generalised momenta, forces from the Lagrangian, and their transport."""

from kfdyn.multibody._kernels.vectors import add, cross, dot, get, high, inner, jit, low, put6, scale, sub
from kfdyn.multibody.hinge import Coordinates

SCREWS, BALL = int(Coordinates.SCREWS), int(Coordinates.BALL)
# Terms of the exponential series: |ad| = 2 leaves 2^40 / 40! = 1e-36.
TERMS = 40


@inner
def gather(layout, l, f):
    """f(k) <- sum over outboard bodies of phi(k,j) f(j), in place."""
    for i in range(layout.order.size - 1, -1, -1):
        k = layout.order[i]
        parent = layout.parent[k]
        if parent >= 0:
            force = high(f, k)
            moment = add(low(f, k), cross(get(l, k), force))
            put6(f, parent, add(low(f, parent), moment), add(high(f, parent), force))


@inner
def product(M, x, out, k):
    """out[k] <- M x for a 6 x 6 array and a spatial vector given as a row."""
    for i in range(6):
        s = 0.0
        for j in range(6):
            s += M[i, j] * x[j]
        out[k, i] = s


@inner
def moves_in_group(layout, k):
    """Whether hinge k moves in all of SO(3) or SE(3), so that its momentum can be carried along."""
    m = layout.v_start[k + 1] - layout.v_start[k]
    return layout.coordinates[k] != SCREWS and (layout.coordinates[k] == BALL or m == 6)


@inner
def ad_star(size, x, p):
    """p <- ad*_x p in so(3) or se(3), body frame: the rate of a momentum that is fixed in space, as x moves."""
    w = (x[0], x[1], x[2])
    n = (p[0], p[1], p[2])
    top = cross(n, w)
    if size == 6:
        u, f = (x[3], x[4], x[5]), (p[3], p[4], p[5])
        top = add(top, cross(f, u))
        p[3], p[4], p[5] = cross(f, w)
    p[0], p[1], p[2] = top


@jit
def lagrangian(layout, gravity, force, v, l, H, inertia, V, h, f, momentum, rate):
    """p = dL/dv and dL/dq (with gravity and external forces) at fixed v, for a batch.

    h(k) = sum phi M V is the momentum outboard of hinge k, p = H h + R v. Turning hinge k at fixed rates
    moves all that is outboard against V(p), hence dL/dq = (V(p) x H*) . h(k). About 250 flops per body.
    """
    for b in range(len(v)):
        g = get(gravity, b)
        for k in range(layout.parent.size):
            M = inertia[b, k]
            product(M, V[b, k], h[b], k)
            for i in range(6):
                f[b, k, i] = force[b, k, i] + M[i, 3] * g[0] + M[i, 4] * g[1] + M[i, 5] * g[2]
        gather(layout, l[b], h[b])
        gather(layout, l[b], f[b])
        for k in range(layout.parent.size):
            first, last = layout.v_start[k], layout.v_start[k + 1]
            w, u = low(V[b], k), high(V[b], k)
            group = moves_in_group(layout, k)
            if group:
                for i in range(first, last):
                    w = sub(w, scale(v[b, i], low(H[b], i)))
                    u = sub(u, scale(v[b, i], high(H[b], i)))
            n, m = low(h[b], k), high(h[b], k)
            for i in range(last - 1, first - 1, -1):
                axis, slide = low(H[b], i), high(H[b], i)
                momentum[b, i] = dot(axis, n) + dot(slide, m) + layout.armature[i] * v[b, i]
                # (V x H*) . h, with the motion cross product
                turned = dot(cross(w, axis), n) + dot(add(cross(w, slide), cross(u, axis)), m)
                rate[b, i] = turned + dot(axis, low(f[b], k)) + dot(slide, high(f[b], k))
                if layout.coordinates[k] == SCREWS:  # an earlier screw is carried by those before it alone
                    w = sub(w, scale(v[b, i], axis))
                    u = sub(u, scale(v[b, i], slide))
            if group:  # rotors are not turned with the body: take back what transport will do to R v
                size = last - first
                rotor = momentum[b, first:last].copy()
                for i in range(size):
                    rotor[i] = layout.armature[first + i] * v[b, first + i]
                ad_star(size, v[b, first:last], rotor)
                for i in range(size):
                    rate[b, first + i] -= rotor[i]


@jit
def transport(layout, step, p, mean, moved):
    """mean = J* p and moved = Ad* p along exp(step), hinge by hinge, for a batch.

    Ad* = exp(ad*) and J* = sum ad*^n / (n + 1)!, the transposed left Jacobian of the exponential. Hinges of
    screws have coordinates, hence ad = 0; so do hinge maps that form no group, whose turning is in rate.
    """
    for b in range(len(p)):
        for k in range(layout.parent.size):
            first, last = layout.v_start[k], layout.v_start[k + 1]
            for i in range(first, last):
                mean[b, i] = moved[b, i] = p[b, i]
            if moves_in_group(layout, k):
                size = last - first
                term = p[b, first:last].copy()
                factor = 1.0
                for n in range(1, TERMS):
                    ad_star(size, step[b, first:last], term)
                    factor /= n
                    for i in range(size):
                        moved[b, first + i] += factor * term[i]
                        mean[b, first + i] += factor / (n + 1) * term[i]
