"""The outward sweep: poses, hinge maps, velocities and bias accelerations (R86 5.1-5.6).

A body's motion comes from its parent's by value: whoever sweeps keeps what it needs, and the compiler leaves out the
rest. Rows of H alone go to memory, since a later dof of a hinge shifts the rows of the earlier ones.
"""

from kfdyn.multibody._kernels.facts import facts_of, get3, get9, pointer, set3, set9
from kfdyn.multibody._kernels.rotations import from_quaternion, sine_cosine, turn
from kfdyn.multibody._kernels.vectors import add, apply, compose, cross, dot, inner, jit, scale
from kfdyn.multibody.hinge import Coordinates

SCREWS, POSE = int(Coordinates.SCREWS), int(Coordinates.POSE)
NONE, UNTURNED = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


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
def outward_body(facts, k, q, v, R, x, omega, velocity, H):
    """Orientation, position, velocity and eta of body k, given the first four of its parent; q and v of one state.

    Rows of H, six numbers each, are world-oriented, at the child's origin. About 150 flops for one dof.
    """
    first, last, at = facts.v_start[k], facts.v_start[k + 1], facts.q_start[k]
    # to the hinge frame, fixed in the parent
    l = apply(R, get3(facts.position, 3 * k))
    R = compose(R, get9(facts.rotation, 9 * k))
    omega, velocity, alpha, a = across(omega, velocity, NONE, NONE, l, NONE, NONE)
    x = add(x, l)
    if facts.coordinates[k] == SCREWS:
        for i in range(first, last):
            axis, slide = get3(facts.screws, 6 * i), get3(facts.screws, 6 * i + 3)
            angle, rate, l = q[at + i - first], v[i], NONE
            h_omega, h_v = apply(R, axis), apply(R, slide)
            slides = dot(slide, slide) > 0.0
            if dot(axis, axis) > 0.0:
                s, c = sine_cosine(angle)
                if slides:  # exp of a screw: l = (angle + (1 - cos) a~ + (angle - sin) a~ a~) slide
                    n = cross(axis, slide)
                    l = add(scale(angle, slide), add(scale(1.0 - c, n), scale(angle - s, cross(axis, n))))
                    l = apply(R, l)
                R = turn(R, axis, s, c)
            elif slides:
                l = scale(angle, h_v)
            set3(H, 6 * i, h_omega)
            set3(H, 6 * i + 3, h_v)
            if slides:  # the origin moves on by l: shift this row and the earlier ones of the hinge, phi*
                for j in range(first, i + 1):
                    set3(H, 6 * j + 3, add(get3(H, 6 * j + 3), cross(get3(H, 6 * j), l)))
                h_v = get3(H, 6 * i + 3)
                x = add(x, l)
            omega, velocity, alpha, a = across(omega, velocity, alpha, a, l, scale(rate, h_omega), scale(rate, h_v))
    else:
        l = NONE
        if facts.coordinates[k] == POSE:
            l = apply(R, get3(q, at))
            at += 3
        R = compose(R, from_quaternion(q[at], q[at + 1], q[at + 2], q[at + 3]))
        h_omega, h_v = NONE, NONE
        for i in range(first, last):
            w, u = apply(R, get3(facts.screws, 6 * i)), apply(R, get3(facts.screws, 6 * i + 3))
            set3(H, 6 * i, w)
            set3(H, 6 * i + 3, u)
            h_omega = add(h_omega, scale(v[i], w))
            h_v = add(h_v, scale(v[i], u))
        omega, velocity, alpha, a = across(omega, velocity, alpha, a, l, h_omega, h_v)
        x = add(x, l)
    return R, x, omega, velocity, alpha, a


@jit
def outward(layout, q, v, R, p, H, V, eta):
    """Fill R (batch,n,3,3), p (batch,n,3), H (batch,nv,6), V, eta (batch,n,6)."""
    facts = facts_of(layout)
    n, nq, nv = facts.n, facts.nq, facts.nv
    for b in range(len(q)):
        _outward_row(
            facts, pointer(q, b * nq), pointer(v, b * nv), pointer(R, 9 * n * b), pointer(p, 3 * n * b),
            pointer(H, 6 * nv * b), pointer(V, 6 * n * b), pointer(eta, 6 * n * b),
        )  # fmt: skip


@inner
def _outward_row(facts, q, v, R, p, H, V, eta):
    for t in range(facts.n):
        k = facts.order[t]
        parent = facts.parent[k]
        turned, x, omega, velocity = UNTURNED, NONE, NONE, NONE
        if parent >= 0:
            turned, x = get9(R, 9 * parent), get3(p, 3 * parent)
            omega, velocity = get3(V, 6 * parent), get3(V, 6 * parent + 3)
        turned, x, omega, velocity, alpha, a = outward_body(facts, k, q, v, turned, x, omega, velocity, H)
        set9(R, 9 * k, turned)
        set3(p, 3 * k, x)
        set3(V, 6 * k, omega)
        set3(V, 6 * k + 3, velocity)
        set3(eta, 6 * k, alpha)
        set3(eta, 6 * k + 3, a)
