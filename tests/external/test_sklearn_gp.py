"""Gaussian-process regression with a Matérn-3/2 kernel as a chain of two states, against scikit-learn's dense one."""

import numpy as np
import pytest
from scipy.linalg import expm

import kfdyn as kf

gp = pytest.importorskip("sklearn.gaussian_process")
from sklearn.gaussian_process.kernels import ConstantKernel, Matern  # noqa: E402

VARIANCE, LENGTH, NOISE = 1.7, 0.8, 0.05


def matern_chain(t, measured):
    """The process dx = A x dt + noise with stationary covariance P∞, sampled at sorted inputs; seen where measured.

    A = [[0, 1], [−λ², −2λ]], λ = √3/ℓ, P∞ = σ² diag(1, λ²); exact transition expm(AΔ), edge noise P∞ − F P∞ F*.
    """
    rate = np.sqrt(3.0) / LENGTH
    A = np.array([[0.0, 1.0], [-(rate**2), -2.0 * rate]])
    stationary = VARIANCE * np.diag([1.0, rate**2])
    F = np.stack([expm(A * step) for step in np.diff(t)])
    Q = stationary - F @ stationary @ F.transpose(0, 2, 1)
    parent = np.append(np.arange(1, t.size), -1)
    H = [np.array([[1.0, 0.0]])[: int(seen)] for seen in measured]
    R = [np.full((int(seen), int(seen)), NOISE) for seen in measured]
    return kf.StateSpace(parent, [*F, None], H, [stationary, *((q + q.T) / 2 for q in Q)], R)


def data():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0.0, 10.0, 80))
    return t, np.sin(2 * t) + 0.3 * t + rng.normal(scale=np.sqrt(NOISE), size=t.size)


def peer():
    kernel = ConstantKernel(VARIANCE, "fixed") * Matern(LENGTH, "fixed", nu=1.5)
    t, y = data()
    return gp.GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None).fit(t[:, None], y)


def test_log_marginal_likelihood():
    t, y = data()
    llf = kf.kalman_filter(matern_chain(t, np.ones(t.size, bool)), y).llf
    np.testing.assert_allclose(llf, peer().log_marginal_likelihood_value_, rtol=1e-12)


def test_posterior_at_training_and_test_points():
    """Mean and deviation between, at and beyond the data: unmeasured nodes of the same chain."""
    t, y = data()
    test = np.linspace(-1.0, 12.0, 131)
    everywhere = np.concatenate([t, test])
    order = np.argsort(everywhere)
    measured = (np.arange(everywhere.size) < t.size)[order]
    ss = matern_chain(everywhere[order], measured)
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, y))
    mean, deviation = peer().predict(everywhere[order][:, None], return_std=True)
    np.testing.assert_allclose(smooth.smoothed_state.stacked()[:, 0], mean, rtol=0, atol=1e-11)
    np.testing.assert_allclose(np.sqrt(smooth.smoothed_state_cov.stacked()[:, 0, 0]), deviation, rtol=0, atol=1e-11)


def test_missing_is_the_same_as_unmeasured():
    """NaN at a node with an output and no output at all are one model."""
    t, y = data()
    y = y.copy()
    y[::3] = np.nan
    seen = ~np.isnan(y)
    with_nan, without = matern_chain(t, np.ones(t.size, bool)), matern_chain(t, seen)
    one = kf.bryson_frazier(with_nan, kf.kalman_filter(with_nan, y))
    two = kf.bryson_frazier(without, kf.kalman_filter(without, y[seen]))
    np.testing.assert_allclose(one.x.flat, two.x.flat, rtol=0, atol=1e-13)
    np.testing.assert_allclose(one.S.flat, two.S.flat, rtol=0, atol=1e-13)
    np.testing.assert_allclose(one.filt.llf, two.filt.llf, rtol=1e-14)
