"""Dynamics from sensors, TALOS floating: 44 joint torques, no wrench on the base, 6 inertial units, 2 force sensors.

Means and standard deviations of one state and of a batch, beside forward dynamics and, where iDynTree is installed,
BERDY's estimator on the same robot with as many inertial units; and a Panda whose fingers are geared beside one whose
fingers are free.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.report import Report, seconds
from benchmarks.robots import packaged
from benchmarks.timing import best_of, environment
from kfdyn.sweeps import alone

UNITS = ("base_link", "torso_2_link", "arm_left_7_link", "arm_right_7_link", "leg_left_6_link", "leg_right_6_link")


def run(quick: bool) -> Report:
    """Time them on one thread."""
    size, budget = (64, 0.1) if quick else (1024, 3.0)
    with warnings.catch_warnings(), alone():
        warnings.simplefilter("ignore")  # what a file says and dynamics does not use
        found = {**talos(size, budget), **panda(budget)}
        theirs = berdy()
        if theirs is not None:
            found["BERDY, means"] = (least(theirs, budget), None)
    return Report(
        "sensing",
        "Dynamics from sensors",
        ["estimate", "one state", f"a state of a batch of {size:,}"],
        [[name, *("" if t is None else seconds(t) for t in times)] for name, times in found.items()],
        environment(["kfdyn", "numpy", "idyntree"]),
        [
            "TALOS: talos_full_v2.urdf, floating, 50 dofs; 44 joint torques, no wrench on the base, six inertial "
            "units, two force–torque sensors.",
            "BERDY: the sparse least squares of iDynTree on the same robot with as many accelerometers and gyroscopes, "
            "without covariances.",
            "Panda: torques and an inertial unit at the hand.",
            "One thread; shortest processor time of many runs.",
        ],
        {"batch": size, "seconds": found},
    )


def least(call: Callable[[], Any], budget: float) -> float:
    """Shortest time of a call on this thread."""
    return best_of(call, budget, clock=time.thread_time)


def talos(size: int, budget: float) -> dict[str, tuple[float, float | None]]:
    """Seconds for one state and in a batch."""
    robot, sensors = robot_and_sensors()
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(size)])
    v, tau = rng.normal(size=(2, size, robot.nv))
    readings = [np.zeros((size, 6)), tau[:, 6:], *np.zeros((8, size, 6))]
    one = [reading[0].copy() for reading in readings]
    return {
        "TALOS, means": (
            least(lambda: kf.estimate_dynamics(robot, q[0], v[0], sensors, one), budget),
            least(lambda: kf.estimate_dynamics(robot, q, v, sensors, readings), budget) / size,
        ),
        "TALOS, with all standard deviations": (
            least(lambda: kf.estimate_dynamics(robot, q[0], v[0], sensors, one).std("a"), budget),
            least(lambda: kf.estimate_dynamics(robot, q, v, sensors, readings).std("a"), budget) / size,
        ),
        "TALOS, forward dynamics": (
            least(lambda: kf.forward_dynamics(robot, q[0], v[0], tau[0]), budget),
            least(lambda: kf.forward_dynamics(robot, q, v, tau), budget) / size,
        ),
    }


def panda(budget: float) -> dict[str, tuple[float, float | None]]:
    """Seconds for one state of a gripper arm, with its fingers free and with its fingers geared."""
    found: dict[str, tuple[float, float | None]] = {}
    for name, mimic in (("Panda, fingers free, means", "free"), ("Panda, fingers geared, means", "obey")):
        robot = kf.load(packaged("example-robot-data", "panda.urdf"), mimic=mimic)
        q, v = robot.random_configuration(np.random.default_rng(0)), np.ones(robot.nv)
        sensors = [kf.sensors.JointTorque(0.25), kf.sensors.Imu("panda_hand", 0.01)]
        readings = [np.zeros(robot.nv), np.zeros(6)]
        call = lambda: kf.estimate_dynamics(robot, q, v, sensors, readings)  # noqa: B023, E731  # timed at once
        found[name] = (least(call, budget), None)
    return found


def robot_and_sensors() -> tuple[kf.System, list[Any]]:
    """TALOS on a floating base, and what it is read with."""
    robot = kf.load(packaged("example-robot-data", "talos_full_v2.urdf"), floating_base=True, mimic="free")
    kinds, base = kf.sensors, robot.hinge_names[0]
    sensors = [kinds.JointTorque(0.0, base), kinds.JointTorque(0.25, robot.hinge_names[1:])]
    sensors += [kinds.Imu(body, 0.01) for body in UNITS]
    sensors += [kinds.ForceTorque(f"leg_{side}_6_joint", 1.0) for side in ("left", "right")]
    return robot, sensors


def berdy() -> Callable[[], None] | None:
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

    def estimate(kept: Any = (loader, model, sensors, helper)) -> None:
        solver.updateEstimateInformationFloatingBase(position, rate, base, turning, y)
        assert solver.doEstimate()

    return estimate
