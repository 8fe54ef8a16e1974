"""Whole fits: models of time series beside statsmodels', traits on a phylogeny beside PhyKIT's, long seasons."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

import kfdyn as kf
from benchmarks.report import Report, seconds
from benchmarks.timing import best_of, environment, race
from kfdyn.estimation.datasets import airline, nile

Runs = dict[str, Callable[[], object]]


def track() -> np.ndarray:
    """A smooth path in noise, a quarter of it not seen."""
    y = kf.series.local_trend(smooth=True).simulate([1.0, 0.01], 200, np.random.default_rng(5))
    y[60:100] = np.nan
    y[150:160] = np.nan
    return y


def series() -> dict[str, tuple[Any, np.ndarray, dict[str, Any]]]:
    """Models, what they are fitted to, and how statsmodels calls them."""
    S = kf.series
    seasonal = {"level": "local linear trend", "seasonal": 12}
    return {
        "Nile, a level": (S.local_level(), nile().flow, {"level": "local level"}),
        "airline, trend and months": (S.local_trend() + S.seasonal(12), np.log(airline().passengers), seasonal),
        "track with gaps": (S.local_trend(smooth=True), track(), {"level": "smooth trend"}),
    }


def beside_statsmodels(model: Any, y: np.ndarray, options: dict[str, Any]) -> Runs:
    """The same likelihood, from the data to the maximum; both models are made anew."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    def theirs() -> Any:
        return UnobservedComponents(y, **options, use_exact_diffuse=True).fit(disp=0)

    ours = model.fit(y)
    gap = theirs().llf - ours.llf  # where theirs stops earlier, its maximum is lower
    assert gap < 1e-5 * abs(ours.llf), gap
    return {"kfdyn": lambda: model.fit(y), "peer": theirs}


def weekly() -> Any:
    """CO₂ week by week over 44 years, some weeks missing."""
    import statsmodels.api as sm

    return sm.datasets.co2.load_pandas().data.co2


def seasons(limit: Callable[..., Any], quick: bool) -> Runs:
    """A level with 52 weeks, on one thread and on as many as NumPy takes: the same digits."""
    y = weekly()[:300] if quick else weekly()
    model = kf.series.local_level() + kf.series.seasonal(52)

    def alone() -> Any:
        with limit(1):
            return model.fit(y)

    fit, other = alone(), model.fit(y)
    assert fit.llf == other.llf
    assert (fit.params == other.params).all()
    return {"kfdyn": alone, "peer": lambda: model.fit(y)}


def far(period: int) -> Runs:
    """A forecast over a whole period, beside the fit."""
    rng = np.random.default_rng(0)
    y = np.tile(rng.normal(size=period), 10) + 0.3 * rng.normal(size=10 * period)
    fit = (kf.series.local_level() + kf.series.seasonal(period)).fit(y)
    return {"kfdyn": lambda: fit.forecast(period), "peer": lambda: fit.model.fit(y)}


def sampled(steps: int) -> Runs:
    """A sampler on the airline model: 64 walkers side by side, and one after the other."""
    import emcee

    model = kf.series.local_trend() + kf.series.seasonal(12)
    ask = model.likelihood(np.log(airline().passengers), gradient=False)
    begin = -7.0 + 0.5 * np.random.default_rng(0).normal(size=(64, len(model.names)))

    def run(many: bool) -> Any:
        sampler = emcee.EnsembleSampler(*begin.shape, lambda x: ask(np.exp(x)), vectorize=many)
        sampler.random_state = np.random.RandomState(0).get_state()
        return sampler.run_mcmc(begin, steps)

    return {"kfdyn": lambda: run(True), "peer": lambda: run(False)}


def coalescing(seed: int, tips: int) -> tuple[kf.Phylogeny, np.ndarray, np.ndarray]:
    """A tree of coalescing lineages, a trait that has evolved on it with λ = 0.7, and the time that tips share."""
    rng = np.random.default_rng(seed)
    N = 2 * tips - 1
    parent, time, now, alive = np.full(N, -1), np.zeros(N), 0.0, list(range(tips))
    for k in range(tips, N):
        now += rng.exponential(2.0 / (len(alive) * (len(alive) - 1)))
        time[k] = now
        for _ in range(2):
            parent[alive.pop(rng.integers(len(alive)))] = k
        alive.append(k)
    length = np.where(parent >= 0, time[parent] - time, 0.0)
    tree = kf.Phylogeny(parent, length, tuple(f"t{k}" for k in range(N)))
    # by outer sums over the subtrees
    C, below = now * np.eye(tips), [[k] for k in range(tips)] + [[] for _ in range(tips, N)]
    for k in range(tips, N):
        left, right = (below[c] for c in np.flatnonzero(parent == k))
        C[np.ix_(left, right)] = C[np.ix_(right, left)] = now - time[k]
        below[k] = left + right
    V = 2.0 * (0.7 * C + 0.3 * now * np.eye(tips))
    return tree, 5.0 + np.linalg.cholesky(V) @ rng.normal(size=tips), C


def profile(model: Any, y: np.ndarray) -> tuple[float, float, float]:
    """Log-likelihood with the root's mean and the rate at their maxima, the rate, the mean.

    A flat root is the mean of generalised least squares and adds its information to log det V.
    """
    post = model.smooth(y)
    root, n = model.tree.roots[0], y.size
    mean, rate = post.mean[root].item(), post.quadratic / n
    fixed = post.llf - 0.5 * np.log(post.cov[root].item()) + 0.5 * post.quadratic  # of a known mean, at rate 1
    return fixed - 0.5 * n * (1.0 + np.log(rate)), rate, mean


def fit_traits(tree: kf.Phylogeny, y: np.ndarray) -> tuple[Any, Any]:
    """Brownian motion, and Pagel's λ, fitted with this library."""
    found = minimize_scalar(lambda lam: -profile(tree.pagel(lam), y)[0], bounds=(0, 1), method="bounded")
    return profile(tree.brownian(), y), (found.x, profile(tree.pagel(found.x), y))


def phykit() -> Any:
    """PhyKIT's fits, without the files that its command line reads; None where it is not installed."""
    try:
        from phykit.services.tree.fit_continuous import FitContinuous
    except ImportError:
        return None
    return object.__new__(FitContinuous)


def traits(tips: int, budget: float) -> dict[str, float] | None:
    """Seconds of both fits, ours and PhyKIT's; of the slow one the better of two."""
    peer = phykit()
    if peer is None:
        return None
    tree, y, C = coalescing(1, tips)

    def theirs() -> tuple[Any, Any]:
        return peer._fit_bm(y, C), peer._fit_lambda(y, C, 1.0)

    (ours, _, _), (_, (pagel, _, _)) = fit_traits(tree, y)
    brownian, moved = theirs()
    assert abs(ours - brownian["log_likelihood"]) < 1e-6
    assert abs(pagel - moved["log_likelihood"]) < 1e-6
    return {"kfdyn": best_of(lambda: fit_traits(tree, y), budget), "peer": best_of(theirs, 0.0, repeats=1)}


def run(quick: bool = False) -> Report:
    from threadpoolctl import threadpool_limits

    budget, tips = (0.05, 100) if quick else (2.0, 2000)
    found: dict[str, dict[str, float]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a peer says of its own ways
        for name, case in series().items():
            found[name] = race(beside_statsmodels(*case), budget)
        beside = dict.fromkeys(found, "statsmodels")
        period = 24 if quick else 168
        name = f"forecast of {period} seasons"
        found[name], beside[name] = race(far(period), budget), "their fit"
        with suppress(ImportError):
            name = "emcee on the airline model, walkers side by side"
            found[name], beside[name] = race(sampled(5 if quick else 100), budget), "in a loop"
        if (took := traits(tips, budget)) is not None:
            name = f"Brownian motion and λ on {tips:,} tips"
            found[name], beside[name] = took, "PhyKIT"
        name = "weekly CO₂, a level and 52 weeks"
        found[name], beside[name] = {}, "all threads"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found[name] = race(seasons(threadpool_limits, quick), budget)
    return Report(
        "fits",
        "Whole fits",
        ["fit", "kfdyn", "beside", "its time", "times kfdyn"],
        [
            [name, seconds(took["kfdyn"]), beside[name], seconds(took["peer"]), f"{took['peer'] / took['kfdyn']:.3g}"]
            for name, took in found.items()
        ],
        environment(["kfdyn", "numpy", "statsmodels", "phykit", "emcee"]),
        [
            "Time series: from the data to the maximum of the likelihood with flat priors; statsmodels' "
            "UnobservedComponents with use_exact_diffuse=True, whose maximum is no higher.",
            "Tips: both models of evolution, the root's mean and the rate at their maxima; PhyKIT factors the dense "
            "covariance of the tips each time, and finds the same maxima.",
            "Weeks: the same digits on one thread and on all. Forecast: a period after ten. emcee: 64 walkers.",
            "One thread; shortest processor time of many runs, the two taking turns.",
        ],
        {"seconds": found},
    )
