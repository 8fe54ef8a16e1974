"""The two readings held against each other: dictionary, identities, the cross-check, the atlas of results."""

from kfdyn.duality.atlas import Result, atlas
from kfdyn.duality.cross_check import cross_check
from kfdyn.duality.dictionary import DICTIONARY, Entry, dictionary_table, fill
from kfdyn.duality.identities import IDENTITIES, Identity, identity_residuals
from kfdyn.duality.maps import Given, Gram, noise_maps
from kfdyn.duality.quantities import QUANTITIES, Claim, Quantity, claims
from kfdyn.duality.report import Report
from kfdyn.duality.rounding import rounding_bound
from kfdyn.duality.sensitivity import Detectable, detectable

__all__ = [
    "DICTIONARY",
    "IDENTITIES",
    "QUANTITIES",
    "Claim",
    "Detectable",
    "Entry",
    "Given",
    "Gram",
    "Identity",
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
    "noise_maps",
    "rounding_bound",
]
