"""The Riccati gather against dense conditioning: P, P⁺, D, G, K, log det."""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_models import Case, cases, close, fast, random_case

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.dense import dense_filter, dense_posterior
from kfdyn.estimation.inference.riccati import riccati

QUANTITIES = ("P", "P_plus", "D", "G")


def pattern(case):
    return ~np.isnan(case.T)


@given(cases(missing=True), st.sampled_from(["block", "univariate"]))
@fast
def test_covariances_are_conditional(case, method):
    """R86:8.2-8.9, R86:9.6, R86:9.8-9.9, SKO:riccati-gather, ATBI:gather-P. Missing outputs whole and in part."""
    cov, dense = kf.riccati(case.ss, pattern(case), method), dense_filter(case.dense(), case.T)
    for name in QUANTITIES:
        for mine, theirs in zip(getattr(cov, name), getattr(dense, name), strict=True):
            close(mine, theirs)
    for k, p in enumerate(case.ss.tree.parent):
        close(cov.K[k], case.ss.phi[k] @ dense.G[k] if p >= 0 else np.zeros((0, case.ss.m[k])))


@given(cases(missing=True), st.sampled_from(["block", "univariate"]))
@fast
def test_logdet_of_what_was_observed(case, method):
    """SKO:determinant. Σ log det D(k) = log det 𝓜, against a dense determinant."""
    seen = pattern(case)
    sign, logdet = np.linalg.slogdet(case.dense().output_cov[np.ix_(seen, seen)])
    assert sign == 1
    close(kf.riccati(case.ss, seen, method).logdet, logdet)


@given(cases(missing=True))
@fast
def test_output_by_output_is_the_block(case):
    """Full, singular and zero R, parts missing: scalar divisions give every quantity of the block form."""
    block, scalar = (kf.riccati(case.ss, pattern(case), method) for method in ("block", "univariate"))
    for name in (*QUANTITIES, "K", "D_factor"):
        close(getattr(scalar, name).flat, getattr(block, name).flat)
    for name in ("Lambda", "S"):
        close(getattr(scalar.smoothed, name).flat, getattr(block.smoothed, name).flat)


@given(cases(missing=True), st.sampled_from(["block", "univariate"]))
@fast
def test_symmetric_to_the_last_bit(case, method):
    cov = kf.riccati(case.ss, pattern(case), method)
    for blocks in (cov.P, cov.P_plus, cov.D, cov.smoothed.Lambda, cov.smoothed.S):
        for block in blocks:
            np.testing.assert_array_equal(block, block.T)


@given(cases(missing=True), st.sampled_from(["block", "univariate"]))
@fast
def test_factor_of_D(case, method):
    """L L* = D on what was seen and the identity elsewhere; L is lower triangular with a positive diagonal."""
    ss, seen = case.ss, pattern(case)
    cov = kf.riccati(ss, seen, method)
    for k in range(len(ss)):
        mask = seen[ss.arrays.output[k] : ss.arrays.output[k + 1]]
        L, D = cov.D_factor[k], np.eye(ss.m[k])
        D[np.ix_(mask, mask)] = cov.D[k][np.ix_(mask, mask)]
        close(L @ L.T, D)
        np.testing.assert_array_equal(L, np.tril(L))
        assert (np.diag(L) > 0).all()


def _with_a_stranger(ss):
    """The same model beside a lone node of another size, which no other node sees: makes every size run-time."""
    tree, odd = ss.tree.parent.tolist(), int(ss.n[0]) + 1
    return kf.StateSpace(
        [*tree, -1],
        [*(b if p >= 0 else None for p, b in zip(tree, ss.phi)), None],
        [*ss.H, np.zeros((0, odd))],
        [*ss.Q, np.eye(odd)],
        [*ss.R, np.zeros((0, 0))],
    )


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (6, 1)])
@pytest.mark.parametrize("noise", [True, False])
def test_sizes_known_to_the_compiler(n, m, noise):
    """From 64 nodes on a uniform size is compiled in: the same numbers as at run time, and as dense algebra."""
    case = random_case(n + 10 * m, 70, n=n, m=m, noise=noise)
    fixed, ragged = kf.riccati(case.ss), kf.riccati(_with_a_stranger(case.ss))
    assert any(fixed.sizes)
    assert not any(ragged.sizes)
    for name in QUANTITIES:
        flat = getattr(fixed, name).flat
        np.testing.assert_allclose(getattr(ragged, name).flat[: flat.size], flat, rtol=0, atol=1e-12)
    for name in ("Lambda", "S"):
        flat = getattr(fixed.smoothed, name).flat
        np.testing.assert_allclose(getattr(ragged.smoothed, name).flat[: flat.size], flat, rtol=0, atol=1e-12)
    posterior, model = dense_posterior(case.dense(), case.T), case.dense()
    for k, x in enumerate(model.states):
        close(fixed.smoothed.S[k], posterior.cov[x, x])
        close(fixed.smoothed.Lambda[k], posterior.costate_cov[x, x])


@given(cases())
@fast
def test_kept_with_the_model_and_frozen(case):
    ss, seen = case.ss, pattern(case)
    assert kf.riccati(ss) is kf.riccati(ss, seen)
    assert kf.riccati(ss) is kf.kalman_filter(ss, case.T).covariances
    cov = kf.riccati(ss)
    assert cov.smoothed is cov.smoothed
    for blocks in (cov.P, cov.P_plus, cov.D, cov.D_factor, cov.G, cov.smoothed.Lambda, cov.smoothed.S):
        assert not blocks.flat.flags.writeable
    with pytest.raises(AttributeError):
        cov.P = cov.P_plus
    if seen.size:
        seen[0] = False  # the caller's array is not the model's key
        assert kf.riccati(ss).observed.all()


@given(cases())
@fast
def test_no_sight_no_update(case):
    """ATBI:locked. Nothing measured: G = 0, P⁺ = P, Λ = 0 and S is the prior covariance."""
    cov = kf.riccati(case.ss, np.zeros(case.ss.n_outputs, dtype=bool))
    np.testing.assert_array_equal(cov.P_plus.flat, cov.P.flat)
    assert not cov.G.flat.any()
    assert not cov.smoothed.Lambda.flat.any()
    assert cov.logdet == 0.0
    model = case.dense()
    for k, x in enumerate(model.states):
        close(cov.smoothed.S[k], model.state_cov[x, x])


@given(cases(noise=False))
@fast
def test_measured_exactly_and_fully(case):
    """ATBI:free. m_k = n_k with R = 0: G inverts H, P⁺ = 0 (to the bit), D = H P H*."""
    ss = case.ss
    H = [np.linalg.qr(q + 3 * np.eye(len(q)))[0] for q in ss.Q]
    Q = [q + np.eye(len(q)) for q in ss.Q]
    phi = [b if p >= 0 else None for p, b in zip(ss.tree.parent, ss.phi)]
    cov = kf.riccati(kf.StateSpace(ss.tree, phi, H, Q))
    assert not cov.P_plus.flat.any()
    for k in range(len(ss)):
        close(cov.G[k] @ H[k], np.eye(ss.n[k]))
        close(cov.P[k], Q[k])


@given(cases(missing=True))
@fast
def test_order_of_covariances(case):
    """ATBI:order. ℛ ⪰ P ⪰ Q, P ⪰ P⁺ ⪰ S ⪰ 0, with ℛ the dense state covariance."""
    cov, model = kf.riccati(case.ss, pattern(case)), case.dense()
    for k, x in enumerate(model.states):
        chain = [model.state_cov[x, x], cov.P[k], cov.P_plus[k], cov.smoothed.S[k], np.zeros_like(cov.P[k])]
        chain_pairs = [*pairwise(chain), (cov.P[k], case.ss.Q[k])]
        for larger, smaller in chain_pairs:
            assert np.linalg.eigvalsh(larger - smaller)[0] > -1e-10 * max(1.0, np.abs(larger).max())


@given(cases(missing=True))
@example(random_case(7, 7, m=1))  # one output a node, as in R86: scalar divisions, other formulas of the engine
@example(random_case(8, 7, m=1, noise=False))
@fast
def test_alternative_updates(case):
    """R86:8.25, ATBI:crossing. P⁺ = P − GDG* = τ̄P = τ̄Pτ̄* + GRG*, G restricted to what was seen."""
    cov = kf.riccati(case.ss, pattern(case))
    for k in range(len(case.ss)):
        P, G, H, D, R = cov.P[k], cov.G[k], case.ss.H[k], cov.D[k], case.ss.R[k]
        bar = np.eye(len(P)) - G @ H
        close(cov.P_plus[k], P - G @ D @ G.T)
        close(cov.P_plus[k], bar @ P)
        close(cov.P_plus[k], P @ bar.T)
        close(cov.P_plus[k], bar @ P @ bar.T + G @ R @ G.T)


def _named(parent, phi, H, Q, R=None):
    return kf.StateSpace(parent, phi, H, Q, R, names=["tip", "arm", "base"][: len(parent)])


ONE, TWO = np.ones((1, 1)), np.eye(2)
SINGULAR = {
    "a zero row of H": (
        _named([1, 2, -1], np.ones((3, 1, 1)), [ONE, 0 * ONE, ONE], [ONE] * 3),
        r"^node 1 \('arm'\): its innovation variance is 0.*row of H is zero.*remove the output or correct H",
    ),
    "a zero row among others": (
        _named([1, -1], [TWO, None], [TWO, np.array([[1.0, 0], [0, 0]])], [TWO, TWO]),
        r"^output 1 of node 1 \('arm'\): .*row of H is zero",
    ),
    "no process noise anywhere": (
        _named([1, 2, -1], np.ones((3, 1, 1)), [ONE] * 3, [0 * ONE] * 3),
        r"^node 0 \('tip'\): .*give a node outboard of it a process covariance Q, or this output a noise R",
    ),
    "the same output twice": (
        _named([1, -1], [TWO, None], [np.zeros((0, 2)), np.array([[1.0, 2.0], [1.0, 2.0]])], [TWO, TWO]),
        r"^output 1 of node 1 \('arm'\): .*already determine it exactly",
    ),
    "the same output twice, one scaled by a third": (
        _named([1, -1], [TWO, None], [np.zeros((0, 2)), np.array([[1.0, 2.0], [1 / 3, 2 / 3]])], [TWO, TWO]),
        r"^output 1 of node 1 \('arm'\): .*already determine it exactly",
    ),
    "a state known from an earlier exact measurement": (
        _named([1, 2, -1], np.full((3, 1, 1), 0.3), [ONE / 7, np.zeros((0, 1)), ONE], [ONE / 3, 0 * ONE, 0 * ONE]),
        r"^node 2 \('base'\): .*already determine it exactly",
    ),
    "a rotated state known from two earlier exact measurements": (
        _named(
            [1, 2, -1],
            [np.array([[0.6, -0.8], [0.8, 0.6]])] * 2 + [None],
            [np.array([[0.3, 0.1]]), np.array([[-0.2, 0.7]]), np.array([[0.9, 0.4]])],
            [np.array([[2.0, 0.3], [0.3, 1.0]]), 0 * TWO, 0 * TWO],
        ),
        r"^node 2 \('base'\): .*already determine it exactly",
    ),
}


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize("case", SINGULAR)
def test_singular_innovations_are_refused_by_name(case, method):
    ss, message = SINGULAR[case]
    T = np.arange(1.0, ss.n_outputs + 1)
    for call in (lambda: kf.riccati(ss, method=method), lambda: kf.kalman_filter(ss, T, method=method)):
        with pytest.raises(SingularError, match=message):
            call()
    with pytest.raises(SingularError, match=message):
        kf.innovations_factor(ss, method=method)


@pytest.mark.parametrize("case", SINGULAR)
def test_a_little_noise_cures_it(case):
    """The cure the message names works, and the missing-measurement way out works too."""
    ss, _ = SINGULAR[case]
    phi = [b if p >= 0 else None for p, b in zip(ss.tree.parent, ss.phi)]
    cured = kf.StateSpace(ss.tree, phi, ss.H, ss.Q, [1e-3 * np.eye(m) for m in ss.m])
    assert np.isfinite(kf.kalman_filter(cured, np.ones(ss.n_outputs)).llf)
    T = np.full(ss.n_outputs, np.nan)
    filt = kf.kalman_filter(ss, T)
    assert np.isfinite(kf.bryson_frazier(ss, filt).S.flat).all()


def test_units_do_not_decide():
    """Well-posed in any units: variances of 1e-200 are no more singular than those of 1."""
    small = 1e-100
    for scale in (1.0, small):
        ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.full((2, 1, 1), scale**2))
        np.testing.assert_allclose(kf.kalman_filter(ss, [scale, 3 * scale]).eps, [scale, 2 * scale], rtol=1e-15)


def test_bad_arguments():
    case: Case = random_case(0, 3)
    with pytest.raises(ModelError, match="method must be 'block', 'univariate' or 'square_root', not 'qr'"):
        kf.riccati(case.ss, method="qr")
    for observed in (np.ones(case.ss.n_outputs + 1, dtype=bool), np.arange(case.ss.n_outputs)):
        with pytest.raises(ShapeError, match=r"observed must be an array of bool with shape \(\d+,\), one entry for"):
            kf.riccati(case.ss, observed)


def test_threads_share_a_model():
    """The covariances of a few patterns are kept with the model; threads with other patterns must not lose theirs."""
    one = np.ones((1, 1))
    ss = kf.StateSpace.chain(one, one, one, one, [0.0], one, steps=8)
    patterns = np.random.default_rng(0).random((6, 8)) < 0.5
    expected = [riccati(ss, seen).P.flat for seen in patterns]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda i: riccati(ss, patterns[i % 6]).P.flat, range(3000)))
    finally:
        sys.setswitchinterval(interval)
    for i, P in enumerate(found):
        np.testing.assert_array_equal(P, expected[i % 6])
