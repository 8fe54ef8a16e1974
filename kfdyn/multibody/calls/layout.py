"""Layout: a system's facts as flat read-only arrays, the argument of every compiled sweep."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.parts.body import Body
from kfdyn.spatial import TriangleInequalityWarning, validate_inertia

Index = NDArray[np.int64]


class Layout(NamedTuple):
    """Flat arrays over n bodies and nv dofs; body k owns the dofs v_start[k] : v_start[k+1].

    Attributes
    ----------
    order : (n,)
        Bodies, parents before children.
    parent : (n,)
        Parent's index, −1 at a root.
    coordinates : (n,)
        How q is read, see :class:`kfdyn.multibody.parts.hinge.Coordinates`.
    q_start, v_start : (n + 1,)
        Where each hinge begins in q and v; the last entry is nq, nv.
    screws : (nv, 6)
        Screws, or rows of a constant H, hinge by hinge.
    rotation, position : (n, 3, 3), (n, 3)
        Hinge frame in the parent's frame.
    mass, com, J : (n,), (n, 3), (n, 3, 3)
        Mass, mass centre and moment of inertia about the body's origin, in the body's frame. A body
        without mass has com = 0.
    armature : (nv,)
        Rotor inertia R of each dof.
    """

    order: Index
    parent: Index
    coordinates: Index
    q_start: Index
    v_start: Index
    screws: Array
    rotation: Array
    position: Array
    mass: Array
    com: Array
    J: Array
    armature: Array


class Numbers(NamedTuple):
    """Numbers in which robots of one topology differ, as in :class:`Layout`, each with a leading axis for robots."""

    mass: Array
    com: Array
    J: Array
    position: Array
    armature: Array


def pack(
    bodies: Sequence[Body], order: Index, parent: Index, indefinite_inertia: Literal["refuse", "warn"] = "refuse"
) -> Layout:
    """Lay the bodies out; refuse an inertia that no body can have, or warn of a merely indefinite one."""
    hinges = [body.hinge for body in bodies]
    inertia = np.stack([body.inertia for body in bodies])
    _check_inertias(bodies, inertia, indefinite_inertia)
    mass, com = masses_and_centres(inertia)
    layout = Layout(
        order=order,
        parent=parent,
        coordinates=np.array([hinge.coordinates for hinge in hinges], dtype=np.int64),
        q_start=np.cumsum([0, *(hinge.nq for hinge in hinges)], dtype=np.int64),
        v_start=np.cumsum([0, *(hinge.nv for hinge in hinges)], dtype=np.int64),
        screws=np.concatenate([hinge.screws for hinge in hinges]),
        rotation=np.stack([body.rotation for body in bodies]),
        position=np.stack([body.position for body in bodies]),
        mass=mass,
        com=com,
        J=inertia[:, :3, :3].copy(),
        armature=np.concatenate([body.armature for body in bodies]),
    )
    for array in layout:
        array.flags.writeable = False
    return layout


def masses_and_centres(inertia: Array) -> tuple[Array, Array]:
    """Masses (...) and mass centres (..., 3) of inertias (..., 6, 6)."""
    mass = inertia[..., 3, 3].copy()
    # m p~ is the upper right block; p has no meaning without mass and is set to zero there.
    mp = np.stack([inertia[..., 2, 4], inertia[..., 0, 5], inertia[..., 1, 3]], axis=-1)
    return mass, np.divide(mp, mass[..., None], out=np.zeros_like(mp), where=mass[..., None] > 0)


def _check_inertias(bodies: Sequence[Body], inertia: Array, indefinite_inertia: Literal["refuse", "warn"]) -> None:
    """Check all at once; only when one is at fault look for it by name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", TriangleInequalityWarning)
            validate_inertia(inertia, indefinite_inertia=indefinite_inertia)
    except (ModelError, TriangleInequalityWarning):
        for body in bodies:
            validate_inertia(body.inertia, body.name, indefinite_inertia=indefinite_inertia)
