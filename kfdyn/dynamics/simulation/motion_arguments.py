"""Check what drives a system, and make an equation of motion of it."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.simulation.equation import Law, Motion
from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.dynamics.simulation.hinge_forces import hinge_forces
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import checked, configuration
from kfdyn.multibody.parts.armature import with_armature as with_armature
from kfdyn.multibody.parts.coupling import told
from kfdyn.multibody.parts.hinge import Coordinates


def motion(
    system: System,
    torque: Law | ArrayLike | None = None,
    damping: bool | ArrayLike = False,
    stiffness: bool | ArrayLike = False,
    rest: ArrayLike | None = None,
    external_forces: Law | ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    *,
    stops: bool | ArrayLike = False,
    stop_damping: ArrayLike | None = None,
    friction: bool | ArrayLike = False,
    friction_speed: float = 0.01,
    effort: bool | ArrayLike = False,
) -> Motion:
    """Check what drives a system; parameters as for :func:`kfdyn.dynamics.simulation.simulate`.

    Examples
    --------
    >>> from kfdyn.multibody.models import pendulum
    >>> from kfdyn.dynamics.simulation.motion_arguments import motion
    >>> swing = motion(pendulum(), damping=[0.5])
    >>> a, power = swing.acceleration(0.0, np.array([0.0]), np.array([2.0]))
    >>> a, float(power)
    (array([-1.]), -2.0)
    """
    nv, tree, layout = system.nv, system.uncoupled, system.pattern.open_tree.layout
    if isinstance(torque, LinearFeedback) and torque.system.nv != nv:
        raise ShapeError(
            f"the torque is a law for {torque.system.nv} coordinates, those of {torque.system.name!r}, but system "
            f"{system.name!r} has {nv}"
        )
    if isinstance(torque, LinearFeedback):
        _expect_the_same_hinges(system, torque.system)
    if not (torque is None or callable(torque)):
        torque = checked(system, torque, (nv,), "torque")
    if not (external_forces is None or callable(external_forces)):
        external_forces = checked(system, external_forces, (system.n_bodies, 6), "external_forces")
    g = system.gravity if gravity is None else checked(system, gravity, (3,), "gravity")
    K = _per_dof(system, stiffness, tree.stiffness, "stiffness")
    for k in np.flatnonzero(layout.coordinates[: system.n_bodies] != Coordinates.SCREWS):
        own = K[..., tree.v_slice(system.hinge_names[k])]
        if layout.coordinates[k] == Coordinates.POSE and own.any():
            raise ModelError(
                f"hinge {system.hinge_names[k]!r}: a {system.bodies[k].hinge.kind} hinge takes no stiffness, since "
                "the way back to rest is not unique; give the spring as torque(t, q, v)"
            )
        if own.size and np.ptp(own, axis=-1).any():
            raise ModelError(
                f"hinge {system.hinge_names[k]!r}: the stiffness of a ball hinge must be the same about its three "
                f"axes, got {own}; give another spring as torque(t, q, v)"
            )
    at_rest = system.neutral() if rest is None else configuration(system, rest, "rest")
    if at_rest.ndim > 1:
        raise ShapeError(f"rest must have shape ({system.nq},), one for all, got {at_rest.shape}")
    B = _per_dof(system, damping, tree.damping, "damping")
    where = system._expansion.positions(at_rest)
    dry = _per_dof(system, friction, tree.friction, "friction")
    hinges = hinge_forces(system, stops, stop_damping, dry, friction_speed, effort)
    return Motion(system, torque, external_forces, g, B, K, where, hinges)


def _expect_the_same_hinges(system: System, other: System) -> None:
    """Refuse a law for another robot; rotors, inertias, loops and gravity may be others than those it was made for."""
    for ours, theirs in zip_longest(_hinges(system), _hinges(other)):
        if ours != theirs:
            has, wanted = ("none" if x is None else f"{x[0]!r} ({x[1]})" for x in (ours, theirs))
            raise ModelError(
                f"the torque is a law for another robot: {other.name!r} has hinge {wanted} where system "
                f"{system.name!r} has {has}; make it for the system that is simulated"
            )


def _hinges(system: System) -> list[tuple[str, str]]:
    return [(name, body.hinge.kind) for name, body in zip(system.hinge_names, system.pattern.bodies)]


def _per_dof(system: System, value: bool | ArrayLike, own: Array, what: str) -> Array:
    if isinstance(value, bool | np.bool_):
        return own if value else np.zeros(own.shape[-1])
    elastic = system.elastic
    # one number is that of every hinge; springs of joints and modes have their own
    given = np.where(elastic, 0.0, value) if np.ndim(value) == 0 else value
    array = checked(system, given, (system.nv,), what)
    if array.ndim > 1:
        raise ShapeError(f"{what} must be True, False, a scalar or have shape ({system.nv},), got {array.shape}")
    if (array < 0).any():
        i = int(np.argmax(array < 0))
        raise ModelError(f"{what} must not be negative, got {array[i]} at dof {i} of system {system.name!r}")
    if what == "stiffness" and array[elastic].any():
        i = int(np.flatnonzero(elastic & (array != 0))[0])
        raise ModelError(
            f"stiffness of {system.dof_names[i]!r}: a mode, or the spring of a flexible joint, has its stiffness from "
            "its body or joint; give it there, and 0 here"
        )
    return _of_named_hinges(system, array, what)


def _of_named_hinges(system: System, array: Array, what: str) -> Array:
    """Damping, stiffness or friction of coordinates (nv,) as that of the hinges they are named after (nv_tree,)."""
    for coupling in system.couplings:
        if not coupling.is_selection and array[system._expansion.own_v].any():
            raise ModelError(
                f"{what} of the coordinates of the coupling of {told(coupling.hinges)} is of no hinge; give the hinges "
                f"{what} and simulate with {what}=True"
            )
    return system._expansion.of_named(array)
