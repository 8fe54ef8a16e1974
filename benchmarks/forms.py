"""Other forms of the filter beside the one with covariances: square roots and the score."""

from collections.abc import Callable, Iterator

import numpy as np

import kfdyn as kf
from benchmarks.models import chain_parent, covariances, random_parent
from benchmarks.rebuilding import fresh, ragged, scored
from benchmarks.report import Report, seconds
from benchmarks.timing import environment, race

SIZES = ((1, 1), (2, 1), (4, 1), (4, 2), (6, 1), (6, 3), (12, 1))


def even(parent: np.ndarray, n: int, m: int) -> kf.StateSpace:
    """Nodes of n states and m outputs, every matrix different."""
    rng, N = np.random.default_rng(0), len(parent)
    phi = rng.normal(size=(N, n, n)) / (2 * np.sqrt(n))
    return kf.StateSpace(parent, phi, rng.normal(size=(N, m, n)), covariances(rng, N, n), covariances(rng, N, m))


def models(nodes: int) -> Iterator[tuple[str, kf.StateSpace]]:
    for n, m in SIZES:
        yield f"chain, n = {n}, m = {m}", even(chain_parent(nodes), n, m)
        yield f"tree, n = {n}, m = {m}", even(random_parent(np.random.default_rng(0), nodes), n, m)
    yield "ragged tree", kf.StateSpace(**ragged(nodes))


def forms(ss: kf.StateSpace) -> dict[str, Callable[[], object]]:
    """Everything that is timed on a model of which nothing is kept from run to run."""
    T = np.random.default_rng(1).normal(size=ss.n_outputs)
    return {
        "filter": lambda: fresh(ss, T, smooth=False),
        "filter by roots": lambda: fresh(ss, T, "square_root", smooth=False),
        "smoother": lambda: fresh(ss, T),
        "smoother by roots": lambda: fresh(ss, T, "square_root"),
        "score": lambda: scored(ss, T),
    }


def run(quick: bool = False) -> Report:
    nodes, budget = (100, 0.02) if quick else (1000, 0.6)
    found = {name: race(forms(ss), budget) for name, ss in models(nodes)}
    return Report(
        "forms",
        f"Square roots and scores beside covariances, {nodes} nodes",
        ["model", "filter", "by roots, times", "with the smoother", "by roots, times", "score, times"],
        [
            [
                name,
                seconds(took["filter"]),
                f"{took['filter by roots'] / took['filter']:.2f}",
                seconds(took["smoother"]),
                f"{took['smoother by roots'] / took['smoother']:.2f}",
                f"{took['score'] / took['smoother']:.2f}",
            ]
            for name, took in found.items()
        ],
        environment(["kfdyn", "numpy"]),
        [
            "n states and m outputs to each node; filter, smoother with its covariances, and score of a model that "
            "nobody has seen yet: nothing is kept from run to run. The score is compared with the smoother.",
            "Shortest processor time of many runs, the forms taking turns; one thread.",
        ],
        {"seconds": found},
    )
