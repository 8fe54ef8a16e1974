"""Ask Pinocchio or MuJoCo for the inverse mass matrix of the robot's own file."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.tolerance.natural_units import inverse as invert
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import ModelError
from kfdyn.io import State, save_urdf, to_mujoco, to_pinocchio
from kfdyn.io.mjcf.load_mjcf import compile_mjcf
from kfdyn.io.source import Source
from kfdyn.multibody import Origin, System
from kfdyn.multibody.kinds import expect_rigid


class Answer(NamedTuple):
    """𝓜⁻¹, (nv, nv) in our coordinates, as ``peer`` finds it in ``source``."""

    peer: str
    source: str
    inverse: Array


def ask_peers(system: System, q: Array) -> tuple[list[Answer], list[str]]:
    """Ask Pinocchio and MuJoCo for 𝓜⁻¹; also return who could not be asked, and why.

    Each reads the file that the system came from, so that an error in reading it is seen as well: Pinocchio URDF,
    MuJoCo MJCF. A system that was built here is written as URDF for Pinocchio, if URDF can say what it is.

    Parameters
    ----------
    system : System
        The robot.
    q : (nq,)
        Its configuration.

    Returns
    -------
    answers : list of Answer
    unasked : list of str
        Why a peer that is installed was not asked about a file it should know.
    """
    origin = system.origin
    name, ask = ("MuJoCo", _mujoco) if origin is not None and origin.format == "mjcf" else ("Pinocchio", _pinocchio)
    if find_spec(name.lower()) is None or not system.nv:
        return [], []
    if name == "Pinocchio" and (light := _too_light(system)):
        return [], [f"{name} was not asked: {light}"]
    if origin is None:
        try:
            expect_rigid(system, name)
            return [Answer(name, "URDF written here", ask(system, q, None))], []
        except ModelError:  # what URDF cannot say
            return [], []
    try:
        return [Answer(name, "its text" if origin.path is None else origin.path.name, ask(system, q, origin))], []
    except (ValueError, RuntimeError) as error:  # of their readers, or of coordinates that do not correspond
        return [], [f"{name} was not asked: {error}"]


def _too_light(system: System) -> str:
    """Name the branch that Pinocchio gets wrong: adding inertias, it divides by the mass or ε, whichever is more."""
    tree, floor = system.open_tree, float(np.finfo(float).eps)
    mass = np.array([body.inertia[5, 5] for body in tree.bodies])
    for k in tree.layout.order[::-1]:
        if tree.parent[k] >= 0:
            mass[tree.parent[k]] += mass[k]
    for name, carried in zip(tree.body_names, mass):
        if 0 < carried < floor:
            return f"it computes with masses of {floor:.1e} at least, and {name!r} carries {carried:.1e}"
    return ""


def _pinocchio(system: System, q: Array, origin: Origin | None) -> Array:
    """Return the inverse of Pinocchio's 𝓜, with the rotors added, which URDF does not have."""
    import pinocchio as pin

    tree = system.open_tree
    if origin is None:
        model = pin.buildModelFromXML(save_urdf(tree))
    else:
        base, file = ([pin.JointModelFreeFlyer()] if origin.floating_base else []), origin.file()
        if file is not None:
            model = pin.buildModelFromUrdf(str(file), *base)
        else:
            model = pin.buildModelFromXML(origin.data.decode(), *base)
    upper = np.triu(pin.crba(model, model.createData(), to_pinocchio(tree, model, system.expand(q)).q))
    v = _unit_velocities(to_pinocchio, model, system, q)
    return _in_outputs(system, q, v @ (upper + np.triu(upper, 1).T) @ v.T + np.diag(tree.armature))


def _mujoco(system: System, q: Array, origin: Origin | None) -> Array:
    import mujoco

    assert origin is not None
    model, *_ = compile_mjcf(Source("MJCF", origin.data, origin.file(), None))  # as the reader did
    data, matrix = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    data.qpos[:] = to_mujoco(system.open_tree, model, system.expand(q)).q
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    (mujoco.mj_makeM if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb)(model, data)
    v = _unit_velocities(to_mujoco, model, system, q)
    # not its solve: the open tree's 𝓜 may be singular, as that of knees whose slides have no mass of their own
    for row, unit in zip(matrix, np.eye(model.nv)):
        mujoco.mj_mulM(model, data, row, unit)
    return _in_outputs(system, q, v @ matrix @ v.T)


def _unit_velocities(convert: Any, model: Any, system: System, q: Array) -> Array:
    """Return each unit velocity of the open tree in the peer's coordinates, a row each."""
    tree, q_tree = system.open_tree, system.expand(q)
    state: State = convert(tree, model, np.tile(q_tree, (tree.nv, 1)), np.eye(tree.nv))
    assert state.v is not None
    return state.v


def of_outputs(system: System, q: Any, matrix: Array) -> Array:
    """Return X*𝓜X of the outputs of ``as_estimation(system, q)``, from 𝓜 without couplings and loops."""
    rates = own_way(system, "output_rates")
    if rates is None:
        return matrix
    X = rates(system, q)
    return np.asarray(X.T @ matrix @ X)


def _in_outputs(system: System, q: Array, matrix: Array) -> Array:
    """Return (X*𝓜X)⁻¹ of the 𝓜 of the open tree, the only one a peer knows."""
    return invert(of_outputs(system, q, matrix))
