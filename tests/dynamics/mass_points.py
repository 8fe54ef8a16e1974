"""Mechanics of mass points that shares no line with the library: homogeneous matrices, complex steps, sums.

Positions of all points are a function of q; derivatives along the hinges' own rates are taken by steps of 1e-30 along
the imaginary axis, exact to rounding. So 𝓜 = J*WJ, and c = J*W(p̈ − g) + elastic forces.
"""

import numpy as np
from scipy.linalg import expm

import kfdyn as kf

STEP = 1e-30
#: A rigid body is as good as four points: the origin and one on each axis, with a mass matrix between them.
FOUR = np.concatenate([np.zeros((1, 3)), np.eye(3)])


def reach(body):
    """How far out the points on the axes are: as far as the body's mass, that no digit is lost."""
    mass = body.inertia[3, 3]
    return np.sqrt(np.trace(body.inertia[:3, :3]) / mass) if mass else 1.0


def hat(x):
    """4×4 of a twist [angular; linear]."""
    out = np.zeros((4, 4), dtype=np.result_type(x, float))
    w, out[:3, 3] = x[:3], x[3:]
    out[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    return out


def place(rotation, position):
    out = np.eye(4, dtype=np.result_type(rotation, position, float))
    out[:3, :3], out[:3, 3] = rotation, position
    return out


def quaternion(e):
    x, y, z, w = e
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])  # fmt: skip


def across(hinge, q, dv):
    """Pose of a hinge at q, moved on by its rates dv."""
    if hinge.kind == "ball":
        return place(quaternion(q), np.zeros(3)) @ expm(hat(np.concatenate([dv, np.zeros(3)])))
    if hinge.kind == "free":
        return place(quaternion(q[3:]), q[:3]) @ expm(hat(dv))
    out = np.eye(4)
    for screw, x in zip(hinge.screws, np.asarray(q) + dv, strict=True):
        out = out @ expm(hat(screw) * x)
    return out


def deformed(points, shapes, bends, eta):
    s = points + np.einsum("iaj,j->ia", shapes, eta)
    return s if bends is None else s + 0.5 * np.einsum("iajl,j,l->ia", bends, eta, eta)


def hinge_state(system, name, q, dv):
    """Position of a hinge, and how far it is moved on: with couplings Xs + offset and X ds."""
    where = [c for c in system.couplings if name in c.hinges]
    if where:
        (c,) = where
        s = [system.v_slice(own).start for own in c.named]  # hinges of one dof: as many in q
        t = [system.q_slice(own).start for own in c.named]
        i = c.hinges.index(name)
        x, dx = np.array([c.X[i] @ q[t] + c.offset[i]]), np.array([c.X[i] @ dv[s]])
    else:
        x, dx = q[system.q_slice(name)], dv[system.v_slice(name)]
    return x, dx


def given_bodies(system, given):
    return system.bodies if given is None else given


def spring_of(body):
    """Name of the deflection of a flexible joint, as it was given."""
    rigid = body.rigid if isinstance(body, kf.FlexibleBody) else body
    return None if rigid.hinge.flexible is None else f"{rigid.hinge_name}/spring"


def positions(system, q, dv, given=None):
    """All points in the world, body after body, of q moved on by dv (which may be complex).

    ``given`` are the bodies that the system was made of, hinges that give way among them; else its own.
    """
    poses, out = {}, []
    bodies = {body.name: body for body in given_bodies(system, given)}
    eta = {
        name: q[system.mode_slice(name)] + dv[system.mode_slice(name, True)]
        for name in bodies
        if isinstance(bodies[name], kf.FlexibleBody)
    }

    def pose(name):
        if name not in poses:
            body = bodies[name]
            rigid = body.rigid if name in eta else body
            up, at = np.eye(4), place(rigid.rotation, rigid.position)
            if rigid.parent is not None:
                up, parent = pose(rigid.parent), bodies[rigid.parent]
                if rigid.parent in eta:
                    i = [int(np.linalg.norm(parent.points - rigid.position, axis=1).argmin())]
                    bends = None if parent.bends is None else parent.bends[i]
                    s = deformed(parent.points[i], parent.shapes[i], bends, eta[rigid.parent])[0]
                    turn = expm(hat(np.concatenate([parent.turns[i[0]] @ eta[rigid.parent], np.zeros(3)])))
                    at = place(turn[:3, :3] @ rigid.rotation, s)
            own_q, own_v = hinge_state(system, rigid.hinge_name, q, dv)
            spring = spring_of(rigid)
            if spring is not None:
                own_q, own_v = own_q + q[system.q_slice(spring)], own_v + dv[system.v_slice(spring)]
            poses[name] = up @ at @ across(rigid.hinge, own_q, own_v)
        return poses[name]

    for body in bodies.values():
        local = (
            deformed(body.points, body.shapes, body.bends, eta[body.name]) if body.name in eta else reach(body) * FOUR
        )
        A = pose(body.name)
        out.append(local @ A[:3, :3].T + A[:3, 3])
    return np.concatenate(out)


def weights(system, given=None):
    """Mass matrix between all points: of rigid bodies ∫ρ of the four barycentric functions."""
    from scipy.linalg import block_diag

    blocks = []
    for body in given_bodies(system, given):
        if isinstance(body, kf.FlexibleBody):
            blocks.append(np.diag(body.mass) if body.mass.ndim == 1 else body.mass)
            continue
        M = body.inertia
        first, J = np.array([-M[1, 5], M[0, 5], -M[0, 4]]) / reach(body), M[:3, :3] / reach(body) ** 2
        second = 0.5 * np.trace(J) * np.eye(3) - J
        W = np.zeros((4, 4))
        W[1:, 1:] = second
        W[0, 1:] = W[1:, 0] = first - second.sum(axis=0)
        W[0, 0] = M[3, 3] - 2 * first.sum() + second.sum()
        blocks.append(W)
    return block_diag(*blocks)


def jacobian(system, q, dv=None, given=None):
    """∂p/∂v (points, 3, nv) at q, or at q moved on by dv where that adds up."""
    start = np.zeros(system.nv) if dv is None else dv
    columns = [positions(system, q, start + 1j * STEP * e, given).imag / STEP for e in np.eye(system.nv)]
    return np.stack(columns, axis=-1)


def rotors(system, q, given=None):
    """Inertia of rotors: R of every hinge, ratio² J of a flexible joint's motor, at the rates that hinges have."""
    R = np.zeros((system.nv, system.nv))
    for body in given_bodies(system, given):
        rigid = body.rigid if isinstance(body, kf.FlexibleBody) else body
        joint, r = rigid.hinge.flexible, rigid.armature
        if joint is not None and not joint.gyroscopic:
            r = np.array([joint.ratio**2 * joint.rotor_inertia])
        if r.any():
            rates = np.array([hinge_state(system, rigid.hinge_name, q, e)[1] for e in np.eye(system.nv)])
            R += (rates * r) @ rates.T
    return R


def equations(system, q, v, gravity, given=None):
    """𝓜 and c of 𝓜a + c = tau."""
    W, J = weights(system, given), jacobian(system, q, given=given)
    M = np.einsum("iak,ij,jal->kl", J, W, J) + rotors(system, q, given)
    h = 1e-3

    def speed(t):
        return positions(system, q, (t + 1j * STEP) * v, given).imag / STEP

    rate = (speed(-2 * h) - 8 * speed(-h) + 8 * speed(h) - speed(2 * h)) / (12 * h)
    c = np.einsum("iak,ij,ja->k", J, W, rate - np.asarray(gravity))
    for body in given_bodies(system, given):
        if isinstance(body, kf.FlexibleBody):
            own = system.mode_slice(body.name, True)
            c[own] += body.stiffness @ q[system.mode_slice(body.name)] + body.damping @ v[own]
        spring = spring_of(body)
        if spring is not None:
            joint = (body.rigid if isinstance(body, kf.FlexibleBody) else body).hinge.flexible
            x, dx = q[system.q_slice(spring)], v[system.v_slice(spring)]
            c[system.v_slice(spring)] += joint.stiffness * x + joint.damping * dx
    return M, c
