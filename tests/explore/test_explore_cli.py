"""``kfdyn explore``: words for what goes wrong, a clean end on Ctrl-C, a recording that is one file."""

import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.cli import main
from kfdyn.explore import Explorer, record
from kfdyn.explore.panel import correlation, heat_map, side_by_side
from kfdyn.explore.shapes import find_mesh, shapes_of


def test_port_in_use_is_said(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["explore", "builtin:double_pendulum", "--no-browser", "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert str(port) in said
    assert "--port" in said


def test_missing_file_and_nothing_to_move(capsys):
    assert main(["explore", "nowhere.urdf", "--no-browser"]) == 2
    assert "nowhere.urdf" in capsys.readouterr().err
    weld = kf.System([kf.Body("stone", np.eye(6))])
    with pytest.raises(kf.errors.ModelError, match="nothing moves"):
        Explorer(weld, port=0)


def test_missing_extra_is_said(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["explore", "builtin:double_pendulum", "--no-browser", "--port", "0"]) == 2
    assert 'pip install ".[explore]"' in capsys.readouterr().err


def test_ctrl_c_ends_it_cleanly():
    command = [sys.executable, "-m", "kfdyn", "explore", "builtin:double_pendulum", "--no-browser", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    with subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes) as process:
        try:
            line = process.stdout.readline()
            assert "http://127.0.0.1:" in line
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_a_pose_without_an_answer_keeps_the_last_one():
    """A hinge that moves no mass: the explorer says so and stays where it was."""
    with Explorer(kf.models.double_pendulum(), port=0) as explorer:
        before = explorer.moment

        def fail(_moment):
            raise kf.errors.SingularError("hinge 'elbow': nothing outboard has mass")

        explorer.change(fail)
        assert explorer.moment is before
        assert "elbow" in explorer.panel.verdict.content


def test_motion_conserves_energy_and_is_held_when_it_runs_away():
    system = kf.models.double_pendulum()
    with Explorer(system, [1.0, 0.5], port=0) as explorer:
        start = kf.potential_energy(system, explorer.moment.q)
        for _ in range(30):
            explorer.advance(1 / 30)
        m = explorer.moment
        kinetic = kf.kinetic_energy(system, m.q, m.v)
        assert kinetic > 1.0
        assert abs(kinetic + kf.potential_energy(system, m.q) - start) < 1e-5 * kinetic
        explorer.change(lambda moment: moment.with_dof("tau", 0, 1e9))
        explorer.advance(1.0)
        assert "Held" in explorer.panel.verdict.content


def test_missing_meshes_of_an_mjcf_file_are_told(tmp_path):
    """The robot is shown without them, and without what stood for them when MuJoCo compiled the file."""
    pytest.importorskip("mujoco")
    file = tmp_path / "robot.xml"
    file.write_text(
        '<mujoco><asset><mesh file="shell.stl"/></asset><worldbody><body name="arm">'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint/><geom type="mesh" mesh="shell"/>'
        '<geom type="box" size="1 1 1"/></body></worldbody></mujoco>'
    )
    (box,), missing = shapes_of(kf.load(file), file)
    assert missing == ["shell.stl"] and np.abs(box.vertices).max() == 1


def test_shapes_are_read_and_placed(tmp_path):
    (tmp_path / "robot.urdf").write_text(
        """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <visual><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry><box size="2 4 6"/></geometry></visual>
        <visual><geometry><mesh filename="package://none/gone.stl"/></geometry></visual></link>
        <joint name="j" type="continuous"><parent link="base"/><child link="arm"/>
        <axis xyz="0 0 1"/></joint></robot>""",
        encoding="utf-8",
    )
    system = kf.load(tmp_path / "robot.urdf")
    shapes, missing = shapes_of(system, tmp_path / "robot.urdf")
    assert missing == ["package://none/gone.stl"]
    (box,) = shapes
    np.testing.assert_allclose([box.vertices.min(0), box.vertices.max(0)], [[-1, 1, 0], [3, 3, 6]], atol=1e-12)
    assert shapes_of(system, "builtin:puma560") == ([], [])


def test_package_meshes_are_looked_for_above_the_file(tmp_path):
    mesh = tmp_path / "share" / "bot" / "meshes" / "a.stl"
    urdf = tmp_path / "share" / "bot" / "urdf" / "bot.urdf"
    for path in (mesh, urdf):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_mesh("package://bot/meshes/a.stl", urdf) == mesh.resolve()
    assert find_mesh("../meshes/a.stl", urdf).resolve() == mesh.resolve()
    assert find_mesh("package://bot/meshes/b.stl", urdf) is None


def test_pictures():
    C = correlation(np.array([[4.0, -2.0, 0], [-2.0, 1.0, 0], [0, 0, 0]]))
    np.testing.assert_allclose(C, [[1, -1, 0], [-1, 1, 0], [0, 0, 0]])
    image = heat_map(C, 30)
    assert image.shape == (30, 30, 3)
    assert image[0, 0].tolist() == [0, 114, 178]
    assert image[0, 15].tolist() == [213, 94, 0]
    assert image[29, 29].tolist() == [255, 255, 255]
    assert side_by_side(image, image, gap=4).shape == (30, 64, 3)


def test_a_recording_shows_the_robot_alone_and_whole(monkeypatch, tmp_path):
    """No arrows that nobody can pull at; within half of the 75 degrees that are seen, all of what it can swing to."""
    made = []

    class Kept(Explorer):
        def close(self):
            made.append((self.handle.visible, self.server.initial_camera.position, self.server.initial_camera.look_at))
            super().close()

    monkeypatch.setattr("kfdyn.explore.app.Explorer", Kept)
    record(kf.models.double_pendulum(), tmp_path / "fall.html", [0.5, 0.3], seconds=0.1)
    ((visible, position, at),) = made
    assert not visible
    away, length = np.linalg.norm(np.subtract(position, at)), 2.0
    assert np.abs(at).max() < 1e-6  # its first hinge
    assert np.arcsin(length / away) < np.deg2rad(75 / 2)
