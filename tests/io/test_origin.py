"""A system knows the file it came from, and other tools are asked about that file."""

import pickle

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality.peers import ask_peers

ROD = (
    '<robot name="rod"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 {}"/><mass value="2"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="pin" type="continuous">'
    '<parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>'
)
BALL = (
    '<mujoco><worldbody><body><joint name="pin" axis="0 1 0"/><geom size="0.1" mass="2"/></body></worldbody></mujoco>'
)


def test_it_is_remembered(tmp_path):
    file = tmp_path / "rod.urdf"
    file.write_text(ROD.format(0.5))
    system = kf.load(file, floating_base=True)
    assert (system.origin.format, system.origin.path, system.origin.floating_base) == ("urdf", file, True)
    assert system.origin.file() == file
    assert pickle.loads(pickle.dumps(system)).origin == system.origin
    assert kf.load(ROD.format(0.5)).origin.path is None
    assert kf.models.pendulum().origin is None
    assert kf.load(BALL).origin.format == "mjcf"


def test_pinocchio_reads_the_file_and_not_what_was_made_of_it(tmp_path, monkeypatch):
    """A loader that reads the wrong mass centre is found: what it writes back would only repeat its error."""
    pytest.importorskip("pinocchio")
    from kfdyn.io.urdf import load_urdf as urdf

    file = tmp_path / "rod.urdf"
    file.write_text(ROD.format(0.5))
    assert kf.cross_check(kf.load(file), [0.3], samples=500).passed
    honest = urdf.spatial_inertia
    monkeypatch.setattr(urdf, "spatial_inertia", lambda m, c, J: honest(m, 1.1 * np.asarray(c), J))
    wrong = kf.load(file)
    report = kf.cross_check(wrong, [0.3], samples=500)
    assert [line.split(",")[0] for line in report.rejected if line.startswith("Pinocchio: 𝓜⁻¹ of rod.urdf differs")]
    built = kf.System(wrong.bodies)  # without a file Pinocchio sees what the error made
    assert kf.cross_check(built, [0.3], samples=500).passed


@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_is_gone_or_changed_is_asked_as_it_was(tmp_path, gone):
    pytest.importorskip("pinocchio")
    file = tmp_path / "rod.urdf"
    file.write_text(ROD.format(0.5))
    system = kf.load(file)
    file.unlink() if gone else file.write_text(ROD.format(0.7))
    assert system.origin.file() is None
    ((_, _, inverse),), _ = ask_peers(system, np.array([0.3]))
    np.testing.assert_allclose(inverse, np.linalg.inv(kf.mass_matrix(system, [0.3])), rtol=1e-12)


def test_mujoco_reads_text():
    pytest.importorskip("mujoco")
    system = kf.load(BALL)
    ((peer, source, inverse),), unasked = ask_peers(system, np.array([0.3]))
    assert (peer, source, unasked) == ("MuJoCo", "its text", [])
    np.testing.assert_allclose(inverse, np.linalg.inv(kf.mass_matrix(system, [0.3])), rtol=1e-12)
