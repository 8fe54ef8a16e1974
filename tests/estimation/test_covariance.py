"""Every closed-form covariance against the dense linear maps that define the quantities."""

import numpy as np
import pytest
from hypothesis import given
from random_models import cases, close, fast

import kfdyn as kf


def filter_maps(case):
    """Each quantity as a linear map of (w, r), read off the engine-free recursions on unit vectors.

    The joint noise (w, r) has covariance diag(Q, R); a quantity y = L (w, r) then has covariance L diag(Q, R) L*. The
    estimates come from dense conditional means, not from the filter.
    """
    dense = case.dense(xi=np.zeros_like(case.xi), eta=np.zeros_like(case.eta))
    n, m = dense.phi.shape[0], dense.H.shape[0]
    seen = ~np.isnan(case.T)
    X = np.hstack([dense.phi, np.zeros((n, m))])
    T = np.hstack([dense.H @ dense.phi, np.eye(m)])
    noise = np.zeros((n + m, n + m))
    noise[:n, :n], noise[n:, n:] = dense.Q, dense.R
    joint = T @ noise @ T.T
    inverse = np.zeros((m, m))
    inverse[np.ix_(seen, seen)] = np.linalg.inv(joint[np.ix_(seen, seen)])
    a = inverse @ T
    costate = dense.phi.T @ dense.H.T @ a
    smoothed = X @ noise @ T.T @ a
    Z, eps = np.zeros_like(X), np.zeros_like(T)
    start, out = case.ss.arrays.state, case.ss.arrays.output
    for k in range(len(case.ss)):
        outboard = np.concatenate([np.arange(out[j], out[j + 1]) for j in case.ss.tree.descendants(k)] or [[]])
        rows = outboard.astype(int)[seen[outboard.astype(int)]]
        own = slice(start[k], start[k + 1])
        gain = np.linalg.solve(joint[np.ix_(rows, rows)], T[rows] @ noise @ X[own].T).T if rows.size else None
        Z[own] = gain @ T[rows] if gain is not None else 0.0
        here = slice(out[k], out[k + 1])
        eps[here] = (T[here] - dense.H[here, own] @ Z[own]) * seen[here, None]
    return noise, {
        "x": X, "T": T, "z": Z, "filter_error": X - Z, "eps": eps, "costate": costate, "a": a,
        "smoothed_error": X - smoothed,
    }  # fmt: skip


@fast
@given(cases(missing=True))
def test_every_covariance_is_that_of_its_quantity(case):
    """ATBI:cov-x, ATBI:cov-T, cov-z, ATBI:cov-eps, ATBI:cov-nu, cov-ez; R86:9.17-9.18, 9.19-9.21; THEORY section 5."""
    filt = kf.kalman_filter(case.ss, case.T)
    cov = kf.Covariances(filt.covariances)
    noise, maps = filter_maps(case)
    D = maps["eps"] @ noise @ maps["eps"].T
    close(cov.nu.dense(), np.linalg.pinv(D, rcond=1e-9, hermitian=True) if D.size else D)
    for name, linear in maps.items():
        whole = linear @ noise @ linear.T
        quantity = getattr(cov, name)
        close(quantity.dense(), whole)
        start = np.concatenate([[0], np.cumsum(quantity.diagonal.rows)])
        for i in range(len(case.ss)):
            own = slice(start[i], start[i + 1])
            close(quantity.diagonal[i], whole[own, own])
            for j in range(len(case.ss)):
                close(quantity.block(i, j), whole[own, start[j] : start[j + 1]])


@fast
@given(cases(noise=False))
def test_innovations_are_white_over_the_whole_tree(case):
    """ATBI:cov-eps: block-diagonal, R = 0 included."""
    noise, maps = filter_maps(case)
    D = maps["eps"] @ noise @ maps["eps"].T
    close(D, kf.riccati(case.ss).D.dense())


@fast
@given(cases(noise=False))
def test_three_forms_of_the_covariance_of_the_estimate(case):
    """ATBI:cov-z at R = 0: φKDK*φ* = φ̃(P−P⁺)φ̃* = φ̃τPτ*φ̃* (the printed D⁻¹ is an erratum)."""
    op = kf.Operators(case.ss)
    phi, strict, K, D = (x.dense() for x in (op.phi, op.phi_strict, op.K, op.D))
    P, P_plus, tau = op.P.dense(), op.P_plus.dense(), op.proj.dense()
    whole = kf.Covariances(case.ss).z.dense()
    close(phi @ K @ D @ K.T @ phi.T, whole)
    close(strict @ (P - P_plus) @ strict.T, whole)
    close(strict @ tau @ P @ tau.T @ strict.T, whole)


@fast
@given(cases())
def test_trace_and_sparsity_of_the_output_covariance(case):
    """SKO:trace, mass-sparsity, mass-decomp: the trace needs only diagonal blocks; unrelated nodes do not correlate."""
    cov = kf.Covariances(case.ss)
    whole = kf.Operators(case.ss).output_cov.dense()
    close(sum(np.trace(block) for block in cov.T.diagonal), np.trace(whole))
    out, tree = case.ss.arrays.output, case.ss.tree
    for i in range(len(case.ss)):
        for j in range(len(case.ss)):
            if tree.nearest_common_ancestor(i, j) not in (i, j):
                assert not whole[out[i] : out[i + 1], out[j] : out[j + 1]].any()


@fast
@given(cases())
def test_composite_above_articulated_above_own(case):
    """ATBI:order, lyapunov-riccati: ℛ ⪰ P ⪰ Q and P ⪰ P⁺ ⪰ 0."""
    cov, cross = kf.riccati(case.ss), kf.Covariances(case.ss).x.diagonal
    for k in range(len(case.ss)):
        for larger, smaller in ((cross[k], cov.P[k]), (cov.P[k], case.ss.Q[k]), (cov.P[k], cov.P_plus[k])):
            assert np.linalg.eigvalsh(larger - smaller)[0] >= -1e-12 * max(1, np.abs(larger).max())
        assert np.linalg.eigvalsh(cov.P_plus[k])[0] >= -1e-12 * max(1, np.abs(cov.P[k]).max())


QUANTITIES = ("x", "T", "z", "filter_error", "eps", "nu", "costate", "a", "smoothed_error")


@pytest.mark.parametrize("name", QUANTITIES)
def test_negative_nodes_count_from_the_end(name):
    """As in every sequence, and as ``diagonal[-1]`` does; they once were taken for unrelated nodes, hence zero."""
    parts = [np.eye(2), np.eye(2), None], [np.ones((1, 2))] * 3, [np.eye(2)] * 3, [np.eye(1)] * 3
    covariance = getattr(kf.Covariances(kf.StateSpace([2, 2, -1], *parts)), name)
    for i in range(3):
        for j in range(3):
            expected = covariance.block(i, j)
            for a, b in ((i - 3, j), (i, j - 3), (i - 3, j - 3)):
                np.testing.assert_array_equal(covariance.block(a, b), expected)
    assert covariance.block(-1, -1).any()
    for i, j in ((3, 0), (0, -4)):
        with pytest.raises(IndexError, match="out of range for 3 nodes"):
            covariance.block(i, j)


@pytest.mark.parametrize("angle", [1e-2, 1e-5, 1e-7, 1e-8, 1e-9])
def test_smoothed_covariance_where_two_null_directions_almost_meet(angle):
    """Q(p) and φP⁺φ* each miss a direction, an angle apart: P(p) is regular by angle², its inverse is of no use."""
    from exact import exact_smoother

    rng = np.random.default_rng(1)
    U = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    roots = [U[:, 1:] * [0.3, 1.0, 2.0], (U @ turn)[:, 1:] * [2.0, 0.5, 1.0]]
    H = [rng.normal(size=(1, 4)), rng.normal(size=(2, 4)) * [[1.0], [1.0]]]
    ss = kf.StateSpace([1, -1], [np.eye(4), None], H, [root @ root.T for root in roots])
    S, exact = kf.riccati(ss).smoothed.S, exact_smoother(ss, np.zeros(3)).S
    for k in range(2):
        unit = np.sqrt(np.diag(kf.riccati(ss).P[k]))
        assert (np.abs((S[k] - exact[k]).astype(float)) / np.outer(unit, unit)).max() < 1e-13
