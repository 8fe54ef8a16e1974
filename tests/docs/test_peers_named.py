"""The functions of other libraries that the pages name exist, and mean what the pages say."""

import re
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf

PAGE = (Path(__file__).parents[2] / "docs" / "for_roboticists.md").read_text(encoding="utf-8")
ROWS = [
    [re.findall(r"`(\w+(?:\.\w+)*)", cell) for cell in line.split("|")[1:-1]]
    for line in PAGE.partition("| Pinocchio | MuJoCo | kfdyn |")[2].partition("\n\n")[0].splitlines()[2:]
]


def reach(home, name):
    for part in name.split("."):
        home = getattr(home, part)
    return home


def test_there_are_rows():
    assert len(ROWS) >= 8
    assert all(len(row) == 3 for row in ROWS)


def test_pinocchio_has_them():
    pin = pytest.importorskip("pinocchio")
    for row in ROWS:
        for name in row[0]:
            assert reach(pin, name) is not None


def test_mujoco_has_them():
    mujoco = pytest.importorskip("mujoco")
    fields = dir(mujoco.MjData)
    for row in ROWS:
        for name in row[1]:
            assert name in fields or reach(mujoco, name) is not None


def test_kfdyn_has_them():
    for row in ROWS:
        assert row[2]
        for name in row[2]:
            assert name.startswith("kf.")
            assert reach(kf, name.removeprefix("kf.")) is not None


def test_rows_compute_the_same():
    """The right column gives what the left one gives, in the conventions that the page states."""
    pin = pytest.importorskip("pinocchio")
    arm = kf.models.puma560()
    model = pin.buildModelFromXML(kf.save_urdf(arm))
    model.armature = arm.armature
    data = model.createData()
    q, v, tau = np.random.default_rng(0).normal(size=(3, 6))
    a = kf.forward_dynamics(arm, q, v, tau)
    q_there = kf.to_pinocchio(arm, model, q).q  # cosine and sine of joints without limits; v is the same
    np.testing.assert_allclose(pin.aba(model, data, q_there, v, tau), a, rtol=1e-10)
    np.testing.assert_allclose(pin.rnea(model, data, q_there, v, a), kf.inverse_dynamics(arm, q, v, a), rtol=1e-9)
    np.testing.assert_allclose(
        pin.nonLinearEffects(model, data, q_there, v), kf.bias_forces(arm, q, v), rtol=1e-9, atol=1e-12
    )
    upper = np.triu(pin.crba(model, data, q_there))
    np.testing.assert_allclose(upper, np.triu(kf.mass_matrix(arm, q)), rtol=1e-10, atol=1e-12)
    inverse = np.triu(pin.computeMinverse(model, data, q_there))
    np.testing.assert_allclose(inverse, np.triu(kf.mass_matrix_inverse(arm, q)), rtol=1e-9, atol=1e-12)
    frame = model.getFrameId("link_6")
    there = pin.computeFrameJacobian(model, data, q_there, frame, pin.LOCAL_WORLD_ALIGNED)
    np.testing.assert_allclose(there[[3, 4, 5, 0, 1, 2]], kf.jacobian(arm, q, "link_6"), rtol=1e-10, atol=1e-12)
