"""Optimal control: linear-quadratic problems, plans and a receding horizon beside Crocoddyl, and NumPy's Riccati.

Crocoddyl asks for Pinocchio 4.0: beside another one its answers are wrong, so they are compared before its clock.
"""

import re
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kfdyn as kf
from benchmarks.report import Report
from benchmarks.robots import packaged
from benchmarks.timing import environment, race
from kfdyn.estimation.control.goals import Rows
from kfdyn.motion.planning.plan import bind, first_guess
from kfdyn.motion.planning.quadratic import Quadratic, minimise
from kfdyn.motion.planning.search import Search
from kfdyn.sweeps import alone

S = kf.sensors
_FILES = {"UR5": "ur5_robot.urdf", "Panda": "panda.urdf"}
_DT, _STEPS, _EFFORT, _GOAL = 0.01, 100, 100.0, 1e-4


class Reach(NamedTuple):
    """An arm that shall be somewhere at rest after a second, as kfdyn and as Crocoddyl hold it (None if missing)."""

    name: str
    arm: kf.System
    q0: np.ndarray
    target: np.ndarray
    solver: Any
    start: Any


def reach(name: str) -> Reach:
    """Move every hinge by 0.3 rad in a second."""
    text = packaged("example-robot-data", _FILES[name]).read_text().replace('type="prismatic"', 'type="fixed"')
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "arm.urdf"
        file.write_text(re.sub(r"<mimic[^>]*>", "", text))
        arm = kf.load(file)
        middle = np.clip(0.0, arm.lower, arm.upper)
        q0 = np.where((arm.lower > 0) | (arm.upper < 0), 0.5 * (arm.lower + arm.upper), middle)
        try:
            solver, start = _crocoddyl(file, q0, q0 + 0.3)
        except ModuleNotFoundError:
            solver = start = None
    return Reach(name, arm, q0, q0 + 0.3, solver, start)


def _crocoddyl(file: Path, q0: np.ndarray, target: np.ndarray) -> tuple[Any, Any]:
    import crocoddyl
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(file))
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    run, end = crocoddyl.CostModelSum(state), crocoddyl.CostModelSum(state)
    run.addCost(
        "effort", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state)), 1.0 / (_EFFORT * _DT)
    )
    there = np.concatenate([target, np.zeros(model.nv)])
    end.addCost("goal", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, there)), 1.0 / _GOAL)
    steps = [
        crocoddyl.IntegratedActionModelEuler(
            crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, cost), h
        )
        for cost, h in ((run, _DT), (end, 0.0))
    ]
    x0 = np.concatenate([q0, np.zeros(model.nv)])
    problem = crocoddyl.ShootingProblem(x0, [steps[0]] * _STEPS, steps[1])
    problem.nthreads = 1  # it takes more by itself, which on a busy machine is ten times slower
    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = 1e-9
    return solver, ([x0] * (_STEPS + 1), list(problem.quasiStatic([x0] * _STEPS)))


def goals(target: np.ndarray, var: float = _GOAL, at: Any = -1, slow: float | None = None) -> list[kf.Goal]:
    still = np.zeros(len(target))
    velocity = S.JointVelocity(var if slow is None else slow)
    return [kf.Goal(S.JointPosition(var), target, at=at), kf.Goal(velocity, still, at=at)]


def iterations(task: Reach) -> dict[str, Any]:
    """One Gauss–Newton iteration each, at Crocoddyl's optimum: derivatives, the linear-quadratic problem, a rollout."""
    nv = task.arm.nv
    shooting = bind(
        task.arm, _DT, _STEPS, task.q0, np.zeros(nv), goals(task.target), np.full(nv, _EFFORT), (None,) * 3, {}
    )
    search = Search(shooting, 1, 1e-9, newton=False)
    solver = task.solver
    if solver is not None:
        solver.solve(*task.start, 500, False)
    start = None if solver is None else np.array(list(solver.xs))
    point = shooting.point(*first_guess(shooting, start))
    if solver is not None:
        assert abs(float(point.cost[0]) / solver.cost - 1.0) < 1e-9, "Crocoddyl weighs another plan, or another robot"

    def ours() -> None:
        linear = shooting.linear(point)
        search._advance(point, linear, search.step(point, linear), np.ones(1, bool))

    xs, us = [] if solver is None else list(solver.xs), [] if solver is None else list(solver.us)

    def theirs() -> None:
        solver.setCandidate(xs, us, True)
        solver.computeDirection(True)
        solver.tryStep(1e-9)  # a whole rollout, but none that leaves the optimum by rounding and explodes

    return {"kfdyn": ours} if solver is None else {"kfdyn": ours, "Crocoddyl": theirs}


def whole(task: Reach) -> tuple[dict[str, Any], dict[str, str]]:
    """Whole plans from the arm held at rest, and where they end."""
    nv = task.arm.nv
    given = task.arm, _DT, _STEPS, task.q0, np.zeros(nv), goals(task.target), np.full(nv, _EFFORT)
    plan = kf.plan_motion(*given)
    runs: dict[str, Any] = {"kfdyn": lambda: kf.plan_motion(*given)}
    told = {"kfdyn": f"{plan.cost:.6g} in {plan.iterations}" + ("" if plan.converged else ", not converged")}
    if task.solver is not None:
        solver = task.solver
        runs["Crocoddyl"] = lambda: solver.solve(*task.start, 500, False)
        done = runs["Crocoddyl"]()
        told["Crocoddyl"] = f"{solver.cost:.6g} in {solver.iter}" + ("" if done else ", not converged")
    return runs, told


def linear_quadratic(task: Reach, rng: np.random.Generator) -> dict[str, Any]:
    """n = 12, m = 6, 100 steps: the same sizes as the UR5's, whose backward pass Crocoddyl is asked for."""
    n, m, N = 12, 6, 100
    A, B = np.eye(n) + 0.01 * rng.normal(size=(N, n, n)), 0.1 * rng.normal(size=(N, n, m))
    Q, R, x0 = np.eye(n), np.eye(m), np.ones(n)
    plan = kf.lqr(A, B, Q, R, x0)
    xi, eta, T = plan.problem.inputs

    def engine() -> None:
        plan.ss._cache.clear()
        kf.bryson_frazier(plan.ss, kf.kalman_filter(plan.ss, T, xi, eta), covariances=False)

    def riccati() -> list[np.ndarray]:
        P, gains = Q, []
        for k in range(N - 1, -1, -1):
            PB = P @ B[k]
            gains.append(np.linalg.solve(R + B[k].T @ PB, PB.T @ A[k]))
            P = Q + A[k].T @ P @ (A[k] - B[k] @ gains[-1])
        return gains[::-1]

    c, none = np.zeros((1, N, n)), np.zeros((0, N * n))
    c[0, 0] = A[0] @ x0
    rows = Rows([], none, np.zeros((0, N * m)), np.zeros(0), [])
    whole = np.ascontiguousarray(np.broadcast_to(Q, (1, N, n, n)))
    task_step = Quadratic(A[None], B[None], whole, np.zeros((1, N, n)), np.ones(1), np.zeros((1, N, m)), None, c, rows)
    nothing_held = np.zeros((1, N, m), np.int8)

    def law() -> Any:
        return minimise(task_step, nothing_held)

    np.testing.assert_allclose(-np.array(riccati()), plan.gains, rtol=0, atol=1e-10)
    np.testing.assert_allclose(law().gains[0], plan.gains, rtol=0, atol=1e-10)
    np.testing.assert_allclose(law().x[0], plan.x, rtol=0, atol=1e-10)
    runs = {
        "lqr, arguments checked": lambda: kf.lqr(A, B, Q, R, x0),
        "filter and smoother": engine,
        "a plan's step: law, states, costates": law,
        "NumPy": riccati,
    }
    if task.solver is not None:
        task.solver.solve(*task.start, 3, False)
        runs["Crocoddyl's backward pass"] = lambda: task.solver.backwardPass()
    return runs


def many(task: Reach, plans: int, looped: int) -> tuple[dict[str, Any], dict[str, int]]:
    """A batch of plans from starts of their own, and a loop over Crocoddyl's for some of them; how many each has."""
    nv, rng = task.arm.nv, np.random.default_rng(0)
    q0 = task.q0 + 0.2 * rng.normal(size=(plans, nv))
    given = task.arm, _DT, _STEPS, q0, np.zeros((plans, nv)), goals(task.target), np.full(nv, _EFFORT)
    runs: dict[str, Any] = {"kfdyn": lambda: kf.plan_motion(*given)}
    if task.solver is not None:

        def loop() -> None:
            problem = task.solver.problem
            for q in q0[:looped]:
                problem.x0 = np.concatenate([q, np.zeros(nv)])
                states = [problem.x0] * (_STEPS + 1)
                task.solver.solve(states, list(problem.quasiStatic(states[1:])), 500, False)

        runs["Crocoddyl"] = loop
    return runs, {"kfdyn": plans, "Crocoddyl": looped}


def tick(task: Reach, pressed: bool) -> Any:
    """A tick of a receding horizon of 20 steps on its way, limits of torque beside."""
    arm, nv = task.arm, task.arm.nv
    hold = np.abs(kf.gravity_torques(arm, task.q0))
    limits = hold + 0.5 if pressed else np.asarray(arm.effort)
    mpc = kf.Mpc(arm, 0.02, 20, goals(task.target, 1e-2, "always", 1e-1), np.full(nv, 100.0), torque_limits=limits)
    q, v = task.q0, np.zeros(nv)
    mpc.step(q, v)
    state = [q, v]

    def run() -> None:
        tau = mpc.step(*state)
        moved = kf.step_derivatives(arm, *state, tau, 0.02)
        state[:] = moved.q, moved.v
        if np.abs(state[0] - task.target).max() < 0.1:
            state[:] = task.q0, np.zeros(nv)

    return run


def run(quick: bool = False) -> Report:
    budget, rows, numbers = 0.02 if quick else 2.0, [], {}
    tasks = [reach(name) for name in _FILES]
    with alone():
        took = race(linear_quadratic(tasks[0], np.random.default_rng(0)), budget)
        numbers["linear-quadratic"] = took
        rows += [["n 12, m 6, 100 steps", name, f"{1e3 * t:.3f}", ""] for name, t in took.items()]
        for task in tasks:
            took = race(iterations(task), budget)
            numbers[f"{task.name}, iteration"] = took
            rows += [[f"{task.name}, an iteration", name, f"{1e3 * t:.3f}", ""] for name, t in took.items()]
            runs, told = whole(task)
            took = race(runs, budget, laps=2)
            numbers[f"{task.name}, plan"] = took
            rows += [[f"{task.name}, a whole plan", name, f"{1e3 * t:.1f}", told[name]] for name, t in took.items()]
        runs, each = many(tasks[0], *((4, 2) if quick else (256, 32)))
        took = {name: t / each[name] for name, t in race(runs, budget, laps=1).items()}
        numbers["batch"] = took
        rows += [[f"UR5, a plan of {each['kfdyn']}", name, f"{1e3 * t:.1f}", ""] for name, t in took.items()]
        panda = tasks[-1]
        ticks = {"far from its limits": tick(panda, False), "at its limits": tick(panda, True)}
        took = race(ticks, budget)
        numbers["tick"] = took
        rows += [["Panda, a tick of Mpc, 20 steps", f"kfdyn, {k}", f"{1e3 * t:.3f}", ""] for k, t in took.items()]
    notes = [
        "Processor time, one thread. An iteration is one of Gauss–Newton: derivatives, linear-quadratic problem, "
        "rollout. kfdyn's searches also use second derivatives once these steps are slow. Plans end at a cost, in so "
        "many iterations; where costs differ they are different local optima. A batch is planned in one call, from "
        "starts of its own; Crocoddyl goes through some of it in a loop. A tick has a step of the robot with it.",
    ]
    if tasks[0].solver is None:
        notes.append("Crocoddyl is not installed.")
    return Report(
        "control",
        "Plans of arms over 100 steps beside Crocoddyl's FDDP",
        ["problem", "by", "ms", "ends at"],
        rows,
        environment(["kfdyn", "numpy", "llvmlite", "crocoddyl", "pin"]),
        notes,
        {"seconds": numbers},
        words=2,
    )
