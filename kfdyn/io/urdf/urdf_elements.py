"""The links and joints of a URDF file, and the tree that they make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from kfdyn.errors import KfdynError, ModelError, TreeError
from kfdyn.io.load_result import Mimic
from kfdyn.io.source import Source
from kfdyn.io.xml_reader import ZERO, Element, ElementReader, Vector, read_elements

JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
KEPT = {"inertial", "origin", "mass", "inertia", "parent", "child", "axis", "limit", "dynamics", "mimic"}
MAX_LINKS = 200_000
XACRO = "xacro:"


@dataclass(slots=True)
class Link:
    """A link and its inertial; ``moments`` are (ixx, ixy, ixz, iyy, iyz, izz) in the inertial's own frame."""

    name: str
    line: int
    mass: float = 0.0
    xyz: Vector = ZERO
    rpy: Vector = ZERO
    moments: Vector = (0.0,) * 6


@dataclass(slots=True)
class Joint:
    """A joint: where it sits in the parent link, how it moves, and its data."""

    name: str
    line: int
    kind: str
    parent: str
    child: str
    xyz: Vector
    rpy: Vector
    axis: Vector
    lower: float
    upper: float
    speed: float
    effort: float
    damping: float
    friction: float
    armature: float
    stiffness: float
    mimic: Mimic | None
    limited: bool


class Urdf(NamedTuple):
    """A file's links and joints in its order, and its name for the robot."""

    name: str
    links: dict[str, Link]
    joints: dict[str, Joint]
    notes: list[str]


def read_urdf(source: Source) -> Urdf:
    """Read the links and joints of a URDF file; everything else (meshes, transmissions, plugins) is passed over."""
    elements = read_elements(source.data, source.name, _kept, source.encoding)
    root = next(elements)
    urdf = Urdf(root.attributes.get("name") or "robot", {}, {}, [])
    for element in elements:
        _Reader(source.name, element, urdf).read()
        if len(urdf.links) > MAX_LINKS or len(urdf.joints) > MAX_LINKS:
            raise ModelError(f"{source.name}:{element.line}: more than {MAX_LINKS} links or joints; load it in parts")
    if not urdf.links:
        raise ModelError(f"{source.name}:{root.line}: <robot> has no links; a robot needs at least one")
    return urdf


def _kept(tag: str) -> bool:
    return tag in KEPT or tag.startswith(XACRO)


class _Reader(ElementReader):
    """Reads one link or joint into the file's record."""

    def __init__(self, source: str, owner: Element, urdf: Urdf) -> None:
        super().__init__(source, owner, urdf.notes)
        self.urdf = urdf

    def read(self) -> None:
        tag = self.owner.tag
        for element in (self.owner, *self.owner.children):
            if element.tag.startswith(XACRO):
                raise self.fault(
                    f"<{element.tag}> is xacro, a macro language and not URDF; expand the file first: "
                    "xacro robot.urdf.xacro > robot.urdf",
                    element,
                )
        if tag == "link":
            self.link()
        elif tag == "joint":
            self.joint()

    def link(self) -> None:
        name = self.name()
        if name in self.urdf.links:
            raise self.twice("link", name, self.urdf.links[name].line)
        link = self.urdf.links[name] = Link(name, self.owner.line)
        inertial = self.only("inertial")
        if inertial is None:
            return
        mass, inertia = inertial.find("mass"), inertial.find("inertia")
        if mass is None:
            raise self.fault("has no <mass value=.../>; add it, or leave the inertial out", inertial)
        link.mass = self.scalar(mass, "value")
        if link.mass < 0:
            raise self.fault(f"mass {link.mass:.6g} is negative; a link needs mass >= 0", mass)
        link.xyz, link.rpy = self.origin(inertial)
        if inertia is None:
            raise self.fault("has no <inertia ixx=... />; add it (zeros for a point mass)", inertial)
        link.moments = tuple(self.scalar(inertia, key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))

    def joint(self) -> None:
        name = self.name()
        if name in self.urdf.joints:
            raise self.twice("joint", name, self.urdf.joints[name].line)
        kind = self.owner.attributes.get("type", "")
        if kind not in JOINT_TYPES:
            raise self.fault(f"type {kind[:60]!r} is none of URDF's: {', '.join(JOINT_TYPES)}")
        xyz, rpy = self.origin(self.owner)
        axis = self.vector(self.only("axis"), "xyz", (1.0, 0.0, 0.0))
        if kind not in ("fixed", "floating"):
            size = math.sqrt(sum(x * x for x in axis))
            if not 1e-150 < size < 1e150:
                raise self.fault(f"axis {axis} has no direction; give a vector such as '0 0 1'", self.only("axis"))
            axis = tuple(x / size for x in axis)
        lower, upper, speed, effort = self.limits(kind)
        data = self.only("dynamics")
        damping, friction, armature, stiffness = (
            0.0 if data is None else self.nonnegative(data, key, 0.0)
            for key in ("damping", "friction", "armature", "stiffness")
        )
        self.urdf.joints[name] = Joint(
            name,
            self.owner.line,
            kind,
            self.ends("parent"),
            self.ends("child"),
            xyz,
            rpy,
            axis,
            lower,
            upper,
            speed,
            effort,
            damping,
            friction,
            armature,
            stiffness,
            self.mimic(name),
            self.only("limit") is not None,
        )

    def limits(self, kind: str) -> tuple[float, float, float, float]:
        """Return lower, upper, speed and effort; a missing lower or upper is 0, says URDF, if there is a limit."""
        limit = self.only("limit")
        if limit is None or kind == "fixed":
            return -math.inf, math.inf, math.inf, math.inf
        speed, effort = (self.unlimited(self.nonnegative(limit, key, math.inf)) for key in ("velocity", "effort"))
        if kind not in ("revolute", "prismatic"):
            return -math.inf, math.inf, speed, effort
        lower, upper = (self.unlimited(self.scalar(limit, key, 0.0, infinite=True)) for key in ("lower", "upper"))
        if lower > upper:
            self.urdf.notes.append(
                f"line {limit.line}: {self.owned}: its lower limit {lower:.6g} lies "
                f"above the upper {upper:.6g}, so it is taken as unlimited"
            )
            return -math.inf, math.inf, speed, effort
        return lower, upper, speed, effort

    def mimic(self, name: str) -> Mimic | None:
        element = self.only("mimic")
        if element is None:
            return None
        of = element.attributes.get("joint")
        if not of:
            raise self.fault("names no joint to follow; give joint='...'", element)
        return Mimic(name, of, self.scalar(element, "multiplier", 1.0), self.scalar(element, "offset", 0.0))

    def name(self) -> str:
        name = self.owner.attributes.get("name")
        if not name:
            raise self.fault("has no name; give it one")
        return name

    def twice(self, what: str, name: str, line: int) -> KfdynError:
        return self.fault(f"there is a {what} of this name in line {line} already; names must differ", kind=TreeError)

    def ends(self, which: str) -> str:
        element = self.only(which)
        link = None if element is None else element.attributes.get("link")
        if not link:
            raise self.fault(f"has no <{which} link='...'/>; name the {which} link", element)
        return link


def outward(urdf: Urdf, source: str) -> tuple[list[str], list[Joint]]:
    """Return the root links, and the joints outward, depth first, in the file's order; O(links + joints)."""
    above: dict[str, Joint] = {}
    below: dict[str, list[Joint]] = {name: [] for name in urdf.links}
    for joint in urdf.joints.values():
        for which, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in urdf.links:
                raise _unknown(source, joint, f"its {which} link is", link, list(urdf.links))
        if joint.child in above:
            other = above[joint.child]
            raise TreeError(
                f"{source}:{joint.line}: link {joint.child!r} is the child of joint {joint.name!r} and of joint "
                f"{other.name!r} in line {other.line}; a tree has one: cut the loop at one of them"
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [name for name in urdf.links if name not in above]
    order: list[Joint] = []
    stack = [joint for root in reversed(roots) for joint in reversed(below[root])]
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(reversed(below[joint.child]))
    if len(order) < len(urdf.joints):
        raise TreeError(_loop(source, above, {joint.name for joint in order}))
    return roots, order


def _loop(source: str, above: dict[str, Joint], reached: set[str]) -> str:
    """Walk inboard from a joint that no root reaches until a link repeats."""
    joint = next(joint for joint in above.values() if joint.name not in reached)
    seen: dict[str, None] = {}
    while joint.child not in seen:
        seen[joint.child] = None
        joint = above[joint.parent]
    names = list(seen)
    names = names[names.index(joint.child) :]
    path = " -> ".join([*names[:8], *(["..."] if len(names) > 8 else []), names[0]])
    return f"{source}:{joint.line}: the parents go in a loop: {path}; give one of these links another parent"


def _unknown(source: str, joint: Joint, what: str, name: str, known: list[str]) -> TreeError:
    close = get_close_matches(name, known[:1000], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "; add it, or correct the name"
    return TreeError(
        f"{source}:{joint.line}: joint {joint.name!r}: {what} {name[:100]!r}, which is not in the file{hint}"
    )
