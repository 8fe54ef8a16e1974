"""URDF → System: which links hang on which, and how the joints between them move."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import KfdynError, ModelError
from kfdyn.io.fixed_joints import Merged, join_fixed
from kfdyn.io.load_result import Loaded, Mimic, indefinite_notes, listed
from kfdyn.io.mimics import couplings_of
from kfdyn.io.source import Source
from kfdyn.io.urdf.urdf_elements import Joint, Urdf, outward, read_urdf
from kfdyn.multibody import Body, Coupling, Frame, Hinge, Pose, System
from kfdyn.multibody.parts.body import IDENTITY
from kfdyn.spatial import (
    IndefiniteInertiaWarning,
    TriangleInequalityWarning,
    rotation_from_rpy,
    spatial_inertia,
    validate_inertia,
)

FLOATING_BASE = "floating_base"
ROUNDING = 1e-12  # of the largest moment


def load_urdf(
    source: Source,
    floating_base: bool,
    merge: bool,
    gravity: ArrayLike,
    indefinite_inertia: Literal["refuse", "warn"] = "refuse",
    mimic: Literal["obey", "free"] = "obey",
    keep_fixed: Collection[str] = (),
) -> Loaded:
    """Build the system of a URDF file; see :func:`kfdyn.load`."""
    urdf = read_urdf(source)
    roots, order = outward(urdf, source.name)
    inertia, notes = _inertias(urdf)
    bodies = list(_bodies(urdf, roots, order, inertia, floating_base))
    if merge:
        merged = join_fixed(bodies, keep_fixed)
    else:
        merged = _without_roots(bodies, [] if floating_base else roots)
    place = {joint.child: k for k, joint in enumerate(urdf.joints.values())}
    merged.bodies.sort(key=lambda body: place.get(body.name, -1))  # roots first, then the file's order of joints
    if not merged.bodies:
        raise ModelError(
            f"{source.name}: nothing moves, every link is fixed to the world; "
            "load it with floating_base=True (--floating-base) or merge_fixed=False"
        )
    if len(roots) > 1:
        notes.append(f"the links {listed(roots)} have no parent: the system is a forest of {len(roots)} trees")
    joints = urdf.joints.values()
    mimics = tuple(joint.mimic for joint in joints if joint.mimic is not None)
    couplings: tuple[Coupling, ...] = ()
    moving = [m for m in mimics if urdf.joints[m.hinge].kind != "fixed"]
    if mimic == "obey":
        couplings, free = _couplings(source.name, urdf, mimics)
        notes += free
    elif known := [m.hinge for m in moving if m.of in urdf.joints]:
        notes.append(f"mimic joints move freely, their couplings are data only: {listed(known)}")
    if lost := [m for m in moving if m.of not in urdf.joints]:
        followed = listed(list(dict.fromkeys(m.of for m in lost)))
        notes.append(
            f"mimic joints move freely, for they follow joints which are not in the file: "
            f"{listed([m.hinge for m in lost])} (which follow {followed})"
        )
    if unbounded := [joint.name for joint in joints if joint.kind in ("revolute", "prismatic") and not joint.limited]:
        notes.append(f"joints without the <limit> that URDF asks for, taken as unlimited: {listed(unbounded)}")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore", TriangleInequalityWarning)  # already among the notes, link by link
        warnings.simplefilter("always", IndefiniteInertiaWarning)
        try:
            system = System(
                merged.bodies,
                gravity,
                merged.frames,
                urdf.name,
                indefinite_inertia=indefinite_inertia,
                couplings=couplings,
            )
        except KfdynError as error:
            raise _with_line(source.name, urdf, merged.bodies, indefinite_inertia, error) from None
    notes.extend(indefinite_notes("link (with all that is merged into it)", said))
    return Loaded(system, source.name, (*urdf.notes, *notes), mimics, world_frames=merged.world_frames)


def _couplings(source: str, urdf: Urdf, mimics: tuple[Mimic, ...]) -> tuple[tuple[Coupling, ...], list[str]]:
    kinds = {joint.name: joint.kind for joint in urdf.joints.values()}
    movable = {name for name, kind in kinds.items() if kind in ("revolute", "continuous", "prismatic")}
    known = [mimic for mimic in mimics if mimic.of in kinds]  # the others have a note of their own
    try:
        return couplings_of(known, movable, {name for name, kind in kinds.items() if kind == "fixed"})
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None


def _inertias(urdf: Urdf) -> tuple[dict[str, Array], list[str]]:
    """Spatial inertias of all links about their own frames, with a note of those that cannot be.

    They are not refused here: published robots have such links, and joined to their carrier, or fixed to
    the world, they may do no harm. The system judges each body as a whole.
    """
    links = list(urdf.links.values())
    R = rotation_from_rpy([link.rpy for link in links])
    moments = np.array([link.moments for link in links])[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    turned = R @ moments @ np.swapaxes(R, -1, -2)
    J = 0.5 * (turned + np.swapaxes(turned, -1, -2))
    M6 = spatial_inertia([link.mass for link in links], [link.xyz for link in links], J)
    principal = np.linalg.eigvalsh(J)
    size = principal[:, 2] * (1 + ROUNDING)
    # Positive mass has 0 <= J1 <= J2 <= J3 <= J1 + J2.
    odd = (principal[:, 0] < -ROUNDING * np.abs(principal[:, 2])) | (
        size - principal[:, 0] - principal[:, 1] > 2 * ROUNDING * size
    )
    names = [links[k].name for k in np.flatnonzero(odd)]
    notes = [f"principal moments of inertia that no positive mass has: links {listed(names)}"] if names else []
    return dict(zip(urdf.links, M6)), notes


def _with_line(
    source: str, urdf: Urdf, bodies: list[Body], indefinite_inertia: Literal["refuse", "warn"], error: KfdynError
) -> KfdynError:
    """Say where in the file the body is that the system refused."""
    for body in bodies:
        try:
            validate_inertia(body.inertia, body.name, indefinite_inertia=indefinite_inertia)
        except KfdynError as fault:
            line = urdf.links[body.name].line
            return type(fault)(f"{source}:{line}: link (with all that is merged into it) {fault}")
    return type(error)(f"{source}: {error}")


def _bodies(
    urdf: Urdf, roots: list[str], order: list[Joint], inertia: dict[str, Array], floating_base: bool
) -> Iterator[Body]:
    """Every link as a body, roots first in their trees, fixed hinges included."""
    taken = {joint.name for joint in order}
    for root in roots:
        name = FLOATING_BASE if len(roots) == 1 else f"{FLOATING_BASE}:{root}"
        while name in taken:
            name += "_"
        yield Body(root, inertia[root], Hinge.free() if floating_base else None, hinge_name=name)
    for joint, rotation in zip(order, rotation_from_rpy(np.array([joint.rpy for joint in order]).reshape(-1, 3))):
        yield Body(
            joint.child,
            inertia[joint.child],
            _hinge(joint),
            joint.parent,
            rotation if any(joint.rpy) else IDENTITY,
            joint.xyz,
            joint.name,
            armature=joint.armature,
            damping=joint.damping,
            stiffness=joint.stiffness,
            lower=joint.lower,
            upper=joint.upper,
            speed=joint.speed,
            effort=joint.effort,
            friction=joint.friction,
        )


def _hinge(joint: Joint) -> Hinge:
    if joint.kind in ("revolute", "continuous"):
        return Hinge.revolute(joint.axis)
    if joint.kind == "prismatic":
        return Hinge.prismatic(joint.axis)
    if joint.kind == "planar":
        return Hinge.planar(*planar_axes(joint.axis))
    return Hinge.free() if joint.kind == "floating" else Hinge.fixed()


def planar_axes(normal: ArrayLike) -> tuple[Array, Array]:
    """Two directions that span the plane normal to ``normal`` (3,), right-handed: x, y for the normal z.

    URDF fixes the plane alone. The first direction is the next axis of the joint frame, cyclically, after
    the one nearest to the normal, made orthogonal to it.
    """
    n = np.asarray(normal, dtype=float)
    n = n / np.linalg.norm(n)
    first = np.eye(3)[(int(np.abs(n).argmax()) + 1) % 3]
    first = first - n * (n @ first)
    first /= np.linalg.norm(first)
    return first, np.cross(n, first)


def _without_roots(bodies: list[Body], roots: list[str]) -> Merged:
    """Keep fixed hinges, but not the root links: fixed to the world, they are the world."""
    gone = set(roots)
    kept = [replace(body, parent=None) if body.parent in gone else body for body in bodies if body.name not in gone]
    frames: dict[str, Frame] = {}
    return Merged(kept, frames, {root: Pose(IDENTITY, np.zeros(3)) for root in roots})
