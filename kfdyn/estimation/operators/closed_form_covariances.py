"""Covariances of the filter and smoother in closed form (THEORY section 5): dense, diagonal or single blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from kfdyn.estimation.inference.factor import InnovationsFactor
from kfdyn.estimation.inference.filter_covariances import Riccati
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray, offsets_of
from kfdyn.estimation.model.state_space import StateSpace, expect_model, expect_proper
from kfdyn.estimation.operators.block_operators import closed_loop, congruence, lower_inverse
from kfdyn.estimation.operators.lyapunov import BackwardLyapunov, ForwardLyapunov, Transitions


class Covariance(Protocol):
    """A covariance over all nodes, known in closed form."""

    @property
    def diagonal(self) -> Blocks:
        """The diagonal blocks, one for each node."""

    def block(self, i: int, j: int) -> FloatArray:
        """Return the cross-covariance of nodes i and j."""

    def dense(self) -> FloatArray:
        """Return the whole matrix."""


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """A covariance that vanishes between different nodes: white over the tree."""

    diagonal: Blocks

    def block(self, i: int, j: int) -> FloatArray:
        """Return the diagonal block, or zero."""
        i, j = self.diagonal.node(i), self.diagonal.node(j)
        return self.diagonal[i] if i == j else self.diagonal.zero(i, j)

    def dense(self) -> FloatArray:
        """Return the whole matrix."""
        return self.diagonal.dense()


@dataclass(frozen=True, eq=False)
class Computed:
    """A covariance given by its diagonal, by a rule for one block and by a rule for the whole."""

    diagonal: Blocks
    rule: Callable[[int, int], FloatArray]
    whole: Callable[[], FloatArray]

    def block(self, i: int, j: int) -> FloatArray:
        """Return the cross-covariance of nodes i and j."""
        i, j = self.diagonal.node(i), self.diagonal.node(j)
        return self.diagonal[i] if i == j else self.rule(i, j)

    def dense(self) -> FloatArray:
        """Return the whole matrix."""
        return self.whole()


class Covariances:
    """Covariances of every quantity of the filter and smoother, for the model's own w and r.

    ======================  =====================================================
    ``x``                   state, φQφ* = ℛ + φ̃ℛ + ℛφ̃*
    ``T``                   output, 𝓜 = HφQφ*H* + R
    ``z``                   filter estimate, (ℛ−P) + φ̃(ℛ−P) + (ℛ−P)φ̃*
    ``filter_error``        x − z: ψ(Q + KRK*)ψ* = P + ψ̃P + Pψ̃*
    ``eps``                 innovations, D: white over the tree
    ``nu``                  residuals, D⁻¹
    ``costate``             λ: Ω = Λ + ψ̃*Λ + Λψ̃ + ℛ_b
    ``a``                   output co-state 𝓜⁻¹(T − bias): 𝓜⁻¹
    ``smoothed_error``      x − x̂: (x − z's) − P Ω P, with diagonal S
    ======================  =====================================================

    Each has ``diagonal`` (blocks by node, O(N)), ``block(i, j)`` (any two nodes, O(depth)) and ``dense()``. Outputs
    that are missing have covariance 0 in ``eps``, ``nu`` and ``a``, which are 0 there.

    Parameters
    ----------
    model : StateSpace or Riccati
        The model; a Riccati result to choose the method or the pattern of missing measurements.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> cov = kf.Covariances(ss)
    >>> cov.a.dense()
    array([[ 2., -1.],
           [-1.,  1.]])
    >>> cov.x.block(1, 0)
    array([[1.]])
    """

    def __init__(self, model: StateSpace | Riccati) -> None:
        self.ss = model.ss if isinstance(model, Riccati) else model
        self._given = model if isinstance(model, Riccati) else None
        expect_model(self.ss, "model")
        expect_proper(self.ss, "covariances")

    @cached_property
    def riccati(self) -> Riccati:
        """The Riccati solution; ``x`` and ``T`` do not need it."""
        return riccati(self.ss) if self._given is None else self._given

    @cached_property
    def phi(self) -> Transitions:
        """The steps φ(p(k), k)."""
        return Transitions(self.ss.tree, self.ss.phi)

    @cached_property
    def psi(self) -> Transitions:
        """The closed-loop steps φ(p(k), k) τ̄(k) = φ − K H."""
        return Transitions(self.ss.tree, closed_loop(self.riccati))

    @cached_property
    def x(self) -> ForwardLyapunov:
        """State x; ``diagonal[k]`` is ℛ(k), in mechanics the composite body inertia."""
        from kfdyn.estimation.recursions.lyapunov import forward

        ss, phi = self.ss, self.ss.phi.ragged
        R = Blocks(ss.Q.flat.copy(), ss.n, ss.n)
        forward(ss.tree.order, ss.tree.parent, phi, phi, R.ragged, np.empty(ss.common.most_states**2))
        return ForwardLyapunov(self.phi, self.phi, R)

    @cached_property
    def T(self) -> Computed:
        """Output T: the mass-matrix-like 𝓜 = HℛH* + Hφ̃ℛH* + Hℛφ̃*H* + R; its trace needs only the diagonal."""
        H, x, R = self.ss.H, self.x, self.ss.R
        blocks = congruence(H, x.diagonal, R.flat)

        def dense() -> FloatArray:
            full = H.dense()
            return full @ x.dense() @ full.T + R.dense()

        return Computed(blocks, lambda i, j: H[i] @ x.block(i, j) @ H[j].T, dense)

    @cached_property
    def z(self) -> ForwardLyapunov:
        """Filter estimate z: φKDK*φ*, through its diagonal ℛ − P."""
        known = Blocks(self.x.diagonal.flat - self.riccati.P.flat, self.ss.n, self.ss.n)
        return ForwardLyapunov(self.phi, self.phi, known)

    @cached_property
    def filter_error(self) -> ForwardLyapunov:
        """Filter error e_z = x − z, with diagonal P."""
        return ForwardLyapunov(self.psi, self.psi, self.riccati.P)

    @cached_property
    def eps(self) -> BlockDiagonal:
        """Innovations ε: D, block-diagonal over the whole tree."""
        return BlockDiagonal(_masked(self.ss, self.riccati.D, self.riccati.observed))

    @cached_property
    def nu(self) -> BlockDiagonal:
        """Residuals ν = D⁻¹ε: D⁻¹."""
        cov = self.riccati
        flat = np.empty_like(cov.D.flat)
        for nodes, L in cov.D_factor.grouped():
            inverse = lower_inverse(L)
            where = cov.D.places(nodes, L.shape[1] ** 2)
            flat[where] = (inverse.transpose(0, 2, 1) @ inverse).reshape(where.shape)
        return BlockDiagonal(_masked(self.ss, Blocks(flat, self.ss.m, self.ss.m), cov.observed))

    @cached_property
    def costate(self) -> BackwardLyapunov:
        """Co-state λ: Ω = ψ*H*D⁻¹Hψ = φ*H*𝓜⁻¹Hφ, with diagonal Λ."""
        return BackwardLyapunov(self.psi, self.psi, self.riccati.smoothed.Lambda)

    @cached_property
    def a(self) -> Computed:
        """Output co-state a = 𝓜⁻¹(T − bias): 𝓜⁻¹, any block without forming it (R86 10.3; THEORY section 4)."""
        factor = InnovationsFactor(self.riccati)
        return Computed(factor.inverse_blocks(), self._inverse_block, factor.inverse)

    @cached_property
    def smoothed_error(self) -> Computed:
        """Smoothed error x − x̂: (covariance of x − z) − P Ω P off the diagonal, S on it."""
        P, error, Omega, S = self.riccati.P, self.filter_error, self.costate, self.riccati.smoothed.S

        def dense() -> FloatArray:
            full = P.dense()
            out = error.dense() - full @ Omega.dense() @ full
            starts = offsets_of(self.ss.n).tolist()
            for k, (a, b) in enumerate(pairwise(starts)):
                out[a:b, a:b] = S[k]
            return out

        return Computed(S, lambda i, j: error.block(i, j) - P[i] @ Omega.block(i, j) @ P[j], dense)

    def _inverse_block(self, i: int, j: int) -> FloatArray:
        """Return 𝓜⁻¹(i, j) for i ≠ j: w_i*Λ(c)w_j through the common ancestor c, or d(i) w_j for j outboard of i."""
        tree, cov = self.ss.tree, self.riccati
        common = tree.nearest_common_ancestor(i, j)
        if common is None:
            return np.zeros((self.ss.m[i], self.ss.m[j]))
        if common == j:
            return self._inverse_block(j, i).T
        if common != i:
            return self._arriving(common, i).T @ cov.smoothed.Lambda[common] @ self._arriving(common, j)
        H, G = self.ss.H[i], cov.G[i]
        d = -self.nu.diagonal[i] @ H
        p = tree.parent[i]
        if p >= 0:
            phi = self.ss.phi[i]
            Lambda_plus = phi.T @ cov.smoothed.Lambda[p] @ phi
            d += G.T @ Lambda_plus @ (np.eye(len(G)) - G @ H)
        return d @ self._arriving(i, j)

    def _arriving(self, i: int, j: int) -> FloatArray:
        """Return ψ(i⁻, j⁺) G(j): what a unit measurement at j brings to its ancestor i, before i's own update."""
        p = int(self.ss.tree.parent[j])
        return self.psi(i, p) @ self.riccati.K[j]


def _masked(ss: StateSpace, blocks: Blocks, observed: np.ndarray) -> Blocks:
    """Set rows and columns of missing outputs to zero."""
    if observed.all():
        return blocks
    m, start = ss.m, ss.arrays.output
    nodes = np.repeat(np.arange(m.size), m * m)
    within = np.arange(blocks.flat.size) - blocks.offsets[nodes]
    size = m[nodes]
    seen = observed[start[nodes] + within // size] & observed[start[nodes] + within % size]
    return Blocks(np.where(seen, blocks.flat, 0.0), m, m)
