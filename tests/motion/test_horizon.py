"""A receding horizon: within limits of torque, its tick is the Gauss–Newton step of the whole plan."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.motion.planning.quadratic import by_interior_point

S = kf.sensors


def goals(target, nv):
    return [
        kf.Goal(S.JointPosition(1e-2), target, at="always"),
        kf.Goal(S.JointVelocity(1e-1), np.zeros(nv), at="always"),
    ]


def test_arrives_within_limits_of_torque():
    arm, dt = kf.models.puma560(), 0.02
    target = np.array([0.5, -0.4, 0.3, 0.2, 0.2, 0.1])
    most = 1.1 * np.abs(kf.gravity_torques(arm, np.linspace(0, 1, 9)[:, None] * target)).max(axis=0) + 3.0
    follow = kf.Mpc(arm, dt, 20, goals(target, 6), np.full(6, 1e4), torque_limits=most)
    q, v, pressed = np.zeros(6), np.zeros(6), 0
    for _ in range(200):
        tau = follow.step(q, v)
        assert (np.abs(tau) <= most * (1 + 1e-12)).all()
        pressed += (np.abs(tau) > most * (1 - 1e-12)).any()
        q, v, _, _ = kf.step_derivatives(arm, q, v, tau, dt)
    assert pressed > 5
    assert np.abs(q - target).max() < 0.02 and np.abs(v).max() < 0.02


def test_ticks_of_a_robot_at_rest_converge_to_the_plan():
    """Asked again and again from where the same state is, goals that move along: the plan from there."""
    arm, dt, steps = kf.models.double_pendulum(), 0.02, 15
    target, W = np.array([0.3, 0.2]), np.full(2, 1e3)
    ahead = kf.Mpc(arm, dt, steps, goals(target, 2), W, iterations=30)
    q, v = np.array([0.1, 0.0]), np.array([0.2, -0.1])
    ahead.step(np.zeros(2), np.zeros(2))
    tau = ahead.step(q, v)
    plan = kf.plan_motion(arm, dt, steps, q, v, goals(target, 2), W, tolerance=1e-9)
    np.testing.assert_allclose(tau, plan.tau[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(ahead.plan.tau, plan.tau, rtol=0, atol=1e-6)
    assert ahead.plan.cost == pytest.approx(plan.cost, rel=1e-9)


def test_goals_may_change():
    arm, dt = kf.models.pendulum(), 0.02
    hold = kf.Mpc(arm, dt, 20, goals([0.5], 1), 1e3)
    q, v = np.zeros(1), np.zeros(1)
    for k in range(200):
        tau = hold.step(q, v, goals([-0.5], 1) if k == 100 else None)
        q, v, _, _ = kf.step_derivatives(arm, q, v, tau, dt)
        if k == 99:
            assert abs(q[0] - 0.5) < 0.03
    assert abs(q[0] + 0.5) < 0.03


def test_what_cannot_be_is_named():
    arm = kf.models.pendulum()
    with pytest.raises(ModelError, match="iterations must be a whole number of at least 1"):
        kf.Mpc(arm, 0.02, 20, goals([0.5], 1), 1.0, iterations=0)
    with pytest.raises(ShapeError, match="steps must be a whole number"):
        kf.Mpc(arm, 0.02, 0, goals([0.5], 1), 1.0)
    with pytest.raises(KfdynError, match="torque_cov"):
        kf.Mpc(arm, 0.02, 20, goals([0.5], 1), -1.0)
    hold = kf.Mpc(arm, 0.02, 20, goals([0.5], 1), 1.0)
    for q, v in (([0.0, 1.0], [0.0]), ([np.nan], [0.0])):
        with pytest.raises(ShapeError, match=r"q and v must be finite, \(1,\) and \(1,\)"):
            hold.step(q, v)


def test_limits_that_pressed_in_the_last_tick_are_tried_first():
    """So a tick takes no step of the interior point, and finds what one that begins afresh finds."""
    pendulum, dt, q, v, pressed = kf.models.double_pendulum(), 0.02, np.zeros(2), np.zeros(2), 0
    task = (pendulum, dt, 20, [kf.Goal(S.JointPosition(1e-2), [0.5, -0.5], at="always")], 1e3)
    ahead = kf.Mpc(*task, position_limits=0.3)
    for k in range(24):
        q, v, _, _ = kf.step_derivatives(pendulum, q, v, ahead.step(q, v), dt)
        linear, afresh = ahead.plan.linear, by_interior_point(ahead._step.problem)
        assert linear.converged and not (k and linear.iterations)
        pressed += afresh.pressure > 0.0
        np.testing.assert_allclose(ahead._step.u, afresh.u, rtol=0, atol=1e-9 * np.abs(ahead._point.s).max())
        assert np.abs(q).max() <= 0.3 + 1e-9
    assert pressed == 24
    np.testing.assert_allclose(q, [0.3, -0.3], rtol=0, atol=1e-6)
    with pytest.raises(ModelError, match=r"q0\[1\] = -0.31 is outside of position_limits -0.3 to 0.3"):
        kf.Mpc(*task, position_limits=0.3).step([0.0, -0.31], np.zeros(2))


def test_bad_states_and_goals_of_a_horizon_are_named():
    pendulum, goal = kf.models.pendulum(), [kf.Goal(S.JointPosition(1e-4), [0.5])]
    ahead = kf.Mpc(pendulum, 0.1, 5, goal, [1.0])
    for q in ("up", [[0.0], [1.0, 2.0]], [0.0, 1.0], [np.nan]):
        with pytest.raises(ShapeError, match=r"q (must|and v)"):
            ahead.step(q, [0.0])
    with pytest.raises(ModelError, match="Mpc plans for one robot"):
        kf.Mpc(pendulum, 0.1, 5, [kf.Goal(S.JointPosition(1e-4), [[0.5], [1.0]])], [1.0])
    weak = kf.Mpc(pendulum, 0.1, 5, [kf.Goal(S.JointPosition(0.0), [0.5])], [1.0], torque_limits=0.01)
    with pytest.raises(ModelError, match=r"no plan keeps all limits: torque of pivot .*, or plan more steps ahead$"):
        weak.step([0.0], [0.0])
    with pytest.raises(ModelError, match="not finite at step 2"):
        kf.plan_motion(pendulum, 0.1, 5, [0.0], [0.0], goal, 1.0).control(2, [np.nan], [0.0])
