"""How far rounding may take two right answers apart: units in which it is small, and a bound that follows the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.estimation import Covariances, InnovationsFactor, StateSpace
from kfdyn.estimation.blocks import Blocks

Array = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
#: Part of its terms' deviation below which a component is taken for what is left of them: far above rounding (1e-16),
#: far below what a test looks at.
_CANCELLED = 1e-6
#: Constant of the bound: roundings along a path from leaf to root, and of six-dimensional products.
_ROUNDINGS = 64.0


class Units(NamedTuple):
    """Units for the components of a vector, (d,) each."""

    scale: Array
    """Standard deviations before any conditioning; where terms cancel, no less than 1e-6 of theirs."""
    terms: Array
    """Deviations of the terms that a component is the sum of, no less than its own."""


def units(ss: StateSpace, cov: Covariances, means: Mapping[str, Array]) -> dict[str, Units]:
    """Units in which the rounding errors of each quantity are small.

    A component may vanish because its terms cancel: the moment about an axis through a mass centre, the acceleration
    of a point near a hinge axis. Samples of it have the rounding errors of the terms, ε, and of their means; a closed
    form of its variance has ε of *their* variances. So samples are measured by ``scale``, closed forms by ``terms``.

    ::

        x(k): Σ_j |φ(k,j)| scale(j) + Q(k)^½        λ(k): |φ*| scale(p) + |H*| dev[a(k)]

    Parameters
    ----------
    ss : StateSpace
        The model.
    cov : Covariances
        Its covariances.
    means : mapping of (d,)
        Its means, by quantity.

    Notes
    -----
    O(N). What is left of x by a measurement (z, x − z, x − x̂) has the units of x.
    """
    a = _positive(_deviations(cov.a.diagonal))
    x, x_terms = _gathered(ss, _deviations(ss.Q), _deviations(cov.x.diagonal), np.abs(means["x"]) + np.abs(means["z"]))
    arriving = [np.abs(H).T @ own for H, own in zip(ss.H, np.split(a, ss.arrays.output[1:-1]))]
    costate, costate_terms = _scattered(
        ss, np.concatenate([np.zeros(0), *arriving]), _deviations(cov.costate.diagonal), np.abs(means["costate"])
    )
    own_units = {
        name: np.maximum(_deviations(getattr(cov, name).diagonal), _CANCELLED * np.abs(means[name]))
        for name in ("T", "eps", "nu")
    }
    return {
        **dict.fromkeys(("x", "z", "filter_error", "smoothed_error"), Units(_positive(x), _positive(x_terms))),
        **{name: Units(_positive(unit), _positive(unit)) for name, unit in own_units.items()},
        "costate": Units(_positive(costate), _positive(costate_terms)),
        "a": Units(a, a),
    }


def _gathered(ss: StateSpace, terms: Array, deviation: Array, mean: Array) -> tuple[Array, Array]:
    """Scale and terms of a sum over children, of what each node adds itself (``terms``), leaves to roots."""
    at, scale, terms = ss.arrays.state, deviation.copy(), terms.copy()
    means = np.zeros_like(mean)
    for k in ss.tree.order:
        own, p = slice(at[k], at[k + 1]), ss.tree.parent[k]
        scale[own] = np.maximum(scale[own], _CANCELLED * (terms[own] + means[own] + mean[own]))
        if p >= 0:
            step = np.abs(ss.phi[k])
            terms[at[p] : at[p + 1]] += step @ scale[own]
            means[at[p] : at[p + 1]] += step @ mean[own]
    return scale, np.maximum(scale, terms)


def _scattered(ss: StateSpace, terms: Array, deviation: Array, mean: Array) -> tuple[Array, Array]:
    """Scale and terms of what comes from the parent and of what each node adds itself (``terms``), roots to leaves."""
    at, scale, terms = ss.arrays.state, deviation.copy(), terms.copy()
    means = mean.copy()
    for k in ss.tree.order[::-1]:
        own, p = slice(at[k], at[k + 1]), ss.tree.parent[k]
        if p >= 0:
            step = np.abs(ss.phi[k]).T
            terms[own] += step @ scale[at[p] : at[p + 1]]
            means[own] += step @ mean[at[p] : at[p + 1]]
        scale[own] = np.maximum(scale[own], _CANCELLED * (terms[own] + means[own]))
    return scale, np.maximum(scale, terms)


def rounding_bound(ss: StateSpace, cov: Covariances | None = None) -> float:
    """Bound on the difference, in units of the standard deviations, of two right computations of one thing.

    ::

        64 ε κ,     κ = Σ_i t_i² (𝓜⁻¹)_ii,     t_i² = (|H| |ℛ| |H|*)_ii + R_ii

    Any method knows 𝓜 to E, |E_ij| ≤ c ε t_i t_j, as its entries are sums of terms of size t_i t_j; say of inertias
    about a hinge point, when the axis passes near the mass centre. With units Δ_t, ‖Δ_t 𝓜⁻¹ Δ_t‖ ≤ κ, and then

        𝓜⁻¹E𝓜⁻¹ ≤ c ε κ √((𝓜⁻¹)_ii (𝓜⁻¹)_jj)      what E does to 𝓜⁻¹, and J*𝓜⁻¹E𝓜⁻¹J likewise to Ω
        δD / D ≤ c ε κ                             D is a Schur complement, 1/D an entry of the inverse of a part of 𝓜
        δP ≤ c ε κ × prior variances                P, S, cov[z], cov[x − z] are conditional covariances

    Parameters
    ----------
    ss : StateSpace
        The model.
    cov : Covariances, optional
        Its covariances, if they are at hand.

    Returns
    -------
    float
        1e-13 for a model in which nothing nearly cancels.

    Notes
    -----
    O(N): κ is a trace, so that it holds for any number of outputs and needs no eigenvalues.

    Examples
    --------
    >>> import kfdyn as kf
    >>> bound = rounding_bound(kf.as_estimation(kf.models.pendulum(), [0.3]))
    >>> 1e-15 < bound < 1e-12
    True
    """
    cov = Covariances(ss) if cov is None else cov
    inverse = InnovationsFactor(cov.riccati).inverse_diagonal()
    composite, kappa = cov.x.diagonal, 1.0
    for k, (H, R) in enumerate(zip(ss.H, ss.R)):
        terms = np.einsum("ia,ab,ib->i", np.abs(H), np.abs(composite[k]), np.abs(H)) + np.diag(R)
        kappa += float(terms @ inverse[ss.arrays.output[k] : ss.arrays.output[k + 1]])
    return _ROUNDINGS * EPS * kappa


def _deviations(blocks: Blocks) -> Array:
    variance = np.concatenate([np.zeros(0), *(np.diag(block) for block in blocks)])
    return np.sqrt(np.maximum(variance, 0.0))


def _positive(deviation: Array) -> Array:
    """Where a deviation is 0 the largest, so that nothing is measured in units of nothing."""
    largest = float(deviation.max(initial=0.0))
    return np.where(deviation > 0, deviation, largest if largest > 0 else 1.0)
