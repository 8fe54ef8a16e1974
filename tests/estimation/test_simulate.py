"""Draws from a model and from the posterior: exact linear maps, not statistics, wherever a map can be read off."""

import numpy as np
import pytest
from hypothesis import given
from random_models import cases, close, few, random_case

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.dense import dense_posterior


class UnitNormals(np.random.Generator):
    """A generator whose normals are, one call after the other, the columns of an identity: it reads a map off."""

    def __init__(self, sizes):
        super().__init__(np.random.PCG64(0))
        total = sum(sizes)
        self.rows = np.eye(total)
        self.splits = list(np.cumsum([0, *sizes]))

    def standard_normal(self, size):
        first = self.splits.pop(0)
        part = self.rows[:, first : first + size[-1]]
        assert size == part.shape
        return part


@few
@given(cases())
def test_draw_has_the_covariance_of_the_model(case):
    """R86:9.1-9.3: w ~ N(ξ, Q), x = φ w, T = H x + r; with η the mean of w is ξ + Qφ*η."""
    ss = case.ss
    size = ss.n_states + ss.n_outputs
    drawn = kf.draw(ss, UnitNormals([ss.n_states, ss.n_outputs]), size)
    dense = case.dense(xi=np.zeros_like(case.xi), eta=np.zeros_like(case.eta))
    close(drawn.w.T @ drawn.w, dense.Q)
    close(drawn.x.T @ drawn.x, dense.phi @ dense.Q @ dense.phi.T)
    close(drawn.T.T @ drawn.T, dense.output_cov)
    moved = kf.StateSpace(
        ss.tree, [None if p < 0 else f for p, f in zip(ss.tree.parent, ss.phi)], ss.H, ss.Q, ss.R, case.xi, case.eta
    )
    there, here = (kf.draw(model, np.random.default_rng(1)) for model in (moved, ss))
    close(there.T - here.T, case.dense().bias)
    mean = case.xi + dense.Q @ (dense.phi.T @ case.eta)
    close(there.w - here.w, mean)
    close(there.x - here.x, dense.phi @ mean)


@few
@given(cases(missing=True))
def test_posterior_draws_have_the_posterior_mean_and_joint_covariance(case):
    ss = case.ss
    size = ss.n_states + ss.n_outputs
    filt = kf.kalman_filter(ss, case.T, case.xi, case.eta)
    deviation = kf.draw_posterior(filt, UnitNormals([ss.n_states, ss.n_outputs]), size)
    posterior = dense_posterior(case.dense(), case.T)
    deviation -= posterior.mean
    close(deviation.T @ deviation, posterior.cov, digits=9)  # a product of two draws squares their rounding scale


def test_exact_measurements_hold_in_every_draw():
    case = random_case(3, 12, noise=False)
    drawn = kf.draw_posterior(kf.kalman_filter(case.ss, case.T), np.random.default_rng(0), 50)
    close(drawn @ case.ss.H.dense().T, np.tile(case.T, (50, 1)))


def test_shapes_and_batches():
    case = random_case(5, 6)
    rng = np.random.default_rng(0)
    assert kf.draw(case.ss, rng).x.shape == (case.ss.n_states,)
    assert kf.draw(case.ss, rng, 0).T.shape == (0, case.ss.n_outputs)
    batch = kf.kalman_filter(case.ss, np.tile(case.T, (2, 3, 1)))
    assert kf.draw_posterior(batch, rng, 4).shape == (4, 2, 3, case.ss.n_states)
    assert kf.draw_posterior(batch, rng).shape == (2, 3, case.ss.n_states)


def test_a_seed_is_no_generator():
    with pytest.raises(ModelError, match="default_rng"):
        kf.draw(random_case(1, 2).ss, 0)


def test_draws_do_not_leave_the_range_of_a_singular_Q():
    v = np.array([1.0, 2.0, 3.0])
    ss = kf.StateSpace([-1], [None], [np.ones((1, 3))], [np.outer(v, v)])
    w = kf.draw(ss, np.random.default_rng(0), 1000).w
    np.testing.assert_allclose(w, np.outer(w[:, 0], v), rtol=0, atol=1e-13)


def test_a_state_in_small_units_is_drawn_too():
    Q = np.array([[1.0, 0.5e-20], [0.5e-20, 1e-40]])
    ss = kf.StateSpace([-1], [None], [np.ones((1, 2))], [Q])
    unit = kf.draw(ss, np.random.default_rng(0), 20_000).w / [1.0, 1e-20]
    np.testing.assert_allclose(unit.T @ unit / 20_000, [[1.0, 0.5], [0.5, 1.0]], atol=0.05)  # five deviations


def test_batched_inputs_follow_the_draws():
    """Each entry of the model's batch is drawn for itself, about its own mean."""
    one, xi = np.ones((1, 1)), np.array([[0.0], [1e6]])
    ss = kf.StateSpace([-1], [None], [one], [one], [one], xi=xi)
    drawn = kf.draw(ss, np.random.default_rng(0), 5)
    assert drawn.w.shape == drawn.x.shape == drawn.T.shape == (5, 2, 1)
    centred = drawn.w - xi
    assert np.abs(centred).max() < 6
    assert np.unique(centred.round(6)).size == 10
    assert kf.draw(ss, np.random.default_rng(0)).x.shape == (2, 1)


@pytest.mark.parametrize("n", [-1, 2.5, "3"])
def test_a_number_of_draws_is_a_number(n):
    ss = kf.StateSpace([-1], [None], [np.ones((1, 1))], [np.ones((1, 1))])
    rng = np.random.default_rng(0)
    for ask in (
        lambda: kf.draw(ss, rng, n),
        lambda: kf.draw_posterior(kf.kalman_filter(ss, [1.0]), rng, n),
        lambda: kf.innovations_factor(ss).sample(rng, n),
        lambda: kf.innovations_factor(ss).sample_inverse(rng, n),
    ):
        with pytest.raises(ShapeError, match="n must be a number of draws"):
            ask()


def test_flat_priors_are_not_implemented_and_said_to_be_proper():
    """The words advise means and covariances, which exist; a draw of the model itself would be infinite."""
    one = [[1.0]]
    flat = kf.StateSpace.chain(one, one, one, one, steps=3)
    filt, rng = kf.kalman_filter(flat, [1.0, 2.0, 3.0]), np.random.default_rng(0)
    with pytest.raises(ModelError, match=r"not implemented for models with flat priors.*bryson_frazier\(filt\)"):
        kf.draw_posterior(filt, rng)
    smooth = kf.bryson_frazier(filt)
    assert np.isfinite(smooth.x.flat).all() and np.isfinite(smooth.S.flat).all()
    with pytest.raises(ModelError, match="a draw would be infinite"):
        kf.draw(flat, rng)
