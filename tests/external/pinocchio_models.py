"""Build the Pinocchio model of a kfdyn System, so that Pinocchio can serve as an oracle.

A hinge of several screws becomes several one-dof joints with mass-less bodies between them, so that v means
the same to both; only the places of the entries differ: ``v_pin[v_index] = v`` and ``q_pin[q_index] = q``.
Joints are added depth-first: Pinocchio's crba and computeMinverse are silently wrong otherwise.
"""

from typing import NamedTuple

import numpy as np
import pinocchio as pin

import kfdyn.multibody as mb
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.spatial import inertia_parameters

UNSUPPORTED = {"custom"}


class PinModel(NamedTuple):
    model: pin.Model
    data: pin.Data
    q_index: np.ndarray
    v_index: np.ndarray
    frame: dict  # body or frame name -> Pinocchio frame id

    def q(self, q):
        out = np.empty(self.model.nq)
        out[self.q_index] = q
        return out

    def v(self, v):
        out = np.empty(self.model.nv)
        out[self.v_index] = v
        return out


def pinocchio_model(system: mb.System) -> PinModel:
    """Pinocchio's model of ``system``, armature and gravity included."""
    model = pin.Model()
    model.gravity = pin.Motion(np.asarray(system.gravity), np.zeros(3))
    q_index, v_index = np.full(system.nq, -1), np.full(system.nv, -1)
    place = {}  # body index -> (joint id, placement of the body's frame in the joint's)
    frame = {}
    for k in system.layout.order:
        body, parent = system.bodies[k], int(system.parent[k])
        joint, at = place[parent] if parent >= 0 else (0, pin.SE3.Identity())
        at = at * pin.SE3(np.asarray(body.rotation), np.asarray(body.position))
        q_at, v_at = system.q_slice(body.hinge_name), system.v_slice(body.hinge_name)
        if body.hinge.coordinates is Coordinates.SCREWS:
            for i, screw in enumerate(body.hinge.screws):
                kind, before, after = screw_joint(screw)
                joint = model.addJoint(joint, kind, at * before, f"{body.name}:{i}")
                q_index[q_at.start + i] = model.joints[joint].idx_q
                v_index[v_at.start + i] = model.joints[joint].idx_v
                at = after
        else:
            kind, order = free_joint(body.hinge)
            joint = model.addJoint(joint, kind, at, body.name)
            q_index[q_at] = model.joints[joint].idx_q + np.arange(body.hinge.nq)
            v_index[v_at] = model.joints[joint].idx_v + order
            at = pin.SE3.Identity()
        place[k] = (joint, at)
        model.appendBodyToJoint(joint, pin_inertia(body), at)
        frame[body.name] = model.addFrame(pin.Frame(body.name, joint, at, pin.FrameType.OP_FRAME))
    for name, fixed in system.frames.items():
        joint, at = place[system.body_index(fixed.body)]
        at = at * pin.SE3(np.asarray(fixed.rotation), np.asarray(fixed.position))
        frame[name] = model.addFrame(pin.Frame(name, joint, at, pin.FrameType.OP_FRAME))
    armature = np.empty(system.nv)
    armature[v_index] = system.layout.armature
    model.armature = armature
    return PinModel(model, model.createData(), q_index, v_index, frame)


def pin_inertia(body):
    mass, com, inertia_com = inertia_parameters(body.inertia)
    return pin.Inertia(float(mass), np.asarray(com), np.asarray(inertia_com))


def screw_joint(screw):
    """A one-dof joint, and the placements before and after it that bring its axis where the screw's is."""
    w, u = screw[:3], screw[3:]
    here = pin.SE3.Identity()
    if not w.any():
        size = np.linalg.norm(u)
        if abs(size - 1) > 1e-12:
            raise ValueError("Pinocchio's prismatic joint has unit scale")
        return pin.JointModelPrismaticUnaligned(u / size), here, here
    pitch, point = w @ u, np.cross(w, u)
    kind = pin.JointModelHelicalUnaligned(w, pitch) if abs(pitch) > 0 else pin.JointModelRevoluteUnaligned(w)
    return kind, pin.SE3(np.eye(3), point), pin.SE3(np.eye(3), -point)


def free_joint(hinge):
    """Pinocchio's joint and where our v goes in its v: it keeps linear velocities first."""
    if hinge.kind == "ball":
        return pin.JointModelSpherical(), np.arange(3)
    if hinge.kind == "free":
        return pin.JointModelFreeFlyer(), np.array([3, 4, 5, 0, 1, 2])
    raise ValueError(f"Pinocchio has no {hinge.kind} hinge")
