"""Likelihood, filter and smoother against statsmodels: the Nile, and a fully time-varying model with gaps."""

import numpy as np
import pytest

import kfdyn as kf

sm = pytest.importorskip("statsmodels.api")
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother  # noqa: E402

ONE = np.ones((1, 1))


def close(actual, expected, digits=11):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=10.0**-digits * max(1.0, np.abs(expected).max()))


def nile():
    """Annual flow at Aswan, 1871–1970, with the variances of Durbin and Koopman."""
    volume = sm.datasets.nile.load_pandas().data["volume"].to_numpy(float).copy()
    ss = kf.StateSpace.chain(ONE, ONE, 1469.1 * ONE, 15099.0 * ONE, [0.0], 1e7 * ONE, steps=volume.size)
    return volume, ss


def nile_peer(volume):
    peer = sm.tsa.UnobservedComponents(volume, "local level")
    peer.ssm.initialize_known(np.zeros(1), 1e7 * ONE)
    peer.ssm.loglikelihood_burn = 0  # the first innovation counts
    return peer.smooth([15099.0, 1469.1])


def test_likelihood_of_the_nile():
    """−641.58558 with the first innovation counted, as statsmodels has it without a burn-in."""
    volume, ss = nile()
    llf = kf.kalman_filter(ss, volume).llf
    assert abs(llf - -641.58558) < 5e-6
    close(llf, nile_peer(volume).llf)


@pytest.mark.parametrize("gaps", [False, True])
def test_the_nile_filtered_and_smoothed(gaps):
    """Predicted, filtered and smoothed levels and variances; with the classic gaps 1891–1910 and 1931–1950 too."""
    volume, ss = nile()
    if gaps:
        volume[20:40] = volume[60:80] = np.nan
    peer = nile_peer(volume)
    filt = kf.kalman_filter(ss, volume)
    smooth = kf.bryson_frazier(ss, filt)
    close(filt.llf, peer.llf)
    close(filt.predicted_state.flat, peer.predicted_state[0, :-1])
    close(filt.predicted_state_cov.flat, peer.predicted_state_cov[0, 0, :-1])
    close(filt.filtered_state.flat, peer.filtered_state[0])
    close(filt.filtered_state_cov.flat, peer.filtered_state_cov[0, 0])
    close(smooth.smoothed_state.flat, peer.smoothed_state[0])
    close(smooth.smoothed_state_cov.flat, peer.smoothed_state_cov[0, 0])
    seen = ~np.isnan(volume)
    close(filt.innovations[seen], peer.forecasts_error[0, seen])
    close(filt.innovations_cov.flat[seen], peer.forecasts_error_cov[0, 0, seen])


def random_chain(seed, N, n, m):
    rng = np.random.default_rng(seed)

    def covariance(size):
        B = rng.normal(size=(size, size))
        return B @ B.T / size + 0.1 * np.eye(size)

    F = np.stack([np.linalg.qr(rng.normal(size=(n, n)))[0] * rng.uniform(0.7, 1.0) for _ in range(N - 1)])
    Q, R = np.stack([covariance(n) for _ in range(N - 1)]), np.stack([covariance(m) for _ in range(N)])
    H, u = rng.normal(size=(N, m, n)), rng.normal(size=(N - 1, n))
    return F, H, Q, R, rng.normal(size=n), covariance(n), u, rng.normal(size=(N, m))


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("noise", [1.0, 0.0])
@pytest.mark.parametrize("method", ["block", "univariate"])
def test_fully_time_varying(gaps, noise, method):
    """Every matrix its own at every step, inputs, two outputs, some missing whole and some in part, R = 0 too.

    statsmodels' smoother runs by its "conventional" method (Bryson–Frazier too); its "alternative" one is not right
    for time-varying models with missing values. Its slices t lead from step t to t + 1, as those of ``chain`` do.
    """
    N, n, m = 40, 3, 2
    F, H, Q, R, x0, P0, u, y = random_chain(3, N, n, m)
    R = R * noise
    if gaps:
        y[[3, 4, 17]] = np.nan
        y[8, 0] = y[9, 1] = y[N - 1, 0] = np.nan
    peer = KalmanSmoother(k_endog=m, k_states=n, k_posdef=n)
    peer.bind(y)
    for name, value in {
        "design": H.transpose(1, 2, 0),
        "obs_cov": R.transpose(1, 2, 0),
        "transition": np.concatenate([F, F[:1]]).transpose(1, 2, 0),  # the last leads out of the sample
        "selection": np.eye(n)[:, :, None],
        "state_cov": np.concatenate([Q, Q[:1]]).transpose(1, 2, 0),
        "state_intercept": np.concatenate([u, u[:1]]).T,
    }.items():
        peer[name] = value
    peer.initialize_known(x0, P0)
    peer.set_smooth_method(smooth_conventional=True)
    peer.set_inversion_method(invert_lu=True)
    theirs = peer.smooth()

    ss = kf.StateSpace.chain(F, H, Q, R, x0, P0, inputs=u)
    filt = kf.kalman_filter(ss, y.ravel(), method=method)
    smooth = kf.bryson_frazier(ss, filt)
    close(filt.llf, theirs.llf)
    close(filt.predicted_state.stacked(), theirs.predicted_state.T[:-1])
    close(filt.predicted_state_cov.stacked(), theirs.predicted_state_cov.transpose(2, 0, 1)[:-1])
    close(filt.filtered_state.stacked(), theirs.filtered_state.T)
    close(filt.filtered_state_cov.stacked(), theirs.filtered_state_cov.transpose(2, 0, 1))
    close(smooth.smoothed_state.stacked(), theirs.smoothed_state.T)
    close(smooth.smoothed_state_cov.stacked(), theirs.smoothed_state_cov.transpose(2, 0, 1))
    whole = ~np.isnan(y).any(axis=1)
    close(filt.innovations.reshape(N, m)[whole], theirs.forecasts_error.T[whole])
    close(filt.innovations_cov.stacked()[whole], theirs.forecasts_error_cov.transpose(2, 0, 1)[whole])
    # statsmodels' r(t) is the co-state λ(t + 1) of the next prediction, zero after the last
    close(smooth.costate.stacked()[1:], theirs.scaled_smoothed_estimator.T[:-1])
    close(smooth.costate_cov.stacked()[1:], theirs.scaled_smoothed_estimator_cov.transpose(2, 0, 1)[:-1])
