"""Maximum likelihood: parameters of a model from data, by the score."""

from kfdyn.estimation.fitting.batched_likelihood import Likelihoods, likelihood
from kfdyn.estimation.fitting.fit import fit
from kfdyn.estimation.fitting.fit_result import Diagnostics, Fit

__all__ = ["Diagnostics", "Fit", "Likelihoods", "fit", "likelihood"]
