"""Flat priors on chains and forests: filter, smoother, likelihood and score against the dense limit."""

import pickle
import warnings

import mpmath as mp
import numpy as np
import pytest
from flat_cases import DIGITS, limit
from random_models import close, random_case

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError, TreeError

one = np.ones((1, 1))


def flat_case(seed, N=6, exact=False):
    """A random forest with flat states at some nodes, some measurements missing; resolved, or tried again."""
    for more in range(100):
        rng = np.random.default_rng(1000 * more + seed)
        case = random_case(1000 * more + seed, N, noise=not exact)
        ss = case.ss
        masks = {k: rng.random(ss.n[k]) < 0.5 for k in range(N) if rng.random() < 0.5}
        masks = {k: mask for k, mask in masks.items() if mask.any()}
        if not masks:
            continue
        flat = kf.StateSpace(ss.tree, ss.phi, ss.H, ss.Q, ss.R, flat=masks)
        T = np.where(rng.random(ss.n_outputs) < 0.15, np.nan, case.T)
        try:
            filt = kf.kalman_filter(flat, T, case.xi, case.eta)
        except SingularError:
            continue
        if np.abs(filt.fit.W).max() < 1e3:
            return flat, T, case.xi, case.eta, filt
    raise AssertionError("no case was resolved")


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_smoother_and_likelihood_are_the_limit(seed, exact):
    ss, T, xi, eta, filt = flat_case(seed, exact=exact)
    want = limit(ss, T, xi, eta)
    smooth = kf.bryson_frazier(ss, filt)
    close(filt.llf, float(want.llf))
    close(smooth.x.flat, want.mean, 9)
    close(smooth.costate.flat, want.costate, 9)
    close(smooth.a[~np.isnan(T)], want.a, 9)
    for k in range(len(ss)):
        own = slice(ss.arrays.state[k], ss.arrays.state[k + 1])
        close(smooth.S[k], want.cov[own, own], 8)  # errors of order 1e-10 times a variance of up to 1e3
        close(smooth.Lambda[k], want.costate_cov[own, own], 9)


@pytest.mark.parametrize("seed", range(3))
def test_score_is_the_derivative_of_the_limit(seed):
    ss, T, xi, eta, _ = flat_case(seed, N=4)
    score = kf.score(ss, T, xi, eta)
    rng = np.random.default_rng(seed)
    base = limit(ss, T, xi, eta).llf
    with mp.workdps(DIGITS):
        h = mp.mpf(10) ** -25
        for name in ("phi", "H", "Q", "R"):
            blocks = [rng.normal(size=b.shape) for b in getattr(ss, name)]
            if name in "QR":
                blocks = [b + b.T for b in blocks]
            moved = {name: [mp.matrix(b.tolist()) * h if b.size else b for b in blocks]}
            want = float((limit(ss, T, xi, eta, moved).llf - base) / h)
            got = sum(float((g * b).sum()) for g, b in zip(getattr(score, name), blocks))
            assert abs(got - want) <= 1e-8 * max(1.0, abs(want)), name
    for name, value in (("xi", xi), ("eta", eta)):
        step = rng.normal(size=value.size)
        both = [
            float(limit(ss, T, **{"xi": xi, "eta": eta, name: value + s * 1e-6 * step}).llf) for s in (1, -1)
        ]  # quadratic in ξ and η, so central differences are exact but for rounding
        assert abs(getattr(score, name) @ step - (both[0] - both[1]) / 2e-6) <= 1e-6 * max(1.0, abs(both[0]))


def test_generalised_least_squares_is_the_posterior_of_a_constant():
    """A chain that does not move, all of it flat: regression on H."""
    rng = np.random.default_rng(2)
    H, R = rng.normal(size=(20, 1, 3)), rng.uniform(0.5, 2.0, (20, 1, 1))
    T = rng.normal(size=20)
    ss = kf.StateSpace.chain(np.eye(3), H, np.zeros((3, 3)), R, steps=20)
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, T))
    X, W = H[:, 0], 1.0 / R[:, 0, 0]
    cov = np.linalg.inv((X.T * W) @ X)
    close(smooth.x[7], cov @ (X.T * W) @ T)
    close(smooth.S[7], cov)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(unit):
    rng = np.random.default_rng(4)
    F, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    Q, T = np.diag([0.1, 0.01]), rng.normal(size=30).cumsum()
    plain = kf.StateSpace.chain(F, H, Q, one, steps=30)
    s, i = np.diag([unit, 1 / unit]), np.diag([1 / unit, unit])
    other = kf.StateSpace.chain(s @ F @ i, unit**2 * H @ i, s @ Q @ s, unit**4 * one, steps=30)
    a, b = kf.kalman_filter(plain, T), kf.kalman_filter(other, unit**2 * T)
    x, y = kf.bryson_frazier(plain, a), kf.bryson_frazier(other, b)
    for k in (0, 12, 29):
        np.testing.assert_allclose(i @ y.x[k], x.x[k], rtol=1e-9)
    np.testing.assert_allclose(b.llf + 30 * np.log(unit**2), a.llf, rtol=1e-10)


def test_trees_of_a_forest_do_not_see_each_other():
    """Two chains in one model are two models; each has its own flat components."""
    rng = np.random.default_rng(5)
    T = rng.normal(size=12).cumsum()
    parent = [1, 2, 3, -1, 5, 6, 7, 8, 9, 10, 11, -1]
    ss = kf.StateSpace(
        parent,
        np.ones((12, 1, 1)),
        np.ones((12, 1, 1)),
        np.ones((12, 1, 1)),
        np.ones((12, 1, 1)),
        flat={0: True, 4: True},
    )
    filt = kf.kalman_filter(ss, T)
    alone = [kf.StateSpace.chain(one, one, one, one, steps=s) for s in (4, 8)]
    # a chain's prior is flat and nothing else; here 1 is added to infinity
    assert np.isclose(filt.llf, sum(kf.kalman_filter(c, t).llf for c, t in zip(alone, (T[:4], T[4:]))), rtol=1e-12)
    smooth = kf.bryson_frazier(ss, filt)
    want = [kf.bryson_frazier(c, kf.kalman_filter(c, t)).x.flat for c, t in zip(alone, (T[:4], T[4:]))]
    close(smooth.x.flat, np.concatenate(want))


def test_batches_and_other_methods_agree():
    ss, T, xi, eta, filt = flat_case(3)
    many = kf.kalman_filter(ss, np.stack([T, 2 * T]), xi, eta, method="univariate")
    close(many.llf[0], filt.llf)
    smooth, alone = kf.bryson_frazier(ss, many), kf.bryson_frazier(ss, filt)
    close(smooth.x.flat[0], alone.x.flat, 9)
    again = kf.kalman_filter(ss, 2 * T, xi, eta)
    close(many.llf[1], again.llf)
    close(many.eps[1], again.eps, 9)


def test_directions_that_stay_open_are_named():
    ss = kf.StateSpace.chain(np.eye(2), [[1.0, -2.0]], np.zeros((2, 2)), one, steps=9)
    with pytest.raises(SingularError, match=r"never resolve the direction \[1, 0.5\] of node 0") as error:
        kf.kalman_filter(ss, np.arange(9.0))
    assert error.value.node == 0
    # two flat leaves that only add up: their difference is open
    both = kf.StateSpace(
        [2, 2, -1], [one, one, None], [np.zeros((0, 1))] * 2 + [one], [one] * 3, flat={0: True, 1: True}
    )
    with pytest.raises(SingularError, match=r"direction \[1\] of node 0 with \[-1\] of node 1"):
        kf.kalman_filter(both, [1.0])
    seen = kf.StateSpace.chain(one, one, one, one, steps=3)
    with pytest.raises(SingularError, match=r"direction \[1\] of node 0"):
        kf.kalman_filter(seen, [np.nan] * 3)


def test_what_has_no_finite_answer_is_refused():
    ss = kf.StateSpace.chain(one, one, one, one, steps=3)
    for refuse in (
        lambda: kf.innovations_factor(ss),
        lambda: kf.Covariances(ss),
        lambda: kf.riccati(ss),
        lambda: kf.draw(ss, np.random.default_rng(0)),
        lambda: kf.kalman_filter(ss, [1.0, 2.0, 3.0]).covariances,
    ):
        with pytest.raises(ModelError, match="flat prior"):
            refuse()
    with pytest.raises(TreeError, match="flat names node 7"):
        kf.StateSpace([-1], [None], [one], [one], flat={7: True})
    with pytest.raises(ShapeError, match="must be True, or a mask"):
        kf.StateSpace([-1], [None], [one], [one], flat={0: [True, False]})


def test_models_keep_their_flat_states():
    ss = kf.StateSpace.chain(one, one, one, one, steps=3)
    T = [1.0, 2.0, 4.0]
    want = kf.kalman_filter(ss, T).llf
    assert kf.kalman_filter(pickle.loads(pickle.dumps(ss)), T).llf == want
    assert kf.kalman_filter(ss.replace(Q=ss.Q.stacked().copy()), T).llf == want
    other = kf.kalman_filter(ss.replace(R=np.full((3, 1, 1), 4.0)), T).llf
    assert other == kf.kalman_filter(kf.StateSpace.chain(one, one, one, 4 * one, steps=3), T).llf != want
    assert "flat 1" in repr(ss)


def test_what_is_too_large_for_a_double_is_named():
    one = np.ones((1, 1))
    ss = kf.StateSpace.chain(one, 1e200 * one, one, one, steps=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelError, match="node 0 is too large for a double"):
            kf.kalman_filter(ss, 1e200 * np.arange(4.0))


@pytest.mark.parametrize("flat", [{0: False}, {1: [False, False]}, {0: False, 1: np.zeros(2, dtype=bool)}])
def test_a_mask_that_names_no_state_is_no_flat_prior(flat):
    rng = np.random.default_rng(3)
    blocks = [[1, -1], rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 1, 2)), np.stack([np.eye(2)] * 2)]
    ss, plain = kf.StateSpace(*blocks, flat=flat), kf.StateSpace(*blocks)
    assert ss.flat is None and "flat" not in repr(ss)
    T = [1.0, 2.0]
    assert kf.kalman_filter(ss, T).llf == kf.kalman_filter(plain, T).llf
    assert kf.innovations_factor(ss).logdet() == kf.innovations_factor(plain).logdet()
    np.testing.assert_array_equal(kf.Covariances(ss).T.diagonal.flat, kf.Covariances(plain).T.diagonal.flat)
    np.testing.assert_array_equal(*(kf.draw(s, np.random.default_rng(0), 3).T for s in (ss, plain)))


@pytest.mark.parametrize("flat", [[0], (1,), "0", True])
def test_what_is_no_mapping_is_refused_with_an_example(flat):
    with pytest.raises(ModelError, match=r"flat must map nodes to True or to masks.*\{3: True\}.*got"):
        kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)), flat=flat)
