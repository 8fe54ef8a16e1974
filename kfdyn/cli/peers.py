"""The inverse mass matrix as the programs people trust have it, where they are installed and read the same file."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.cli.robots import BUILTIN
from kfdyn.io import State, to_mujoco, to_pinocchio
from kfdyn.io.source import open_source
from kfdyn.multibody import System

Array = NDArray[np.float64]


def ask_peers(file: str, system: System, q: Array, floating_base: bool) -> tuple[dict[str, Array], list[str]]:
    """𝓜⁻¹, (nv, nv) in our coordinates, by the name of each peer; and in words, who was asked in vain.

    Pinocchio reads URDF, MuJoCo MJCF. With v = X v′ between our velocities and theirs, 𝓜⁻¹ = X 𝓜′⁻¹ X*.
    """
    if file.startswith(BUILTIN) or not system.nv:
        return {}, []
    name, ask = ("Pinocchio", _pinocchio) if open_source(file).root().tag == "robot" else ("MuJoCo", _mujoco)
    if find_spec(name.lower()) is None:
        return {}, []
    try:
        return {name: ask(file, system, q, floating_base)}, []
    except (ValueError, RuntimeError) as error:  # of their readers, or of coordinates that do not correspond
        return {}, [f"{name} was not asked: {error}"]


def _pinocchio(file: str, system: System, q: Array, floating_base: bool) -> Array:
    import pinocchio as pin

    model = pin.buildModelFromUrdf(file, *([pin.JointModelFreeFlyer()] if floating_base else []))
    upper = np.triu(pin.computeMinverse(model, model.createData(), to_pinocchio(system, model, q).q))
    return _in_our_velocities(to_pinocchio, model, system, q, upper + np.triu(upper, 1).T)


def _mujoco(file: str, system: System, q: Array, floating_base: bool) -> Array:
    import mujoco

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)  # the reader has passed these on; MuJoCo would write a log file
    try:
        model = mujoco.MjModel.from_xml_path(file)
    finally:
        mujoco.set_mju_user_warning(before)
    data, inverse = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    data.qpos[:] = to_mujoco(system, model, q).q
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    (mujoco.mj_makeM if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb)(model, data)
    mujoco.mj_factorM(model, data)
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    return _in_our_velocities(to_mujoco, model, system, q, inverse)


def _in_our_velocities(convert: Any, model: Any, system: System, q: Array, theirs: Array) -> Array:
    tree, q_tree = system.open_tree, system.expand(q)
    state: State = convert(tree, model, np.tile(q_tree, (tree.nv, 1)), np.eye(tree.nv))
    assert state.v is not None
    to_ours = np.linalg.inv(state.v.T)
    inverse = to_ours @ theirs @ to_ours.T
    if not system.is_tree:
        from kfdyn.dynamics.embedding import output_rates

        X = output_rates(system, q)  # theirs is of the tree: (X*𝓜X)⁻¹
        inverse = np.linalg.inv(X.T @ np.linalg.inv(inverse) @ X)
    return np.asarray(inverse)
