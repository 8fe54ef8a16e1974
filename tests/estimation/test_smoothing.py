"""The smoother against dense conditioning and against Rauch–Tung–Striebel: x̂, λ, λ⁺, a, Λ, S."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_models import cases, close, fast, few, random_case

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.estimation.dense import dense_posterior
from kfdyn.estimation.inference import filtered, smoothed

methods = st.sampled_from(["block", "univariate"])


def run(case, method="block"):
    filt = kf.kalman_filter(case.ss, case.T, case.xi, case.eta, method=method)
    return filt, kf.bryson_frazier(case.ss, filt)


@given(cases(missing=True), methods)
@example(
    random_case(7, 7, m=1), "block"
)  # one output a node, as in R86: scalar divisions, other formulas of the engine
@example(random_case(8, 7, m=1, noise=False), "block")
@fast
def test_smoother_is_the_posterior(case, method):
    """R86:8.10-8.13, R86:9.13-9.16, R86:9.17-9.18, R86:9.19-9.21. With ξ, η and missing outputs, any Q, R and φ."""
    _, smooth = run(case, method)
    model = case.dense()
    posterior = dense_posterior(model, case.T)
    close(smooth.x.flat, posterior.mean)
    close(smooth.a, posterior.a)
    assert not smooth.a[np.isnan(case.T)].any()
    close(smooth.costate.flat, posterior.costate)
    close(smooth.costate_plus.flat, posterior.costate - case.eta - posterior.a @ model.H)
    for k, x in enumerate(model.states):
        close(smooth.S[k], posterior.cov[x, x])
        close(smooth.Lambda[k], posterior.costate_cov[x, x])
        above = case.ss.tree.parent[k]
        expected = case.ss.phi[k].T @ posterior.costate[model.states[above]] if above >= 0 else np.zeros(case.ss.n[k])
        close(smooth.costate_plus[k], expected)


@given(cases(noise=False), methods)
@fast
def test_no_noise_at_all(case, method):
    """R = 0 everywhere and Q = 0 at many nodes: P is singular, no inverse of it exists, and none is needed."""
    _, smooth = run(case, method)
    model = case.dense()
    posterior = dense_posterior(model, case.T)
    close(smooth.x.flat, posterior.mean)
    close(smooth.a, posterior.a)
    close(smooth.costate.flat, posterior.costate)
    for k, x in enumerate(model.states):
        close(smooth.S[k], posterior.cov[x, x])
        close(case.ss.H[k] @ smooth.x[k], case.ss.output_blocks(case.T)[k])  # exact outputs are met
        close(case.ss.H[k] @ smooth.S[k], np.zeros((case.ss.m[k], case.ss.n[k])))


@given(cases(missing=True))
@fast
def test_two_ways_to_every_quantity(case):
    """R86:8.1, ATBI:smoothed, ATBI:theta-ddot, ATBI:alpha. x̂ = z + Pλ, a = ν − K*λ(p) − G*η, λ = τ̄*(λ⁺ + η) + H*ν."""
    filt, smooth = run(case)
    ss = case.ss
    eta, nu, a = ss.state_blocks(case.eta), ss.output_blocks(filt.nu), ss.output_blocks(smooth.a)
    for k, p in enumerate(ss.tree.parent):
        close(smooth.x[k], filt.z[k] + filt.P[k] @ smooth.costate[k])
        close(smooth.x[k], filt.z_plus[k] + filt.P_plus[k] @ smooth.costate_plus[k])
        pull = filt.K[k].T @ smooth.costate[p] if p >= 0 else 0.0
        close(a[k], nu[k] - pull - filt.G[k].T @ eta[k])
        bar = np.eye(ss.n[k]) - filt.G[k] @ ss.H[k]
        close(smooth.costate[k], bar.T @ (smooth.costate_plus[k] + eta[k]) + ss.H[k].T @ nu[k])
        close(smooth.S[k], filt.P[k] - filt.P[k] @ smooth.Lambda[k] @ filt.P[k])


@given(cases(missing=True))
@fast
def test_smoothed_states_solve_the_model(case):
    """The smoothed noise w = ξ + Qλ, r = Ra drives the model to x̂ and, where observed, to T (R86 (6.1)–(6.6))."""
    _, smooth = run(case)
    ss = case.ss
    a, T, xi = ss.output_blocks(smooth.a), ss.output_blocks(case.T), ss.state_blocks(case.xi)
    for k in range(len(ss)):
        driven = xi[k] + ss.Q[k] @ smooth.costate[k] + sum(ss.phi[j] @ smooth.x[j] for j in ss.tree.children(k))
        close(smooth.x[k], driven)
        seen = ~np.isnan(T[k])
        close((ss.H[k] @ smooth.x[k] + ss.R[k] @ a[k])[seen], T[k][seen])


def rauch_tung_striebel(ss, T, xi):
    """Textbook filter, then x̂(k) = z⁺ + J(x̂(p) − z(p)), J = P⁺φ*P(p)^-1: needs every P(p) invertible."""
    N, parent, order = len(ss), ss.tree.parent, ss.tree.order
    z, P, x, S = list(ss.state_blocks(xi.copy())), [q.copy() for q in ss.Q], [None] * N, [None] * N
    updated = {}
    for k in order:
        y, H, R = ss.output_blocks(T)[k], ss.H[k], ss.R[k]
        gain = P[k] @ H.T @ np.linalg.inv(H @ P[k] @ H.T + R)
        bar = np.eye(len(z[k])) - gain @ H
        updated[k] = z[k] + gain @ (y - H @ z[k]), bar @ P[k] @ bar.T + gain @ R @ gain.T
        if parent[k] >= 0:
            z[parent[k]] = z[parent[k]] + ss.phi[k] @ updated[k][0]
            P[parent[k]] = P[parent[k]] + ss.phi[k] @ updated[k][1] @ ss.phi[k].T
    for k in order[::-1]:
        z_plus, P_plus = updated[k]
        if parent[k] < 0:
            x[k], S[k] = z_plus, P_plus
            continue
        p = parent[k]
        J = np.linalg.solve(P[p], ss.phi[k] @ P_plus).T
        x[k] = z_plus + J @ (x[p] - z[p])
        S[k] = P_plus + J @ (S[p] - P[p]) @ J.T
    return x, S


@given(cases(full_Q=True))
@fast
def test_bryson_frazier_is_rauch_tung_striebel(case):
    """Where RTS exists (Q > 0, so P > 0; R still singular or zero at some nodes), on trees too."""
    filt = kf.kalman_filter(case.ss, case.T, case.xi)
    smooth = kf.bryson_frazier(case.ss, filt)
    x, S = rauch_tung_striebel(case.ss, case.T, case.xi)
    for k in range(len(case.ss)):
        close(smooth.x[k], x[k])
        close(smooth.S[k], S[k])


def test_where_rauch_tung_striebel_fails():
    """Q = 0 and R = 0 together: P is exactly singular, RTS has nothing to invert, the answer is plain."""
    I, none = np.eye(2), np.zeros((0, 2))
    H = [np.array([[1.0, 0.0]]), none, np.array([[1.0, 0.0]])]
    F = np.array([[1.0, 1.0], [0.0, 1.0]])  # position and velocity, seen exactly at times 0 and 2
    ss = kf.StateSpace([1, 2, -1], [F, F, None], H, [I, 0 * I, 0 * I])
    filt = kf.kalman_filter(ss, [1.0, 5.0])
    smooth = kf.bryson_frazier(ss, filt)
    assert np.linalg.matrix_rank(filt.P[1]) == 1
    for k, expected in enumerate([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]]):
        np.testing.assert_allclose(smooth.x[k], expected, rtol=1e-15)
        np.testing.assert_allclose(smooth.S[k], 0 * I, atol=1e-15)


@pytest.mark.filterwarnings("ignore::kfdyn.errors.LostDigitsWarning")  # where outputs nearly repeat each other
@given(cases(noise=False))
@few
def test_noise_tends_to_none(case):
    """R → 0 is a regular limit: the answers at tR approach those at R = 0 linearly, t by t.

    Halving t halves the error up to O(t²), so t = 1e-4 must give a ratio within a few t·‖D^-1‖ ≤ 20t of 2; the
    error itself stays far above rounding.
    """
    ss, rng = case.ss, np.random.default_rng(1)
    roots = [rng.normal(size=(m, m)) for m in ss.m]
    phi = [b if p >= 0 else None for p, b in zip(ss.tree.parent, ss.phi)]

    def answer(t):
        noisy = kf.StateSpace(ss.tree, phi, ss.H, ss.Q, [t * B @ B.T for B in roots])
        filt = kf.kalman_filter(noisy, case.T, case.xi, case.eta)
        smooth = kf.bryson_frazier(noisy, filt)
        return np.concatenate(
            [filt.P.flat, filt.G.flat, filt.D.flat, smooth.x.flat, smooth.a, smooth.S.flat, smooth.Lambda.flat]
        )

    limit = answer(0.0)
    close(limit[: ss.Q.flat.size], kf.riccati(ss).P.flat)
    far, near = answer(2e-4) - limit, answer(1e-4) - limit
    if ss.n_outputs:
        assert 1e-7 < np.abs(near).max() < 10.0
        close(np.linalg.norm(far) / np.linalg.norm(near), 2.0, 1)
    tiny = np.abs(answer(1e-12) - limit).max()  # 1e-8 of the error at 1e-4, and rounding
    assert tiny < 2e-8 * np.abs(near).max() + 1e-10 * (1 + np.abs(limit).max())


@given(cases(missing=True), st.sampled_from([(), (17,)]))
@few
def test_large_results_are_swept_when_asked_for(case, batch):
    T = case.T + np.random.default_rng(0).normal(size=(*batch, case.T.size))
    filt = kf.kalman_filter(case.ss, T, case.xi, case.eta)
    stored = kf.bryson_frazier(case.ss, filt)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smoothed, "STORED_NUMBERS", 0)
        patch.setattr(filtered, "STORED_NUMBERS", 0)
        again = kf.kalman_filter(case.ss, T, case.xi, case.eta)
        later = kf.bryson_frazier(case.ss, again)
    assert "_states" in stored.__dict__
    assert "_states" not in later.__dict__
    np.testing.assert_array_equal(later.a, stored.a)
    for name in ("x", "costate", "costate_plus"):
        np.testing.assert_array_equal(getattr(later, name).flat, getattr(stored, name).flat)


def test_covariances_can_be_switched_off():
    case = random_case(0, 6)
    filt = kf.kalman_filter(case.ss, case.T)
    smooth = kf.bryson_frazier(case.ss, filt, covariances=False)
    assert "smoothed" not in filt.covariances.__dict__  # nothing was computed
    for name in ("S", "Lambda", "smoothed_state_cov", "costate_cov"):
        with pytest.raises(ModelError, match="switched off; call bryson_frazier with covariances=True"):
            getattr(smooth, name)
    np.testing.assert_array_equal(smooth.x.flat, kf.bryson_frazier(case.ss, filt).x.flat)
    assert "smoothed" in filt.covariances.__dict__


def test_another_models_filter_is_refused():
    one, two = random_case(0, 4), random_case(0, 4)
    with pytest.raises(ModelError, match="another model"):
        kf.bryson_frazier(two.ss, kf.kalman_filter(one.ss, one.T))


def test_words_and_repr():
    _, smooth = run(random_case(1, 4))
    assert smooth.smoothed_state is smooth.x
    assert smooth.smoothed_state_cov is smooth.S
    assert smooth.costate_cov is smooth.Lambda
    assert smooth.ss is smooth.filt.ss
    assert repr(smooth) == "Smoothed(4 nodes, 12 states, with covariances)"
    with pytest.raises(AttributeError):
        smooth.a = None
