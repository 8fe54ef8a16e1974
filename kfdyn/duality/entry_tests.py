"""Tests on the largest entry: of a sampled mean, and of a sampled covariance, whole or by nodes and edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.outcomes import Outcome
from kfdyn.duality.quantities import QUANTITIES, Claim
from kfdyn.duality.stream import Sums, block_index
from kfdyn.estimation import StateSpace
from kfdyn.estimation.consistency import largest_entry_test
from kfdyn.estimation.consistency.entry_score import entry_score


def mean_entries_test(
    name: str, total: Array, claim: Claim, n: int, whole: bool, rtol: float, names: Sequence[str]
) -> Outcome:
    """Largest |mean| in standard errors, by Šidák's inequality over all entries."""
    variance = np.diag(claim.matrix) if whole else _variances(claim)
    alive = variance > rtol * claim.scale**2
    scores = np.abs(total[alive]) / np.sqrt(n * variance[alive])
    constant = (np.abs(total[~alive]) / n <= np.sqrt(10 * rtol) * claim.scale[~alive]).all()
    statistic = float(scores.max(initial=0.0))
    where = f"entry {names[np.flatnonzero(alive)[np.argmax(scores)]]}" if alive.any() else ""
    return Outcome(
        "mean entries", (name,), statistic, int(alive.sum()), _sidak(statistic, alive.sum(), constant), where
    )


def _variances(claim: Claim) -> Array:
    """In closed form, for what is too large for A A*: a variance there is a rounding error of its terms', or 0."""
    return np.concatenate([np.zeros(0), *(np.diag(block) for block in claim.covariance.diagonal)])


def entries_test(
    ss: StateSpace, name: str, sums: Sums, claim: Claim, n: int, whole: bool, rtol: float, names: Sequence[str]
) -> tuple[Outcome, tuple[float, float], Array | None]:
    """Largest normal score of an entry; error of the covariance and what it should be; all scores."""
    if whole:
        outcome = largest_entry_test(sums.scatter, claim.matrix, n, rtol=rtol, scale=claim.scale)
        where = f"entry ({', '.join(names[at] for at in outcome.index)})"
        test = Outcome("entries", (name,), outcome.statistic, outcome.dof, outcome.p_value, where)
        deviation = np.sqrt(np.where(np.diag(claim.matrix) > rtol * claim.scale**2, np.diag(claim.matrix), np.inf))
        found, rho = ((A / np.outer(deviation, deviation)) for A in (sums.scatter / n, claim.matrix))
        return test, standardised_errors(found, rho, n), outcome.scores
    on_states, parent = QUANTITIES[name].on_states, ss.tree.parent
    index = block_index(ss.n if on_states else ss.m)
    variance = _variances(claim)
    deviation = np.append(np.sqrt(np.maximum(variance, 0.0)), 0.0)
    alive = np.append(variance > rtol * claim.scale**2, False)
    own, below = np.arange(len(index)), np.flatnonzero(parent >= 0)
    scores, found, rho = [], [], []
    for i, j, scatter in ((own, own, sums.nodes), (below, parent[below], sums.edges[below])):
        rows, cols = index[i][:, :, None], index[j][:, None, :]
        seen = alive[rows] & alive[cols] & ((rows <= cols) if scatter is sums.nodes else np.True_)
        units = (deviation[rows] * deviation[cols])[seen]
        claimed = np.zeros_like(scatter)
        for at, (one, other) in enumerate(zip(i.tolist(), j.tolist())):
            block = claim.covariance.block(one, other)
            claimed[at, : block.shape[0], : block.shape[1]] = block
        found.append(scatter[seen] / n / units)
        rho.append(claimed[seen] / units)
        scores.append(entry_score(found[-1], np.clip(rho[-1], -1, 1), n))
    every = np.abs(np.concatenate(scores))
    statistic = float(every.max(initial=0.0))
    test = Outcome(
        "entries", (name,), statistic, every.size, _sidak(statistic, every.size), "blocks of nodes and edges"
    )
    return test, standardised_errors(np.concatenate(found), np.concatenate(rho), n), None


def standardised_errors(found: Array, rho: Array, n: int) -> tuple[float, float]:
    """Relative Frobenius error of standardised entries; its root mean square if ρ is true: var = (1 + ρ²)/n."""
    norm = float(np.sqrt((rho**2).sum()))
    if norm == 0:
        return 0.0, 0.0
    varying = np.abs(rho) > 0
    spread = float(np.sqrt((1 + rho**2)[varying | (found != 0)].sum() / n))
    return float(np.sqrt(((found - rho) ** 2).sum())) / norm, spread / norm


def _sidak(statistic: float, entries: int, possible: bool | np.bool_ = True) -> float:
    from scipy.stats import norm

    if not possible:
        return 0.0
    inside = float(norm.cdf(statistic) - norm.cdf(-statistic))
    if inside <= 0:  # a statistic of 0, or as good as 0
        return 1.0
    return float(-np.expm1(entries * np.log1p(-2 * norm.sf(statistic))))
