"""Steps of a motion by method: explicit ones in compiled loops, and the implicit equations of the symplectic one."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import kfdyn as kf
from benchmarks.report import Report
from benchmarks.timing import environment, race
from kfdyn.multibody import models
from kfdyn.sweeps import alone

Array = NDArray[np.float64]

_STEPS, _BATCH = 200, 100


def runs(system: kf.System, q: Array, v: Array, tau: Array) -> dict[str, Callable[[], object]]:
    """So many forward dynamics, and motions of so many steps of 1 ms."""
    t = 1e-3 * np.arange(_STEPS + 1)
    return {
        "forward dynamics": lambda: [kf.forward_dynamics(system, q, v, tau) for _ in range(_STEPS)],
        "rk4": lambda: kf.simulate(system, q, v, t),
        "symplectic": lambda: kf.simulate(system, q, v, t, method="symplectic"),
    }


def run(quick: bool = False) -> Report:
    budget, rows, numbers = 0.02 if quick else 1.5, [], {}
    with alone():
        for system in (models.puma560(), models.humanoid()):
            rng = np.random.default_rng(0)
            for lead in ((), (_BATCH,)):
                q = np.array(np.broadcast_to(system.neutral(), (*lead, system.nq)))
                v, tau = 0.3 * rng.normal(size=(*lead, system.nv)), np.zeros((*lead, system.nv))
                took = race(runs(system, q, v, tau), budget)
                key = f"{system.name}, {_BATCH if lead else 1}"
                numbers[key] = {name: time / _STEPS for name, time in took.items()}
                forward, rk4, symplectic = numbers[key].values()
                cells = [f"{1e6 * x:.1f}" for x in (forward, rk4, symplectic)]
                rows.append([key, *cells, f"{symplectic / forward:.0f}", f"{symplectic / rk4:.0f}"])
    return Report(
        "steps",
        "Steps of a motion: the symplectic one beside Runge–Kutta's",
        ["robot, motions", "forward dynamics, µs", "rk4, µs", "symplectic, µs", "forward dynamics", "steps by rk4"],
        rows,
        environment(["kfdyn", "numpy", "llvmlite"]),
        [
            f"One thread; a step of 1 ms is a part of a motion of {_STEPS}, energies and momenta included, of all "
            "motions together. The last columns say how many forward dynamics of as many states, and steps by rk4, "
            "take as long as a symplectic step.",
        ],
        {"seconds": numbers},
        words=1,
    )
