"""The robots that dynamics is timed on, each as kfdyn, Pinocchio and MuJoCo hold it."""

import importlib.metadata
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kfdyn as kf

#: Name for people, and where the robot comes from: a built-in one, or a URDF of example-robot-data.
ARMS = {"PUMA 560": "builtin:puma560", "UR5": "ur5_robot.urdf", "Panda": "panda.urdf"}
HUMANOIDS = {"TALOS": "talos_full_v2.urdf"}


class Robot(NamedTuple):
    """One robot; ``mujoco`` is None where MuJoCo refuses it (a moving body without mass)."""

    name: str
    system: kf.System
    pinocchio: Any
    mujoco: Any


class States(NamedTuple):
    """Random states in our coordinates: q (size, nq); v, a, tau (size, nv)."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray


def robot(name: str) -> Robot:
    """Read the robot; an arm is fixed, a humanoid's root floats."""
    import pinocchio as pin

    source, floats = (ARMS | HUMANOIDS)[name], name in HUMANOIDS
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a file says and dynamics does not use
        if source.startswith("builtin:"):
            system = getattr(kf.models, source.removeprefix("builtin:"))()
            file = Path(folder) / "robot.urdf"
            kf.save_urdf(system, file)
        else:
            file = packaged("example-robot-data", source)
            system = kf.load(file, floating_base=floats, mimic="free")
        model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floats else []))
    for hinge in system.hinge_names:
        if system.armature[system.v_slice(hinge)].any():
            model.armature[model.joints[model.getJointId(hinge)].idx_v] = system.armature[system.v_slice(hinge)][0]
    return Robot(name, system, model, mujoco_model(system))


def states(system: kf.System, size: int, seed: int = 0) -> States:
    rng = np.random.default_rng(seed)
    q = np.stack([system.random_configuration(rng) for _ in range(size)])
    return States(q, *rng.normal(size=(3, size, system.nv)))


def packaged(package: str, name: str) -> Path:
    """A file of an installed package, by its name."""
    for file in importlib.metadata.files(package) or []:
        if file.name == name:
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError(f"{package} has no {name}")


def mujoco_model(system: kf.System) -> Any:
    """The same bodies and hinges for MuJoCo: no contacts, no constraints, no sensors, nothing but dynamics."""
    import mujoco

    from kfdyn.spatial import inertia_parameters

    if any(body.hinge.nv and not mass > 0 for body, mass in zip(system.bodies, system.layout.mass)):
        return None
    spec = mujoco.MjSpec()
    spec.option.gravity = system.gravity
    flags = mujoco.mjtDisableBit
    for flag in ("CONSTRAINT", "CONTACT", "EQUALITY", "LIMIT", "FRICTIONLOSS", "SPRING", "DAMPER", "ACTUATION"):
        spec.option.disableflags |= getattr(flags, f"mjDSBL_{flag}")
    for flag in ("SENSOR", "WARMSTART", "EULERDAMP", "ISLAND"):
        spec.option.disableflags |= getattr(flags, f"mjDSBL_{flag}")
    placed: dict[int, Any] = {-1: spec.worldbody}
    kinds = {"revolute": "HINGE", "prismatic": "SLIDE", "free": "FREE"}
    for k in system.layout.order:
        body = system.bodies[k]
        mass, com, J = inertia_parameters(body.inertia)
        turn = np.empty(4)
        mujoco.mju_mat2Quat(turn, np.ascontiguousarray(body.rotation).ravel())
        placed[k] = spec_body = placed[int(system.parent[k])].add_body(name=body.name, pos=body.position, quat=turn)
        spec_body.explicitinertial = True
        spec_body.mass, spec_body.ipos = float(mass), com
        spec_body.fullinertia = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        if body.hinge.nv:
            kind, screw = body.hinge.kind, body.hinge.screws[0]
            joint = spec_body.add_joint(name=body.hinge_name, type=getattr(mujoco.mjtJoint, f"mjJNT_{kinds[kind]}"))
            if kind != "free":
                joint.axis = screw[:3] if kind == "revolute" else screw[3:]
                joint.armature = [float(body.armature[0]), 0, 0] if np.ndim(joint.armature) else float(body.armature[0])
    return spec.compile()
