"""The calls people make in loops: one state, one thread, one call after the other from Python, beside Pinocchio's."""

from collections.abc import Callable

import numpy as np

import kfdyn as kf
from benchmarks.more_calls import deepest
from benchmarks.report import Report
from benchmarks.robots import ARMS, HUMANOIDS, Robot, robot, states
from benchmarks.timing import environment, race
from kfdyn.sweeps import alone

Calls = dict[str, Callable[[], object]]
_LOOP = 100
_STEPS = 200


def pairs(bot: Robot) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Each call as kfdyn and as Pinocchio have it, on one state; Pinocchio's pose is of all frames."""
    import pinocchio as pin

    system, model = bot.system, bot.pinocchio
    data, s = model.createData(), states(system, 1)
    q, v, a, tau = (x[0] for x in s)
    there = kf.to_pinocchio(system, model, *s)
    Q, V, A, T = (np.array(x[0]) for x in (there.q, there.v, there.a, there.tau))
    tip = deepest(system)
    frame, axes = model.getFrameId(tip), pin.LOCAL_WORLD_ALIGNED
    return {
        "forward dynamics": (lambda: kf.forward_dynamics(system, q, v, tau), lambda: pin.aba(model, data, Q, V, T)),
        "inverse dynamics": (lambda: kf.inverse_dynamics(system, q, v, a), lambda: pin.rnea(model, data, Q, V, A)),
        "bias forces": (lambda: kf.bias_forces(system, q, v), lambda: pin.nonLinearEffects(model, data, Q, V)),
        "mass matrix": (lambda: kf.mass_matrix(system, q), lambda: pin.crba(model, data, Q)),
        "inverse mass matrix": (
            lambda: kf.mass_matrix_inverse(system, q),
            lambda: pin.computeMinverse(model, data, Q),
        ),
        "Jacobian": (
            lambda: kf.jacobian(system, q, tip),
            lambda: pin.computeFrameJacobian(model, data, Q, frame, axes),
        ),
        "kinetic energy": (
            lambda: kf.kinetic_energy(system, q, v),
            lambda: pin.computeKineticEnergy(model, data, Q, V),
        ),
        "potential energy": (
            lambda: kf.potential_energy(system, q),
            lambda: pin.computePotentialEnergy(model, data, Q),
        ),
        "frame pose": (lambda: kf.frame_pose(system, q, tip), lambda: pin.framesForwardKinematics(model, data, Q)),
    }


def loops(bot: Robot) -> Calls:
    """Controllers, and whole motions of so many steps."""
    system, tip = bot.system, deepest(bot.system)
    q, v, a, _ = (x[0] for x in states(system, 1))
    v = 0.1 * v
    t, hold = 1e-4 * np.arange(_STEPS + 1), kf.bias_forces(system, q)
    law = kf.LinearFeedback(system, kp=0.1, kd=1e-3, q=q, tau=hold)  # soft enough for the smallest link
    target, axes = kf.frame_pose(system, q, tip), (3, 4, 5)
    return {
        "Euler step": lambda: kf.simulate(system, q, v, t, hold, method="euler"),
        "Euler step, linear feedback": lambda: kf.simulate(system, q, v, t, law, method="euler"),
        "Euler step, Python's function": lambda: kf.simulate(system, q, v, t, lambda t, q, v: hold, method="euler"),
        "Runge–Kutta step": lambda: kf.simulate(system, q, v, t, hold),
        "Runge–Kutta step, linear feedback": lambda: kf.simulate(system, q, v, t, law),
        "Runge–Kutta step, Python's function": lambda: kf.simulate(system, q, v, t, lambda t, q, v: hold),
        "computed torque": lambda: kf.computed_torque(system, q, v, q, v, a, 100.0, 20.0),
        "operational space control": lambda: kf.operational_space_control(
            system, q, v, tip, target, 100.0, 20.0, axes=axes
        ),
    }


def repeated(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(_LOOP):
            call()

    return run


def run(quick: bool = False) -> Report:
    budget, rows, numbers = 0.02 if quick else 0.4, [], {}
    with alone():
        for name in ["PUMA 560"] if quick else [*ARMS, *HUMANOIDS]:
            bot = robot(name)
            told: dict[str, dict[str, float]] = {}
            for call, both in pairs(bot).items():
                best = race({k: repeated(f) for k, f in zip(("kfdyn", "Pinocchio"), both)}, budget)
                told[call] = {k: 1e6 * t / _LOOP for k, t in best.items()}
            forward = told["forward dynamics"]["kfdyn"]
            for call, one in loops(bot).items():
                steps = _STEPS if "step" in call else 1
                time = race({"kfdyn": repeated(one) if steps == 1 else one}, budget)["kfdyn"]
                told[call] = {"kfdyn": 1e6 * time / (steps if steps > 1 else _LOOP)}
            numbers[name] = told
            for call, t in told.items():
                peer = f"{t['Pinocchio']:.2f}" if "Pinocchio" in t else ""
                ratio = f"{t['Pinocchio'] / t['kfdyn']:.2f}" if "Pinocchio" in t else ""
                rows.append([name, call, f"{t['kfdyn']:.2f}", peer, ratio, f"{t['kfdyn'] / forward:.1f}"])
    return Report(
        "calls",
        "The calls people make in loops: one state, one thread",
        ["robot", "call", "kfdyn, µs", "Pinocchio, µs", "times as fast", "forward dynamics"],
        rows,
        environment(["kfdyn", "numpy", "llvmlite", "pin"]),
        [
            "One call after the other from Python, with its answer in a new array; shortest of many loops of "
            f"{_LOOP}, the libraries taking turns, by the processor's clock. Pinocchio's pose is that of all frames.",
            f"A step is a part of a motion of {_STEPS}, with energies, momenta and torques at every step. The last "
            "column says how many forward dynamics of one state take as long.",
        ],
        {"microseconds": numbers},
        words=2,
    )
