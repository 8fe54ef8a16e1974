"""States to and from Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError
from kfdyn.io.states.peer_coordinates import Kind, Pair, Pairing, State, expect_model_of
from kfdyn.multibody import Hinge, System

PLANE_XY = Hinge.planar().screws
# (nq, nv) of a Pinocchio joint, and of ours, tell what it is, but for planar and ball.
KINDS = {
    (1, 1, 1): Kind.SAME,
    (2, 1, 1): Kind.CIRCLE,
    (4, 3, 4): Kind.SAME,
    (4, 3, 3): Kind.PLANE,
    (7, 6, 7): Kind.POSE_LINEAR_FIRST,
}


def to_pinocchio(
    system: System,
    model: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """Our state in the coordinates of a Pinocchio model.

    Parameters
    ----------
    system, q, v, a, tau
        As for :func:`to_mujoco`.
    model : pinocchio.Model

    Returns
    -------
    State
        ``q`` (..., model.nq); ``v``, ``a``, ``tau`` (..., model.nv) or None.

    Notes
    -----
    ==========  ==================================  =================================================
    joint       ours                                Pinocchio's
    ==========  ==================================  =================================================
    revolute,   q, v                                the same
    prismatic
    continuous  angle                               (cos, sin); back, the angle in (−π, π]
    ball        quaternion (x, y, z, w); ω in body  the same
    free        position, quaternion; [ω; u]        the same; [u; ω]
    planar      x, y, angle and their rates         x, y, cos, sin; (ẋ, ẏ) turned into body axes
    ==========  ==================================  =================================================

    Joints and hinges are matched by name; the one that remains, a base that floats, has its own name in
    each. Pinocchio orders joints by branches and names, a System as the file does.

    Examples
    --------
    A satellite turns about x while it moves along z. Pinocchio puts the linear velocity first:

    >>> import pinocchio as pin
    >>> import kfdyn as kf
    >>> satellite = kf.System([kf.Body("bus", np.eye(6), kf.Hinge.free())])
    >>> model = pin.buildModelFromXML(kf.save_urdf(satellite))
    >>> to_pinocchio(satellite, model, satellite.neutral(), [1.0, 0, 0, 0, 0, 2.0]).v
    array([0., 0., 2., 1., 0., 0.])
    """
    return Pairing.of(system, model, _pairs).there(q, v, a, tau)


def from_pinocchio(
    system: System,
    model: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """State in a Pinocchio model's coordinates as ours: the inverse of :func:`to_pinocchio`.

    Parameters
    ----------
    system : System
    model : pinocchio.Model
    q : (..., model.nq)
    v, a, tau : (..., model.nv), optional

    Returns
    -------
    State
        ``q`` (..., nq); ``v``, ``a``, ``tau`` (..., nv) or None.

    Examples
    --------
    Forward dynamics there, read here: the same accelerations.

    >>> import pinocchio as pin
    >>> import kfdyn as kf
    >>> arm = kf.models.chain(4)
    >>> model = pin.buildModelFromXML(kf.save_urdf(arm))
    >>> model.armature = arm.armature
    >>> q, v, tau = np.ones(4), np.arange(4.0), np.zeros(4)
    >>> there = kf.to_pinocchio(arm, model, q, v, tau=tau)
    >>> a = pin.aba(model, model.createData(), there.q, there.v, there.tau)
    >>> here = from_pinocchio(arm, model, there.q, there.v, a)
    >>> bool(np.allclose(here.a, kf.forward_dynamics(arm, q, v, tau)))
    True
    """
    return Pairing.of(system, model, _pairs).here(q, v, a, tau)


def _pairs(system: System, model: Any) -> list[Pair]:
    expect_model_of("pinocchio.Model", model, ("names", "joints"), "pinocchio.buildModelFromUrdf")
    joints = dict(zip(list(model.names)[1:], list(model.joints)[1:]))  # 0 is the universe
    hinges = [body.hinge_name for body in system.bodies if body.hinge.nv]
    rest_here, rest_there = [h for h in hinges if h not in joints], [j for j in joints if j not in set(hinges)]
    if len(rest_here) > 1 or len(rest_there) != len(rest_here):
        what = f"hinge {rest_here[0]!r} is no joint" if rest_here else f"joint {rest_there[0]!r} is no hinge"
        raise ModelError(f"{what} of the other model; load both from one file, with the same base")
    other = dict(zip(rest_here, rest_there))
    return [_pair(system, hinge, joints[other.get(hinge, hinge)]) for hinge in hinges]


def _pair(system: System, name: str, joint: Any) -> Pair:
    q, v = system.q_slice(name), system.v_slice(name)
    if joint.shortname() == "JointModelMimic":
        raise ModelError(
            f"joint {name!r} of the Pinocchio model follows another and has no place in its q; build the model without "
            "mimic=True: the system's couplings are expanded to it"
        )
    kind = KINDS.get((joint.nq, joint.nv, q.stop - q.start))
    screws = system.bodies[system.hinge_index(name)].hinge.screws
    if kind is None or len(screws) != joint.nv:
        raise ModelError(f"hinge {name!r} has no counterpart in Pinocchio's {joint.shortname()}")
    if kind is Kind.PLANE and not np.array_equal(screws, PLANE_XY):
        raise ModelError(
            f"hinge {name!r}: Pinocchio's planar joint moves in the x-y plane of its frame, this one does not"
        )
    at, dof = int(joint.idx_q), int(joint.idx_v)
    return Pair(name, kind, q, v, slice(at, at + joint.nq), slice(dof, dof + joint.nv))
