"""Plans: rolled out by simulate, stationary by differences, with gains that lead back; inverse kinematics."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError

S = kf.sensors


def rolled(system, q, v, dt, torques):
    """States under torques, an array or a law of (k, q, v), by the step of simulate."""
    path = [(np.asarray(q, float), np.asarray(v, float))]
    for k in range(len(torques) if hasattr(torques, "__len__") else torques.steps):
        run = kf.simulate(system, *path[-1], [0.0, dt], torques[k], method="euler")
        path.append((run.q[-1], run.v[-1]))
    return path


@pytest.mark.parametrize(("model", "steps", "near"), [("puma560", 60, 1e-12), ("double_pendulum", 100, 1e-10)])
def test_rest_to_rest_exactly(model, steps, near):
    """Rolled out without feedback; two seconds of a pendulum that stands up magnify rounding by a thousand."""
    arm, dt = getattr(kf.models, model)(), 0.02
    q0, q1, still = np.full(arm.nv, -0.3), np.linspace(0.2, 0.6, arm.nv), np.zeros(arm.nv)
    goals = [kf.Goal(S.JointPosition(0.0), q1, at=steps), kf.Goal(S.JointVelocity(0.0), still)]
    plan = kf.plan_motion(arm, dt, steps, q0, still, goals, torque_cov=np.full(arm.nv, 100.0))
    assert plan.converged, plan.message
    path = rolled(arm, q0, still, dt, plan.tau)
    np.testing.assert_allclose(path[-1][0], q1, rtol=0, atol=near)
    np.testing.assert_allclose(path[-1][1], still, rtol=0, atol=10 * near)
    np.testing.assert_allclose([q for q, _ in path], plan.q, rtol=0, atol=10 * near)
    assert plan.gains.shape == (steps, arm.nv, 2 * arm.nv) and "converged" in repr(plan)
    np.testing.assert_allclose(plan.linear.u, 0, atol=1e-6 * np.abs(plan.tau).max())  # its own optimum
    # The feedback law leads a robot that starts elsewhere to the same end, to second order.
    q, v = q0 + 0.01, still + 0.02
    for k in range(steps):
        run = kf.simulate(arm, q, v, [0.0, dt], plan.control(k, q, v), method="euler")
        q, v = run.q[-1], run.v[-1]
    assert np.abs(q - q1).max() < 1e-5 and np.abs(v).max() < 1e-4


@pytest.mark.parametrize("floating", [False, True])
def test_no_torque_is_better(floating):
    """Soft goals on positions, poses and the mass centre: the cost of rollouts is stationary, by differences."""
    system = kf.models.free_flyer() if floating else kf.models.puma560()
    dt, steps, nv, rng = 0.05, 5, system.nv, np.random.default_rng(2)
    q0, v0 = system.random_configuration(rng), 0.1 * rng.normal(size=nv)
    frame = system.body_names[-1]
    there = kf.integrate(system, q0, 0.2 * rng.normal(size=nv))
    at = kf.frame_pose(system, there, frame)
    W = np.full(nv, 400.0)
    goals = [
        kf.Goal(S.Position(frame, 1e-3), at.position),
        kf.Goal(S.Orientation(frame, 1e-2), kf.spatial.matrix_to_quaternion(at.rotation), at=3),
        kf.Goal(S.CenterOfMass(1e-2), kf.center_of_mass(system, there), at=4),
        kf.Goal(S.JointVelocity(0.1), np.zeros(nv), at="always"),
    ]
    plan = kf.plan_motion(system, dt, steps, q0, v0, goals, torque_cov=W, tolerance=1e-10)
    assert plan.converged, plan.message

    def cost(tau):
        path = rolled(system, q0, v0, dt, tau)
        total = 0.5 * (tau**2 / W).sum() + 0.5 * sum((v**2).sum() / 0.1 for _, v in path[1:])
        total += 0.5 * ((kf.frame_pose(system, path[-1][0], frame).position - at.position) ** 2).sum() / 1e-3
        R = kf.frame_pose(system, path[3][0], frame).rotation
        total += 0.5 * (kf.spatial.matrix_to_rotation_vector(R.T @ at.rotation) ** 2).sum() / 1e-2
        return (
            total + 0.5 * ((kf.center_of_mass(system, path[4][0]) - kf.center_of_mass(system, there)) ** 2).sum() / 1e-2
        )

    best = cost(plan.tau)
    assert best == pytest.approx(plan.cost, rel=1e-9)
    for _ in range(6):
        d = rng.normal(size=plan.tau.shape)
        up, down = cost(plan.tau + 0.01 * d), cost(plan.tau - 0.01 * d)
        assert up > best and down > best
        assert abs(up - down) < 1e-3 * (up + down - 2 * best)  # the slope, beside the curvature


def test_a_hinge_without_a_motor_and_a_swing_up():
    """An acrobot: torque at the elbow alone, from hanging to upright, rolled out."""
    bot, dt, steps = kf.models.double_pendulum(), 0.02, 150
    goals = [kf.Goal(S.JointPosition(1e-2), [np.pi, 0.0]), kf.Goal(S.JointVelocity(1e-2), [0.0, 0.0])]
    plan = kf.plan_motion(bot, dt, steps, [0.0, 0.0], [0.0, 0.0], goals, torque_cov=[0.0, 400.0], iterations=400)
    assert plan.converged, plan.message
    assert (plan.tau[:, 0] == 0).all() and (plan.gains[:, 0] == 0).all()
    path = rolled(bot, [0.0, 0.0], [0.0, 0.0], dt, plan.tau)
    np.testing.assert_allclose(path[-1][0], [np.pi, 0.0], rtol=0, atol=0.15)  # goals of 0.1, which effort pulls at
    np.testing.assert_allclose(path[-1][0], plan.q[-1], rtol=0, atol=1e-6)  # rounding grows on the way up


def test_limits_against_slsqp():
    """R86:12-PLAN: a pendulum with less torque than it would like, against SciPy's optimum of the rollouts."""
    from scipy.optimize import minimize

    bob, dt, steps = kf.models.pendulum(), 0.1, 14
    goals = [kf.Goal(S.JointPosition(1e-4), [1.2]), kf.Goal(S.JointVelocity(1e-3), [0.0])]
    free = kf.plan_motion(bob, dt, steps, [0.0], [0.0], goals, torque_cov=[9.0])
    most = 0.93 * np.abs(free.tau).max()
    plan = kf.plan_motion(bob, dt, steps, [0.0], [0.0], goals, torque_cov=[9.0], torque_limits=most)
    assert plan.converged and np.abs(plan.tau).max() <= most * (1 + 1e-12) and free.cost < plan.cost

    def cost(tau):
        q, v = rolled(bob, [0.0], [0.0], dt, tau[:, None])[-1]
        return 0.5 * (tau**2).sum() / 9.0 + 0.5 * (q[0] - 1.2) ** 2 / 1e-4 + 0.5 * v[0] ** 2 / 1e-3

    judge = minimize(
        cost,
        plan.tau[:, 0] * 0.98,
        method="SLSQP",
        bounds=[(-most, most)] * steps,
        options={"ftol": 1e-13, "maxiter": 400},
    )
    assert plan.cost == pytest.approx(cost(plan.tau[:, 0]), rel=1e-9)
    assert plan.cost <= judge.fun * (1 + 1e-7)
    np.testing.assert_allclose(plan.tau[:, 0], judge.x, rtol=0, atol=2e-3 * most)  # of a flat minimum, by differences


def test_limits_of_velocity_and_those_that_do_not_press():
    arm, dt, steps, still = kf.models.puma560(), 0.02, 60, np.zeros(6)
    there = np.array([0.8, -0.6, 0.5, 0.3, 0.4, 0.2])
    goals = [kf.Goal(S.JointPosition(0.0), there), kf.Goal(S.JointVelocity(0.0), still)]
    task = (arm, dt, steps, still, still, goals, np.full(6, 100.0))
    free, wide = kf.plan_motion(*task), kf.plan_motion(*task, torque_limits=1e4, velocity_limits=np.full(6, 50.0))
    np.testing.assert_allclose(wide.tau, free.tau, rtol=0, atol=1e-8 * np.abs(free.tau).max())
    slow = kf.plan_motion(*task, velocity_limits=0.9)
    assert slow.converged and np.abs(slow.v).max() < 0.9 * (1 + 1e-9) and slow.cost > free.cost
    path = rolled(arm, still, still, dt, slow.tau)
    np.testing.assert_allclose(path[-1][0], there, rtol=0, atol=1e-10)
    with pytest.raises(ModelError, match="no plan keeps all limits"):
        kf.plan_motion(*task, torque_limits=20.0)
    with pytest.raises(ShapeError, match="torque_limits must be True, a number"):
        kf.plan_motion(*task, torque_limits=np.ones(5))
    with pytest.raises(ModelError, match="a lower limit is above its upper one"):
        kf.plan_motion(*task, velocity_limits=(1.0, -1.0))


@pytest.mark.parametrize("steps", [20, 30, 35])
def test_exact_goals_on_limits_of_position(steps):
    """They decide q of the last two steps, where limits then have no inside; limits a hair wider say what is right."""
    pendulum, still = kf.models.double_pendulum(), np.zeros(2)
    there = np.array([0.5, -0.5])
    goals = [kf.Goal(S.JointPosition(0.0), there), kf.Goal(S.JointVelocity(0.0), still)]
    task = (pendulum, 0.02, steps, still, still, goals, 4.0)
    plan, wider = (
        kf.plan_motion(*task, position_limits=([-1.0, -0.5 - hair], [0.5 + hair, 1.0])) for hair in (0.0, 1e-9)
    )
    assert plan.converged, plan.message
    assert plan.q[:, 0].max() <= 0.5 + 1e-12 and plan.q[:, 1].min() >= -0.5 - 1e-12
    np.testing.assert_allclose(plan.q[-2:], [there, there], rtol=0, atol=1e-12)
    assert plan.cost == pytest.approx(wider.cost, rel=1e-6)
    near = r"linearised after 0 steps of the search: no plan keeps all limits: q\[shoulder\] ≤ 0.4 at .* \(start=\)"
    with pytest.raises(ModelError, match=near):
        kf.plan_motion(*task, position_limits=([-1.0, -0.5], [0.4, 1.0]))


def test_receding_horizon_holds_against_a_wrong_start():
    arm, dt = kf.models.puma560(), 0.02
    target = np.array([0.3, -0.5, 0.4, 0.0, 0.2, 0.1])
    goals = [kf.Goal(S.JointPosition(1e-4), target, at="always"), kf.Goal(S.JointVelocity(1e-2), np.zeros(6))]
    hold = kf.Mpc(arm, dt, 20, goals, torque_cov=np.full(6, 1e4))
    q, v = target + 0.1, np.zeros(6)
    for _ in range(60):
        run = kf.simulate(arm, q, v, [0.0, dt], hold.step(q, v), method="euler")
        q, v = run.q[-1], run.v[-1]
    assert np.abs(q - target).max() < 5e-3 and np.abs(v).max() < 1e-2


def test_inverse_kinematics():
    """Exact positions and poses are met; what is free stays near the start; what is out of reach is said."""
    arm, rng = kf.models.puma560(), np.random.default_rng(0)
    for _ in range(10):
        there = arm.random_configuration(rng)
        at = kf.frame_pose(arm, there, "link_6")
        pose = np.concatenate([at.position, kf.spatial.matrix_to_quaternion(at.rotation)])
        near = kf.integrate(arm, there, 0.2 * rng.normal(size=6))
        found = kf.inverse_kinematics(arm, [kf.Goal(S.Pose("link_6", 1e-8), pose)], near)
        assert found.converged, found.message
        reached = kf.frame_pose(arm, found.q, "link_6")
        np.testing.assert_allclose(reached.position, at.position, rtol=0, atol=1e-8)
        np.testing.assert_allclose(reached.rotation, at.rotation, rtol=0, atol=1e-8)
        exact = kf.inverse_kinematics(arm, [kf.Goal(S.Position("link_6", 0.0), at.position)], near)
        assert exact.converged and np.abs(exact.residuals[0]).max() < 1e-10
    far = kf.inverse_kinematics(arm, [kf.Goal(S.Position("link_6", 1e-4), [9.0, 0.0, 0.0])], np.full(6, 0.1))
    assert np.linalg.norm(far.residuals[0]) > 5


def test_poses_of_frames_are_values_of_goals():
    arm, begin = kf.models.puma560(), np.full(6, 0.4)
    at = kf.frame_pose(arm, np.full(6, 0.5), "link_6")
    turn = kf.spatial.matrix_to_quaternion(at.rotation)
    for sensor, numbers in (
        (S.Pose, np.concatenate([at.position, turn])), (S.Position, at.position), (S.Orientation, turn),
    ):  # fmt: skip
        told, same = (
            kf.inverse_kinematics(arm, [kf.Goal(sensor("link_6", 0.0), value)], begin) for value in (at, numbers)
        )
        assert told.converged and np.array_equal(told.q, same.q)
    many = kf.frame_pose(arm, [np.full(6, 0.5), begin], "link_6")
    batch = kf.plan_motion(arm, 0.02, 5, begin, 0 * begin, [kf.Goal(S.Pose("link_6", 1e-2), many)], 1e4)
    alone = kf.plan_motion(arm, 0.02, 5, begin, 0 * begin, [kf.Goal(S.Pose("link_6", 1e-2), at)], 1e4)
    np.testing.assert_array_equal(batch[0].tau, alone.tau)


def test_what_inverse_kinematics_is_not_given_and_cannot_reach_is_named():
    arm, q0, at = kf.models.puma560(), np.full(6, 0.4), [0.5, 0.2, 0.3]

    def found(*values, q0=q0, cov=0.0, **options):
        return kf.inverse_kinematics(
            arm, [kf.Goal(S.Position("link_6", cov), value) for value in values], q0, **options
        )

    with pytest.raises(ModelError, match="needs at least one goal"):
        found()
    with pytest.raises(ModelError, match=r"goal Position\('link_6'\): its value has entries that are not finite"):
        found([np.nan] * 3)
    with pytest.raises(ShapeError, match=r"q0 must be one configuration, \(6,\), got shape \(2, 6\)"):
        found(at, q0=[q0, q0])
    with pytest.raises(ShapeError, match=r"goals\[0\] has values for 2 robots"):
        found([at, at])
    pose = r"\('link_6'\): its value must be .* a position, then a quaternion \(x, y, z, w\), or a pose .*, got "
    for value, words in ((np.eye(4), r"shape \(4, 4\)"), ((np.eye(3), at), "a tuple")):
        with pytest.raises(ShapeError, match=pose + words):
            kf.inverse_kinematics(arm, [kf.Goal(S.Pose("link_6", 0.0), value)], q0)
    with pytest.raises(SingularError, match=r"goals\[1\] Position\('link_6'\), entry 0, .* decide it already"):
        found(at, at)
    pendulum = kf.models.double_pendulum()
    with pytest.raises(
        SingularError, match=r"goals\[0\] Position\('lower'\), entry 1, is exact, but no hinge moves it"
    ):
        kf.inverse_kinematics(pendulum, [kf.Goal(S.Position("lower", 0.0), [0.1, 0.0, -1.0])], [0.1, 0.1])
    far = found([9.0, 0.0, 0.0])
    assert not far.converged
    assert far.message == (
        "not converged: no shorter step leads nearer; goals[0] Position('link_6') is missed by 8.43: it is out of "
        "reach, alone or beside the others, or far from q0; begin from another q0 or give it a covariance"
    )
    assert "stopped after 1 step; goals[0] " in found(at, iterations=1).message


def test_what_cannot_be_is_named():
    arm, zero = kf.models.puma560(), np.zeros(6)
    plan = (arm, 0.02, 10, zero, zero)
    with pytest.raises(ModelError, match="a plan needs at least one goal"):
        kf.plan_motion(*plan, [], torque_cov=1.0)
    with pytest.raises(ModelError, match=r"goals must be kf.Goal\(sensor, value, at=...\), got tuple"):
        kf.plan_motion(*plan, [(1, 2)], torque_cov=1.0)
    with pytest.raises(ShapeError, match=r"at must be 'always' or a step 0 to 10, got 11"):
        kf.plan_motion(*plan, [kf.Goal(S.JointPosition(0.0), zero, at=11)], torque_cov=1.0)
    with pytest.raises(ModelError, match="step 0 is the start"):
        kf.plan_motion(*plan, [kf.Goal(S.JointPosition(0.0), zero, at=0)], torque_cov=1.0)
    with pytest.raises(ShapeError, match=r"its value must be \(6,\), got shape \(5,\)"):
        kf.plan_motion(*plan, [kf.Goal(S.JointPosition(0.0), np.zeros(5))], torque_cov=1.0)
    with pytest.raises(ModelError, match="a goal needs a sensor of positions or velocities"):
        kf.plan_motion(*plan, [kf.Goal(S.JointTorque(0.0), zero)], torque_cov=1.0)
    one, other = (rf"goals\[{i}\] JointPosition\(\), entry 0,? at step 10" for i in range(2))
    with pytest.raises(ModelError, match=f"{one} is missed by .*: it contradicts {other};"):
        kf.plan_motion(*plan, [kf.Goal(S.JointPosition(0.0), zero), kf.Goal(S.JointPosition(0.0), zero + 0.1)], 1.0)
    goals = [kf.Goal(S.JointPosition(0.0), zero), kf.Goal(S.JointVelocity(0.0), zero)]
    for given, words in (
        (0.0, "no motor at all"),
        (-1.0, "torque_cov is not positive"),
        (np.inf, "torque_cov has entries"),
    ):
        with pytest.raises(ModelError, match=words):
            kf.plan_motion(*plan, goals, given)
    with pytest.raises(ShapeError, match="torque_cov is of size 5"):
        kf.plan_motion(*plan, goals, np.ones(5))
    with pytest.raises(ShapeError, match="torque_cov must be an array of real numbers"):
        kf.plan_motion(*plan, goals, "much")
    with pytest.raises(ModelError, match="goals must be a list of"):
        kf.plan_motion(*plan, None, 1.0)
    half = [kf.Goal(S.JointPosition(1e-4), [0.5])]
    with pytest.raises(ShapeError, match="q0 must be an array of real numbers"):
        kf.plan_motion(kf.models.pendulum(), 0.1, 5, "up", [0.0], half, 1.0)
    with pytest.raises(ModelError, match="the cost is not finite; check the units"):
        kf.plan_motion(kf.models.pendulum(), 0.1, 5, [0.0], [1e200], half, 1.0)
    with pytest.raises(ModelError, match=r"q0\[0\] = 0 is outside of position_limits 1 to 2"):
        kf.plan_motion(*plan, goals, 1.0, position_limits=(1.0, 2.0))
    with pytest.raises(ModelError, match=r"no plan keeps all limits: torque of joint_\d [≤≥] -?3 at step"):
        kf.plan_motion(
            arm, 0.02, 30, zero, zero, [kf.Goal(S.JointPosition(0.0), zero + 0.5), goals[1]], 1e2, torque_limits=3.0
        )
    with pytest.raises(ModelError, match=r"no plan keeps all limits: v\[joint_\d\] ≤ 0.2 at step"):
        kf.plan_motion(
            arm, 0.02, 30, zero, zero, [kf.Goal(S.JointPosition(0.0), zero + 0.5), goals[1]], 1e2, velocity_limits=0.2
        )
    with pytest.raises(ShapeError, match=r"v0 must be finite velocities, \(6,\), got shape \(\)"):
        kf.plan_motion(arm, 0.02, 10, zero, None, goals, 1.0)
    for asked in (kf.plan_motion, kf.Mpc):
        with pytest.raises(ModelError, match="there is no option 'foo'; beside the limits there are damping, "):
            asked(*(plan if asked is kf.plan_motion else plan[:3]), goals, 1.0, foo=1)
    plan_of_two = kf.plan_motion(kf.models.pendulum(), 0.1, 5, [[0.0], [0.1]], [[0.0], [0.0]], half, 1.0)
    for i in (2, -3, 0.5):
        with pytest.raises(IndexError, match=f"there is no plan {i}; the batch has plans 0 to 1"):
            plan_of_two[i]
    assert plan_of_two[-1].cost == plan_of_two[1].cost and len(list(plan_of_two)) == 2
    for k in (-1, -31, 1.5, "a"):
        with pytest.raises(ShapeError, match="k must be a step, a whole number from 0 on"):
            plan_of_two[0].control(k, [0.0], [0.0])
    with pytest.raises(ModelError, match="tolerance positive"):
        kf.plan_motion(*plan, goals, 1.0, tolerance=0.0)


def test_small_plans():
    """Goals that repeat each other are met once; one step; and no iteration at all."""
    arm, zero = kf.models.puma560(), np.zeros(6)
    goal, still = kf.Goal(S.JointPosition(0.0), zero + 0.1), kf.Goal(S.JointVelocity(0.0), zero + 0.1)
    once, twice = (kf.plan_motion(arm, 0.02, 10, zero, zero, goals, 1.0) for goals in ([goal], [goal, goal]))
    assert once.converged and twice.converged
    np.testing.assert_allclose(twice.tau, once.tau, rtol=0, atol=1e-6 * np.abs(once.tau).max())
    one = kf.plan_motion(arm, 0.02, 1, zero, zero, [still], 1.0)
    np.testing.assert_allclose(one.tau[0], kf.inverse_dynamics(arm, zero, zero, np.full(6, 5.0)), rtol=1e-9)
    asked = kf.plan_motion(arm, 0.02, 10, zero, zero, [goal], 1.0, iterations=0)
    assert not asked.converged and "stopped after 0 steps" in asked.message


def test_limits_of_two_hinges_may_be_a_list():
    """A list is an array, a limit each; a tuple is (lower, upper)."""
    arm, zero = kf.models.double_pendulum(), np.zeros(2)
    task = (arm, 0.02, 30, zero, zero, [kf.Goal(S.JointPosition(1e-4), zero + 0.3)], 1e4)
    largest = np.abs(kf.plan_motion(*task).tau).max(axis=0)
    plan = kf.plan_motion(*task, torque_limits=(0.7 * largest).tolist())
    assert plan.converged
    np.testing.assert_allclose(np.abs(plan.tau).max(axis=0), 0.7 * largest, rtol=1e-12)
    same = kf.plan_motion(*task, torque_limits=(-0.7 * largest, 0.7 * largest))
    np.testing.assert_array_equal(same.tau, plan.tau)


def test_from_far():
    """An arm that must give way to gravity: Gauss–Newton takes hundreds of steps where Newton's take a few."""
    arm, nv = kf.models.puma560(), 6
    goals = [kf.Goal(S.JointPosition(1e-4), np.full(nv, 0.5)), kf.Goal(S.JointVelocity(1e-4), np.zeros(nv))]
    task = (arm, 0.02, 60, np.zeros(nv), np.zeros(nv), goals, np.full(nv, 4.0))
    plan = kf.plan_motion(*task)
    assert plan.converged and plan.iterations < 60
    slow = kf.plan_motion(*task, newton=False, iterations=plan.iterations, start=plan.x + 1e-3)
    assert not slow.converged or slow.cost == pytest.approx(plan.cost, rel=1e-6)
    tighter = kf.plan_motion(*task, start=plan, tolerance=1e-9)
    assert tighter.converged and tighter.iterations <= 3
    np.testing.assert_allclose(tighter.tau, plan.tau, rtol=0, atol=1e-7)  # Newton's last step has squared the error


@pytest.mark.parametrize("kind", ["arm", "floating", "damped"])
def test_rollouts_compiled_and_by_python(kind):
    """Under gains, with gaps that shrink, within limits of torque, some rows exploding or not."""
    from kfdyn.motion.planning.plan import bind

    rng = np.random.default_rng(3)
    system = kf.models.free_flyer() if kind == "floating" else kf.models.puma560()
    nv, N = system.nv, 12
    q0, v0 = system.random_configuration(rng), 0.2 * rng.normal(size=nv)
    options = {"damping": np.full(nv, 2.0), "method": "implicit"} if kind == "damped" else {}
    limits = (None if kind == "floating" else 30.0, None, None)
    goal = [kf.Goal(S.JointVelocity(1.0), np.zeros(nv))]
    shooting = bind(system, 0.02, N, q0, v0, goal, np.linspace(1.0, 9.0, nv), limits, options)
    q = np.array([kf.integrate(system, q0, 0.02 * k * rng.normal(size=nv)) for k in range(N + 1)])
    x = np.concatenate([q, 0.2 * rng.normal(size=(N + 1, nv))], axis=1)[None]
    x[:, 0] = shooting.x0
    point = shooting.point(x, 0.5 * rng.normal(size=(1, N, nv)))
    law = 0.3 * rng.normal(size=(1, N, nv)), 0.2 * rng.normal(size=(1, N, nv, 2 * nv))
    which, alpha = np.zeros(3, int), np.array([1.0, 0.5, 0.125])
    gaps = (1.0 - alpha)[:, None, None] * point.gaps[which]
    swift = shooting._compiled_rollout(point, which, alpha, *law)
    plain = shooting._rollout(point, which, alpha, *law, gaps)
    for one, other in zip(swift, plain):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    x, s = swift
    ahead = np.concatenate([shooting.advance(x[:, k], s[:, k])[:, None] for k in range(N)], axis=1)
    left = [shooting.model.states.minus(ahead[r], x[r, 1:]) for r in range(3)]
    np.testing.assert_allclose(left, shooting.rollout(point, which, alpha, *law)[2], rtol=0, atol=1e-9)
    assert np.abs(gaps[2]).max() > 1e-3 and np.abs(swift[0]).max() < 1e3


@pytest.mark.parametrize("limits", [None, 60.0])
@pytest.mark.parametrize("deviation", [1e-2, 0.0])
def test_a_batch_of_plans_is_each_of_them(limits, deviation):
    """Starts and goals of their own, side by side or, with exact goals, one by one: the bits of a plan alone."""
    arm, rng, nv = kf.models.puma560(), np.random.default_rng(5), 6
    q0, v0, to = 0.3 * rng.normal(size=(3, nv)), 0.1 * rng.normal(size=(3, nv)), 0.4 * rng.normal(size=(3, nv))

    def planned(which):
        still = [kf.Goal(S.JointVelocity(deviation**2), np.zeros(nv))]
        goals = [kf.Goal(S.JointPosition(deviation**2), to[which]), *still]
        return kf.plan_motion(arm, 0.03, 25, q0[which], v0[which], goals, 100.0, torque_limits=limits)

    plans = planned(slice(None))
    assert plans.converged.all() and len(plans) == 3 and plans.tau.shape == (3, 25, nv)
    assert limits is None or (np.abs(plans.tau) > 60.0 - 1e-9).any()
    for i in range(3):
        alone, part = planned(i), plans[i]
        assert part.message == plans.message[i] == alone.message and part.iterations == alone.iterations
        for name in ("q", "v", "tau", "gains", "multipliers", "cost"):
            np.testing.assert_array_equal(getattr(part, name), getattr(alone, name), err_msg=name)
        np.testing.assert_array_equal(plans.gains[i], alone.gains)
    moved = plans.control(3, plans.q[:, 3] + 0.01, plans.v[:, 3])
    np.testing.assert_allclose(moved[1], plans[1].control(3, plans[1].q[3] + 0.01, plans[1].v[3]), rtol=1e-12)


def test_plans_of_a_batch_end_at_different_times():
    """Some converge, one has no time to: each says so, and none waits for another."""
    q0 = np.array([[0.0], [0.4], [3.0]])
    task = kf.models.pendulum(), 0.05, 20, q0, np.zeros((3, 1)), [kf.Goal(S.JointPosition(1e-4), [0.4])], 4.0
    first = kf.plan_motion(*task).x
    first[2, 1:] = 3.0, 0.0
    plans = kf.plan_motion(*task, start=first, iterations=2)
    assert plans.converged.any() and not plans.converged.all() and len(set(plans.iterations)) > 1
    assert all(("not" in told) != fine for told, fine in zip(plans.message, plans.converged))
    assert "converged)" in repr(plans)
    more = kf.plan_motion(*task, start=plans)
    assert more.converged.all() and more.iterations[plans.converged].max() <= 1


def test_bad_batches_are_named():
    arm, still = kf.models.pendulum(), np.zeros((2, 1))
    goal = [kf.Goal(S.JointPosition(1e-4), [0.5])]
    with pytest.raises(ShapeError, match="q0 and v0 of a batch"):
        kf.plan_motion(arm, 0.1, 5, still, np.zeros((3, 1)), goal, 1.0)
    with pytest.raises(ShapeError, match="2 starts, and goals for 3 plans"):
        kf.plan_motion(arm, 0.1, 5, still, still, [kf.Goal(S.JointPosition(1e-4), np.ones((3, 1)))], 1.0)
    with pytest.raises(ModelError, match=r"plan 1: q0\[0\] = 2"):
        kf.plan_motion(arm, 0.1, 5, [[0.0], [2.0]], still, goal, 1.0, position_limits=1.0)
    plans = kf.plan_motion(arm, 0.1, 5, still, still, goal, 1.0)
    with pytest.raises(ModelError, match="of a batch are not kept"):
        _ = plans.linear
    with pytest.raises(ModelError, match=r"plans\[i\]"):
        plans.plot()
    with pytest.raises(ShapeError, match="start has 2 plans"):
        kf.plan_motion(arm, 0.1, 5, [[0.0]] * 3, [[0.0]] * 3, goal, 1.0, start=plans)
    with pytest.raises(TypeError, match="one plan"):
        len(plans[0])
    with pytest.raises(IndexError):
        plans[2]
