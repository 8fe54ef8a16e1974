"""Batches over robots that differ against Pinocchio, a model for each robot."""

import sys
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf

pin = pytest.importorskip("pinocchio")
from pinocchio_models import pinocchio_model  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "dynamics"))
from varied_cases import varied  # noqa: E402


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-11 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("make", [kf.models.stanford_arm, kf.models.humanoid, lambda: kf.models.random_tree(10, 8)])
def test_each_robot_is_pinocchios(make):
    rng = np.random.default_rng(3)
    batch = varied(make(), 6, rng)
    if any(body.hinge.kind == "custom" for body in batch.pattern.bodies):
        batch = varied(kf.models.random_tree(10, 8, ("revolute", "prismatic", "ball", "free", "fixed")), 6, rng)
    q, (v, u) = batch.random_configuration(rng), rng.normal(size=(2, 6, batch.nv))
    a, tau, M = kf.forward_dynamics(batch, q, v, u), kf.inverse_dynamics(batch, q, v, u), kf.mass_matrix(batch, q)
    for i, system in enumerate(batch):
        oracle = pinocchio_model(system)
        x, y, z, at = oracle.q(q[i]), oracle.v(v[i]), oracle.v(u[i]), oracle.v_index
        close(a[i], pin.aba(oracle.model, oracle.data, x, y, z)[at])
        close(tau[i], pin.rnea(oracle.model, oracle.data, x, y, z)[at])
        theirs = np.triu(pin.crba(oracle.model, oracle.data, x))
        close(M[i], (theirs + np.triu(theirs, 1).T)[np.ix_(at, at)])
