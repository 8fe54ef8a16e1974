"""The filter on chains against filterpy's KalmanFilter: prediction, gain, innovation, update; R > 0 and R = 0."""

import numpy as np
import pytest

import kfdyn as kf

filterpy = pytest.importorskip("filterpy.kalman")


def random_chain(seed, N, n, m, noise):
    """Every matrix different; singular values of order one, so that twelve digits can be asked for."""
    rng = np.random.default_rng(seed)

    def covariance(size):
        U = np.linalg.qr(rng.normal(size=(size, size)))[0]
        return U * rng.uniform(0.5, 2, size) @ U.T

    def matrix(rows, columns):
        U, _, Vt = np.linalg.svd(rng.normal(size=(rows, columns)), full_matrices=False)
        return U * rng.uniform(0.5, 1.2, min(rows, columns)) @ Vt

    F = np.stack([matrix(n, n) for _ in range(N - 1)]) if N > 1 else np.zeros((0, n, n))
    Q = np.stack([covariance(n) for _ in range(N - 1)]) if N > 1 else np.zeros((0, n, n))
    H = np.stack([matrix(m, n) for _ in range(N)])
    R = np.stack([covariance(m) * noise for _ in range(N)])
    x0, P0 = rng.normal(size=n), covariance(n)
    u, y = rng.normal(size=(N - 1, n)), rng.normal(size=(N, m))
    return F, H, Q, R, x0, P0, u, y


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize("noise", [1.0, 0.0])
@pytest.mark.parametrize(("N", "n", "m"), [(1, 2, 1), (2, 3, 2), (3, 1, 1), (30, 4, 2), (70, 3, 1)])
def test_the_same_filter(N, n, m, noise, method):
    """R86:9.4, R86:9.5,9.7, R86:9.6, R86:9.8-9.9, R86:9.10-9.12 as filterpy computes them, step by step, R = 0 too.

    ``StateSpace.chain`` has filterpy's edges: x0, P0 belong to step 0 before its update; F[k], Q[k] lead to step k+1.
    """
    F, H, Q, R, x0, P0, u, y = random_chain(N * n + m, N, n, m, noise)
    ss = kf.StateSpace.chain(F, H, Q, R, x0, P0, inputs=u)
    filt = kf.kalman_filter(ss, y.ravel(), method=method)
    peer = filterpy.KalmanFilter(dim_x=n, dim_z=m, dim_u=n)
    peer.x, peer.P = x0.reshape(-1, 1), P0.copy()
    likelihood = 0.0
    for k in range(N):
        if k:
            peer.predict(u=u[k - 1].reshape(-1, 1), B=np.eye(n), F=F[k - 1], Q=Q[k - 1])
        close(filt.predicted_state[k], peer.x.ravel())
        close(filt.predicted_state_cov[k], peer.P)
        peer.update(y[k].reshape(-1, 1), R=R[k], H=H[k])
        close(filt.innovations[k * m : (k + 1) * m], peer.y.ravel())
        close(filt.innovations_cov[k], peer.S)
        close(filt.kalman_gain[k], peer.K)
        close(filt.filtered_state[k], peer.x.ravel())
        close(filt.filtered_state_cov[k], peer.P)
        likelihood += peer.log_likelihood
    close(filt.llf, likelihood)


def test_missing_steps():
    """filterpy takes None for a missing vector; here it is NaN."""
    F, H, Q, R, x0, P0, _, y = random_chain(5, 12, 3, 2, 1.0)
    gone = [0, 4, 5, 11]
    y[gone] = np.nan
    filt = kf.kalman_filter(kf.StateSpace.chain(F, H, Q, R, x0, P0), y.ravel())
    peer = filterpy.KalmanFilter(dim_x=3, dim_z=2)
    peer.x, peer.P = x0.reshape(-1, 1), P0.copy()
    for k in range(12):
        if k:
            peer.predict(F=F[k - 1], Q=Q[k - 1])
        peer.update(None if k in gone else y[k].reshape(-1, 1), R=R[k], H=H[k])
        close(filt.filtered_state[k], peer.x.ravel())
        close(filt.filtered_state_cov[k], peer.P)


def test_the_same_smoother():
    """filterpy's Rauch–Tung–Striebel smoother, which needs P to be invertible, on the time-varying chain."""
    F, H, Q, R, x0, P0, _, y = random_chain(6, 25, 3, 2, 1.0)
    ss = kf.StateSpace.chain(F, H, Q, R, x0, P0)
    filt = kf.kalman_filter(ss, y.ravel())
    smooth = kf.bryson_frazier(ss, filt)
    peer = filterpy.KalmanFilter(dim_x=3, dim_z=2)
    means, covariances = np.array(list(filt.filtered_state)), np.array(list(filt.filtered_state_cov))
    # filterpy reads Fs[k+1], Qs[k+1] as leading from step k to k+1
    lead = [np.eye(3), *F], [np.eye(3), *Q]
    x, P, *_ = peer.rts_smoother(means, covariances, *lead)
    close(np.array(list(smooth.x)), x)
    close(np.array(list(smooth.S)), P)
