"""Build the StateSpace of a series over a number of steps; its log-likelihood and gradient.

Flat priors are exact: the finite model is filtered for the data and for each flat state alone, in one batch, and the
flat states are fitted by least squares (de Jong; THEORY section 13). The likelihood's gradient is the mean of that of
given flat states over their posterior, which smooths the same batch.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.errors import ShapeError, SingularError
from kfdyn.estimation.inference.factor import apply_lower
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.filter_sweep import sweep as filter_sweep
from kfdyn.estimation.inference.filter_sweep import sweep_back as smoother_sweep
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.inference.score import score
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.series.component import Bound, Matrices, Part, added
from kfdyn.estimation.series.constant_model_likelihood import QuickSeries, coefficients, resolve
from kfdyn.estimation.series.diffuse_scale import Widths

if TYPE_CHECKING:
    from kfdyn.estimation.series.series_model import SeriesModel

_STEP = 1e-6  # of a parameter, for differences of small matrices
_IMAGINARY = 1e-100  # so small that its square is 0


class Gradients(NamedTuple):
    """∂ℓ by F, Q, R and P0: summed over the steps where the model's are constant."""

    F: FloatArray | None
    Q: FloatArray
    R: FloatArray
    P0: FloatArray


class Builder:
    """``build(theta)`` of a :class:`SeriesModel` for so many steps, with its own gradient."""

    def __init__(self, model: SeriesModel, steps: int) -> None:
        self.model, self.steps = model, steps
        inside = [_inside(bound) for bound in model.bounds]
        self.pieces = [part.matrices(share, steps) for part, share in zip(model.parts, model._shares(np.array(inside)))]
        first = added(self.pieces, steps)
        self.first, self.n, self.m, self.flat = first, len(first.flat), model.outputs, np.flatnonzero(first.flat)
        self.linear = all(part.linear for part in model.parts)
        self._base: StateSpace | None = None
        self._about: dict[int, tuple[FloatArray, FloatArray]] = {}

    @cached_property
    def _constant(self) -> list[FloatArray]:
        """Exact derivative of Q of each linear part in its parameters: Q at unit vectors."""
        found = []
        for part, piece in zip(self.model.parts, self.pieces):
            axes = np.eye(len(part.names)) if part.linear else ()
            slopes = [part.matrices(axis, self.steps).Q for axis in axes]
            found.append(np.array(slopes).reshape(-1, *piece.Q.shape))
        return found

    @cached_property
    def _widths(self) -> Widths:
        return Widths(self.model, self.pieces, self._constant, self.steps)

    @cached_property
    def _quick(self) -> QuickSeries:
        p = len(self.model.names)
        dQ, dR, i, at = np.zeros((p, self.n, self.n)), np.zeros(p), int(self.model.has_noise), 0
        dR[:i] = 1.0
        for slopes, piece in zip(self._constant, self.pieces):
            n = len(piece.flat)
            dQ[i : i + len(slopes), at : at + n, at : at + n] = slopes
            i, at = i + len(slopes), at + n
        widths = self._widths.shares if self.flat.size else np.zeros((p, self.n))
        return QuickSeries(self.first, self.steps, dQ, dR, widths)

    def __call__(self, theta: FloatArray) -> StateSpace:
        """Build the model, with exact flat priors."""
        return self._state_space(theta, flat=True)

    def _state_space(self, theta: FloatArray, flat: bool, widths: bool = False) -> StateSpace:
        """Build the model with flat priors, or with variances or 0 in their place; nothing is checked twice."""
        x, R = self.model.matrices(theta, self.steps), self.model.noise_of(theta)
        N, n, m = self.steps, self.n, self.m
        Q = np.empty((N, n, n))
        Q[1:] = x.Q
        Q[0] = x.P0
        if widths and self.flat.size:
            Q[0, self.flat, self.flat] += self._widths(theta, x)[self.flat]
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
        """Return ℓ of all series of T, which lack the same measurements, and its gradient in θ."""
        llf, gradient = self._evaluate(theta, T, True)
        assert gradient is not None
        return llf, gradient

    def value(self, theta: FloatArray, T: FloatArray) -> float:
        """Return ℓ alone."""
        return self._evaluate(theta, T, False)[0]

    def evaluate_many(
        self, thetas: FloatArray, T: FloatArray, gradient: bool = True
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return ℓ (B,) and gradients (B, p) of many parameter vectors, side by side or one by one."""
        llf, slopes = np.full(len(thetas), np.nan), np.zeros(thetas.shape) if gradient else None
        if self.linear and self.m == 1:
            llf, slopes = self._quick.evaluate_many(thetas, self._centred(self._fitting(T)), gradient)
        good = np.isfinite(llf) if slopes is None else np.isfinite(llf) & np.isfinite(slopes).all(axis=1)
        for b in np.flatnonzero(~good):
            llf[b], slope = self._evaluate(thetas[b], T, gradient)
            if slopes is not None:
                slopes[b] = slope
        return llf, slopes

    def _evaluate(self, theta: FloatArray, T: FloatArray, gradient: bool) -> tuple[float, FloatArray | None]:
        """Evaluate by the quickest way that has an answer; the engine's own filter is the last."""
        T = self._centred(self._fitting(T))
        try:
            if self.linear and self.m == 1:
                return self._quick.evaluate(theta, T, gradient)
            return self.evaluate_by_engine(theta, T, gradient)
        except SingularError as error:
            try:
                return self.evaluate_by_filter(theta, T, gradient)
            except SingularError:
                raise error from None

    def _fitting(self, T: FloatArray) -> FloatArray:
        """Return the series if they are as long as the model."""
        if T.shape[-1] != self.steps * self.m:
            raise ShapeError(f"T has {T.shape[-1]} numbers a series, but {self.steps} steps have {self.steps * self.m}")
        return T

    def _centred(self, T: FloatArray) -> FloatArray:
        """Subtract what flat states at their least squares add to the series; kept while the same array is asked for.

        A flat prior is the same wherever its states are, so ℓ is too. But a level of 1e12 in the series would leave
        rounding of 1e-4 in every innovation, another one for each θ, and no search can see a slope in that.
        """
        kept = self._about.get(id(T))
        if kept is not None and kept[0] is T:
            return kept[1]
        rows, out = T.reshape(-1, T.shape[-1]), T
        known = ~np.isnan(rows[0])
        if self.flat.size and known.any():
            X = self._widths.seen
            X = np.ldexp(X, -np.frexp(np.abs(X[known]).max(axis=0))[1])  # by powers of 2, which round nothing
            best = coefficients(X[known], rows[:, known].T)
            out = (rows - (X.astype(np.longdouble) @ best).T).astype(float).reshape(T.shape)
        self._about = {**dict(list(self._about.items())[-15:]), id(T): (T, out)}
        return out

    def evaluate_by_filter(self, theta: FloatArray, T: FloatArray, gradient: bool = True) -> tuple[float, Any]:
        """Evaluate by the engine's flat priors and score, slower and for all models that it can filter."""
        found = score(self(theta), T)
        llf = float(np.sum(found.filt.llf))
        if not gradient:
            return llf, None
        N, n, m = self.steps, self.n, self.m
        Q, R, F = (
            x.flat.reshape(-1, count, rows, rows).sum(axis=0)
            for x, count, rows in ((found.Q, N, n), (found.R, N, m), (found.phi, N - 1, n))
        )
        if not self.model.varies:
            Q, F = np.concatenate([Q[:1], Q[1:].sum(axis=0, keepdims=True)]), F.sum(axis=0, keepdims=True)
        steps = (Q[1:], F) if self.model.varies else (Q[1], F[0])
        return llf, self._pull(theta, Gradients(steps[1], steps[0], R.sum(axis=0), Q[0]))

    def evaluate_by_engine(self, theta: FloatArray, T: FloatArray, gradient: bool = True) -> tuple[float, Any]:
        """Evaluate by the engine's sweeps, for any part and any number of outputs."""
        rows = T.reshape(-1, T.shape[-1])
        S, d = len(rows), self.flat.size
        seen = ~np.isnan(rows[0])
        if not seen.any():  # nothing measured says nothing
            return 0.0, np.zeros(theta.size)
        ss = self._state_space(theta, flat=False, widths=True)
        cov = riccati(ss, seen)
        both = np.zeros((S + d, ss.n_outputs))
        both[:S] = np.where(seen, rows, 0.0)
        xi = np.zeros((S + d, ss.n_states))
        xi[S + np.arange(d), self.flat] = 1.0
        eps, nu, _, z_plus = filter_sweep(cov, both, xi, None, states=gradient)
        found = resolve(apply_lower(cov, eps, inverse=True, transposed=False).T, S)
        llf = found.llf(S * int(seen.sum()), S * cov.logdet)
        if not gradient:
            return llf, None
        a, _, costate, x = smoother_sweep(cov, nu, None, z_plus)
        maps = None if self.linear else cov.logdet_of_maps()[0].flat
        C, Lambda = cov.inverse_blocks.flat, cov.Lambda.flat
        g = self._sums(found.mix(), S, a, costate, x, C, Lambda, maps)
        return llf, self._pull(theta, g)

    def predict(self, theta: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances (steps, m) of what follows one series up to the end of the model."""
        have, x = T.size // self.m, self.model.matrices(theta, self.steps)
        ahead, R = self.steps - have, self.model.noise_of(theta)
        H = np.broadcast_to(x.H, (self.steps, self.m, self.n))[have:]
        states = None
        if self.linear and self.m == 1:
            with suppress(SingularError):  # as in a likelihood
                states = _ahead(x, *Builder(self.model, have)._quick.at_end(theta, T), ahead)
        if states is None:
            longer = np.concatenate([T, np.full(ahead * self.m, np.nan)])
            states = kalman_filter(self(theta), longer).at_end(ahead)
        means, covs = states
        return np.einsum("kmi,ki->km", H, means), np.einsum("kmi,kij,kmj->km", H, covs, H) + np.diagonal(R)

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
        """Return the gradient in θ, part by part."""
        out = [float(np.trace(g.R))] if self.model.has_noise else []
        at = 0
        for part, share, piece, constant in zip(
            self.model.parts, self.model._shares(theta), self.pieces, self._constant
        ):
            own = np.s_[..., at : at + len(piece.flat), at : at + len(piece.flat)]
            at += len(piece.flat)
            if part.linear:
                out.extend(float((g.Q[own] * slope).sum()) for slope in constant)
                continue
            for j in range(share.size):
                slope = _slope(part, share, j, self.steps)
                total = (g.Q[own] * slope.Q).sum() + (g.P0[own] * slope.P0).sum()
                out.append(float(total if g.F is None else total + (g.F[own] * slope.F).sum()))
        return np.array(out)


def _ahead(x: Matrices, mean: FloatArray, cov: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the states that follow one, without measurements."""
    from scipy.sparse import csr_array

    F, means, covs = csr_array(x.F), np.empty((steps, mean.size)), np.empty((steps, mean.size, mean.size))
    for k in range(steps):
        mean, cov = np.asarray(F @ mean), np.asarray(F @ (F @ cov).T) + x.Q
        means[k], covs[k] = mean, cov
    return means, covs


def _slope(part: Part, theta: FloatArray, i: int, steps: int) -> Matrices:
    """Return the derivative of a part's matrices in a parameter: exact, or by differences."""
    if part.analytic:
        at: Any = theta.astype(complex)
        at[i] += 1j * _IMAGINARY
        found = part.matrices(at, steps)
        F, Q, P0 = (np.imag(x) / _IMAGINARY for x in (found.F, found.Q, found.P0))
        return Matrices(F, found.H, Q, P0, found.flat)
    step = _STEP * (abs(theta[i]) or 1.0)  # what is 0 here is a variance, by which the matrices are linear
    up, down = theta.copy(), theta.copy()
    up[i], down[i] = theta[i] + step, theta[i] - step
    there, back = (part.matrices(t, steps) for t in (up, down))
    F, Q, P0 = ((p - q) / (up[i] - down[i]) for p, q in ((there.F, back.F), (there.Q, back.Q), (there.P0, back.P0)))
    return Matrices(F, there.H, Q, P0, there.flat)


def _inside(bound: Bound) -> float:
    low, high = (None, None) if bound is None else bound
    if low is None:
        return 0.0 if high is None else high - 1.0
    return low + 1.0 if high is None else 0.5 * (low + high)
