"""Test single entries, means and innovations, and claimed matrices by the sharpest tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.findings import Outcome
from kfdyn.duality.hypothesis.roys_test import roys_test
from kfdyn.duality.monte_carlo import BINS, Moments, Plan, Sums, block_index
from kfdyn.duality.noise_operators import Given
from kfdyn.duality.quantities import QUANTITIES, Claim
from kfdyn.estimation import StateSpace
from kfdyn.estimation.consistency import largest_entry_test, whiteness
from kfdyn.estimation.consistency.null_distributions import entry_score
from kfdyn.estimation.consistency.whitening import Whitening


def mean_entries_test(
    name: str, total: Array, claim: Claim, n: int, whole: bool, rtol: float, names: Sequence[str]
) -> Outcome:
    """Test the largest |mean| in standard errors, by Šidák's inequality over all entries."""
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
    """Return variances in closed form, for quantities too large for A A*; rounding errors of either sign count as 0."""
    return np.concatenate([np.zeros(0), *(np.diag(block) for block in claim.covariance.diagonal)])


def entries_test(
    ss: StateSpace, name: str, sums: Sums, claim: Claim, n: int, whole: bool, rtol: float, names: Sequence[str]
) -> tuple[Outcome, tuple[float, float], Array | None]:
    """Test the largest normal score of an entry; also return the covariance's error, its expectation and all scores."""
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
    """Return the relative Frobenius error of standardised entries, and its root mean square if ρ is true."""
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


def nees_test(name: str, sums: Sums, space: Whitening, n: int) -> Outcome:
    """Test Σ over samples of e*C⁺e ~ χ²(n rank), two-sided."""
    statistic = float(((sums.scatter @ space.inside) * space.inside).sum())
    return Outcome("NEES", (name,), statistic / n, space.rank, _two_sided(statistic, n * space.rank))


def nis_tests(ss: StateSpace, moments: Moments) -> list[Outcome]:
    """Test Σ ε*D⁻¹ε ~ χ²(n Σm), and the distribution of the single ones, by Pearson's test in bins of 100 or more."""
    from scipy.stats import chi2

    n, m = moments.n, ss.n_outputs
    if not m:
        return []
    tests = [Outcome("NIS", ("eps",), moments.nis / n, m, _two_sided(moments.nis, n * m))]
    bins = min(BINS, 2 ** int(np.log2(max(n // 100, 1))))
    if bins > 1:
        counts = moments.histogram.reshape(bins, -1).sum(1)
        statistic = float(((counts - n / bins) ** 2).sum() * bins / n)
        tests.append(Outcome("NIS distribution", ("eps",), statistic, bins - 1, float(chi2.sf(statistic, bins - 1))))
    return tests


def _two_sided(statistic: float, dof: int) -> float:
    from scipy.stats import chi2

    return float(2 * min(chi2.sf(statistic, dof), chi2.cdf(statistic, dof))) if dof else 1.0


def whiteness_tests(plan: Plan, moments: Moments) -> list[Outcome]:
    """Test that innovations of different nodes are uncorrelated; return nothing if there are too few to tell."""
    m = plan.ss.m
    if "eps" in plan.sketch or (m > 0).sum() < 2 or moments.n < m.sum():
        return []
    outcome = whiteness(moments.sums["eps"].scatter, m.tolist(), moments.n)
    return [Outcome("whiteness", ("eps",), outcome.statistic, outcome.dof, outcome.p_value)]


def sharpest_tests(
    name: str, sums: Sums, claim: Claim, space: Whitening, n: int, names: Sequence[str]
) -> list[Outcome]:
    """Apply the likelihood's own test of each entry of Σ, and of an error in few directions.

    The score of the entry (i, j) is the same entry of Σ⁻¹(S − Σ)Σ⁻¹: an entry of the sample covariance of Σ⁻¹x against
    Σ⁻¹. So what tests one entry of 𝓜⁻¹ most sharply is the torque that the claim makes of the acceleration.
    """
    whitened = space.inside.T @ (sums.scatter / n) @ space.inside
    smallest, largest, p = roys_test(whitened, n)
    detail = f"variance between {max(smallest, 0.0):.4g} and {largest:.4g} of the claimed one, direction by direction"
    tests = [Outcome("low rank", (name,), largest, space.rank, p, detail)]
    if space.rank == len(space.inside):
        deviation = np.sqrt(np.diag(claim.matrix))  # its units, as squares of the claim may leave double precision
        inside, scatter = space.inside * deviation[:, None], sums.scatter / deviation / deviation[:, None]
        inverse = inside @ inside.T
        outcome = largest_entry_test(inverse @ scatter @ inverse, inverse, n)
        i, j = outcome.index
        information, twice = inverse[i, i] * inverse[j, j] + inverse[i, j] ** 2, 2 if i == j else 1
        size = float(twice * deviation[i] * deviation[j])
        off = size * float((inverse @ (scatter / n) @ inverse - inverse)[i, j] / information)
        error = size / float(np.sqrt(n * information))
        detail = f"entry ({names[i]}, {names[j]}) should differ by {off:+.3g} ± {error:.1g}"
        # if the claim's numbers are too short, no single entry is to blame
        detail = _too_coarse(claim, inverse / deviation / deviation[:, None], n) or detail
        tests.append(Outcome("single entry", (name,), outcome.statistic, outcome.dof, outcome.p_value, detail))
    return tests


def _too_coarse(claim: Claim, inverse: Array, n: int) -> str:
    """Say so if n samples see the rounding of the claim's own numbers, shorter than ours; else return nothing.

    Errors E of the entries have a likelihood ratio of noncentrality n/2 tr(Σ⁻¹EΣ⁻¹E). Independent ones of half the
    largest rounding error, ε/4 |Σ_ij|, give n/2 Σ_ij (ε/4 Σ_ij)² (Ω_ii Ω_jj + Ω_ij²), Ω = Σ⁻¹, on the average.
    """
    dtype = claim.covariance.dtype if isinstance(claim.covariance, Given) else "float64"
    if dtype == "float64":
        return ""
    eps, information = float(np.finfo(dtype).eps), np.outer(np.diag(inverse), np.diag(inverse)) + inverse**2
    if 0.5 * n * ((0.25 * eps * claim.matrix) ** 2 * information).sum() < 1:
        return ""
    condition = np.linalg.cond(claim.matrix / np.outer(claim.scale, claim.scale))
    return (
        f"{dtype} cannot hold this matrix: its rounding, {eps:.0e}, times the condition number, {condition:.0e}, "
        f"is {eps * condition:.1g}; claim it in float64"
    )
