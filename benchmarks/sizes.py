"""Filter and smoother at every block size: the engine beside NumPy's plain filter, statsmodels and dynamax."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.engine import Series
from benchmarks.models import covariances, transitions
from benchmarks.report import Report
from benchmarks.timing import environment, race

SIZES = [(1, 1), (2, 1), (4, 2), (6, 3), (8, 4), (12, 6), (14, 7), (24, 12), (36, 18), (64, 32), (100, 50), (200, 100)]
CONSTANT = (36, 4, 2000)
TOLD = 24  # states from which a product takes longer than to call it


def series(n: int, m: int, steps: int, seed: int = 0) -> Series:
    """A chain with every matrix different at every step."""
    rng = np.random.default_rng(seed)
    return Series(
        transitions(rng, steps - 1, n),
        rng.normal(size=(steps, m, n)) / np.sqrt(n),
        covariances(rng, steps - 1, n),
        covariances(rng, steps, m),
        rng.normal(size=n),
        covariances(rng, 1, n)[0],
        rng.normal(size=(steps, m)),
    )


def plain_filter(s: Series) -> tuple[np.ndarray, float]:
    """The filter as ten lines of NumPy: updated means, and the log-likelihood."""
    x, P, means, llf = s.x0, s.P0, np.empty((len(s.H), s.x0.size)), 0.0
    for k, (H, R, y) in enumerate(zip(s.H, s.R, s.T)):
        U = P @ H.T
        D, eps = H @ U + R, y - H @ x
        L = np.linalg.cholesky(D)
        W = np.linalg.solve(L, np.column_stack([U.T, eps]))
        x, P = x + W[:, :-1].T @ W[:, -1], P - W[:, :-1].T @ W[:, :-1]
        llf -= 0.5 * (W[:, -1] @ W[:, -1] + y.size * np.log(2 * np.pi)) + np.log(np.diag(L)).sum()
        means[k] = x
        if k < len(s.F):
            x, P = s.F[k] @ x, s.F[k] @ P @ s.F[k].T + s.Q[k]
    return means, float(llf)


def statsmodels_of(s: Series, constant: bool = False) -> object:
    """The same model for statsmodels, which without ``constant`` never takes P to have settled."""
    from statsmodels.tsa.statespace.kalman_smoother import SMOOTH_CONVENTIONAL, KalmanSmoother

    (steps, m), n = s.T.shape, s.x0.size
    more = {} if constant else {"tolerance": 0}
    model = KalmanSmoother(k_endog=m, k_states=n, k_posdef=n, nobs=steps, smooth_method=SMOOTH_CONVENTIONAL, **more)
    model.bind(np.ascontiguousarray(s.T))
    last = np.eye(n)[None]  # an edge after the last step, whose result nobody reads
    for name, blocks in (("transition", s.F), ("state_cov", s.Q), ("design", s.H), ("obs_cov", s.R)):
        if constant:
            model[name] = np.asfortranarray(blocks[0])
            continue
        whole = np.concatenate([blocks, last]) if len(blocks) < steps else blocks
        model[name] = np.asfortranarray(whole.transpose(1, 2, 0))
    model["selection"] = np.eye(n)
    model.initialize_known(s.x0, s.P0)
    return model


def dynamax_of(s: Series) -> dict[str, Callable[[], object]]:
    """dynamax's filter and smoother of the same model, compiled by JAX for doubles and one thread; {} without it."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    try:
        from dynamax.linear_gaussian_ssm import inference as D
    except ImportError:
        return {}
    import jax

    jax.config.update("jax_enable_x64", True)
    n, m = s.x0.size, s.T.shape[1]
    first = np.eye(n)[None]  # an edge before the first step, which nobody reads
    F, Q = (np.concatenate([first, blocks]) for blocks in (s.F, s.Q))
    params = D.ParamsLGSSM(
        D.ParamsLGSSMInitial(s.x0, s.P0),
        D.ParamsLGSSMDynamics(F, np.zeros(n), np.zeros((n, 0)), Q),
        D.ParamsLGSSMEmissions(s.H, np.zeros(m), np.zeros((m, 0)), s.R),
    )
    params, y = jax.tree.map(jax.numpy.asarray, (params, s.T))
    filtered, smoothed = jax.jit(D.lgssm_filter), jax.jit(D.lgssm_smoother)
    return {
        "filter, dynamax": lambda: jax.block_until_ready(filtered(params, y)),
        "with covariances, dynamax": lambda: jax.block_until_ready(smoothed(params, y)),
    }


def runs_of(s: Series, constant: bool = False) -> dict[str, Callable[[], object]]:
    """What is timed, after all have the same answers."""
    from statsmodels.tsa.statespace.kalman_smoother import SMOOTHER_STATE, SMOOTHER_STATE_COV

    if constant:
        ss = kf.StateSpace.chain(s.F[0], s.H[0], s.Q[0], s.R[0], s.x0, s.P0, steps=len(s.T))
    else:
        ss = kf.StateSpace.chain(s.F, s.H, s.Q, s.R, s.x0, s.P0)
    theirs, T = statsmodels_of(s, constant), s.T.ravel()

    def filtered() -> kf.Filtered:
        ss._cache.clear()
        return kf.kalman_filter(ss, T)

    def smoothed(covariances: bool = True) -> kf.Smoothed:
        return kf.bryson_frazier(ss, filtered(), covariances=covariances)

    def filtered_there() -> None:
        theirs._filter()

    def smoothed_there() -> None:
        theirs._filter()
        theirs._smooth(smoother_output=SMOOTHER_STATE | SMOOTHER_STATE_COV)

    means, llf = plain_filter(s)
    ours, other = smoothed(), theirs.smooth()
    steps, n = means.shape
    gaps = (
        np.abs(ours.filt.z_plus.flat.reshape(steps, n) - means).max() / np.abs(means).max(),
        abs(ours.filt.llf / llf - 1.0),
        np.abs(ours.x.flat.reshape(steps, n) - other.smoothed_state.T).max() / np.abs(other.smoothed_state).max(),
        np.abs(ours.S.flat.reshape(steps, n, n) - np.moveaxis(other.smoothed_state_cov, 2, 0)).max()
        / np.abs(other.smoothed_state_cov).max(),
    )
    assert max(gaps) < 1e-9, gaps
    A, third = s.F[0], dynamax_of(s)
    if third:
        there: Any = third["with covariances, dynamax"]()
        gap = np.abs(ours.S.flat.reshape(steps, n, n) - there.smoothed_covariances).max()
        assert gap < 1e-8 * np.abs(ours.S.flat).max(), gap
    return {
        "filter": filtered,
        "filter, NumPy": lambda: plain_filter(s),
        "filter, statsmodels": filtered_there,
        "means": lambda: smoothed(False),
        "with covariances": smoothed,
        "with covariances, statsmodels": smoothed_there,
        **third,
        "dgemm": lambda: [A @ A for _ in range(50)],
    }


def operations(n: int, m: int) -> tuple[float, float]:
    """Floating-point operations of a step as the engine computes it: of the filter, and of the smoother besides.

    φP⁺φ* 3n³ with one triangle of the second product; HP, W, G and P − WW* 3n²m + 3nm²; D's factor m³/3. Backwards
    φ*Λφ 3n³, P⁺ΛP⁺ 3n³, and 2n²m for each of U and V, A; Λ n²m; D⁻¹H 2nm².
    """
    return 3 * n**3 + 3 * n * n * m + 3 * n * m * m + m**3 / 3, 6 * n**3 + 7 * n * n * m + 2 * n * m * m


def run(quick: bool = False) -> Report:
    from threadpoolctl import threadpool_limits

    rows, numbers = [], {}
    with threadpool_limits(1):
        for n, m in [(2, 1), (12, 6), (24, 12)] if quick else SIZES:
            steps = max(12, min(1000, int(2e7 / n**3)))
            found = race(runs_of(series(n, m, steps)), 0.05 if quick else 1.5)
            each = {name: took / (50 if name == "dgemm" else steps) for name, took in found.items()}
            forward, backward = operations(n, m)
            peak = 2 * n**3 / each["dgemm"]
            shares = forward / each["filter"] / peak, (forward + backward) / each["with covariances"] / peak
            numbers[f"n={n}, m={m}"] = {**each, "share, filter": shares[0], "share, with covariances": shares[1]}
            rows.append(_row(f"{n}, {m}", each, peak, *(shares if n >= TOLD else (None, None))))
        n, m, steps = (12, 4, 300) if quick else CONSTANT
        s = series(n, m, 2)
        fixed = Series(*(np.repeat(b[:1], steps - (i % 2 == 0), 0) for i, b in enumerate(s[:4])), s.x0, s.P0,
                       np.random.default_rng(1).normal(size=(steps, m)))  # fmt: skip
        found = race(runs_of(fixed, constant=True), 0.05 if quick else 1.5)
        each = {name: took / (50 if name == "dgemm" else steps) for name, took in found.items()}
        numbers[f"constant, n={n}, m={m}"] = each
        rows.append(_row(f"{n}, {m}, constant", each, 2 * n**3 / each["dgemm"], None, None))
    return Report(
        "sizes",
        "Blocks of every size",
        [
            "n, m",
            "filter",
            "NumPy",
            "statsmodels",
            "dynamax",
            "means",
            "with covariances",
            "statsmodels",
            "dynamax",
            "dgemm, Gflop/s",
            "share of it",
        ],
        rows,
        environment(["kfdyn", "numpy", "scipy", "statsmodels", "dynamax", "jax"]),
        [
            "Microseconds a step of a chain, every matrix different at every step; in the last row all are constant, "
            "and statsmodels stops by its own tolerance.",
            "NumPy: the covariance filter in ten lines, which keeps no covariance. statsmodels: its compiled loops, "
            "tolerance 0, with smoothed states and their covariances.",
            "dynamax: its filter and smoother under jax.jit, doubles, one thread. On a busy machine threads that XLA "
            "and BLAS start nevertheless may make a peer's time many times as long, as where n is 36 and 64.",
            "Means: filter and smoothed means. The engine keeps P, P⁺, D, its factor and G of every step, and looks at "
            "what rounding has cost.",
            "Share: operations of the engine (3n³ + 3n²m + 3nm² + m³/3, and 6n³ + 7n²m + 2nm² for the smoother) in "
            "that time, beside n×n products by NumPy's dgemm; of the filter, and with covariances.",
            "One thread; shortest processor time, peers taking turns, after means, covariances and likelihood agreed; "
            "each row is one run.",
        ],
        numbers,
    )


def _row(what: str, each: dict[str, float], peak: float, first: float | None, second: float | None) -> list[str]:
    names = (
        "filter", "filter, NumPy", "filter, statsmodels", "filter, dynamax", "means", "with covariances",
        "with covariances, statsmodels", "with covariances, dynamax",
    )  # fmt: skip
    share = "" if first is None or second is None else f"{first:.0%}, {second:.0%}"
    times = (f"{1e6 * each[name]:.3g}" if name in each else "" for name in names)
    return [what, *times, f"{peak / 1e9:.0f}", share]
