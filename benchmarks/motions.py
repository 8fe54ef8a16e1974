"""Motions smoothed and followed: a robot's trajectory beside Crocoddyl's optimum of the same problem."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.report import Report
from benchmarks.robots import packaged
from benchmarks.timing import environment, race
from kfdyn.sweeps import alone

_DT, _W, _R = 0.002, 1e-2, 1e-6
#: Robot, its file in example-robot-data, whether its root floats, steps.
_CASES = [
    ("UR5", "ur5_robot.urdf", False, 500),
    ("UR5", "ur5_robot.urdf", False, 2000),
    ("Solo 12", "solo12.urdf", True, 200),
    ("TALOS", "talos_full_v2.urdf", True, 100),
]
_BATCH, _STEPS = 64, 100


@dataclass
class Case:
    """A motion under known torques and random forces that encoders read, and where iterations start."""

    system: kf.System
    model: kf.MotionModel
    q0: np.ndarray
    tau: np.ndarray
    y: np.ndarray
    start: np.ndarray

    @classmethod
    def of(cls, system: kf.System, steps: int, batch: int = 1) -> "Case":
        """Draw the motions of a batch; their states are where iterations start."""
        rng, nv = np.random.default_rng(0), system.nv
        model = kf.MotionModel(system, _DT, [kf.sensors.JointPosition(_R)], force_noise=np.full(nv, _W))
        q0 = system.neutral() if system.nq != nv else 0.5 * rng.normal(size=nv)
        tau = np.tile(kf.gravity_torques(system, q0), (steps - 1, 1))
        x = [np.tile(np.concatenate([q0, np.zeros(nv)]), (batch, 1))]
        for k in range(steps - 1):
            w = np.sqrt(_W) * rng.normal(size=(batch, nv))
            x.append(model.advance(x[-1], w, np.tile(tau[k], (batch, 1)), np.full(batch, k)))
        states = np.stack(x, axis=1)
        clean, noise = states[..., : system.nq].reshape(-1, system.nq), rng.normal(size=(batch * steps, nv))
        y = np.asarray(model.readings.plus(clean, np.sqrt(_R) * noise)).reshape(batch, steps, system.nq)
        return cls(system, model, q0, tau, y, states)

    def smoothed(self, covariances: bool, **more: Any) -> Any:
        """The mode; the first state is known, as it is to Crocoddyl."""
        nv, one = self.system.nv, len(self.y) == 1
        return kf.iterated_kalman_smoother(
            self.model, [self.y[0] if one else self.y], tau=self.tau, start=self.start[0] if one else self.start,
            prior=(self.q0, np.zeros(nv), np.zeros((2 * nv, 2 * nv))), covariances=covariances, **more,
        )  # fmt: skip


class ByCrocoddyl:
    """The same problem as optimal control: torques for forces, readings for costs, solved by FDDP on one thread."""

    def __init__(self, case: Case, file: Any, floats: bool) -> None:
        import crocoddyl
        import pinocchio as pin

        system, nv = case.system, case.system.nv
        model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floats else []))
        model.armature[:] = 0.0
        names = list(model.names)[2 if floats else 1 :]
        self.v = np.array([*([3, 4, 5, 0, 1, 2] if floats else []), *(system.v_slice(name).start for name in names)])
        self.q = np.array([*(range(7) if floats else []), *(system.q_slice(name).start for name in names)])
        self.case, nq = case, system.nq
        state = crocoddyl.StateMultibody(model)
        actuation = crocoddyl.ActuationModelFull(state)

        def action(y: np.ndarray, tau: np.ndarray | None) -> Any:
            costs, scale = crocoddyl.CostModelSum(state, nv), 1.0 if tau is None else 1.0 / _DT
            seen = crocoddyl.ActivationModelWeightedQuad(np.r_[np.full(nv, 1.0 / _R), np.zeros(nv)])
            residual = crocoddyl.ResidualModelState(state, np.r_[y[self.q], np.zeros(nv)], nv)
            costs.addCost("reading", crocoddyl.CostModelResidual(state, seen, residual), scale)
            if tau is not None:
                pushed = crocoddyl.ActivationModelWeightedQuad(np.full(nv, 1.0 / _W))
                residual = crocoddyl.ResidualModelControl(state, tau[self.v])
                costs.addCost("force", crocoddyl.CostModelResidual(state, pushed, residual), scale)
            dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
            return crocoddyl.IntegratedActionModelEuler(dynamics, 0.0 if tau is None else _DT)

        running = [action(y, tau) for y, tau in zip(case.y[0], case.tau)]
        problem = crocoddyl.ShootingProblem(self._state(case.start[0, 0], nq), running, action(case.y[0, -1], None))
        problem.nthreads = 1
        self.solver = crocoddyl.SolverFDDP(problem)
        self.start = [self._state(x, nq) for x in case.start[0]], [tau[self.v] for tau in case.tau]

    def _state(self, x: np.ndarray, nq: int) -> np.ndarray:
        return np.r_[x[:nq][self.q], x[nq:][self.v]]

    def solve(self) -> None:
        """Iterate to convergence."""
        self.solver.solve(*self.start, 50, False, 1e-9)

    def expect_the_same(self) -> None:
        """Look at the answer before the clock."""
        self.solve()
        post = self.case.smoothed(False)
        torques = (self.case.tau + post.force)[:, self.v]
        assert np.abs(np.array(self.solver.us) - torques).max() < 1e-6 * np.abs(torques).max()
        assert abs(self.solver.cost - post.cost[-1]) < 1e-8 * post.cost[-1]


def smoothing(quick: bool, peer: bool) -> tuple[list[list[str]], dict[str, Any]]:
    """Whole solutions, and single iterations, of one motion and of many."""
    rows, numbers, budget = [], {}, 0.05 if quick else 6.0
    for name, source, floats, steps in _CASES[: 1 if quick else None]:
        file = packaged("example-robot-data", source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a file says and dynamics does not use
            case = Case.of(_without_rotors(kf.load(file, floating_base=floats, mimic="free")), 30 if quick else steps)
        runs: dict[str, Callable[[], object]] = {
            "means": lambda case=case: case.smoothed(False),
            "covariances": lambda case=case: case.smoothed(True),
            "none": lambda case=case: case.smoothed(False, iterations=0),
            "two": lambda case=case: case.smoothed(False, iterations=2, tolerance=1e-300),
        }
        if peer:
            other = ByCrocoddyl(case, file, floats)
            other.expect_the_same()
            runs["Crocoddyl"] = other.solve
        took = race(runs, budget)
        found = case.smoothed(False).iterations, other.solver.iter + 1 if peer else 0
        one = (took["two"] - took["none"]) / 2
        theirs = took.get("Crocoddyl", float("nan"))
        label = f"{name}, {len(case.y[0])} steps"
        numbers[label] = {**took, "one iteration": one, "iterations": found}
        for what, mine, its in (
            ("an iteration", one, theirs / max(found[1], 1)),
            ("to the mode", took["means"], theirs),
            ("to the mode, with covariances", took["covariances"], theirs),
        ):
            rows.append([label, what, f"{1e3 * mine:.2f}", f"{1e3 * its:.2f}", f"{its / mine:.1f}"])
    return rows, numbers


def many(quick: bool, peer: bool) -> tuple[list[list[str]], dict[str, Any]]:
    """A batch of motions in one call, beside a loop over them."""
    file = packaged("example-robot-data", "ur5_robot.urdf")
    batch, steps = (4, 20) if quick else (_BATCH, _STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case.of(_without_rotors(kf.load(file)), steps, batch)
    runs: dict[str, Callable[[], object]] = {"batch": lambda: case.smoothed(False)}
    if peer:
        singles = [
            Case(case.system, case.model, case.q0, case.tau, case.y[i : i + 1], case.start[i : i + 1])
            for i in range(batch)
        ]
        others = [ByCrocoddyl(single, file, False) for single in singles]
        others[0].expect_the_same()

        def loop() -> None:
            for other in others:
                other.solve()

        runs["Crocoddyl"] = loop
    took = race(runs, 0.05 if quick else 6.0)
    theirs = took.get("Crocoddyl", float("nan"))
    row = [
        f"UR5, {batch} motions of {steps} steps", "to the mode", f"{1e3 * took['batch']:.2f}", f"{1e3 * theirs:.2f}",
        f"{theirs / took['batch']:.1f}",
    ]  # fmt: skip
    return [row], {"batch": took}


def following(quick: bool) -> tuple[list[list[str]], dict[str, Any]]:
    """One reading at a time, lag 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case.of(kf.load(packaged("example-robot-data", "ur5_robot.urdf")), 50)
    nv, runs = case.system.nv, {}
    for kind in ("extended", "unscented"):
        live = kf.OnlineFilter(case.model, prior=(case.q0, np.zeros(nv), np.full(2 * nv, 1e-4)), kind=kind)

        def steps(live: Any = live) -> None:
            for _ in range(100):
                live.step(case.y[0, 0], case.tau[0])

        runs[kind] = steps
    took = race(runs, 0.05 if quick else 4.0)
    return [["UR5, online", f"{kind}, a step", f"{10 * t:.4f}", "", ""] for kind, t in took.items()], {"online": took}


def _without_rotors(system: kf.System) -> kf.System:
    from kfdyn.multibody.parts.armature import with_armature

    return with_armature(system, np.zeros(system.nv))


def run(quick: bool = False) -> Report:
    try:
        import crocoddyl  # noqa: F401

        peer = True
    except ImportError:
        peer = False
    with alone():
        parts = [smoothing(quick, peer), many(quick, peer), following(quick)]
    rows = [row for part, _ in parts for row in part]
    numbers = {name: value for _, found in parts for name, value in found.items()}
    return Report(
        "motions",
        "Motions of robots smoothed and followed, beside Crocoddyl",
        ["motion", "what", "ms", "Crocoddyl, ms", "ratio"],
        rows,
        environment(["kfdyn", "numpy", "llvmlite", "crocoddyl", "pin"]),
        [
            "Processor time, one thread. Encoders with an error of 1 mrad, random torques, a first state that is "
            "known; both start at the true states and find the same optimum, which is checked first.",
            "An iteration is a linearisation, a filter, a smoother and a line search; of Crocoddyl, which has no "
            "covariances, its time to convergence by its number of iterations. "
            "Ours to the mode has the engine's filter and smoother at the end besides.",
            *([] if peer else ["crocoddyl is not installed; it needs a place of its own, beside pin 4.0."]),
        ],
        {"seconds": numbers},
        words=2,
    )
