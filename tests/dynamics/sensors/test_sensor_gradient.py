"""Gradients of the likelihood against differences; draws and calibration against what the covariances claim."""

from dataclasses import replace

import numpy as np
import pytest
from dense_sensors import dense
from multibody_cases import derivative, forest, state
from scipy import stats
from sensor_cases import S, case

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics.sensors.gradient import BASIS


def noisy_set(seed, n=5, exact=False):
    """A robot with a redundant set of every kind."""
    system, rng = forest(seed, n)
    while not system.nv:
        seed += 1
        system, rng = forest(seed, n)
    q, v = state(system, rng)
    body, last = system.body_names[0], system.body_names[-1]
    sensors = [
        S.JointTorque(0.0 if exact else 0.3),
        S.JointPrior(4.0),
        S.Imu("tool", np.diag([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) + 0.01),
        S.ForceTorque(system.hinge_names[0], 0.4),
        S.ExternalForce(last, 1.5),
        S.ExternalForce(body, 1e9, axes="frame", moment=False),
        S.Accelerometer(last, 1e-9 if exact else 0.2),
    ]
    readings = [rng.normal(size=s.size(system)) for s in sensors]
    if exact:  # a reading that could have been: another would make NIS 1e9, and differences of it worthless
        guess = kf.estimate_dynamics(system, q, v, sensors, [*readings[:-1], np.full(3, np.nan)]).predicted[-1]
        readings[-1] = guess + 1e-5 * rng.normal(size=3)
    return system, q, v, sensors, readings, rng


@pytest.mark.parametrize("seed", range(2))
def test_covariances_and_biases(seed):
    system, q, v, sensors, readings, rng = noisy_set(seed, exact=seed % 2 == 1)
    g = kf.estimate_dynamics(system, q, v, sensors, readings).gradient()
    for i, s in enumerate(sensors):
        size = s.size(system)
        R = s.covariance(system)
        d = rng.normal(size=(size, size))
        d = d + d.T if not isinstance(s, S.JointTorque | S.JointPrior) else np.diag(rng.normal(size=size))
        d *= np.abs(R).max() / 5 if np.abs(R).max() else 0.0

        def llf(h, i=i, s=s, R=R, d=d):
            other = [*sensors]
            other[i] = s.replace(cov=R + h * d)
            return float(kf.estimate_dynamics(system, q, v, other, readings).llf)

        if d.any():
            slope = derivative(llf, h=1e-2)
            np.testing.assert_allclose((g.cov[i] * d).sum(), slope, rtol=1e-7, atol=1e-8)
        e = rng.normal(size=size)

        def moved(h, i=i, e=e):
            shifted = [y + h * e if i == j else y for j, y in enumerate(readings)]
            return float(kf.estimate_dynamics(system, q, v, sensors, shifted).llf)

        slope = derivative(moved, h=1e-2)
        np.testing.assert_allclose(g.readings[i] @ e, slope, rtol=1e-7, atol=1e-7 * (1 + np.abs(g.readings[i]).max()))
        np.testing.assert_array_equal(g.bias[i], -g.readings[i])


@pytest.mark.parametrize("seed", range(2))
def test_inertias(seed):
    system, q, v, sensors, readings, _ = noisy_set(seed, n=2)
    g = kf.estimate_dynamics(system, q, v, sensors, readings).gradient()
    for k in range(system.n_bodies):
        M = system.bodies[k].inertia
        for p in range(10):

            def llf(h, k=k, p=p, M=M):
                bodies = [*system.bodies]
                bodies[k] = replace(bodies[k], inertia=M + h * BASIS[p])
                changed = mb.System(bodies, system.gravity, dict(system.frames), indefinite_inertia="warn")
                return float(kf.estimate_dynamics(changed, q, v, sensors, readings).llf)

            slope = derivative(llf, h=2e-4 * M[3, 3])
            size = 1 + np.abs(g.inertia[k]).max()
            np.testing.assert_allclose(g.inertia[k, p], slope, rtol=1e-6, atol=1e-7 * size)


def test_draws_have_the_posterior_covariance():
    system, q, v, sensors, readings, _ = noisy_set(11, n=3, exact=True)
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    n = 4000
    drawn = est.draw(rng=3, n=n)
    keys = ("a", "tau", "hinge_forces", "external_forces", "body_accelerations")
    flat = np.concatenate([drawn[key].reshape(n, -1) for key in keys], axis=1)
    mean = np.concatenate([getattr(est, key).reshape(-1) for key in keys])
    cov = np.block([[est.cov(one, two) for two in keys] for one in keys])
    scale = np.sqrt(np.maximum(cov.diagonal(), 1e-12))
    # 4.5 standard errors of a mean, and 5 of a covariance: one false alarm in thousands, and the seed is fixed
    assert np.all(np.abs(flat.mean(0) - mean) < 4.5 * scale / np.sqrt(n) + 1e-7)
    sample = np.cov(flat.T)
    error = np.sqrt((np.outer(scale, scale) ** 2 + cov**2) / n)
    assert np.all(np.abs(sample - cov) < 5 * error + 1e-9)
    assert np.abs(drawn["tau"] - est.tau).max() < 1e-6  # the torques were exact


@pytest.mark.parametrize("seed", [2, 5])
def test_calibrated(seed):
    """Truths from the prior, readings from truths: NEES, NIS, coverage and normalised residuals are what they say."""
    n = 1500
    system, rng = forest(seed, 5)
    q, v = state(system, rng)
    last = system.body_names[-1]
    sensors = [
        S.JointTorque(0.3),
        S.JointPrior(2.0),
        S.ExternalForce(last, 1.5),
        S.Imu("tool", 0.2, bias=0.3),
        S.ForceTorque(system.hinge_names[0], 0.4),
    ]
    nv = system.nv
    a = rng.normal(size=(n, nv)) * np.sqrt(2.0)
    force = np.zeros((n, system.n_bodies, 6))
    force[:, system.body_index(last)] = rng.normal(size=(n, 6)) * np.sqrt(1.5)
    tau = kf.inverse_dynamics(system, q, v, a, external_forces=force)
    exact = [S.JointAcceleration(0.0), S.ExternalForce(last, 0.0), *sensors[3:]]
    blank = [np.full(6, np.nan), np.full(6, np.nan)]
    truth = kf.estimate_dynamics(system, q, v, exact, [a, force[:, system.body_index(last)], *blank])
    np.testing.assert_allclose(truth.tau, tau, rtol=1e-9, atol=1e-9)
    readings = [
        tau + rng.normal(size=tau.shape) * np.sqrt(0.3),
        None,
        None,
        truth.predicted[2] + rng.normal(size=(n, 6)) * np.sqrt(0.2),
        truth.predicted[3] + rng.normal(size=(n, 6)) * np.sqrt(0.4),
    ]
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    P = est.cov("a")[0]
    e = est.a - a
    nees = np.einsum("bi,ij,bj->b", e, np.linalg.inv(P), e)
    assert stats.kstest(nees, stats.chi2(nv).cdf).pvalue > 1e-3
    assert (est.dof == nv + 12).all()
    assert stats.kstest(est.nis, stats.chi2(nv + 12).cdf).pvalue > 1e-3
    assert stats.kstest(est.p_value, "uniform").pvalue > 1e-3
    for key, true in (("a", a), ("tau", tau), ("external_forces", force[:, system.body_index(last)])):
        mean, std = getattr(est, key), est.std(key)
        if key == "external_forces":
            mean, std = mean[:, system.body_index(last)], std[:, system.body_index(last)]
        inside = np.abs(mean - true) < 1.96 * std
        assert np.all(np.abs(inside.mean(0) - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / n)), key
    for i in (0, 3, 4):
        z = est.normalised_residuals[i]
        assert stats.kstest(z[:, 0], "norm").pvalue > 1e-3
    # a covariance ten per cent off is found out
    assert stats.kstest(nees * 1.1, stats.chi2(nv).cdf).pvalue < 0.2 or nv < 3


def test_residuals_of_dense():
    system, q, v, sensors, readings = case(3, 4)
    d = dense(system, q, v, sensors, readings)
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    total = sum(float(np.nansum(-r * m)) for r, m in zip(est.residuals, est.multipliers) if np.isfinite(r).any())
    np.testing.assert_allclose(total, d.nis, rtol=1e-8)


def test_a_reading_that_nothing_else_checks_has_no_normalised_residual():
    """Its residual and the deviation of it are rounding, and so would be their quotient."""
    arm, rng = kf.models.stanford_arm(), np.random.default_rng(3)
    wide = S.ExternalForce("link_4", [np.inf, np.inf, 1.0], moment=False, axes="frame")
    sensors = [S.JointTorque(0.1), S.JointAcceleration(0.1), wide, S.ExternalForce("link_6", 1.0)]
    readings = [rng.normal(size=s.size(arm)) for s in sensors]
    est = kf.estimate_dynamics(arm, arm.random_configuration(rng), rng.normal(size=6), sensors, readings)
    multipliers = np.abs(est.multipliers[0])
    assert (multipliers[:2] < 1e-12 * multipliers[2:].min()).all()  # two components of the force take all that they say
    assert (est.normalised_residuals[0] != 0).tolist() == [False, False, True, True, True, True]
