"""Posteriors of a time series' variances: samplers on log_likelihood, with its score and without gradients."""

from importlib import import_module
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.report import Report
from benchmarks.timing import best_of, environment
from kfdyn.estimation.datasets import nile
from kfdyn.sweeps import alone

START, PRIOR = np.array([-2.0, -0.5]), 10.0


class Level:
    """A level that wanders, seen with noise, of variances exp θ with a normal prior: the Nile, standardised."""

    def __init__(self) -> None:
        _, flow = nile()
        self.y = (flow - flow.mean()) / flow.std()
        self.first, self.edges = np.zeros((2, flow.size, 1, 1))
        self.first[0], self.edges[1:], self.noise = PRIOR, 1.0, np.ones((flow.size, 1, 1))
        one = np.ones((1, 1))
        self.ss = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=PRIOR * one, steps=flow.size)

    def blocks(self, xp: Any, theta: Any) -> dict[str, Any]:
        """Q and R."""
        level, noise = xp.exp(theta)
        return {"Q": self.first + level * self.edges, "R": noise * self.noise}

    def by_bridge(self, theta: Any) -> Any:
        """Log density, whose gradient is the score."""
        jnp, kj = import_module("jax.numpy"), import_module("kfdyn.bridge.jax")
        return kj.log_likelihood(self.ss, self.y, **self.blocks(jnp, theta)) - ((theta + 1.0) ** 2).sum() / 8.0

    def by_scan(self, theta: Any) -> Any:
        """A filter of one state, written out in JAX."""
        jax, jnp = import_module("jax"), import_module("jax.numpy")
        level, noise = jnp.exp(theta)

        def step(state: Any, y: Any) -> Any:
            (x, P), D = state, state[1] + noise
            e, K = y - x, P / D
            return (x + K * e, P - K * P + level), -0.5 * (jnp.log(2.0 * jnp.pi * D) + e * e / D)

        llf = jax.lax.scan(step, (0.0, PRIOR), jnp.asarray(self.y))[1].sum()
        return llf - ((theta + 1.0) ** 2).sum() / 8.0

    def bare(self, theta: Any) -> float:
        """The same number without a gradient."""
        llf = kf.kalman_filter(self.ss.replace(**self.blocks(np, theta)), self.y).llf
        return float(llf - ((theta + 1.0) ** 2).sum() / 8.0)


def nuts(density: Any, draws: int) -> Any:
    """A run of NumPyro's, which gives samples (draws, 2)."""
    jax, infer = import_module("jax"), import_module("numpyro.infer")
    kernel = infer.NUTS(potential_fn=lambda theta: -density(theta))
    chain = infer.MCMC(kernel, num_warmup=draws // 2, num_samples=draws, progress_bar=False)

    def run() -> Any:
        chain.run(jax.random.PRNGKey(0), init_params=jax.numpy.asarray(START))
        return np.asarray(chain.get_samples())

    return run


def ensemble(density: Any, steps: int) -> Any:
    """A run of emcee's, 16 walkers, a quarter thrown away."""
    start = START + 0.1 * np.random.default_rng(0).normal(size=(16, 2))

    def run() -> Any:
        sampler = import_module("emcee").EnsembleSampler(16, 2, density)
        sampler.run_mcmc(start, steps)
        return sampler.get_chain(discard=steps // 4)

    return run


def run(quick: bool = False) -> Report:
    draws, rows, numbers, level = 20 if quick else 500, [], {}, Level()
    rivals = {
        "NUTS on kfdyn.bridge.jax": (nuts, level.by_bridge, draws),
        "NUTS on a scan in JAX": (nuts, level.by_scan, draws),
        "emcee on kfdyn": (ensemble, level.bare, 2 * draws),
    }
    with alone():
        for name, (sampler, density, count) in rivals.items():
            try:
                import_module("jax").config.update("jax_enable_x64", True)
                run, kept = sampler(density, count), []
                took = best_of(lambda run=run, kept=kept: kept.append(run()), 0.0, 2)
                effective = import_module("numpyro.diagnostics").effective_sample_size
            except ModuleNotFoundError as error:
                rows.append([name, f"{error.name} is not installed", "", "", ""])
                continue
            x = kept[-1].reshape(-1, 2)
            ess = float(
                effective(
                    np.moveaxis(kept[-1].reshape(*kept[-1].shape[:-1], 2), 0, -2).reshape(-1, len(kept[-1]), 2)
                ).min()
            )
            numbers[name] = {"seconds": took, "effective": ess, "mean": x.mean(0).tolist(), "std": x.std(0).tolist()}
            told = ", ".join(f"{m:.2f} ± {s:.2f}" for m, s in zip(x.mean(0), x.std(0)))
            rows.append([name, told, f"{took:.2f}", f"{ess:.0f}", f"{ess / took:.0f}"])
    return Report(
        "samplers",
        "Posterior of the two variances behind a hundred years of the Nile",
        ["sampler", "log variances of level and noise", "s", "effective samples", "of them a second"],
        rows,
        environment(["kfdyn", "numpy", "jax", "numpyro", "emcee"]),
        [
            "Processor time of runs after the first; effective samples of the worse of both variances, by NumPyro.",
            "A chain of one state is where a scan in JAX is best: nothing to factor, and no call leaves the program.",
        ],
        {"samplers": numbers},
        words=2,
    )
