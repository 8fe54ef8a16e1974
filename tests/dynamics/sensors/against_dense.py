"""An estimate held against a dense Gaussian: means, variances, covariances, likelihood, and refusals."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import UnobservableError

# The dense system is solved with refinement, so its error is that of its entries, some 1e-14 of the condition.
EXACT, OF_CONDITION = 1e-10, 1e-13
FULL = ("a", "tau", "external_forces")


def sizes(d, sensors):
    """Scale of each quantity: the largest mean; the largest variance of its kind or that enters, since a posterior
    covariance is a difference from what entered (an exactly determined quantity has 0).
    """
    mean = {key: max(np.abs(value).max(initial=0.0), 1.0) for key, value in d.mean.items()}
    cov = {key: np.abs(value).max(initial=0.0) for key, value in d.cov.items()}
    entering = [float(c) for s in sensors for c in s.cov.ravel() if c < 1e6]
    force = max(cov["hinge_forces"], cov["external_forces"], cov["tau"], *entering)
    moved = max(cov["a"], cov["body_accelerations"], *entering)
    return mean, {key: moved if key in ("a", "body_accelerations") else force for key in cov}


def held_against(dense, system, q, v, sensors, readings, full=FULL, slack=1.0, exact=EXACT):
    """Return "ok", "refused" or "skipped" after all assertions held, to ``slack`` times the usual bound."""
    if not sensors or not system.nv:
        return "skipped"
    d = dense(system, q, v, sensors, readings)
    if 1e9 < d.condition < 1e14:
        return "skipped"  # neither plainly determined nor plainly not: the rounding of coefficients moves the answer
    if d.condition >= 1e14:
        with pytest.raises(UnobservableError):
            kf.estimate_dynamics(system, q, v, sensors, readings)
        return "refused"
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    tol = slack * (exact + OF_CONDITION * d.condition)
    mean, cov = sizes(d, sensors)
    for key in d.mean:
        shape = getattr(est, key).shape
        np.testing.assert_allclose(getattr(est, key), d.mean[key].reshape(shape), rtol=0, atol=tol * mean[key])
        variance = d.cov[key].diagonal().reshape(shape)
        np.testing.assert_allclose(est.std(key) ** 2, variance, rtol=0, atol=tol * cov[key])
    for key in full:
        np.testing.assert_allclose(est.cov(key), d.cov[key], rtol=0, atol=tol * cov[key])
    assert int(est.dof) == d.dof
    np.testing.assert_allclose(est.nis, d.nis, rtol=tol, atol=tol)
    np.testing.assert_allclose(est.llf, d.llf, rtol=tol, atol=tol * 10)
    return "ok"
