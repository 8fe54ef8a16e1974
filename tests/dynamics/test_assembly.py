"""The translation of a robot into an estimation problem."""

import numpy as np
import pytest
from dense_dynamics import dense_bias, dense_mass_matrix, over, quick
from flexible_cases import random_flexible
from hypothesis import given
from multibody_cases import close, forest, phi, seeds, state

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics import as_estimation, as_forest, partition_hinges
from kfdyn.errors import ModelError, ShapeError, SingularError


@quick
@given(seeds)
def test_dictionary(seed):
    """R86:T6.1, R86:3.1, R86:3.5, R86:4.4, R86:5.6. Node k is body k, and every block is what the table says."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    force, g = rng.normal(size=(system.n_bodies, 6)), rng.normal(size=3)
    ss, terms = as_estimation(system, q, v, force, g), mb.link_terms(system, q, v, force, g)
    assert ss.tree.names == system.hinge_names
    np.testing.assert_array_equal(ss.tree.parent, system.parent)
    for k, body in enumerate(system.bodies):
        own = system.v_slice(body.hinge_name)
        np.testing.assert_array_equal(ss.H[k], terms.H[own])
        np.testing.assert_array_equal(ss.Q[k], terms.inertia[k])
        np.testing.assert_array_equal(ss.R[k], np.diag(body.armature))
        if system.parent[k] >= 0:
            np.testing.assert_array_equal(ss.phi[k], phi(terms.l[k]))
    np.testing.assert_array_equal(ss.xi, terms.xi.reshape(-1))
    np.testing.assert_array_equal(ss.eta, terms.eta.reshape(-1))


@quick
@given(seeds)
def test_a_model_the_engine_would_accept(seed):
    """The unchecked buffers pass every check of the engine and mean the same to it."""
    system, rng = forest(seed)
    ss = as_estimation(system, *state(system, rng))
    phi = [None if p < 0 else b for p, b in zip(ss.tree.parent, ss.phi)]
    checked = kf.StateSpace(ss.tree, phi, list(ss.H), list(ss.Q), list(ss.R), ss.xi, ss.eta)
    T = rng.normal(size=system.nv)
    first, second = kf.kalman_filter(ss, T), kf.kalman_filter(checked, T)
    np.testing.assert_array_equal(first.eps, second.eps)


@quick
@given(seeds)
def test_moments_of_T(seed):
    """ATBI:cov-T, R86:7.1, SKO:eom, PART:1. T has covariance 𝓜 and mean c: the robot's equation of motion."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    ss = as_estimation(system, q, v)
    op = kf.Operators(ss)
    mean = op.H @ (op.phi @ (ss.xi + op.Q @ (op.phi.H @ ss.eta)))
    cov, whole = kf.Covariances(ss).T, dense_mass_matrix(system, q)
    close(cov.dense(), whole)
    for i, j in np.ndindex(len(ss), len(ss)):
        own, other = (system.v_slice(system.hinge_names[k]) for k in (i, j))
        close(cov.block(i, j), whole[own, other])
    close(mean, dense_bias(system, q, v))


@pytest.mark.parametrize("batch", [(3,), (2, 3), (0,), (2, 0)])
def test_a_batch_is_a_forest(batch):
    system, rng = forest(7, n=6)
    q, v = rng.normal(size=(*batch, system.nv)), rng.normal(size=(*batch, system.nv))
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, system.nq)
    made = as_forest(system, q, v)
    assert made.lead == batch and len(made.ss) == np.prod(batch) * system.n_bodies
    if made.ss.n_outputs:
        T = rng.normal(size=(*batch, system.nv))
        filt = kf.kalman_filter(made.ss, made.stack(T))
        one_by_one = over(batch, lambda q, v, T: kf.kalman_filter(as_estimation(system, q, v), T).eps, q, v, T)
        np.testing.assert_array_equal(made.by_dof(filt.eps), one_by_one)
        assert made.by_body(filt.z.flat).shape == (*batch, system.n_bodies, 6)
        assert made.where(system.n_bodies + 2) == (1, 2)


def test_a_forest_refuses_what_does_not_fit():
    made = as_forest(kf.models.puma560(), np.zeros((2, 6)))
    with pytest.raises(ShapeError, match=r"shape \(3, 6\) does not broadcast to \(2, 6\)"):
        made.stack(np.zeros((3, 6)))


def rods(kind):
    """Thin rods, whose moment about their own axis is 0, in every kind of system."""
    chain = kf.models.uniform_chain(3)
    first, second, _ = chain.hinge_names
    if kind == "geared":
        return kf.System(chain.bodies, couplings=[kf.Coupling([first, second], [[1.0], [0.5]])])
    if kind == "looped":
        return chain.with_loops([kf.Loop(chain.body_names[-1], None, rows=(5,))])
    if kind == "flexible":
        tip = random_flexible(np.random.default_rng(0), "tip", parent=chain.body_names[-1], position=[1.0, 0, 0])
        return kf.FlexibleSystem([*chain.bodies, tip])
    return chain


@pytest.mark.parametrize("angle", 10.0 ** np.arange(-17, -3, 2))
@pytest.mark.parametrize("kind", ["tree", "geared", "looped", "flexible"])
def test_the_translation_tells_what_was_turned(kind, angle):
    """Estimation knows no inertia; told that forces are vectors, it takes no rounding for a negative variance."""
    system = rods(kind)
    q = system.neutral()
    q[:3] += angle
    ss = as_estimation(system, q)
    assert ss.vectors is not None and ss.vectors.tolist() == (ss.n % 6 == 0).tolist()
    for model in (ss, partition_hinges(ss).ss, as_forest(system, [q, q]).ss if kind == "tree" else ss):
        assert np.isfinite(kf.draw(model, np.random.default_rng(0), 2).x).all()
        model.replace(Q=list(model.Q))


def test_refusals():
    system = kf.models.puma560()
    q = np.zeros(6)
    with pytest.raises(ShapeError, match=r"one configuration.*leading axes \(2,\)"):
        as_estimation(system, np.zeros((2, 6)))
    with pytest.raises(ShapeError, match="q must have shape"):
        as_estimation(system, np.zeros(5))
    with pytest.raises(ModelError, match="v has entries that are not finite"):
        as_estimation(system, q, np.full(6, np.nan))
    with pytest.raises(ShapeError, match="external_forces must have shape"):
        as_estimation(system, q, external_forces=np.zeros((5, 6)))
    flyer = kf.models.free_flyer()
    with pytest.raises(ModelError, match="quaternion"):
        as_estimation(flyer, 2 * flyer.neutral())


def test_hinge_is_named_by_the_engine():
    system = kf.models.double_pendulum(mass=(1.0, 0.0))
    with pytest.raises(SingularError, match="elbow"):
        kf.kalman_filter(as_estimation(system, [0.1, 0.2]), [0.0, 0.0])
