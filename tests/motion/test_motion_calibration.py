"""Errors of smoothed motions have the covariances that are told: an arm and a floating base, with biases and gaps."""

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

import kfdyn as kf
from kfdyn.estimation import consistency

S = kf.sensors


def arm():
    """A PUMA with encoders whose bias walks, a gyroscope and an accelerometer."""
    system = kf.models.puma560()
    sensors = [
        S.JointPosition(1e-5, name="encoders"), S.JointVelocity(1e-3), S.Gyroscope("link_6", 1e-4, name="gyroscope"),
        S.Accelerometer("link_4", 0.01),
    ]  # fmt: skip
    W = np.array([0.5, 0.5, 0.3, 0.02, 0.02, 0.01])
    model = kf.MotionModel(system, 0.01, sensors, W, biases={"gyroscope": (1e-4, 1e-8)})
    return model, np.array([0.2, -0.6, 0.5, 0.3, 0.4, 0.0])


def floating():
    """A body in flight with a ball joint and two hinges: a marker, a camera, encoders, a wrench that walks."""
    chain = kf.models.random_tree(4, seed=5, hinges=["free", "ball", "revolute", "revolute"], branching=0.0)
    hand = chain.body_names[-1]
    sensors = [S.JointPosition(1e-4), S.Position(hand, 1e-4), S.Gyroscope(chain.body_names[0], 1e-3)]
    model = kf.MotionModel(chain, 0.01, sensors, 0.02, wrenches={hand: (1e-3, 1e-5)})
    return model, chain.random_configuration(np.random.default_rng(2))


def errors_of(model, q0, runs, N, seed):
    """Normalised squared errors, errors and deviations at three steps, of motions drawn from the model itself."""
    rng, nv = np.random.default_rng(seed), model.system.nv
    prior = (q0, np.zeros(nv), np.concatenate([np.full(nv, 1e-4), np.full(nv, 1e-3)]))
    known = model.check_prior(prior)
    x = model.states.plus(np.tile(known.x0, (runs, 1)), rng.normal(size=(runs, model.n)) * np.sqrt(np.diag(known.P0)))
    truth, seen, tau = [], [], 0.3 * rng.normal(size=(N, nv))
    for k in range(N):
        w = rng.normal(size=(runs, model.p)) * np.sqrt(np.diag(model.Q))
        u, ks = np.tile(tau[k], (runs, 1)), np.full(runs, k)
        noise = rng.normal(size=(runs, len(model.R))) * np.sqrt(np.diag(model.R))
        seen.append(model.readings.plus(model.read(x, w, u, ks), noise))
        truth.append(x)
        x = model.advance(x, w, u, ks)
    truth, seen = np.stack(truth, axis=1), np.stack(seen, axis=1)
    readings = [seen[..., own] for own in model.seen.points_of]
    readings[0][:, N // 3] = np.nan
    post = kf.iterated_kalman_smoother(model, readings, tau=tau, prior=prior, start="prior")
    assert np.all(post.converged), post.message
    at = [0, N // 2, N - 1]
    return post.nees(truth)[:, at], post.error(truth)[:, at], post.std()[:, at]


@pytest.mark.parametrize("make", [arm, floating])
@pytest.mark.parametrize("runs", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_nees_and_bands(make, runs):
    """By Holm's procedure at 1 %: χ² sums of three steps, and 95 % bands of every component there."""
    model, q0 = make()
    nees, error, std = errors_of(model, q0, runs, 24, seed=runs)
    p_values = []
    for column in nees.T:
        tail = chi2.cdf(column.sum(), model.n * runs)
        p_values.append(2.0 * min(tail, 1.0 - tail))
    inside = (np.abs(error) < 1.959964 * std).reshape(runs, -1).sum(axis=0)
    p_values += [binomtest(int(count), runs, 0.95).pvalue for count in inside]
    assert (consistency.holm(p_values) > 0.01).all(), (min(p_values), inside / runs)
