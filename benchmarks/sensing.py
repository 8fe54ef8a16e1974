"""Dynamics from sensors, TALOS floating: 44 joint torques, no wrench on the base, 6 inertial units, 2 force sensors.

``python -m benchmarks.sensing`` times means and standard deviations of one state and of a batch, on one thread, beside
forward dynamics and, where iDynTree is installed, BERDY's estimator on the same robot with as many inertial units.
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
        batch = least(lambda: kf.estimate_dynamics(robot, q, v, sensors, readings), 15) / size
        forward = least(lambda: kf.forward_dynamics(robot, q[0], v[0], tau[0]), 300)
        forwards = least(lambda: kf.forward_dynamics(robot, q, v, tau), 15) / size
        single_std = least(lambda: kf.estimate_dynamics(robot, q[0], v[0], sensors, one).std("a"), 300)
        batch_std = least(lambda: kf.estimate_dynamics(robot, q, v, sensors, readings).std("a"), 7) / size
    print(f"TALOS, floating, µs a state (one state; in a batch of {size}), one thread")
    print(f"  estimate_dynamics, means            {single:7.1f} {batch:7.2f}")
    print(f"  with all standard deviations        {single_std:7.1f} {batch_std:7.2f}", end="")
    print(f"   {single_std / single:.2f}, {batch_std / batch:.2f} times the means")
    print(f"  forward_dynamics                    {forward:7.1f} {forwards:7.2f}")
    theirs = berdy()
    if theirs is not None:
        took = least(theirs, 20)
        print(f"  BERDY, no covariances               {took:7.0f}          {took / single:.0f} times one state's means")


if __name__ == "__main__":
    main()
