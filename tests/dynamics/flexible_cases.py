"""Flexible systems to test on, and mechanics of their points that shares no code with the engine."""

import numpy as np

import kfdyn as kf
from kfdyn.spatial import spatial_inertia


def inertia(rng, mass):
    """Of a body that could exist: J = tr(S) 1 − S for a positive definite second moment S of its mass."""
    A = 0.1 * rng.normal(size=(3, 3))
    S = A @ A.T + 0.01 * np.eye(3)
    return spatial_inertia(mass, 0.1 * rng.normal(size=3), np.trace(S) * np.eye(3) - S)


def random_flexible(rng, name, **body):
    """Seven points with random shapes; the fourth is where children are attached, and turns."""
    points = rng.normal(size=(7, 3))
    shapes, turns = 0.3 * rng.normal(size=(7, 3, 3)), 0.4 * rng.normal(size=(7, 3, 3))
    bends = 0.2 * rng.normal(size=(7, 3, 3, 3))
    K = rng.normal(size=(3, 3))
    return kf.FlexibleBody(
        name, rng.uniform(0.2, 1, 7), points, shapes, K @ K.T + 5 * np.eye(3), 0.0, turns, bends + bends.swapaxes(2, 3),
        **body,
    )  # fmt: skip


def tree(seed):
    """A rigid base, two flexible bodies, rigid children on them, a ball hinge, a slide and a rotor."""
    rng = np.random.default_rng(seed)
    first = random_flexible(
        rng, "first", hinge=kf.Hinge.revolute([0.2, 1, 0.3]), parent="base", position=rng.normal(size=3)
    )
    second = random_flexible(
        rng, "second", hinge=kf.Hinge.ball(), parent="first", position=first.points[3], armature=0.0
    )
    return kf.FlexibleSystem(
        [
            kf.Body("base", inertia(rng, 2.0), kf.Hinge.revolute([0, 0.6, 0.8]), armature=0.3),
            first,
            second,
            kf.Body("slider", inertia(rng, 0.7), kf.Hinge.prismatic([1, 0, 0.5]), "first", position=first.points[2]),
            kf.Body("tip", inertia(rng, 0.5), kf.Hinge.revolute([0, 0, 1]), "second", position=second.points[5]),
            kf.Body("weld", inertia(rng, 0.4), None, "second", position=second.points[1]),
        ],
        frames={"tool": kf.Frame("second", position=second.points[3])},
    )


def state(system, seed):
    rng = np.random.default_rng(seed)
    return system.random_configuration(rng), rng.normal(size=system.nv)


def velocity_map(system, q):
    """Every point's and body's motion by differences of positions alone: the columns of J, (rows, nv)."""
    from kfdyn.multibody.points import point_motion

    columns = []
    for i in range(system.nv):
        move = np.zeros(system.nv)
        move[i] = h = 1e-3
        rates = [_positions(system, kf.integrate(system, q, s * move), point_motion) for s in (-2, -1, 1, 2)]
        columns.append((rates[0] - 8 * rates[1] + 8 * rates[2] - rates[3]) / (12 * h))
    return np.array(columns).T


def _positions(system, q, point_motion):
    zero = np.zeros(system.nv)
    out = []
    for name in system.body_names:
        if name in system.flexible:
            out.append(point_motion(system, q, zero, name).position.ravel())
        else:  # a rigid body is as good as four points
            pose = kf.frame_pose(system, q, name)
            out.append((pose.position + SIX @ pose.rotation.T).ravel())
    return np.concatenate(out)


#: Points by which a rigid body is weighed in :func:`weights`: the origin and one on each axis.
SIX = np.concatenate([np.zeros((1, 3)), np.eye(3)])


def weights(system):
    """Block-diagonal W with J*WJ = 𝓜 less the rotors: for rigid bodies ∫ρ of the four barycentric functions."""
    blocks = []
    for k, name in enumerate(system.body_names):
        if name in system.flexible:
            W = system.flexible[name].mass
            W = np.diag(W) if W.ndim == 1 else W
        else:
            M = system.bodies[k].inertia
            m = M[3, 3]
            c = np.array([-M[1, 5], M[0, 5], -M[0, 4]])  # m p, from the block m p~
            J = M[:3, :3]
            second = 0.5 * np.trace(J) * np.eye(3) - J  # ∫ρ x x*
            W = np.zeros((4, 4))
            W[1:, 1:] = second
            W[0, 1:] = W[1:, 0] = c - second.sum(axis=0)
            W[0, 0] = m - 2 * c.sum() + second.sum()
        blocks.append(np.kron(W, np.eye(3)))
    size = sum(len(b) for b in blocks)
    whole, at = np.zeros((size, size)), 0
    for b in blocks:
        whole[at : at + len(b), at : at + len(b)] = b
        at += len(b)
    return whole


HINGES = (
    lambda: kf.Hinge.revolute([0.3, -0.5, 0.8]), lambda: kf.Hinge.prismatic([0.2, 1, 0]), kf.Hinge.ball,
    kf.Hinge.universal, lambda: kf.Hinge.helical([0, 0, 1], 0.1), lambda: None,
)  # fmt: skip


def random_tree(seed):
    """Ragged: bodies of one to five modes or none, hinges of all kinds, children of children, two roots at times.

    Some bodies have no turns, some no quadratic shortening; attachments and bodies stand at right angles at times.
    """
    rng = np.random.default_rng(seed)
    bodies, points = [], {}
    for k in range(int(rng.integers(2, 7))):
        name = f"b{k}"
        names = list(points)
        parent = None if not names or rng.random() < 0.1 else names[int(rng.integers(len(names)))]
        hinge = HINGES[int(rng.integers(len(HINGES)))]() if parent else (kf.Hinge.free() if k % 2 else HINGES[0]())
        at = rng.normal(size=3) if parent is None else points[parent][int(rng.integers(len(points[parent])))]
        turn = np.eye(3)[rng.permutation(3)]
        turn = turn * np.linalg.det(turn) if rng.random() < 0.5 else np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn = turn * np.linalg.det(turn)
        placed = {"hinge": hinge, "parent": parent, "position": at, "rotation": turn}
        if rng.random() < 0.65:
            n, N = int(rng.integers(1, 6)), int(rng.integers(6, 12))
            r, K = rng.normal(size=(N, 3)), rng.normal(size=(n, n))
            bends = 0.1 * rng.normal(size=(N, 3, n, n)) if rng.random() < 0.5 else None
            mass = rng.uniform(0.2, 1, N)
            if rng.random() < 0.3:  # a consistent mass matrix
                A = 0.1 * rng.normal(size=(N, N))
                mass = np.diag(mass) + A @ A.T
            bodies.append(
                kf.FlexibleBody(
                    name, mass, r, 0.3 * rng.normal(size=(N, 3, n)), K @ K.T + 5 * np.eye(n), 0.02,
                    0.4 * rng.normal(size=(N, 3, n)) if rng.random() < 0.7 else None,
                    None if bends is None else bends + bends.swapaxes(2, 3), **placed,
                )
            )  # fmt: skip
            points[name] = r
        else:
            armature = 0.2 if rng.random() < 0.3 and hinge is not None else 0.0
            bodies.append(kf.Body(name, inertia(rng, rng.uniform(0.3, 2)), armature=armature, **placed))
            points[name] = rng.normal(size=(3, 3))
    return kf.FlexibleSystem(bodies)


def flexible_joint(rng, gyroscopic=False):
    """A spring, a damper and a rotor behind a gear; the ratio may turn the other way."""
    ratio = float(rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(0, 2))
    return kf.FlexibleJoint(
        stiffness=10 ** rng.uniform(0, 3), rotor_inertia=10 ** rng.uniform(-1, 0.5) / ratio**2,
        damping=float(rng.choice([0.0, 0.3])), ratio=ratio, gyroscopic=gyroscopic,
    )  # fmt: skip


def jointed_bodies(seed, gyroscopic=False):
    """Bodies, rigid and not, on hinges of one dof of which most give way, and on others; two roots at times."""
    rng = np.random.default_rng(seed)
    one_dof = [
        lambda f: kf.Hinge.revolute(rng.normal(size=3), flexible=f),
        lambda f: kf.Hinge.prismatic(rng.normal(size=3), flexible=f),
        lambda f: kf.Hinge.helical(rng.normal(size=3), 0.2, flexible=f),
    ]
    bodies, points = [], {}
    for k in range(int(rng.integers(2, 6))):
        names = list(points)
        parent = None if not names or rng.random() < 0.15 else names[int(rng.integers(len(names)))]
        at = rng.normal(size=3) if parent is None else points[parent][int(rng.integers(len(points[parent])))]
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        joint = flexible_joint(rng, gyroscopic) if rng.random() < 0.7 else None
        hinge = one_dof[0 if gyroscopic else int(rng.integers(3))](joint)
        if rng.random() < 0.2:
            hinge = kf.Hinge.ball() if rng.random() < 0.5 else None
        placed = {"hinge": hinge, "parent": parent, "position": at, "rotation": turn * np.linalg.det(turn)}
        if rng.random() < 0.4:
            bodies.append(random_flexible(rng, f"b{k}", hinge_name=f"h{k}", **placed))
            points[f"b{k}"] = bodies[-1].points
        else:
            bodies.append(kf.Body(f"b{k}", inertia(rng, rng.uniform(0.3, 2)), hinge_name=f"h{k}", **placed))
            points[f"b{k}"] = rng.normal(size=(3, 3))
    return bodies


def random_couplings(rng, bodies):
    """Some hinges of one dof share fewer coordinates: gears, mimic joints, differentials; at times none can."""
    rigid = [b.rigid if isinstance(b, kf.FlexibleBody) else b for b in bodies]
    names = [b.hinge_name for b in rigid if b.hinge.nv == 1]
    rng.shuffle(names)
    out = []
    while len(names) >= 2:
        count = int(rng.integers(2, min(3, len(names)) + 1))
        group, names = names[:count], names[count:]
        r = int(rng.integers(1, count + 1))
        out.append(kf.Coupling(group, rng.normal(size=(count, r)), rng.normal(size=count)))
    return out


def compiled(kernel, system, *arguments):
    """What the compiled recursion itself answers to all rows, no explanation being asked."""
    assert kernel.serving(system) is not None
    states = kernel.bound(system, arguments)
    answers, declined = kernel.swept(states)
    assert not declined.any()
    return states.shaped(answers[0])
