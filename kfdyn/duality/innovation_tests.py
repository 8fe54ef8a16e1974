"""Tests of the squared errors (NEES), of the squared innovations (NIS), and of their whiteness."""

from __future__ import annotations

import numpy as np

from kfdyn.duality.outcomes import Outcome
from kfdyn.duality.stream import BINS, Moments, Plan, Sums
from kfdyn.estimation import StateSpace
from kfdyn.estimation.consistency import whiteness
from kfdyn.estimation.consistency.whitening import Whitening


def nees_test(name: str, sums: Sums, space: Whitening, n: int) -> Outcome:
    """Σ over samples of e*C⁺e ~ χ²(n rank), two-sided."""
    statistic = float(((sums.scatter @ space.inside) * space.inside).sum())
    return Outcome("NEES", (name,), statistic / n, space.rank, _two_sided(statistic, n * space.rank))


def nis_tests(ss: StateSpace, moments: Moments) -> list[Outcome]:
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


def whiteness_tests(plan: Plan, moments: Moments) -> list[Outcome]:
    """Innovations of different nodes must not be correlated; nothing where there are too few to tell."""
    m = plan.ss.m
    if "eps" in plan.sketch or (m > 0).sum() < 2 or moments.n < m.sum():
        return []
    outcome = whiteness(moments.sums["eps"].scatter, m.tolist(), moments.n)
    return [Outcome("whiteness", ("eps",), outcome.statistic, outcome.dof, outcome.p_value)]
