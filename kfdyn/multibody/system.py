"""System: a forest of bodies, validated once, immutable, and packed for compiled sweeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, as_list
from kfdyn.multibody.calls.layout import Layout, pack
from kfdyn.multibody.coordinates.configuration import drawn_of_tree
from kfdyn.multibody.coordinates.constrained import PER_DOF, Constrained
from kfdyn.multibody.coordinates.expansion import Expansion, Places, Same, expansion_of
from kfdyn.multibody.coordinates.lookup import Lookup
from kfdyn.multibody.coordinates.open_tree_state import Opened
from kfdyn.multibody.loops.loop import Loop
from kfdyn.multibody.parts.body import IDENTITY, Body, Frame, read_only
from kfdyn.multibody.parts.coupling import Coupling
from kfdyn.multibody.parts.origin import Origin
from kfdyn.multibody.parts.system_validation import (
    expect_couplings,
    expect_loops,
    expect_rigid_bodies,
    numbered,
    parents_first,
    placed_frames,
)
from kfdyn.multibody.system_text import as_html, as_text
from kfdyn.spatial import TriangleInequalityWarning

EARTH = (0.0, 0.0, -9.81)
#: Of each dof, beside what it has.
LIMITS = ("lower", "upper", "speed", "effort")
#: Where kinds of systems that compiled code knows keep the address of what was prepared.
SLOTS = {"tree": "address", "geared": "gears", "curved": "cams"}


class System(Lookup, Opened):
    """Bodies joined by hinges to a tree or a forest; the world is not a body.

    Parameters
    ----------
    bodies
        In any order; their order is the order of bodies, hinges, q and v everywhere.
    gravity : (3,)
        Acceleration of gravity in the world.
    frames
        Named frames fixed to bodies, usable wherever a body's name is.
    name
        For people.
    indefinite_inertia : {"refuse", "warn"}
        Whether a body with a negative principal moment of inertia is an error or gets an
        :class:`~kfdyn.spatial.IndefiniteInertiaWarning`. Some published robots have one. Mass matrix and inverse
        dynamics, sums of inertias, take it as it is; forward dynamics has an answer only where the mass matrix is
        positive definite nevertheless; and nothing can be drawn from a covariance that is none.
    couplings : sequence of Coupling
        Gears, belts, mimic joints, differentials: hinges that share fewer coordinates.
    loops : sequence of Loop
        Closed loops and contacts; they leave the coordinates as they are. :meth:`with_loops` adds some.

    Attributes
    ----------
    nq, nv, n_bodies : int
        Sizes of q and v, which have the independent coordinates of coupled hinges only, and number of bodies (fixed
        hinges included).
    is_tree : bool
        Whether there are neither couplings nor loops.
    open_tree : System
        The same bodies without couplings and loops.
    body_names, hinge_names : tuple of str
        One each per body.
    dof_names : tuple of str
        One for each entry of v.
    parent : (n_bodies,)
        Index of each body's parent, −1 at a root.
    armature, damping, stiffness, friction, lower, upper, speed, effort : (nv,)
        The bodies' entries, stacked as v is. With couplings, the limits of a coordinate are the tightest that its
        hinges leave it (effort: the limit of the hinge it is named after); armature, damping and stiffness are then
        the diagonal of X*RX, and refused with an error where that is a full matrix, as a differential's is; friction
        adds up with the sizes of X, and is refused where a hinge that has some moves with several coordinates.
    mass : float
        Of all bodies.
    origin : Origin or None
        The file or text it was read from, by which other tools can be asked about the same robot; None if it was built.
    is_specialised : bool
        Whether calls may use code compiled for this system alone (:func:`~kfdyn.specialise`).
    layout : Layout
        The same facts as flat arrays for compiled code.
    address : int
        Where compiled code finds, in this process, what it has prepared of a tree; 0 before it has.
    gears, cams : int
        The same of a system with couplings: where X is constant, and where hinges follow polynomials.

    Examples
    --------
    >>> from kfdyn.multibody.models import double_pendulum
    >>> system = double_pendulum()
    >>> system.nv, system.hinge_names, system.v_slice("elbow")
    (2, ('shoulder', 'elbow'), slice(1, 2, None))
    """

    __slots__ = (
        "_expansion",
        "_frame",
        "_hinge",
        "_kept",
        "address",
        "armature",
        "bodies",
        "body_names",
        "cams",
        "couplings",
        "damping",
        "effort",
        "frames",
        "friction",
        "gears",
        "gravity",
        "hinge_names",
        "indefinite_inertia",
        "is_specialised",
        "kind",
        "layout",
        "loops",
        "lower",
        "mass",
        "n_bodies",
        "name",
        "nq",
        "nv",
        "origin",
        "parent",
        "speed",
        "stiffness",
        "upper",
    )

    is_tree = True
    hinge_names: tuple[str, ...]
    gravity: Array
    armature: Array
    damping: Array
    stiffness: Array
    friction: Array
    lower: Array
    upper: Array
    speed: Array
    effort: Array
    indefinite_inertia: Literal["refuse", "warn"]
    mass: float
    layout: Layout
    n_bodies: int
    nq: int
    origin: Origin | None
    parent: NDArray[np.int64]
    address: int
    gears: int
    cams: int
    kind: str
    couplings: tuple[Coupling, ...]
    loops: tuple[Loop, ...]
    is_specialised: bool
    _expansion: Expansion
    _kept: tuple[object, ...]

    def __new__(
        cls,
        bodies: Iterable[Body],
        gravity: ArrayLike = EARTH,
        frames: Mapping[str, Frame] | None = None,
        name: str = "system",
        *,
        indefinite_inertia: Literal["refuse", "warn"] = "refuse",
        couplings: Iterable[Coupling] = (),
        loops: Iterable[Loop] = (),
    ) -> System:
        """Make a system of the kind that its couplings and loops ask for."""
        couplings = as_list(couplings, f"system {name!r}: couplings", "write [kf.Coupling(...), ...]")
        loops = as_list(loops, f"system {name!r}: loops", "write [kf.Loop(...), ...]")
        tree = object.__new__(System)
        tree._build(bodies, gravity, frames, name, indefinite_inertia)
        return tree._with(couplings, loops)

    def _build(
        self,
        bodies: Iterable[Body],
        gravity: ArrayLike,
        frames: Mapping[str, Frame] | None,
        name: str,
        indefinite_inertia: Literal["refuse", "warn"],
    ) -> None:
        put = super().__setattr__
        put("kind", "tree")
        put("is_specialised", False)
        put("couplings", ())
        put("loops", ())
        put("name", name)
        put("indefinite_inertia", indefinite_inertia)
        if isinstance(bodies, Body):
            raise ModelError(f"system {name!r}: bodies are a list, and body {bodies.name!r} is one; write [body]")
        put("bodies", as_list(bodies, f"system {name!r}: bodies", "write [kf.Body(...), ...]"))
        expect_rigid_bodies(name, self.bodies)
        put("n_bodies", len(self.bodies))
        put("gravity", read_only(gravity, (3,), f"system {name!r}: gravity"))
        put("body_names", tuple(body.name for body in self.bodies))
        put("hinge_names", tuple(body.hinge_name for body in self.bodies))
        index = numbered(self.body_names, "body")
        put("_hinge", numbered(self.hinge_names, "hinge"))
        order, parent = parents_first(self.bodies, index)
        put("parent", parent)
        put("layout", pack(self.bodies, order, parent, indefinite_inertia))
        put("address", 0)
        put("origin", None)
        put("_expansion", Same(self.places))
        put("nq", self._expansion.nq)
        put("nv", self._expansion.nv)
        put("mass", float(self.layout.mass.sum()))
        for key in (*PER_DOF, *LIMITS):
            flat = np.concatenate([getattr(body, key) for body in self.bodies])
            flat.flags.writeable = False
            put(key, flat)
        placed, at_origin = placed_frames(frames or {}, index), np.zeros(3)
        put("frames", MappingProxyType({key: Frame(self.body_names[k], R, p) for key, (k, R, p) in placed.items()}))
        put("_frame", {b.name: (k, IDENTITY, at_origin) for k, b in enumerate(self.bodies)} | placed)

    @property
    def open_tree(self) -> System:
        """The same bodies without couplings and loops; the system itself if it has none."""
        return self

    #: Leading axes that all states have: of one robot none (see :class:`~kfdyn.SystemBatch`).
    robots: ClassVar[tuple[int, ...]] = ()

    @property
    def pattern(self) -> System:
        """The robot that names, hinges and coordinates are those of: the system itself."""
        return self

    @property
    def uncoupled(self) -> System:
        """:attr:`open_tree`; every kind of system has this name for what its coordinates are reduced from."""
        return self.open_tree

    @property
    def places(self) -> Places:
        """Return where the hinges of a tree are in q and v."""
        layout = self.open_tree.layout
        return Places(layout.q_start, layout.v_start, tuple(body.hinge for body in self.bodies))

    @property
    def dof_names(self) -> tuple[str, ...]:
        """One for each entry of v: the hinge's name, or "base[2]" for one of several dofs."""
        following = {name for c in self.couplings for name in c.hinges if name not in c.named}
        names: list[str] = []
        for name, body in zip(self.hinge_names, self.bodies):
            if name not in following:
                m = body.hinge.nv
                names += [name] if m == 1 else [f"{name}[{i}]" for i in range(m)]
        return tuple(names)

    @property
    def without_loops(self) -> System:
        """The same bodies and couplings without loops, in the same coordinates."""
        return self

    @property
    def constraints(self) -> str:
        """Couplings and loops in words."""
        return " and ".join(self.joined) or "no couplings or loops"

    @property
    def joined(self) -> list[str]:
        """The number of couplings and loops, in words; empty if there are none."""
        counts = ((len(self.couplings), "coupling"), (len(self.loops), "loop"))
        return [f"{n} {what}{'s' * (n > 1)}" for n, what in counts if n]

    def with_loops(self, loops: Iterable[Loop]) -> System:
        """Return the system with loops or contacts closed, beside those it has; q, v, a and tau stay the same.

        Parameters
        ----------
        loops : iterable of Loop
            What to close.

        Returns
        -------
        System

        Examples
        --------
        A double pendulum whose tip is held by the world cannot move:

        >>> import kfdyn as kf
        >>> frames = {"tip": kf.Frame("lower", position=[0, 0, -1.0])}
        >>> arm = kf.System(kf.models.double_pendulum().bodies, frames=frames)
        >>> held = arm.with_loops([kf.Loop("tip", None, rows="point")])
        >>> held.nv, abs(kf.forward_dynamics(held, [0.5, 1.0], None, [1.0, 2.0])).max() < 1e-12
        (2, np.True_)
        """
        given = as_list(loops, f"system {self.name!r}: loops", "write [kf.Loop(...), ...]")
        return LoopedSystem._on(self.without_loops, (*self.loops, *given)) if given else self

    def with_couplings(self, couplings: Iterable[Coupling]) -> System:
        """Return the system with hinges coupled, beside those that are; its loops stay.

        Parameters
        ----------
        couplings : iterable of Coupling
            What to couple.

        Returns
        -------
        System
        """
        given = as_list(couplings, f"system {self.name!r}: couplings", "write [kf.Coupling(...), ...]")
        return self.open_tree._with((*self.couplings, *given), self.loops) if given else self

    def like(self, tree: System) -> System:
        """Return the couplings and loops of this system on another tree of the same hinges and frames."""
        return tree._with(self.couplings, self.loops)

    def with_rotors(self, armature: Array) -> System:
        """Return the same system with other rotors, (nv of the open tree,); :func:`kfdyn.dynamics.with_armature`."""
        tree = self.open_tree
        start = tree.layout.v_start
        bodies = tuple(
            replace(body, armature=armature[start[k] : start[k + 1]]) if body.hinge.nv else body
            for k, body in enumerate(tree.bodies)
        )
        return self.like(rebuilt(bodies, tree.gravity, dict(tree.frames), tree.name, tree.indefinite_inertia))

    def damped(self, h: float, damping: Array, stiffness: Array) -> System:
        """Return the system with R ← R + hB + h²K: the measurement noise of an implicit step (THEORY section 6).

        ``damping`` and ``stiffness`` are those of the hinges of :attr:`open_tree`.
        """
        return self.with_rotors(self.open_tree.armature + h * damping + h**2 * stiffness)

    def _with(self, couplings: tuple[Coupling, ...], loops: tuple[Loop, ...]) -> System:
        """The same tree with couplings and loops."""
        if loops:
            return LoopedSystem._on(self._with(couplings, ()), loops)
        return CoupledSystem._on(self, couplings) if couplings else self

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"a System is immutable; build a new one to change {key!r}")

    def __delattr__(self, key: str) -> None:
        self.__setattr__(key, None)

    def __reduce__(self) -> tuple[object, ...]:
        tree = (self.bodies, self.gravity, dict(self.frames), self.name, self.indefinite_inertia)
        return rebuilt, (*tree, self.couplings, self.loops, self.origin, self.is_specialised)

    def specialised(self) -> System:
        """Return the system with leave to be compiled for; see :func:`kfdyn.specialise`."""
        tree = self.open_tree
        same = (tree.bodies, tree.gravity, dict(tree.frames), tree.name, tree.indefinite_inertia)
        own = rebuilt(*same, origin=tree.origin)
        object.__setattr__(own, "is_specialised", True)
        return self.like(own)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def remember(self, origin: Origin) -> None:
        """Remember what the system was read from."""
        super().__setattr__("origin", origin)

    def keep(self, address: int, *arrays: object) -> None:
        """Remember where compiled code finds what it has prepared of the system, and keep that alive."""
        put = super().__setattr__
        put("_kept", arrays)
        put(SLOTS[self.kind], address)

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Array:
        """Draw one q, shape (nq,).

        Within the limits where a hinge has both; else an angle in (−π, π), a slide from N(0, 1), a
        uniform rotation, a position from N(0, 1). A custom hinge is moved from neutral by a random β. Limits of
        coupled hinges bound the coordinate they share; with loops, the draw is moved onto them by
        :func:`kfdyn.assemble`.
        """
        return drawn_of_tree(self, np.random.default_rng(rng))


class ConstrainedSystem(Constrained, System):
    """A :class:`System` with couplings or loops, which its constructor makes; what is only a tree's is not set."""

    __slots__ = ("_coordinates", "_open")

    def _become(self, tree: System, **parts: Any) -> None:
        """A tree with other parts."""
        same = ("name", "indefinite_inertia", "bodies", "n_bodies", "gravity", "body_names", "hinge_names", "parent")
        for key in (*same, "mass", "frames", "origin", "is_specialised", "_frame", "_hinge"):
            object.__setattr__(self, key, getattr(tree, key))
        e = parts["_expansion"]
        for key, value in (parts | {"_open": tree, "gears": 0, "cams": 0, "nq": e.nq, "nv": e.nv}).items():
            object.__setattr__(self, key, value)


class CoupledSystem(ConstrainedSystem):
    """A system with couplings."""

    __slots__ = ()

    @classmethod
    def _on(cls, tree: System, couplings: tuple[Coupling, ...]) -> CoupledSystem:
        expect_couplings(tree.name, couplings)
        e, system = expansion_of(tree, couplings), object.__new__(cls)
        limits = {key: e.tightest(key) for key in LIMITS}
        system._become(tree, _expansion=e, kind=e.kind, couplings=couplings, loops=(), **limits)
        return system


class LoopedSystem(ConstrainedSystem):
    """A system with loops, in the coordinates of one without them."""

    __slots__ = ("_base",)

    _base: System

    @classmethod
    def _on(cls, base: System, loops: tuple[Loop, ...]) -> LoopedSystem:
        tree, system = base.open_tree, object.__new__(cls)
        expect_loops(tree, loops)
        limits = {key: getattr(base, key) for key in LIMITS}
        parts: dict[str, Any] = {"couplings": base.couplings, "loops": loops, "_base": base}
        system._become(tree, _expansion=base._expansion, kind="looped", **limits, **parts)
        return system

    @property
    def without_loops(self) -> System:
        """The same bodies and couplings without loops, in the same coordinates."""
        return self._base

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Array:
        """Draw one q, shape (nq,): a draw without loops, moved onto them."""
        from kfdyn.multibody.loops.closure import draw_closed

        rng = np.random.default_rng(rng)
        return draw_closed(self, self._base.random_configuration(rng), rng)


def rebuilt(
    bodies: tuple[Body, ...],
    gravity: Array,
    frames: dict[str, Frame],
    name: str,
    indefinite_inertia: Literal["refuse", "warn"],
    couplings: tuple[Coupling, ...] = (),
    loops: tuple[Loop, ...] = (),
    origin: Origin | None = None,
    specialised: bool = False,
) -> System:
    """Build a system again, from a pickle or with other rotors: what was to be warned of was said at the first time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TriangleInequalityWarning)
        system = System(
            bodies,
            gravity,
            frames,
            name,
            indefinite_inertia=indefinite_inertia,
            couplings=couplings,
            loops=loops,
        )
    if origin is not None:
        system.remember(origin)
    return system.specialised() if specialised else system


_rebuild = rebuilt  # as older pickles know it
