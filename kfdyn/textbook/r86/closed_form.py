"""R86 section 10: the inverse of the inertia matrix in closed form, (10.1)-(10.31) term by term.

k⁻ is the outboard side of joint k, k⁺ its inboard side. Every sum stands as printed, corrected where the errata say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.textbook.algebra import Array, identity, zeros
from kfdyn.textbook.r86.forward import Filtered, filter_8
from kfdyn.textbook.r86.motion import Chain
from kfdyn.textbook.r86.statistics import co_state_covariances_9_20_9_21


class ClosedForm:
    """Section 10 for one arm in one state under given moments; methods are named by equation.

    Parameters
    ----------
    chain : Chain
        The arm in one state.
    tau : (N,)
        Active moments, from the tip to the base.

    Notes
    -----
    Each method sums what its equation sums, O(N²) and worse: a text to be read, not a way to compute.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.3, -0.2], [1.0, 2.0])
    >>> form = r86.ClosedForm(chain, [0.5, 0.1])
    >>> bool(np.isclose(form.acceleration_10_1(1), r86.forward_dynamics_8(chain, [0.5, 0.1])[0]))
    True
    """

    chain: Chain
    tau: Any
    filtered: Filtered
    Lambda_minus: list[Any]
    Lambda_plus: list[Any]

    def __init__(self, chain: Chain, tau: Any) -> None:
        self.chain, self.tau = chain, np.asarray(tau)
        self.filtered = filter_8(chain, tau)
        self.Lambda_minus, self.Lambda_plus = co_state_covariances_9_20_9_21(chain, self.filtered)

    def closed(self, k: int) -> Array:
        """I − G_k H_k."""
        return identity(6, self.chain.phi[1]) - self.filtered.G[k] @ self.chain.H[k]

    def D_inverse(self, k: int) -> Any:
        """D_k⁻¹, a number."""
        return 1 / self.filtered.D[k][0, 0]

    # the transition matrix of the filter

    def psi_10_6(self, k: int, i: int) -> Array:
        """ψ(k⁻, i⁺) = φ_{k,k−1} [(I − GH)_{k−1} φ_{k−1,k−2} … (I − GH)_{i+1} φ_{i+1,i}], i < k."""
        out = self.chain.phi[k]
        for j in range(k - 1, i, -1):
            out = out @ self.closed(j) @ self.chain.phi[j]
        return out

    def psi_plus_plus_10_13(self, k: int, i: int) -> Array:
        """ψ(k⁺, i⁺) = ψ(k⁺, k−1⁺) … ψ(i+1⁺, i⁺) with ψ(k⁺, k−1⁺) = (I − GH)_k φ_{k,k−1} (10.11)."""
        out = identity(6, self.chain.phi[1])
        for j in range(k, i, -1):
            out = out @ self.closed(j) @ self.chain.phi[j]
        return out

    def psi_minus_minus_10_21(self, i: int, k: int) -> Array:
        """ψ(i⁻, k⁻) = φ_{i,i−1} (I − GH)_{i−1} … φ_{k+1,k} (I − GH)_k (10.19)."""
        out = identity(6, self.chain.phi[1])
        for j in range(i, k, -1):
            out = out @ self.chain.phi[j] @ self.closed(j - 1)
        return out

    # solution of the state equation

    def xi_tilde_10_7(self, i: int) -> Array:
        """ξ̃_i = (I − GH) ξ + G τ + P⁺ η."""
        f = self.filtered
        return self.closed(i) @ self.chain.xi[i] + f.G[i][:, 0] * self.tau[i - 1] + f.P_plus[i] @ self.chain.eta[i]

    def predicted_10_4(self, k: int) -> Array:
        """z_k⁻ = ξ_k + Σ_{i<k} ψ(k⁻, i⁺) ξ̃_i."""
        return self.chain.xi[k] + self._sum(self.psi_10_6(k, i) @ self.xi_tilde_10_7(i) for i in range(1, k))

    def residual_10_5(self, k: int) -> Any:
        """e_k⁺ = D⁻¹ [τ − H ξ − H Σ_{i<k} ψ(k⁻, i⁺) ξ̃_i]."""
        H = self.chain.H[k][0]
        carried = self._sum(self.psi_10_6(k, i) @ self.xi_tilde_10_7(i) for i in range(1, k))
        return self.D_inverse(k) * (self.tau[k - 1] - H @ self.chain.xi[k] - H @ carried)

    def updated_10_9(self, k: int, z_minus: Array) -> Array:
        """z_k⁺ = (I − GH) z⁻ + G τ + P⁺ η."""
        f = self.filtered
        return self.closed(k) @ z_minus + f.G[k][:, 0] * self.tau[k - 1] + f.P_plus[k] @ self.chain.eta[k]

    def updated_10_10(self, k: int, z_plus_outer: Array) -> Array:
        """z_k⁺ = ψ(k⁺, k−1⁺) z_{k−1}⁺ + ξ̃_k: the closed loop."""
        return self.closed(k) @ self.chain.phi[k] @ z_plus_outer + self.xi_tilde_10_7(k)

    def updated_10_12(self, k: int) -> Array:
        """z_k⁺ = Σ_{i≤k} ψ(k⁺, i⁺) ξ̃_i."""
        return self._sum(self.psi_plus_plus_10_13(k, i) @ self.xi_tilde_10_7(i) for i in range(1, k + 1))

    # solution of the co-state equation

    def eta_tilde_10_15(self, i: int) -> Array:
        """η̃_i = (I − GH)* η + H* e⁺."""
        return self.closed(i).T @ self.chain.eta[i] + self.chain.H[i][0] * self.residual_10_5(i)

    def co_state_plus_10_14(self, k: int) -> Array:
        """λ_k⁺ = Σ_{i>k} ψ*(i⁻, k⁺) η̃_i."""
        return self._sum(self.psi_10_6(i, k).T @ self.eta_tilde_10_15(i) for i in range(k + 1, self.chain.N + 1))

    def co_state_10_18(self, k: int, lam_inner: Array) -> Array:
        """λ_k⁻ = ψ*(k+1⁻, k⁻) λ_{k+1}⁻ + η̃_k."""
        return self.psi_minus_minus_10_21(k + 1, k).T @ lam_inner + self.eta_tilde_10_15(k)

    def co_state_10_20(self, k: int) -> Array:
        """λ_k⁻ = Σ_{i≥k} ψ*(i⁻, k⁻) η̃_i."""
        inner = range(k, self.chain.N + 1)
        return self._sum(self.psi_minus_minus_10_21(i, k).T @ self.eta_tilde_10_15(i) for i in inner)

    # joint accelerations

    def acceleration_10_22(self, k: int) -> Any:
        """ü_k = (e⁺ − G*η) − G* Σ_{i>k} ψ*(i⁻, k⁺) η̃_i."""
        G = self.filtered.G[k][:, 0]
        return self.residual_10_5(k) - G @ self.chain.eta[k] - G @ self.co_state_plus_10_14(k)

    def acceleration_10_23(self, k: int) -> Any:
        """ü_k = D⁻¹ [τ̃ − H Σ_{i<k} ψ(k⁻, i⁺) ξ̃_i − H P⁻ Σ_{i>k} ψ*(i⁻, k⁺) η̃_i]; one index for both, see errata."""
        H, P = self.chain.H[k][0], self.filtered.P_minus[k]
        outer = self._sum(self.psi_10_6(k, i) @ self.xi_tilde_10_7(i) for i in range(1, k))
        inner = self.co_state_plus_10_14(k)
        return self.D_inverse(k) * (self.tau_tilde_10_24(k) - H @ outer - H @ P @ inner)

    def tau_tilde_10_24(self, k: int) -> Any:
        """τ̃ = τ − H ξ − H P⁻ η."""
        H = self.chain.H[k][0]
        return self.tau[k - 1] - H @ self.chain.xi[k] - H @ self.filtered.P_minus[k] @ self.chain.eta[k]

    def co_state_plus_10_25(self, k: int) -> Array:
        """λ_k⁺ = Σ_{i>k} [ψ*(i⁺, k⁺) η_i + ψ*(i⁻, k⁺) H_i* e_i⁺] with ψ(i⁺, k⁺) = (I − GH)_i ψ(i⁻, k⁺)."""
        return self._sum(
            self.psi_plus_plus_10_13(i, k).T @ self.chain.eta[i]
            + self.psi_10_6(i, k).T @ self.chain.H[i][0] * self.residual_10_5(i)
            for i in range(k + 1, self.chain.N + 1)
        )

    def double_sum_10_28_left(self, k: int) -> Array:
        """Σ_{i>k} Σ_{j<i} ψ*(i⁻, k⁺) H_i* D_i⁻¹ H_i ψ(i⁻, j⁺) ξ̃_j: the left side of (10.28), to be subtracted."""
        out = zeros(6, self.chain.phi[1])
        for i in range(k + 1, self.chain.N + 1):
            weight = self.psi_10_6(i, k).T @ self.chain.H[i].T * self.D_inverse(i) @ self.chain.H[i]
            out = out + weight @ self._sum(self.psi_10_6(i, j) @ self.xi_tilde_10_7(j) for j in range(1, i))
        return out

    def double_sum_10_28_right(self, k: int, *, as_printed: bool = False) -> Array:
        """Λ_k⁺ ξ̃_k + Σ_{j<k} Λ_k⁺ ψ(k⁺, j⁺) ξ̃_j + Σ_{j>k} ψ*(j⁺, k⁺) Λ_j⁺ ξ̃_j; printed with limits swapped."""
        N = self.chain.N
        outer, inner = (range(k + 1, k), range(1, N + 1)) if as_printed else (range(1, k), range(k + 1, N + 1))
        own = self.Lambda_plus_10_29(k) @ self.xi_tilde_10_7(k)
        first = self._sum(
            self.Lambda_plus_10_29(k) @ self.psi_plus_plus_10_13(k, j) @ self.xi_tilde_10_7(j) for j in outer
        )
        second = self._sum(
            self.psi_plus_plus_10_13(j, k).T @ self.Lambda_plus_10_29(j) @ self.xi_tilde_10_7(j) for j in inner
        )
        return own + first + second

    def Lambda_plus_10_29(self, k: int, *, as_printed: bool = False) -> Array:
        """Λ_k⁺ = Σ_{i>k} ψ*(i⁻, k⁺) H_i* D_i⁻¹ H_i ψ(i⁻, k⁺); printed with D_k."""
        out = zeros((6, 6), self.chain.phi[1])
        for i in range(k + 1, self.chain.N + 1):
            row = self.chain.H[i] @ self.psi_10_6(i, k)
            out = out + row.T * self.D_inverse(k if as_printed else i) @ row
        return out

    # accelerations by cause, and the elements of the inverse

    def c_10_3(self, k: int) -> Any:
        """c_k = D⁻¹ + G*Λ⁺G."""
        G = self.filtered.G[k][:, 0]
        return self.D_inverse(k) + G @ self.Lambda_plus[k] @ G

    def d_10_3(self, k: int) -> Array:
        """d_k = G*Λ⁺ − c H, (6,)."""
        return self.filtered.G[k][:, 0] @ self.Lambda_plus[k] - self.c_10_3(k) * self.chain.H[k][0]

    def alpha1_10_2(self, k: int) -> Any:
        """c τ_k + d Σ_{i<k} ψ(k⁻, i⁺) G_i τ_i + G* Σ_{i>k} ψ*(i⁻, k⁺) d_i* τ_i."""
        f, tau = self.filtered, self.tau
        outer = self._sum(self.psi_10_6(k, i) @ f.G[i][:, 0] * tau[i - 1] for i in range(1, k))
        inner = self._sum(self.psi_10_6(i, k).T @ self.d_10_3(i) * tau[i - 1] for i in range(k + 1, self.chain.N + 1))
        return self.c_10_3(k) * tau[k - 1] + self.d_10_3(k) @ outer + f.G[k][:, 0] @ inner

    def alpha2_10_2(self, k: int, *, as_printed: bool = False) -> Any:
        """d ξ_k + d Σ_{i<k} ψ(k⁻, i⁻) ξ_i + G* Σ_{i>k} ψ*(i⁻, k⁺) Λ_i⁻ ξ_i; printed Λ_i, which may be read Λ_i⁺."""
        xi, Lambda = self.chain.xi, self.Lambda_plus if as_printed else self.Lambda_minus
        outer = self._sum(self.psi_minus_minus_10_21(k, i) @ xi[i] for i in range(1, k))
        inner = self._sum(self.psi_10_6(i, k).T @ Lambda[i] @ xi[i] for i in range(k + 1, self.chain.N + 1))
        return self.d_10_3(k) @ (xi[k] + outer) + self.filtered.G[k][:, 0] @ inner

    def alpha3_10_2(self, k: int) -> Any:
        """G*(Λ⁺P⁺ − I) η_k + d Σ_{i<k} ψ(k⁻, i⁺) P_i⁺ η_i + G* Σ_{i>k} ψ*(i⁺, k⁺) (Λ_i⁺P_i⁺ − I) η_i."""
        f, eta = self.filtered, self.chain.eta
        mismatch = [
            None,
            *(self.Lambda_plus[i] @ f.P_plus[i] - identity(6, self.chain.phi[1]) for i in range(1, self.chain.N + 1)),
        ]
        outer = self._sum(self.psi_10_6(k, i) @ f.P_plus[i] @ eta[i] for i in range(1, k))
        inner = self._sum(
            self.psi_plus_plus_10_13(i, k).T @ mismatch[i] @ eta[i] for i in range(k + 1, self.chain.N + 1)
        )
        return f.G[k][:, 0] @ (mismatch[k] @ eta[k] + inner) + self.d_10_3(k) @ outer

    def acceleration_10_1(self, k: int) -> Any:
        """ü_k = α¹ + α² + α³."""
        return self.alpha1_10_2(k) + self.alpha2_10_2(k) + self.alpha3_10_2(k)

    def inverse_element(self, k: int, i: int) -> Any:
        """M⁻¹(k, i), by inspection of α¹ in (10.2): c_k, d_k ψ(k⁻, i⁺) G_i or G_k* ψ*(i⁻, k⁺) d_i*."""
        G = self.filtered.G
        if k == i:
            return self.c_10_3(k)
        if i < k:
            return self.d_10_3(k) @ self.psi_10_6(k, i) @ G[i][:, 0]
        return G[k][:, 0] @ self.psi_10_6(i, k).T @ self.d_10_3(i)

    def _sum(self, terms: Any) -> Array:
        return sum(terms, zeros(6, self.chain.phi[1]))
