"""The same robot with other rotors."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError


def test_rotors_are_replaced_and_couplings_stay():
    tree = kf.models.chain(4, seed=1)
    s = tree.with_couplings([kf.Coupling(tree.hinge_names[:2], [1.0, 3.0])])
    q, rotors = np.full(3, 0.3), np.array([0.1, 0.2, 0.0, 0.4])
    bare, driven = kf.dynamics.with_armature(s, np.zeros(4)), kf.dynamics.with_armature(s, list(rotors))
    np.testing.assert_allclose(driven.open_tree.armature, rotors)
    X = s.expansion()
    added = kf.mass_matrix(driven, q) - kf.mass_matrix(bare, q)
    np.testing.assert_allclose(added, X.T @ np.diag(rotors) @ X, atol=1e-12)
    assert tree.armature.tolist() == s.open_tree.armature.tolist()  # the given one is as it was


def test_what_is_wrong_is_named():
    arm = kf.models.double_pendulum()
    for wrong in ([0.1], [[0.1, 0.2]], 0.1):
        with pytest.raises(ShapeError, match="armature"):
            kf.dynamics.with_armature(arm, wrong)
    with pytest.raises(ModelError, match="armature"):
        kf.dynamics.with_armature(arm, [0.1, -0.2])
    with pytest.raises(ModelError, match=r"system must be a kfdyn\.System"):
        kf.dynamics.with_armature("arm.urdf", [0.1])
