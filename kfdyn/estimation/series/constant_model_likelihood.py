"""Likelihood of a series of which only variances are unknown: constant F and H, one output, two compiled calls.

Same mathematics as :class:`Builder`, which is its check; an evaluation of a short series takes a fifth of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import SingularError
from kfdyn.estimation.model.blocks import FloatArray, offsets_of
from kfdyn.estimation.series.component import Matrices

_LOG_2PI = float(np.log(2.0 * np.pi))


class _Data(NamedTuple):
    y: FloatArray
    start: FloatArray
    seen: NDArray[np.bool_]
    series: int
    seen_count: int


class QuickSeries:
    """ℓ(θ) and its gradient; Q, the noise and the widths of flat priors are θ times ``dQ``, ``dR`` and ``widths``."""

    def __init__(self, matrices: Matrices, steps: int, dQ: FloatArray, dR: FloatArray, widths: FloatArray) -> None:
        n, p = len(matrices.flat), len(dQ)
        self.n, self.steps = n, steps
        self.flat = np.flatnonzero(matrices.flat)
        both = np.concatenate([matrices.F, matrices.F.T])
        self.starts = offsets_of((both != 0.0).sum(axis=1))
        self.columns, self.F = np.nonzero(both)[1].copy(), both[both != 0.0]
        H = matrices.H.reshape(-1, n)
        self.places = np.flatnonzero((H != 0.0).any(axis=0))
        self.H = np.ascontiguousarray(H[:, self.places], dtype=np.float64).reshape(-1)
        self.h_step = self.places.size if matrices.H.ndim == 3 else 0
        entries = np.argwhere((dQ != 0.0).any(axis=0))
        self.entries = entries.reshape(-1)
        self.dQ, self.dR = np.ascontiguousarray(dQ[:, entries[:, 0], entries[:, 1]]), dR
        self.widths = np.zeros((p, n * n))
        self.widths[:, :: n + 1] = widths
        self._data: dict[int, tuple[FloatArray, _Data]] = {}

    def data(self, T: FloatArray) -> _Data:
        """Return the series with a row for each flat state below them; kept for the same array."""
        kept = self._data.get(id(T))
        if kept is not None and kept[0] is T:
            return kept[1]
        rows, d = T.reshape(-1, T.shape[-1]), self.flat.size
        seen = ~np.isnan(rows[0])
        y, start = np.zeros((self.steps, len(rows) + d)), np.zeros((self.n, len(rows) + d))
        y[:, : len(rows)] = np.where(seen, rows, 0.0).T
        start[self.flat, len(rows) + np.arange(d)] = 1.0
        found = _Data(y.reshape(-1), start.reshape(-1), seen, len(rows), int(seen.sum()))
        self._data = {**dict(list(self._data.items())[-15:]), id(T): (T, found)}
        return found

    def _chain(self, data: _Data) -> Any:
        from kfdyn.estimation.recursions.constant_chain import Chain

        rows = data.series + self.flat.size
        return Chain(
            self.n, rows, self.starts, self.columns, self.F, self.H, self.places, self.h_step, self.entries, data.seen
        )

    def _filter(self, theta: FloatArray, data: _Data) -> tuple[Any, FloatArray]:
        """Run the gather; return what it finds, and the memory it worked in."""
        from kfdyn.estimation.recursions.constant_chain import Found, Measured, Sweep, filter_chain

        n, steps, rows = self.n, self.steps, data.series + self.flat.size
        swept, work = Found(np.empty(steps * rows), np.empty(steps * n), np.empty(steps)), np.empty(Sweep.size(n, rows))
        variances = theta @ self.dQ, theta @ self.widths, float(theta @ self.dR)
        failed = filter_chain(self._chain(data), swept, Measured(data.y, data.start, *variances), work)
        if failed >= 0:
            raise SingularError(f"step {failed}: its innovation variance is 0; give the series some noise", failed)
        return swept, work

    def at_end(self, theta: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean (n,) and covariance (n, n) of the last state of one series."""
        from kfdyn.estimation.recursions.constant_chain import Sweep

        data = self.data(T)
        swept, work = self._filter(theta, data)
        known = Sweep.last(work, self.n, 1 + self.flat.size, self.steps)
        means = resolve(swept.e.reshape(self.steps, -1), 1).mix() @ known.means.T
        return means[0], known.P + means[1:].T @ means[1:]

    def evaluate(self, theta: FloatArray, T: FloatArray, gradient: bool = True) -> tuple[float, FloatArray | None]:
        """Return ℓ of all series of T, and its gradient if that is wanted."""
        from kfdyn.estimation.recursions.constant_chain import Asked, score_chain

        data, steps = self.data(T), self.steps
        if not data.seen_count:  # nothing measured says nothing
            return 0.0, np.zeros(theta.size)
        S, swept, work = data.series, *self._filter(theta, data)
        found = resolve(swept.e.reshape(steps, -1), S)
        llf = found.llf(S * data.seen_count, S * float(np.log(swept.D).sum()))
        if not gradient:
            return llf, None
        many = self.dQ.shape[1]
        out = np.zeros(2 * many + 2)
        squares, Lambdas, sums = out[:many], out[many:-2], out[-2:]
        swept = swept._replace(e=found.mixed().reshape(-1))
        score_chain(self._chain(data), swept, Asked(squares, Lambdas, sums), work)
        noise = 0.5 * (float(sums[0]) - S * float(sums[1]))
        return llf, 0.5 * (self.dQ @ (squares - S * Lambdas)) + noise * self.dR

    def evaluate_many(
        self, thetas: FloatArray, T: FloatArray, gradient: bool = True
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return ℓ (B,) and gradients (B, p) of sets of variances, side by side; not finite where none is found."""
        from kfdyn.estimation.inference.batching import over_models
        from kfdyn.estimation.recursions.many_models.many_chains import Answers, Sets, evaluate_chains, numbers
        from kfdyn.sweeps import Tag

        data, (B, p), S, d = self.data(T), thetas.shape, 0, self.flat.size
        slopes = np.zeros((B, p if gradient else 0))
        if not data.seen_count:  # nothing measured says nothing
            return np.zeros(B), slopes if gradient else None
        S, steps = data.series, self.steps
        sets = Sets(np.ascontiguousarray(thetas).reshape(-1), self.dQ.reshape(-1), self.widths.reshape(-1), self.dR)
        found = Answers(np.empty(B * steps), np.empty(B * d), np.empty(B), slopes.reshape(-1))
        chain, scored = self._chain(data), Tag(1) if gradient else None
        size = numbers(self.n, S + d, steps, d, p, self.entries.size // 2)
        over_models(
            B, size, lambda lanes, share: evaluate_chains(lanes, scored, chain, data.y, data.start, sets, found, share)
        )
        logdet = S * (np.log(found.D).reshape(B, steps).sum(axis=1) + 2.0 * np.log(found.diagonal).reshape(B, d).sum(1))
        llf = -0.5 * (S * data.seen_count * _LOG_2PI + logdet + found.squares)
        return llf, slopes if gradient else None


class Resolved(NamedTuple):
    """Least squares for the flat states, X = Q R: e + Xδ̂ and Q beside each other, (steps, series + d); Q*e; R."""

    left: FloatArray
    along: FloatArray
    triangle: FloatArray

    def llf(self, measurements: int, logdet: float) -> float:
        """Return ℓ of so many measurements; ``logdet`` is that of the finite model, summed over the series."""
        S = self.along.shape[1]
        logdet += 2.0 * S * float(np.log(np.diagonal(self.triangle)).sum())
        return -0.5 * (measurements * _LOG_2PI + logdet + float(np.square(self.left[:, :S]).sum()))

    def mixed(self) -> FloatArray:
        """Return whitened innovations at the flat states' posterior mean, and along its spread, for each series."""
        S = self.along.shape[1]
        if S > 1:
            self.left[:, S:] *= np.sqrt(S)
        return self.left

    def mix(self) -> FloatArray:
        """Return the matrix by which all rows of a batch are multiplied to the same end."""
        d, S = self.along.shape
        inverse = np.linalg.inv(self.triangle)
        out = np.eye(S + d)
        out[:S, S:] = -self.along.T @ inverse.T  # δ̂
        out[S:, S:] = np.sqrt(S) * inverse.T
        return out


def least_squares(e: FloatArray, S: int) -> Resolved:
    """Fit the columns of e (steps, S + d) behind the first S to these; R_jj is not finite where one is dependent.

    Whether it is is asked of the column alone, whatever its unit.
    """
    from kfdyn.estimation.recursions.linalg.orthonormal import Room, orthonormalise

    steps, width = e.shape
    d = width - S
    left, products = np.array(e, order="C"), np.empty((d, width))
    orthonormalise(left.reshape(-1), steps, d, products.reshape(-1), np.empty(Room.size(steps, width, d)))
    return Resolved(left, products[:, :S], np.triu(products[:, S:]))


def resolve(e: FloatArray, S: int) -> Resolved:
    """Fit the flat states of S series to whitened innovations (steps, S + d), whose last columns are those of δ."""
    found = least_squares(e, S)
    if not np.isfinite(np.diagonal(found.triangle)).all():
        raise SingularError(
            f"the data do not resolve the {len(found.triangle)} states of which nothing is known: there are too few "
            "measurements for this model, or two of its parts say the same"
        )
    return found


def coefficients(X: FloatArray, y: FloatArray) -> FloatArray:
    """Multiples (d, S) of the columns of X that are nearest to those of y; 0 of a dependent one."""
    best, free = np.zeros((X.shape[1], y.shape[1])), np.arange(X.shape[1])
    while True:
        found = least_squares(np.concatenate([y, X[:, free]], axis=1), y.shape[1])
        good = np.isfinite(np.diagonal(found.triangle))
        if good.all():
            break
        free = free[good]
    for j in range(free.size)[::-1]:
        best[free[j]] = (found.along[j] - found.triangle[j, j + 1 :] @ best[free[j + 1 :]]) / found.triangle[j, j]
    return best
