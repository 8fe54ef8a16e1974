"""Calibrated tests of a filter's consistency: are its errors as it says?

Each p-value is uniform when the model is right, at any dimension and sample size the test accepts. `null_distributions`
has those beyond χ², `moments` and `whiteness` the tests that use them.
"""

from kfdyn.estimation.consistency.moments import (
    EntryVerdict,
    covariance_test,
    largest_entry_test,
    mean_test,
    scatter,
)
from kfdyn.estimation.consistency.quadratic_forms import QuadraticVerdict, nees, nis
from kfdyn.estimation.consistency.verdict import Verdict, holm
from kfdyn.estimation.consistency.whiteness import tree_portmanteau, whiteness

__all__ = [
    "EntryVerdict",
    "QuadraticVerdict",
    "Verdict",
    "covariance_test",
    "holm",
    "largest_entry_test",
    "mean_test",
    "nees",
    "nis",
    "scatter",
    "tree_portmanteau",
    "whiteness",
]
