"""Dynamics from sensors, TALOS floating: 44 joint torques, no wrench on the base, 6 inertial units, 2 force sensors.

``python -m benchmarks.sensing`` times one state and a batch, on one thread, beside forward dynamics and, where iDynTree
is installed, beside BERDY's estimator on the same robot with the same number of inertial units.
"""

import time
import warnings

import numpy as np

import kfdyn as kf
from benchmarks.robots import packaged
from kfdyn.sweeps import alone

UNITS = ("base_link", "torso_2_link", "arm_left_7_link", "arm_right_7_link", "leg_left_6_link", "leg_right_6_link")


def least(call, repeats=50):
    """Least processor time of a call, in µs."""
    call()
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return 1e6 * min(times)


def robot_and_sensors():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = kf.load(packaged("example-robot-data", "talos_full_v2.urdf"), floating_base=True, mimic="free")
    kinds, base = kf.sensors, robot.hinge_names[0]
    sensors = [kinds.JointTorque(0.0, base), kinds.JointTorque(0.25, robot.hinge_names[1:])]
    sensors += [kinds.Imu(body, 0.01) for body in UNITS]
    sensors += [kinds.ForceTorque(f"leg_{side}_6_joint", 1.0) for side in ("left", "right")]
    return robot, sensors


def berdy():
    """BERDY's estimator on TALOS with as many accelerometers and gyroscopes; None without iDynTree."""
    try:
        import idyntree.bindings as idyntree
    except ImportError:
        return None
    loader = idyntree.ModelLoader()
    loader.loadModelFromFile(str(packaged("example-robot-data", "talos_full_v2.urdf")))
    model, sensors = loader.model().copy(), idyntree.SensorsList()
    for body in UNITS:
        for kind in (idyntree.AccelerometerSensor, idyntree.GyroscopeSensor):
            one = kind()
            one.setName(f"{body}_{kind.__name__}")
            one.setParentLink(body)
            one.setParentLinkIndex(model.getLinkIndex(body))
            one.setLinkSensorTransform(idyntree.Transform.Identity())
            sensors.addSensor(one)
    options = idyntree.BerdyOptions()
    options.berdyVariant = idyntree.BERDY_FLOATING_BASE
    options.includeAllJointTorquesAsSensors = True
    options.includeAllJointAccelerationsAsSensors = True
    options.includeAllNetExternalWrenchesAsDynamicVariables = True
    options.includeAllNetExternalWrenchesAsSensors = True
    helper = idyntree.BerdyHelper()
    assert helper.init(model, sensors, options)
    solver = idyntree.BerdySparseMAPSolver(helper)
    assert solver.initialize()
    position, rate = idyntree.JointPosDoubleArray(model), idyntree.JointDOFsDoubleArray(model)
    y, turning = idyntree.VectorDynSize(helper.getNrOfSensorsMeasurements()), idyntree.Vector3()
    y.zero()
    base = model.getFrameIndex(model.getLinkName(model.getDefaultBaseLink()))

    def estimate(kept=(loader, model, sensors, helper)):
        solver.updateEstimateInformationFloatingBase(position, rate, base, turning, y)
        assert solver.doEstimate()

    return estimate


def main(size=1024):
    robot, sensors = robot_and_sensors()
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(size)])
    v, tau = rng.normal(size=(2, size, robot.nv))
    readings = [np.zeros((size, 6)), tau[:, 6:], *np.zeros((8, size, 6))]
    one = [reading[0].copy() for reading in readings]
    with alone():
        single = least(lambda: kf.estimate_dynamics(robot, q[0], v[0], sensors, one), 300)
        batch = least(lambda: kf.estimate_dynamics(robot, q, v, sensors, readings), 7) / size
        forward = least(lambda: kf.forward_dynamics(robot, q[0], v[0], tau[0]), 300)
        est = kf.estimate_dynamics(robot, q[:256], v[:256], sensors, [reading[:256] for reading in readings])
        spread = least(lambda: est._std.clear() or est.std("a"), 3) / 256
    print(f"estimate_dynamics, TALOS: {single:.0f} µs a single state, {batch:.1f} µs in a batch, means")
    print(f"  with marginal standard deviations {spread:.0f} µs more in a batch; forward dynamics {forward:.1f} µs")
    theirs = berdy()
    if theirs is not None:
        print(f"BERDY, the same robot: {least(theirs, 20):.0f} µs")


if __name__ == "__main__":
    main()
