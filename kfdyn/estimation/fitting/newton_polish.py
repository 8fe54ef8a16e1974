"""Polish a fit by Newton steps, and say how it ended."""

from __future__ import annotations

import numpy as np

from kfdyn.estimation.fitting.fit_result import Fit
from kfdyn.estimation.fitting.search import ENDLESS, STEEP, Found
from kfdyn.estimation.fitting.transformed_objective import Problem
from kfdyn.estimation.model.blocks import FloatArray

_POLISHED = 1e-9  # of the log-likelihood: a Newton step that gains less is the last
_ROUNDING = 1e-15  # of the log-likelihood
_LEFT = 1e-6  # of the log-likelihood: what a converged fit may leave to a Newton step
_KNOWN = 1e-3  # of the log-likelihood: where rounding is more, a maximum cannot be told from its surroundings

_NO_MAXIMUM = (
    "not converged: the log-likelihood has no maximum, it grows without limit as {} goes to its bound: the model "
    "explains the data without noise, as a level does a constant series"
)


def settle(problem: Problem, found: Found, names: list[str]) -> Fit:
    """Take Newton steps where the search left something, and say how it ended."""
    problem.held[:], problem.scale[:] = found.held, found.scale
    z, at, held = found.z, found.at, ~np.isnan(found.held)
    if found.message is ENDLESS:
        far = [name for name, fell in zip(names, found.fell) if fell]
        message = _NO_MAXIMUM.format(("each of " if len(far) > 1 else "") + " and ".join(far))
        return Fit(problem.theta(z), tuple(names), at.llf, False, message, held, problem, z)
    steep = STEEP * max(problem.objective.n_observed, 1)
    information = None
    for _ in range(8):
        if _steepest(problem, at.gradient) <= steep:
            break
        information = problem.information(z) if information is None else information
        step = newton(problem, information, at.gradient)
        gain = 0.5 * float(step @ at.gradient)
        if not gain > max(_ROUNDING * max(1.0, abs(at.llf)), found.noise):
            break
        there = problem.attempt(z + step)
        if there is None or not there.llf >= at.llf - max(_ROUNDING * abs(at.llf), found.noise):
            break
        z, at, information = z + step, there, None
        if gain < _POLISHED * max(1.0, abs(at.llf)):
            break
    left, slope = 0.0, _steepest(problem, at.gradient)
    if slope > (steep if found.noise else 100 * steep):
        information = problem.information(z) if information is None else information
        left = max(0.5 * float(newton(problem, information, at.gradient) @ at.gradient), 0.0)
    least = left < _LEFT * max(1.0, 1e-6 * abs(at.llf)) and slope < 1e5 * steep
    converged = found.sound and least and found.noise < _KNOWN
    rounded = left < found.noise
    if converged:
        message = f"converged: the largest slope of the log-likelihood is {slope:.1e}"
        if rounded and slope > steep:
            message += f", and a step would gain less than its rounding, which is about {found.noise:.0e}"
    elif rounded:
        message = (
            f"not converged: the largest slope is {slope:.1e} after {found.iterations} iterations, where the "
            f"log-likelihood has a rounding of about {found.noise:.0e}, more than a step would gain; see whether the "
            "model explains the data all but exactly, or whether all parameters can be identified"
        )
    else:
        message = (
            f"not converged: the largest slope is {slope:.1e} after {found.iterations} iterations "
            f"({found.message}); begin nearer, raise max_iterations or starts, or see whether all parameters "
            "can be identified"
        )
    return Fit(problem.theta(z), tuple(names), at.llf, converged, message, held, problem, z)


def _steepest(problem: Problem, gradient: FloatArray) -> float:
    """Return the largest slope, each parameter on its own scale."""
    return float(np.abs(gradient * problem.scale).max(initial=0.0))


def newton(problem: Problem, information: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return I⁻¹g on the directions in which the information is positive; 0 elsewhere."""
    known = np.isfinite(np.diagonal(information))
    part, slope = information[np.ix_(known, known)], gradient[known]
    scale = np.sqrt(np.abs(np.diagonal(part)))
    scale = np.where(scale > 0.0, scale, 1.0 / problem.scale[known])
    values, vectors = np.linalg.eigh(part / np.outer(scale, scale))
    used = values > 1e-8
    axes = vectors[:, used]
    step = np.zeros(gradient.size)
    step[known] = (axes @ ((axes.T @ (slope / scale)) / values[used])) / scale
    return step
