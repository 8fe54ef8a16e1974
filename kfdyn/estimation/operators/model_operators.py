"""φ, ψ, K, 𝓜 and their kin as linear operators: O(N) products by gathers and scatters, never a matrix."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from kfdyn.errors import ShapeError
from kfdyn.estimation.inference.batching import as_rows, count_rows, over_rows
from kfdyn.estimation.inference.riccati import Riccati, common_sizes, riccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, offsets_of
from kfdyn.estimation.model.state_space import StateSpace, expect_model
from kfdyn.estimation.operators.operator import Operator, Rows, identity
from kfdyn.estimation.recursions.linalg.ragged import Parts, Ragged


class Operators:
    """The operators of a model (THEORY section 4; SKO 52–74), each built when first asked for.

    ``E_phi``, ``phi`` = (1 − ℰ_φ)⁻¹, ``phi_strict`` = φ − 1, ``E_psi`` = ℰ_φ τ̄, ``psi``, ``psi_strict``, ``K`` = ℰ_φ G;
    the block-diagonal ``H``, ``Q``, ``R``, ``P``, ``P_plus``, ``D``, ``G``, ``proj`` (τ), ``proj_bar`` (τ̄);
    ``factor`` = 1 + HφK, ``factor_inverse`` = 1 − HψK, ``output_cov`` = HφQφ*H* + R and ``output_cov_inverse``.

    Parameters
    ----------
    model : StateSpace or Riccati
        The model; a Riccati result to choose the method or the pattern of missing measurements.

    Notes
    -----
    Every product is O(N): 2n² flops a node for φ and 2n² + 4nm for ψ.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> op = kf.Operators(ss)
    >>> op.output_cov_inverse @ (op.output_cov @ [1.0, 2.0])
    array([1., 2.])
    """

    def __init__(self, model: StateSpace | Riccati) -> None:
        self.ss = model.ss if isinstance(model, Riccati) else model
        self._given = model if isinstance(model, Riccati) else None
        expect_model(self.ss, "model")

    @cached_property
    def covariances(self) -> Riccati:
        """The Riccati solution that ψ, K, D and the factors are made of."""
        return riccati(self.ss) if self._given is None else self._given

    def _sweep(self, closed: bool, strict: bool) -> Operator:
        ss = self.ss
        G = self.covariances.G.flat if closed else ss.H.flat  # φ does not read it
        given = G, int(closed), int(strict)
        return Operator(
            (ss.n_states, ss.n_states),
            lambda x: _swept(ss, x, given, inward=True),
            lambda x: _swept(ss, x, given, inward=False),
        )

    def block_diagonal(self, blocks: Blocks) -> Operator:
        """Block-diagonal operator of unbatched matrix blocks."""
        if blocks.cols is None:
            raise ShapeError("a block-diagonal operator is made of matrices, not of vectors")
        rows, cols = offsets_of(blocks.rows), offsets_of(blocks.cols)
        return _of_blocks(blocks.ragged, (int(rows[-1]), int(cols[-1])), rows, cols)

    @cached_property
    def E_phi(self) -> Operator:
        """ℰ_φ: φ(p(k),k) at (p(k),k), nilpotent."""
        ss, order, start = self.ss, self.ss.tree.order, self.ss.arrays.state
        steps, parent = ss.phi.ragged, np.maximum(ss.tree.parent, 0)  # a root's block has no rows
        arrays = (numbers[order] for numbers in (steps.at, steps.rows, steps.cols))  # sums as in every gather
        shape = ss.n_states, ss.n_states
        return _of_blocks(Ragged(steps.flat, *arrays), shape, start[parent[order]], start[order])

    @cached_property
    def phi(self) -> Operator:
        """φ = (1 − ℰ_φ)⁻¹, a gather; φ* is a scatter."""
        return self._sweep(closed=False, strict=False)

    @cached_property
    def phi_strict(self) -> Operator:
        """φ̃ = φ − 1, as its own sweep."""
        return self._sweep(closed=False, strict=True)

    @cached_property
    def psi(self) -> Operator:
        """ψ = (1 − ℰ_φ τ̄)⁻¹, the closed-loop φ."""
        return self._sweep(closed=True, strict=False)

    @cached_property
    def psi_strict(self) -> Operator:
        """ψ̃ = ψ − 1, as its own sweep."""
        return self._sweep(closed=True, strict=True)

    @cached_property
    def H(self) -> Operator:
        """Output map, block-diagonal (Σm, Σn)."""
        return self.block_diagonal(self.ss.H)

    @cached_property
    def Q(self) -> Operator:
        """Process covariance, block-diagonal."""
        return self.block_diagonal(self.ss.Q)

    @cached_property
    def R(self) -> Operator:
        """Measurement noise covariance, block-diagonal."""
        return self.block_diagonal(self.ss.R)

    @cached_property
    def P(self) -> Operator:
        """Prediction covariance, block-diagonal."""
        return self.block_diagonal(self.covariances.P)

    @cached_property
    def P_plus(self) -> Operator:
        """Updated covariance, block-diagonal."""
        return self.block_diagonal(self.covariances.P_plus)

    @cached_property
    def D(self) -> Operator:
        """Innovations covariance, block-diagonal."""
        return self.block_diagonal(self.covariances.D)

    @cached_property
    def G(self) -> Operator:
        """Kalman gain, block-diagonal (Σn, Σm)."""
        return self.block_diagonal(self.covariances.G)

    @cached_property
    def state_identity(self) -> Operator:
        """The identity on states."""
        return identity(self.ss.n_states)

    @cached_property
    def output_identity(self) -> Operator:
        """The identity on outputs."""
        return identity(self.ss.n_outputs)

    @cached_property
    def proj(self) -> Operator:
        """τ = G H, a projection when R = 0."""
        return self.G @ self.H

    @cached_property
    def proj_bar(self) -> Operator:
        """τ̄ = 1 − G H."""
        return self.state_identity - self.proj

    @cached_property
    def K(self) -> Operator:
        """K = ℰ_φ G."""
        return self.E_phi @ self.G

    @cached_property
    def E_psi(self) -> Operator:
        """ℰ_ψ = ℰ_φ τ̄."""
        return self.E_phi @ self.proj_bar

    @cached_property
    def factor(self) -> Operator:
        """1 + HφK, the innovations factor of 𝓜 = (1 + HφK) D (1 + HφK)*; applied as ε + H φ̃ G ε."""
        return self.output_identity + self.H @ self.phi_strict @ self.G

    @cached_property
    def factor_inverse(self) -> Operator:
        """1 − HψK = (1 + HφK)⁻¹."""
        return self.output_identity - self.H @ self.psi @ self.K

    @cached_property
    def output_cov(self) -> Operator:
        """𝓜 = H φ Q φ* H* + R, the covariance of the output (Newton–Euler form)."""
        return self.H @ self.phi @ self.Q @ self.phi.H @ self.H.H + self.R

    @cached_property
    def output_cov_inverse(self) -> Operator:
        """𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK), as one filter gather and one smoother scatter."""
        from kfdyn.estimation.inference.factor import InnovationsFactor

        solve = InnovationsFactor(self.covariances).solve
        return Operator((self.ss.n_outputs, self.ss.n_outputs), solve, solve)


def states_of(ss: StateSpace, x: FloatArray) -> FloatArray:
    """φ Q x for vectors (..., Σn_k), in one gather."""
    return _swept(ss, x, (ss.H.flat, 0, 0), inward=True, weighted=True)


def costates_of(ss: StateSpace, x: FloatArray) -> FloatArray:
    """φ* x for vectors (..., Σn_k), in one scatter."""
    return _swept(ss, x, (ss.H.flat, 0, 0), inward=False)


def _swept(
    ss: StateSpace, x: FloatArray, given: tuple[FloatArray, int, int], *, inward: bool, weighted: bool = False
) -> FloatArray:
    """A x or A* x, see :mod:`kfdyn.estimation.recursions.linalg.products`; ``given`` are G, closed and strict."""
    products, weigh = _products()
    y = np.empty(x.size)
    product = products.Product(as_rows(x), y, *given)
    tags = (common_sizes(ss), weigh if weighted else None) if inward else (common_sizes(ss),)
    kernel = products.gather if inward else products.scatter
    over_rows(
        count_rows(x.shape[:-1]),
        products.Flow.size(ss.n_states, ss.common.most_states, ss.common.most_outputs),
        lambda lanes, share: kernel(lanes, *tags, ss.address, product, share),
    )
    return y.reshape(x.shape)


@cache
def _products() -> Any:
    """The module of the sweeps, and a tag: an import at each call would take as long as a short product."""
    from kfdyn.estimation.recursions.linalg import products
    from kfdyn.sweeps import Tag

    return products, Tag(1)


def _of_blocks(blocks: Ragged, shape: tuple[int, int], rows: IntArray, cols: IntArray) -> Operator:
    """The operator with block k of a Ragged at (rows[k], cols[k]) for every k, and zeros elsewhere."""
    products, _ = _products()
    work = products.pair_size(max(int(sizes.max(initial=0)) for sizes in (blocks.rows, blocks.cols)))

    def run(turned: bool) -> Rows:
        to, source = (cols, rows) if turned else (rows, cols)
        height, width = shape[::-1] if turned else shape

        def rows_of(x: FloatArray) -> FloatArray:
            y = np.zeros((*x.shape[:-1], height))
            known, found = Parts(as_rows(x), source, width), Parts(y.reshape(-1), to, height)
            over_rows(
                count_rows(x.shape[:-1]),
                work,
                lambda lanes, share: products.add_products(lanes, blocks, known, found, int(turned), share),
            )
            return y

        return rows_of

    return Operator(shape, run(False), run(True))
