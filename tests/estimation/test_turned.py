"""Vectors that were turned: rounding of the largest variance is no negative variance of the smallest."""

import pickle

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.covariance_factors import square_root

EPS = np.finfo(float).eps
SMALL = 10.0 ** np.arange(-17, 0)


def one_node(Q, vectors=False):
    return kf.StateSpace([-1], [None], [np.zeros((0, len(Q)))], [Q], vectors=vectors)


def turned(J, m, seed):
    """An inertia about the mass centre, [[RJR*, 0], [0, m]], turned by a small rotation R."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3) * 10.0 ** rng.uniform(-9, -3)
    rotation = np.linalg.qr(np.eye(3) + np.cross(np.eye(3), axis))[0]
    moments = rotation @ np.diag(J) @ rotation.T
    Q = np.zeros((6, 6))
    Q[:3, :3], Q[3:, 3:] = 0.5 * (moments + moments.T), m * np.eye(3)
    return Q


@pytest.mark.parametrize("angle", SMALL)
def test_a_rod_along_an_axis_is_drawn(angle):
    """Its moment about the axis is θ²/3 of which ε/3 is rounding: for θ < 1e-6 that is more than 1e-4 of it."""
    rods = kf.models.uniform_chain(3)
    for quarter in range(4):
        ss = kf.as_estimation(rods, [quarter * np.pi / 2 + angle, angle, -angle])
        drawn = kf.draw(ss, np.random.default_rng(0), 5)
        assert np.isfinite(drawn.x).all()
        kf.StateSpace(ss.tree, list(ss.phi), list(ss.H), list(ss.Q), vectors=True)
        again = pickle.loads(pickle.dumps(ss)).replace(Q=list(ss.Q))
        assert np.isfinite(kf.draw(again, np.random.default_rng(0)).x).all()


@pytest.mark.parametrize("angle", SMALL)
def test_its_root_is_that_of_the_whole_vector(angle):
    """A A* = Q to the rounding of the largest moment, in covariances with a variance that is rounded to 0 as well."""
    ss = kf.as_estimation(kf.models.uniform_chain(3), np.full(3, angle))
    for Q, A in zip(ss.Q, square_root(ss.Q, ss.vectors)):
        assert np.abs(A @ A.T - Q).max() < (5 if np.finfo(np.longdouble).eps < EPS else 8) * EPS


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(10))
def test_what_no_body_has_is_refused_just_beyond_rounding(seed, unit):
    """A body's lowest moment may be −1e-12 of the sum of its moments, by which J_c is known, and no less."""
    J = unit**2 * np.array([1.0, 0.7])
    for allowed in (0.0, -1e-13, -1e-12):
        one_node(turned(np.append(J, allowed * J.sum()), 2.0, seed), vectors=True)
    for refused in (-1e-11, -1e-9, -1e-3):
        with pytest.raises(ModelError, match="Q of node 0 is not positive semi-definite"):
            one_node(turned(np.append(J, refused * J.sum()), 2.0, seed), vectors=True)


def test_small_units_are_no_rounding():
    """The same numbers, where nothing says that they are components of a vector."""
    Q = np.diag([1e-15, 1.0, 1.0])
    Q[0, 1] = Q[1, 0] = np.sqrt(1e-15) * 1.001
    with pytest.raises(ModelError, match="not positive semi-definite"):
        one_node(Q)
    one_node(Q, vectors=True)
    with pytest.raises(ModelError, match="not positive semi-definite"):
        one_node(np.kron(np.diag([1.0, 0.0]), Q) + np.diag([0.0, 0, 0, 1, 2, 3]))


def test_what_rounding_broke_is_refused_with_its_cure():
    """Nothing in the numbers of a covariance makes it a body's: who builds one by hand gives a factor, or says it."""
    rod = np.array([[1e-16 / 3, -1e-8 / 3, 0.0], [-1e-8 / 3, 1 / 3, 0.0], [0.0, 0.0, 1.0]])
    rod[0, 0] *= 0.9  # by 1e-17
    Q = np.zeros((6, 6))
    Q[:3, :3], Q[3:, 3:] = rod, np.eye(3)
    with pytest.raises(
        ModelError, match=r"Q of node 0 is not positive semi-definite .* takes a factor of it as Q_factor"
    ):
        one_node(Q)
    one_node(Q, vectors=True)
    factor = np.diag([0.0, 1 / np.sqrt(3), 1.0, 1.0, 1.0, 1.0])
    factor[0, 1] = -1e-8 / np.sqrt(3)
    by_factor = kf.StateSpace([-1], [None], [np.zeros((0, 6))], Q_factor=[factor])
    assert np.isfinite(kf.draw(by_factor, np.random.default_rng(0)).x).all()


def test_the_hint_is_of_nodes_and_of_three_components():
    def pair(vectors):
        return kf.StateSpace(
            [1, -1], [np.ones((3, 2)), None], [np.eye(2), np.eye(3)], [np.eye(2), np.eye(3)], vectors=vectors
        )

    assert pair([False, True]).vectors.tolist() == [False, True]
    assert pair(False).vectors is None
    with pytest.raises(ShapeError, match="node 0 is made of vectors of three components, but it has 2"):
        pair(True)
    for wrong in ([True], 3, [1, 0]):
        with pytest.raises(ShapeError, match="a mask with one bool for each of the 2 nodes"):
            pair(wrong)


def test_a_small_variance_of_its_own_stays_in_the_root():
    """What has a variance of 1e-20 beside 1 keeps it, in a vector as well."""
    Q = np.diag([1e-20, 1.0, 2.0, 3.0, 3.0, 3.0])
    ss = one_node(Q, vectors=True)
    A = square_root(ss.Q, ss.vectors)[0]
    np.testing.assert_allclose(np.diag(A @ A.T), np.diag(Q), rtol=1e-14)


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1.0, 1e6])
def test_a_negative_variance_is_refused_in_any_unit(unit):
    for variances in ([1.0, -1.0], [1.0, -1e-8], [-1e-8, 1.0, 2.0], [-1.0, 0.0]):
        with pytest.raises(ModelError, match="not positive semi-definite"):
            one_node(unit**2 * np.diag(variances))
