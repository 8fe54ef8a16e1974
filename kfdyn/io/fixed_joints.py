"""Merge bodies on fixed hinges into the bodies that carry them; their names become frames."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody import Body, Frame, Pose
from kfdyn.multibody.parts.body import IDENTITY
from kfdyn.spatial import rigid_transform, transform_inertia


class Merged(NamedTuple):
    """Bodies that move, frames fixed to them, and frames fixed to the world."""

    bodies: list[Body]
    frames: dict[str, Frame]
    world_frames: dict[str, Pose]


class _Place(NamedTuple):
    """A frame of the file: fixed to the moving body ``host`` (None: the world)."""

    host: str | None
    rotation: Array
    position: Array


def join_fixed(bodies: Iterable[Body], keep: Collection[str] = ()) -> Merged:
    """Join each body on a fixed hinge rigidly to its carrier, M ← M + φ M(k) φ*.

    Parameters
    ----------
    bodies
        Parents before children.
    keep
        Names of bodies, or of their hinges, that stay apart although they are fixed.

    Returns
    -------
    Merged
        The dynamics are the same; bodies fixed to the world have none and leave only their frame.
        Cost O(n).
    """
    place: dict[str, _Place] = {}
    moving: dict[str, Body] = {}
    gained: dict[str, Array] = {}
    left = set(keep)
    for body in bodies:
        kept = not left.isdisjoint((body.name, body.hinge_name))
        left -= {body.name, body.hinge_name} if kept else set()
        if body.parent is None:
            here = _Place(None, body.rotation, body.position)
        else:
            host, R, p = place[body.parent]
            if R is IDENTITY and not p.any():
                here = _Place(host, body.rotation, body.position)
            else:
                here = _Place(host, R @ body.rotation, p + R @ body.position)
        if body.hinge.nv or kept:
            same = here.host == body.parent and here.position is body.position
            moving[body.name] = (
                body if same else replace(body, parent=here.host, rotation=here.rotation, position=here.position)
            )
            place[body.name] = _Place(body.name, IDENTITY, np.zeros(3))
            continue
        place[body.name] = here
        if here.host is not None and body.inertia.any():
            moved = transform_inertia(rigid_transform(here.position, here.rotation), body.inertia)
            gained[here.host] = gained.get(here.host, 0.0) + moved
    if left:
        raise ModelError(f"keep_fixed: the file has no link or joint {sorted(left)[0]!r}")
    for name, extra in gained.items():
        moving[name] = replace(moving[name], inertia=moving[name].inertia + extra)
    fixed = {name: at for name, at in place.items() if name not in moving}
    frames = {name: Frame(at.host, at.rotation, at.position) for name, at in fixed.items() if at.host is not None}
    world = {name: Pose(at.rotation, at.position) for name, at in fixed.items() if at.host is None}
    return Merged(list(moving.values()), frames, world)
