"""Robots identified from their logs, beside ``mujoco.sysid`` on the same logs: errors, intervals, time.

Arms swing under feedback and random forces, by MuJoCo's steps. The peer rolls windows of a log out by finite
differences; it is given the true state where each window begins, which no log holds.
"""

import contextlib
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import kfdyn as kf
from benchmarks.report import Report, seconds
from benchmarks.robots import packaged
from benchmarks.timing import environment
from kfdyn.motion import inertial_parameters
from kfdyn.multibody.system import rebuilt
from kfdyn.spatial import spatial_inertia
from kfdyn.sweeps import alone

_DT, _ENCODER = 0.01, 1e-4
_WINDOWS = (100, 25, 10)  # steps of the peer's windows, the first that it can roll out; 100 suits it best on the UR5


@dataclass
class Case:
    """A robot, the body that carries what its file does not know of, and where it swings from."""

    name: str
    system: kf.System
    body: str
    q0: np.ndarray
    steps: int
    logs: int

    def __post_init__(self) -> None:
        """The truth and the guess: a kilogram that hangs on the body, and dampers a third of what they are."""
        system = self.system
        size = np.diagonal(kf.mass_matrix(system, self.q0))
        damping = np.maximum(0.3 * np.sqrt(size), 0.1)
        held = spatial_inertia(1.0, [0.02, 0.1, 0.03], 1e-3 * np.eye(3))
        self.truth, self.guess = self._with(held, damping), self._with(np.zeros((6, 6)), damping / 3.0)
        self.noise = np.full(system.nv, 0.05)
        self.names = [f"{self.body}/inertia", *(f"{name}/damping" for name in system.hinge_names)]
        ten = inertial_parameters(self.truth)[system.body_names.index(self.body)]
        self.true = np.concatenate([ten, damping])

    def _with(self, held: np.ndarray, damping: np.ndarray) -> kf.System:
        system, bodies = self.system, []
        for body in system.bodies:
            inertia = body.inertia + held if body.name == self.body else body.inertia
            bodies.append(replace(body, inertia=inertia, damping=damping[system.v_slice(body.hinge_name)]))
        return rebuilt(tuple(bodies), system.gravity, {}, system.name, "warn")

    def model(self, system: kf.System) -> kf.MotionModel:
        """Encoders and ordered torques."""
        sensors = [kf.sensors.JointPosition(_ENCODER**2, name="encoders")]
        return kf.MotionModel(system, _DT, sensors, self.noise, damping=True, method="implicit")

    def log(self, seed: int) -> "Log":
        """Swing the robot by feedback."""
        rng, model, nq, n = np.random.default_rng(seed), self.model(self.truth), self.system.nq, self.system.nv
        rate, phase = 2.0 + 0.37 * np.arange(n), rng.uniform(0, 2 * np.pi, n)
        x, tau = np.zeros((self.steps, nq + self.system.nv)), np.zeros((self.steps, self.system.nv))
        x[0, :nq] = self.q0
        step = by_mujoco(self.truth)
        for k in range(self.steps):
            q, v, s = x[k, :nq], x[k, nq:], rate * _DT * k + phase
            away = self.q0 + 0.5 * (np.sin(s) - np.sin(phase)) - q
            tau[k] = kf.inverse_dynamics(self.truth, q, v, 40.0 * away + 12.0 * (0.5 * rate * np.cos(s) - v))
            if k + 1 < self.steps:
                x[k + 1] = step(x[k], tau[k] + np.sqrt(self.noise) * rng.normal(size=self.noise.size))
        y = model.read(x, np.zeros((self.steps, model.p)), tau, np.arange(self.steps))
        y = model.seen.points.plus(y, np.sqrt(np.diag(model.R)) * rng.normal(size=(self.steps, len(model.R))))
        return Log(self, x, tau, [y[:, own] for own in model.seen.points_of])


class Outcome(NamedTuple):
    """Numbers of one log, 1 where an interval of 95 % has the truth (NaN without one), seconds, and the method."""

    params: np.ndarray
    covered: np.ndarray
    seconds: float
    by: str


@dataclass
class Log:
    """A run and what its sensors read, for both."""

    case: Case
    x: np.ndarray
    tau: np.ndarray
    seen: list[np.ndarray]

    def ours(self) -> tuple[Outcome, np.ndarray]:
        """kf.identify, noise levels known; and its standard errors."""
        case, model = self.case, self.case.model(self.case.guess)
        begun = time.process_time()
        found = kf.identify(model, self.seen, self.tau[:-1], case.names)
        took = time.process_time() - begun
        assert found.converged, found.message
        low, high = found.conf_int().T
        covered = np.where(np.isnan(low), np.nan, (low <= case.true) & (case.true <= high))
        return Outcome(found.params, covered, took, "kf.identify"), found.stderr

    def theirs(self) -> Outcome:
        """The peer's numbers, by the longest windows that it can roll out from the guess."""
        for window in _WINDOWS[:-1]:
            try:
                return self._theirs(window)
            except ValueError:  # "times must be strictly increasing": MuJoCo has begun anew, after numbers without end
                pass
        return self._theirs(_WINDOWS[-1])

    def _theirs(self, window: int) -> Outcome:
        """Its intervals are of its own free numbers."""
        from mujoco import sysid
        from mujoco.sysid._src.model_modifier import pi_from_theta

        case, spec, truth = self.case, spec_of(self.case.guess), spec_of(self.case.truth)
        model, params, nq = spec.compile(), sysid.ParameterDict(), case.system.nq
        pseudo = sysid.InertiaType.Pseudo
        params.add(sysid.body_inertia_param(
            spec, model, case.body, pseudo, mass_bound_mult=np.array([0.05, 20.0]),
            stretch_bound_mult=np.array([1e-3, 1e3]), shear_bound_off=np.array([-5.0, 5.0]),
            modifier=_inertia(case.body),
        ))  # fmt: skip
        for name in case.system.hinge_names:
            first = float(case.guess.damping[case.system.v_slice(name)][0])
            params.add(sysid.Parameter(f"{name}/damping", first, 0.0, 20.0 * first, modifier=_damper(name)))
        starts = range(0, len(self.x) - 1, window)
        parts = [slice(k, min(k + window + 1, len(self.x))) for k in starts]
        times = [_DT * np.arange(part.stop - part.start) for part in parts]
        sequences = sysid.ModelSequences(
            case.name, spec, [str(k) for k in starts],
            [sysid.create_initial_state(model, self.x[k, :nq], self.x[k, nq:]) for k in starts],
            [sysid.TimeSeries.from_control_names(t, self.tau[own], model) for t, own in zip(times, parts)],
            [sysid.TimeSeries.from_names(t, self.seen[0][own], model) for t, own in zip(times, parts)],
        )  # fmt: skip
        residual = sysid.build_residual_fn(models_sequences=[sequences], n_threads=1, resample_true=False)
        begun = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            found, result = sysid.optimize(params, residual, optimizer="scipy_parallel_fd", verbose=False)
        took = time.process_time() - begun
        z, half = found.as_vector(), sysid.calculate_intervals([result.fun], result.jac)[1]
        first = sysid.body_inertia_param(truth, truth.compile(), case.body, pseudo).as_vector()
        flat = pi_from_theta(z[:10])
        ten = np.concatenate([flat[:4], flat[4:][[0, 1, 4, 2, 5, 8]]])
        covered = np.abs(z - np.concatenate([first, case.true[10:]])) <= half
        covered = np.where(np.isfinite(half), covered, np.nan)
        return Outcome(np.concatenate([ten, z[10:]]), covered, took, f"mujoco.sysid, windows of {window}")


def _inertia(body: str) -> Callable[[Any, Any], None]:
    def modify(spec: Any, param: Any) -> None:
        from mujoco import sysid

        sysid.apply_body_inertia(spec, body, param)
        spec.body(body).iquat = [1.0, 0.0, 0.0, 0.0]  # left as NaN, which a robot from a URDF does not compile with

    return modify


def _damper(name: str) -> Callable[[Any, Any], None]:
    def modify(spec: Any, param: Any) -> None:
        value = float(param.value[0])
        spec.joint(name).damping = [value, 0.0, 0.0] if np.ndim(spec.joint(name).damping) else value

    return modify


def spec_of(system: kf.System) -> Any:
    """The robot for MuJoCo: motors and encoders at its hinges, no contacts."""
    import mujoco

    spec = mujoco.MjSpec.from_string(kf.save_urdf(system))
    spec.option.timestep, spec.option.integrator = _DT, mujoco.mjtIntegrator.mjINT_EULER
    spec.option.gravity = system.gravity
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS"):
        spec.option.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    for joint in spec.joints:
        motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.set_to_motor()
        spec.add_sensor(
            name=f"{joint.name} encoder", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objname=joint.name,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
        )  # fmt: skip
    return spec


def by_mujoco(system: kf.System) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A step of MuJoCo, implicit in damping as the model is."""
    import mujoco

    robot = spec_of(system).compile()
    data, nq = mujoco.MjData(robot), system.nq

    def step(x: np.ndarray, force: np.ndarray) -> np.ndarray:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = x[:nq], x[nq:], force
        mujoco.mj_step(robot, data)
        return np.concatenate([data.qpos, data.qvel])

    return step


def cases(quick: bool) -> list[Case]:
    """An arm, and a humanoid's."""
    steps, logs = (200, 1) if quick else (1500, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a file says and dynamics does not use
        ur5 = kf.load(packaged("example-robot-data", "ur5_robot.urdf"))
        talos = kf.load(packaged("example-robot-data", "talos_full_v2.urdf"), mimic="free")
    q0 = np.array([0.0, -1.2, 1.4, -0.8, 0.5, 0.0])
    found = [Case("UR5", ur5, "wrist_3_link", q0, steps, logs)]
    if quick:
        return found
    bodies = [body for body in talos.bodies if body.hinge_name.startswith("arm_left_")]
    arm = kf.System([replace(bodies[0], parent=None), *bodies[1:]], name="TALOS' left arm")
    q0 = np.array([0.3, 0.4, 0.2, -1.2, 0.1, 0.1, 0.1])
    found.append(Case(arm.name, arm, arm.body_names[-1], q0, steps, logs))
    return found


def peer() -> bool:
    """Whether mujoco.sysid is there, with what it asks for."""
    try:
        from mujoco.sysid import ParameterDict
    except ImportError:
        return False
    return ParameterDict is not None


def run(quick: bool) -> Report:
    """Identify all logs, on one thread."""
    rows, numbers = [], {}
    with alone(), threadpool_limits(1):
        for case in cases(quick):
            logs = [case.log(seed) for seed in range(case.logs)]
            logs[0].ours()  # compiles
            ours = [log.ours() for log in logs]
            found = [[outcome for outcome, _ in ours]]
            if peer():
                found.append([log.theirs() for log in logs[:2]])
            least = min(one.seconds for one in found[0])
            for outcomes in found:
                name = outcomes[-1].by
                errors = np.array([(one.params - case.true) / error for one, (_, error) in zip(outcomes, ours)])
                given = np.array([one.covered for one in outcomes])
                size, covered, none = np.nanmean(np.abs(errors)), np.nanmean(given), int(np.isnan(given).sum())
                took = min(one.seconds for one in outcomes)
                row = [case.name, name, f"{len(case.true)} × {case.steps:,}", str(len(outcomes)), f"{size:.2g}"]
                row += [f"{covered:.0%} of {np.isfinite(given).sum()}", str(none), seconds(took), f"{took / least:.2g}"]
                rows.append(row)
                numbers[f"{case.name}, {name}"] = {
                    "error": float(size), "covered": float(covered), "without": none, "seconds": took,
                }  # fmt: skip
    return Report(
        "identification",
        "Robots identified from their logs",
        [
            "robot",
            "by",
            "numbers × steps",
            "logs",
            "mean error",
            "covered",
            "without",
            "shortest time",
            "times as long",
        ],
        rows,
        environment(["kfdyn", "numpy", "mujoco"]),
        [
            "Ten numbers of the inertia of the last body, which carries a kilogram that its file knows nothing of, and "
            "a damper for each hinge, from encoders of 1e-4 rad and ordered torques; random forces act "
            "beside these. MuJoCo moves the arms.",
            "Mean error: of absolute values, in standard errors of kf.identify; 0.8 is to be expected. Covered: "
            "intervals of 95 % that hold the truth, of those that are given; without: numbers for which none is.",
            "mujoco.sysid rolls out windows of a log and is given the true state where each begins. Its windows are "
            f"the longest of {', '.join(map(str, _WINDOWS))} steps that MuJoCo can roll out from the guess: an arm "
            "whose hand is a kilogram too light is thrown about by the torques, and a rollout that diverges ends "
            "the peer's search with an error.",
            "One thread; processor time.",
        ],
        {"robots": numbers},
        words=2,
    )
