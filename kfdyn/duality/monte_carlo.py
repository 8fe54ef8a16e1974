"""Draw samples in chunks: any number in memory O(d²), the same numbers on one machine or a cluster.

Chunk i of the stream has its own generator, seeded by (seed, i), and a size that depends on the model alone. Sums
over chunks are formed in the order of i. So the result is a function of the model, the seed and the number of
samples, whether one process works or a cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.duality.quantities import QUANTITIES, Claim, claims, sample
from kfdyn.estimation import StateSpace

#: Dimensions up to which a scatter matrix is kept whole, of states and of outputs (𝓜⁻¹ is worth more time).
DENSE_STATES, DENSE_OUTPUTS = 640, 1024
SKETCH = 128  # random directions in which a larger one is seen
BINS = 64  # of the histogram of NIS
_CHUNK_NUMBERS = 2**21
_LARGEST_CHUNK = 8192
_BLAS_ALONE = 2**18  # multiplications of a product that OpenBLAS leaves to one thread
_AHEAD = 4  # chunks handed out beyond one for each thread of a cluster


def chunk_size(ss: StateSpace) -> int:
    """Return the samples in one chunk: a power of two, so that a chunk of states takes some 16 MB."""
    fitting = max(_CHUNK_NUMBERS // max(ss.n_states, 1), 1)
    return min(_LARGEST_CHUNK, 2 ** int(np.log2(fitting)))


class Sums(NamedTuple):
    """Sums over samples y of one quantity, its claimed mean taken off.

    ``total`` (d,) = Σ y. ``scatter`` = Σ yy*, (d, d), or of the sketch Ay, (r, r). ``nodes`` (N, n, n) and ``edges``
    (N, n, n): where only a sketch is kept, the scatter of each node's block with itself and with its parent's,
    padded by zeros to the largest n; else empty.
    """

    total: Array
    scatter: Array
    nodes: Array
    edges: Array

    def __add__(self, other: Any) -> Sums:
        return Sums(*(mine + theirs for mine, theirs in zip(self, other)))


@dataclass(frozen=True)
class Moments:
    """Sums over n samples.

    Attributes
    ----------
    n : int
        Number of samples.
    sums : dict of Sums
        By quantity.
    nis : float
        Σ over samples of ε*D⁻¹ε, the mean of ε taken off.
    histogram : (BINS,) of int
        Counts of the χ² distribution function of each sample's NIS.
    early : dict of int to (Σm, Σm)
        Only of the first chunk: scatter of ``a`` after 2^i samples, for the figure of convergence.
    """

    n: int
    sums: dict[str, Sums]
    nis: float
    histogram: NDArray[np.int64]
    early: dict[int, Array] = field(default_factory=dict)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.n + other.n,
            {name: mine + other.sums[name] for name, mine in self.sums.items()},
            self.nis + other.nis,
            self.histogram + other.histogram,
            self.early,
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """Data every worker needs: the model, the model that draws, the claimed means and the sketches.

    Attributes
    ----------
    ss, truth : StateSpace
        The model that filters, and the one that draws.
    seed : int
    means : dict of (d,)
    sketch : dict of (d, r)
        Directions for quantities of too many dimensions to be kept whole, in units of the standard deviations.
    """

    ss: StateSpace
    truth: StateSpace
    seed: int
    means: dict[str, Array]
    sketch: dict[str, Array]

    @classmethod
    def of(cls, ss: StateSpace, truth: StateSpace, seed: int) -> Plan:
        """Compute the means and draw the directions, from the seed alone."""
        means, sketch = {}, {}
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0)))
        for name, claim in claims(ss).items():
            means[name] = claim.mean
            if claim.mean.size > (DENSE_STATES if QUANTITIES[name].on_states else DENSE_OUTPUTS):
                directions = rng.choice([-1.0, 1.0], size=(claim.mean.size, SKETCH))
                sketch[name] = directions / claim.scale[:, None]
        return cls(ss, truth, seed, means, sketch)

    def chunk(self, index: int, n: int) -> Moments:
        """Return the moments of chunk ``index``, of n samples."""
        from scipy.special import chdtr

        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(index,)))
        values = sample(self.ss, self.truth, rng, n)
        for name, y in values.items():
            y -= self.means[name]
        nis = np.einsum("ij,ij->i", values["eps"], values["nu"])
        uniform = chdtr(self.ss.n_outputs, nis) if self.ss.n_outputs else np.zeros(n)
        bins = np.minimum((uniform * BINS).astype(np.int64), BINS - 1)
        early = {}
        if index == 0:
            early = {2**i: _scatter(values["a"][: 2**i]) for i in range(3, int(np.log2(n)) + 1)}
        return Moments(
            n,
            {name: self._sums(name, y) for name, y in values.items()},
            float(nis.sum()),
            np.bincount(bins, minlength=BINS),
            early,
        )

    def _sums(self, name: str, y: Array) -> Sums:
        none = np.zeros((0, 0, 0))
        if name not in self.sketch:
            return Sums(y.sum(0), _scatter(y), none, none)
        from kfdyn.duality.recursions.scatter import node_scatter

        on_states, arrays = QUANTITIES[name].on_states, self.ss.arrays
        sizes = self.ss.n if on_states else self.ss.m
        most = int(sizes.max(initial=0))
        nodes, edges = np.zeros((2, len(sizes), most, most))
        start = arrays.state if on_states else arrays.output
        node_scatter(np.ascontiguousarray(y.T), start, arrays.parent, nodes.reshape(-1), edges.reshape(-1), most)
        return Sums(y.sum(0), _scatter(y @ self.sketch[name]), nodes, edges)


def block_index(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return positions (N, largest) of each node's entries in the stacked vector; −1 where there is no such entry."""
    stop = np.cumsum(sizes)
    table = (stop - sizes)[:, None] + np.arange(int(sizes.max(initial=0)))
    return np.where(table < stop[:, None], table, -1)


def _scatter(y: Array) -> Array:
    """Return Σ yy*; few dimensions go in slices that BLAS leaves to one thread."""
    n, d = y.shape
    rows = _BLAS_ALONE // max(d * d, 1)
    if rows < 64 or not y.size:
        return y.T @ y
    rows = min(rows, max(n, 1))
    whole = n // rows * rows
    slices, rest = y[:whole].reshape(-1, rows, d), y[whole:]
    return np.matmul(slices.transpose(0, 2, 1), slices).sum(0) + rest.T @ rest


def chunks(plan: Plan, samples: int) -> Iterator[tuple[int, int]]:
    """Yield (index, size) of the chunks that make up a number of samples; the last may be smaller."""
    size = chunk_size(plan.ss)
    for index, first in enumerate(range(0, samples, size)):
        yield index, min(size, samples - first)


def stream(plan: Plan, samples: int, client: Any = None) -> Iterator[Moments]:
    """Yield the moments of the chunks, in order: by threads of this process, or by workers of a Dask client.

    The plan is itself a task of the cluster, so a worker that dies takes nothing with it that the others cannot
    compute again.
    """
    if client is None:
        yield from _in_threads(plan, samples)
        return
    shared = client.submit(Plan.of, plan.ss, plan.truth, plan.seed, pure=False)
    ahead = _AHEAD + sum(client.nthreads().values())
    waiting: deque[Any] = deque()
    try:
        for index, n in chunks(plan, samples):
            waiting.append(client.submit(Plan.chunk, shared, index, n, pure=False))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        client.cancel([*waiting, shared])


def _in_threads(plan: Plan, samples: int) -> Iterator[Moments]:
    """Give each thread a chunk: its sweeps are too short to be shared."""
    from kfdyn.sweeps.thread_pool import alone, threads

    def work(index: int, n: int) -> Moments:
        with alone():
            return plan.chunk(index, n)

    workers = min(threads(), -(-samples // chunk_size(plan.ss)))
    if workers < 2:
        yield from (work(index, n) for index, n in chunks(plan, samples))
        return
    waiting: deque[Future[Moments]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for index, n in chunks(plan, samples):
                waiting.append(pool.submit(work, index, n))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for chunk in waiting:
                chunk.cancel()


def collect(plan: Plan, samples: int, client: Any, a: Claim, progress: bool | None) -> tuple[Moments, Array]:
    """Add up the chunks; keep what was done when interrupted. Also return the convergence of cov[a]."""
    total: Moments | None = None
    points: list[tuple[int, float]] = []
    with _bar(samples, progress) as advance:
        try:
            for chunk in stream(plan, samples, client):
                if total is None:
                    points += [(n, _error(scatter / n, a)) for n, scatter in chunk.early.items()]
                total = chunk if total is None else total + chunk
                if "a" not in plan.sketch and total.n >= 2**0.25 * (points[-1][0] if points else 0):
                    points.append((total.n, _error(total.sums["a"].scatter / total.n, a)))
                advance(chunk.n)
        except KeyboardInterrupt:
            if total is None:
                raise
    assert total is not None
    return total, np.array(points).reshape(-1, 2)


def _error(sampled: Array, claim: Claim) -> float:
    """Return the relative Frobenius error of a sampled covariance in units of the standard deviations."""
    if not claim.scale.size:
        return 0.0
    units = np.outer(claim.scale, claim.scale)
    size = float(np.linalg.norm(claim.matrix / units))
    if size == 0:  # nothing is claimed to vary: an error of nothing has no relative size
        return float("nan")
    return float(np.linalg.norm((sampled - claim.matrix) / units)) / size


@contextmanager
def _bar(samples: int, progress: bool | None) -> Iterator[Any]:
    import sys

    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    columns = ("samples", BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("samples", total=samples)
        yield lambda n: bar.advance(task, n)
