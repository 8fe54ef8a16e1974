"""System → URDF text, which :func:`kfdyn.load` and other tools read back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.io.load_result import Loaded, Mimic
from kfdyn.io.urdf.load_urdf import planar_axes
from kfdyn.multibody import Body, System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid
from kfdyn.multibody.parts.coupling import told
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.multibody.system import PER_DOF
from kfdyn.spatial import inertia_parameters

LARGEST = float(np.finfo(float).max)  # what other tools read and write where there is no limit
# Characters that XML 1.0 cannot hold, not even escaped.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def save_urdf(system: System | Loaded, path: str | os.PathLike[str] | None = None) -> str:
    """Write a system as URDF.

    Parameters
    ----------
    system : System or Loaded
        A :class:`Loaded` brings its mimic joints along.
    path
        Write to this file as well.

    Returns
    -------
    str
        The text. ``load`` makes of it a system with the same hinges, q, v and dynamics.

    Raises
    ------
    ModelError
        Naming the hinge, for what URDF cannot say: ball, helical and custom hinges, data that differ among the
        dofs of a free hinge, loops, couplings in which a hinge follows several others, and
        bodies that bend.

    Notes
    -----
    The root link ``world`` carries the roots. A frame becomes a link without mass on a fixed joint. A hinge
    of several dofs (universal, gimbal, cylindrical, ...) becomes as many joints with links without mass
    between them, the partition of PART section 2: the same q and v, hinges of more names. Armature and
    stiffness are written as attributes of ``<dynamics>`` that other tools pass over. URDF has no gravity;
    give it to ``load``.

    Examples
    --------
    >>> from kfdyn.io import load
    >>> from kfdyn.multibody.models import double_pendulum
    >>> load(save_urdf(double_pendulum())).hinge_names
    ('shoulder', 'elbow')
    """
    if not isinstance(system, Loaded):
        expect_system(system)
        system = Loaded(system, system.name)
    loaded = system
    expect_rigid(loaded.system, "URDF")
    text = "\n".join(_Writer(loaded).lines()) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


class _Writer:
    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.system = loaded, loaded.system.open_tree
        self.links = {*self.system.body_names, *self.system.frames}
        self.joints = set(self.system.hinge_names)
        self.mimic = {mimic.hinge: mimic for mimic in (*_mimics(loaded.system), *loaded.mimics)}

    def lines(self) -> Iterator[str]:
        system = self.system
        world = _fresh("world", self.links)
        yield '<?xml version="1.0" encoding="utf-8"?>'
        yield _tag("robot", {"name": system.name}, "")
        yield _tag("link", {"name": world})
        ten = inertia_parameters(np.stack([body.inertia for body in system.bodies]))
        for body, parameters in zip(system.bodies, zip(*ten)):
            yield from _link(body, *parameters)
            yield from self.body(body, body.parent or world)
        for name, frame in system.frames.items():
            yield _tag("link", {"name": name})
            joint = _fresh(f"{name}:fixed", self.joints)
            step = Step("fixed", np.asarray(frame.rotation), np.asarray(frame.position))
            yield from self.joint(joint, step, frame.body, name, {})
        yield "</robot>"

    def body(self, body: Body, parent: str) -> Iterator[str]:
        """Write the joints that a body's hinge is made of."""
        chain = steps(body)
        for i, step in enumerate(chain):
            last = i == len(chain) - 1
            child = body.name if last else _fresh(f"{body.name}:{i}", self.links)
            # The hinge's own name goes to its last joint that moves.
            own = body.hinge.nv == 0 or (step.dofs.stop == body.hinge.nv and step.kind != "fixed")
            name = body.hinge_name if own else _fresh(f"{body.hinge_name}:{i}", self.joints)
            if not last:
                yield _tag("link", {"name": child})
            yield from self.joint(name, step, parent, child, _data(body, step))
            parent = child

    def joint(self, name: str, step: Step, parent: str, child: str, data: Mapping[str, float]) -> Iterator[str]:
        """Write one joint."""
        limits = {key: data[key] for key in ("lower", "upper", "velocity", "effort") if key in data}
        dynamics = {key: data[key] for key in PER_DOF if data.get(key)}
        if dynamics:
            dynamics.setdefault("damping", 0.0)  # other readers refuse <dynamics> with neither damping nor friction
        kind = step.kind
        if kind == "revolute" and not np.isfinite([limits["lower"], limits["upper"]]).any():
            kind = "continuous"
        if kind not in ("revolute", "prismatic"):
            limits = {key: limits[key] for key in ("velocity", "effort") if np.isfinite(limits.get(key, np.inf))}
        yield "  " + _tag("joint", {"name": name, "type": kind}, "").lstrip()
        yield "  " + _tag("parent", {"link": parent})
        yield "  " + _tag("child", {"link": child})
        yield "  " + _tag("origin", {"xyz": _numbers(step.position), "rpy": _numbers(_rpy(step.rotation))})
        if step.axis is not None:
            yield "  " + _tag("axis", {"xyz": _numbers(step.axis)})
        if limits:
            yield "  " + _tag("limit", {key: repr(min(max(x, -LARGEST), LARGEST)) for key, x in limits.items()})
        if dynamics:
            yield "  " + _tag("dynamics", {key: repr(x) for key, x in dynamics.items()})
        if name in self.mimic:
            _, of, multiplier, offset, curve = self.mimic[name]
            if curve or not of:
                raise ModelError(f"mimic joint {name!r}: URDF knows only joints that follow one other joint by a line")
            yield "  " + _tag("mimic", {"joint": of, "multiplier": repr(multiplier), "offset": repr(offset)})
        yield "  </joint>"


def _mimics(system: System) -> Iterator[Mimic]:
    """The couplings of a system as URDF can say them; loops it cannot."""
    expect_no_loops(system, "save", "URDF has no loops; save system.open_tree, or system.without_loops")
    for coupling in system.couplings:
        if coupling.curves or not coupling.is_selection or coupling.size != 1:
            raise ModelError(
                f"the coupling of {told(coupling.hinges)}: URDF knows only joints that follow one other joint by a "
                "line; save system.open_tree"
            )
        driver, *followers = coupling.hinges
        for name, x, offset in zip(followers, coupling.X[1:, 0], coupling.offset[1:]):
            yield Mimic(name, driver, float(x), float(offset))


def _link(body: Body, mass: float, com: Array, J: Array) -> Iterator[str]:
    if not body.inertia.any():
        yield _tag("link", {"name": body.name})
        return
    moments = {
        f"i{a}{b}": repr(float(J["xyz".index(a), "xyz".index(b)])) for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
    }
    yield _tag("link", {"name": body.name}, "")
    yield "    <inertial>"
    yield "    " + _tag("mass", {"value": repr(float(mass))})
    yield "    " + _tag("origin", {"xyz": _numbers(com)})
    yield "    " + _tag("inertia", moments)
    yield "    </inertial>"
    yield "  </link>"


def _data(body: Body, step: Step) -> dict[str, float]:
    """Limits and dynamics of the dofs of one joint, which URDF says with one number each."""
    names = {"speed": "velocity"}
    out = {}
    for key in ("lower", "upper", "speed", "effort", *PER_DOF):
        values = list(set(getattr(body, key)[step.dofs].tolist()))
        if len(values) > 1:
            raise ModelError(
                f"hinge {body.hinge_name!r}: its dofs differ in {key}, for which URDF has one number per joint"
            )
        if len(values):
            out[names.get(key, key)] = values[0]
    return out


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _tag(tag: str, attributes: Mapping[str, str], end: str = "/") -> str:
    for value in attributes.values():
        if FORBIDDEN.search(value):
            raise ModelError(f"{value!r} holds a character that XML has no way to write; rename it")
    told = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return ("" if tag == "robot" else "  ") + f"<{tag}{told}{end}>"


def _numbers(values: ArrayLike | Sequence[float]) -> str:
    return " ".join(repr(float(x) + 0.0) for x in np.asarray(values))


def _rpy(R: Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw by Givens rotations, so that they give R back to rounding at every pitch."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return float(roll), float(pitch), float(yaw)


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
