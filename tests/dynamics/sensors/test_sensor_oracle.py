"""Means, covariances, likelihood and refusals against the dense joint Gaussian, on random robots and sensors."""

import numpy as np
import pytest
from against_dense import FULL, held_against
from dense_sensors import covariance_form, dense
from sensor_cases import S, case

import kfdyn as kf


def compare(seed, n=None, full=FULL, slack=1.0):
    """Return "ok", "refused" or "skipped" after all assertions held, to ``slack`` times the usual bound."""
    return held_against(dense, *case(seed, n), full, slack)


def test_random_robots_with_random_sensors():
    outcomes = [compare(seed, n=1 + seed % 6) for seed in range(120)]
    assert outcomes.count("ok") >= 60 and outcomes.count("refused") >= 15


def test_larger_robots():
    assert [compare(seed) for seed in (7, 900, 971, 1014)].count("ok") >= 2


def test_sets_that_were_hard():
    """Eliminations that grew lost digits, and a singular set behind a very wide force was once answered."""
    hard = {4473: "ok", 5950: "ok", 6669: "ok", 7964: "ok", 8229: "ok", 8895: "ok", 5095: "refused", 3050: "refused"}
    assert {seed: compare(seed, n=1 + seed % 1000 % 7) for seed in hard} == hard


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(10))
def test_ten_thousand_sets(thousand):
    """One set in ten thousand (7817) loses a digit more than the bound has: 8e-10 of the largest."""
    outcomes, short = [], []
    for i in range(1000):
        seed, more = 1000 + 1000 * thousand + i, {"n": 1 + i % 7, "full": ("a",)}
        try:
            outcomes.append(compare(seed, **more))
        except AssertionError:
            outcomes.append(compare(seed, **more, slack=10.0))
            short.append(seed)
    assert outcomes.count("ok") >= 500 and len(short) <= 1, short


def test_every_cross_covariance_block():
    system, q, v, sensors, readings = case(3, 4)
    d = dense(system, q, v, sensors, readings)
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    P = d.prior
    for one, (A, _) in d.maps.items():
        for two, (B, _) in d.maps.items():
            expected = A @ P @ B.T
            scale = np.sqrt(np.abs(A @ P @ A.T).max() * np.abs(B @ P @ B.T).max()) + 1e-12
            np.testing.assert_allclose(est.cov(one, two), expected, rtol=0, atol=1e-9 * scale)
    hinge, body = system.hinge_names[0], system.body_names[1]
    own = system.v_slice(hinge)
    block = est.cov(("a", hinge), ("hinge_forces", body))
    np.testing.assert_array_equal(block, est.cov("a", "hinge_forces")[own, 6:12])


def test_covariance_form_of_proper_priors():
    """Conditional normals, no information matrix anywhere: V = GΘG* + R and its likelihood."""
    rng = np.random.default_rng(5)
    system, q, v, _, _ = case(12, 5)
    body = system.body_names[2]
    Theta, force = 2.0, 0.5
    tau, imu = rng.normal(size=system.nv), rng.normal(size=6)
    sensors = [S.JointPrior(Theta), S.ExternalForce(body, force), S.JointTorque(0.3), S.Imu(body, 0.2)]
    est = kf.estimate_dynamics(system, q, v, sensors, [None, None, tau, imu])
    flat = [S.ExternalForce(body, np.inf), *sensors[2:]]
    d = dense(system, q, v, [sensors[0], *flat], [None, None, tau, imu])
    nv = system.nv
    prior = np.diag(np.r_[np.full(nv, Theta), np.full(6, force)])
    rows = slice(nv, None)  # the prior of q̈ came first among the rows
    mean, cov, llf = covariance_form(d, prior, np.zeros(nv + 6), d.G[rows], d.R[rows, rows], d.y[rows])
    np.testing.assert_allclose(est.a, mean[:nv], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(est.cov("a"), cov[:nv, :nv], rtol=0, atol=1e-12)
    np.testing.assert_allclose(est.cov("a", ("external_forces", body)), cov[:nv, nv:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(est.llf, llf, rtol=1e-12)
