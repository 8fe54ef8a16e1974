"""The joint Gaussian of a robot's sensors, densely: rows from Jacobians, one linear system, no sweep of the estimator.

The unknowns are θ = (q̈, every external force that has a prior). Everything else is linear in them. The posterior comes
from the KKT system of all readings at once, solved with refinement in extended precision; where all priors are proper
and the readings' covariance is regular, also from the covariance form, conditional normals and all.
"""

from typing import NamedTuple

import numpy as np
from multibody_cases import skew

import kfdyn as kf
import kfdyn.multibody as mb


class Dense(NamedTuple):
    """Mean and covariance of θ and of the five quantities; NIS, dof, log-likelihood, condition of the system."""

    mean: dict
    cov: dict
    maps: dict
    nis: float
    dof: int
    llf: float
    condition: float
    G: np.ndarray
    R: np.ndarray
    y: np.ndarray
    prior: np.ndarray


def wrench_about(r):
    """[moment; force] at a point, about another that lies r before it."""
    out = np.eye(6)
    out[:3, 3:] = skew(r)
    return out


def dense(system, q, v, sensors, readings, gravity=None):
    terms = mb.link_terms(system, q, v, gravity=gravity)
    g = system.gravity if gravity is None else np.asarray(gravity)
    nv, n = system.nv, system.n_bodies
    forces = [i for i, s in enumerate(sensors) if isinstance(s, kf.sensors.ExternalForce)]
    sizes = [sensors[i].size(system) for i in forces]
    start = dict(zip(forces, nv + np.cumsum([0, *sizes])[:-1]))
    total = nv + sum(sizes)
    # accelerations, bodies and frames: J q̈ + J̇v
    alpha, alpha0 = np.zeros((n, 6, total)), np.zeros((n, 6))
    for k, name in enumerate(system.body_names):
        alpha[k, :, :nv] = mb.jacobian(system, q, name)
        alpha0[k] = mb.frame_bias_acceleration(system, q, v, name)
    external, external0 = np.zeros((n, 6, total)), np.zeros((n, 6))
    for i in forces:
        s = sensors[i]
        k = system.locate(s.frame)[0]
        pose = mb.frame_pose(system, q, s.frame)
        axes = np.eye(3) if s.axes == "world" else pose.rotation
        X = wrench_about(pose.position - terms.position[k]) @ np.kron(np.eye(2), axes)
        external[k][:, start[i] : start[i] + s.size(system)] += X[:, -s.size(system) :]
    f, f0 = np.zeros((n, 6, total)), np.zeros((n, 6))
    for k in range(n):
        for j in range(n):
            up = j
            while up >= 0 and up != k:
                up = system.parent[up]
            if up != k:
                continue
            X = wrench_about(terms.position[j] - terms.position[k])
            with_g = alpha0[j] - np.r_[0, 0, 0, g]
            f[k] += X @ (terms.inertia[j] @ alpha[j] - external[j])
            f0[k] += X @ (terms.inertia[j] @ with_g + terms.xi[j])
    q_map = np.eye(total)[:nv]
    tau, tau0 = np.zeros((nv, total)), np.zeros(nv)
    for k, name in enumerate(system.hinge_names):
        own = system.v_slice(name)
        tau[own], tau0[own] = terms.H[own] @ f[k], terms.H[own] @ f0[k]
    tau += system.armature[:, None] * q_map
    G, c, R, y = [], [], [], []
    n_prior_rows, n_flat = 0, nv
    for i, (s, reading) in enumerate(zip(sensors, readings)):
        cov = s.covariance(system)
        z = np.zeros(s.size(system)) if reading is None else np.asarray(reading, float)
        if i in start:
            own = slice(start[i], start[i] + len(z))
            finite = np.isfinite(cov.diagonal())
            n_flat += int((~finite).sum())
            rows = np.flatnonzero(finite)
            G.append(np.eye(total)[own][rows]), c.append(np.zeros(len(rows))), y.append(z[rows])
            R.append(cov[np.ix_(rows, rows)])
            n_prior_rows += len(rows)
            n_flat += len(rows)
            continue
        g_i, c_i = reading_map(system, q, v, s, terms, g, alpha, alpha0, f, f0, q_map, total)
        seen = ~np.isnan(z)
        G.append(g_i[seen]), c.append(c_i[seen] + np.broadcast_to(s.bias, z.shape)[seen]), y.append(z[seen])
        R.append(cov[np.ix_(seen, seen)])
        n_prior_rows += int(seen.sum()) if s.prior else 0
    G, c, y = np.concatenate(G), np.concatenate(c), np.concatenate(y)
    big = np.zeros((len(y), len(y)))
    at = 0
    for block in R:
        big[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    maps = {
        "a": (q_map, np.zeros(nv)),
        "tau": (tau, tau0),
        "body_accelerations": (alpha.reshape(6 * n, total), alpha0.reshape(-1)),
        "hinge_forces": (f.reshape(6 * n, total), f0.reshape(-1)),
        "external_forces": (external.reshape(6 * n, total), external0.reshape(-1)),
    }
    K = np.block([[np.zeros((total, total)), G.T], [G, -big]])
    scale = np.ones(len(K))
    for _ in range(20):
        largest = np.abs(K * np.outer(scale, scale)).max(1)
        scale /= np.sqrt(np.where(largest > 0, largest, 1.0))
    Ks = K * np.outer(scale, scale)
    condition = np.linalg.cond(Ks)
    if condition > 1e11:
        return Dense({}, {}, maps, np.nan, 0, np.nan, condition, G, big, y - c, None)
    right = np.zeros((len(K), 1 + len(K)))
    right[total:, 0] = y - c
    right[:, 1:] = np.eye(len(K))
    solved = refined(Ks, right * scale[:, None]) * scale[:, None]
    theta, m = solved[:total, 0], solved[total:, 0]
    inverse = solved[:, 1:]
    P = inverse[:total, :total]
    nis = float(m @ big @ m)
    log_det = np.linalg.slogdet(Ks)[1] - 2 * np.log(scale).sum()
    llf = -0.5 * (nis + log_det + (len(y) - n_prior_rows) * np.log(2 * np.pi))
    # a flat prior is a limit without constant; a proper one of a force was counted as a row with all its 2π
    means = {key: A @ theta + b for key, (A, b) in maps.items()}
    covs = {key: A @ P @ A.T for key, (A, _) in maps.items()}
    return Dense(means, covs, maps, nis, len(y) - n_flat, llf, condition, G, big, y - c, P)


def reading_map(system, q, v, s, terms, g, alpha, alpha0, f, f0, q_map, total):
    """Rows of one sensor in θ, and what they are offset by."""
    S = kf.sensors
    nv = system.nv
    if isinstance(s, S.JointTorque | S.JointAcceleration):
        names = system.hinge_names if s.hinges is None else s.hinges
        own = np.concatenate([np.arange(nv)[system.v_slice(name)] for name in names])
        if isinstance(s, S.JointAcceleration):
            return q_map[own], np.zeros(len(own))
        rows, offset = np.zeros((nv, total)), np.zeros(nv)
        for k, name in enumerate(system.hinge_names):
            at = system.v_slice(name)
            rows[at], offset[at] = terms.H[at] @ f[k], terms.H[at] @ f0[k]
        if s.rotor:
            rows = rows + system.armature[:, None] * q_map
        if isinstance(s, S.MotorCurrent):
            per = np.broadcast_to(s.per_ampere, (len(own),))
            return rows[own] / per[:, None], offset[own] / per
        return rows[own], offset[own]
    if isinstance(s, S.ForceTorque):
        k = system.hinge_index(s.hinge)
        pose = mb.frame_pose(system, q, s.frame or system.body_names[k])
        X = np.kron(np.eye(2), pose.rotation.T) @ wrench_about(terms.position[k] - pose.position)
        sign = -1 if s.direction == "child_to_parent" else 1
        return sign * X @ f[k], sign * X @ f0[k]
    pose = mb.frame_pose(system, q, s.frame)
    J = np.zeros((6, total))
    J[:, :nv] = mb.jacobian(system, q, s.frame)
    bias = mb.frame_bias_acceleration(system, q, v, s.frame) - np.r_[0, 0, 0, g]
    turn = np.kron(np.eye(2), pose.rotation.T)
    rows, offset = turn @ J, turn @ bias
    part = {S.Accelerometer: slice(3, 6), S.AngularAcceleration: slice(0, 3), S.Imu: slice(0, 6)}[type(s)]
    return rows[part], offset[part]


def refined(A, B):
    """A⁻¹B with two steps of refinement, residuals in extended precision."""
    import scipy.linalg

    lu = scipy.linalg.lu_factor(A)
    X = scipy.linalg.lu_solve(lu, B)
    A_long, B_long = A.astype(np.longdouble), B.astype(np.longdouble)
    X_long = X.astype(np.longdouble)
    for _ in range(3):
        X_long = X_long + scipy.linalg.lu_solve(lu, np.asarray(B_long - A_long @ X_long, float))
    return np.asarray(X_long, float)


def covariance_form(dense_result, prior_cov, prior_mean, G, R, y):
    """Conditional normals: mean, covariance and log density of y = Gθ + r for a proper prior of θ and regular V."""
    V = G @ prior_cov @ G.T + R
    gain = np.linalg.solve(V, G @ prior_cov).T
    e = y - G @ prior_mean
    mean, cov = prior_mean + gain @ e, prior_cov - gain @ G @ prior_cov
    llf = -0.5 * (e @ np.linalg.solve(V, e) + np.linalg.slogdet(V)[1] + len(y) * np.log(2 * np.pi))
    return mean, cov, llf
