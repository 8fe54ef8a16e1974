"""The likelihood of a series whose variances alone are unknown: constant F and H, one output, two compiled calls.

Same mathematics as :class:`Builder`, which is its check; an evaluation of a short series takes a fifth of the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import SingularError
from kfdyn.estimation.blocks import FloatArray
from kfdyn.estimation.series.part import Matrices

_LOG_2PI = float(np.log(2.0 * np.pi))


class _Data(NamedTuple):
    y: FloatArray
    seen: NDArray[np.bool_]
    series: int
    seen_count: int


class QuickSeries:
    """ℓ(θ) and its gradient; ``slopes`` are what Q, P0 and the noise change by with each parameter."""

    def __init__(self, matrices: Matrices, steps: int, slopes: list[Matrices], R: FloatArray, wide: float) -> None:
        n = len(matrices.flat)
        self.n, self.steps = n, steps
        self.flat = np.flatnonzero(matrices.flat)
        self.at = np.ascontiguousarray(np.argwhere(matrices.F)).reshape(-1)
        self.F = matrices.F[matrices.F != 0.0]
        self.H = np.ascontiguousarray(matrices.H, dtype=np.float64).reshape(-1)
        self.h_step = n if matrices.H.ndim == 3 else 0
        self.dQ = np.array([s.Q for s in slopes]).reshape(len(slopes), -1)
        self.dP0 = np.array([s.P0 for s in slopes]).reshape(len(slopes), -1)
        self.dR = R.reshape(len(slopes))
        self.P0 = np.zeros((n, n))
        self.P0[self.flat, self.flat] = wide
        self._data: dict[int, tuple[FloatArray, _Data]] = {}

    def data(self, T: FloatArray) -> _Data:
        """Series with a row for each flat state below them; kept as long as the same array is asked for."""
        kept = self._data.get(id(T))
        if kept is not None and kept[0] is T:
            return kept[1]
        rows = T.reshape(-1, T.shape[-1])
        seen = ~np.isnan(rows[0])
        y = np.zeros((self.steps, len(rows) + self.flat.size))
        y[:, : len(rows)] = np.where(seen, rows, 0.0).T
        found = _Data(y.reshape(-1), seen, len(rows), int(seen.sum()))
        self._data = {**dict(list(self._data.items())[-15:]), id(T): (T, found)}
        return found

    def evaluate(self, theta: FloatArray, T: FloatArray, gradient: bool = True) -> tuple[float, FloatArray | None]:
        """ℓ of all series of T, and its gradient if that is wanted."""
        from kfdyn.estimation.recursions.constant_chain import Chain, filter_chain, score_chain, work_size

        data, n, d, steps = self.data(T), self.n, self.flat.size, self.steps
        rows = data.series + d
        start = np.zeros((n, rows))
        start[self.flat, data.series + np.arange(d)] = 1.0
        Q, P0 = theta @ self.dQ, self.P0.reshape(-1) + theta @ self.dP0
        e, G, D, work = np.empty(steps * rows), np.empty(steps * n), np.empty(steps), np.empty(work_size(n, rows))
        chain = Chain(self.at, self.F, self.H, self.h_step, data.seen, e, G, D)
        failed = filter_chain(n, rows, chain, Q, P0, float(theta @ self.dR), data.y, start.reshape(-1), work)
        if failed >= 0:
            raise SingularError(f"step {failed}: its innovation variance is 0; give the series some noise", failed)
        each = e.reshape(steps, rows)
        mix, llf = resolve(each.T, data.series, data.seen_count, float(np.log(D).sum()))
        if not gradient:
            return llf, None
        if d:
            chain = chain._replace(e=(each @ mix.T).reshape(-1))
        out = np.zeros(4 * n * n + 2)
        squares, Lambdas, sums = out[: 2 * n * n], out[2 * n * n : 4 * n * n], out[4 * n * n :]
        score_chain(n, rows, chain, squares, Lambdas, sums, work)
        half = 0.5 * (squares - data.series * Lambdas)
        noise = 0.5 * (sums[0] - data.series * sums[1])
        return llf, self.dQ @ half[: n * n] + self.dP0 @ half[n * n :] + noise * self.dR


def resolve(e: FloatArray, S: int, seen: int, logdet: float) -> tuple[FloatArray, float]:
    """Least squares for the flat states of S series, whose columns follow them: how rows are mixed, and ℓ.

    The mixed rows are those of the posterior mean of the flat states, and of its spread, once for each series.
    """
    X = e[S:]
    d = len(X)
    mix = np.zeros((S + d, S + d))
    mix[range(S), range(S)] = 1.0
    fitted, open_ = e[:S], 0.0
    if d:
        if d == 1:  # the usual level: LAPACK takes longer than the filter
            size = np.sqrt((X * X).sum(axis=1, keepdims=True))
            orthogonal, triangle = X.T / np.where(size > 0.0, size, 1.0), size
        else:
            orthogonal, triangle = np.linalg.qr(X.T)
        diagonal = np.abs(np.diagonal(triangle))
        if len(diagonal) < d or not diagonal.min() > 1e-10 * diagonal.max():  # 0 > 0 is not
            raise SingularError(
                f"the data do not resolve the {d} states of which nothing is known: there are too few measurements "
                "for this model, or two of its parts say the same"
            )
        inverse = np.linalg.inv(triangle)
        along = e[:S] @ orthogonal
        mix[:S, S:] = -along @ inverse.T  # δ̂
        mix[S:, S:] = np.sqrt(S) * inverse.T
        fitted = e[:S] - along @ orthogonal.T
        open_ = 2.0 * float(np.log(diagonal).sum())
    llf = -0.5 * (S * (seen * _LOG_2PI + logdet + open_) + (fitted * fitted).sum())
    return mix, float(llf)
