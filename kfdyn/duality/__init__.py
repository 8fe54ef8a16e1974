"""The two readings held against each other: dictionary, identities, the cross-check, the atlas of results."""

from kfdyn.duality.cross_check import cross_check
from kfdyn.duality.identities import IDENTITIES, Identity, identity_residuals
from kfdyn.duality.quantities import QUANTITIES, Claim, Quantity, claims
from kfdyn.duality.report import Report
from kfdyn.duality.sensitivity import Detectable, detectable

__all__ = [
    "IDENTITIES",
    "QUANTITIES",
    "Claim",
    "Detectable",
    "Identity",
    "Quantity",
    "Report",
    "claims",
    "cross_check",
    "detectable",
    "identity_residuals",
]
