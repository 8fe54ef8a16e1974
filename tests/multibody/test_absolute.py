"""Absolute angles, against angular velocities of the bodies and the change of variables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.spatial import spatial_inertia


def planar_tree(seed):
    """Bodies in a plane, axes up or down, with slides, fixed hinges and turned frames in between."""
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(int(rng.integers(2, 9))):
        kind = rng.choice(["revolute", "slide", "fixed"], p=[0.7, 0.2, 0.1])
        flip, angle = rng.choice([-1.0, 1.0]), rng.uniform(-3, 3)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.diag([1.0, flip, flip])
        hinge = {
            "revolute": kf.Hinge.revolute([0, 0, rng.choice([-1.0, 1.0])]),
            "slide": kf.Hinge.prismatic([c, s, 0]),
            "fixed": kf.Hinge.fixed(),
        }[kind]
        inertia = spatial_inertia(rng.uniform(0.5, 2), rng.normal(size=3), np.diag(rng.uniform(2, 3, 3)))
        parent = None if k == 0 else f"b{rng.integers(k)}"
        bodies.append(kf.Body(f"b{k}", inertia, hinge, parent=parent, rotation=turn, position=rng.normal(size=3)))
    return kf.System(bodies), rng


@given(st.integers(0, 10**6))
def test_rates_are_those_of_the_bodies_themselves(seed):
    system, rng = planar_tree(seed)
    arm = kf.absolute_angles(system)
    assert arm.nv == system.nv
    q, v = rng.normal(size=(2, arm.nv))
    relative, rates = arm.expand(q), arm.expansion(q) @ v
    for k, body in enumerate(system.bodies):
        if body.hinge.nv and body.hinge.screws[0, :3].any():
            axis = kf.frame_pose(system, relative, body.name).rotation @ body.hinge.screws[0, :3]
            omega = kf.frame_velocity(system, relative, rates, body.name)[:3]
            np.testing.assert_allclose(omega, v[arm.v_slice(system.hinge_names[k])] * axis, atol=1e-12)


@given(st.integers(0, 10**6))
def test_dynamics_is_the_same_in_other_variables(seed):
    system, rng = planar_tree(seed)
    arm = kf.absolute_angles(system)
    q, v, tau = rng.normal(size=(3, arm.nv))
    X = arm.expansion(q)
    M = kf.mass_matrix(system, arm.expand(q))
    np.testing.assert_allclose(kf.mass_matrix(arm, q), X.T @ M @ X, rtol=1e-11, atol=1e-11 * abs(M).max(initial=0.0))
    a = kf.forward_dynamics(arm, q, v, X.T @ tau)
    expected = kf.forward_dynamics(system, arm.expand(q), X @ v, tau)
    np.testing.assert_allclose(X @ a, expected, rtol=1e-8, atol=1e-9 * abs(expected).max(initial=0.0))


def test_a_planar_chain_is_told_by_its_inclinations():
    """𝓜_ij = m_ij cos(θ_i − θ_j): the textbook's form of a chain of pendulums; gravity acts link by link."""
    n = 5
    chain = kf.absolute_angles(kf.models.uniform_chain(n))
    theta = np.random.default_rng(0).normal(size=n)
    M, straight = kf.mass_matrix(chain, theta), kf.mass_matrix(chain, np.zeros(n))
    np.testing.assert_allclose(M, straight * np.cos(theta[:, None] - theta[None, :]), rtol=1e-12, atol=1e-12)
    bias = kf.bias_forces(chain, theta, np.zeros(n))
    alone = [kf.bias_forces(chain, np.where(np.arange(n) == i, theta, 0.0), np.zeros(n))[i] for i in range(n)]
    np.testing.assert_allclose(bias, alone, rtol=1e-12)


def test_axes_that_are_not_parallel_keep_their_coordinates():
    puma = kf.models.puma560()
    arm = kf.absolute_angles(puma)
    (pair,) = arm.couplings  # shoulder and elbow
    X = arm.expansion()
    assert len(pair.hinges) == 2 and np.count_nonzero(X - np.eye(6)) == 1
    spatial = kf.models.random_tree(6, seed=1)
    assert kf.absolute_angles(spatial).is_tree


def test_couplings_come_afterwards():
    chain = kf.models.uniform_chain(3)
    geared = kf.System(chain.bodies, couplings=[kf.Coupling(list(chain.hinge_names[:2]), [1.0, 2.0])])
    with pytest.raises(ModelError, match=r"1 coupling; ask for absolute angles of system\.open_tree"):
        kf.absolute_angles(geared)
