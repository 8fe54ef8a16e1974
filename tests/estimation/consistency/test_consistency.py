"""Calibration (p-values are uniform when the model is right), power, invariance and refusals; fixed seeds."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2, kstest, multivariate_normal

from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.estimation.consistency import (
    covariance_test,
    holm,
    largest_entry_test,
    mean_test,
    nees,
    nis,
    scatter,
    tree_portmanteau,
    whiteness,
)
from kfdyn.estimation.consistency.whitening import whitening
from kfdyn.estimation.dense import DenseModel, dense_filter, dense_posterior


def assert_uniform(p_values, tail=0.02):
    """Kolmogorov–Smirnov over the whole, a binomial test of the tail that verdicts are made of."""
    p_values = np.asarray(p_values)
    assert kstest(p_values, "uniform").pvalue > 1e-3
    assert binomtest(int((p_values < tail).sum()), len(p_values), tail).pvalue > 1e-3


def random_covariance(rng, d, rank=None):
    B = rng.normal(size=(d, rank or d)) * np.geomspace(1, 1e-3, d)[:, None]  # units differ by a thousand
    return B @ B.T


def random_scatter(rng, Sigma, n):
    """Σ x x* of n samples of N(0, Σ) for any n, by Bartlett's decomposition."""
    d = len(Sigma)
    A = np.tril(rng.normal(size=(d, d)), -1)
    A[np.diag_indices(d)] = np.sqrt(rng.chisquare(n - np.arange(d)))
    root = np.linalg.cholesky(Sigma) @ A
    return root @ root.T


# --- the likelihood ratio of a covariance


@pytest.mark.parametrize(
    ("d", "n", "runs"),
    [(1, 6, 600), (2, 7, 600), (5, 10, 600), (20, 25, 300), (20, 10**8, 300), (60, 65, 100), (60, 10**5, 100)],
)
def test_covariance_p_values_are_uniform(d, n, runs):
    rng = np.random.default_rng(d * 7 + n)
    Sigma = random_covariance(rng, d)
    assert_uniform([covariance_test(random_scatter(rng, Sigma, n), Sigma, n).p_value for _ in range(runs)])


@pytest.mark.slow
@pytest.mark.parametrize(("d", "n"), [(100, 105), (100, 10**8), (300, 305), (300, 10**5), (300, 10**8)])
def test_covariance_p_values_are_uniform_in_many_dimensions(d, n):
    rng = np.random.default_rng(d + n)
    Sigma = random_covariance(rng, d)
    assert_uniform([covariance_test(random_scatter(rng, Sigma, n), Sigma, n).p_value for _ in range(200)])


def test_bartlett_fails_where_the_exact_law_does_not():
    """Why the law is exact: with 45 samples of 40 dimensions χ² rejects nearly every honest run."""
    rng = np.random.default_rng(0)
    found = [covariance_test(random_scatter(rng, np.eye(40), 45), np.eye(40), 45) for _ in range(40)]
    i = np.arange(40)
    corrected = 1 - (i**2 / 2 + i + 1 / 3).sum() / (45 * found[0].dof)
    assert np.mean([verdict.p_value < 0.05 for verdict in found]) < 0.15
    assert np.mean([chi2.sf(verdict.statistic * corrected, verdict.dof) < 0.05 for verdict in found]) > 0.8


@pytest.mark.parametrize(("d", "rank", "n"), [(3, 1, 8), (8, 5, 12), (12, 4, 10**4)])
def test_singular_covariances_are_tested_on_their_range(d, rank, n):
    rng = np.random.default_rng(rank)
    p_values = []
    for _ in range(300):
        B = rng.normal(size=(d, rank)) * np.geomspace(1, 1e-3, d)[:, None]
        W = B @ random_scatter(rng, np.eye(rank), n) @ B.T
        verdict = covariance_test(W, B @ B.T, n)
        assert verdict.dof == rank * (rank + 1) // 2
        p_values.append(verdict.p_value)
    assert_uniform(p_values)
    W[0, 0] += 1e-6 * W[0, 0]  # one part in a thousand of one component leaves the range
    verdict = covariance_test(W, B @ B.T, n)
    assert verdict.p_value == 0
    assert verdict.outside > 1e-9


def test_unknown_mean_costs_one_sample():
    rng = np.random.default_rng(4)
    p_values = [covariance_test(100 + rng.normal(size=(9, 3)), np.eye(3), mean_known=False).p_value for _ in range(500)]
    assert_uniform(p_values)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_likelihood_ratio_is_affine_invariant(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 8))
    U, V = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    root = U * rng.uniform(0.3, 3, d) @ V
    Sigma = root @ root.T
    x = rng.normal(size=(d + 20, d)) @ root.T
    A = np.geomspace(1e-2, 1e2, d)[:, None] * (V * rng.uniform(0.3, 3, d) @ U)  # mixes, then changes units
    one, two = covariance_test(x, Sigma), covariance_test(x @ A.T, A @ Sigma @ A.T)
    assert two.statistic == pytest.approx(one.statistic, rel=1e-10)
    inverse = covariance_test(np.linalg.solve(Sigma, x.T).T, np.linalg.inv(Sigma))  # ε → ν, T → a
    assert inverse.statistic == pytest.approx(one.statistic, rel=1e-10)


def test_statistic_is_the_difference_of_two_log_likelihoods():
    """scipy's multivariate normal at the sample covariance and at the claimed one."""
    rng = np.random.default_rng(8)
    Sigma = random_covariance(rng, 4)
    x = rng.normal(size=(30, 4)) @ np.linalg.cholesky(Sigma).T
    best, claimed = (multivariate_normal(cov=C).logpdf(x).sum() for C in (x.T @ x / 30, Sigma))
    assert covariance_test(x, Sigma).statistic == pytest.approx(2 * (best - claimed), rel=1e-9)


def test_chunks_add_up():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1000, 6))
    chunks = sum(scatter(part) for part in np.array_split(x, 7))
    assert covariance_test(chunks, np.eye(6), 1000).statistic == pytest.approx(covariance_test(x, np.eye(6)).statistic)
    assert covariance_test(x.reshape(10, 100, 6), np.eye(6)).n == 1000


@pytest.mark.parametrize("d", [1, 10, 60])
def test_five_percent_is_caught(d):
    """One standard deviation in d is 5 % off; 2e5 samples, as many as the cross-check draws."""
    rng = np.random.default_rng(d)
    Sigma = random_covariance(rng, d)
    W = random_scatter(rng, Sigma, 200_000)
    off = np.ones(d)
    off[0] = 1.05
    assert covariance_test(W, Sigma, 200_000).p_value > 1e-3
    assert covariance_test(W, Sigma * np.outer(off, off), 200_000).p_value < 1e-12


# --- entry by entry


@pytest.mark.parametrize(("d", "n"), [(1, 20), (6, 30), (20, 400), (40, 10**6)])
def test_largest_entry_of_independent_components_is_calibrated(d, n):
    rng = np.random.default_rng(d)
    Sigma = np.diag(np.geomspace(1, 1e6, d))
    assert_uniform([largest_entry_test(random_scatter(rng, Sigma, n), Sigma, n).p_value for _ in range(600)])


@pytest.mark.parametrize("n", [50, 10**5])
def test_largest_entry_never_rejects_too_often(n):
    """Correlated components: Šidák's bound is conservative, so small p-values are rarer than uniform."""
    rng = np.random.default_rng(n)
    below = []
    for _ in range(1500):
        Sigma = random_covariance(rng, 5)
        below.append(largest_entry_test(random_scatter(rng, Sigma, n), Sigma, n).p_value < 0.05)
    assert binomtest(sum(below), len(below), 0.05, alternative="greater").pvalue > 1e-3
    assert np.mean(below) > 0.005  # conservative, not deaf


def test_largest_entry_finds_the_culprit_and_is_not_invariant():
    rng = np.random.default_rng(1)
    Sigma = random_covariance(rng, 10)
    W = random_scatter(rng, Sigma, 10**5)
    wrong = Sigma.copy()
    wrong[2, 7] = wrong[7, 2] = -wrong[2, 7]  # a flipped sign
    verdict = largest_entry_test(W, wrong, 10**5)
    assert verdict.index == (2, 7)
    assert verdict.p_value < 1e-12
    assert verdict.scores.shape == (10, 10)
    right = largest_entry_test(W, Sigma, 10**5)
    assert right.p_value > 1e-3
    Q, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    assert largest_entry_test(Q @ W @ Q.T, Q @ Sigma @ Q.T, 10**5).statistic != pytest.approx(right.statistic, rel=1e-3)


def test_printed_slide_with_D_for_its_inverse_is_rejected():
    rng = np.random.default_rng(2)
    D = np.diag([0.8, 1.1, 1.3])
    W = random_scatter(rng, np.linalg.inv(D), 2000)
    assert largest_entry_test(W, np.linalg.inv(D), 2000).p_value > 0.01
    assert largest_entry_test(W, D, 2000).p_value < 1e-6
    assert covariance_test(W, D, 2000).p_value < 1e-6


def test_component_of_no_variance():
    Sigma = np.diag([1.0, 0.0])
    W = np.diag([50.0, 0.0])
    assert largest_entry_test(W, Sigma, 50).p_value == pytest.approx(1, abs=0.1)
    W[1, 1] = 1e-3
    assert largest_entry_test(W, Sigma, 50).p_value == 0
    assert covariance_test(W, Sigma, 50).p_value == 0
    assert covariance_test(np.zeros((2, 2)), np.zeros((2, 2)), 5).p_value == 1


# --- means, many tests at once


def test_mean_test():
    rng = np.random.default_rng(3)
    B = rng.normal(size=(5, 3))
    means = rng.normal(size=(1000, 40, 3)).mean(1) @ B.T
    assert_uniform([mean_test(m, B @ B.T, 40).p_value for m in means])
    assert mean_test(means[0] + 1e-3, B @ B.T, 40).p_value == 0
    assert mean_test(means[0] + B[:, 0], B @ B.T, 40).p_value < 1e-6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_holm_is_the_closure_of_bonferroni(p):
    """A hypothesis falls when every subset that contains it does, each by Bonferroni."""
    subsets = [s for r in range(1, len(p) + 1) for s in combinations(range(len(p)), r)]
    closed = [max(min(1.0, len(s) * min(p[j] for j in s)) for s in subsets if i in s) for i in range(len(p))]
    np.testing.assert_allclose(holm(p), closed, rtol=1e-15)


def test_holm_holds_its_level():
    rng = np.random.default_rng(6)
    false = sum(holm(rng.random(8)).min() < 0.05 for _ in range(2000))
    assert binomtest(false, 2000, 1 - (1 - 0.05 / 8) ** 8).pvalue > 1e-3


# --- a filter judged: NIS, NEES, whiteness on a tree, η ≠ 0, R = 0


@pytest.fixture(scope="module")
def runs():
    """2000 draws from a ragged tree without measurement noise, and what the oracle makes of them."""
    rng = np.random.default_rng(12)
    parent, n, m = [2, 2, 4, 4, -1], [3, 2, 4, 3, 2], [1, 2, 2, 0, 1]
    phi = [None if p < 0 else rng.normal(size=(n[p], k)) / 2 for p, k in zip(parent, n)]
    H = [rng.normal(size=(a, b)) for a, b in zip(m, n)]
    Q = [B @ B.T for B in (rng.normal(size=(b, b)) for b in n)]
    xi, eta = rng.normal(size=(2, sum(n)))
    model = DenseModel.from_blocks(parent, phi, H, Q, xi=xi, eta=eta)
    x = model.state_mean + rng.normal(size=(2000, sum(n))) @ np.linalg.cholesky(model.state_cov).T
    T = x @ model.H.T
    filt = dense_filter(model, T)
    nu = [np.linalg.solve(D, e[..., None])[..., 0] for D, e in zip(filt.D, filt.eps)]
    standard = [np.linalg.solve(np.linalg.cholesky(D), e[..., None])[..., 0] for D, e in zip(filt.D, filt.eps)]
    return SimpleNamespace(
        parent=parent,
        sizes=m,
        model=model,
        x=x,
        T=T,
        post=dense_posterior(model, T),
        eps=np.concatenate(filt.eps, -1),
        standard=np.concatenate(standard, -1),
        filt=SimpleNamespace(
            eps_centered=np.concatenate(filt.eps, -1), nu_centered=np.concatenate(nu, -1), observed=np.ones(6, bool)
        ),
    )


def test_nis_is_uniform_and_adds_up(runs):
    verdict = nis(runs.filt)
    assert verdict.dof == 6
    assert_uniform(verdict.p_value)
    assert verdict.total.dof == 12_000
    assert verdict.total.p_value > 1e-3
    mahalanobis = -2 * (runs.post.llf - np.log(2 * np.pi) * -3 + 0.5 * np.linalg.slogdet(runs.model.output_cov)[1])
    np.testing.assert_allclose(verdict.statistic, mahalanobis, rtol=1e-9)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_nis_rejects_a_covariance_too_large_or_too_small(runs, factor):
    wrong = SimpleNamespace(**(vars(runs.filt) | {"nu_centered": runs.filt.nu_centered * factor}))
    assert nis(wrong).total.p_value < 1e-4


def test_nis_of_what_was_observed(runs):
    """Missing innovations may be NaN; they count neither in the sum nor in the degrees of freedom."""
    observed = np.array([True, False, True, True, True, True])
    masked = {k: np.where(observed, getattr(runs.filt, k), np.nan) for k in ("eps_centered", "nu_centered")}
    verdict = nis(SimpleNamespace(**masked, observed=observed))
    assert verdict.dof == 5
    assert np.isfinite(verdict.statistic).all()
    with pytest.raises(ModelError, match="NaN"):
        nis(SimpleNamespace(**masked, observed=np.ones(6, bool)))


def test_nees_uses_the_rank(runs):
    error = runs.x - runs.post.mean
    verdict = nees(error, runs.post.cov)
    assert verdict.dof == runs.model.H.shape[1] - runs.model.H.shape[0]  # Σn − Σm at R = 0
    assert_uniform(verdict.p_value)
    assert verdict.total.p_value > 1e-3
    assert nees(error * 1.05, runs.post.cov).total.p_value < 1e-6
    prior = np.sqrt(np.diag(runs.model.state_cov))
    assert nees(error, runs.post.cov, scale=prior).total.p_value == pytest.approx(verdict.total.p_value, rel=1e-6)
    leaked = error.copy()
    leaked[7] += 1e-2
    verdict = nees(leaked, runs.post.cov)
    assert verdict.p_value[7] == 0 == verdict.total.p_value
    assert (verdict.p_value[8:] > 0).all()


def test_whiteness_of_innovations_and_not_of_outputs(runs):
    assert whiteness(runs.eps, runs.sizes).p_value > 1e-3
    assert whiteness(runs.T - runs.model.bias, runs.sizes).p_value < 1e-12
    # unaffected by what happens inside a node
    scale = np.array([2.0, 1.0, 3.0, 1.0, 0.1, 5.0])
    one, two = whiteness(runs.eps, runs.sizes), whiteness(runs.eps * scale, runs.sizes)
    assert one.statistic == pytest.approx(two.statistic, rel=1e-9)
    assert one.dof == (36 - 1 - 4 - 4 - 1) / 2


@pytest.mark.parametrize(("sizes", "n"), [([1, 1], 4), ([2, 0, 1, 3], 9), ([1] * 30, 35), ([6] * 5, 10**7)])
def test_whiteness_p_values_are_uniform(sizes, n):
    rng = np.random.default_rng(n)
    d = sum(sizes)
    assert_uniform([whiteness(random_scatter(rng, np.eye(d), n), sizes, n).p_value for _ in range(300)])


@pytest.mark.parametrize("shape", ["chain", "star", "tree"])
def test_portmanteau_is_calibrated_on_any_tree(shape):
    """On a star all products share one factor and χ² is far off; the Monte Carlo rank is not."""
    rng = np.random.default_rng(9)
    N = 30
    parent = {
        "chain": [*range(1, N), -1],
        "star": [-1] + [0] * (N - 1),
        "tree": [-1, *(int(rng.integers(k)) for k in range(1, N))],
    }[shape]
    sizes = [1, 2] * (N // 2)
    p_values, statistics = [], []
    for k in range(300):
        verdict = tree_portmanteau(rng.normal(size=sum(sizes)), parent, sizes, lags=3, draws=99, seed=k)
        p_values.append(verdict.p_value - rng.random() / 100)  # the rank is discrete: spread it over its step
        statistics.append(verdict.statistic)
    assert_uniform(p_values, tail=0.05)
    assert np.mean(statistics) == pytest.approx(verdict.dof, rel=0.2)
    if shape == "star":
        assert kstest(chi2.sf(statistics, verdict.dof), "uniform").pvalue < 1e-3


def test_portmanteau_on_a_chain_is_box_and_pierce():
    rng = np.random.default_rng(10)
    e = rng.normal(size=300)
    verdict = tree_portmanteau(e, [*range(1, 300), -1], [1] * 300, lags=4)
    lagged = [(e[lag:] @ e[:-lag]) ** 2 / (300 - lag) for lag in range(1, 5)]
    assert verdict.statistic == pytest.approx(sum(lagged), rel=1e-12)
    assert verdict.dof == 4
    assert verdict.p_value == pytest.approx(chi2.sf(verdict.statistic, 4), abs=0.05)
    echo = e.copy()
    echo[1:] += 0.4 * e[:-1]
    assert tree_portmanteau(echo, [*range(1, 300), -1], [1] * 300, lags=4).p_value == 1 / 1000


def test_portmanteau_of_a_filter(runs):
    assert tree_portmanteau(runs.standard[:50], runs.parent, runs.sizes, draws=199).p_value > 0.01
    missing = runs.standard[:50].copy()
    missing[:, 2] = np.nan
    assert tree_portmanteau(missing, runs.parent, runs.sizes, draws=199).p_value > 0.01
    raw = (runs.T - runs.model.bias)[:50] / np.sqrt(np.diag(runs.model.output_cov))
    assert tree_portmanteau(raw, runs.parent, runs.sizes, draws=199).p_value == 1 / 200
    assert tree_portmanteau([1.0, 2.0], [-1, -1], [1, 1]).p_value == 1  # nobody has an ancestor


# --- refusals


I2 = np.eye(2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: covariance_test(np.zeros((1, 2)), I2), ModelError, "1 samples cannot test"),
        (lambda: covariance_test(np.zeros(2), I2), ShapeError, r"\(n, d\)"),
        (lambda: covariance_test(np.full((5, 2), np.nan), I2), ModelError, "NaN"),
        (lambda: covariance_test(np.full((2, 2), np.nan), I2, 5), ModelError, "finite"),
        (lambda: covariance_test(np.zeros((5, 3)), I2), ShapeError, "3 dimensions"),
        (lambda: covariance_test(np.zeros((5, 2)), I2, 5), ShapeError, "square scatter"),
        (lambda: covariance_test(I2, I2, 1, mean_known=False), ModelError, "too few"),
        (lambda: covariance_test(I2, [[1, 2], [2, 1]], 5), ModelError, "indefinite"),
        (lambda: covariance_test(I2, [[1, 2], [0, 1]], 5), ModelError, "not symmetric"),
        (lambda: covariance_test(I2, -I2, 5), ModelError, "negative variance"),
        (lambda: covariance_test(I2, np.diag([np.inf, 1]), 5), ModelError, "finite"),
        (lambda: covariance_test(I2, I2, 5, rank=3), ModelError, "rank 3"),
        (lambda: covariance_test(I2, np.diag([1, 0]), 5, rank=2), ModelError, "lower the rank"),
        (lambda: largest_entry_test(I2, -I2, 5), ModelError, "negative variance"),
        (lambda: mean_test(I2, I2, 5), ShapeError, "flat"),
        (lambda: mean_test([np.nan, 0], I2, 5), ModelError, "finite"),
        (lambda: nees(np.zeros(3), I2), ShapeError, r"\(d, d\)"),
        (lambda: nees([np.nan, 0], I2), ModelError, "NaN"),
        (lambda: whiteness(I2, [1, 2], 9), ShapeError, "sum to 3"),
        (lambda: whiteness(np.diag([1.0, 0.0]), [1, 1], 9), ModelError, "innovations 1 to 1"),
        (lambda: holm([0.1, 1.2]), ModelError, "between 0 and 1"),
        (lambda: tree_portmanteau(np.zeros(3), [-1, 0], [1, 1]), ShapeError, "2 outputs"),
        (lambda: tree_portmanteau(np.zeros(2), [-1], [1, 1]), ShapeError, "1 parents for 2 nodes"),
        (lambda: tree_portmanteau([[0, np.nan], [0, 0]], [-1, 0], [1, 1]), ModelError, "pattern"),
        (lambda: whitening(np.zeros(3)), ShapeError, "square"),
        (lambda: whitening(I2, scale=[1, 0]), ShapeError, "2 positive"),
    ],
)
def test_bad_input_is_refused_with_words(call, error, words):
    assert issubclass(error, KfdynError)
    with pytest.raises(error, match=words):
        call()


def test_singular_scatter_rejects():
    """Five samples that are all alike cannot come from two dimensions."""
    assert covariance_test(np.full((2, 2), 5.0), I2, 5).p_value == 0
    assert whiteness(np.full((2, 2), 5.0), [1, 1], 5).p_value == 0


def test_a_known_rank_overrules_rounding():
    rng = np.random.default_rng(13)
    B = rng.normal(size=(6, 4))
    noisy = B @ B.T + 1e-9 * np.diag(rng.random(6))
    assert whitening(noisy).rank == 6
    W = B @ random_scatter(rng, np.eye(4), 100) @ B.T
    assert covariance_test(W, noisy, 100).p_value < 1e-6
    assert covariance_test(W, noisy, 100, rank=4).p_value > 1e-3
