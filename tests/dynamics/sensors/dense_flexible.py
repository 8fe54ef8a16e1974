"""The joint Gaussian of sensors on bodies that bend, densely: Newton's law at every point, by kinematics alone.

Frames stand on all points of all flexible bodies; their Jacobians and bias accelerations are all that is asked of the
library. No assembled model, no sweep of dynamics: forces are sums of mass times acceleration, torques virtual work.
"""

import numpy as np
from dense_sensors import gaussian, wrench_about

import kfdyn as kf
import kfdyn.multibody as mb

S = kf.sensors


def with_points(system):
    """The same with a frame at every point of every body that bends, besides its own."""
    every = dict(system.frames)
    for name, body in system.flexible.items():
        every |= {f"{name}.{i}": kf.Frame(name, position=r) for i, r in enumerate(body.points)}
    return kf.FlexibleSystem(system.bodies, system.gravity, every, system.name)


def dense_flexible(system, q, v, sensors, readings, gravity=None):
    """The posterior, as of a rigid robot."""
    system = with_points(system)
    g = system.gravity if gravity is None else np.asarray(gravity)
    nv, n = system.nv, system.n_bodies
    forces = [i for i, s in enumerate(sensors) if isinstance(s, S.ExternalForce)]
    sizes = [6 if sensors[i].moment else 3 for i in forces]
    start = dict(zip(forces, nv + np.cumsum([0, *sizes])[:-1]))
    total = nv + sum(sizes)

    X, drift = system.expansion(q), system.drift(q, v)
    free, q_free, v_free = system.opened(q, v=v)  # attachments on free hinges, moved as the modes move them

    def moved(frame):
        """Acceleration of a frame less gravity: rows on θ, and offset; where it is."""
        J, of_free = np.zeros((6, total)), mb.jacobian(free, q_free, frame)
        J[:, :nv] = of_free @ X
        bias = mb.frame_bias_acceleration(free, q_free, v_free, frame) + of_free @ drift
        return J, bias - np.r_[0, 0, 0, g], mb.frame_pose(free, q_free, frame)

    # what acts on each body, less its inertia: at which place, rows on θ, offset; on which coordinates by virtual work
    pressed = [[] for _ in range(n)]
    external = np.zeros((n, 6, total))
    bodies = [moved(name) for name in system.body_names]
    for k, name in enumerate(system.body_names):
        if name in system.flexible:
            body = system.flexible[name]
            m = np.diag(body.mass) if body.mass.ndim == 1 else body.mass
            points = [moved(f"{name}.{i}") for i in range(len(body.points))]
            rows, offset = np.array([p[0][3:] for p in points]), np.array([p[1][3:] for p in points])
            rows, offset = np.einsum("ij,jab->iab", m, rows), m @ offset
            for (J, _, pose), F, F0 in zip(points, rows, offset):
                zero = np.zeros((3, total))
                pressed[k].append((pose.position, np.concatenate([zero, F]), np.r_[0, 0, 0, F0], J[:, :nv]))
        else:
            J, bias, pose = bodies[k]
            turn = np.kron(np.eye(2), pose.rotation)
            M = turn @ system.bodies[k].inertia @ turn.T
            w = mb.frame_velocity(system, q, v, name)[:3]
            p = np.array([M[2, 4], M[0, 5], M[1, 3]])
            xi = np.r_[np.cross(w, M[:3, :3] @ w), np.cross(w, np.cross(w, p))]
            pressed[k].append((pose.position, M @ J, M @ bias + xi, J[:, :nv]))
    for i in forces:
        s = sensors[i]
        J, _, pose = moved(s.frame)
        axes = np.eye(3) if s.axes == "world" else pose.rotation
        F = np.zeros((6, total))
        F[:, start[i] : start[i] + (6 if s.moment else 3)] = np.kron(np.eye(2), axes)[:, 0 if s.moment else 3 :]
        k = carrier(system, s.frame)
        external[k] += wrench_about(pose.position - bodies[k][2].position) @ F
        pressed[k].append((pose.position, -F, np.zeros(6), J[:, :nv]))
    f, f0, strain, tau0 = np.zeros((n, 6, total)), np.zeros((n, 6)), np.zeros((nv, total)), np.zeros(nv)
    for j in range(n):
        for place, F, F0, J in pressed[j]:
            strain, tau0 = strain + J.T @ F, tau0 + J.T @ F0
            k = j
            while k >= 0:
                W = wrench_about(place - bodies[k][2].position)
                f[k], f0[k] = f[k] + W @ F, f0[k] + W @ F0
                k = system.parent[k]
    bent = np.zeros(nv)
    for name in system.flexible:
        bent[system.mode_slice(name, True)] = q[system.mode_slice(name)]
    K, C = system.elasticity
    tau0 = tau0 + K @ bent + C @ v
    q_map = np.eye(total)[:nv]
    tau = strain + np.diag(system.armature) @ q_map
    G, c, R, y, n_prior_rows, n_flat = [], [], [], [], 0, nv
    for i, (s, reading) in enumerate(zip(sensors, readings)):
        cov = s.covariance(system)
        z = np.zeros(len(cov)) if reading is None else np.asarray(reading, float)
        if i in start:
            seen = np.isfinite(cov.diagonal())
            rows, offset = np.eye(total)[start[i] : start[i] + len(z)], np.zeros(len(z))
            n_flat += len(z)
            n_prior_rows += int(seen.sum())
        else:
            seen = ~np.isnan(z)
            rows, offset = _read(system, s, moved, (tau, strain, tau0), (f, f0), q_map)
            n_prior_rows += int(seen.sum()) if s.prior else 0
        G.append(rows[seen]), c.append((offset + np.broadcast_to(s.bias, z.shape))[seen]), y.append(z[seen])
        R.append(cov[np.ix_(seen, seen)])
    alpha, alpha0 = np.array([J for J, _, _ in bodies]), np.array([b + np.r_[0, 0, 0, g] for _, b, _ in bodies])
    maps = {
        "a": (q_map, np.zeros(nv)),
        "tau": (tau, tau0),
        "body_accelerations": (alpha.reshape(6 * n, total), alpha0.ravel()),
        "hinge_forces": (f.reshape(6 * n, total), f0.ravel()),
        "external_forces": (external.reshape(6 * n, total), np.zeros(6 * n)),
    }
    return gaussian(G, c, R, y, maps, n_prior_rows, n_flat)


def carrier(system, frame):
    """The body that a frame is on."""
    return system.body_names.index(system.frames[frame].body if frame in system.frames else frame)


def _read(system, s, moved, torques, forces, q_map):
    """Rows of a sensor on θ, and what they are offset by."""
    if isinstance(s, S.JointTorque | S.JointAcceleration):
        names = list(system.dof_names)
        if s.hinges is None:
            own = np.flatnonzero(system.elastic) if isinstance(s, S.ModalForce) else np.arange(system.nv)
        else:
            places = [
                [names.index(h)]
                if h in names and system.elastic[names.index(h)]
                else range(system.nv)[system.v_slice(h)]
                for h in s.hinges
            ]
            own = np.concatenate([np.array(place, int) for place in places])
        if isinstance(s, S.JointAcceleration):
            return q_map[own], np.zeros(len(own))
        tau, strain, offset = torques
        per = np.broadcast_to(s.per_ampere, (len(own),)) if isinstance(s, S.MotorCurrent) else np.ones(len(own))
        return (tau if s.rotor else strain)[own] / per[:, None], offset[own] / per
    if isinstance(s, S.ForceTorque):
        k = system.hinge_index(s.hinge)
        here = moved(system.body_names[k])[2]
        pose = moved(s.frame)[2] if s.frame else here
        X = np.kron(np.eye(2), pose.rotation.T) @ wrench_about(here.position - pose.position)
        sign = -1 if s.direction == "child_to_parent" else 1
        return sign * X @ forces[0][k], sign * X @ forces[1][k]
    J, bias, pose = moved(s.frame)
    turn = np.kron(np.eye(2), pose.rotation.T)
    part = {S.Accelerometer: slice(3, 6), S.AngularAcceleration: slice(0, 3), S.Imu: slice(0, 6)}[type(s)]
    return (turn @ J)[part], (turn @ bias)[part]
