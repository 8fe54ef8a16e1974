"""The compiled halves of a filter's step against dense algebra, compiled and as plain Python."""

import numpy as np
import pytest

from kfdyn.estimation.nonlinear import recursions


@pytest.mark.parametrize("plain", [False, True])
def test_halves_of_a_step(plain):
    innovation, corrected, predicted = (
        f.plain if plain else f for f in (recursions.innovation, recursions.corrected, recursions.predicted)
    )
    rng = np.random.default_rng(0)
    rows, n, m, p = 3, 5, 4, 2
    A, F = rng.normal(size=(2, rows, n, n))
    P, H, T = A @ A.transpose(0, 2, 1), rng.normal(size=(rows, m, n)), rng.normal(size=(rows, m))
    B, Q, R = rng.normal(size=(rows, n, p)), np.diag([1.0, 0.0]), rng.normal(size=(rows, m, m))
    R = R @ R.transpose(0, 2, 1)
    C, D = np.empty((rows, n, m)), np.empty((rows, m, m))
    innovation(P.ravel(), H.ravel(), R.ravel(), m * m, C.ravel(), D.ravel(), n, m, rows)
    np.testing.assert_allclose(C, P @ H.transpose(0, 2, 1), rtol=1e-12)
    np.testing.assert_allclose(D, H @ P @ H.transpose(0, 2, 1) + R, rtol=1e-11)
    np.testing.assert_array_equal(D, D.transpose(0, 2, 1))
    seen = np.ones((rows, m), bool)
    seen[1, 2], seen[2] = False, False
    T[~seen] = np.nan
    found, P_plus, L, work = (
        np.empty((rows, n + 2 * m + 1)),
        np.empty((rows, n, n)),
        np.empty((rows, m, m)),
        np.empty(n * m),
    )
    flat = (a.ravel() for a in (P, C, D, T, seen, found, P_plus, L))
    assert corrected(*flat, work, n, m, rows) == -1
    for b in range(rows):
        s = seen[b]
        gain = C[b][:, s] @ np.linalg.inv(D[b][np.ix_(s, s)]) if s.any() else np.zeros((n, 0))
        np.testing.assert_allclose(found[b, :n], gain @ T[b, s], atol=1e-10)
        np.testing.assert_allclose(P_plus[b], P[b] - gain @ C[b][:, s].T, atol=1e-10)
        nu = np.linalg.solve(D[b][np.ix_(s, s)], T[b, s])
        np.testing.assert_allclose(found[b, n : n + m], np.where(s, T[b], 0.0))
        np.testing.assert_allclose(found[b, n + m : n + 2 * m][s], nu, atol=1e-10)
        np.testing.assert_allclose(found[b, -1], T[b, s] @ nu, atol=1e-10)
        np.testing.assert_allclose(
            2 * np.log(np.diag(L[b])).sum(), np.linalg.slogdet(D[b][np.ix_(s, s)])[1], atol=1e-10
        )
    out, work = np.empty((rows, n, n)), np.empty(2 * n * n)
    predicted(F.ravel(), P.ravel(), B.ravel(), Q.ravel(), 0, out.ravel(), work, n, p, rows)
    np.testing.assert_allclose(out, F @ P @ F.transpose(0, 2, 1) + B @ Q @ B.transpose(0, 2, 1), rtol=1e-11)
    np.testing.assert_array_equal(out, out.transpose(0, 2, 1))
    D[2, 1, 1] = 0.0
    seen[2] = True
    T[2] = 0.0
    flat = (a.ravel() for a in (P, C, D, T, seen, found, P_plus, L))
    assert corrected(*flat, np.empty(n * m), n, m, rows) == 2 * m + 1
