"""Numbers that leave the range of a double are refused by name; those that stay in it are right at any scale."""

import numpy as np
import pytest
from random_models import close

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.estimation.inference.riccati import riccati

ONE = np.ones((1, 1))


def chain(N, F=ONE, H=ONE, Q=ONE, R=ONE, x0=(0.0,), P0=ONE):
    return kf.StateSpace.chain(F, H, Q, R, x0, P0, steps=N)


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e150, 1e300])
def test_variances_of_any_unit(unit):
    """Q, R, P0 in another unit: the covariances scale with it, gains do not, whatever the unit."""
    plain, scaled = (chain(70, Q=s * ONE, R=0.3 * s * ONE, P0=2 * s * ONE) for s in (1.0, unit))
    expected, actual = riccati(plain), riccati(scaled)
    close(actual.G.flat, expected.G.flat, 14)
    close(actual.P.flat / unit, expected.P.flat, 14)
    close(actual.smoothed.S.flat / unit, expected.smoothed.S.flat, 13)
    close(actual.smoothed.Lambda.flat * unit, expected.smoothed.Lambda.flat, 13)


@pytest.mark.parametrize("unit", [1e-140, 1e140])
def test_outputs_of_any_unit(unit):
    plain, scaled = chain(70, R=0 * ONE), chain(70, H=unit * ONE, R=0 * ONE)
    T = np.sin(np.arange(70.0))
    expected, actual = (kf.bryson_frazier(s, kf.kalman_filter(s, t)) for s, t in ((plain, T), (scaled, T * unit)))
    close(actual.x.flat, expected.x.flat, 14)
    close(actual.a * unit, expected.a, 13)


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: chain(3, H=1e200 * ONE), "node 0: its innovation variance is too large"),
        (lambda: chain(3, H=1e-200 * ONE, R=0 * ONE), "node 0: its innovation variance is too small"),
        (lambda: chain(400, F=10 * ONE, H=np.zeros((0, 1)), R=np.zeros((0, 0))), "P of node 155 is too large"),
        (lambda: chain(400, F=10 * ONE, H=0 * ONE), "node 155: its innovation variance is too large"),
        (
            lambda: chain(3, H=np.full((2, 1), 1e200), R=np.eye(2)),
            "output 0 of node 0: its innovation variance is too large",
        ),
    ],
)
def test_covariances_out_of_range_name_where_it_begins(make, message, method):
    with pytest.raises(ModelError, match=message):
        riccati(make(), method=method)


def test_an_unobserved_growth_is_refused_also_when_the_end_is_measured():
    """P(399) is then NaN, which no test D > 0 passes; it must not be called a singular model."""
    T = np.append(np.full(399, np.nan), 1.0)
    with pytest.raises(ModelError, match="node 399: its innovation variance is too large"):
        kf.kalman_filter(chain(400, F=10 * ONE), T)


@pytest.mark.parametrize("rows", [1, 40])
def test_states_that_overflow(rows):
    """A known state that grows tenfold a step; only one row of the batch starts from other than zero."""
    ss = chain(400, F=10 * ONE, Q=0 * ONE, P0=0 * ONE)
    xi = np.zeros((rows, 400))
    assert np.isfinite(kf.kalman_filter(ss, np.ones((rows, 400)), xi=xi).llf).all()
    xi[-1, 0] = 1.0
    with pytest.raises(ModelError, match="z⁺ of node 309 is too large"):
        kf.kalman_filter(ss, np.ones((rows, 400)), xi=xi)


def test_costates_that_overflow():
    ss = chain(400, F=10 * ONE, Q=0 * ONE, P0=0 * ONE)
    filt = kf.kalman_filter(ss, np.ones(400))
    with pytest.raises(ModelError, match="λ of node 90 is too large"):
        kf.bryson_frazier(ss, filt)
    with pytest.raises(ModelError, match=r"Λ of node 2\d\d is too large"):
        _ = filt.covariances.smoothed


@pytest.mark.parametrize("N", [1, 3, 70])
@pytest.mark.parametrize("m", [0, 1, 2])
def test_nodes_without_states(N, m):
    """All that is left is white noise r: N independent outputs."""
    ss = chain(
        N, F=np.zeros((0, 0)), H=np.zeros((m, 0)), Q=np.zeros((0, 0)), R=4 * np.eye(m), x0=[], P0=np.zeros((0, 0))
    )
    T = np.arange(1.0, N * m + 1)
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, T))
    np.testing.assert_array_equal(smooth.a, T / 4)
    assert smooth.S[N - 1].shape == (0, 0)
    np.testing.assert_array_equal(kf.innovations_factor(ss).inverse(), np.eye(N * m) / 4)


@pytest.mark.parametrize("Q", [1e-320, 1e-310])
def test_a_variance_without_an_inverse_is_too_small_not_too_large(Q):
    ss = kf.StateSpace([-1], [None], [[[1.0]]], [[[Q]]])
    with pytest.raises(ModelError, match="node 0: its innovation variance is too small for a double"):
        kf.kalman_filter(ss, [1.0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lead", [(), (2,)], ids=["one", "batch"])
def test_a_likelihood_beyond_doubles_is_refused(lead):
    """Deviations of 1e160 are doubles, their squares are none."""
    ss = kf.StateSpace.chain(1.0, 1.0, 1.0, 1.0, steps=6, P0=1.0)
    filt = kf.kalman_filter(ss, np.full((*lead, 6), 1e160))
    assert np.isfinite(filt.z.flat).all()
    with pytest.raises(ModelError, match="the log-likelihood is too large for a double"):
        filt.llf  # noqa: B018
    assert lead or "llf beyond a double" in repr(filt)


@pytest.mark.parametrize("size", [1e155, 1e200, 1e300])
def test_scores_and_likelihoods_beyond_a_double_are_refused(size):
    """They were infinite, or NaN, with warnings of NumPy; warnings are errors here."""
    one = np.ones((1, 1))
    ss = kf.StateSpace.chain(one, one, one, one, [0.0], one, steps=3)
    flat = kf.StateSpace.chain(one, one, one, one, steps=3)
    T = size * np.array([1.0, -1.0, 1.0])

    def build(theta):
        return kf.StateSpace.chain(one, one, theta[0] * one, one, [0.0], one, steps=3)

    for answer in (
        lambda: kf.score(ss, T).Q,
        lambda: kf.score(ss, T).phi,
        lambda: kf.likelihood(build, [[1.0], [2.0]], T),
        lambda: kf.fast_filter(ss, T).llf,
        lambda: kf.kalman_filter(flat, T).llf,
        lambda: kf.series.local_level().likelihood(T)([1.0, 1.0]),
        lambda: kf.series.local_level().likelihood(T, gradient=False)([1.0, 1.0]),
        lambda: kf.innovations_factor(ss).matvec(np.full(3, 1e308)),
    ):
        with pytest.raises(ModelError, match="too large for a double"):
            answer()
