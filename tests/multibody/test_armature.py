"""The same robot with other rotors."""

import pickle
from dataclasses import replace

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


def test_friction_is_kept_beside_damping_and_armature():
    """Per dof; of gears with the sizes of their ratios; kept by pickles, other rotors, and pickles that had none."""
    bodies = [replace(body, friction=0.1 * (k + 1)) for k, body in enumerate(kf.models.chain(3, seed=1).bodies)]
    tree = kf.System(bodies)
    assert tree.friction.tolist() == [0.1, 0.2, 0.1 * 3]
    names = tree.hinge_names
    geared = tree.with_couplings([kf.Coupling([names[0], names[2]], [1.0, -4.0])])
    for s in (geared, pickle.loads(pickle.dumps(geared)), kf.dynamics.with_armature(geared, [1.0, 0.0, 1.0])):
        np.testing.assert_allclose(s.friction, [0.1 + 4 * 0.3, 0.2], rtol=1e-15)
    differential = tree.with_couplings([kf.Coupling(names, [[1.0, 1.0], [1.0, -1.0], [0.0, 1.0]])])
    with pytest.raises(ModelError, match=r"friction is of hinges that move with several coordinates.*open_tree"):
        _ = differential.friction
    flexible = kf.FlexibleSystem(bodies)
    assert flexible.friction.tolist() == tree.friction.tolist()
    with pytest.raises(ModelError, match=r"its friction is that of its hinges, system\.uncoupled\.friction"):
        _ = flexible.with_couplings(geared.couplings).friction
    with pytest.raises(ModelError, match="friction must be finite and not negative"):
        replace(bodies[0], friction=-1.0)
    old = {key: value for key, value in bodies[0].__dict__.items() if key != "friction"}
    body = object.__new__(kf.Body)
    body.__setstate__(old)
    assert body.friction.tolist() == [0.0] and body.name == bodies[0].name
