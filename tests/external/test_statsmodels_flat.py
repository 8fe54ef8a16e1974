"""Flat priors against statsmodels' exact diffuse initialisation: likelihood, filter and smoother, with gaps."""

import numpy as np
import pytest

import kfdyn as kf

sm = pytest.importorskip("statsmodels.api")


def both(model, params):
    """statsmodels' result, and the same matrices as a chain."""
    result = model.smooth(params)
    ssm = model.ssm
    F, H = ssm["transition"], ssm["design"]
    select, cov = ssm["selection"], ssm["state_cov"]
    ss = kf.StateSpace.chain(F, H, select @ cov @ select.T, ssm["obs_cov"], steps=model.nobs)
    return result, ss


def close(actual, expected, digits=9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=10.0**-digits * max(1.0, np.abs(expected).max()))


def compare(result, ss, T):
    filt = kf.kalman_filter(ss, T)
    smooth = kf.bryson_frazier(ss, filt)
    n = ss.n[0]
    assert abs(filt.llf - result.llf) <= 1e-10 * abs(result.llf)
    close(smooth.x.flat.reshape(-1, n).T, result.smoothed_state)
    close(smooth.S.stacked().transpose(1, 2, 0), result.smoothed_state_cov)
    close(filt.z.flat.reshape(-1, n).T, result.predicted_state[:, :-1])
    close(filt.P.stacked().transpose(1, 2, 0), result.predicted_state_cov[:, :, :-1])
    infinite = np.zeros_like(result.predicted_state_cov[:, :, :-1])
    given = result.predicted_diffuse_state_cov
    infinite[:, :, : min(given.shape[2], infinite.shape[2])] = given[:, :, : infinite.shape[2]]
    close(filt.P_inf.stacked().transpose(1, 2, 0), infinite)
    seen = ~np.isnan(T)
    close(filt.eps[seen], result.forecasts_error.T.ravel()[seen])


def test_nile():
    volume = sm.datasets.nile.load_pandas().data["volume"].to_numpy(float).copy()
    volume[20:40] = np.nan
    model = sm.tsa.UnobservedComponents(volume, "local level", use_exact_diffuse=True)
    result, ss = both(model, [15099.0, 1469.1])
    compare(result, ss, volume)


def test_airline_with_trend_and_seasonal_and_a_gap_at_the_start():
    rng = np.random.default_rng(0)
    T = np.log(100 + 10 * np.arange(60.0)) + 0.2 * np.sin(np.arange(60) * np.pi / 2) + 0.02 * rng.normal(size=60)
    T[[1, 2, 30]] = np.nan
    model = sm.tsa.UnobservedComponents(T, "local linear trend", seasonal=4, use_exact_diffuse=True)
    result, ss = both(model, [1e-3, 1e-4, 1e-5, 1e-4])
    compare(result, ss, T)


def test_a_series_without_a_measurement_adds_nothing_to_the_likelihood():
    nothing = np.full(20, np.nan)
    model = sm.tsa.UnobservedComponents(nothing, "local level", use_exact_diffuse=True)
    _, ss = both(model, [1.0, 2.0])
    found = kf.score(ss, nothing)
    assert found.llf == model.loglike([1.0, 2.0]) == 0.0
    np.testing.assert_array_equal([found.R.flat.sum(), found.Q.flat.sum()], model.score([1.0, 2.0]))
