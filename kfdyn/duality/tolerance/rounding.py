"""Bound the rounding difference of two correct answers, in suitable units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.tolerance.unit_groups import Starts, group_gains, group_norm, group_norms, spread, unit_groups
from kfdyn.estimation import Covariances, InnovationsFactor, StateSpace
from kfdyn.estimation.model.blocks import Blocks

EPS = float(np.finfo(float).eps)
#: Constant of the bound: roundings along a path from leaf to root, and of six-dimensional products.
ROUNDINGS = 64.0
#: Deviation, in rounding bounds, from which a component is tested as one that varies. Rounding stays within a
#: hundredth of the bound in practice, and then moves such a variance by 0.2 % at most.
_SEEN = 10.0
#: Variance below which a direction counts as outside the range, where the bound asks for no more; and the part of its
#: terms' deviation that a component is measured by at least: together 3e-11, far above the rounding of a sum.
_RTOL, _FLOOR = 1e-9, 1e-6


class Units(NamedTuple):
    """Units for the components of a vector, (d,) each."""

    scale: Array
    """Standard deviations before any conditioning; where terms cancel, no less than what rounding leaves of theirs."""
    terms: Array
    """Deviations of the terms that the components of its group are sums of, no less than its own."""
    means: Array
    """Sizes of the terms that its mean is a sum of: a sample carries their rounding, whatever its deviation."""


def resolution(bound: float) -> float:
    """Return the variance, in units of ``scale``, below which a direction is constant: max(1e-9, (10 bound)²).

    Examples
    --------
    >>> resolution(1e-13), round(resolution(1e-4), 9)
    (1e-09, 1e-06)
    """
    return max(_RTOL, (_SEEN * bound) ** 2)


def units(ss: StateSpace, cov: Covariances, means: Mapping[str, Array], bound: float | None = None) -> dict[str, Units]:
    """Choose units in which the rounding errors of each quantity are small.

    A component may vanish because its terms cancel, or because a lever happens to lie along an axis: the moment about
    an axis through a mass centre, the acceleration of a point across the only plane in which it moves. What is
    computed of it is a rounding error of the *other* components of its node and of the neighbours. So every component
    is measured by the terms of its group (moments, forces;
    see :func:`~kfdyn.duality.tolerance.unit_groups.unit_groups`), in the Euclidean norm ‖·‖ that no choice of axes
    changes, and never by its own size alone::

        x(k): t = Σ_j ‖φ(k,j)‖ s(j) + ‖Q(k)^½‖        λ(k): t = ‖φ*‖ s(p) + ‖H*‖ dev[a(k)]

    s is the deviation of the group, or its t where that is all rounding. Samples and their means have errors up to
    64 εκ t (:func:`rounding_bound`; κ = 1 for the sums x and T). A component whose deviation is below ten times that,
    or below 3e-11 t, is a constant to the tests: its samples may stray by 1e-4 ``scale``, thirty times the bound or
    more. One above it is tested by its own deviation. ``scale`` is max(deviation, f t), f = max(1e-6, 3e5 · 64 εκ) but
    at most 1, of which :func:`resolution` is the part that counts as constant. ``terms`` is max(scale, t): in its units
    closed forms are compared. ``means`` has the sums of means over all that is outboard (for λ inboard), each carried
    along by the gains of φ: a heavy or a fast robot has means far larger than its deviations, and what is left of a
    sample when they are taken off has the rounding of every step.

    Parameters
    ----------
    means : mapping of (d,)
        Its means, by quantity.
    bound : float, optional
        The rounding bound, if it is at hand.

    Notes
    -----
    O(N). What is left of x by a measurement (z, x − z, x − x̂) has the terms of x.
    """
    groups = unit_groups(ss)
    bound = rounding_bound(ss, cov, groups) if bound is None else bound
    floor = min(1.0, max(_FLOOR, _SEEN / np.sqrt(_RTOL) * bound))
    deviation = {name: _deviations(getattr(cov, name).diagonal) for name in ("x", "T", "eps", "nu", "costate", "a")}
    means_of_forces = np.abs(means["x"]) + np.abs(means["z"])
    drawn, left = (_gathered(ss, groups, deviation["x"], means_of_forces, least) for least in (_FLOOR, floor))
    load = np.concatenate([np.zeros(0), *(_norms(H, start) @ of for H, start, of in zip(ss.H, groups, drawn.means))])
    motion = _scattered(ss, groups, _positive(deviation["a"]), deviation["costate"], np.abs(means["costate"]), floor)
    # an innovation is what is left of T and Hz, a residual D⁻¹ of it, an acceleration what is left of ν and G*λ
    own = {
        "T": np.maximum(deviation["T"], _FLOOR * load),
        "eps": np.maximum(deviation["eps"], floor * load),
        "nu": deviation["nu"] * np.maximum(1.0, floor * load / _positive(deviation["eps"])),
        "a": np.maximum(deviation["a"], floor * np.abs(means["nu"])),
    }
    of_means = {
        "T": load,
        "eps": load,
        "nu": load * deviation["nu"] / _positive(deviation["eps"]),
        "a": np.abs(means["nu"]),
    }
    return {
        "x": drawn.units,
        **dict.fromkeys(("z", "filter_error", "smoothed_error"), left.units),
        **{name: Units(_positive(unit), _positive(unit), of_means[name]) for name, unit in own.items()},
        "costate": motion.units,
    }


class _Sizes(NamedTuple):
    """Units of every component; sizes of the means' terms, node by node and group by group."""

    units: Units
    means: list[Array]


def _gathered(ss: StateSpace, groups: Sequence[Starts], deviation: Array, mean: Array, floor: float) -> _Sizes:
    """Return sizes of a sum over children and of what each node adds itself, leaves to roots."""
    own, means = _split(ss, groups, deviation), _split(ss, groups, mean)
    terms = [group_norm(np.sqrt(np.diag(Q).clip(0)), start) for Q, start in zip(ss.Q, groups)]
    for k in ss.tree.order:
        p = ss.tree.parent[k]
        if p >= 0:
            step = group_norms(ss.phi[k], groups[p], groups[k])
            terms[p] = terms[p] + step @ _handed(own[k], terms[k], floor)
            means[p] = means[p] + group_gains(ss.phi[k], groups[p], groups[k]) @ means[k]
    return _components(ss, groups, deviation, terms, means, floor)


def _scattered(
    ss: StateSpace, groups: Sequence[Starts], a: Array, deviation: Array, mean: Array, floor: float
) -> _Sizes:
    """Return sizes of what comes from the parent and of what each node's own hinge adds, roots to leaves."""
    own, means = _split(ss, groups, deviation), _split(ss, groups, mean)
    terms = [_norms(H, start).T @ part for H, start, part in zip(ss.H, groups, np.split(a, ss.arrays.output[1:-1]))]
    for k in ss.tree.order[::-1]:
        p = ss.tree.parent[k]
        if p >= 0:
            step = group_norms(ss.phi[k], groups[p], groups[k]).T
            terms[k] = terms[k] + step @ _handed(own[p], terms[p], floor)
            means[k] = means[k] + group_gains(ss.phi[k], groups[p], groups[k]).T @ means[p]
    return _components(ss, groups, deviation, terms, means, floor)


def _handed(deviation: Array, terms: Array, floor: float) -> Array:
    """Return the size that a group passes on: its deviation, or its terms if the deviation is only rounding."""
    return np.where(deviation > floor * terms, deviation, terms)


def _components(
    ss: StateSpace, groups: Sequence[Starts], deviation: Array, terms: list[Array], means: list[Array], floor: float
) -> _Sizes:
    flat, of_means = (
        np.concatenate([np.zeros(0), *(spread(part, start, n) for part, start, n in zip(parts, groups, ss.n.tolist()))])
        for parts in (terms, means)
    )
    scale = np.maximum(deviation, floor * (flat + of_means))
    return _Sizes(Units(_positive(scale), _positive(np.maximum(scale, flat)), of_means), means)


def _split(ss: StateSpace, groups: Sequence[Starts], flat: Array) -> list[Array]:
    """Return the group norms of a stacked state, node by node."""
    return [group_norm(part, start) for part, start in zip(np.split(flat, ss.arrays.state[1:-1]), groups)]


def _norms(H: Array, start: Starts) -> Array:
    """Return the norms of the rows of H in each group, (m, groups); every output is its own."""
    return group_norms(H, np.arange(len(H)), start)


def rounding_bound(ss: StateSpace, cov: Covariances | None = None, groups: Sequence[Starts] | None = None) -> float:
    """Bound the difference, in standard deviations, of two correct computations of one thing.

    ::

        64 ε κ,     κ = 1 + Σ_i t_i² (𝓜⁻¹)_ii,     t_i² = (‖H‖ ‖ℛ‖ ‖H‖*)_ii + R_ii

    Any method knows 𝓜 to E, |E_ij| ≤ c ε t_i t_j, as its entries are sums of terms of size t_i t_j; say of inertias
    about a hinge point, when the axis passes near the mass centre. ‖·‖ is the norm over each group of one unit
    (:func:`~kfdyn.duality.tolerance.unit_groups.unit_groups`), so that κ is the same whichever way the world's axes
    point. With units Δ_t, ‖Δ_t 𝓜⁻¹ Δ_t‖ ≤ κ, and then

        𝓜⁻¹E𝓜⁻¹ ≤ c ε κ √((𝓜⁻¹)_ii (𝓜⁻¹)_jj)      what E does to 𝓜⁻¹, and J*𝓜⁻¹E𝓜⁻¹J likewise to Ω
        δD / D ≤ c ε κ                             D is a Schur complement, 1/D an entry of the inverse of a part of 𝓜
        δP ≤ c ε κ × prior variances                P, S, cov[z], cov[x − z] are conditional covariances

    To these a sweep adds ε times the terms it adds up, the ``terms`` of :func:`units`: levers times accelerations of
    the parent, forces times levers of the children. So an entry of a covariance may be off by 64 εκ terms_i terms_j.

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
    return float(ROUNDINGS * EPS * (1 + condition_by_node(ss, cov, groups).sum()))


def condition_by_node(ss: StateSpace, cov: Covariances | None = None, groups: Sequence[Starts] | None = None) -> Array:
    """Return each node's contribution to κ of :func:`rounding_bound`, (N,); large where a hinge moves no mass."""
    cov = Covariances(ss) if cov is None else cov
    groups = unit_groups(ss) if groups is None else groups
    inverse = InnovationsFactor(cov.riccati).inverse_diagonal()
    composite, kappa = cov.x.diagonal, np.zeros(len(ss))
    for k, (H, R, start) in enumerate(zip(ss.H, ss.R, groups)):
        rows = _norms(H, start)
        terms = np.einsum("ia,ab,ib->i", rows, group_norms(composite[k], start, start), rows) + np.diag(R)
        kappa[k] = terms @ inverse[ss.arrays.output[k] : ss.arrays.output[k + 1]]
    return kappa


def _deviations(blocks: Blocks) -> Array:
    variance = np.concatenate([np.zeros(0), *(np.diag(block) for block in blocks)])
    return np.sqrt(np.maximum(variance, 0.0))


def _positive(deviation: Array) -> Array:
    """Replace zero deviations by the largest, so that no unit is 0."""
    largest = float(deviation.max(initial=0.0))
    return np.where(deviation > 0, deviation, largest if largest > 0 else 1.0)
