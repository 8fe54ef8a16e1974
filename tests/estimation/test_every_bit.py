"""The engine gives a vector the same bits, whatever goes with it; and runs as it stands, every index checked."""

import numpy as np
import pytest
from random_models import random_case

import kfdyn as kf
from kfdyn.errors import SingularError
from kfdyn.estimation.inference import batching
from kfdyn.estimation.recursions import costate_covariances
from kfdyn.estimation.recursions.linalg import matrices
from kfdyn.sweeps import Checks


def model(kind, nodes=40):
    """A ragged tree, and chains of known sizes: one state, six states, six states with vector outputs."""
    if kind == "ragged":
        return random_case(7, nodes).ss
    n, m = kind
    rng = np.random.default_rng(n + m)
    F, H, A = 0.5 * rng.normal(size=(n, n)), rng.normal(size=(m, n)), rng.normal(size=(n, n))
    return kf.StateSpace.chain(F, H, A @ A.T, np.eye(m), np.zeros(n), np.eye(n), steps=70)


def answers(ss, T, eta):
    filt = kf.kalman_filter(ss, T, eta=eta)
    smooth = kf.bryson_frazier(ss, filt)
    op, factor = kf.Operators(ss), kf.innovations_factor(ss)
    blocks = (filt.z, filt.z_plus, smooth.x, smooth.costate, smooth.costate_plus)
    products = (op.phi.forward(eta), op.psi.backward(eta), op.E_phi.forward(eta), op.Q.forward(eta))
    return [filt.eps, filt.nu, filt.llf, smooth.a, factor.solve(T), *(b.flat for b in blocks), *products]


@pytest.mark.parametrize("kind", ["ragged", (1, 1), (6, 1), (6, 2)])
def test_the_bits_of_a_vector_depend_on_nothing_but_it(kind, monkeypatch):
    ss, rows, rng = model(kind), 37, np.random.default_rng(3)
    T, eta = rng.normal(size=(rows, ss.n_outputs)), rng.normal(size=(rows, ss.n_states))
    whole = answers(ss, T, eta)
    for first, last in ((0, 1), (5, 6), (3, 5), (2, 19), (20, 37)):
        for part, all_ in zip(answers(ss, T[first:last], eta[first:last]), whole):
            np.testing.assert_array_equal(part, all_[first:last])
    for part, all_ in zip(answers(ss, T[9], eta[9]), whole):
        np.testing.assert_array_equal(part, all_[9])
    monkeypatch.setattr(batching, "_ROWS_PER_THREAD", 4)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", threads)
        for part, all_ in zip(answers(ss, T, eta), whole):
            np.testing.assert_array_equal(part, all_)


@pytest.mark.parametrize("steps", [1, 2, 7, 12, 33, 257])
def test_a_likelihood_alone_is_that_in_a_batch(steps):
    ss = kf.StateSpace.chain([[0.9]], [[1.0]], [[1.0]], [[0.5]], [0.0], [[1.0]], steps=steps)
    T = np.random.default_rng(steps).normal(size=(50, steps))
    whole = kf.kalman_filter(ss, T).llf
    np.testing.assert_array_equal(whole, [kf.kalman_filter(ss, t).llf for t in T])
    np.testing.assert_array_equal(whole.reshape(10, 5), kf.kalman_filter(ss, T.reshape(10, 5, steps)).llf)


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize("kind", ["ragged", (2, 1), (3, 2)])
def test_plain_numbers_give_the_same_answers(kind, method, monkeypatch):
    ss = model(kind, nodes=9)
    rng = np.random.default_rng(5)
    T, eta = rng.normal(size=(2, ss.n_outputs)), rng.normal(size=(2, ss.n_states))
    T[:, ::7] = np.nan

    def everything(ss):
        filt = kf.kalman_filter(ss, T, eta=eta, method=method)
        smooth = kf.bryson_frazier(ss, filt)
        factor, cov = kf.innovations_factor(ss), kf.Covariances(ss)
        given = np.nan_to_num(T)
        return [
            filt.P.flat, filt.D.flat, filt.G.flat, filt.llf, smooth.x.flat, smooth.a, smooth.S.flat, smooth.Lambda.flat,
            factor.inverse() if kind == "ragged" else 0.0, factor.unwhiten(given), factor.whiten(given),
            factor.inverse_blocks().flat, cov.x.diagonal.flat, cov.psi.steps.flat,
            kf.Operators(ss).output_cov.forward(given),
        ]  # fmt: skip

    compiled = everything(ss)
    monkeypatch.setattr(Checks, "on", True)
    plain = everything(ss.replace(Q=list(ss.Q)))  # which has kept nothing yet
    for one, other in zip(plain, compiled):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11 * (1 + np.abs(other).max()))


def test_failures_are_found_on_plain_numbers_as_well(monkeypatch):
    """Without any variance D is 0, by which Python would not divide."""
    monkeypatch.setattr(Checks, "on", True)
    for outputs in (1, 2):
        H = np.eye(2)[:outputs]
        ss = kf.StateSpace.chain(
            np.eye(2), H, np.zeros((2, 2)), np.zeros((outputs, outputs)), [0, 0], np.eye(2), steps=3
        )
        for method in ("block", "univariate"):
            with pytest.raises(SingularError, match="innovation variance is 0"):
                kf.riccati(ss, method=method)


def test_a_wrong_index_is_caught(monkeypatch):
    """A congruence that goes one row too far: compiled code would read what is beyond."""
    right = matrices.transposed_congruence

    def too_far(out, A, S, work):
        right(out, A, S, work)
        out[A.shape[1], 0] = 0.0

    monkeypatch.setattr(costate_covariances, "transposed_congruence", too_far)
    monkeypatch.setattr(Checks, "on", True)
    ss = model("ragged", nodes=9)
    with pytest.raises(IndexError):
        _ = kf.riccati(ss).smoothed
