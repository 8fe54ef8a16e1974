"""The bodies of a compiled MuJoCo model as bodies on hinges, with the frames that MuJoCo names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.io.fixed_joints import Merged
from kfdyn.multibody import Body, Frame, Hinge, Pose
from kfdyn.spatial import quaternion_to_matrix, spatial_inertia

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
W_LAST = [1, 2, 3, 0]  # (w, x, y, z) -> (x, y, z, w)
DOFS = {FREE: 6, BALL: 3, SLIDE: 1, HINGE: 1}
AT_JOINTS = (0, 1)  # mjtTrn: joint, jointinparent


class MjNames:
    """Names of MuJoCo's bodies, joints and sites; those without one are numbered, and all are unique."""

    def __init__(self, model: Any) -> None:
        blob = model.names
        self.model = _text(blob, 0) or "mjcf"
        self.body = _unique([_text(blob, a) or f"body{i}" for i, a in enumerate(model.name_bodyadr)])
        self.joint = _unique(
            [
                _text(blob, a) or f"{self.body[model.jnt_bodyid[j]]}:joint{j - model.body_jntadr[model.jnt_bodyid[j]]}"
                for j, a in enumerate(model.name_jntadr)
            ]
        )
        self.site = [_text(blob, a) for a in model.name_siteadr]


def _text(blob: bytes, start: int) -> str:
    return blob[start : blob.index(b"\0", start)].decode(errors="replace")


def _unique(names: list[str]) -> list[str]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        while names[i] in seen:
            names[i] = name + "_"
            name = names[i]
        seen.add(names[i])
    return names


def _of_actuators(model: Any, what: str) -> Array:
    """Armature or damping of the actuators at joints, as each dof feels it.

    It counts with the square of the first gear at every dof of a joint, as in MuJoCo; releases before 4 have none.
    """
    felt = np.zeros(model.nv)
    given = getattr(model, f"actuator_{what}", np.zeros(len(model.actuator_trntype)))
    for i in np.flatnonzero(given):
        if int(model.actuator_trntype[i]) in AT_JOINTS:
            j = int(model.actuator_trnid[i, 0])
            dof = int(model.jnt_dofadr[j])
            felt[dof : dof + DOFS[int(model.jnt_type[j])]] += given[i] * model.actuator_gear[i, 0] ** 2
    return felt


def _greatest_forces(model: Any) -> Array:
    """The largest force of the actuators at each joint (njnt,): inf where one has no limit, or there is none.

    An actuator's is that of its ``forcerange``, or of the ``ctrlrange`` of a motor, times its first gear; forces of
    several add up. What is not the same on both sides counts with the larger one.
    """
    most, driven = np.zeros(model.njnt), np.zeros(model.njnt, dtype=bool)
    for i in range(model.nu):
        if int(model.actuator_trntype[i]) in AT_JOINTS:
            force = np.inf
            if model.actuator_forcelimited[i]:
                force = float(np.abs(model.actuator_forcerange[i]).max())
            if model.actuator_ctrllimited[i] and _is_motor(model, i):
                held = abs(model.actuator_gainprm[i, 0]) * np.abs(model.actuator_ctrlrange[i]).max()
                force = min(force, float(held))
            j = int(model.actuator_trnid[i, 0])
            most[j] += abs(model.actuator_gear[i, 0]) * force if model.actuator_gear[i, 0] else 0.0
            driven[j] = True
    return np.where(driven, most, np.inf)


def _is_motor(model: Any, i: int) -> bool:
    """Return True if an actuator's force is a fixed gain times its control: no dynamics, no bias."""
    return not (model.actuator_dyntype[i] or model.actuator_gaintype[i] or model.actuator_biastype[i])


class MjBodies:
    """Reads bodies in MuJoCo's order, which is parents first, and remembers where each frame went."""

    def __init__(self, model: Any, names: MjNames) -> None:
        self.model, self.names = model, names
        n = model.nbody
        self.carrier: list[str | None] = [None] * n  # the body that bears MuJoCo's body
        self.shift = np.zeros((n, 3))  # from MuJoCo's body origin to the carrier's origin
        self.rotation = quaternion_to_matrix(model.body_quat[:, W_LAST])
        axes = quaternion_to_matrix(model.body_iquat[:, W_LAST])
        self.moments = np.einsum("nij,nj,nkj->nik", axes, model.body_inertia, axes)
        self.armature = model.dof_armature + _of_actuators(model, "armature")
        self.damping = model.dof_damping + _of_actuators(model, "damping")
        self.effort = _greatest_forces(model)

    def bodies(self) -> Iterator[Body]:
        """Yield a body per joint, and one on a fixed hinge per body that has none; parents first."""
        m = self.model
        for b in range(1, m.nbody):  # 0 is the world
            first, count = int(m.body_jntadr[b]), int(m.body_jntnum[b])
            above = int(m.body_parentid[b])
            parent, R = self.carrier[above], self.rotation[b]
            origin = m.body_pos[b] - self.shift[above]  # of MuJoCo's body frame in the frame of what comes before
            at = np.zeros(3)  # the point of MuJoCo's body where the frame of what comes before sits, once aligned
            if not count:
                yield Body(self._claim(b, self.names.body[b], at), self._inertia(b, at), None, parent, R, origin)
                continue
            for i, j in enumerate(range(first, first + count)):
                kind = int(m.jnt_type[j])
                point = at if kind == SLIDE else np.zeros(3) if kind == FREE else np.array(m.jnt_pos[j])
                if kind == SLIDE and i == count - 1:
                    point = np.zeros(3)  # a slide has no place: take the body's own origin
                last = i == count - 1
                plain = last and not point.any()
                name = self.names.body[b] if plain else f"{self.names.body[b]}:{self.names.joint[j]}"
                if last:
                    self._claim(b, name, point)
                if i:
                    place = (np.eye(3), point - at)
                elif kind == FREE:
                    place = (np.eye(3), np.zeros(3))  # q is the pose in the world
                else:
                    place = (R, origin + R @ point)
                inertia = self._inertia(b, point) if last else np.zeros((6, 6))
                yield Body(
                    name, inertia, self._hinge(j, kind), parent, *place, self.names.joint[j], **self._data(j, kind)
                )
                parent, at = name, point

    def _claim(self, b: int, name: str, point: Array) -> str:
        self.carrier[b], self.shift[b] = name, point
        return name

    def _inertia(self, b: int, point: Array) -> Array:
        m = self.model
        J = 0.5 * (self.moments[b] + self.moments[b].T)
        return spatial_inertia(m.body_mass[b], m.body_ipos[b] - point if m.body_mass[b] else np.zeros(3), J)

    def _hinge(self, j: int, kind: int) -> Hinge:
        if kind == FREE:
            return Hinge.free()
        if kind == BALL:
            return Hinge.ball()
        axis = self.model.jnt_axis[j]
        return Hinge.revolute(axis) if kind == HINGE else Hinge.prismatic(axis)

    def _data(self, j: int, kind: int) -> dict[str, ArrayLike]:
        """Armature, damping, friction, stiffness; limits of q and of forces for one-dof joints."""
        m = self.model
        dof = int(m.jnt_dofadr[j])
        own = slice(dof, dof + DOFS[kind])
        # MuJoCo's free joint has its linear dofs first.
        order = [3, 4, 5, 0, 1, 2] if kind == FREE else slice(None)
        data: dict[str, ArrayLike] = {
            "armature": self.armature[own][order],
            "damping": self.damping[own][order],
            "friction": m.dof_frictionloss[own][order],
            "stiffness": float(m.jnt_stiffness[j]),
        }
        if DOFS[kind] == 1:
            if m.jnt_limited[j]:
                data["lower"], data["upper"] = (m.jnt_range[j] - m.qpos0[m.jnt_qposadr[j]]).tolist()
            held = float(np.abs(m.jnt_actfrcrange[j]).max()) if m.jnt_actfrclimited[j] else np.inf
            data["effort"] = min(held, float(self.effort[j]))
        return data

    def frames(self, merged: Merged) -> tuple[dict[str, Frame], dict[str, Pose]]:
        """MuJoCo's body frames that are not at a hinge point, and its sites, as named frames."""
        m = self.model
        moving = {body.name for body in merged.bodies}
        frames, world = dict(merged.frames), dict(merged.world_frames)
        for b in range(1, m.nbody):
            carrier = self.carrier[b]
            if carrier is not None and carrier != self.names.body[b]:
                self._put(frames, world, moving, self.names.body[b], carrier, np.eye(3), -self.shift[b])
        for s, R in enumerate(quaternion_to_matrix(m.site_quat[:, W_LAST])):
            b = int(m.site_bodyid[s])
            name = self.names.site[s]
            if not name:
                continue
            while name in moving or name in frames or name in world:
                name += ":site"
            self._put(frames, world, moving, name, self.carrier[b], R, m.site_pos[s] - self.shift[b])
        return frames, world

    def _put(
        self,
        frames: dict[str, Frame],
        world: dict[str, Pose],
        moving: set[str],
        name: str,
        carrier: str | None,
        R: Array,
        p: Array,
    ) -> None:
        if carrier is None:
            world[name] = Pose(R, p)
        elif carrier in moving:
            frames[name] = Frame(carrier, R, p)
        elif carrier in frames:
            host, R0, p0 = frames[carrier]
            frames[name] = Frame(host, np.asarray(R0) @ R, np.asarray(p0) + np.asarray(R0) @ p)
        else:
            pose = world[carrier]
            world[name] = Pose(pose.rotation @ R, pose.position + pose.rotation @ p)
