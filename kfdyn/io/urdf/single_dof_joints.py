"""A hinge as a chain of URDF joints: one per screw, shifted to where the screw's axis is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.io.urdf.read_urdf import planar_axes
from kfdyn.multibody import Body
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.multibody.system import PER_DOF

UNIT = 1e-12  # of lengths that must be 1 or 0 but for rounding


class Step(NamedTuple):
    """One joint: its URDF type, its frame in the one before, its axis, and which dofs of the hinge it is."""

    kind: str
    rotation: Array
    position: Array
    axis: Array | None = None
    dofs: slice = slice(0, 0)


def steps(body: Body) -> list[Step]:
    """Joints that together move as the body's hinge does; at least one."""
    hinge, where = body.hinge, f"hinge {body.hinge_name!r}"
    R, p = body.rotation, body.position
    whole = slice(0, hinge.nv)
    if hinge.nv == 0:
        return [Step("fixed", R, p)]
    if hinge.kind == "free":
        return [Step("floating", R, p, None, whole)]
    if hinge.coordinates is not Coordinates.SCREWS:
        raise ModelError(f"{where}: URDF has no {hinge.kind} joint; a gimbal or a succession can be written")
    if _is_planar(body):
        return [Step("planar", R, p, hinge.screws[2, :3], whole)]
    chain = []
    offset = np.zeros(3)  # from the frame of the last joint to the frame that the next screw is written in
    for i, screw in enumerate(hinge.screws):
        w, u = screw[:3], screw[3:]
        point = np.cross(w, u)
        if abs(w @ u) > UNIT:
            raise ModelError(
                f"{where}: URDF has no helical joint (pitch {w @ u:.6g}); couple a slide to a rotation instead"
            )
        if not w.any() and abs(np.linalg.norm(u) - 1) > UNIT:
            raise ModelError(
                f"{where}: URDF's prismatic joint moves 1 m per unit of q, this one {np.linalg.norm(u):.6g}"
            )
        at = offset + point
        first = i == 0
        chain.append(
            Step(
                "revolute" if w.any() else "prismatic",
                R if first else np.eye(3),
                p + R @ at if first else at,
                w if w.any() else u,
                slice(i, i + 1),
            )
        )
        offset = -point
    if offset.any():
        chain.append(Step("fixed", np.eye(3), offset, None, slice(hinge.nv, hinge.nv)))
    return chain


def _is_planar(body: Body) -> bool:
    """Return True if URDF's planar joint, as :func:`kfdyn.load` reads it, says all that this hinge is."""
    screws = body.hinge.screws
    if body.hinge.kind != "planar" or np.isfinite([body.lower, body.upper]).any():
        return False
    if any(len(np.unique(getattr(body, key))) > 1 for key in ("speed", "effort", *PER_DOF)):
        return False
    return bool(np.allclose(screws[:2, 3:], planar_axes(screws[2, :3]), rtol=0, atol=UNIT))
