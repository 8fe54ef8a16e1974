"""The smoother under flat priors: the finite model's, with the estimated components put back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kfdyn.estimation.flat.filtering import FlatFiltered
from kfdyn.estimation.inference.factor import InnovationsFactor
from kfdyn.estimation.inference.filter_covariances import SmoothedCovariances
from kfdyn.estimation.inference.smoothed import Smoothed, smoothed
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FlatSmoothed(Smoothed):
    """Result of the smoother under flat priors; the attributes are those of :class:`Smoothed`, all finite.

    ::

        x̂ = x̂_s + J δ̂,   S = S_s + J cov(δ̂) J*,   λ = λ_s + λ_E δ̂,   Λ = Λ_s − λ_E cov(δ̂) λ_E*

    where J, λ_E are the smoothed states and co-states of the flat components' columns in the finite model.

    Examples
    --------
    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, steps=2)
    >>> smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, [3.0, 4.0]))
    >>> smooth.x.flat.round(9), smooth.S.flat.round(9)
    (array([3.5, 3.5]), array([0.5, 0.5]))
    """

    flat: FlatFiltered = field(repr=False, default=None)  # type: ignore[assignment]
    finite: Smoothed = field(repr=False, default=None)  # type: ignore[assignment]
    columns: Smoothed = field(repr=False, default=None)  # type: ignore[assignment]

    @cached_property
    def _states(self) -> tuple[Blocks, Blocks, Blocks]:
        parts = zip(
            (self.finite.costate_plus, self.finite.costate, self.finite.x),
            (self.columns.costate_plus, self.columns.costate, self.columns.x),
        )
        plus, costate, x = (
            restored(self.flat, own.flat, columns.flat, self.flat.layout.of_state) for own, columns in parts
        )
        return self.ss.state_blocks(plus), self.ss.state_blocks(costate), self.ss.state_blocks(x)

    @cached_property
    def _covariances(self) -> SmoothedCovariances:
        known = self.finite.filt.covariances.smoothed
        n = self.ss.n
        of, parts = self.flat.layout.of_state, (self.columns.x, self.columns.costate)
        x, costate = (spread(self.flat, blocks.flat, of) for blocks in parts)
        return SmoothedCovariances(add_squares(known.Lambda, costate, n, -1.0), add_squares(known.S, x, n, 1.0))

    @property
    def Lambda(self) -> Blocks:
        """Covariance Λ(k) of the co-state λ(k), (n_k, n_k)."""
        self._expect_covariances()
        return self._covariances.Lambda

    @property
    def S(self) -> Blocks:
        """Covariance S(k) of the smoothed error, (n_k, n_k)."""
        self._expect_covariances()
        return self._covariances.S

    @cached_property
    def inverse_blocks(self) -> Blocks:
        """Diagonal blocks of the limit of 𝓜⁻¹, (m_k, m_k)."""
        known = InnovationsFactor(self.finite.filt.covariances).inverse_blocks()
        a = spread(self.flat, self.columns.a, self.flat.layout.of_output)
        return add_squares(known, a, self.ss.m, -1.0)


def flat_smoother(filt: FlatFiltered, covariances: bool) -> FlatSmoothed:
    """Smooth the finite model for T and for the columns; called by :func:`bryson_frazier`."""
    finite, columns = (smoothed(f, covariances) for f in (filt.finite, filt.columns))
    a = restored(filt, finite.a, columns.a, filt.layout.of_output)
    return FlatSmoothed(filt, a, covariances, filt, finite, columns)  # type: ignore[arg-type]


def restored(filt: FlatFiltered, own: FloatArray, columns: FloatArray, of: IntArray) -> FloatArray:
    """Add the contribution of the estimated flat components; ``of`` is the tree of each entry."""
    out = own.reshape(-1, own.shape[-1]).copy()
    for i in range(filt.layout.most):
        out += filt.fit.delta[:, of, i] * columns[i]
    return out.reshape(own.shape)


def spread(filt: FlatFiltered, columns: FloatArray, of: IntArray) -> FloatArray:
    """Columns times the root W of the components' covariance, entry by entry: (entries, d)."""
    if len(filt.fit.W) == 1:
        return columns.T @ filt.fit.W[0]
    return np.einsum("is,sij->sj", columns, filt.fit.W[of])


def add_squares(known: Blocks, Y: FloatArray, sizes: IntArray, sign: float) -> Blocks:
    """Blocks + sign · Y Y* node by node."""
    out = known.like(known.flat.copy())
    rows = Blocks(np.zeros(0), sizes)
    for nodes, block in known.grouped():
        n = block.shape[1]
        y = Y[rows.places(nodes, n)]
        out.flat[out.places(nodes, n * n)] = (block + sign * (y @ y.transpose(0, 2, 1))).reshape(nodes.size, -1)
    return out
