"""The gain propagated directly, beside the Riccati recursion, a matrix equation for the limit, and statsmodels."""

import warnings
from collections.abc import Callable

import numpy as np

import kfdyn as kf
from benchmarks.report import Report, seconds
from benchmarks.timing import environment, race


def model(n: int, m: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A stable system with n states and m outputs in its stationary state."""
    from scipy.linalg import solve_discrete_lyapunov

    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, n))
    F *= 0.99 / np.abs(np.linalg.eigvals(F)).max()
    B = rng.normal(size=(n, n)) / np.sqrt(n)
    Q = B @ B.T
    P0 = solve_discrete_lyapunov(F, Q)
    return {"F": F, "H": rng.normal(size=(m, n)), "Q": Q, "R": np.eye(m), "P0": (P0 + P0.T) / 2}


def riccati_in_blas(F, H, Q, R, P0, steps):
    """The Riccati recursion in NumPy's products, which is the fair rival at these sizes."""
    P, n = P0, len(F)
    D, G = np.empty((steps, len(H), len(H))), np.empty((steps, n, len(H)))
    for k in range(steps):
        U = P @ H.T
        D[k] = H @ U + R
        G[k] = np.linalg.solve(D[k], U.T).T
        P = F @ (P - G[k] @ U.T) @ F.T + Q
    return D, G


def statsmodels_filter(F, H, Q, R, P0, T) -> Callable[[], object] | None:
    """statsmodels' filter with its Chandrasekhar recursion."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from statsmodels.tsa.statespace.kalman_filter import KalmanFilter
    except ImportError:
        return None
    n, m = len(F), len(H)
    filt = KalmanFilter(k_endog=m, k_states=n, design=H, obs_cov=R, transition=F, selection=np.eye(n), state_cov=Q)
    filt.bind(np.ascontiguousarray(T))
    filt.initialize_known(np.zeros(n), P0)
    filt.filter_chandrasekhar = True
    filt.memory_no_predicted = filt.memory_no_smoothing = filt.memory_no_gain = True
    return filt.filter


def run(quick: bool = False) -> Report:
    from scipy.linalg import solve_discrete_are

    steps, budget = (20, 0.05) if quick else (200, 2.0)
    cases = [(6, 1), (20, 2)] if quick else [(6, 1), (20, 2), (50, 2), (200, 2)]
    rows, numbers = [], {}
    for n, m in cases:
        given = model(n, m)
        T = np.random.default_rng(1).normal(size=(steps, m))
        fast = kf.fast_gain(**given, steps=steps, tolerance=0.0)
        _, G = riccati_in_blas(**given, steps=steps)
        error = max(np.abs(fast.gain(k) - G[k]).max() / np.abs(G[k]).max() for k in range(steps))
        assert error < 1e-10, error
        chain = (given["F"], given["H"], given["Q"], given["R"], np.zeros(n), given["P0"])
        runs: dict[str, Callable[[], object]] = {
            "fast": lambda given=given: kf.fast_gain(**given, steps=steps, tolerance=0.0),
            "Riccati, BLAS": lambda given=given: riccati_in_blas(**given, steps=steps),
            "limit, DARE": lambda g=given: solve_discrete_are(g["F"].T, g["H"].T, g["Q"], g["R"]),
        }
        if n <= 50:
            # a new model each time: the engine keeps the covariances of one it has seen
            runs["kfdyn filter"] = lambda c=chain, T=T: kf.kalman_filter(
                kf.StateSpace.chain(*c, steps=steps), T.ravel()
            )
            runs["fast filter"] = lambda c=chain, T=T: kf.fast_filter(
                kf.StateSpace.chain(*c, steps=steps), T.ravel(), tolerance=0.0
            )
        theirs = statsmodels_filter(**given, T=T)
        if theirs is not None:
            runs["statsmodels, Chandrasekhar"] = theirs
        times = race(runs, budget)
        numbers[f"n={n}, m={m}"] = {name: t / steps for name, t in times.items()} | {"rank": fast.rank, "error": error}
        riccati_flops = (4 * n**3 + 8 * n * n * m) * steps
        per = {name: seconds(t / steps) for name, t in times.items()}
        rows.append(
            [
                f"{n}, {m}",
                str(fast.rank),
                f"{riccati_flops / fast.flops:.1f}",
                *(per.get(name, "") for name in ("fast", "Riccati, BLAS", "kfdyn filter", "fast filter")),
                per.get("statsmodels, Chandrasekhar", ""),
                seconds(times["limit, DARE"]),
            ]
        )
    return Report(
        "fast_gain",
        "The gain propagated directly",
        [
            "states, outputs",
            "rank",
            "flops saved, times",
            "fast gain",
            "Riccati, BLAS",
            "kfdyn filter",
            "fast filter",
            "statsmodels",
            "DARE, once",
        ],
        rows,
        environment(["kfdyn", "numpy", "scipy", "statsmodels"]),
        [
            f"Times a step of {steps} from a stationary prior, without stopping where the gain has settled; gains "
            "agree with the Riccati recursion's to 1e-10.",
            "kfdyn filter, fast filter: with the data, covariances included; kfdyn's own filter multiplies small "
            "blocks and is no rival of BLAS beyond some fifty states.",
            "statsmodels: its filter with filter_chandrasekhar=True, data included, predictions not stored.",
            "DARE: the limit of P alone by scipy's solver, one call; who needs only the limit needs nothing else here.",
        ],
        numbers,
    )
