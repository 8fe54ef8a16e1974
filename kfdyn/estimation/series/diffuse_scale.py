"""Choose the width of a finite prior that stands in for a flat one.

Any finite variance may be added to an infinite one: the likelihood does not depend on it, but its rounding does. A
state that the outputs see as x(k), whose variances are V(k) without it, is known at best to 1/Σ x(k)²/V(k); twice that
drowns nothing, in any units of the data or of regressors. It is taken of each parameter alone, so that widths are
linear in the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.series.component import Matrices

if TYPE_CHECKING:
    from kfdyn.estimation.series.series_model import SeriesModel


class Widths:
    """Variances of flat states in the finite model: ``shares`` (p, n) times θ, and ``stationary`` (n,) times v.

    v is the variance of what stationary parts add to an output, which no parameter is proportional to. ``seen``
    (N·m, d) is what outputs see of the flat states.
    """

    def __init__(
        self, model: SeriesModel, pieces: Sequence[Matrices], slopes: Sequence[FloatArray], steps: int
    ) -> None:
        self.flat = np.concatenate([np.zeros(0, dtype=bool), *(piece.flat for piece in pieces)])
        n, p = self.flat.size, len(model.names)
        seen, variances = np.zeros((steps * model.outputs, n)), np.zeros((p, steps * model.outputs))
        if model.has_noise:
            variances[0] = 1.0
        at, i = 0, int(model.has_noise)
        for part, piece, slope in zip(model.parts, pieces, slopes):
            if part.linear:
                x, V = responses(piece.F, piece.H, slope, steps)
                seen[:, at : at + len(piece.flat)] = np.where(piece.flat, x, 0.0)
                variances[i : i + len(part.names)] = V
            at, i = at + len(piece.flat), i + len(part.names)
        self.seen = seen[:, self.flat]
        square = seen * seen
        self.stationary = _inverse(square.sum(axis=0))
        least = np.min(variances, axis=1, initial=np.inf, where=variances > 0.0)
        nowhere = np.where(np.isfinite(least), least, 0.0)[:, None] * self.stationary  # seen where V is 0 alone
        known = np.einsum("pk,kn->pn", _inverse(variances), square)  # no BLAS, whose threads change digits
        self.shares = np.where(known > 0.0, _inverse(known), nowhere)

    def __call__(self, theta: FloatArray, sum_: Matrices) -> FloatArray:
        """Return the variances of all states, 0 of those that are not flat."""
        if self.flat.all():
            return theta @ self.shares
        H = sum_.H[0] if sum_.H.ndim == 3 else sum_.H  # that of stationary parts is constant
        own = H[:, ~self.flat]
        v = ((own @ sum_.P0[np.ix_(~self.flat, ~self.flat)]) * own).sum() / len(H)
        return theta @ self.shares + v * self.stationary


def responses(F: FloatArray, H: FloatArray, slopes: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return responses of the outputs to the states of step 0, (N·m, n), and to noise ``slopes``, (p, N·m).

    F is constant, and 1 where H is not.
    """
    m, n = H.shape[-2:]
    stays = H.ndim == 3 or np.array_equal(F, np.eye(n))
    x = np.broadcast_to(H, (steps, m, n)).reshape(-1, n) if stays else _powers(F, H, steps)
    once = ((x @ slopes) * x).sum(axis=-1)  # of the noise of one step, (p, N·m)
    if stays:
        return x, np.repeat(np.arange(steps), m) * once
    V = np.zeros((len(slopes), steps, m))
    np.cumsum(once.reshape(V.shape)[:, :-1], axis=1, out=V[:, 1:])
    return x, V.reshape(len(slopes), -1)


def _powers(F: FloatArray, H: FloatArray, steps: int) -> FloatArray:
    """Return H Fᵏ, (N·m, n), by doubling."""
    m, n = H.shape
    x, have = np.empty((steps * m, n)), m
    x[:m] = H
    while have < len(x):
        more = min(have, len(x) - have)
        np.matmul(x[:more], F, out=x[have : have + more])
        have += more
        F = F @ F if have < len(x) else F
    return x


def _inverse(x: FloatArray) -> FloatArray:
    """Return 1/x, and 0 for 0."""
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0.0)
