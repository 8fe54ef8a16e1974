"""Public robot files, and how far kfdyn's dynamics of them are from Pinocchio's and MuJoCo's."""

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np

import kfdyn.dynamics as dy
import kfdyn.io as kio
from kfdyn.errors import SingularError


class Agreement(NamedTuple):
    """Largest relative differences over a few random states; ``forward`` is None where 𝓜 is singular."""

    name: str
    nv: int
    n_bodies: int
    mass_matrix: float
    inverse: float
    forward: float | None
    condition: float
    refusal: str


def packaged(package, suffix):
    """Files of an installed package by suffix, sorted; empty if it is not installed."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(file.locate()).resolve() for file in files if str(file).endswith(suffix))


def example_robots():
    return packaged("example-robot-data", ".urdf")


def bullet_robots():
    # A thousand of pybullet's files are random shapes of one link; three of them stand for all.
    files = packaged("pybullet", ".urdf")
    shapes = [file for file in files if "random_urdfs" in file.parts]
    return [file for file in files if file not in set(shapes[3:])]


def mjcf_models():
    return [f for p in ("gymnasium", "dm_control") if importlib.util.find_spec(p) for f in packaged(p, ".xml")]


# Links with a negative principal moment of inertia: refused, unless asked for.
INDEFINITE = {"romeo_laas_small"}


def label(file):
    """A name for people: the file's, with its folder's where that alone says nothing."""
    return file.stem if file.stem not in ("anymal", "model", "humanoid", "arena") else f"{file.parent.name}/{file.stem}"


def apart(actual, expected):
    """Largest difference, relative to the largest entry."""
    size = np.abs(expected).max(initial=0.0)
    return float(np.abs(actual - expected).max(initial=0.0) / size) if size else float(np.abs(actual).max(initial=0.0))


def with_pinocchio(file, floating_base, states=2):
    """Compare a URDF file with Pinocchio; None if Pinocchio does not read it or nothing moves."""
    import pinocchio as pin

    try:
        model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floating_base else []))
    except (ValueError, RuntimeError):
        return None
    if model.nv == 0:
        return None
    indefinite = "warn" if file.stem in INDEFINITE else "refuse"
    system = kio.read(file, floating_base=floating_base, indefinite_inertia=indefinite, mimic="free").system
    data, rng = model.createData(), np.random.default_rng(3)
    rows = []
    refusal = ""
    for _ in range(states):
        q = system.random_configuration(rng)
        v, a, tau = rng.normal(size=(3, system.nv))
        there = kio.to_pinocchio(system, model, q, v, a, tau)
        X = kio.to_pinocchio(system, model, np.tile(q, (system.nv, 1)), np.eye(system.nv)).v.T
        upper = np.triu(pin.crba(model, data, there.q))
        M = X.T @ (upper + np.triu(upper, 1).T) @ X
        expected = pin.rnea(model, data, there.q, there.v, there.a).copy()
        found = kio.to_pinocchio(system, model, q, tau=dy.inverse_dynamics(system, q, v, a)).tau
        forward = None
        try:
            acceleration = kio.to_pinocchio(system, model, q, v, dy.forward_dynamics(system, q, v, tau)).a
            forward = apart(acceleration, pin.aba(model, data, there.q, there.v, there.tau))
        except SingularError as error:
            refusal = str(error)
        rows.append((apart(dy.mass_matrix(system, q), M), apart(found, expected), forward, np.linalg.cond(M)))
    return _worst(label(file), system, rows, refusal)


def with_mujoco(file, states=2):
    """Compare an MJCF file with MuJoCo; None if it is no whole model, or nothing moves."""
    import mujoco

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError:
        return None
    finally:
        mujoco.set_mju_user_warning(before)
    if model.nv == 0:
        return None
    system = kio.read(file, mimic="free").system
    model.opt.density = model.opt.viscosity = 0
    data, rng, rows = mujoco.MjData(model), np.random.default_rng(3), []
    for _ in range(states):
        q = system.random_configuration(rng)
        v, a, tau = rng.normal(size=(3, system.nv))
        there = kio.to_mujoco(system, model, q, v, a, tau)
        M, smooth, required = mujoco_dynamics(model, data, there)
        X = kio.to_mujoco(system, model, np.tile(q, (system.nv, 1)), np.eye(system.nv)).v.T
        found = kio.to_mujoco(system, model, q, tau=dy.inverse_dynamics(system, q, v, a)).tau
        acceleration = kio.to_mujoco(system, model, q, v, dy.forward_dynamics(system, q, v, tau)).a
        M = X.T @ M @ X
        rows.append(
            (
                apart(dy.mass_matrix(system, q), M),
                apart(found, required),
                apart(acceleration, smooth),
                np.linalg.cond(M),
            )
        )
    return _worst(label(file), system, rows, "")


def mujoco_dynamics(model, data, state):
    """Mass matrix with armature, smooth acceleration, and the force that gives ``state.a``, both with the bias."""
    import mujoco

    data.qpos[:], data.qvel[:], data.qacc[:] = state.q, state.v, state.a
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    (mujoco.mj_makeM if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb)(model, data)
    mujoco.mj_factorM(model, data)
    mujoco.mj_comVel(model, data)
    M, bias, required, smooth = (
        np.zeros((model.nv, model.nv)),
        np.zeros(model.nv),
        np.zeros(model.nv),
        np.zeros((1, model.nv)),
    )
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:  # before MuJoCo 4
        mujoco.mj_fullM(model, M, data.qM)
    mujoco.mj_rne(model, data, 0, bias)
    mujoco.mj_rne(model, data, 1, required)
    mujoco.mj_solveM(model, data, smooth, (state.tau - bias)[None])
    return M, smooth[0], required + model.dof_armature * state.a


def _worst(name, system, rows, refusal):
    M, inverse, forward, condition = zip(*rows)
    forward = None if None in forward else max(forward)
    return Agreement(name, system.nv, system.n_bodies, max(M), max(inverse), forward, max(condition), refusal)
