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
from kfdyn.multibody.loops.closure import constraint_drift, constraint_jacobian
from kfdyn.multibody.loops.relative_motion import Moving, both_ends, relative_rows

# A row of the KKT matrix below this is the rounding of zero, and is not scaled up: what it stands for is undetermined.
ROUNDING = 1e-13


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


def dense(system, q, v, sensors, readings, gravity=None, loop_rows=()):
    """``loop_rows`` are the rows of all loops that are held, the others following from them."""
    loop_rows = list(loop_rows)
    tree = system.open_tree
    X = np.asarray(system.expansion(q))
    terms = mb.link_terms(tree, system.expand(q), X @ v, gravity=gravity)
    g = system.gravity if gravity is None else np.asarray(gravity)
    nv, n = system.nv, system.n_bodies
    forces = [i for i, s in enumerate(sensors) if isinstance(s, kf.sensors.ExternalForce)]
    sizes = [sensors[i].size(system) for i in forces]
    start = dict(zip(forces, nv + np.cumsum([0, *sizes])[:-1]))
    held = system.loops and [
        np.asarray(x)[loop_rows] for x in (constraint_jacobian(system, q), constraint_drift(system, q, v))
    ]
    first = nv + sum(sizes)
    total = first + (len(loop_rows) if system.loops else 0)
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
        W = wrench_about(pose.position - terms.position[k]) @ np.kron(np.eye(2), axes)
        external[k][:, start[i] : start[i] + s.size(system)] += W[:, -s.size(system) :]
    pushed = external.copy()
    for at, (loop, i) in enumerate(loop_places(system, loop_rows) if system.loops else (), first):
        # virtual work: the force of a row on an end is what its rate is read off
        still = [name and Moving(*mb.frame_pose(system, q, name), np.zeros(6)) for name in (loop.frame_a, loop.frame_b)]
        rows = relative_rows(loop, *both_ends(loop, *still))
        for of, name in ((rows.of_a, loop.frame_a), (rows.of_b, loop.frame_b)):
            if name:
                k = system.locate(name)[0]
                lever = mb.frame_pose(system, q, name).position - terms.position[k]
                pushed[k][:, at] += wrench_about(lever) @ of[i]
    f, f0 = np.zeros((n, 6, total)), np.zeros((n, 6))
    for k in range(n):
        for j in range(n):
            up = j
            while up >= 0 and up != k:
                up = system.parent[up]
            if up != k:
                continue
            W = wrench_about(terms.position[j] - terms.position[k])
            with_g = alpha0[j] - np.r_[0, 0, 0, g]
            f[k] += W @ (terms.inertia[j] @ alpha[j] - pushed[j])
            f0[k] += W @ (terms.inertia[j] @ with_g + terms.xi[j])
    q_map = np.eye(total)[:nv]
    strain, tau0 = np.zeros((tree.nv, total)), np.zeros(tree.nv)
    for k, name in enumerate(tree.hinge_names):
        own = tree.v_slice(name)
        strain[own], tau0[own] = terms.H[own] @ f[k], terms.H[own] @ f0[k]
    strain, tau0 = X.T @ strain, X.T @ tau0
    tau = strain + X.T @ (tree.armature[:, None] * X) @ q_map
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
        g_i, c_i = reading_map(system, q, v, s, terms, g, (tau, strain, tau0), f, f0, q_map, total)
        seen = ~np.isnan(z)
        G.append(g_i[seen]), c.append(c_i[seen] + np.broadcast_to(s.bias, z.shape)[seen]), y.append(z[seen])
        R.append(cov[np.ix_(seen, seen)])
        n_prior_rows += int(seen.sum()) if s.prior else 0
    if system.loops:
        J = np.zeros((len(loop_rows), total))
        J[:, :nv] = held[0]
        G.append(J), c.append(held[1]), y.append(np.zeros(len(J))), R.append(np.zeros((len(J), len(J))))
        n_prior_rows += len(J)
        n_flat += len(J)
    maps = {
        "a": (q_map, np.zeros(nv)),
        "tau": (tau, tau0),
        "body_accelerations": (alpha.reshape(6 * n, total), alpha0.reshape(-1)),
        "hinge_forces": (f.reshape(6 * n, total), f0.reshape(-1)),
        "external_forces": (external.reshape(6 * n, total), external0.reshape(-1)),
    }
    return gaussian(G, c, R, y, maps, n_prior_rows, n_flat)


def gaussian(G, c, R, y, maps, n_prior_rows, n_flat):
    """The posterior of θ from rows y = Gθ + c + r, r ~ N(0, R), lists over sensors, and of what is linear in it."""
    G, c, y = np.concatenate(G), np.concatenate(c), np.concatenate(y)
    big = np.zeros((len(y), len(y)))
    at = 0
    for block in R:
        big[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    total = G.shape[1]
    K = np.block([[np.zeros((total, total)), G.T], [G, -big]])
    scale = np.ones(len(K))
    for _ in range(20):
        largest = np.abs(K * np.outer(scale, scale)).max(1)
        scale /= np.sqrt(np.where(largest > ROUNDING, largest, 1.0))
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


def loop_places(system, loop_rows):
    """Loop and row of each of the rows held."""
    every = [(loop, i) for loop in system.loops for i in range(len(loop.rows))]
    return [every[i] for i in loop_rows]


def reading_map(system, q, v, s, terms, g, torques, f, f0, q_map, total):
    """Rows of one sensor in θ, and what they are offset by."""
    S = kf.sensors
    nv = system.nv
    if isinstance(s, S.JointTorque | S.JointAcceleration):
        every = [h for c in system.couplings for h in c.hinges if h not in c.named]
        names = [h for h in system.hinge_names if h not in every] if s.hinges is None else s.hinges
        own = np.concatenate([np.arange(nv)[system.v_slice(name)] for name in names])
        if isinstance(s, S.JointAcceleration):
            return q_map[own], np.zeros(len(own))
        tau, strain, offset = torques
        rows = tau if s.rotor else strain
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
