"""Batches whose entries lack different measurements: each as if it were alone."""

import numpy as np
import pytest
from random_models import close, random_case

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.dense import DenseModel
from kfdyn.estimation.inference.scored import Score


@pytest.mark.parametrize("seed", range(3))
def test_each_entry_as_if_alone(seed):
    case = random_case(seed, 9)
    rng = np.random.default_rng(seed)
    T = rng.normal(size=(4, 3, case.ss.n_outputs))
    T[rng.random(T.shape) < 0.15] = np.nan
    T[3] = rng.normal(size=(3, case.ss.n_outputs))  # some lack nothing
    eta = rng.normal(size=(3, case.ss.n_states))
    found = kf.smooth_batch(case.ss, T, case.xi, eta)
    assert found.batch == (4, 3) and found.llf.shape == (4, 3) and found.a.shape == T.shape
    for at in np.ndindex(4, 3):
        filt = kf.kalman_filter(case.ss, T[at], case.xi, eta[at[1]])
        alone = kf.bryson_frazier(case.ss, filt)
        assert found.llf[at] == pytest.approx(filt.llf, rel=1e-12)
        close(found.a[at], alone.a)
        for k in range(len(case.ss)):
            close(found.x[k][at], alone.x[k])
            close(found.costate[k][at], alone.costate[k])
            close(found.S(*at)[k], alone.S[k])


def test_one_vector_and_an_empty_batch():
    case = random_case(1, 5)
    assert kf.smooth_batch(case.ss, case.T).llf == pytest.approx(kf.kalman_filter(case.ss, case.T).llf)
    assert kf.smooth_batch(case.ss, np.zeros((0, case.ss.n_outputs))).llf.shape == (0,)
    with pytest.raises(ShapeError, match="smooth_batch and score group the entries"):
        kf.kalman_filter(case.ss, np.stack([case.T, np.full_like(case.T, np.nan)]))


NAMES = ("phi", "H", "Q", "R", "xi", "eta", "logdet_Q", "logdet_R")


def flat_of(value):
    return getattr(value, "flat", value) if not isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize("flat", [False, True])
def test_the_score_groups_a_batch_by_what_its_entries_lack(flat, method):
    case = random_case(4, 8)
    ss = case.ss
    if flat:
        leaf = max(ss.tree.leaves, key=lambda k: ss.n[k])
        mask = np.arange(ss.n[leaf]) == 0
        ss = kf.StateSpace(ss.tree, ss.phi, ss.H, ss.Q, ss.R, xi=ss.xi, eta=ss.eta, flat={leaf: mask})
    rng = np.random.default_rng(4)
    T = rng.normal(size=(3, 2, ss.n_outputs))
    T[0, 1, rng.random(ss.n_outputs) < 0.2] = T[2, 0, 1] = np.nan
    T[1, 0] = np.where(np.isnan(T[0, 1]), np.nan, T[1, 0])  # lacks what an earlier one lacks
    eta = rng.normal(size=(2, ss.n_states))
    found = kf.score(ss, T, case.xi, eta, method=method)
    assert found.llf.shape == (3, 2) and isinstance(found, Score) and found.ss is ss
    for at in np.ndindex(3, 2):
        alone = kf.score(ss, T[at], case.xi, eta[at[1]], method=method)
        assert found.llf[at] == pytest.approx(alone.llf, rel=1e-12)
        for name in NAMES:
            close(flat_of(getattr(found, name))[at], flat_of(getattr(alone, name)))
        assert found.Q[0][at].shape == ss.Q[0].shape
    with pytest.raises(ModelError, match=r"score.parts\[i\].filt"):
        _ = found.filt


def test_the_score_of_a_grouped_batch_is_the_derivative_of_the_dense_normal():
    """The log-likelihood of what each row has, differentiated along a random direction of Q and R."""
    rng = np.random.default_rng(7)
    case = random_case(7, 6)
    ss = case.ss
    T = rng.normal(size=(5, ss.n_outputs))
    T[rng.random(T.shape) < 0.3] = np.nan
    assert len({row.tobytes() for row in np.isnan(T)}) > 2
    found = kf.score(ss, T, case.xi, case.eta)
    step = {name: [b @ b.T for b in (rng.normal(size=x.shape) for x in getattr(ss, name))] for name in "QR"}

    def llf(h, row):
        Q, R = ([x + h * d for x, d in zip(getattr(ss, name), step[name])] for name in "QR")
        model = DenseModel.from_blocks(ss.tree.parent, ss.phi, ss.H, Q, R, case.xi, case.eta)
        seen = ~np.isnan(row)
        V, e = model.output_cov[np.ix_(seen, seen)], (row - model.bias)[seen]
        return -0.5 * (e @ np.linalg.solve(V, e) + np.linalg.slogdet(2 * np.pi * V)[1])

    for i, row in enumerate(T):
        rough, fine = ((llf(h, row) - llf(-h, row)) / (2 * h) for h in (2e-4, 1e-4))
        want = (4 * fine - rough) / 3  # error h⁴
        got = sum((getattr(found, name)[k][i] * step[name][k]).sum() for name in "QR" for k in range(len(ss)))
        assert got == pytest.approx(want, rel=1e-7, abs=1e-7)


def test_an_entry_that_leaves_a_flat_prior_open_is_named():
    one = [[1.0]]
    level = kf.StateSpace.chain(one, one, one, one, steps=2)
    trend = kf.StateSpace.chain([[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], np.eye(2), one, steps=2)
    for ask, ss, T in (
        (kf.smooth_batch, level, [[[1.0, 2.0]], [[np.nan, np.nan]]]),
        (kf.smooth_batch, trend, [[[1.0, 2.0]], [[np.nan, 3.0]]]),
        (kf.score, trend, [[[1.0, 2.0]], [[np.nan, 3.0]]]),
    ):
        with pytest.raises(SingularError, match=r"batch entry \[1, 0\]: flat prior: the data never resolve") as error:
            ask(ss, T)
        assert error.value.node == 0


@pytest.mark.parametrize("method", ["block", "univariate", "square_root"])
def test_a_series_without_a_measurement_has_likelihood_one_under_a_flat_prior_too(method):
    one = [[1.0]]
    ss = kf.StateSpace.chain(one, one, one, one, steps=3)
    T = np.array([[1.0, 2.0, 0.5], [np.nan] * 3, [np.nan, 1.0, 4.0]])
    found = kf.score(ss, T, method=method)
    for i, row in enumerate(T):
        alone = kf.score(ss, row, method=method)
        for name in ("phi", "H", "Q", "R", "logdet_Q", "logdet_R"):
            close(getattr(found, name).flat[i], getattr(alone, name).flat)
        assert found.llf[i] == pytest.approx(alone.llf)
    assert found.llf[1] == 0.0 and not found.Q.flat[1].any() and not found.logdet_R.flat[1].any()
    assert not kf.score(ss, T[[1, 1]], method=method).phi.flat.any()


def test_the_score_of_smooth_batch():
    case = random_case(1, 5)
    T = np.stack([case.T, np.where(np.arange(case.T.size) == 1, np.nan, case.T)])
    np.testing.assert_array_equal(kf.smooth_batch(case.ss, T).score.Q.flat, kf.score(case.ss, T).Q.flat)
    close(kf.smooth_batch(case.ss, case.T).score.Q.flat, kf.score(case.ss, case.T).Q.flat)
    assert kf.smooth_batch(case.ss, np.zeros((0, case.T.size))).score.Q.flat.shape == (0, case.ss.Q.flat.size)
