"""The operators φ, ψ, K, 𝓜 of a model: O(N) products by gathers and scatters, without matrices."""

from __future__ import annotations

from functools import cached_property

from kfdyn.estimation.inference.filter_covariances import Riccati
from kfdyn.estimation.inference.filter_sweep import sweep, sweep_back
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.state_space import StateSpace, expect_model
from kfdyn.estimation.operators.block_operators import block_diagonal, one_step, swept
from kfdyn.estimation.operators.operator import Operator, identity


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
            lambda x: swept(ss, x, given, inward=True),
            lambda x: swept(ss, x, given, inward=False),
        )

    def block_diagonal(self, blocks: Blocks) -> Operator:
        """Make the block-diagonal operator of unbatched matrix blocks."""
        return block_diagonal(blocks)

    @cached_property
    def E_phi(self) -> Operator:
        """ℰ_φ: φ(p(k),k) at (p(k),k), nilpotent."""
        return one_step(self.ss)

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
        cov = self.covariances

        def solve(T: FloatArray) -> FloatArray:
            nu = sweep(cov, self.ss.check_outputs(T, "T"), None, None, states=False)[1]
            return sweep_back(cov, nu, None, None)[0]

        return Operator((self.ss.n_outputs, self.ss.n_outputs), solve, solve)
