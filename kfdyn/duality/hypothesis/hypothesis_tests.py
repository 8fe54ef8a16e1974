"""Turn sums over samples into p-values, with equivalent tests counted once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.findings import Finding, Group, Judgement, Outcome
from kfdyn.duality.hypothesis.entry_tests import (
    entries_test,
    mean_entries_test,
    nees_test,
    nis_tests,
    sharpest_tests,
    standardised_errors,
    whiteness_tests,
)
from kfdyn.duality.monte_carlo import Moments, Plan, Sums
from kfdyn.duality.quantities import QUANTITIES, Claim, component_names
from kfdyn.duality.tolerance.rounding import EPS, ROUNDINGS, resolution, rounding_bound
from kfdyn.errors import ModelError
from kfdyn.estimation.consistency.moments import whitened_covariance_test, whitened_mean_test
from kfdyn.estimation.consistency.whitening import Whitening, whitening


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

    Notes
    -----
    O(d³) for each quantity that is kept whole.
    """
    n = moments.n
    tests: list[Outcome] = []
    findings = {}
    bound = rounding_bound(plan.ss)
    rtol = resolution(bound)
    spaces: dict[str, Whitening] = {}
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
            spaces[name] = space
        means[name] = _mean(name, total, space, n)
        entries, found, scores = entries_test(plan.ss, name, sums, claim, n, whole, rtol, called)
        tests += [entries, mean_entries_test(name, sums.total, claim, n, whole, rtol, called)]
        if name in ("filter_error", "smoothed_error") and whole:
            tests.append(nees_test(name, sums, space, n))
        if name in theirs and whole and n >= space.rank > 0:
            tests += sharpest_tests(name, sums, claim, space, n, called)
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
    groups = [
        _group({name: ratios[name].statistic for name in names}, moments, spaces, claimed, bound)
        for names in partition
        if len(names) > 1 and names[0] in ratios
    ]
    for outcomes in (ratios, means):
        for names in partition:
            if names[0] in outcomes:
                # the worst of the group stands for it: were they unequal, the group fails as well
                worst = min((outcomes[name] for name in names), key=lambda test: test.p_value)
                tests.append(Outcome(worst.kind, names, worst.statistic, worst.dof, worst.p_value, worst.detail))
    tests += whiteness_tests(plan, moments) + nis_tests(plan.ss, moments)
    return Judgement(tuple(tests), tuple(groups), findings)


def _impossible(name: str, claim: Claim, sums: Sums, n: int, whole: bool) -> Finding:
    """Make the finding for a quantity whose claimed covariance is not positive semi-definite."""
    if not whole:
        return Finding(name, len(claim.mean), claim.rank, 0, True, None, None, None, np.nan, np.nan)
    sampled, units = sums.scatter / n, np.outer(claim.scale, claim.scale)
    errors = standardised_errors(sampled / units, claim.matrix / units, n)
    return Finding(name, len(claim.mean), claim.rank, 0, False, claim.matrix, sampled, None, *errors)


def _likelihood_ratio(name: str, sums: Sums, space: Whitening, n: int) -> Outcome:
    outcome = whitened_covariance_test(sums.scatter, space, n, n)
    detail = "" if outcome.outside <= space.tolerance else "samples leave the claimed range"
    return Outcome("covariance", (name,), outcome.statistic, outcome.dof, outcome.p_value, detail)


def _mean(name: str, total: Array, space: Whitening, n: int) -> Outcome:
    outcome = whitened_mean_test(total / n, space, n)
    return Outcome("mean", (name,), outcome.statistic, outcome.dof, outcome.p_value)


def _partition(plan: Plan, findings: Mapping[str, Finding], theirs: Collection[str]) -> list[tuple[str, ...]]:
    """Group quantities of one likelihood ratio: linear images of each other, tested on the whole range.

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


def _group(
    statistics: Mapping[str, float],
    moments: Moments,
    spaces: Mapping[str, Whitening],
    claimed: Mapping[str, Claim],
    bound: float,
) -> Group:
    names, values, n = tuple(statistics), np.array(list(statistics.values())), moments.n
    if not np.isfinite(values).all():
        return Group(names, np.inf, bound)
    largest = float(values.max())
    if largest == 0:  # nothing varies
        return Group(names, 0.0, bound)
    one = spaces[names[0]].inside  # the eigenvalues of all are the same
    eigenvalues = np.asarray(np.linalg.eigvalsh(one.T @ moments.sums[names[0]].scatter @ one / n), float)
    allowed = max(_rounding_of_ratio(eigenvalues, n, spaces[name], claimed[name], bound) for name in names)
    return Group(names, float(np.ptp(values)) / largest, 2 * allowed / largest)


def _rounding_of_ratio(eigenvalues: Array, n: int, space: Whitening, claim: Claim, bound: float) -> float:
    """Bound the rounding of a likelihood ratio n(tr S − log det S − d); derived at `Group`."""
    terms = float(((space.inside * claim.units.terms[:, None]) ** 2).sum())
    formula = max(bound, ROUNDINGS * EPS * terms)
    mean = ROUNDINGS * EPS * float(np.sqrt(((space.inside * claim.units.means[:, None]) ** 2).sum()))
    astray = claim.covariance.deviation_along(space.outside) * np.sqrt(terms)
    eigenvalues = np.maximum(eigenvalues, EPS * eigenvalues.max())
    off = eigenvalues - 1
    both = np.sqrt((off**2).sum()) + np.sqrt(((off / eigenvalues) ** 2).sum())
    return float(
        n * (np.sqrt(len(eigenvalues)) * formula * both + 2 * (mean + astray) * np.sqrt((off**2 / eigenvalues).sum()))
    )
