"""The score: the gradient of the log-likelihood in every block of a model, read off the smoother."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from kfdyn.estimation.inference.batching import as_rows, count_rows
from kfdyn.estimation.inference.filter_covariances import common_sizes
from kfdyn.estimation.inference.filtered import Filtered
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.model.overflow import expect_finite_blocks
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.operators.block_operators import costates_of, states_of
from kfdyn.estimation.recursions.linalg.ragged import Parts


@dataclass(frozen=True, eq=False)
class Score:
    """Gradient of the log-likelihood ℓ of T, and of log det 𝓜; each part is computed when first asked for.

    A matrix of derivatives has the shape of the block it belongs to. Q and R are symmetric, and so are their
    derivatives: the derivative along a symmetric dQ is the sum of the products of all entries, ⟨∂ℓ/∂Q, dQ⟩.

    Attributes
    ----------
    smooth : Smoothed
        What the gradient is read off: λ, x̂, a, and Λ behind it.

    Examples
    --------
    One number, measured twice: ∂ℓ/∂R at each measurement is ½(a² − 𝓜⁻¹(k,k)).

    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, x0=[0.0], P0=one, steps=2)
    >>> g = kf.score(ss, [3.0, 0.0])
    >>> g.R[0].round(6), g.Q[0].round(6), g.xi.round(6)
    (array([[1.666667]]), array([[0.166667]]), array([ 1., -1.]))
    """

    smooth: Smoothed = field(repr=False)

    @property
    def ss(self) -> StateSpace:
        """The model."""
        return self.smooth.ss

    @property
    def filt(self) -> Filtered:
        """The filter's results."""
        return self.smooth.filt

    @property
    def llf(self) -> float | FloatArray:
        """The log-likelihood itself; one for each batch entry."""
        return self.filt.llf

    @cached_property
    def Q(self) -> Blocks:
        """∂ℓ/∂Q(k) = ½(λλ* − uu* − Λ), (..., n_k, n_k), where u = φ*η."""
        own = self._at_node(self._costate)
        terms = [(0.5, own, own)]
        if self._lifted is not None:
            lifted = self._at_node(self._lifted)
            terms.append((-0.5, lifted, lifted))
        return self._sum(-0.5, self.logdet_Q, terms)

    @cached_property
    def R(self) -> Blocks:
        """∂ℓ/∂R(k) = ½(aa* − C), C = D⁻¹ + G*Λ⁺G, (..., m_k, m_k); 0 where T is missing."""
        return self._sum(-0.5, self.logdet_R, [(0.5, self._rates, self._rates)])

    @cached_property
    def phi(self) -> Blocks:
        """∂ℓ/∂φ(p,k) = λ'(p)x̂*(k) − Λ(p)φP⁺(k) + u(p)ζ*(k), (..., n_parent, n_k), where λ' = λ − u; none at a root."""
        terms = [(1.0, self._at_parent(self._own_costate), self._at_node(self.smooth.x.flat))]
        if self._lifted is not None:
            terms.append((1.0, self._at_parent(self._lifted), self._at_node(self.eta)))
        return self._sum(1.0, self._maps[0], terms)

    @cached_property
    def H(self) -> Blocks:
        """∂ℓ/∂H(k) = ax̂* − (CH − G*Λ⁺)P, (..., m_k, n_k); 0 where T is missing."""
        return self._sum(1.0, self._maps[1], [(1.0, self._rates, self._at_node(self.smooth.x.flat))])

    @property
    def xi(self) -> FloatArray:
        """∂ℓ/∂ξ = λ', (..., Σn_k): the co-state, less φ*η."""
        return self._own_costate

    @cached_property
    def eta(self) -> FloatArray:
        """∂ℓ/∂η = ζ = φQλ', (..., Σn_k): one more gather."""
        return states_of(self.ss, self._own_costate)

    @property
    def logdet_Q(self) -> Blocks:
        """∂ log det 𝓜/∂Q(k) = Λ(k), (n_k, n_k)."""
        return self.filt.covariances.Lambda

    @property
    def logdet_R(self) -> Blocks:
        """∂ log det 𝓜/∂R(k) = C(k), the diagonal block of 𝓜⁻¹, (m_k, m_k)."""
        return self.filt.covariances.inverse_blocks

    @property
    def _costate(self) -> FloatArray:
        return self.smooth.costate.flat

    @cached_property
    def _lifted(self) -> FloatArray | None:
        """u = φ*η in every batch entry, or None where η = 0."""
        eta = self.filt.eta
        if eta is None:
            return None
        u = costates_of(self.ss, eta)
        return np.ascontiguousarray(np.broadcast_to(u, self._costate.shape))

    @cached_property
    def _own_costate(self) -> FloatArray:
        return self._costate if self._lifted is None else self._costate - self._lifted

    @cached_property
    def _maps(self) -> tuple[Blocks, Blocks]:
        return self.filt.covariances.logdet_of_maps()

    def _at_node(self, stacked: FloatArray) -> _Parts:
        return _Parts(stacked, self.ss.arrays.state, common_sizes(self.ss).n)

    def _at_parent(self, stacked: FloatArray) -> _Parts:
        above = self.ss.arrays.state[np.maximum(self.ss.tree.parent, 0)]
        return _Parts(stacked, above, common_sizes(self.ss).n)

    @property
    def _rates(self) -> _Parts:
        return _Parts(self.smooth.a, self.ss.arrays.output, common_sizes(self.ss).m)

    def _sum(self, share: float, base: Blocks, terms: list[tuple[float, _Parts, _Parts]]) -> Blocks:
        """share·base + Σ scale·x(k) y*(k) in the blocks of all nodes and batch entries."""
        Sum, add_outer, based = _outer()
        batch = self.smooth.a.shape[:-1]
        rows, out = count_rows(batch), np.empty((*batch, int(base.offsets[-1])))
        for scale, left, right in terms if rows else ():
            total = Sum(rows, share, scale, out.reshape(-1))
            add_outer((left.size, right.size), based, base.ragged, left.flat, right.flat, total)
            based = None
        found = base.like(out)
        expect_finite_blocks(self.ss.tree, "the score", found, self.ss.tree.order)
        return found


@cache
def _outer() -> Any:
    """Return the kernel of sums: an import at each call would take longer than a short sum."""
    from kfdyn.estimation.recursions.linalg.outer_products import Sum, add_outer
    from kfdyn.sweeps import Tag

    return Sum, add_outer, Tag(1)


class _Parts(NamedTuple):
    """Stacked vectors (..., Σ), where in them each node's part begins, and the size that all share, if any."""

    stacked: FloatArray
    starts: IntArray
    size: Any

    @property
    def flat(self) -> Parts:
        """As the compiled sweep takes them."""
        return Parts(as_rows(self.stacked), self.starts, self.stacked.shape[-1])
