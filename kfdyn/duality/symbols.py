"""The operators of THEORY section 4 as dense matrices, φ and ψ by inversion."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.tolerance.natural_units import inverse
from kfdyn.estimation import Covariances, StateSpace
from kfdyn.estimation.dense import DenseModel


class Symbols:
    """Dense operators of a model. P, D, G come from the Riccati recursion; φ, ψ, 𝓜, 𝓜⁻¹ from dense algebra.

    So an identity between the two kinds is a check of the recursion. O((Σn)³).

    Parameters
    ----------
    ss : StateSpace
        The model.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> s = Symbols(kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1))))
    >>> s.psi
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, ss: StateSpace) -> None:
        self.ss = ss
        self.model = DenseModel.from_blocks(ss.tree.parent, ss.phi, ss.H, ss.Q, ss.R)
        self.covariances = Covariances(ss)
        riccati = self.covariances.riccati
        self.H, self.Q, self.R = ss.H.dense(), ss.Q.dense(), ss.R.dense()
        self.P, self.P_plus, self.D, self.G = (
            blocks.dense() for blocks in (riccati.P, riccati.P_plus, riccati.D, riccati.G)
        )
        self.Lambda, self.S = riccati.smoothed.Lambda.dense(), riccati.smoothed.S.dense()
        self.I, self.I_out = np.eye(ss.n_states), np.eye(ss.n_outputs)
        self.phi = self.model.phi
        self.phi_inv = np.linalg.inv(self.phi)
        self.E_phi = self.I - self.phi_inv
        self.proj = self.G @ self.H
        self.proj_bar = self.I - self.proj
        self.K = self.E_phi @ self.G
        self.E_psi = self.E_phi @ self.proj_bar
        self.psi_inv = self.I - self.E_psi
        self.phi_strict = self.phi - self.I

    @cached_property
    def psi(self) -> Array:
        """ψ = (I − ℰ_ψ)⁻¹."""
        return np.linalg.inv(self.psi_inv)

    @cached_property
    def psi_strict(self) -> Array:
        """ψ̃ = ψ − I."""
        return self.psi - self.I

    @cached_property
    def D_inv(self) -> Array:
        """D⁻¹."""
        return inverse(self.D)

    @cached_property
    def mass_matrix(self) -> Array:
        """𝓜 = HφQφ*H* + R."""
        return self.model.output_cov

    @cached_property
    def mass_matrix_inv(self) -> Array:
        """𝓜⁻¹ by Cholesky."""
        return inverse(self.mass_matrix)

    @cached_property
    def composite(self) -> Array:
        """ℛ, block-diagonal, by its Lyapunov recursion."""
        return self.covariances.x.diagonal.dense()

    @cached_property
    def factor(self) -> Array:
        """I + HφK."""
        return self.I_out + self.H @ self.phi @ self.K

    @cached_property
    def factor_inv(self) -> Array:
        """I − HψK."""
        return self.I_out - self.H @ self.psi @ self.K

    @cached_property
    def Omega(self) -> Array:
        """Ω = φ*H*𝓜⁻¹Hφ."""
        J = self.H @ self.phi
        return J.T @ self.mass_matrix_inv @ J
