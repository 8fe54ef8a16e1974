"""Filter and smoother with all covariances on a fully time-varying chain, against statsmodels and filterpy."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import kfdyn as kf
from benchmarks.models import covariances, transitions
from benchmarks.report import BLUE, GREY, ORANGE, RED, Report
from benchmarks.timing import environment, race

STATE, OUTPUT, STEPS = 6, 1, 1000


class Series(NamedTuple):
    """The model and one run of measurements: F, Q on the N−1 edges, H, R on the N steps."""

    F: np.ndarray
    H: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    x0: np.ndarray
    P0: np.ndarray
    T: np.ndarray


class Answer(NamedTuple):
    """What every peer must agree on before it is timed."""

    predicted_cov: np.ndarray
    smoothed: np.ndarray
    smoothed_cov: np.ndarray


def series(steps: int = STEPS, seed: int = 0) -> Series:
    rng = np.random.default_rng(seed)
    return Series(
        transitions(rng, steps - 1, STATE),
        rng.normal(size=(steps, OUTPUT, STATE)),
        covariances(rng, steps - 1, STATE),
        covariances(rng, steps, OUTPUT),
        rng.normal(size=STATE),
        covariances(rng, 1, STATE)[0],
        rng.normal(size=(steps, OUTPUT)),
    )


def kfdyn_runs(s: Series) -> tuple[dict[str, Callable[[], object]], Answer]:
    ss = kf.StateSpace.chain(s.F, s.H, s.Q, s.R, s.x0, s.P0)
    T = s.T.ravel()

    def estimate(model: kf.StateSpace) -> tuple:
        filt = kf.kalman_filter(model, T)
        smooth = kf.bryson_frazier(model, filt)
        return filt.P, filt.P_plus, filt.D, filt.G, filt.z, filt.z_plus, filt.llf, smooth.x, smooth.Lambda, smooth.S

    def fresh() -> tuple:
        ss._cache.clear()  # else the covariances of the last repeat would be used again
        return estimate(ss)

    results = fresh()
    answer = Answer(results[0].stacked(), results[7].stacked(), results[9].stacked())
    runs = {
        "kfdyn": fresh,
        "kfdyn, building the StateSpace included": lambda: estimate(
            kf.StateSpace.chain(s.F, s.H, s.Q, s.R, s.x0, s.P0)
        ),
        "kfdyn, another T on the same model": lambda: estimate(ss),
    }
    return runs, answer


def statsmodels_runs(s: Series) -> tuple[dict[str, Callable[[], object]], Answer]:
    from statsmodels.tsa.statespace.kalman_smoother import (
        SMOOTH_CONVENTIONAL,
        SMOOTHER_ALL,
        SMOOTHER_STATE,
        SMOOTHER_STATE_COV,
        KalmanSmoother,
    )

    steps = len(s.T)
    model = KalmanSmoother(
        k_endog=OUTPUT, k_states=STATE, k_posdef=STATE, nobs=steps, smooth_method=SMOOTH_CONVENTIONAL, tolerance=0
    )
    model.bind(np.asfortranarray(s.T.T).T.copy())
    last = np.eye(STATE)[None]  # statsmodels wants an edge after the last step; nothing reads its result
    model["transition"] = np.asfortranarray(np.concatenate([s.F, last]).transpose(1, 2, 0))
    model["state_cov"] = np.asfortranarray(np.concatenate([s.Q, last]).transpose(1, 2, 0))
    model["selection"] = np.eye(STATE)
    model["design"] = np.asfortranarray(s.H.transpose(1, 2, 0))
    model["obs_cov"] = np.asfortranarray(s.R.transpose(1, 2, 0))
    model.initialize_known(s.x0, s.P0)

    def compiled(output: int) -> Callable[[], object]:
        def run() -> None:  # the Cython loops, without the copies into a results object
            model._filter()
            model._smooth(smoother_output=output)

        return run

    results = model.smooth()
    answer = Answer(
        np.moveaxis(results.predicted_state_cov[..., :-1], 2, 0),
        results.smoothed_state.T,
        np.moveaxis(results.smoothed_state_cov, 2, 0),
    )
    runs = {
        "statsmodels, compiled loops, state and covariance": compiled(SMOOTHER_STATE | SMOOTHER_STATE_COV),
        "statsmodels, compiled loops, all output": compiled(SMOOTHER_ALL),
        "statsmodels, smooth()": model.smooth,
    }
    return runs, answer


def filterpy_runs(s: Series) -> tuple[dict[str, Callable[[], object]], Answer]:
    from filterpy.kalman import KalmanFilter

    steps = len(s.T)
    # Its edge k leads to step k, so that step 0 gets an edge that changes nothing.
    F = [np.eye(STATE), *s.F]
    Q = [np.zeros((STATE, STATE)), *s.Q]
    H, R, T = list(s.H), list(s.R), list(s.T)

    def run() -> tuple:
        peer = KalmanFilter(dim_x=STATE, dim_z=OUTPUT)
        peer.x, peer.P = s.x0.copy(), s.P0.copy()
        x, P, P_prior = np.empty((steps, STATE)), np.empty((steps, STATE, STATE)), np.empty((steps, STATE, STATE))
        for k in range(steps):
            peer.predict(F=F[k], Q=Q[k])
            P_prior[k] = peer.P
            peer.update(T[k], R=R[k], H=H[k])
            x[k], P[k] = peer.x, peer.P
        smoothed, smoothed_cov, _, _ = peer.rts_smoother(x, P, F, Q)
        return P_prior, smoothed, smoothed_cov

    return {"filterpy, predict, update, rts_smoother": run}, Answer(*run())


def run(quick: bool = False) -> Report:
    from threadpoolctl import threadpool_limits

    s = series(200 if quick else STEPS)
    steps = len(s.T)
    runs, ours = kfdyn_runs(s)
    gaps = {}
    for name, peer in (("statsmodels", statsmodels_runs), ("filterpy", filterpy_runs)):
        more, theirs = peer(s)
        gaps[name] = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(ours, theirs))
        if not gaps[name] < 1e-9:
            raise AssertionError(f"{name} computes something else (relative difference {gaps[name]:.1e})")
        runs |= more
    with threadpool_limits(1):
        times = race(runs, 0.2 if quick else 3.0, 1 if quick else 5)
    per_step = {name: 1e6 * time / steps for name, time in times.items()}
    base = per_step["kfdyn"]
    return Report(
        "engine",
        f"Filter and smoother with covariances: state {STATE}, output {OUTPUT}, N = {steps}, all matrices varying",
        ["", "µs per step", "times kfdyn"],
        [[name, f"{value:.3g}", f"{value / base:.3g}"] for name, value in per_step.items()],
        environment(["kfdyn", "numpy", "llvmlite", "statsmodels", "filterpy"]),
        [
            "Delivered by kfdyn: P, P⁺, D, G, z, z⁺, log-likelihood, λ, x̂, Λ, S; nothing is kept from repeat to repeat "
            "except in the row that says so.",
            "statsmodels: conventional filter and smoother; its model stands ready in every row.",
            f"All agree before they are timed: largest relative difference of P, x̂, S {max(gaps.values()):.0e}.",
            "One thread; shortest processor time of many runs, the peers taking turns.",
        ],
        {"us_per_step": per_step, "relative_difference": gaps, "steps": steps},
        lambda path: draw(per_step, path),
    )


def draw(per_step: dict[str, float], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    names = list(per_step)[::-1]
    colour = {"kfdyn": BLUE, "statsmodels": ORANGE, "filterpy": RED}
    for name in names:  # dots, not bars: a logarithmic axis has no zero for a bar to stand on
        axes.plot(per_step[name], name, "o", color=colour.get(name.split(",")[0], GREY), markersize=8)
        axes.annotate(f"{per_step[name]:.3g}", (per_step[name], name), (8, 0), textcoords="offset points", va="center")
    axes.set(xscale="log", xlabel="µs per step (logarithmic)")
    axes.set_xlim(0.6 * min(per_step.values()), 2.0 * max(per_step.values()))
    axes.grid(axis="x", linewidth=0.4, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=8)
    figure.savefig(path, dpi=150)
