"""Covariances that have settled are copied: the numbers are those of a filter that never stops, and what has not
settled goes on, however slowly it moves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_models import random_matrix

import kfdyn as kf


def plain(F, H, Q, R, P, seen):
    """P, P⁺ and G of every step by the textbook (Joseph's form), and S by Rauch, Tung and Striebel."""
    before, after, gains = [], [], []
    for k in range(len(H)):
        rows = H[k][seen[k]]
        D = rows @ P @ rows.T + R[k][np.ix_(seen[k], seen[k])]
        G = np.linalg.solve(D, rows @ P).T
        left = np.eye(len(P)) - G @ rows
        P_plus = left @ P @ left.T + G @ R[k][np.ix_(seen[k], seen[k])] @ G.T
        before.append(P)
        after.append(P_plus)
        gains.append(G)
        if k < len(F):
            P = F[k] @ P_plus @ F[k].T + Q[k]
    S = [after[-1]]
    for k in reversed(range(len(F))):
        J = np.linalg.solve(before[k + 1], F[k] @ after[k]).T
        S.append(after[k] + J @ (S[-1] - before[k + 1]) @ J.T)
    return np.array(before), np.array(after), gains, np.array(S[::-1])


def chain(n, m, N, seed=0, damping=0.6):
    rng = np.random.default_rng(seed)
    F, H = damping * np.linalg.qr(rng.normal(size=(n, n)))[0], random_matrix(rng, m, n)
    return [np.repeat(block[None], N, axis=0) for block in (F, H, np.eye(n), np.eye(m))]


def expect_right(F, H, Q, R, T):
    n, N = F.shape[1], len(H)
    ss = kf.StateSpace.chain(F[:-1], H, Q[:-1], R, np.zeros(n), 2 * np.eye(n))
    filt = kf.kalman_filter(ss, T)
    smooth = kf.bryson_frazier(filt)
    P, P_plus, G, S = plain(F[:-1], H, Q[:-1], R, 2 * np.eye(n), ~np.isnan(T))
    for mine, want in ((filt.P, P), (filt.P_plus, P_plus), (smooth.S, S)):
        assert_allclose(mine.flat.reshape(N, n, n), want, rtol=0, atol=1e-12 * np.abs(want).max())
    for k in range(N):
        assert_allclose(filt.G[k][:, ~np.isnan(T[k])], G[k], rtol=0, atol=1e-12)
    return filt.P.flat.reshape(N, n, n), smooth.Lambda.flat.reshape(N, n, n)


@pytest.mark.parametrize(("n", "m"), [(13, 1), (13, 6), (20, 0)])
def test_a_constant_model_stops_where_it_has_settled(n, m):
    F, H, Q, R = chain(n, m, 300)
    P, Lambda = expect_right(F, H, Q, R, np.zeros((300, m)))
    assert (P[-1] == P[-100]).all()
    if m:
        assert (Lambda[80] == Lambda[100]).all()


def test_what_changes_later_is_computed_again():
    F, H, Q, R = chain(13, 6, 560)
    T = np.zeros((560, 6))
    R[200:] *= 3.0
    F[280] *= 0.5
    Q[370] *= 2.0
    H[440, 2, 3] += 1e-9  # no more than that
    T[520, 1] = np.nan
    P, _ = expect_right(F, H, Q, R, T)
    for first, last in ((190, 199), (270, 280), (360, 370), (430, 439), (510, 519)):  # settled before each of them
        assert (P[first] == P[last]).all()
    for k in (201, 281, 371, 521):
        assert not (P[k] == P[k - 1]).all()


def test_what_turns_and_comes_round_again_has_not_settled():
    """Nobody measures it and nothing drives it: P is the same every eight steps, and another in between."""
    angle = np.pi / 8
    F = np.eye(12)
    F[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    H, Q = np.eye(12)[2:], np.diag([0.0, 0, *np.ones(10)])
    ss = kf.StateSpace.chain(F, H, Q, np.eye(10), np.zeros(12), np.diag([4.0, *np.ones(11)]), steps=400)
    P = kf.riccati(ss).P
    turned = np.linalg.matrix_power(F, 399) @ np.diag([4.0, *np.ones(11)]) @ np.linalg.matrix_power(F, 399).T
    assert_allclose(P[399][:2, :2], turned[:2, :2], rtol=0, atol=1e-12)


def test_what_creeps_goes_on():
    """A variance that grows at each step by four roundings of itself, which one node does not tell from none."""
    F, H, step = np.eye(12), np.eye(12)[1:], 2.0**-50
    Q = np.diag([step, *np.ones(11)])
    ss = kf.StateSpace.chain(F, H, Q, np.eye(11), np.zeros(12), np.eye(12), steps=4000)
    assert kf.riccati(ss).P[3999][0, 0] == 1.0 + 3999 * step
