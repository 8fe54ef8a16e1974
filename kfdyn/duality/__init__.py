"""Compare estimation with dynamics: dictionary, identities, cross-check, atlas of results.

Parameters
----------
ss : StateSpace
    The model.
cov : Covariances
    Its covariances, if they are at hand.
groups : sequence of arrays
    Its groups of one unit, if they are at hand, see :func:`unit_groups`.
names : sequence of str
    Names of its outputs.
claimed : mapping of Claim
    Means and covariances that are claimed, by quantity.
samples : int
    Number of samples.
"""

from kfdyn.duality.atlas import Result, atlas
from kfdyn.duality.cross_check import cross_check
from kfdyn.duality.dictionary import DICTIONARY, Entry, dictionary_table, fill
from kfdyn.duality.hypothesis.detectable_errors import Detectable, Limits, detectable, limits
from kfdyn.duality.hypothesis.roys_test import ExtremeEigenvalues, roys_test
from kfdyn.duality.identities import IDENTITIES, Identity, identity_residuals, identity_tolerance
from kfdyn.duality.noise_operators import Given, Gram, noise_maps
from kfdyn.duality.quantities import QUANTITIES, Claim, Quantity, claims
from kfdyn.duality.report import Report
from kfdyn.duality.tolerance.rounding import rounding_bound
from kfdyn.duality.tolerance.unit_groups import unit_groups

__all__ = [
    "DICTIONARY",
    "IDENTITIES",
    "QUANTITIES",
    "Claim",
    "Detectable",
    "Entry",
    "ExtremeEigenvalues",
    "Given",
    "Gram",
    "Identity",
    "Limits",
    "Quantity",
    "Report",
    "Result",
    "atlas",
    "claims",
    "cross_check",
    "detectable",
    "dictionary_table",
    "fill",
    "identity_residuals",
    "identity_tolerance",
    "limits",
    "noise_maps",
    "rounding_bound",
    "roys_test",
    "unit_groups",
]
