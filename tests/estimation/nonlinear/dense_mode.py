"""The mode of a trajectory by dense least squares over all unknowns at once: an oracle that shares no code."""

import numpy as np
from scipy.spatial.transform import Rotation


def differences(function, theta, h=1e-4):
    """Jacobian by differences of fourth order."""
    columns = []
    for i in range(theta.size):
        e = np.zeros(theta.size)
        e[i] = h
        columns.append(
            (8 * (function(theta + e) - function(theta - e)) - (function(theta + 2 * e) - function(theta - 2 * e)))
            / (12 * h)
        )
    return np.stack(columns, axis=1)


def minimise(residuals, theta, iterations=60):
    """Damped Gauss–Newton to stationarity; returns theta and the Jacobian there."""
    mu, r = 1e-3, residuals(theta)
    for _ in range(iterations):
        J = differences(residuals, theta)
        step = -np.linalg.solve(J.T @ J + mu * np.eye(theta.size), J.T @ r)
        new = residuals(theta + step)
        if new @ new <= r @ r * (1 + 1e-13):
            theta, r, mu = theta + step, new, 0.1 * mu if mu > 1e-9 else 0.0
        else:
            mu = max(10 * mu, 1e-6)
        if np.abs(step).max() < 1e-11:
            return theta, differences(residuals, theta)
    raise AssertionError("the oracle itself did not converge")


def shooting(step, observe, y, x0, roots, n, p, noises):
    """Residuals of (x0, w) by rolling out; roots: inverse roots of P0, Q, R (functions of k for R)."""
    seen = ~np.isnan(y)

    def roll(theta):
        x, w = theta[:n], theta[n:].reshape(noises, p)
        states, readings = [], []
        for k in range(len(y)):
            noise = w[k] if k < noises else np.zeros(p)
            states.append(x)
            readings.append(observe(x, noise, k))
            x = step(x, noise, k)
        return np.array(states), np.array(readings)

    def residuals(theta):
        _, h = roll(theta)
        w = theta[n:].reshape(noises, p)
        parts = [roots[0] @ (theta[:n] - x0), (w @ roots[1].T).ravel()]
        for k in range(len(y)):
            at = seen[k]
            if at.any():
                R = roots[2](k)[np.ix_(at, at)]
                parts.append(np.linalg.solve(np.linalg.cholesky(R), (y[k] - h[k])[at]))
        return np.concatenate(parts)

    return roll, residuals


# --- rotations, by SciPy alone


def turn(q, d):
    """Quaternion (x, y, z, w) turned by a rotation vector in its own axes."""
    return (Rotation.from_quat(q) * Rotation.from_rotvec(d)).as_quat()


def between(q2, q1):
    """Rotation vector from q1 to q2, in the axes of q1."""
    return (Rotation.from_quat(q1).inv() * Rotation.from_quat(q2)).as_rotvec()


def right_jacobian(d):
    """J of SO(3), rows (rows, 3)."""
    out = np.empty((len(d), 3, 3))
    for i, v in enumerate(d):
        angle = np.linalg.norm(v)
        V = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
        if angle < 1e-4:
            out[i] = np.eye(3) - V / 2 + V @ V / 6
        else:
            out[i] = np.eye(3) - (1 - np.cos(angle)) / angle**2 * V + (angle - np.sin(angle)) / angle**3 * V @ V
    return out
