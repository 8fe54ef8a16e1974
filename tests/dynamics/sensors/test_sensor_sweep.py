"""The compiled sweep against the dense matrix, entry by entry; run plain; states it leaves; straight calls."""

import numpy as np
import pytest
from dense_sensors import dense
from multibody_cases import forest, state
from sensor_cases import S, case

import kfdyn as kf
from kfdyn.dynamics.recursions.sensing.covariances import DEVIATE
from kfdyn.dynamics.recursions.sensing.means import SENSE
from kfdyn.dynamics.recursions.sensing.tables import GENERAL, NODE, PAIR, QUIET, QUIET_PARENT
from kfdyn.dynamics.sensors.solver import programs, straight, swept
from kfdyn.dynamics.sensors.solver.problem import make_problem
from kfdyn.dynamics.sensors.solver.sweeps import run
from kfdyn.errors import UnobservableError
from kfdyn.multibody.calls.packed_model import model_of

MEANS = ("a", "tau", "body_accelerations", "hinge_forces", "external_forces")


def both(system, q, v, sensors, readings):
    """The estimate by the sweep, and by the dense matrix."""
    straight._ready.clear()
    fast = kf.estimate_dynamics(system, q, v, sensors, readings)
    fast.std("a"), fast.checks  # now, as long as the sweep serves
    straight._ready.clear()
    with pytest.MonkeyPatch.context() as patch:
        for module in (swept, straight):
            patch.setattr(module, "is_swept", lambda _: False)
        slow = kf.estimate_dynamics(system, q, v, sensors, readings)
        slow.std("a"), slow.checks
    return fast, slow


def close(fast, slow, tol=1e-8):
    for key in MEANS:
        size = max(1.0, np.abs(getattr(slow, key)).max(initial=0.0))
        np.testing.assert_allclose(getattr(fast, key), getattr(slow, key), rtol=0, atol=tol * size, err_msg=key)
    np.testing.assert_allclose(fast.llf, slow.llf, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(fast.nis, slow.nis, rtol=1e-6, atol=1e-6)
    # a variance is a difference of what entered and what the readings take off it: the largest of its kind is the scale
    size = max(1.0, *(np.square(slow.std(key)).max(initial=0.0) for key in MEANS))
    for key in MEANS:
        one, two = fast.std(key) ** 2, slow.std(key) ** 2
        np.testing.assert_allclose(one, two, rtol=0, atol=tol * size, err_msg=f"variance of {key}")
    for one, two in zip(fast.multipliers, slow.multipliers):
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(two).max(initial=0.0)))


def test_random_sets_agree():
    served = 0
    for seed in range(60):
        system, q, v, sensors, readings = case(seed, 1 + seed % 6)
        if not sensors or not system.nv:
            continue
        if dense(system, q, v, sensors, readings).condition > 1e7:
            continue  # the tolerance is 1e-8
        try:
            close(*both(system, q, v, sensors, readings))
        except UnobservableError:
            continue
        served += 1
    assert served >= 15


def every_kind(seed=4, batch=()):
    system, rng = forest(seed, 7)
    q, v = state(system, rng, batch)
    last = system.body_names[-1]
    sensors = [
        S.JointTorque(0.3, bias=0.1),
        S.JointAcceleration(2.0),
        S.Imu("tool", np.diag([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) + 0.02),
        S.Accelerometer(last, 0.3),
        S.AngularAcceleration(system.body_names[1], [0.1, 0.2, 0.3]),
        S.ForceTorque(system.hinge_names[0], np.eye(6) + 0.3),
        S.ExternalForce(last, np.eye(6) + 0.5, axes="frame"),
        S.ExternalForce("tool", [1.0, 2.0, 3.0], moment=False),
    ]
    readings = [rng.normal(size=(*batch, s.size(system))) for s in sensors]
    return system, q, v, sensors, readings


def test_every_kind_in_a_batch_with_missing_readings():
    system, q, v, sensors, readings = every_kind(batch=(3, 7))
    readings[2][..., 1] = readings[0][..., 2] = np.nan  # one pattern: the sweep serves one
    close(*both(system, q, v, sensors, readings), tol=1e-10)


def carrying():
    """Layouts in which something is carried inward: an exact motion, a flat force, the share of a coupling."""
    arm = kf.models.stanford_arm()
    ends = [S.Imu("link_6", 0.0), S.Accelerometer("link_4", 0.0), S.AngularAcceleration("link_5", [0.0, 1e-9, 0.0])]
    for end in ends:
        yield arm, [S.JointTorque(0.25, bias=0.2), end, S.Imu("link_3", 0.1), S.ExternalForce("link_5", 2.0)]
    wide = S.ExternalForce("link_4", [np.inf, np.inf, 1.0], moment=False, axes="frame")
    yield arm, [S.JointTorque(0.1), S.JointAcceleration(0.1), wide, S.ExternalForce("link_6", 1.0)]
    yield arm, [S.JointAcceleration(0.0), S.ForceTorque("joint_2", 0.1), S.ExternalForce("link_6", np.inf)]
    gears = (
        kf.Coupling(arm.hinge_names[3:6], [[1.0, 0.0], [0.0, 1.0], [0.5, 2.0]]),
        kf.Coupling(arm.hinge_names[1:3], [[1.0], [-0.5]], [0.0, 0.1]),
    )
    for couplings in (gears[:1], gears[1:], gears):
        geared = kf.System(arm.bodies, couplings=couplings)
        motor = S.MotorCurrent(0.1, 0.3, 20.0, geared.hinge_names[3])
        yield geared, [S.JointTorque(0.25, rotor=False), S.Imu("link_6", 0.04), motor, S.JointPrior(3.0)]
        yield geared, [S.JointAcceleration(0.0, geared.hinge_names[:2]), S.JointTorque(0.1), S.Imu("link_5", 0.1)]
    tree = kf.models.random_tree(14, 1)
    yield tree, [S.JointTorque(0.1), S.Accelerometer(tree.body_names[-1], 0.0), S.Imu(tree.body_names[7], 0.0)]


@pytest.mark.parametrize("which", range(12))
def test_what_a_hinge_cannot_decide_is_carried_inward_by_the_sweep(which, monkeypatch):
    """Against the dense matrix; few states need a program of their own."""
    system, sensors = list(carrying())[which]
    rng = np.random.default_rng(which)
    q = np.stack([system.random_configuration(rng) for _ in range(11)])
    v = rng.normal(size=(11, system.nv))
    readings = [rng.normal(size=(11, s.size(system))) for s in sensors]
    alone = []
    own = programs.own_order
    monkeypatch.setattr(programs, "own_order", lambda *args: alone.append(0) or own(*args))
    straight._ready.clear()
    kf.estimate_dynamics(system, q, v, sensors, readings)
    assert len(alone) <= 2
    fast, slow = both(system, q, v, sensors, readings)
    close(fast, slow, tol=1e-9)
    problem = fast.problem
    program = programs.program_of(problem, problem.groups[0])
    assert program.n_values > 0
    _, found = run(system, program, programs.states_of(problem, program, slice(None)), problem.clean_readings)
    at = int(np.flatnonzero(np.isfinite(found.a[:, 0]))[0])
    one = kf.estimate_dynamics(system, q[at], v[at], sensors, [y[at] for y in readings])
    np.testing.assert_array_equal(one.a, found.a[at])


def test_every_pattern_of_missing_readings_goes_by_its_own_program():
    system, q, v, sensors, readings = every_kind(batch=(40,))
    rng = np.random.default_rng(5)
    readings[2][rng.random(40) < 0.4, 1] = np.nan
    readings[0][rng.random(40) < 0.4] = np.nan
    straight._ready.clear()
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    groups = est.problem.groups
    assert len(groups) == 4 and all(programs.program_of(est.problem, group) is not None for group in groups)
    for i in range(0, 40, 7):
        one = kf.estimate_dynamics(system, q[i], v[i], sensors, [y[i] for y in readings])
        for key in MEANS:
            np.testing.assert_array_equal(getattr(est, key)[i], getattr(one, key))
        np.testing.assert_allclose(est.llf[i], one.llf, rtol=1e-9)


def test_plain_python_computes_the_same():
    """The same text, run on Python's floats with every index checked."""
    system, q, v, sensors, readings = every_kind(seed=9)
    compiled = kf.estimate_dynamics(system, q, v, sensors, readings)
    problem = make_problem(system, q, v, sensors, readings, None)
    program = programs.program_of(problem, problem.groups[0])
    y = np.concatenate(problem.readings, axis=1) - np.concatenate([s.biases(system) for s in sensors])
    y = np.concatenate([y, np.zeros((1, program.blank))], axis=1)
    n, loops = system.n_bodies, (np.zeros((1, 0, 6)), np.zeros((1, 0)))
    told = n, n, program.n_rows, program.n_unknowns, program.n_values
    source = np.zeros((1, 2 * system.nv + 18 * n))
    out = [np.empty((1, system.nv)), np.empty((1, system.nv)), *(np.empty((1, n, 6)) for _ in range(4))]
    out += [np.empty((1, count)) for count in told[2:]]
    given = problem.q, problem.v, y, problem.gravity, *loops, source
    arrays = (*program.parameters, source.shape[1], *told, *given, *out)
    assert SENSE.plain(model_of(system), *arrays) == 1
    np.testing.assert_allclose(out[0][0], compiled.a, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(out[3][0], compiled.hinge_forces, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(out[4][0], compiled.external_forces, rtol=1e-10, atol=1e-10)


def test_plain_python_computes_the_same_deviations():
    system, q, v, sensors, readings = every_kind(seed=9)
    compiled = kf.estimate_dynamics(system, q, v, sensors, readings)
    problem = make_problem(system, q, v, sensors, readings, None)
    program = programs.program_of(problem, problem.groups[0])
    n = system.n_bodies
    out = [np.empty((1, system.nv)), np.empty((1, system.nv)), *(np.empty((1, n, 6)) for _ in range(3))]
    out += [np.empty((1, n, 78)), np.empty((1, program.joint[-1]))]
    told = n, n, program.joint[-1]
    arrays = (*program.parameters, *told, problem.q, np.zeros((1, 0, 6)), *out)
    assert DEVIATE.plain(model_of(system), *arrays) == 1
    for key, found in zip(MEANS, out):
        np.testing.assert_allclose(found[0], compiled.std(key), rtol=1e-9, atol=1e-10)


def humanoid():
    """A free base without a wrench, ball hinges, torques everywhere, inertial units, a force–torque sensor."""
    robot = kf.models.humanoid()
    base, *hinges = robot.hinge_names
    tips = [name for k, name in enumerate(robot.body_names) if k not in set(robot.parent.tolist())]
    sensors = [S.JointTorque(0.0, base), S.JointTorque(0.25, hinges)]
    sensors += [S.Imu(robot.body_names[0], 0.01), S.Imu(tips[0], 0.02), S.ForceTorque(hinges[-1], 1.0)]
    return robot, sensors


def arm():
    """A chain whose outboard half no inertial unit looks at."""
    return kf.models.puma560(), [S.JointTorque(0.25), S.Imu("link_3", 0.01), S.ExternalForce("link_5", 2.0)]


def slides():
    """The same with a hinge that is not revolute outboard."""
    return kf.models.stanford_arm(), [
        S.JointTorque([0.0, 0.1, 0.2, 0.3, 0.0, 0.5]),
        S.JointAcceleration(0.3, "joint_1"),
    ]


def test_nodes_of_every_way():
    ways = set()
    rng = np.random.default_rng(3)
    for robot, sensors in (humanoid(), arm(), slides()):
        q = np.stack([robot.neutral(), *(robot.random_configuration(rng) for _ in range(12))])
        v = rng.normal(size=(13, robot.nv))
        readings = [rng.normal(size=(13, s.size(robot))) for s in sensors]
        fast, slow = both(robot, q, v, sensors, readings)
        close(fast, slow, tol=1e-10)
        problem = fast.problem
        nodes = programs.program_of(problem, problem.groups[0]).parameters[0].kept["nodes"].reshape(-1, NODE.width)
        ways |= set(nodes[1:, NODE.place("way")].tolist())
    assert ways == {GENERAL, PAIR, QUIET, QUIET_PARENT}


def test_states_that_an_order_does_not_suit_go_to_a_careful_one_and_then_to_their_own(monkeypatch):
    """An exact accelerometer near singular wrists: three programs answer, each what those before it do not suit."""
    robot, rng = kf.models.humanoid(), np.random.default_rng(0)
    sensors = [S.JointTorque(0.25), S.Accelerometer(robot.body_names[-1], 0.0)]
    v = 0.3 * rng.normal(size=(64, robot.nv))
    q = kf.integrate(robot, np.tile(robot.neutral(), (64, 1)), 0.3 * rng.normal(size=(64, robot.nv)))
    readings = [rng.normal(size=(64, s.size(robot))) for s in sensors]
    fast, slow = both(robot, q, v, sensors, readings)
    close(fast, slow)
    asked = []

    def counted(system, program, states, *more, **options):
        fine, found = run(system, program, states, *more, **options)
        asked.append((len(found.a), int(np.isnan(found.a).any(1).sum())))
        return fine, found

    monkeypatch.setattr(swept, "run", counted)
    again = kf.estimate_dynamics(robot, q[::-1], v[::-1], sensors, [y[::-1] for y in readings])
    np.testing.assert_array_equal(again.a[::-1], fast.a)  # whoever else is there
    assert asked[0][0] == 64 and 64 > asked[0][1] > asked[1][1]
    monkeypatch.setattr(programs, "program_of", lambda *_: None)
    own = kf.estimate_dynamics(robot, q[:5], v[:5], sensors, [y[:5] for y in readings])
    np.testing.assert_allclose(own.a, fast.a[:5], rtol=0, atol=1e-9 * np.abs(fast.a).max())


def test_straight_calls_answer_the_same_and_look_at_their_arguments():
    system, sensors = arm()
    rng = np.random.default_rng(2)
    q, v = rng.normal(size=(2, 6))
    readings = [rng.normal(size=6) for _ in sensors]
    first = kf.estimate_dynamics(system, q, v, sensors, readings)
    again = kf.estimate_dynamics(system, q, v, sensors, readings)
    assert not isinstance(again._problem, type(first.problem))  # not made before it is asked for
    close(again, first, tol=1e-12)
    np.testing.assert_array_equal(again.std("a"), first.std("a"))
    with pytest.raises(ValueError, match=r"q must have shape"):
        kf.estimate_dynamics(system, q[:-1], v, sensors, readings)
    with pytest.raises(ValueError, match="not finite"):
        kf.estimate_dynamics(system, q, v * np.nan, sensors, readings)
    missing = [np.full_like(y, np.nan) if i == 1 else y for i, y in enumerate(readings)]
    assert int(kf.estimate_dynamics(system, q, v, sensors, missing).dof) == int(first.dof) - 6


@pytest.mark.slow
def test_a_recording_of_a_hundred_thousand_samples():
    arm = kf.models.puma560()
    rng = np.random.default_rng(0)
    n = 100_000
    q, v, tau = rng.normal(size=(3, n, 6))
    sensors = [S.JointTorque(0.1), S.Imu("link_6", 0.2)]
    est = kf.estimate_dynamics(arm, q, v, sensors, [tau, np.zeros(6)])
    pick = [0, 31_415, n - 1]
    few = kf.estimate_dynamics(arm, q[pick], v[pick], sensors, [tau[pick], np.zeros(6)])
    np.testing.assert_allclose(est.a[pick], few.a, rtol=1e-9, atol=1e-9)
    assert np.isfinite(est.nis).all()
