"""Mimic joints and MuJoCo's equality constraints as couplings and loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.io.loaded import Mimic, listed
from kfdyn.io.mjcf_bodies import W_LAST, MjBodies, MjNames
from kfdyn.multibody import Coupling, Frame, Loop, Pose
from kfdyn.spatial import quaternion_to_matrix

#: What a hinge follows that is locked where it is.
NOTHING = ""

NO_EQUALITIES = 1 << 0 | 1 << 1  # mjtDisableBit: all constraints, or equalities alone


def check_choice(mimic: str) -> None:
    """Refuse a word that load does not know."""
    if mimic not in ("obey", "free"):
        raise ModelError(f"mimic must be 'obey' or 'free', got {mimic!r}")


def couplings_of(
    mimics: Iterable[Mimic], movable: Collection[str], locked: Collection[str] = ()
) -> tuple[tuple[Coupling, ...], list[str]]:
    """One coupling for each hinge that others follow, through chains of followers; and notes on what is left free.

    ``movable`` are hinges of one dof; ``locked`` are fixed ones, whose followers stand still at their offset, and so do
    those of :data:`NOTHING`. Polynomials that follow polynomials are nested, and composed where one is a line.
    """
    rule: dict[str, Mimic] = {}
    groups: dict[str | None, dict[str, Nested]] = {}
    lost, again = [], []
    for mimic in mimics:
        if mimic.hinge in movable:
            again += [mimic.hinge] * (mimic.hinge in rule)
            rule.setdefault(mimic.hinge, mimic)
    for name in rule:
        of, function, seen = name, Nested(()), [name]
        while of in rule:  # q(name) = function of q(of)
            step = rule[of]
            function, of = function.after(np.array([step.offset, step.multiplier, *step.curve])), step.of
            if of in seen:
                loop = " -> ".join([*seen[seen.index(of) :], of])
                raise ModelError(f"mimic joints follow each other in a circle: {loop}; let one of them be free")
            seen.append(of)
        if of in movable:
            groups.setdefault(of, {})[name] = function
        elif of in (*locked, NOTHING):
            groups.setdefault(None, {})[name] = function
        else:
            lost.append(name)
    couplings = []
    for driver, followers in groups.items():
        if driver is None:
            at_rest = [float(function(np.zeros(()))) for function in followers.values()]
            couplings.append(Coupling(tuple(followers), np.zeros((len(followers), 0)), at_rest))
        else:
            couplings.append(Coupling.by_functions(driver, {name: f.simplest for name, f in followers.items()}))
    notes = [f"mimic joints move freely, what they follow has not one dof: {listed(lost)}"] if lost else []
    if again:
        notes.append(f"joints that follow several others follow the first alone: {listed(again)}")
    return tuple(couplings), notes


def _composed(outer: Array, inner: Array) -> Array:
    """Coefficients of outer(inner(s)), both polynomials in ascending powers."""
    out = outer[-1:]
    for x in outer[-2::-1]:
        out = np.convolve(out, inner)
        out[0] += x
    return out


class Nested(NamedTuple):
    """A polynomial of a polynomial of …, the outermost first, evaluated one in the other.

    Their composition has the degree 4ⁿ and coefficients that cancel: of four Chebyshev polynomials T₄ it has no digit
    left in [−1, 1]. It is made where one of two is a line, which leaves the degree as it is.
    """

    polynomials: tuple[Array, ...]

    def after(self, inner: Array) -> Nested:
        """Return this function of ``inner``."""
        inner = inner[: max(2, int(np.flatnonzero(inner).max(initial=0)) + 1)]
        if self.polynomials and min(len(self.polynomials[-1]), len(inner)) <= 2:
            return Nested((*self.polynomials[:-1], _composed(self.polynomials[-1], inner)))
        return Nested((*self.polynomials, inner))

    @property
    def simplest(self) -> Array | Nested:
        """Coefficients where there is one polynomial, else itself: what a Coupling by functions takes."""
        return self.polynomials[0] if len(self.polynomials) == 1 else self

    def derivative(self, order: int) -> Callable[[Array], Array]:
        """Return the derivative of so high an order, at most three, as a function."""
        return partial(self.__call__, order=order)

    def __call__(self, s: Array, order: int = 0) -> Array:
        """f(s), or a derivative: Faà di Bruno's formula from the innermost outward."""
        s = np.asarray(s, float)
        x, x1, x2, x3 = s, np.ones(s.shape), np.zeros(s.shape), np.zeros(s.shape)
        for c in self.polynomials[::-1]:
            p = np.polynomial.Polynomial(c)
            y1, y2, y3 = (p.deriv(k)(x) for k in (1, 2, 3))
            x3 = y3 * x1**3 + 3 * y2 * x1 * x2 + y1 * x3
            x, x1, x2 = p(x), y1 * x1, y2 * x1**2 + y1 * x2
        return (x, x1, x2, x3)[order]


class MjEqualities(NamedTuple):
    """What of a MuJoCo model's equality constraints a System has a place for."""

    mimics: tuple[Mimic, ...]
    loops: tuple[Loop, ...]
    frames: dict[str, Frame]
    left: list[str]


def read_equalities(
    model: Any, names: MjNames, reader: MjBodies, frames: Mapping[str, Frame], world: Mapping[str, Pose]
) -> MjEqualities:
    """Joint equalities as mimics, ``connect`` and ``weld`` as loops; the rest is counted among ``left``."""
    mimics, loops, added, left = [], [], {}, []
    taken = {*frames, *world, *names.body}
    CONNECT, WELD, JOINT = 0, 1, 2  # mjtEq
    switched_off = model.opt.disableflags & NO_EQUALITIES
    for e in range(model.neq):
        kind, data = int(model.eq_type[e]), np.array(model.eq_data[e], float)
        one, two = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        if switched_off or not model.eq_active0[e]:
            left.append(f"equality {e}, which is not active")
        elif kind == JOINT:
            c = data[:5].tolist() if two >= 0 else [float(data[0]), 0.0]  # without a second joint: locked
            curve = tuple(c[2:]) if any(c[2:]) else ()
            mimics.append(Mimic(names.joint[one], names.joint[two] if two >= 0 else NOTHING, c[1], c[0], curve))
        elif kind in (CONNECT, WELD):
            places = _places(model, e, kind == WELD, one, two, data)
            ends: list[str | None] = []
            anchor = None
            for i, (body, R, p) in enumerate(places):
                host = _host(reader, frames, world, names, body)
                if isinstance(host, Pose):
                    ends.append(None)
                    anchor = (host.rotation @ R, host.position + host.rotation @ p)
                    continue
                label = f"equality{e}:{'ab'[i]}"
                while label in taken:
                    label += "_"
                taken.add(label)
                added[label] = Frame(host.body, np.asarray(host.rotation) @ R, _at(host, p))
                ends.append(label)
            if any(ends):
                loops.append(Loop(ends[0], ends[1], "pose" if kind == WELD else "point", anchor, f"equality {e}"))
        else:
            left.append(f"equality {e}")
    return MjEqualities(tuple(mimics), tuple(loops), added, left)


def _at(host: Frame, p: Array) -> Array:
    return np.asarray(host.position) + np.asarray(host.rotation) @ p


def _places(model: Any, e: int, weld: bool, one: int, two: int, data: Array) -> list[tuple[int, Array, Array]]:
    """MuJoCo body, rotation and position of both ends."""
    site = 6  # mjOBJ_SITE
    if int(model.eq_objtype[e]) == site:
        return [
            (int(model.site_bodyid[s]), quaternion_to_matrix(model.site_quat[s][W_LAST]), np.array(model.site_pos[s]))
            for s in (one, two)
        ]
    if not weld:
        return [(one, np.eye(3), data[:3]), (two, np.eye(3), data[3:6])]
    # the anchor of body 2 is where relpose puts it in body 1
    return [(one, quaternion_to_matrix(data[6:10][W_LAST]), data[3:6]), (two, np.eye(3), data[:3])]


def _host(
    reader: MjBodies, frames: Mapping[str, Frame], world: Mapping[str, Pose], names: MjNames, body: int
) -> Frame | Pose:
    """The frame of a MuJoCo body on a body of ours, or its pose in the world."""
    if body == 0:
        return Pose(np.eye(3), np.zeros(3))
    carrier = reader.carrier[body]
    assert carrier is not None
    shift = -reader.shift[body]
    if carrier in world:
        pose = world[carrier]
        return Pose(pose.rotation, pose.position + pose.rotation @ shift)
    if carrier in frames:
        host = frames[carrier]
        return Frame(host.body, host.rotation, _at(host, shift))
    return Frame(carrier, np.eye(3), shift)
