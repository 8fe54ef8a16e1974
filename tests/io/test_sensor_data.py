"""Sensors of files: MJCF's elements against MuJoCo's sensordata, Gazebo's lists, links kept apart."""

import mujoco
import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

MJCF = """<mujoco><worldbody><body name="base"><joint name="turn" axis="0 0 1"/><geom size=".2" mass="3"/>
<body name="arm" pos=".3 0 0"><joint name="lift" axis="0 1 0" armature=".1"/><geom size=".1" pos=".2 0 0" mass="2"/>
<site name="imu" pos=".1 .2 .3" euler="10 20 30"/>
<body name="hand" pos=".4 0 .1"><geom size=".05" pos=".1 .1 0" mass=".7"/><site name="wrist" euler="40 -10 5"/></body>
</body></body></worldbody><actuator><motor joint="turn"/><motor joint="lift" gear="5"/></actuator>
<sensor><accelerometer name="acc" site="imu" noise="0.2"/><gyro site="imu"/><force site="wrist" noise="0.5"/>
<jointactuatorfrc name="t0" joint="turn" noise="0.1"/><jointactuatorfrc name="t1" joint="lift" noise="0.1"/>
<torque site="wrist" noise="0.25"/></sensor></mujoco>"""


def test_mujocos_own_readings_are_consistent():
    """Read from the plant, without noise, they leave no residual: NIS is zero, and so is the error of a and tau."""
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = [0.3, -0.4], [1.0, 2.0], [0.7, 0.3]
    mujoco.mj_forward(model, data)
    system = kf.load(MJCF, keep_fixed=["hand"])
    assert system.body_names == ("base", "arm", "hand") and system.nv == 2
    made = kf.sensors.from_data(system, kf.io.read_sensors(MJCF))
    assert [str(s) for s in made.sensors] == ["acc", "wrist", "t0", "t1"]
    np.testing.assert_array_equal(made.sensors[1].cov, [0.0625] * 3 + [0.25] * 3)
    readings = made.readings(data.sensordata)
    est = kf.estimate_dynamics(system, data.qpos, data.qvel, made.sensors, readings)
    np.testing.assert_allclose(est.a, data.qacc, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(est.tau, data.qfrc_actuator, rtol=1e-9, atol=1e-9)
    assert est.nis < 1e-15 and est.dof == 9


def test_gazebo_lists_and_covariances_by_name():
    text = """<robot name="r"><link name="base"/><link name="hand"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">
    <parent link="base"/><child link="hand"/></joint><gazebo reference="hand"><sensor name="i" type="imu"/></gazebo>
    <gazebo reference="j"><sensor name="f" type="force_torque"/></gazebo>
    <gazebo reference="hand"><sensor name="c" type="camera"/></gazebo></robot>"""
    listed = kf.io.read_sensors(text)
    assert [(s.kind, s.place) for s in listed] == [("imu", "hand"), ("force_torque", "j"), ("camera", "hand")]
    made = kf.sensors.from_data(kf.load(text), listed, cov={"i": 0.1, "f": [1, 1, 1, 2, 2, 2]})
    assert [type(s).__name__ for s in made.sensors] == ["Imu", "ForceTorque"]
    assert made.sensors[1].cov[3] == 2
    with pytest.raises(ModelError, match="sensordata has 2 numbers"):
        made.readings(np.zeros(2))


def test_links_kept_apart():
    merged, apart = kf.load(MJCF), kf.load(MJCF, keep_fixed=["hand"])
    q, v, tau = np.array([0.1, 0.2]), np.array([0.3, -0.4]), np.array([1.0, 2.0])
    np.testing.assert_allclose(
        kf.forward_dynamics(apart, q, v, tau), kf.forward_dynamics(merged, q, v, tau), rtol=1e-12
    )
    with pytest.raises(ModelError, match="no link or joint 'foot'"):
        kf.load(MJCF, keep_fixed=["foot"])
    assert kf.load(MJCF, keep_fixed="hand").body_names == apart.body_names
    with pytest.raises(ModelError, match=r'^indefinite_inertia must be "refuse" or "warn", got .maybe'):
        kf.load(MJCF, indefinite_inertia="maybe")
    with pytest.raises(ModelError, match=r"joined to body 'arm'.*keep_fixed=\['hand'\]"):
        kf.sensors.ForceTorque("hand", 1.0).sites(merged)
