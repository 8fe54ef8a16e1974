"""Dynamics called from JAX and PyTorch, with gradients, beside the bare functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.report import Report
from benchmarks.timing import environment, race
from kfdyn.multibody import models
from kfdyn.sweeps import alone

_SIZES = {"one state": (), "1,024 states": (1024,)}


def by_jax(arm: kf.System, *given: Any) -> dict[str, Callable[[], object]]:
    """Forward dynamics in a compiled program, and the gradient of its sum."""
    import jax

    import kfdyn.bridge.jax as kj

    jax.config.update("jax_enable_x64", True)
    at = [jax.numpy.asarray(x) for x in given]
    a = jax.jit(lambda *x: kj.forward_dynamics(arm, *x))
    slope = jax.jit(jax.grad(lambda *x: kj.forward_dynamics(arm, *x).sum(), (0, 1, 2)))
    return {"JAX": lambda: a(*at).block_until_ready(), "JAX, gradient": lambda: jax.block_until_ready(slope(*at))}


def by_torch(arm: kf.System, *given: Any) -> dict[str, Callable[[], object]]:
    """The same in PyTorch, on one thread."""
    import torch

    import kfdyn.bridge.torch as kt

    torch.set_num_threads(1)
    at = [torch.from_numpy(x) for x in given]
    leaves = [x.clone().requires_grad_() for x in at]
    return {
        "PyTorch": lambda: kt.forward_dynamics(arm, *at),
        "PyTorch, gradient": lambda: torch.autograd.grad(kt.forward_dynamics(arm, *leaves).sum(), leaves),
    }


def run(quick: bool = False) -> Report:
    budget, rows, numbers, missing = 0.02 if quick else 1.5, [], {}, []
    arm = models.random_tree(7, seed=1, hinges=["revolute"], branching=0.0)
    with alone():
        for size, lead in _SIZES.items():
            rng, count = np.random.default_rng(0), int(np.prod(lead, dtype=int))
            given = [rng.normal(size=(*lead, arm.nv)) for _ in range(3)]
            runs = {
                "bare": lambda given=given: kf.forward_dynamics(arm, *given),
                "bare, derivatives": lambda given=given: kf.forward_dynamics_derivatives(arm, *given),
            }
            for framework in (by_jax, by_torch):
                try:
                    runs |= framework(arm, *given)
                except ModuleNotFoundError as error:
                    missing = [*missing, str(error.name)]
            took = race(runs, budget)
            numbers[size] = took
            rows += [[size, name, f"{1e6 * t:.1f}", f"{1e6 * t / count:.3f}"] for name, t in took.items()]
    return Report(
        "bridge",
        "Forward dynamics of an arm of seven hinges, called from JAX and PyTorch",
        ["states", "called from", "µs a call", "µs a state"],
        rows,
        environment(["kfdyn", "numpy", "llvmlite", "jax", "torch"]),
        [
            "Processor time, one thread of kfdyn's. Gradients are of the sum of accelerations in q, v and tau.",
            *(f"{name} is not installed." for name in sorted(set(missing))),
        ],
        {"seconds": numbers},
        words=2,
    )
