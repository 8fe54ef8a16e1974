"""From sums over samples to p-values: every quantity on its own, equivalent tests counted once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kfdyn.duality.maps import Given
from kfdyn.duality.quantities import QUANTITIES, Claim, component_names
from kfdyn.duality.roots import roots_test
from kfdyn.duality.rounding import EPS, resolution, rounding_bound
from kfdyn.duality.stream import BINS, Moments, Plan, Sums, block_index
from kfdyn.errors import ModelError
from kfdyn.estimation import StateSpace
from kfdyn.estimation.consistency import largest_entry_test, whiteness
from kfdyn.estimation.consistency.moments import whitened_covariance_test, whitened_mean_test
from kfdyn.estimation.consistency.whitening import Whitening, whitening
from kfdyn.estimation.entry_score import entry_score

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """One calibrated test.

    Attributes
    ----------
    kind : str
        "covariance", "entries", "mean", "mean entries", "whiteness", "NIS", "NIS distribution" or "NEES"; of what
        somebody claims also "single entry" and "low rank".
    quantities : tuple of str
        What it is about; several where one statistic serves a whole group.
    statistic, dof, p_value
        Its outcome; p is uniform if the claim is true (or larger, for tests on largest entries).
    detail : str
        Where the largest deviation is, or why p = 0.
    """

    kind: str
    quantities: tuple[str, ...]
    statistic: float
    dof: int
    p_value: float
    detail: str = ""


@dataclass(frozen=True)
class Group:
    """Quantities that are linear images of each other: one likelihood ratio on the same draws.

    Attributes
    ----------
    quantities : tuple of str
    spread : float
        Largest relative difference of their statistics.
    tolerance : float
        What rounding excuses. √LR is √(n/2) ‖S − 1‖ of the whitened sample covariance S, so that errors up to δ in its
        d directions move √LR by δ√(2nd) at most, whatever its value, and LR by 2δ√(2nd/LR) of itself; twice that for
        two of them. δ is the bound of the model, or 64 ε tr Σ⁻¹ in units of the terms.
    """

    quantities: tuple[str, ...]
    spread: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the statistics agree."""
        return self.spread <= self.tolerance


@dataclass(frozen=True, eq=False)
class Finding:
    """One quantity: what was claimed, what was found.

    Attributes
    ----------
    name : str
    dimension, rank : int
        Size of the vector; rank of its covariance, as theory has it.
    tested_rank : int
        Number of directions tested: the rank, less if some variances drown in rounding, or the size of a sketch.
    sketched : bool
        Whether the covariance was seen in random directions and node by node only.
    covariance, sampled : (d, d) or None
        Claimed and sampled; None if sketched.
    scores : (d, d) or None
        Normal score of each entry of the sampled covariance; None too if what is claimed is no covariance.
    error, expected_error : float
        Relative Frobenius error of the sampled covariance in units of the standard deviations, and its root mean
        square under the claim, O(1/√n).
    """

    name: str
    dimension: int
    rank: int
    tested_rank: int
    sketched: bool
    covariance: Array | None
    sampled: Array | None
    scores: Array | None
    error: float
    expected_error: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """All tests, the groups whose equality was asserted, and what was found for each quantity."""

    tests: tuple[Outcome, ...]
    groups: tuple[Group, ...]
    findings: dict[str, Finding]


def judge(
    plan: Plan, moments: Moments, claimed: Mapping[str, Claim], theirs: Collection[str] = (), names: Sequence[str] = ()
) -> Judgement:
    """Confront the moments of the samples with what is claimed.

    Parameters
    ----------
    plan : Plan
        How the samples were made.
    moments : Moments
        Their sums.
    claimed : mapping of Claim
        Means must be those of the plan; covariances are tested.
    theirs : collection of str
        Quantities whose covariance is somebody's array: to be judged by samples alone, so that they share no
        statistic with the others, and by the sharpest tests of one entry and of an error of low rank.
    names : sequence of str
        Names of the outputs.

    Notes
    -----
    O(d³) for each quantity that is kept whole.
    """
    n = moments.n
    tests: list[Outcome] = []
    findings = {}
    bound = rounding_bound(plan.ss)
    rtol = resolution(bound)
    precision: dict[str, float] = {}
    ratios: dict[str, Outcome] = {}
    means: dict[str, Outcome] = {}
    for name, claim in claimed.items():
        if not claim.mean.size:
            continue
        sums = moments.sums[name]
        whole = name not in plan.sketch
        matrix = claim.matrix if whole else claim.covariance.seen_in(plan.sketch[name])
        total = sums.total if whole else sums.total @ plan.sketch[name]
        try:
            scale = claim.scale if whole else np.sqrt(np.diag(matrix).clip(1e-300))
            called = component_names(plan.ss, QUANTITIES[name].on_states, names)
            space = whitening(matrix, None, rtol, scale, called if whole else ())
        except ModelError as flaw:  # a formula so wrong that nothing has such a covariance
            tests.append(Outcome("covariance", (name,), np.inf, 0, 0.0, str(flaw)))
            findings[name] = _impossible(name, claim, sums, n, whole)
            continue
        if n >= max(space.rank, 1):
            ratios[name] = _likelihood_ratio(name, sums, space, n)
            inverse = float(((space.inside * claim.units.terms[:, None]) ** 2).sum()) if whole else 1.0
            precision[name] = max(bound, 64 * EPS * inverse)
        means[name] = _mean(name, total, space, n)
        entries, found, scores = _entries(plan.ss, name, sums, claim, n, whole, rtol, called)
        tests += [entries, _mean_entries(name, sums.total, claim, n, rtol, called)]
        if name in ("filter_error", "smoothed_error") and whole:
            tests.append(_nees(name, sums, space, n))
        if name in theirs and whole and n >= space.rank > 0:
            tests += _sharpest(name, sums, claim, space, n, called)
        findings[name] = Finding(
            name,
            len(claim.mean),
            claim.rank,
            space.rank,
            not whole,
            claim.matrix if whole else None,
            sums.scatter / n if whole else None,
            scores,
            *found,
        )
    partition = _partition(plan, findings, theirs)
    groups = [_group(ratios, precision, names, n) for names in partition if len(names) > 1 and names[0] in ratios]
    for outcomes in (ratios, means):
        for names in partition:
            if names[0] in outcomes:
                # the worst of the group stands for it: were they unequal, the group fails as well
                worst = min((outcomes[name] for name in names), key=lambda test: test.p_value)
                tests.append(Outcome(worst.kind, names, worst.statistic, worst.dof, worst.p_value, worst.detail))
    tests += _whiteness(plan, moments) + _nis(plan.ss, moments)
    return Judgement(tuple(tests), tuple(groups), findings)


def _impossible(name: str, claim: Claim, sums: Sums, n: int, whole: bool) -> Finding:
    """What was found of a quantity whose claimed covariance is none."""
    if not whole:
        return Finding(name, len(claim.mean), claim.rank, 0, True, None, None, None, np.nan, np.nan)
    sampled, units = sums.scatter / n, np.outer(claim.scale, claim.scale)
    errors = _errors(sampled / units, claim.matrix / units, n)
    return Finding(name, len(claim.mean), claim.rank, 0, False, claim.matrix, sampled, None, *errors)


def _likelihood_ratio(name: str, sums: Sums, space: Whitening, n: int) -> Outcome:
    outcome = whitened_covariance_test(sums.scatter, space, n, n)
    detail = "" if outcome.outside <= space.tolerance else "samples leave the claimed range"
    return Outcome("covariance", (name,), outcome.statistic, outcome.dof, outcome.p_value, detail)


def _mean(name: str, total: Array, space: Whitening, n: int) -> Outcome:
    outcome = whitened_mean_test(total / n, space, n)
    return Outcome("mean", (name,), outcome.statistic, outcome.dof, outcome.p_value)


def _mean_entries(name: str, total: Array, claim: Claim, n: int, rtol: float, names: Sequence[str]) -> Outcome:
    """Largest |mean| in standard errors, by Šidák's inequality over all entries."""
    variance = _variances(claim)
    alive = variance > rtol * claim.scale**2
    scores = np.abs(total[alive]) / np.sqrt(n * variance[alive])
    constant = (np.abs(total[~alive]) / n <= np.sqrt(10 * rtol) * claim.scale[~alive]).all()
    statistic = float(scores.max(initial=0.0))
    where = f"entry {names[np.flatnonzero(alive)[np.argmax(scores)]]}" if alive.any() else ""
    return Outcome(
        "mean entries", (name,), statistic, int(alive.sum()), _sidak(statistic, alive.sum(), constant), where
    )


def _variances(claim: Claim) -> Array:
    return np.concatenate([np.zeros(0), *(np.diag(block) for block in claim.covariance.diagonal)])


def _entries(
    ss: StateSpace, name: str, sums: Sums, claim: Claim, n: int, whole: bool, rtol: float, names: Sequence[str]
) -> tuple[Outcome, tuple[float, float], Array | None]:
    """Largest normal score of an entry; error of the covariance and what it should be; all scores."""
    if whole:
        outcome = largest_entry_test(sums.scatter, claim.matrix, n, rtol=rtol, scale=claim.scale)
        where = f"entry ({', '.join(names[at] for at in outcome.index)})"
        test = Outcome("entries", (name,), outcome.statistic, outcome.dof, outcome.p_value, where)
        deviation = np.sqrt(np.where(np.diag(claim.matrix) > rtol * claim.scale**2, np.diag(claim.matrix), np.inf))
        found, rho = ((A / np.outer(deviation, deviation)) for A in (sums.scatter / n, claim.matrix))
        return test, _errors(found, rho, n), outcome.scores
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
    return test, _errors(np.concatenate(found), np.concatenate(rho), n), None


def _errors(found: Array, rho: Array, n: int) -> tuple[float, float]:
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
    return float(-np.expm1(entries * np.log1p(-2 * norm.sf(statistic)))) if statistic > 0 else 1.0


def _sharpest(name: str, sums: Sums, claim: Claim, space: Whitening, n: int, names: Sequence[str]) -> list[Outcome]:
    """The likelihood's own test of each entry of Σ, and of an error in few directions.

    The score of the entry (i, j) is the same entry of Σ⁻¹(S − Σ)Σ⁻¹: an entry of the sample covariance of Σ⁻¹x against
    Σ⁻¹. So what tests one entry of 𝓜⁻¹ most sharply is the torque that the claim makes of the acceleration.
    """
    whitened = space.inside.T @ (sums.scatter / n) @ space.inside
    smallest, largest, p = roots_test(whitened, n)
    detail = f"variance between {max(smallest, 0.0):.4g} and {largest:.4g} of the claimed one, direction by direction"
    tests = [Outcome("low rank", (name,), largest, space.rank, p, detail)]
    if space.rank == len(space.inside):
        inverse = space.inside @ space.inside.T
        outcome = largest_entry_test(inverse @ sums.scatter @ inverse, inverse, n)
        i, j = outcome.index
        information = inverse[i, i] * inverse[j, j] + inverse[i, j] ** 2
        off = float((inverse @ (sums.scatter / n) @ inverse - inverse)[i, j] / information) * (2 if i == j else 1)
        error = float(np.sqrt((2 if i == j else 1) / (n * information) * (2 if i == j else 1)))
        detail = f"entry ({names[i]}, {names[j]}) should differ by {off:+.3g} ± {error:.1g}"
        detail = _too_coarse(claim, inverse, n) or detail  # then no single entry is to blame
        tests.append(Outcome("single entry", (name,), outcome.statistic, outcome.dof, outcome.p_value, detail))
    return tests


def _too_coarse(claim: Claim, inverse: Array, n: int) -> str:
    """Say so if n samples see what the claim's own numbers, shorter than ours, have rounded away; else nothing.

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


def _nees(name: str, sums: Sums, space: Whitening, n: int) -> Outcome:
    """Σ over samples of e*C⁺e ~ χ²(n rank), two-sided."""
    statistic = float(((sums.scatter @ space.inside) * space.inside).sum())
    return Outcome("NEES", (name,), statistic / n, space.rank, _two_sided(statistic, n * space.rank))


def _nis(ss: StateSpace, moments: Moments) -> list[Outcome]:
    """Σ ε*D⁻¹ε ~ χ²(n Σm), and the distribution of the single ones, by Pearson's test in bins of 100 or more."""
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


def _whiteness(plan: Plan, moments: Moments) -> list[Outcome]:
    m = plan.ss.m
    if "eps" in plan.sketch or (m > 0).sum() < 2 or moments.n < m.sum():
        return []
    outcome = whiteness(moments.sums["eps"].scatter, m.tolist(), moments.n)
    return [Outcome("whiteness", ("eps",), outcome.statistic, outcome.dof, outcome.p_value)]


def _partition(plan: Plan, findings: Mapping[str, Finding], theirs: Collection[str]) -> list[tuple[str, ...]]:
    """Quantities by groups of one likelihood ratio: linear images of each other, tested on the whole range.

    T, ε, ν, a and λ are images of each other; x and x − z are when R = 0.
    """
    complete = [
        f.name for f in findings.values() if not f.sketched and f.tested_rank == f.rank and f.name not in theirs
    ]
    families: list[tuple[str, ...]] = [("a", "T", "eps", "nu", "costate")]
    if not plan.ss.R.flat.any():
        families.append(("x", "filter_error"))
    # H must see each output on its own, else λ does not tell a
    if "costate" in complete and findings["costate"].rank < plan.ss.n_outputs:
        complete.remove("costate")
    groups = [tuple(name for name in family if name in complete) for family in families]
    groups = [group for group in groups if group]
    grouped = {name for group in groups for name in group}
    return groups + [(name,) for name in findings if name not in grouped]


def _group(ratios: Mapping[str, Outcome], precision: Mapping[str, float], names: tuple[str, ...], n: int) -> Group:
    statistics = np.array([ratios[name].statistic for name in names])
    error = max(precision[name] for name in names)
    if not np.isfinite(statistics).all():
        return Group(names, np.inf, error)
    largest = float(statistics.max())
    if largest == 0:  # nothing varies
        return Group(names, 0.0, error)
    d = (np.sqrt(8 * ratios[names[0]].dof + 1) - 1) / 2  # dof = d(d + 1)/2
    return Group(names, float(np.ptp(statistics)) / largest, float(4 * error * np.sqrt(2 * n * d / largest)))
