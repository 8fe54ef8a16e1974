"""Lagrange's side of a motion: generalised momenta, forces from the Lagrangian, and their transport."""

from kfdyn.multibody.hinge import Coordinates
from kfdyn.multibody.recursions.robot import SCREW
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps import IN_ORDER, Record, Vec3, carried, choice, down, local, loop, real, sweep, when

SCREWS, BALL = int(Coordinates.SCREWS), int(Coordinates.BALL)
# Terms of the exponential series: |ad| = 2 leaves 2^40 / 40! = 1e-36.
TERMS = 40

LEVER = Record(l=Vec3)


@sweep(flags=IN_ORDER)
def momenta(order, parent, l, inertia, V, h):
    """Σ φ(k,j) M(j) V(j) over all that is outboard of k: (batch, n, 6), with levers (batch, n, 3), flat."""
    n = parent.size
    for at in loop(V.size // 6):
        M = inertia.matrix(36 * at, 6, 6)
        for i in range(6):
            h[6 * at + i] = sum(M[i, j] * V[6 * at + j] for j in range(6))
    for b in loop(V.size // (6 * n)):
        gather(order, parent, l.part(3 * n * b), h.part(6 * n * b))


@sweep(flags=IN_ORDER)
def forces(order, parent, l, inertia, gravity, f):
    """Σ φ(k,j) (f(j) + M(j) [0; g]) over all that is outboard of k; ``gravity`` is (batch, 3)."""
    n = parent.size
    for b in loop(gravity.size // 3):
        for k in loop(n):
            at = n * b + k
            M = inertia.matrix(36 * at, 6, 6)
            for i in range(6):
                f[6 * at + i] = f[6 * at + i] + sum(M[i, 3 + j] * gravity[3 * b + j] for j in range(3))
        gather(order, parent, l.part(3 * n * b), f.part(6 * n * b))


def gather(order, parent, l, f):
    """f(k) ← Σ φ(k,j) f(j) over all that is outboard, in place."""
    levers, gathered = LEVER.rows(l), SCREW.rows(f)
    for step in down(parent.size):
        k = order[step]
        for _ in when(parent[k] >= 0):
            above = gathered[parent[k]]
            above.h = above.h + gathered[k].h.force_shifted(levers[k].l)


@sweep(flags=IN_ORDER)
def rates(coordinates, v_start, armature, v, H, V, h, f, momentum, rate):
    """p = dL/dv and dL/dq at fixed v, of h(k) = Σ φ M V, the momentum outboard of hinge k, and f, the force there.

    p = H h + R v. Turning hinge k at fixed rates moves all that is outboard against V(p), hence
    dL/dq = (V(p) × H*)·h(k) + H f. Batches (batch, nv), (batch, nv, 6), (batch, n, 6), flat. About 100 flops a body.
    """
    n, nv = coordinates.size, armature.size
    for b in loop(V.size // (6 * n)):
        at, rows = nv * b, SCREW.rows(H.part(6 * nv * b))
        motions, outboard, pulls = (SCREW.rows(x.part(6 * n * b)) for x in (V, h, f))
        for k in loop(n):
            first, last, screws = v_start[k], v_start[k + 1], coordinates[k] == SCREWS
            group = in_group(coordinates, v_start, k)
            moving = carried(motions[k].h)  # what moves a screw: all that lies inboard of it
            for _ in when(group):
                for i in loop(last, first):
                    moving.set(moving.get() - v[at + i] * rows[i].h)
            own, pull = outboard[k].h, pulls[k].h
            for i in down(last, first):
                row = rows[i].h
                momentum[at + i] = row.dot(own) + armature[i] * v[at + i]
                rate[at + i] = turned(moving.get(), row).dot(own) + row.dot(pull)
                for _ in when(screws):  # an earlier screw is carried by those before it alone
                    moving.set(moving.get() - v[at + i] * row)
            for _ in when(group):  # rotors are not turned with the body: take back what transport will do to R v
                whole, speed = last - first == 6, twist(v, at + first, last - first == 6)
                spin = [r * x for r, x in zip(numbers(twist(armature, first, whole)), numbers(speed))]
                add(rate, at + first, whole, -1.0, ad_star(speed, Spatial.of(spin)))


@sweep(flags=IN_ORDER)
def transport(coordinates, v_start, step, p, mean, moved):
    """Mean = J* p and moved = Ad* p along exp(step), hinge by hinge, for a batch (batch, nv), flat.

    Ad* = exp(ad*) and J* = Σ ad*ⁿ / (n + 1)!, the transposed left Jacobian of the exponential. Hinges of screws have
    coordinates, hence ad = 0; so do hinge maps that form no group, whose turning is in the rate.
    """
    n = coordinates.size
    nv = v_start[n]
    for b in loop(choice(nv > 0, p.size // choice(nv > 0, nv, 1), 0)):
        for i in loop(nv):
            mean[nv * b + i] = p[nv * b + i]
            moved[nv * b + i] = p[nv * b + i]
        for k in loop(n):
            for _ in when(in_group(coordinates, v_start, k)):
                at, whole = nv * b + v_start[k], v_start[k + 1] - v_start[k] == 6
                along, factor = twist(step, at, whole), local(1.0)
                term = carried(twist(p, at, whole))
                for order in loop(TERMS, 1):
                    term.set(ad_star(along, term.get()))
                    factor.set(factor / real(order))
                    add(moved, at, whole, factor, term.get())
                    add(mean, at, whole, factor / real(order + 1), term.get())


def in_group(coordinates, v_start, k):
    """Whether hinge k moves in all of SO(3) or SE(3), so that its momentum can be carried along."""
    return (coordinates[k] != SCREWS) & (v_start[k + 1] - v_start[k] == choice(coordinates[k] == BALL, 3, 6))


def turned(V, x):
    """V × x of two motions."""
    return Spatial(V.w.cross(x.w), V.w.cross(x.v) + V.v.cross(x.w))


def ad_star(x, p):
    """ad*_x p in se(3), body frame: the rate of a momentum that is fixed in space, as x moves."""
    return Spatial(p.w.cross(x.w) + p.v.cross(x.v), p.v.cross(x.w))


def twist(memory, at, whole):
    """Three or six numbers as a spatial vector; the other three are 0, and so(3) is a part of se(3)."""
    linear = [choice(whole, memory[choice(whole, at + 3 + i, at)], 0.0) for i in range(3)]
    return Spatial.of([*(memory[at + i] for i in range(3)), *linear])


def numbers(x):
    """The six numbers of a spatial vector."""
    return [*x.w, *x.v]


def add(memory, at, whole, factor, x):
    """Add factor x to three or six numbers."""
    for i, value in enumerate(x.w):
        memory[at + i] = memory[at + i] + factor * value
    for _ in when(whole):
        for i, value in enumerate(x.v):
            memory[at + 3 + i] = memory[at + 3 + i] + factor * value
