"""The same optimum as Crocoddyl's, on problems like those of its examples; it needs pin 4.0, beside 4.1 it is wrong."""

import numpy as np
import pytest

import kfdyn as kf

crocoddyl = pytest.importorskip("crocoddyl", reason="Crocoddyl is not installed")
pin = pytest.importorskip("pinocchio")

S = kf.sensors


def their_problem(system, tmp_path, dt, steps, x0, target, motors, torque_var, goal_var, limit=None):
    """min ½ Σ τ²/torque_var + ½ |x − target|²/goal_var at the end, by semi-implicit Euler steps."""
    kf.save_urdf(system, tmp_path / "robot.urdf")
    text = (tmp_path / "robot.urdf").read_text()  # angles of continuous hinges are two numbers to Pinocchio
    far = '<limit lower="-100" upper="100" effort="1e6" velocity="1e6"/>'
    model = pin.buildModelFromXML(text.replace('type="continuous">', f'type="revolute">{far}'))
    model.armature[:] = system.armature
    q, v = x0[: system.nq], x0[system.nq :]
    tau = np.linspace(-1.0, 1.0, system.nv)
    ours = kf.forward_dynamics(system, q, v, tau)
    np.testing.assert_allclose(pin.aba(model, model.createData(), q, v, tau), ours, rtol=1e-9, atol=1e-9)
    state = crocoddyl.StateMultibody(model)
    S_motors = np.eye(system.nv)[:, motors]
    full = len(motors) == system.nv
    actuation = crocoddyl.ActuationModelFull(state) if full else _some_motors(state, S_motors)
    run, end = crocoddyl.CostModelSum(state, len(motors)), crocoddyl.CostModelSum(state, len(motors))
    effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, len(motors)))
    run.addCost("effort", effort, 1.0 / (torque_var * dt))  # it weighs running costs by dt
    end.addCost(
        "goal",
        crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, target, len(motors))),
        1 / goal_var,
    )
    actions = [
        crocoddyl.IntegratedActionModelEuler(
            crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs), h
        )
        for costs, h in ((run, dt), (end, 0.0))
    ]
    if limit is not None:
        actions[0].u_lb, actions[0].u_ub = np.full(len(motors), -limit), np.full(len(motors), limit)
    return crocoddyl.ShootingProblem(x0, [actions[0]] * steps, actions[1])


def _some_motors(state, selection):
    class Actuation(crocoddyl.ActuationModelAbstract):
        def __init__(self):
            super().__init__(state, selection.shape[1])

        def calc(self, data, x, u):
            data.tau = selection @ u

        def calcDiff(self, data, x, u):
            data.dtau_du = selection

    return Actuation()


def goals(target, nv, var):
    return [kf.Goal(S.JointPosition(var), target[:nv]), kf.Goal(S.JointVelocity(var), target[nv:])]


@pytest.mark.parametrize("limit", [None, 40.0])
def test_an_arm_reaches(tmp_path, limit):
    arm, dt, steps, nv = kf.models.puma560(), 0.02, 50, 6
    x0, target = np.zeros(12), np.concatenate([np.linspace(0.6, -0.4, 6), np.zeros(6)])
    problem = their_problem(arm, tmp_path, dt, steps, x0, target, range(nv), 100.0, 1e-4, limit)
    plan = kf.plan_motion(
        arm, dt, steps, x0[:nv], x0[nv:], goals(target, nv, 1e-4), np.full(nv, 100.0), torque_limits=limit
    )
    assert plan.converged, plan.message
    solver = (crocoddyl.SolverFDDP if limit is None else crocoddyl.SolverBoxFDDP)(problem)
    solver.th_stop = 1e-14
    solver.solve([*plan.x], [*plan.tau], 200, True)  # from our plan: it may not find a better one, nor leave it
    assert solver.cost == pytest.approx(plan.cost, rel=1e-8)
    solver.solve(problem.rollout(problem.quasiStatic([x0] * steps)), problem.quasiStatic([x0] * steps), 500, True)
    assert plan.cost <= solver.cost * (1.0 + 1e-8)
    if limit is not None:
        assert np.abs(plan.tau).max() == pytest.approx(limit, rel=1e-12)


def test_a_double_pendulum_swings_up(tmp_path):
    """One motor, at the second hinge."""
    bot, dt, steps = kf.models.double_pendulum(), 0.02, 100
    x0, target = np.zeros(4), np.array([np.pi, 0.0, 0.0, 0.0])
    problem = their_problem(bot, tmp_path, dt, steps, x0, target, [1], 100.0, 1e-3)
    plan = kf.plan_motion(bot, dt, steps, x0[:2], x0[2:], goals(target, 2, 1e-3), [0.0, 100.0])
    assert plan.converged, plan.message
    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = 1e-14
    solver.solve([*plan.x], [*plan.tau[:, 1:]], 300, True)
    assert solver.cost == pytest.approx(plan.cost, rel=1e-8)
