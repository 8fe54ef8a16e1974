"""What a body costs as a function of its modes, with and without PART's split of modes from hinge."""

from collections.abc import Callable

import numpy as np

import kfdyn as kf
from benchmarks.report import Report, seconds
from benchmarks.timing import environment, race

BODIES = 24


def chain(modes: int, bodies: int = BODIES) -> kf.FlexibleSystem:
    """A chain of bodies of which each bends with so many modes; as many points as a fine beam has."""
    rng = np.random.default_rng(modes)
    made: list[kf.Body | kf.FlexibleBody] = []
    for k in range(bodies):
        placed = {
            "hinge": kf.Hinge.revolute([0, 1, 0] if k % 2 else [0, 0, 1]),
            "parent": f"b{k - 1}" if k else None,
            "position": [0.5, 0, 0] if k else [0, 0, 0],
        }
        points = np.concatenate([rng.normal(size=(63, 3)), [[0.5, 0, 0]]])
        if modes:
            shapes, turns = rng.normal(size=(2, 64, 3, modes))
            K = np.linspace(50.0, 500.0, modes)
            made.append(kf.FlexibleBody(f"b{k}", np.full(64, 0.02), points, shapes, K, 0.01, turns, **placed))
        else:
            rigid = kf.FlexibleBody(f"b{k}", np.full(64, 0.02), points, points[..., None], [1.0]).rigid
            made.append(kf.Body(f"b{k}", rigid.inertia, **placed))
    return kf.FlexibleSystem(made)


def operations(modes: int) -> tuple[int, int]:
    """Multiplications of the Riccati recursion at a node of dense blocks: whole, and split in modes and hinge.

    P H*, the factor of D, G, P − G D G* and φ P⁺ φ* with all n + 6 states; or of n outputs at n + 6 states, passed on
    to six, and one output there.
    """

    def node(n: int, m: int, to: int) -> int:
        return n * n * m + n * m * m + m**3 // 6 + n * m * m + n * n * m + to * n * n + to * to * n

    n = modes + 6
    return node(n, modes + 1, n), node(n, modes, 6) + node(6, 1, n)


def run(quick: bool = False) -> Report:
    from kfdyn.dynamics import behind_modes, partition_hinges, succession
    from kfdyn.dynamics.forward import FORWARD
    from kfdyn.dynamics.hybrid import HYBRID, by_engine
    from kfdyn.dynamics.inverse import INVERSE
    from kfdyn.dynamics.solving.forest import States
    from kfdyn.estimation.inference.riccati import _run

    budget = 0.05 if quick else 1.0
    rows, numbers = [], {}
    for modes in (0, 2, 8) if quick else (0, 1, 2, 4, 8, 16, 32):
        system = chain(modes)
        q, v = system.random_configuration(0, bent=0.01), np.zeros(system.nv)
        tau, (out, other) = np.ones(system.nv), np.empty((2, system.nv))
        led = ~system.elastic  # hinges led, modes free
        marked = led.astype(np.int64)
        whole = kf.as_estimation(system, q, v)
        split = partition_hinges(whole, succession(system), transitions=behind_modes(system))
        square = partition_hinges(whole, succession(system))
        every, parts, wide = (np.ones(ss.n_outputs, dtype=bool) for ss in (whole, split.ss, square.ss))
        a = kf.forward_dynamics(system, q, v, tau)
        engine = kf.forward_dynamics(system, q, v, tau, method="engine")
        assert np.abs(a - engine).max() < 1e-8 * np.abs(a).max()
        forces, answers = kf.inverse_dynamics(system, q, v, a), kf.hybrid_dynamics(system, q, v, tau, tau, led)
        assert np.abs(forces - tau).max() < 1e-8 * np.abs(a).max()
        for got, wanted in zip(answers, by_engine(States.of(system, q, v, tau=tau * ~led, a=tau * led), led).values()):
            assert np.abs(got - wanted).max() < 1e-8 * np.abs(wanted).max()
        runs: dict[str, Callable[[], object]] = {
            "whole": lambda ss=whole, seen=every: _run(ss, seen, "block"),
            "univariate": lambda ss=whole, seen=every: _run(ss, seen, "univariate"),
            "split": lambda ss=split.ss, seen=parts: _run(ss, seen, "block"),
            "split, all states": lambda ss=square.ss, seen=wide: _run(ss, seen, "block"),
            "sweep": lambda s=system, given=(q, v, tau, None, system.gravity, out): FORWARD(s, 1, *given),
            "inverse": lambda s=system, given=(q, v, tau, None, system.gravity, out): INVERSE(s, 1, *given),
            "hybrid": lambda s=system, given=(marked, q, v, tau, tau, None, system.gravity, out, other): HYBRID(
                s, 1, *given
            ),
            "inverse, call": lambda s=system, q=q, v=v, t=tau: kf.inverse_dynamics(s, q, v, t),
            "hybrid, call": lambda s=system, q=q, v=v, t=tau, led=led: kf.hybrid_dynamics(s, q, v, t, t, led),
            "inverse, engine": lambda s=system, q=q, v=v, t=tau: kf.inverse_dynamics(s, q, v, t, method="operators"),
            "hybrid, engine": lambda s=system, q=q, v=v, t=tau, led=led: by_engine(
                States.of(s, q, v, tau=t * ~led, a=t * led), led
            ),
        }
        times = {name: t / BODIES for name, t in race(runs, budget).items()}
        count = operations(modes)
        numbers[str(modes)] = times | {"operations whole": count[0], "operations split": count[1]}
        rows.append(
            [
                str(modes),
                *(seconds(times[name]) for name in ("whole", "univariate", "split, all states", "split")),
                f"{times['whole'] / times['split']:.2f}",
                f"{count[0] / count[1]:.2f}",
                *(seconds(times[name]) for name in ("sweep", "inverse", "hybrid")),
                *(f"{times[f'{name}, engine'] / times[f'{name}, call']:.0f}" for name in ("inverse", "hybrid")),
            ]
        )
    return Report(
        "flexible",
        "Bodies that bend: what modes cost",
        [
            "modes",
            "Riccati, whole node",
            "output by output",
            "split, all states",
            "split, six behind",
            "split pays, times",
            "counted, times",
            "forward dynamics, sweep",
            "inverse, sweep",
            "hybrid, sweep",
            "inverse: engine over sweep",
            "hybrid: engine over sweep",
        ],
        rows,
        environment(["kfdyn", "numpy", "llvmlite"]),
        [
            f"Times a body of a chain of {BODIES}, each on one revolute hinge. Riccati: P, D, G, P⁺ by the engine, "
            "whose blocks are dense. Split: modes at a node of n + 6 states, the hinge at a mass-less one behind it, "
            "which keeps all states, or six.",
            "counted: multiplications of dense blocks, whole over split.",
            "sweep: all of forward dynamics of one state by the compiled sweep, which is written in the split form: "
            "kinematics, inertia of the bent body, gather, scatter. Hybrid: hinges led, modes free.",
            "engine over sweep: a call of kf.inverse_dynamics and kf.hybrid_dynamics for one state, against the same "
            "on the assembled model.",
        ],
        numbers,
    )
