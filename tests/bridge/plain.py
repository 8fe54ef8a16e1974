"""Robots and time series written out in JAX, in the plainest way: what JAX differentiates by itself."""

import jax
import jax.numpy as jnp
import numpy as np

from kfdyn.multibody.parts.hinge import Coordinates


def wedge(x):
    return jnp.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def rotation(quaternion):
    """Of a quaternion of any length."""
    u, w = jnp.split(quaternion / jnp.linalg.norm(quaternion), [3])
    W = wedge(u)
    return jnp.eye(3) + 2 * w * W + 2 * W @ W


def screw(s, angle):
    """exp of a screw [axis; v] times an angle, or of a slide."""
    if not np.any(s[:3]):
        return jnp.eye(3), angle * s[3:]
    W, sine, rest = np.cross(np.eye(3), s[:3]), jnp.sin(angle), 1 - jnp.cos(angle)
    turn = jnp.eye(3) + sine * W + rest * (W @ W)
    return turn, angle * s[3:] + rest * (W @ s[3:]) + (angle - sine) * (W @ W @ s[3:])


def into(R, p):
    """Matrix (6, 6) that takes a twist [angular; linear] into a frame at p, turned by R."""
    return jnp.block([[R.T, jnp.zeros((3, 3))], [-R.T @ wedge(p), R.T]])


def cross(V):
    W = wedge(V[:3])
    return jnp.block([[W, jnp.zeros((3, 3))], [wedge(V[3:]), W]])


def depth(system, k):
    return 0 if system.parent[k] < 0 else 1 + depth(system, int(system.parent[k]))


def links(system, q):
    """Of each hinge: rows of what it moves by, one after the other, and (R, p) before each; outward order."""
    order = sorted(range(system.n_bodies), key=lambda k: depth(system, k))
    for k in order:
        body, own = system.bodies[k], q[system.q_slice(system.hinge_names[k])]
        at, v = (jnp.asarray(body.rotation), jnp.asarray(body.position)), system.v_slice(system.hinge_names[k]).start
        if body.hinge.coordinates is Coordinates.SCREWS:
            stages = [(at, np.zeros((0, 6)), v)]
            for i, s in enumerate(body.hinge.screws):
                stages.append((screw(s, own[i]), s[None], v + i))
        else:
            way = own[:3] if body.hinge.coordinates is Coordinates.POSE else jnp.zeros(3)
            stages = [(at, np.zeros((0, 6)), v), ((rotation(own[-4:]), way), body.hinge.screws, v)]
        yield k, int(system.parent[k]), stages


def inverse_dynamics(system, q, v, a, gravity=None):
    """Newton and Euler's recursion in the bodies' axes, one motion after the other."""
    gravity = system.gravity if gravity is None else gravity
    start = jnp.zeros(6), jnp.concatenate([jnp.zeros(3), -jnp.asarray(gravity)])
    moving, tape, force = {-1: start}, [], {-1: jnp.zeros(6)}
    for k, parent, stages in links(system, q):
        V, A = moving[parent]
        for (R, p), rows, i in stages:
            X, own = into(R, p), slice(i, i + len(rows))
            own_V = rows.T @ v[own]
            V, A = X @ V + own_V, X @ A + rows.T @ a[own]
            A = A + cross(V) @ own_V
            tape.append((k, parent, X, rows, own))
        moving[k] = V, A
        inertia = system.bodies[k].inertia
        force[k] = inertia @ A - cross(V).T @ (inertia @ V)
    tau = jnp.asarray(system.armature) * a
    for i, (k, parent, X, rows, own) in reversed(list(enumerate(tape))):
        tau = tau.at[own].add(rows @ force[k])
        if i and tape[i - 1][0] == k:
            force[k] = X.T @ force[k]
        else:
            force[parent] = force[parent] + X.T @ force[k]
    return tau


def mass_matrix(system, q):
    still, none = jnp.zeros(system.nv), jnp.zeros(3)
    return jax.vmap(lambda a: inverse_dynamics(system, q, still, a, none), out_axes=-1)(jnp.eye(system.nv))


def forward_dynamics(system, q, v, tau):
    return jnp.linalg.solve(mass_matrix(system, q), tau - inverse_dynamics(system, q, v, jnp.zeros(system.nv)))


def poses(system, q):
    """Rotation and position of each body in the world."""
    found = {-1: (jnp.eye(3), jnp.zeros(3))}
    for k, parent, stages in links(system, q):
        R, p = found[parent]
        for (turn, way), _, _ in stages:
            R, p = R @ turn, p + R @ way
        found[k] = R, p
    return found


def frame_pose(system, q, body):
    return poses(system, q)[system.body_index(body)]


def frame_velocity(system, q, v, body):
    """In the world's axes, of what the body's hinges on the way to it do."""
    moving = {-1: jnp.zeros(6)}
    for k, parent, stages in links(system, q):
        V = moving[parent]
        for (R, p), rows, i in stages:
            V = into(R, p) @ V + rows.T @ v[i : i + len(rows)]
        moving[k] = V
    k = system.body_index(body)
    return (poses(system, q)[k][0] @ moving[k].reshape(2, 3).T).T.reshape(6)


def jacobian(system, q, body):
    return jax.vmap(lambda v: frame_velocity(system, q, v, body), out_axes=-1)(jnp.eye(system.nv))


def everything(system, body):
    """All of it at a state, with what is wanted more than once done once."""

    def at(q, v, u):
        M, bias = mass_matrix(system, q), inverse_dynamics(system, q, v, jnp.zeros(system.nv))
        J, (R, p) = jacobian(system, q, body), frame_pose(system, q, body)
        return {
            "forward_dynamics": jnp.linalg.solve(M, u - bias),
            "inverse_dynamics": M @ u + bias,
            "mass_matrix": M,
            "jacobian": J,
            "rotation": R,
            "position": p,
            "frame_velocity": J @ v,
            "kinetic_energy": 0.5 * v @ M @ v,
            "potential_energy": potential_energy(system, q),
        }

    return at


def potential_energy(system, q):
    total, found = 0.0, poses(system, q)
    for k, body in enumerate(system.bodies):
        first = np.array([body.inertia[2, 4], body.inertia[0, 5], body.inertia[1, 3]])
        total = total - system.gravity @ (body.inertia[5, 5] * found[k][1] + found[k][0] @ first)
    return total


def dense(xp, parent, phi, H, Q, R, xi, eta):
    """Means and covariances of all states and measurements of a model: x, T, cov (T, x), cov T."""
    n, m = (np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1]) for sizes in ([len(x) for x in Q], [len(x) for x in R]))
    steps = sum(n[p].T @ phi[k] @ n[k] for k, p in enumerate(parent) if p >= 0)
    whole = xp.linalg.inv(np.eye(len(steps)) - steps)
    S = whole @ sum(u.T @ x @ u for u, x in zip(n, Q)) @ whole.T
    out = sum(y.T @ x @ u for y, u, x in zip(m, n, H))
    mean = whole @ xi + S @ eta
    return mean, out @ mean, out @ S, out @ S @ out.T + sum(y.T @ x @ y for y, x in zip(m, R))


def log_likelihood(parent, T, phi, H, Q, R, xi, eta, seen):
    _, expected, _, D = dense(jnp, parent, phi, H, Q, R, xi, eta)
    e, D = (T - expected)[seen], D[np.ix_(seen, seen)]
    return -0.5 * (e @ jnp.linalg.solve(D, e) + jnp.linalg.slogdet(D)[1] + e.size * jnp.log(2 * jnp.pi))


def smoother(parent, phi, H, Q, R, xi, eta, seen):
    """Smoothed means are the first vector and the matrix times all measurements, those that are missing being 0."""
    mean, expected, cross, D = dense(np, parent, phi, H, Q, R, xi, eta)
    matrix = np.zeros(cross.T.shape)
    matrix[:, seen] = np.linalg.solve(D[np.ix_(seen, seen)], cross[seen]).T
    return mean - matrix @ expected, matrix
