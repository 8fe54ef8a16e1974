"""The four calls of dynamics as each library offers them, on the same states: what is timed, and what it answers.

A run is a function without arguments that does all states. To the benefit of the peers their rows are cut and their
coordinates converted beforehand, and loops do not keep the results, while kfdyn returns all of them in a new array.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

import kfdyn as kf
from benchmarks.robots import Robot, States

CALLS = ("forward dynamics", "inverse dynamics", "mass matrix", "inverse mass matrix")
Run = Callable[[], object]


class Peer(NamedTuple):
    """``run`` does all states; ``first`` is its answer to the first of them, in our coordinates."""

    run: Run
    first: np.ndarray


def kfdyn_calls(robot: Robot, s: States, system: kf.System | None = None) -> dict[str, Peer]:
    """Of the robot, or of another system that is to be the same."""
    system = robot.system if system is None else system
    room = np.empty((len(s.q), system.nv, system.nv))  # as a loop over batches has it; the peers write to theirs too
    runs: dict[str, Run] = {
        "forward dynamics": lambda: kf.forward_dynamics(system, s.q, s.v, s.tau),
        "inverse dynamics": lambda: kf.inverse_dynamics(system, s.q, s.v, s.a),
        "mass matrix": lambda: kf.mass_matrix(system, s.q, out=room),
        "inverse mass matrix": lambda: kf.mass_matrix_inverse(system, s.q, out=room),
    }
    return {call: Peer(run, np.array(run()[0])) for call, run in runs.items()}


def pinocchio_calls(robot: Robot, s: States) -> dict[str, Peer]:
    """One call a state, as a Python user makes them; of a mass matrix only the upper half is filled."""
    import pinocchio as pin

    model, data = robot.pinocchio, robot.pinocchio.createData()
    there = kf.to_pinocchio(robot.system, model, *s)
    rows = [list(x) for x in (there.q, there.v, there.a, there.tau)]
    q, v, a, tau = rows

    def forward() -> None:
        for x in zip(q, v, tau):
            pin.aba(model, data, *x)

    def inverse() -> None:
        for x in zip(q, v, a):
            pin.rnea(model, data, *x)

    def mass_matrix() -> None:
        for x in q:
            pin.crba(model, data, x)

    def inverse_mass_matrix() -> None:
        for x in q:
            pin.computeMinverse(model, data, x)

    back = to_ours(robot, s)
    first = {
        "forward dynamics": kf.from_pinocchio(
            robot.system, model, q[0], v[0], np.array(pin.aba(model, data, q[0], v[0], tau[0]))
        ).a,
        "inverse dynamics": kf.from_pinocchio(
            robot.system, model, q[0], v[0], a[0], np.array(pin.rnea(model, data, q[0], v[0], a[0]))
        ).tau,
        "mass matrix": back.T @ symmetric(pin.crba(model, data, q[0])) @ back,
        "inverse mass matrix": np.linalg.inv(back)
        @ symmetric(pin.computeMinverse(model, data, q[0]))
        @ np.linalg.inv(back).T,
    }
    runs = dict(zip(CALLS, (forward, inverse, mass_matrix, inverse_mass_matrix)))
    return {call: Peer(runs[call], first[call]) for call in CALLS}


def pinocchio_batches(robot: Robot, s: States) -> dict[str, Peer]:
    """Pinocchio's own batches, in one thread; it has them for two of the calls."""
    import pinocchio as pin

    model = robot.pinocchio
    pool = pin.ModelPool(model, 1)
    there = kf.to_pinocchio(robot.system, model, *s)
    q, v, a, tau = (np.asfortranarray(x.T) for x in (there.q, there.v, there.a, there.tau))
    out = np.asfortranarray(np.zeros_like(v))

    def forward() -> None:
        pin.abaInParallel(1, pool, q, v, tau, out)

    def inverse() -> None:
        pin.rneaInParallel(1, pool, q, v, a, out)

    forward()
    a_first = kf.from_pinocchio(robot.system, model, q[:, 0], v[:, 0], out[:, 0]).a
    inverse()
    tau_first = kf.from_pinocchio(robot.system, model, q[:, 0], v[:, 0], a[:, 0], out[:, 0]).tau
    return {"forward dynamics": Peer(forward, a_first), "inverse dynamics": Peer(inverse, tau_first)}


def mujoco_calls(robot: Robot, s: States) -> dict[str, Peer]:
    """The stages that each call needs and no more, one state after the other from Python."""
    if robot.mujoco is None:
        return {}
    import mujoco as mj

    model, data = robot.mujoco, mj.MjData(robot.mujoco)
    there = kf.to_mujoco(robot.system, model, *s)
    q, v, a, tau = (list(x) for x in (there.q, there.v, there.a, there.tau))
    eye, full, force = np.eye(model.nv), np.empty((model.nv, model.nv)), np.empty(model.nv)

    def place(x: np.ndarray) -> None:
        data.qpos[:] = x
        mj.mj_kinematics(model, data)
        mj.mj_comPos(model, data)

    def forward() -> None:
        for x, y, z in zip(q, v, tau):
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = x, y, z
            mj.mj_forwardSkip(model, data, mj.mjtStage.mjSTAGE_NONE, 1)

    def inverse() -> None:
        for x, y, z in zip(q, v, a):
            data.qvel[:], data.qacc[:] = y, z
            place(x)
            mj.mj_comVel(model, data)
            mj.mj_rne(model, data, 1, force)

    def mass_matrix() -> None:
        for x in q:
            place(x)
            mj.mj_makeM(model, data)
            full_matrix(mj, model, data, full)

    def inverse_mass_matrix() -> None:
        for x in q:
            place(x)
            mj.mj_makeM(model, data)
            mj.mj_factorM(model, data)
            mj.mj_solveM(model, data, full, eye)

    back = to_ours(robot, s, "mujoco")
    first = {}
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[0], v[0], tau[0]
    mj.mj_forwardSkip(model, data, mj.mjtStage.mjSTAGE_NONE, 1)
    first["forward dynamics"] = kf.from_mujoco(robot.system, model, q[0], v[0], data.qacc.copy()).a
    data.qacc[:] = a[0]
    mj.mj_rne(model, data, 1, force)
    force += model.dof_armature * a[0]  # mj_rne leaves the rotors out
    first["inverse dynamics"] = kf.from_mujoco(robot.system, model, q[0], v[0], a[0], force.copy()).tau
    full_matrix(mj, model, data, full)
    first["mass matrix"] = back.T @ full @ back
    mj.mj_solveM(model, data, full, eye)
    first["inverse mass matrix"] = np.linalg.inv(back) @ full @ np.linalg.inv(back).T
    runs = dict(zip(CALLS, (forward, inverse, mass_matrix, inverse_mass_matrix)))
    return {call: Peer(runs[call], first[call]) for call in CALLS}


def mujoco_rollout(robot: Robot, s: States) -> dict[str, Peer]:
    """MuJoCo's batches: one step of each state in one thread, forces applied; forward dynamics and little else."""
    if robot.mujoco is None:
        return {}
    import mujoco as mj
    from mujoco import rollout

    model, data = robot.mujoco, mj.MjData(robot.mujoco)
    there = kf.to_mujoco(robot.system, model, *s)
    spec = mj.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros((len(s.q), mj.mj_stateSize(model, spec)))
    start[:, 1 : 1 + model.nq + model.nv] = np.concatenate([there.q, there.v], 1)
    applied = int(mj.mjtState.mjSTATE_QFRC_APPLIED)
    control = np.ascontiguousarray(there.tau[:, None])
    state, sensors = np.empty((len(s.q), 1, start.shape[1])), np.empty((len(s.q), 1, model.nsensordata))

    def run() -> None:
        rollout.rollout(model, [data], start, control, control_spec=applied, state=state, sensordata=sensors)

    run()
    qacc = (state[0, 0, 1 + model.nq : 1 + model.nq + model.nv] - there.v[0]) / model.opt.timestep
    return {"forward dynamics": Peer(run, kf.from_mujoco(robot.system, model, there.q[0], there.v[0], qacc).a)}


def mjx_batches(robot: Robot, s: States) -> dict[str, Peer]:
    """MuJoCo in JAX, compiled for the batch, where it is installed."""
    if robot.mujoco is None or not find_spec("jax") or not find_spec("mujoco.mjx"):
        return {}
    import jax
    from mujoco import mjx

    jax.config.update("jax_enable_x64", True)
    model, device = robot.mujoco, jax.devices("cpu")[0]
    there = kf.to_mujoco(robot.system, model, *s)
    with jax.default_device(device):
        on_device = mjx.put_model(model)
        blank = mjx.make_data(on_device)
        forward = jax.jit(
            jax.vmap(lambda q, v, tau: mjx.forward(on_device, blank.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc)
        )
        given = [jax.device_put(x, device) for x in (there.q, there.v, there.tau)]
        qacc = np.asarray(forward(*given))[0]
    first = kf.from_mujoco(robot.system, model, there.q[0], there.v[0], qacc).a
    return {"forward dynamics": Peer(lambda: forward(*given).block_until_ready(), first)}


def full_matrix(mj, model, data, out) -> None:
    """𝓜 dense; the call has changed its arguments over the versions."""
    try:
        mj.mj_fullM(model, data, out)
    except TypeError:
        mj.mj_fullM(model, out, data.qM)


def to_ours(robot: Robot, s: States, library: str = "pinocchio") -> np.ndarray:
    """A with v_there = A v: the other library's velocities of our unit velocities, at the first configuration."""
    nv = robot.system.nv
    model = robot.pinocchio if library == "pinocchio" else robot.mujoco
    convert = kf.to_pinocchio if library == "pinocchio" else kf.to_mujoco
    return convert(robot.system, model, np.tile(s.q[0], (nv, 1)), np.eye(nv)).v.T


def symmetric(upper: np.ndarray) -> np.ndarray:
    """Both sides of a matrix of which the upper is filled."""
    return np.triu(upper) + np.triu(upper, 1).T
