"""Energies and Jacobians beside Pinocchio's, and what no peer has beside the generic engine on the same model."""

import numpy as np

import kfdyn as kf
from benchmarks.dynamics_peers import Peer, Run, to_ours
from benchmarks.robots import Robot, States

#: Calls that Pinocchio has too.
READINGS = ("kinetic energy", "potential energy", "Jacobian")

#: Calls that Pinocchio has, analytically, for one state; a state's answer is as large as three mass matrices.
DERIVATIVES = ("forward dynamics derivatives", "inverse dynamics derivatives")

#: Calls that are timed beside the generic engine.
OF_ENGINE = ("hybrid dynamics", "operational space compliance")


def kfdyn_readings(robot: Robot, s: States) -> dict[str, Peer]:
    system, frame = robot.system, deepest(robot.system)
    runs: dict[str, Run] = {
        "kinetic energy": lambda: kf.kinetic_energy(system, s.q, s.v),
        "potential energy": lambda: kf.potential_energy(system, s.q),
        "Jacobian": lambda: kf.jacobian(system, s.q, frame),
    }
    return {call: Peer(run, np.asarray(run())[0]) for call, run in runs.items()}


def pinocchio_readings(robot: Robot, s: States) -> dict[str, Peer]:
    """One call a state, as a Python user makes them."""
    import pinocchio as pin

    model, data = robot.pinocchio, robot.pinocchio.createData()
    there = kf.to_pinocchio(robot.system, model, s.q, s.v)
    q, v = list(there.q), list(there.v)
    frame, axes = model.getFrameId(deepest(robot.system)), pin.LOCAL_WORLD_ALIGNED

    def kinetic() -> None:
        for x, y in zip(q, v):
            pin.computeKineticEnergy(model, data, x, y)

    def potential() -> None:
        for x in q:
            pin.computePotentialEnergy(model, data, x)

    def jacobian() -> None:
        for x in q:
            pin.computeFrameJacobian(model, data, x, frame, axes)

    linear_first = pin.computeFrameJacobian(model, data, q[0], frame, axes) @ to_ours(robot, s)
    first = (
        np.array(pin.computeKineticEnergy(model, data, q[0], v[0])),
        np.array(pin.computePotentialEnergy(model, data, q[0])),
        np.concatenate([linear_first[3:], linear_first[:3]]),
    )
    return {call: Peer(*pair) for call, *pair in zip(READINGS, (kinetic, potential, jacobian), first)}


def kfdyn_derivatives(robot: Robot, s: States, system: kf.System | None = None) -> dict[str, Peer]:
    """Of the robot, or of another system that is to be the same."""
    own = robot.system if system is None else system
    room = np.empty((3, len(s.q), own.nv, own.nv))
    runs: dict[str, Run] = {
        DERIVATIVES[0]: lambda: kf.forward_dynamics_derivatives(own, s.q, s.v, s.tau, out=room),
        DERIVATIVES[1]: lambda: kf.inverse_dynamics_derivatives(own, s.q, s.v, s.a, out=room),
    }
    return {call: Peer(run, np.array(run()[0][0])) for call, run in runs.items()}


def pinocchio_derivatives(robot: Robot, s: States) -> dict[str, Peer]:
    """One call a state, as a Python user makes them; of the third matrix only the upper half is filled."""
    import pinocchio as pin

    model, data = robot.pinocchio, robot.pinocchio.createData()
    there = kf.to_pinocchio(robot.system, model, *s)
    q, v, a, tau = (list(x) for x in (there.q, there.v, there.a, there.tau))

    def forward() -> None:
        for x in zip(q, v, tau):
            pin.computeABADerivatives(model, data, *x)

    def inverse() -> None:
        for x in zip(q, v, a):
            pin.computeRNEADerivatives(model, data, *x)

    back = to_ours(robot, s)
    first = (
        np.linalg.inv(back) @ pin.computeABADerivatives(model, data, q[0], v[0], tau[0])[0] @ back,
        back.T @ pin.computeRNEADerivatives(model, data, q[0], v[0], a[0])[0] @ back,
    )
    return {call: Peer(*pair) for call, *pair in zip(DERIVATIVES, (forward, inverse), first)}


def kfdyn_without_peer(robot: Robot, s: States) -> dict[str, Peer]:
    """Hybrid dynamics with every third dof prescribed, and the compliance of the frame that is farthest out."""
    system, frame, mask = robot.system, deepest(robot.system), every_third(robot.system)
    runs: dict[str, Run] = {
        "hybrid dynamics": lambda: kf.hybrid_dynamics(system, s.q, s.v, s.tau, s.a, mask)[1],
        "operational space compliance": lambda: kf.operational_space_compliance(system, s.q, frame),
    }
    return {call: Peer(run, np.asarray(run())[0]) for call, run in runs.items()}


def engine_calls(robot: Robot, s: States) -> dict[str, Peer]:
    """The same by filter and smoother on the assembled model: what kfdyn does where its fused sweeps have no answer."""
    from kfdyn.dynamics import hybrid, operational_space
    from kfdyn.dynamics.solving import forest

    system, mask = robot.system, every_third(robot.system)
    bodies = np.array([system.locate(deepest(system))[0]])
    given = {"tau": np.where(mask, 0.0, s.tau), "a": np.where(mask, s.a, 0.0)}

    def solve() -> np.ndarray:
        _, a = hybrid._by_engine(forest.States.of(system, s.q, s.v, **given), mask).values()
        return a

    def comply() -> np.ndarray:
        (Omega,) = operational_space._by_engine(forest.States.of(system, s.q), bodies, np.zeros((1, 3))).values()
        return Omega

    return {call: Peer(run, run()[0]) for call, run in zip(OF_ENGINE, (solve, comply))}


def every_third(system: kf.System) -> np.ndarray:
    return np.arange(system.nv) % 3 == 0


def deepest(system: kf.System) -> str:
    """Name of the body with most bodies between it and the world, the first of them."""
    depth = np.zeros(system.n_bodies, dtype=int)
    for k in system.layout.order:
        depth[k] = 1 + depth[system.parent[k]] if system.parent[k] >= 0 else 0
    return system.body_names[int(depth.argmax())]
