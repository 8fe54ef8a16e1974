"""Identities of THEORY section 4, one function each, which returns the residual.

The command line, the documentation and the tests read the same registry, ``IDENTITIES``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.duality.symbols import Symbols
from kfdyn.duality.tolerance.natural_units import in_natural_units
from kfdyn.duality.tolerance.rounding import rounding_bound
from kfdyn.estimation import StateSpace, kalman_filter

Residual = Callable[[Symbols], float]

#: A residual above this is no rounding, for models whose covariances have conditions below 1e6; for others see
#: :func:`identity_tolerance`.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Identity:
    """One identity.

    Attributes
    ----------
    name : str
        The function's.
    statement : str
        In the letters of THEORY.
    source : str
        Its id in the atlas.
    residual : callable
        Of ``Symbols``: largest difference of the two sides, relative to the largest term.
    exact_only : bool
        Whether it holds only when R = 0.

    Examples
    --------
    >>> from kfdyn.duality import IDENTITIES
    >>> one = IDENTITIES["mass_matrix_inverse"]
    >>> print(one.statement)
    𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK)
    """

    name: str
    statement: str
    source: str
    residual: Residual
    exact_only: bool = False


IDENTITIES: dict[str, Identity] = {}


def _identity(statement: str, source: str, exact_only: bool = False) -> Callable[[Residual], Residual]:
    def register(function: Residual) -> Residual:
        function.__doc__ = f"Residual of {statement}" + (", R = 0." if exact_only else ".")
        name = function.__name__
        IDENTITIES[name] = Identity(name, statement, source, function, exact_only)
        return function

    return register


def identity_residuals(ss: StateSpace) -> dict[str, float]:
    """Return the residuals of all identities that apply to a model; those for R = 0 only if R is.

    Returns
    -------
    dict of str to float
        By name, relative to the largest term of the identity, in units in which no state or output is small
        (:func:`~kfdyn.duality.tolerance.natural_units.in_natural_units`); rounding leaves some 1e-15 times a condition
        number.

    Notes
    -----
    O((Σn)³) for each.

    Examples
    --------
    >>> import kfdyn as kf
    >>> ss = kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4])
    >>> max(identity_residuals(ss).values()) < 1e-12
    True
    """
    symbols = Symbols(in_natural_units(ss))
    exact = not ss.R.flat.any()
    return {name: one.residual(symbols) for name, one in IDENTITIES.items() if exact or not one.exact_only}


def identity_tolerance(ss: StateSpace) -> float:
    """Return the residual above which an identity fails: 1e-9, or what rounding does to 𝓜⁻¹ if that is more.

    Returns
    -------
    float
        max(1e-9, :func:`~kfdyn.duality.rounding_bound`).

    Examples
    --------
    >>> import kfdyn as kf
    >>> identity_tolerance(kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4]))
    1e-09
    """
    return max(TOLERANCE, rounding_bound(ss))


def _gap(left: ArrayLike, right: ArrayLike, *terms: ArrayLike) -> float:
    """Return the largest |left − right| relative to the largest entry of either side or of their terms."""
    scale = max(float(np.abs(np.asarray(term)).max(initial=0.0)) for term in (left, right, *terms))
    difference = float(np.abs(np.asarray(left) - np.asarray(right)).max(initial=0.0))
    return difference / scale if scale > 0 else difference


# --- the factorisation of 𝓜


@_identity("𝓜 = (I + HφK) D (I + HφK)*", "SKO:innovations")
def innovations_factorisation(s: Symbols) -> float:  # noqa: D103
    return _gap(s.factor @ s.D @ s.factor.T, s.mass_matrix)


@_identity("𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK)", "SKO:mass-inverse")
def mass_matrix_inverse(s: Symbols) -> float:  # noqa: D103
    return _gap(s.factor_inv.T @ s.D_inv @ s.factor_inv, s.mass_matrix_inv)


@_identity("(I + HφK)⁻¹ = I − HψK", "SKO:innovations-inverse")
def factor_inverse(s: Symbols) -> float:  # noqa: D103
    return _gap(s.factor @ s.factor_inv, s.I_out, s.factor, s.factor_inv)


@_identity("log det 𝓜 = Σ log det D(k)", "SKO:determinant")
def determinant(s: Symbols) -> float:  # noqa: D103
    return _gap(np.linalg.slogdet(s.mass_matrix)[1], s.covariances.riccati.logdet, np.ones(1))


@_identity("T*𝓜⁻¹T = Σ ε*D⁻¹ε", "SKO:determinant")
def quadratic_form(s: Symbols) -> float:  # noqa: D103
    T = np.sqrt(np.diag(s.mass_matrix)) * np.cos(np.arange(s.ss.n_outputs))
    nothing = np.zeros(s.ss.n_states)
    filt = kalman_filter(s.ss, T, xi=nothing, eta=nothing)
    return _gap(T @ s.mass_matrix_inv @ T, filt.eps @ filt.nu)


# --- ψ against φ


@_identity("ψ⁻¹ − φ⁻¹ = KH", "SKO:identities-psi")
def psi_minus_phi(s: Symbols) -> float:  # noqa: D103
    return _gap(s.psi_inv - s.phi_inv, s.K @ s.H, s.phi_inv)


@_identity("ψ⁻¹φ = I + KHφ", "SKO:identities-psi")
def psi_inverse_phi(s: Symbols) -> float:  # noqa: D103
    return _gap(s.psi_inv @ s.phi, s.I + s.K @ s.H @ s.phi, s.phi)


@_identity("φψ⁻¹ = I + φKH", "SKO:identities-psi")
def phi_psi_inverse(s: Symbols) -> float:  # noqa: D103
    return _gap(s.phi @ s.psi_inv, s.I + s.phi @ s.K @ s.H, s.phi)


@_identity("φ⁻¹ψ = I − KHψ", "SKO:identities-psi")
def phi_inverse_psi(s: Symbols) -> float:  # noqa: D103
    return _gap(s.phi_inv @ s.psi, s.I - s.K @ s.H @ s.psi, s.psi)


@_identity("ψφ⁻¹ = I − ψKH", "SKO:identities-psi")
def psi_phi_inverse(s: Symbols) -> float:  # noqa: D103
    return _gap(s.psi @ s.phi_inv, s.I - s.psi @ s.K @ s.H, s.psi)


@_identity("(I − HψK)Hφ = Hψ", "SKO:identities-HpsiK")
def whitened_H_phi(s: Symbols) -> float:  # noqa: D103
    return _gap(s.factor_inv @ s.H @ s.phi, s.H @ s.psi, s.phi)


@_identity("φK(I − HψK) = ψK", "SKO:identities-HpsiK")
def phi_K_whitened(s: Symbols) -> float:  # noqa: D103
    return _gap(s.phi @ s.K @ s.factor_inv, s.psi @ s.K, s.phi @ s.K)


@_identity("(I + HφK)Hψ = Hφ", "SKO:identities-HpsiK")
def coloured_H_psi(s: Symbols) -> float:  # noqa: D103
    return _gap(s.factor @ s.H @ s.psi, s.H @ s.phi, s.psi)


@_identity("ψK(I + HφK) = φK", "SKO:identities-HpsiK")
def psi_K_coloured(s: Symbols) -> float:  # noqa: D103
    return _gap(s.psi @ s.K @ s.factor, s.phi @ s.K, s.psi @ s.K)


# --- the gain


@_identity("HG = I − RD⁻¹", "ATBI:gain")
def gain_with_noise(s: Symbols) -> float:  # noqa: D103
    return _gap(s.H @ s.G, s.I_out - s.R @ s.D_inv, s.I_out)


@_identity("HG = I", "SKO:identities-local", exact_only=True)
def gain(s: Symbols) -> float:  # noqa: D103
    return _gap(s.H @ s.G, s.I_out)


@_identity("Hτ = H", "SKO:identities-local", exact_only=True)
def output_of_projection(s: Symbols) -> float:  # noqa: D103
    return _gap(s.H @ s.proj, s.H)


@_identity("Hτ̄ = 0", "SKO:identities-local", exact_only=True)
def output_of_complement(s: Symbols) -> float:  # noqa: D103
    return _gap(s.H @ s.proj_bar, 0.0, s.H)


@_identity("ττ = τ", "ATBI:projections", exact_only=True)
def projection(s: Symbols) -> float:  # noqa: D103
    return _gap(s.proj @ s.proj, s.proj)


@_identity("I + HφK = HφG", "SKO:identities-local", exact_only=True)
def factor_without_noise(s: Symbols) -> float:  # noqa: D103
    return _gap(s.factor, s.H @ s.phi @ s.G)


# --- Riccati


@_identity("M = P − ℰ_ψ P ℰ_φ*", "SKO:riccati-operator")
def riccati(s: Symbols) -> float:  # noqa: D103
    return _gap(s.P - s.E_psi @ s.P @ s.E_phi.T, s.Q, s.P)


@_identity("M = P − ℰ_ψ P ℰ_ψ* − KRK*", "SKO:riccati-operator")
def riccati_joseph(s: Symbols) -> float:  # noqa: D103
    return _gap(s.P - s.E_psi @ s.P @ s.E_psi.T - s.K @ s.R @ s.K.T, s.Q, s.P)


@_identity("φQφ* = P + φ̃P + Pφ̃* + φKDK*φ*", "SKO:AMA-riccati")
def phi_M_phi(s: Symbols) -> float:  # noqa: D103
    left, gathered = s.phi @ s.Q @ s.phi.T, s.phi @ s.K
    return _gap(left, s.P + s.phi_strict @ s.P + s.P @ s.phi_strict.T + gathered @ s.D @ gathered.T)


@_identity("φMψ* = P + φ̃P + Pψ̃*", "SKO:AMpsi")
def phi_M_psi(s: Symbols) -> float:  # noqa: D103
    return _gap(s.phi @ s.Q @ s.psi.T, s.P + s.phi_strict @ s.P + s.P @ s.psi_strict.T)


@_identity("ψ(Q + KRK*)ψ* = P + ψ̃P + Pψ̃*", "SKO:psiMpsi")
def psi_M_psi(s: Symbols) -> float:  # noqa: D103
    left = s.psi @ (s.Q + s.K @ s.R @ s.K.T) @ s.psi.T
    return _gap(left, s.P + s.psi_strict @ s.P + s.P @ s.psi_strict.T)


@_identity("D = HψMψ*H* + (I − HψK) R (I − HψK)*", "SKO:psiMpsi")
def innovations_covariance(s: Symbols) -> float:  # noqa: D103
    J = s.H @ s.psi
    return _gap(J @ s.Q @ J.T + s.factor_inv @ s.R @ s.factor_inv.T, s.D)


# --- Lyapunov


@_identity("φQφ* = ℛ + φ̃ℛ + ℛφ̃*", "SKO:forward-lyapunov")
def lyapunov(s: Symbols) -> float:  # noqa: D103
    right = s.composite + s.phi_strict @ s.composite + s.composite @ s.phi_strict.T
    return _gap(s.phi @ s.Q @ s.phi.T, right)


@_identity("𝓜 = HℛH* + Hφ̃ℛH* + Hℛφ̃*H* + R", "SKO:mass-decomp")
def mass_matrix_decomposition(s: Symbols) -> float:  # noqa: D103
    cross = s.H @ s.phi_strict @ s.composite @ s.H.T
    return _gap(s.mass_matrix, s.H @ s.composite @ s.H.T + cross + cross.T + s.R)


@_identity("trace 𝓜 = Σ tr(HℛH* + R)", "SKO:trace")
def trace(s: Symbols) -> float:  # noqa: D103
    return _gap(np.trace(s.mass_matrix), np.trace(s.H @ s.composite @ s.H.T + s.R))


@_identity("𝓜(i,j) = 0 for unrelated i, j", "SKO:mass-sparsity")
def sparsity(s: Symbols) -> float:  # noqa: D103
    tree, at = s.ss.tree, s.ss.arrays.output
    unrelated = np.zeros_like(s.mass_matrix, dtype=bool)
    for i in range(len(tree)):
        line = {i, *tree.ancestors(i), *tree.descendants(i)}
        for j in set(range(len(tree))) - line:
            unrelated[at[i] : at[i + 1], at[j] : at[j + 1]] = True
    return _gap(s.mass_matrix * unrelated, 0.0, s.mass_matrix)


@_identity("ℛ ⪰ P ⪰ M and P ⪰ P⁺", "ATBI:order")
def order(s: Symbols) -> float:  # noqa: D103
    worst = 0.0
    for large, small in ((s.composite, s.P), (s.P, s.Q), (s.P, s.P_plus)):
        lowest = np.linalg.eigvalsh(large - small).min(initial=0.0)
        worst = max(worst, float(-lowest) / max(float(np.abs(large).max(initial=0.0)), 1e-300))
    return worst


# --- the co-state


@_identity("Ω = ψ*H*D⁻¹Hψ = φ*H*𝓜⁻¹Hφ", "R86:9.19-9.21")
def costate_covariance(s: Symbols) -> float:  # noqa: D103
    J = s.H @ s.psi
    return _gap(J.T @ s.D_inv @ J, s.Omega)


@_identity("Ω = Λ + ψ̃*Λ + Λψ̃ + ℛ_b", "SKO:backward-lyapunov")
def backward_lyapunov(s: Symbols) -> float:  # noqa: D103
    cross = s.Lambda @ s.psi_strict
    return _gap(s.Lambda + cross + cross.T + _common_ancestors(s), s.Omega)


@_identity("x − x̂: diagonal blocks of φQφ* − φQφ*H*𝓜⁻¹HφQφ* are S = P − PΛP", "R86:9.17-9.18")
def smoothed_error(s: Symbols) -> float:  # noqa: D103
    x = s.phi @ s.Q @ s.phi.T
    direct = x - x @ s.H.T @ s.mass_matrix_inv @ s.H @ x
    own = s.P - s.P @ s.Lambda @ s.P
    diagonal = _same_node(s)
    return max(_gap(direct * diagonal, s.S, x), _gap(own, s.S, s.P))


def _same_node(s: Symbols) -> Array:
    node = np.repeat(np.arange(len(s.ss)), s.ss.n)
    return (node[:, None] == node).astype(float)


def _common_ancestors(s: Symbols) -> Array:
    """Return ℛ_b(i,j) = ψ*(c,i) Λ(c) ψ(c,j) for unrelated i, j with nearest common ancestor c."""
    tree, at = s.ss.tree, s.ss.arrays.state
    out = np.zeros_like(s.Omega)
    blocks = [slice(at[k], at[k + 1]) for k in range(len(tree))]
    for c in range(len(tree)):
        below = [[j, *tree.descendants(j)] for j in tree.children(c)]
        for one in below:
            for other in below:
                if one is not other:
                    rows, cols = (np.concatenate([np.r_[blocks[k]] for k in branch]) for branch in (one, other))
                    Lambda = s.Lambda[blocks[c], blocks[c]]
                    out[np.ix_(rows, cols)] = s.psi[blocks[c]][:, rows].T @ Lambda @ s.psi[blocks[c]][:, cols]
    return out
