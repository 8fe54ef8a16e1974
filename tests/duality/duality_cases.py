"""Models with a deliberate error, and the bare statistics of a cross-check without its independent parties."""

import dataclasses

import numpy as np

import kfdyn as kf
from kfdyn.duality.hypothesis.hypothesis_tests import judge
from kfdyn.duality.monte_carlo import Plan, stream
from kfdyn.duality.noise_operators import Given
from kfdyn.duality.quantities import claims
from kfdyn.duality.tolerance.rounding import Units
from kfdyn.estimation.consistency import holm


def heavier(ss, k, factor):
    """The model of the same robot with body k heavier by a factor, of the same shape."""
    phi = [None if p < 0 else b for p, b in zip(ss.tree.parent, ss.phi)]
    Q = [factor * block if j == k else block for j, block in enumerate(ss.Q)]
    return kf.StateSpace(ss.tree, phi, list(ss.H), Q, list(ss.R), ss.xi, ss.eta, vectors=ss.vectors)


def with_covariance(ss, name, matrix):
    """Claims of a model in which one covariance is somebody else's."""
    claim = claims(ss)[name]
    start = ss.arrays.state if len(matrix) == ss.n_states else ss.arrays.output
    scale = np.maximum(np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), claim.scale**2)), claim.scale)
    return {
        name: dataclasses.replace(claim, covariance=Given(matrix, start), units=Units(scale, scale, claim.units.means))
    }


def outcomes(ss, samples, seed, truth=None, claimed=None):
    """The tests of a cross-check, and the smallest p-value after Holm."""
    plan = Plan.of(ss, truth or ss, seed)
    moments = None
    for chunk in stream(plan, samples):
        moments = chunk if moments is None else moments + chunk
    found = judge(plan, moments, {**claims(ss), **(claimed or {})})
    return found.tests, float(holm([t.p_value for t in found.tests]).min())
