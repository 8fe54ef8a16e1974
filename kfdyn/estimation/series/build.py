"""A model of time series over a number of steps: parameters to StateSpace, log-likelihood and gradient.

Flat priors are exact: the finite model is filtered for the data and for each flat state alone, in one batch, and the
flat states are fitted by least squares (de Jong; THEORY section 13). The likelihood's gradient is the mean of that of
given flat states over their posterior, which smooths the same batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.errors import ShapeError
from kfdyn.estimation.blocks import Blocks, FloatArray
from kfdyn.estimation.factor import apply_lower
from kfdyn.estimation.filter_sweep import sweep as filter_sweep
from kfdyn.estimation.riccati import riccati
from kfdyn.estimation.series.part import Bound, Matrices
from kfdyn.estimation.series.quick import QuickSeries, resolve
from kfdyn.estimation.smoothing import sweep as smoother_sweep
from kfdyn.estimation.state_space import StateSpace
from kfdyn.estimation.tree import Tree

if TYPE_CHECKING:
    from kfdyn.estimation.series.model import SeriesModel

_STEP = 1e-6  # of a free parameter, for differences of small matrices


class Gradients(NamedTuple):
    """∂ℓ by F, Q, R and P0: summed over the steps where the model's are constant."""

    F: FloatArray | None
    Q: FloatArray
    R: FloatArray
    P0: FloatArray


class Builder:
    """``build(theta)`` of a :class:`SeriesModel` for so many steps, with its own gradient."""

    def __init__(self, model: SeriesModel, steps: int, spread: float = 1.0) -> None:
        self.model, self.steps = model, steps
        first = model.matrices(np.array([1.0 if b is None else _inside(b) for b in model.bounds]), steps)
        self.n, self.m, self.flat = len(first.flat), model.outputs, np.flatnonzero(first.flat)
        self.spread = spread
        self.linear = all(part.linear for part in model.parts)
        self._base: StateSpace | None = None
        self._quick: QuickSeries | None = None
        self._slopes: list[Matrices] | None = None
        self._slopes_R: FloatArray | None = None

    def __call__(self, theta: FloatArray) -> StateSpace:
        """The model, with exact flat priors."""
        return self._state_space(theta, 0.0, flat=True)

    def _state_space(self, theta: FloatArray, wide: float, flat: bool) -> StateSpace:
        """The model with the variance ``wide`` added to flat states; nothing is checked twice."""
        x, R = self.model.matrices(theta, self.steps), self.model.noise_of(theta)
        N, n, m = self.steps, self.n, self.m
        Q = np.empty((N, n, n))
        Q[1:] = x.Q
        Q[0] = x.P0
        if wide:
            Q[0, self.flat, self.flat] += wide
        R_flat = np.empty((N, m, m))
        R_flat[:] = R
        if self._base is None or flat != (self._base.flat is not None):
            H = np.empty((N, m, n))
            H[:] = x.H
            steps = self._steps(x.F)
            sizes = np.full(N, n), np.full(N, m)
            base = StateSpace.trusted(
                Tree.chain(N), *sizes, steps, H.reshape(-1), Q.reshape(-1), R_flat.reshape(-1),
                flat=self.flat.astype(np.int64) if flat and self.flat.size else None,
            )  # fmt: skip
            _ = base.address
            if not flat:
                self._base = base
            return base
        new = {"Q": self._base.Q.like(Q.reshape(-1)), "R": self._base.R.like(R_flat.reshape(-1))}
        if not self.linear:
            new["phi"] = self._steps(x.F)
        return self._base._with(new)

    def _steps(self, F: FloatArray) -> Blocks:
        n, N = self.n, self.steps
        above, cols = np.full(N, n), np.full(N, n)
        above[-1] = 0
        if F.ndim == 3:
            return Blocks(np.ascontiguousarray(F).reshape(-1), above, cols)
        starts = np.zeros(N + 1, np.int64)
        starts[-2:] = n * n
        return Blocks(F.reshape(-1).copy(), above, cols, starts)

    def evaluate(self, theta: FloatArray, T: FloatArray) -> tuple[float, FloatArray]:
        """ℓ of all series of T, which lack the same measurements, and its gradient in θ."""
        if not (self.linear and self.m == 1):
            return self.evaluate_by_engine(theta, T)
        llf, gradient = self._quickly(theta, T).evaluate(theta, T)
        assert gradient is not None
        return llf, gradient

    def value(self, theta: FloatArray, T: FloatArray) -> float:
        """ℓ alone."""
        if not (self.linear and self.m == 1):
            return self.evaluate_by_engine(theta, T)[0]
        return self._quickly(theta, T).evaluate(theta, T, gradient=False)[0]

    def _quickly(self, theta: FloatArray, T: FloatArray) -> QuickSeries:
        if T.shape[-1] != self.steps:
            raise ShapeError(f"T has {T.shape[-1]} numbers a series, but there are {self.steps} steps")
        if self._quick is None:
            matrices = self.model.matrices(theta, self.steps)
            self._quick = QuickSeries(matrices, self.steps, *self._derivatives(theta), self.spread)
        return self._quick

    def evaluate_by_engine(self, theta: FloatArray, T: FloatArray) -> tuple[float, FloatArray]:
        """The same by the engine's filter and smoother, for any part and any number of outputs."""
        ss = self._state_space(theta, self.spread, flat=False)
        rows = T.reshape(-1, T.shape[-1])
        if rows.shape[1] != ss.n_outputs:
            raise ShapeError(f"T has {rows.shape[1]} numbers a series, but {self.steps} steps have {ss.n_outputs}")
        S, d = len(rows), self.flat.size
        seen = ~np.isnan(rows[0])
        cov = riccati(ss, seen)
        both = np.zeros((S + d, ss.n_outputs))
        both[:S] = np.where(seen, rows, 0.0)
        xi = np.zeros((S + d, ss.n_states))
        xi[S + np.arange(d), self.flat] = 1.0
        eps, nu, _, z_plus = filter_sweep(cov, both, xi, None, states=True)
        e = apply_lower(cov, eps, inverse=True, transposed=False)
        mix, llf = resolve(e, S, int(seen.sum()), cov.logdet)
        a, _, costate, x = smoother_sweep(cov, nu, None, z_plus)
        maps = None if self.linear else cov.logdet_of_maps()[0].flat
        C, Lambda = cov.inverse_blocks.flat, cov.Lambda.flat
        g = self._sums(mix, S, a, costate, x, C, Lambda, maps)
        return llf, self._pull(theta, g)

    def _sums(
        self, mix: FloatArray, S: int, a: FloatArray, costate: FloatArray, x: FloatArray, C: FloatArray,
        Lambda: FloatArray, maps: FloatArray | None,
    ) -> Gradients:  # fmt: skip
        """Sum the score over series, and over steps where the model's matrices are constant."""
        N, n, m = self.steps, self.n, self.m
        lam = (mix @ costate).reshape(len(mix), N, n)
        out = (mix @ a).reshape(-1, m)
        R = 0.5 * (out.T @ out - S * C.reshape(N, m, m).sum(axis=0))
        Lambda = Lambda.reshape(N, n, n)
        P0 = 0.5 * (lam[:, 0].T @ lam[:, 0] - S * Lambda[0])
        F = None
        if self.model.varies:
            Q = 0.5 * (np.einsum("rki,rkj->kij", lam[:, 1:], lam[:, 1:]) - S * Lambda[1:])
        else:
            flat = lam[:, 1:].reshape(-1, n)
            Q = 0.5 * (flat.T @ flat - S * Lambda[1:].sum(axis=0))
        if maps is not None:
            states = (mix @ x).reshape(len(mix), N, n)
            steps = np.einsum("rki,rkj->kij", lam[:, 1:], states[:, :-1]) + S * maps.reshape(N - 1, n, n)
            F = steps if self.model.varies else steps.sum(axis=0)
        return Gradients(F, Q, R, P0)

    def _pull(self, theta: FloatArray, g: Gradients) -> FloatArray:
        """Gradient in θ."""
        slopes, R = self._derivatives(theta)
        out = np.empty(theta.size)
        for i, s in enumerate(slopes):
            out[i] = (g.Q * s.Q).sum() + (g.P0 * s.P0).sum() + (g.R * R[i]).sum()
            if g.F is not None:
                out[i] += (g.F * s.F).sum()
        return out

    def _derivatives(self, theta: FloatArray) -> tuple[list[Matrices], FloatArray]:
        """What the matrices change by with each parameter; by differences unless they are linear."""
        if self._slopes is not None and self._slopes_R is not None:
            return self._slopes, self._slopes_R
        slopes = []
        for i in range(theta.size):
            h = 0.5 if self.linear else _STEP * max(_room(theta[i], self.model.bounds[i]), 1e-300)
            up, down = theta.copy(), theta.copy()
            up[i] += h
            down[i] -= h
            there, back = (self.model.matrices(t, self.steps) for t in (up, down))
            F, H, Q, P0 = ((p - q) / (up[i] - down[i]) for p, q in zip(there[:4], back[:4]))
            slopes.append(Matrices(F, H, Q, P0, there.flat))
        R = np.array([self.model.noise_of(axis) for axis in np.eye(theta.size)]) if theta.size else np.zeros((0, 1, 1))
        if self.linear:
            self._slopes, self._slopes_R = slopes, R
        return slopes, R


def _room(value: float, bound: Bound) -> float:
    """How far a parameter may move: its own size, or less where a bound is nearer; at a bound the size alone."""
    to = [] if bound is None else [abs(value - end) for end in bound if end is not None and value != end]
    return min([abs(value), *to])


def _inside(bound: tuple[float | None, float | None]) -> float:
    low, high = bound
    if low is None:
        return 0.0 if high is None else high - 1.0
    return low + 1.0 if high is None else 0.5 * (low + high)
