"""Measure the numbers quoted on the numerics page: the engine against the same recursions in 60 digits.

    python docs/numerics_study.py     writes numerics_study.json; docs/readme_speed.py then writes the page's tables

Errors are the largest of any node, relative to the largest entry of that node's block.
"""

import json
import warnings
from pathlib import Path

import mpmath
import numpy as np

import kfdyn as kf
from kfdyn.errors import LostDigitsWarning

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


def study(model):
    """Errors of P, D, x̂ and S, and of S had it been computed as P − PΛP."""
    P, D, x, S = reference(*model)
    ss = kf.StateSpace.chain(*model[:-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostDigitsWarning)  # how many are lost is what is asked
        filt = kf.kalman_filter(ss, model[-1])
    smooth = kf.bryson_frazier(ss, filt)
    second = [p - p @ L @ p for p, L in zip(filt.P, smooth.Lambda)]
    return {
        "P": worst(filt.P, P),
        "D": worst(filt.D, [exact([[d]]) for d in D]),
        "x": worst(smooth.x, x),
        "S": worst(smooth.S, S),
        "P - P Lambda P": worst(second, S),
    }


def four_forms():
    """Errors of four ways to compute the same, as the gallery's example finds them: by prior, by mass of a hand."""
    import runpy

    import matplotlib

    matplotlib.use("Agg")
    found = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "plot_four_forms.py"))
    study = {}
    for what, errors, values in (("track", "off", "WIDTHS"), ("arm", "lost", "RATIOS")):
        by_value = zip(found[values], np.array([found[errors][form] for form in found["FORMS"]]).T)
        # where a form refused there is no error to tell
        study[what] = {
            f"{x:g}": {form: error for form, error in zip(found["FORMS"], row.tolist()) if not np.isnan(error)}
            for x, row in by_value
        }
    return study


#: Every model that the page quotes, by the name of its row.
CASES = {
    "exact": {f"{noise:g}": lambda noise=noise: trend(100, noise=noise) for noise in (1.0, 1e-4, 1e-8, 1e-12, 0.0)},
    "level": {f"{10.0**p:g}": lambda p=p: level(100, prior=10.0**p) for p in (0, 7, 12)},
    "trend": {f"{10.0**p:g}": lambda p=p: trend(100, prior=10.0**p) for p in (0, 4, 6, 8, 10, 12)},
    "long": {"4096": lambda: trend(4096)},
    "singular": {"300": lambda: heavy(300)},
}


if __name__ == "__main__":
    found = {part: {name: study(make()) for name, make in cases.items()} for part, cases in CASES.items()}
    found |= four_forms()
    Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for part, rows in found.items():
        for name, errors in rows.items():
            print(f"{part:10}{name:>8}" + "".join(f"{key:>16} {error:.1e}" for key, error in errors.items()))
