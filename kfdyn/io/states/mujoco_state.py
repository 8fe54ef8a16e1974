"""States to and from MuJoCo."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.io.mjcf.mjcf_bodies import BALL, DOFS, FREE, MjNames
from kfdyn.io.states.peer_coordinates import Kind, Pair, Pairing, State, expect_model_of
from kfdyn.multibody import System

QUATERNIONS = {FREE: 7, BALL: 4}


def to_mujoco(
    system: System,
    model: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """Our state as MuJoCo's ``qpos``, ``qvel``, ``qacc`` and ``qfrc``.

    Parameters
    ----------
    system : System
        Loaded from the same file as ``model``.
    model : mujoco.MjModel
    q : (..., nq)
    v, a, tau : (..., nv), optional
        An acceleration needs the velocity with it.
        Where hinges are coupled, those that coordinates are named after get all of tau, and those that follow
        none: the generalised force of the coordinates, X* times that of the hinges, is the same.

    Returns
    -------
    State
        ``q`` (..., model.nq); ``v``, ``a``, ``tau`` (..., model.nv) or None.

    Notes
    -----
    =========  ==================================  ================================================
    joint      ours                                MuJoCo's
    =========  ==================================  ================================================
    hinge,     q, v                                qpos = q + qpos0 (the reference), qvel = v
    slide
    ball       quaternion (x, y, z, w); ω in body  quaternion (w, x, y, z); the same ω
    free       position, quaternion (x, y, z, w);  position, quaternion (w, x, y, z);
               [ω; u], both in body axes           [R u; ω]; hence qacc = [R (u̇ + ω × u); ω̇] and
                                                   qfrc = [R f; n] for tau = [n; f]
    =========  ==================================  ================================================

    Joints and hinges are matched by name.

    Examples
    --------
    A satellite that turns about x and moves along z. MuJoCo puts the linear velocity first, and w in a quaternion:

    >>> import mujoco
    >>> import kfdyn as kf
    >>> text = '<mujoco><worldbody><body name="bus"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    >>> model, satellite = mujoco.MjModel.from_xml_string(text), kf.load(text)
    >>> state = to_mujoco(satellite, model, satellite.neutral(), [1.0, 0, 0, 0, 0, 2.0])
    >>> state.q, state.v
    (array([0., 0., 0., 1., 0., 0., 0.]), array([0., 0., 2., 1., 0., 0.]))
    """
    return Pairing.of(system, model, _pairs).there(q, v, a, tau)


def from_mujoco(
    system: System,
    model: Any,
    qpos: ArrayLike,
    qvel: ArrayLike | None = None,
    qacc: ArrayLike | None = None,
    qfrc: ArrayLike | None = None,
) -> State:
    """MuJoCo's state as ours: the inverse of :func:`to_mujoco`.

    Parameters
    ----------
    system : System
    model : mujoco.MjModel
    qpos : (..., model.nq)
        Quaternions are normalised, as MuJoCo does before it uses them.
    qvel, qacc, qfrc : (..., model.nv), optional

    Returns
    -------
    State
        ``q`` (..., nq); ``v``, ``a``, ``tau`` (..., nv) or None.

    Examples
    --------
    >>> import mujoco
    >>> import kfdyn as kf
    >>> text = '<mujoco><worldbody><body name="bus"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    >>> model, satellite = mujoco.MjModel.from_xml_string(text), kf.load(text)
    >>> from_mujoco(satellite, model, [0, 0, 3.0, 1, 0, 0, 0], qvel=[0, 0, 2.0, 1.0, 0, 0]).v
    array([1., 0., 0., 0., 0., 2.])
    """
    return Pairing.of(system, model, _pairs).here(qpos, qvel, qacc, qfrc)


def to_mujoco_q(system: System, model: Any, q: ArrayLike) -> Array:
    """MuJoCo's ``qpos`` (..., model.nq) of our q (..., nq); see :func:`to_mujoco`.

    Parameters
    ----------
    system : System
        Loaded from the same file as ``model``.
    model : mujoco.MjModel
        The other model.
    q : (..., nq)
        Ours.

    Returns
    -------
    (..., model.nq) array

    Examples
    --------
    >>> import mujoco
    >>> import kfdyn as kf
    >>> text = '<mujoco><worldbody><body name="bus"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    >>> model, satellite = mujoco.MjModel.from_xml_string(text), kf.load(text)
    >>> to_mujoco_q(satellite, model, [0, 0, 3.0, 0, 0, 0, 1])
    array([0., 0., 3., 1., 0., 0., 0.])
    """
    return to_mujoco(system, model, q).q


def from_mujoco_q(system: System, model: Any, qpos: ArrayLike) -> Array:
    """Our q (..., nq) of MuJoCo's ``qpos`` (..., model.nq); see :func:`to_mujoco`.

    Parameters
    ----------
    system : System
        Loaded from the same file as ``model``.
    model : mujoco.MjModel
        The other model.
    qpos : (..., model.nq)
        MuJoCo's.

    Returns
    -------
    (..., nq) array

    Examples
    --------
    >>> import mujoco
    >>> import kfdyn as kf
    >>> text = '<mujoco><worldbody><body name="bus"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    >>> model, satellite = mujoco.MjModel.from_xml_string(text), kf.load(text)
    >>> from_mujoco_q(satellite, model, [0, 0, 3.0, 1, 0, 0, 0])
    array([0., 0., 3., 0., 0., 0., 1.])
    """
    return from_mujoco(system, model, qpos).q


def _pairs(system: System, model: Any) -> list[Pair]:
    expect_model_of("mujoco.MjModel", model, ("jnt_type", "qpos0"), "mujoco.MjModel.from_xml_path")
    names = MjNames(model).joint
    pairs = []
    for j, name in enumerate(names):
        kind, at, dof = int(model.jnt_type[j]), int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        if name not in system.hinge_names:
            raise ModelError(
                f"joint {name!r} of the MuJoCo model is no hinge of {system.name!r}; load both from one file"
            )
        q, v = system.q_slice(name), system.v_slice(name)
        there = slice(at, at + QUATERNIONS.get(kind, 1)), slice(dof, dof + DOFS[kind])
        if q.stop - q.start != there[0].stop - at or v.stop - v.start != DOFS[kind]:
            raise ModelError(f"hinge {name!r} is of another kind than the model's joint; load both from one file")
        if kind in QUATERNIONS:
            pairs.append(Pair(name, Kind.POSE_W_FIRST if kind == FREE else Kind.BALL_W_FIRST, q, v, *there))
        else:
            pairs.append(Pair(name, Kind.SHIFTED, q, v, *there, float(model.qpos0[at])))
    if sum(pair.v.stop - pair.v.start for pair in pairs) != system.nv:
        missing = [hinge for hinge in system.hinge_names if hinge not in names]
        raise ModelError(f"the MuJoCo model has no joint for hinge {missing[0]!r}; load both from one file")
    return pairs
