"""Null distributions against mpmath, exact special cases and numerical inversion of the printed formulas."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import loggamma
from scipy.stats import beta, chi2, kstest, norm

from kfdyn.errors import ModelError
from kfdyn.estimation.consistency.null_distributions import LikelihoodRatioNull, entry_score

LEVELS = np.array([0.999, 0.9, 0.5, 0.1, 0.01, 1e-4])


def log_gamma_d(a, d, log_gamma=loggamma):
    """Without the constant in π, which cancels."""
    return sum(log_gamma(a - i / 2) for i in range(d))


def covariance_cgf(s, d, n, log=np.log, log_gamma=loggamma):
    """E exp(s LR) as the ratio of two Wishart integrals, nothing simplified."""
    u = 1 - 2 * s
    return (
        s * (n * d * log(n) - n * d)
        - s * n * d * log(2)
        - n * d * u / 2 * log(u)
        + log_gamma_d(n * u / 2, d, log_gamma)
        - log_gamma_d(n / 2, d, log_gamma)
    )


def independence_cgf(s, sizes, n, log_gamma=loggamma):
    """The moments of det W / Π det W_kk: the determinant ratio is independent of the blocks."""
    k = log_gamma_d(n * (1 - 2 * s) / 2, sum(sizes), log_gamma) - log_gamma_d(n / 2, sum(sizes), log_gamma)
    for m in sizes:
        k -= log_gamma_d(n * (1 - 2 * s) / 2, m, log_gamma) - log_gamma_d(n / 2, m, log_gamma)
    return k


@pytest.mark.parametrize(
    ("d", "n"), [(1, 1), (1, 10**8), (2, 2), (7, 12), (40, 45), (300, 305), (300, 10**5), (300, 10**8)]
)
def test_cgf_to_fifty_digits(d, n):
    """At n = 1e8 the printed formula loses every digit in double precision; ours loses none that matter."""
    edge = 0.5 * (1 - (d - 1) / n)
    s = np.array([-3.0, -0.1, -1e-4, 1e-4, 0.1, 0.5, 0.98]) * edge
    with mpmath.workdps(50):
        exact = [float(covariance_cgf(mpmath.mpf(v), d, mpmath.mpf(n), mpmath.log, mpmath.loggamma)) for v in s]
    np.testing.assert_allclose(LikelihoodRatioNull.covariance(d, n).cgf(s), exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("sizes", "n"), [([1, 1], 2), ([2, 0, 1, 3], 11), ([1] * 100, 105), ([6] * 20, 10**8)])
def test_independence_cgf_to_fifty_digits(sizes, n):
    s = np.array([-3.0, -0.1, 1e-4, 0.5, 0.98]) * 0.5 * (1 - (sum(sizes) - 1) / n)
    with mpmath.workdps(50):
        exact = [float(independence_cgf(mpmath.mpf(v), sizes, mpmath.mpf(n), mpmath.loggamma)) for v in s]
    np.testing.assert_allclose(LikelihoodRatioNull.independence(sizes, n).cgf(s), exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 6, 30, 1000, 10**8])
def test_one_variance_is_two_chi_square_tails(n):
    """d = 1: LR = n(y − 1 − log y) exceeds x outside an interval of y, and n·y is χ²(n)."""
    null = LikelihoodRatioNull.covariance(1, n)
    x = chi2.isf(LEVELS, 1)
    exact = []
    for v in x:
        reach = np.sqrt(2 * v / n) + v / n
        low = brentq(lambda t, v=v: np.expm1(t) - t - v / n, -reach - 1e-9, 0.0, xtol=1e-15)
        high = brentq(lambda t, v=v: np.expm1(t) - t - v / n, 0.0, reach + 1e-9, xtol=1e-15)
        exact.append(chi2.cdf(n * np.exp(low), n) + chi2.sf(n * np.exp(high), n))
    np.testing.assert_allclose(null.sf(x), exact, rtol=1e-10 if n < 10**8 else 1e-7)  # brentq's own limit


@pytest.mark.parametrize(("m", "n"), [(1, 3), (1, 10), (2, 10), (5, 12), (20, 30), (1, 1000), (50, 10**4)])
def test_one_output_against_m_others_is_a_beta_tail(m, n):
    """det W / (det W_1 det W_2) = 1 − R² ~ Beta((n − m)/2, m/2), R the multiple correlation."""
    null = LikelihoodRatioNull.independence([1, m], n)
    x = -n * np.log(beta.ppf(LEVELS, (n - m) / 2, m / 2))
    np.testing.assert_allclose(null.sf(x), LEVELS, rtol=1e-10)


def inverted_tail(x, cgf, c):
    """P(LR > x) by Laplace inversion along Re s = c > 0 (the lower tail if c < 0)."""

    def integrand(t):
        s = c + 1j * t
        return (np.exp(cgf(s) - s * x) / s).real / np.pi

    pieces = [0, 0.02, 0.1, 0.5, 2, 10, 50]
    total = sum(quad(integrand, a, b, limit=200, epsabs=1e-12)[0] for a, b in pairwise(pieces))
    return total if c > 0 else 1 + total


@pytest.mark.parametrize(("d", "n"), [(5, 5), (5, 10), (8, 20), (12, 17), (30, 35)])
def test_tail_against_inversion_of_the_printed_cgf(d, n):
    """Another contour (a straight line), another rule (adaptive), and the formula as printed."""
    null = LikelihoodRatioNull.covariance(d, n)
    deviation = np.sqrt(2 * null.dof)
    for x in null.mean + deviation * np.array([-1.5, -0.5, 0.3, 1.0, 2.5, 6.0]):
        c = min((x - null.mean) / (2 * null.dof), 0.7 * 0.5 * (1 - (d - 1) / n))  # near the saddlepoint
        exact = inverted_tail(x, lambda s: covariance_cgf(s, d, n), c)
        np.testing.assert_allclose(null.sf(x), exact, rtol=1e-8)


@pytest.mark.parametrize(("d", "spare"), [(42, 0), (48, 1), (78, 0), (78, 3), (114, 0), (114, 2), (300, 0), (640, 3)])
def test_tail_with_hardly_more_samples_than_dimensions(d, spare):
    """Along a contour that wraps the poles of d gamma functions p was 0 or 1 here; a straight line stays clear."""
    n = d + spare
    null = LikelihoodRatioNull.covariance(d, n)
    spread = float(np.sqrt(null._derivatives(null._v0)[1]))
    for x in null.mean + spread * np.array([-1.5, -0.3, 0.3, 1.0, 2.0, 4.0]):
        c = np.copysign(0.4 * min((spare + 1) / (2 * n), 1 / spread), x - null.mean)
        step = 0.05 / spread  # the pole s = 0 is eight steps away
        s = c + 1j * step * np.arange(800_000 // d)
        values = (np.exp(null.cgf(s) - s * x) / s).real
        assert abs(values[-1]) < 1e-13 * abs(values[0])
        exact = step * (values.sum() - 0.5 * values[0]) / np.pi
        np.testing.assert_allclose(null.sf(x), exact if c > 0 else 1 + exact, rtol=1e-9)


def test_few_samples_of_many_dimensions_keep_the_level():
    """By drawing: det W is a product of χ² with n − i degrees of freedom, tr W the sum of them and the rest."""
    d, runs = 60, 1000
    rng = np.random.default_rng(1)
    squares = rng.chisquare(d - np.arange(d), size=(runs, d))
    ratio = (squares - d * np.log(squares / d)).sum(1) + rng.chisquare(d * (d - 1) // 2, runs) - d * d
    assert kstest(LikelihoodRatioNull.covariance(d, d).sf(ratio), "uniform").pvalue > 1e-3


def bartlett(null, x):
    """χ² after division by the mean to first order: good where n ≫ d²."""
    i = np.arange(len(null.weights))
    return chi2.sf(x * (1 - null.weights @ (i**2 / 2 + i + 1 / 3) / (null.n * null.dof)), null.dof)


@pytest.mark.parametrize("d", [1, 10, 100, 300])
def test_exact_meets_bartlett_where_bartlett_is_right(d):
    for n in (10**6, 10**8):
        null = LikelihoodRatioNull.covariance(d, n)
        x = chi2.isf(LEVELS, null.dof)
        # Bartlett's error is second order: (d²/n)², with a small constant
        np.testing.assert_allclose(null.sf(x), bartlett(null, x), rtol=1e-6 + (d**2 / n) ** 2)


@pytest.mark.parametrize(("d", "n"), [(1, 6), (3, 8), (50, 55), (300, 305), (300, 10**8)])
def test_tail_is_smooth_through_the_mean(d, n):
    """The contour must change sides of the pole s = 0 when x passes the mean: no seam may show."""
    null = LikelihoodRatioNull.covariance(d, n)
    x = null.mean * (1 + np.linspace(-1, 1, 61) * 0.9 * min(1, np.sqrt(2 / null.dof)))
    p = null.sf(x)
    slope = np.diff(p)
    assert (slope < 0).all()
    assert np.abs(np.diff(slope)).max() < 0.15 * np.abs(slope).max()
    seam = null.sf(null.mean * (1 + np.array([-1e-12, 1e-12])))
    assert abs(np.diff(seam)[0]) < 1e-9


def test_ends_of_the_tail():
    null = LikelihoodRatioNull.covariance(4, 9)
    np.testing.assert_array_equal(null.sf([-1.0, 0.0, np.inf]), [1, 1, 0])
    assert 0 <= null.sf(1e4) < 1e-100
    assert null.sf(1e-9) == pytest.approx(1)
    assert LikelihoodRatioNull.independence([3], 9).sf(1.0) == 1


def test_too_few_samples_are_refused():
    with pytest.raises(ModelError, match="at least 5"):
        LikelihoodRatioNull.covariance(5, 4)


def entry_tail(y, rho, n):
    """P(½[(1 + ρ)A − (1 − ρ)B] > ny), A and B independent χ²(n), by quadrature over B."""
    if rho == 1:
        return chi2.sf(n * y, n)
    low, high = chi2.ppf([1e-16, 1 - 1e-16], n)
    kink = np.clip(-2 * n * y / (1 - rho), low, high)

    def integrand(b):
        return chi2.pdf(b, n) * chi2.sf((2 * n * y + (1 - rho) * b) / (1 + rho), n)

    return sum(quad(integrand, *ends, epsabs=1e-14, limit=200)[0] for ends in ((low, kink), (kink, high)))


@pytest.mark.parametrize(("n", "rtol"), [(10, 2e-2), (100, 5e-4), (1000, 2e-5)])
@pytest.mark.parametrize("rho", [0.0, 0.3, -0.7, 1.0])
def test_entry_scores_are_normal(n, rtol, rho):
    y = rho + np.array([-2.0, -1.0, -0.3, 0.0, 0.01, 1.0, 2.0, 3.0]) * np.sqrt((1 + rho**2) / n)
    exact = np.array([entry_tail(v, rho, n) for v in y])
    score = entry_score(y, rho, n)
    np.testing.assert_allclose(norm.sf(score), exact, rtol=rtol)
    np.testing.assert_allclose(norm.cdf(score), 1 - exact, rtol=rtol)


def test_entry_scores_at_the_limits():
    assert entry_score(-0.1, 1.0, 50) == -np.inf
    assert entry_score(0.1, -1.0, 50) == np.inf
    big = entry_score(np.array([1, -1]) * 1e-4, 0.0, 10**8)
    np.testing.assert_allclose(big, [1, -1], rtol=1e-6)
