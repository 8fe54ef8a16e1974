"""The compiled halves of a filter's step against dense algebra, compiled and as plain Python."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from kfdyn.estimation.nonlinear.recursions import halves, sigma_points


@pytest.mark.parametrize("plain", [False, True])
def test_halves_of_a_step(plain):
    used = (halves.linearly_corrected, halves.corrected, halves.predicted)
    linearly_corrected, corrected, predicted = (f.plain if plain else f for f in used)
    rng = np.random.default_rng(0)
    rows, n, m, p = 3, 5, 4, 2
    A, F = rng.normal(size=(2, rows, n, n))
    P, H, T = A @ A.transpose(0, 2, 1), rng.normal(size=(rows, m, n)), rng.normal(size=(rows, m))
    B, Q, R = rng.normal(size=(rows, n, p)), np.diag([1.0, 0.0]), rng.normal(size=(rows, m, m))
    R = R @ R.transpose(0, 2, 1)
    C, D = np.empty((rows, m, n)), np.empty((rows, m, m))
    rest = [np.empty(size) for size in (rows * (n + 2 * m + 2), rows * n * n, rows * m * m, n * m)]
    given = (P.ravel(), H.ravel(), R.ravel(), m * m, C.ravel(), D.ravel(), T.ravel(), np.ones(rows * m, bool))
    assert linearly_corrected(*given, *rest, n, m, rows) == -1
    np.testing.assert_allclose(C, H @ P, rtol=1e-12)
    np.testing.assert_allclose(D, H @ P @ H.transpose(0, 2, 1) + R, rtol=1e-11)
    np.testing.assert_array_equal(D, D.transpose(0, 2, 1))
    seen = np.ones((rows, m), bool)
    seen[1, 2], seen[2] = False, False
    T[~seen] = np.nan
    found, P_plus, L, work = (
        np.empty((rows, n + 2 * m + 2)),
        np.empty((rows, n, n)),
        np.empty((rows, m, m)),
        np.empty(n * m),
    )
    flat = (a.ravel() for a in (P, C, D, T, seen, found, P_plus, L))
    assert corrected(*flat, work, n, m, rows) == -1
    for b in range(rows):
        s = seen[b]
        gain = C[b][s].T @ np.linalg.inv(D[b][np.ix_(s, s)]) if s.any() else np.zeros((n, 0))
        np.testing.assert_allclose(found[b, :n], gain @ T[b, s], atol=1e-10)
        np.testing.assert_allclose(P_plus[b], P[b] - gain @ C[b][s], atol=1e-10)
        nu = np.linalg.solve(D[b][np.ix_(s, s)], T[b, s])
        np.testing.assert_allclose(found[b, n : n + m], np.where(s, T[b], 0.0))
        np.testing.assert_allclose(found[b, n + m : n + 2 * m][s], nu, atol=1e-10)
        np.testing.assert_allclose(found[b, -2], T[b, s] @ nu, atol=1e-10)
        normal = multivariate_normal(np.zeros(s.sum()), D[b][np.ix_(s, s)]).logpdf(T[b, s]) if s.any() else 0.0
        np.testing.assert_allclose(found[b, -1], normal, atol=1e-10)
        np.testing.assert_allclose(
            2 * np.log(np.diag(L[b])).sum(), np.linalg.slogdet(D[b][np.ix_(s, s)])[1], atol=1e-10
        )
    again = np.empty_like(found), np.empty_like(P_plus)
    given = (P.ravel(), H.ravel(), R.ravel(), m * m, np.empty(C.size), np.empty(D.size), T.ravel(), seen.ravel())
    linearly_corrected(*given, *(a.ravel() for a in again), np.empty(L.size), np.empty(n * m), n, m, rows)
    np.testing.assert_allclose(again[0], found, atol=1e-10)
    np.testing.assert_allclose(again[1], P_plus, atol=1e-10)
    out, work = np.empty((rows, n, n)), np.empty(2 * n * n)
    predicted(F.ravel(), P.ravel(), B.ravel(), Q.ravel(), 0, out.ravel(), work, n, p, rows)
    np.testing.assert_allclose(out, F @ P @ F.transpose(0, 2, 1) + B @ Q @ B.transpose(0, 2, 1), rtol=1e-11)
    np.testing.assert_array_equal(out, out.transpose(0, 2, 1))
    D[2, 1, 1] = 0.0
    seen[2] = True
    T[2] = 0.0
    flat = (a.ravel() for a in (P, C, D, T, seen, found, P_plus, L))
    assert corrected(*flat, np.empty(n * m), n, m, rows) == 2 * m + 1


@pytest.mark.parametrize("plain", [False, True])
def test_sigma_points_and_their_moments(plain):
    spread, moments = (f.plain if plain else f for f in (sigma_points.spread, sigma_points.moments))
    rng = np.random.default_rng(1)
    rows, d, gamma = 2, 3, 1.7
    A = rng.normal(size=(rows, d, d))
    P = A @ A.transpose(0, 2, 1)
    offsets = np.empty((rows, 2 * d + 1, d))
    assert spread(P.ravel(), gamma, offsets.ravel(), np.empty(d * d), d, rows) == -1
    columns = gamma * np.linalg.cholesky(P).transpose(0, 2, 1)
    zero = np.zeros((rows, 1, d))
    np.testing.assert_allclose(offsets, np.concatenate([zero, columns, -columns], axis=1), atol=1e-12)
    P[1, 1, 1] = -1.0
    assert spread(P.ravel(), gamma, offsets.ravel(), np.empty(d * d), d, rows) == 1
    size, n = 5, 2
    points, mean_weights = rng.normal(size=(rows, size, n)), np.array([-999.0, 250.0, 250.0, 250.0, 250.0])
    cov_weights, base = rng.normal(size=size), rng.normal(size=(rows, n, n))
    base = base + base.transpose(0, 2, 1)
    mean, away, cov = np.empty((rows, n)), np.empty((rows, size, n)), np.empty((rows, n, n))
    flat = (a.ravel() for a in (points, mean_weights, cov_weights, base))
    moments(*flat, n * n, mean.ravel(), away.ravel(), cov.ravel(), size, n, rows)
    np.testing.assert_allclose(mean, np.einsum("s,rsi->ri", mean_weights, points), atol=1e-11)
    np.testing.assert_allclose(away, points - mean[:, None], atol=1e-11)
    np.testing.assert_allclose(cov, base + np.einsum("s,rsi,rsj->rij", cov_weights, away, away), rtol=1e-11)
    np.testing.assert_array_equal(cov, cov.transpose(0, 2, 1))
