"""Print the numbers quoted on the numerics page: the engine against the same recursions in 60 digits.

.venv/bin/python docs/numerics_study.py
"""

import mpmath
import numpy as np

import kfdyn as kf

mpmath.mp.dps = 60
exact = np.vectorize(mpmath.mpf, otypes=[object])


def reference(F, H, Q, R, x0, P0, y):
    """Filter and smooth a time series with scalar outputs, in 60 digits."""
    N = len(H)
    F, H, Q, R, y = exact(F), exact(H), exact(Q), exact(R), exact(y)
    z, P = exact(x0), exact(P0)
    n = len(z)
    eye = exact(np.eye(n))
    kept = []
    for k in range(N):
        h = H[k][0]
        u = P @ h
        D = h @ u + R[k, 0, 0]
        g = u / D
        eps = y[k] - h @ z
        P_plus = P - np.outer(g, g) * D
        z_plus = z + g * eps
        kept.append((P, D, g, eps, P_plus, z_plus, h))
        if k + 1 < N:
            z, P = F[k] @ z_plus, F[k] @ P_plus @ F[k].T + Q[k]
    costate, Lambda = exact(np.zeros(n)), exact(np.zeros((n, n)))
    x, S = [None] * N, [None] * N
    for k in reversed(range(N)):
        _, D, g, eps, P_plus, z_plus, h = kept[k]
        x[k] = z_plus + P_plus @ costate
        S[k] = P_plus - P_plus @ Lambda @ P_plus
        bar = eye - np.outer(g, h)
        costate = bar.T @ costate + h * (eps / D)
        Lambda = bar.T @ Lambda @ bar + np.outer(h, h) / D
        if k:
            costate, Lambda = F[k - 1].T @ costate, F[k - 1].T @ Lambda @ F[k - 1]
    return [k[0] for k in kept], [k[1] for k in kept], x, S


def worst(got, want):
    """Largest error of a node, relative to the largest entry of that node's block."""
    return max(float(abs(exact(g) - w).max() / abs(w).max()) for g, w in zip(got, want))


def trend(N, prior=1.0, noise=1.0, seed=0):
    """Build a local linear trend: level and slope, the level measured."""
    rng = np.random.default_rng(seed)
    F, Q = np.array([[1.0, 1.0], [0.0, 1.0]]), np.diag([0.5, 0.1])
    ones = np.ones((N, 1, 1))
    return (
        np.tile(F, (N - 1, 1, 1)),
        np.array([1.0, 0.0]) * ones,
        np.tile(Q, (N - 1, 1, 1)),
        noise * ones,
        np.zeros(2),
        prior * np.eye(2),
        np.cumsum(rng.normal(size=N)),
    )


def level(N, prior=1.0, seed=0):
    """Build a local level: one state, measured."""
    ones = np.ones((N, 1, 1))
    y = np.cumsum(np.random.default_rng(seed).normal(size=N))
    return ones[1:], ones, ones[1:], ones, np.zeros(1), prior * np.eye(1), y


def heavy(N, seed=0):
    """Build a chain whose every step has its own contraction F and its own Q of rank 2 in 6."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(N - 1, 6, 6))
    F /= np.linalg.norm(F, 2, axis=(1, 2))[:, None, None]
    half = rng.normal(size=(N - 1, 6, 2))
    H = rng.normal(size=(N, 1, 6))
    Q = half @ half.transpose(0, 2, 1)
    return F, H, Q, np.zeros((N, 1, 1)), np.zeros(6), np.eye(6), rng.normal(size=N)


def study(label, model):
    P, D, x, S = reference(*model)
    ss = kf.StateSpace.chain(*model[:-1])
    filt = kf.kalman_filter(ss, model[-1])
    smooth = kf.bryson_frazier(ss, filt)
    second = [p - p @ L @ p for p, L in zip(filt.P, smooth.Lambda)]
    numbers = (
        worst(filt.P, P),
        worst(filt.D, [exact([[d]]) for d in D]),
        worst(smooth.x, x),
        worst(smooth.S, S),
    )
    print(f"{label:32}" + "".join(f"{v:10.1e}" for v in (*numbers, worst(second, S))))


print(f"{'relative error of':32}" + "".join(f"{v:>10}" for v in ("P", "D", "x", "S", "P − PΛP")))
for power in (0, 7, 12):
    study(f"level, 100 steps, P0 = 1e{power}", level(100, prior=10.0**power))
for power in (0, 2, 4, 6, 8, 10, 12):
    study(f"trend, 100 steps, P0 = 1e{power}", trend(100, prior=10.0**power))
for noise in (1.0, 1e-4, 1e-8, 1e-12, 0.0):
    study(f"trend, 100 steps, R = {noise:g}", trend(100, noise=noise))
study("trend, 4096 steps", trend(4096))
study("rank-2 Q in 6, R = 0, 300 steps", heavy(300))
