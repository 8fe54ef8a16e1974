"""What a fit does again and again: models built and rebuilt, likelihoods, scores, and the square-root form."""

from collections.abc import Callable

import numpy as np

import kfdyn as kf
from benchmarks.models import covariances
from benchmarks.report import Report, seconds
from benchmarks.timing import environment, race
from kfdyn.estimation.datasets import airline


def ragged(N: int, seed: int = 0) -> dict[str, object]:
    """Blocks of a tree whose nodes have one to five states and none to two outputs."""
    rng = np.random.default_rng(seed)
    parent = np.array([-1, *(int(rng.integers(max(0, k - 5), k)) for k in range(1, N))])
    n, m = rng.integers(1, 6, N), rng.integers(0, 3, N)
    return {
        "parent": parent,
        "phi": [None if p < 0 else 0.3 * rng.normal(size=(n[p], n[k])) for k, p in enumerate(parent)],
        "H": [rng.normal(size=(m[k], n[k])) for k in range(N)],
        "Q": [covariances(rng, 1, size)[0] for size in n],
        "R": [covariances(rng, 1, size)[0] for size in m],
    }


def even(N: int, chain: bool, seed: int = 0) -> kf.StateSpace:
    """A chain or a tree with six states and one output to each node."""
    rng = np.random.default_rng(seed)
    parent = [-1, *(k - 1 if chain else int(rng.integers(0, k)) for k in range(1, N))]
    phi, H = 0.2 * rng.normal(size=(N, 6, 6)), rng.normal(size=(N, 1, 6))
    return kf.StateSpace(parent, phi, H, covariances(rng, N, 6), covariances(rng, N, 1))


def level(steps: int) -> tuple[dict[str, Callable[[], object]], float]:
    """A level model with new variances: as a user would write it, and statsmodels' loglike; how far they differ."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    y = np.random.default_rng(1).normal(size=steps).cumsum()
    one, theta = np.ones((1, 1)), np.array([2.0, 0.5])
    ss = kf.StateSpace.chain(one, one, one, one, [0.0], 1e4 * one, steps=steps)
    theirs = UnobservedComponents(y, "llevel")
    theirs.ssm.initialize_known([0.0], [[1e4]])
    theirs.ssm.loglikelihood_burn = 0

    def ours() -> float:
        Q, R = np.full((steps, 1, 1), theta[1]), np.full((steps, 1, 1), theta[0])
        Q[0] = 1e4
        return kf.kalman_filter(ss.replace(Q=Q, R=R), y).llf

    gap = abs(ours() - theirs.loglike(theta)) / abs(ours())
    assert gap < 1e-10, gap
    return {"kfdyn": ours, "statsmodels": lambda: theirs.loglike(theta)}, gap


def fresh(ss: kf.StateSpace, T: np.ndarray, method: str = "block", *, smooth: bool = True) -> None:
    """Filter a model that nobody has seen yet, and smooth it with its covariances."""
    ss._cache.clear()
    filt = kf.kalman_filter(ss, T, method=method)
    if smooth:
        smoothed = kf.bryson_frazier(ss, filt)
        _ = smoothed.x, smoothed.S


def scored(ss: kf.StateSpace, T: np.ndarray) -> None:
    """The score of a model that nobody has seen yet, with respect to everything."""
    ss._cache.clear()
    found = kf.score(ss, T)
    _ = found.phi, found.H, found.Q, found.R, found.xi, found.eta


def driven(N: int, n: int = 12, m: int = 6) -> dict[str, Callable[[], object]]:
    """A chain driven by fewer noises than it has states, all different at every step: how to build it, and to solve."""
    rng = np.random.default_rng(0)
    F, B = rng.normal(size=(N - 1, n, n)) / 4, rng.normal(size=(N - 1, n, m))
    H, R, Q = rng.normal(size=(N, m, n)), covariances(rng, N, m), B @ B.transpose(0, 2, 1)
    x0, P0, T = np.zeros(n), np.eye(n), rng.normal(size=N * m)
    ss = kf.StateSpace.chain(F, H, Q, R, x0, P0)
    return {
        "build": lambda: kf.StateSpace.chain(F, H, Q, R, x0, P0),
        "check=False": lambda: kf.StateSpace.chain(F, H, Q, R, x0, P0, check=False),
        "filter and smoother": lambda: fresh(ss, T),
    }


def many(count: int) -> dict[str, Callable[[], object]]:
    """Likelihoods of the airline series with gradients, for many sets of variances."""
    model = kf.series.local_trend() + kf.series.seasonal(12)
    y = np.log(airline().passengers)
    thetas, ask = np.exp(np.random.default_rng(0).normal(-6.0, 1.0, (count, len(model.names)))), model.likelihood(y)
    (values, slopes), each = ask(thetas), [ask(theta) for theta in thetas]
    np.testing.assert_allclose(values, [value for value, _ in each], rtol=1e-10)
    np.testing.assert_allclose(slopes, [slope for _, slope in each], rtol=1e-6, atol=1e-6)
    return {"side by side": lambda: ask(thetas), "a loop": lambda: [ask(theta) for theta in thetas]}


def run(quick: bool = False) -> Report:
    budget = 0.05 if quick else 1.0
    rng = np.random.default_rng(2)
    rows, numbers = [], {}

    def record(what: str, name: str, first: float, beside: str, second: float) -> None:
        numbers[what] = {name: first, beside: second}
        rows.append([what, name, seconds(first), beside, seconds(second), f"{first / second:.2f}"])

    def compare(what: str, runs: dict[str, Callable[[], object]]) -> None:
        (name, first), (beside, second) = race(runs, budget).items()
        record(what, name, first, beside, second)

    N = 199 if quick else 1999
    blocks = ragged(N)
    ss = kf.StateSpace(**blocks)
    T, Q, R = rng.normal(size=ss.n_outputs), blocks["Q"], blocks["R"]
    compare(
        f"{N} ragged nodes", {"build": lambda: kf.StateSpace(**blocks), "filter": lambda: fresh(ss, T, smooth=False)}
    )
    compare(
        f"{N} ragged nodes, new Q and R",
        {"replace": lambda: ss.replace(Q=Q, R=R), "filter": lambda: fresh(ss, T, smooth=False)},
    )
    runs, gap = level(100)
    compare("likelihood of a level, 100 points, new variances", runs)
    for N in (50,) if quick else (100, 300, 1000):
        found = race(driven(N), budget)
        for way in ("build", "check=False"):
            what = f"chain of {N} nodes, 12 states, 6 outputs, 6 noises" + ("" if way == "build" else ", unchecked")
            record(what, "build", found[way], "filter and smoother", found["filter and smoother"])
    count = 50 if quick else 1000
    compare(f"{count} likelihoods with gradients, trend and 12 seasons", many(count))
    steps = 10_000 if quick else 1_000_000
    y = rng.normal(size=steps)
    for n in (1, 2):
        F, H, one = np.eye(n) + np.eye(n, k=1), np.eye(1, n), np.eye(n)
        constant = (F, H, one, np.ones((1, 1)), np.zeros(n), one)
        ss = kf.StateSpace.chain(*constant, steps=steps)
        compare(
            f"constant chain of {steps} nodes, {n} states",
            {
                "build": lambda c=constant: kf.StateSpace.chain(*c, steps=steps),
                "filter": lambda s=ss: fresh(s, y, smooth=False),
            },
        )
    for chain in (True, False):
        ss, word = even(200 if quick else 1000, chain), "chain" if chain else "tree"
        T = rng.normal(size=ss.n_outputs)
        for smooth in (False, True):
            compare(
                f"{word}, 6 states, {'with the smoother' if smooth else 'filter'}",
                {
                    "square root": lambda s=ss, T=T, w=smooth: fresh(s, T, "square_root", smooth=w),
                    "covariances": lambda s=ss, T=T, w=smooth: fresh(s, T, smooth=w),
                },
            )
        compare(
            f"{word}, 6 states, score",
            {
                "score": lambda s=ss, T=T: scored(s, T),
                "smoother": lambda s=ss, T=T: fresh(s, T),
            },
        )
    return Report(
        "rebuilding",
        "What a fit does again and again",
        ["case", "", "time", "beside", "time", "ratio"],
        rows,
        environment(["kfdyn", "numpy", "statsmodels"]),
        [
            "Filter, smoother and score of a model that nobody has seen yet: nothing is kept from run to run.",
            "Likelihood: replace, kalman_filter and llf, as one would write it; statsmodels' loglike of the same model "
            f"differs by {gap:.0e}.",
            "One thread; shortest processor time of many runs, the two taking turns.",
        ],
        numbers,
        words=1,
    )
