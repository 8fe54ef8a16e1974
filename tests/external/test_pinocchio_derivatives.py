"""Derivatives of forward and inverse dynamics against Pinocchio's analytical ones, to 1e-10, every hinge it has."""

import numpy as np
import pytest

import kfdyn as kf
import kfdyn.multibody as mb

pin = pytest.importorskip("pinocchio")
from pinocchio_models import pinocchio_model  # noqa: E402

#: Its composite joints (gimbal, universal, cylindrical as here) have no derivatives; differences serve those elsewhere.
HINGES = ("revolute", "prismatic", "ball", "free", "fixed")


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max(initial=0.0)))


def assert_same(system, q, rng):
    oracle = pinocchio_model(system)
    model, data, at = oracle.model, oracle.data, oracle.v_index
    v, u = rng.normal(size=(2, len(q), system.nv))
    ours = kf.forward_dynamics_derivatives(system, q, v, u), kf.inverse_dynamics_derivatives(system, q, v, u)
    for b in range(len(q)):
        x, y, z = oracle.q(q[b]), np.zeros(model.nv), np.zeros(model.nv)
        y[at], z[at] = v[b], u[b]
        theirs = [np.array(m) for m in pin.computeABADerivatives(model, data, x, y, z)]
        theirs[2] = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
        for one, other in zip(ours[0], theirs):
            close(one[b], other[np.ix_(at, at)])
        theirs = [np.array(m) for m in pin.computeRNEADerivatives(model, data, x, y, z)]
        theirs[2] = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
        for one, other in zip(ours[1], theirs):
            close(one[b], other[np.ix_(at, at)])


@pytest.mark.parametrize("seed", range(6))
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    system = mb.models.random_tree(9, seed, HINGES, 1 + seed % 2, rng.uniform(), armature=seed % 2 == 1)
    system = mb.System(system.bodies, rng.normal(size=3))
    assert_same(system, np.stack([system.random_configuration(rng) for _ in range(3)]), rng)


@pytest.mark.parametrize("make", [kf.models.puma560, kf.models.stanford_arm, kf.models.humanoid, kf.models.free_flyer])
def test_robots_at_random_and_at_rest(make):
    system, rng = make(), np.random.default_rng(0)
    assert_same(system, np.stack([system.neutral(), system.random_configuration(rng)]), rng)
