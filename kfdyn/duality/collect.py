"""The samples of a cross-check, counted as they come: what is kept when interrupted, and a bar that shows the rate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.quantities import Claim
from kfdyn.duality.stream import Moments, Plan, stream


def collect(plan: Plan, samples: int, client: Any, a: Claim, progress: bool | None) -> tuple[Moments, Array]:
    """Add up the chunks; keep what was done when interrupted. The second result is the convergence of cov[a]."""
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
    """Relative Frobenius error of a sampled covariance in units of the standard deviations."""
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
