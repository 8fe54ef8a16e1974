"""System: a forest of bodies, validated once, immutable, and packed for compiled sweeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, TreeError
from kfdyn.multibody.body import IDENTITY, Body, Frame, placement, read_only
from kfdyn.multibody.coupling import Coupling, Expansion, Places
from kfdyn.multibody.hinge import Coordinates
from kfdyn.multibody.layout import Layout, pack
from kfdyn.multibody.loop import Loop
from kfdyn.multibody.origin import Origin
from kfdyn.multibody.points import PointMasses
from kfdyn.multibody.topology import parents_first
from kfdyn.spatial import TriangleInequalityWarning

Array = NDArray[np.float64]
EARTH = (0.0, 0.0, -9.81)


class System:
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
    parent : (n_bodies,)
        Index of each body's parent, −1 at a root.
    armature, damping, stiffness, lower, upper, speed, effort : (nv,)
        The bodies' entries, stacked as v is. With couplings, the limits of a coordinate are the tightest that its
        hinges leave it (effort: the limit of the hinge it is named after); armature, damping and stiffness are then
        full matrices X*RX, to be had from ``open_tree``.
    mass : float
        Of all bodies.
    origin : Origin or None
        The file or text it was read from, by which other tools can be asked about the same robot; None if it was built.
    is_specialised : bool
        Whether calls may use code compiled for this system alone (:func:`~kfdyn.specialise`).
    layout : Layout
        The same facts as flat arrays for compiled code.
    address : int
        Where compiled code finds, in this process, what it has prepared of the system; 0 before it has.

    Examples
    --------
    >>> from kfdyn.multibody.models import double_pendulum
    >>> system = double_pendulum()
    >>> system.nv, system.hinge_names, system.v_slice("elbow")
    (2, ('shoulder', 'elbow'), slice(1, 2, None))
    """

    __slots__ = (
        "_base",
        "_expansion",
        "_frame",
        "_hinge",
        "_kept",
        "_open",
        "address",
        "armature",
        "bodies",
        "body_names",
        "couplings",
        "damping",
        "effort",
        "frames",
        "gravity",
        "hinge_names",
        "indefinite_inertia",
        "is_specialised",
        "is_tree",
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

    bodies: tuple[Body, ...]
    body_names: tuple[str, ...]
    hinge_names: tuple[str, ...]
    frames: Mapping[str, Frame]
    gravity: Array
    armature: Array
    damping: Array
    stiffness: Array
    lower: Array
    upper: Array
    speed: Array
    effort: Array
    indefinite_inertia: Literal["refuse", "warn"]
    layout: Layout
    mass: float
    n_bodies: int
    name: str
    nq: int
    nv: int
    origin: Origin | None
    parent: NDArray[np.int64]
    _frame: dict[str, tuple[int, Array, Array]]
    address: int
    couplings: tuple[Coupling, ...]
    loops: tuple[Loop, ...]
    is_tree: bool
    is_specialised: bool
    _hinge: dict[str, int]
    _base: System
    _expansion: Expansion
    _open: System
    _kept: tuple[object, ...]

    def __init__(
        self,
        bodies: Iterable[Body],
        gravity: ArrayLike = EARTH,
        frames: Mapping[str, Frame] | None = None,
        name: str = "system",
        *,
        indefinite_inertia: Literal["refuse", "warn"] = "refuse",
        couplings: Iterable[Coupling] = (),
        loops: Iterable[Loop] = (),
    ) -> None:
        couplings, loops = tuple(couplings), tuple(loops)
        if couplings or loops:
            tree = System(bodies, gravity, frames, name, indefinite_inertia=indefinite_inertia)
            self._constrain(tree, couplings, loops)
            return
        put = super().__setattr__
        put("is_tree", True)
        put("is_specialised", False)
        put("couplings", ())
        put("loops", ())
        put("name", name)
        put("indefinite_inertia", indefinite_inertia)
        put("bodies", tuple(bodies))
        if not self.bodies:
            raise ModelError(f"system {name!r} has no bodies; give it at least one")
        for body in self.bodies:
            if not isinstance(body, Body):
                called = f"{body.name!r}, a {type(body).__name__}" if hasattr(body, "name") else repr(body)[:60]
                raise ModelError(
                    f"system {name!r} is of rigid bodies, each a Body, and was given {called}; bodies that bend make a "
                    "kf.FlexibleSystem"
                )
            if body.hinge.flexible is not None:
                raise ModelError(
                    f"system {name!r} is rigid, and hinge {body.hinge_name!r} is a flexible joint, whose spring is "
                    "part of the dynamics; make a kf.FlexibleSystem, or two hinges of it: joint.split(body)"
                )
        put("n_bodies", len(self.bodies))
        put("gravity", read_only(gravity, (3,), f"system {name!r}: gravity"))
        put("body_names", tuple(body.name for body in self.bodies))
        put("hinge_names", tuple(body.hinge_name for body in self.bodies))
        index = _numbered(self.body_names, "body")
        put("_hinge", _numbered(self.hinge_names, "hinge"))
        order, parent = parents_first(self.bodies, index)
        put("parent", parent)
        put("layout", pack(self.bodies, order, parent, indefinite_inertia))
        put("address", 0)
        put("origin", None)
        put("nq", int(sum(body.hinge.nq for body in self.bodies)))
        put("nv", int(sum(body.hinge.nv for body in self.bodies)))
        put("mass", float(self.layout.mass.sum()))
        for key in ("armature", "damping", "stiffness", "lower", "upper", "speed", "effort"):
            flat = np.concatenate([getattr(body, key) for body in self.bodies])
            flat.flags.writeable = False
            put(key, flat)
        at_origin = np.zeros(3)
        put("_frame", {b.name: (k, IDENTITY, at_origin) for k, b in enumerate(self.bodies)})
        fixed: dict[str, Frame] = {}
        put("frames", MappingProxyType(fixed))
        for key, frame in (frames or {}).items():
            frame = Frame(*frame)
            if key in index:
                raise ModelError(f"frame {key!r} bears the name of a body; give it another")
            if frame.body not in index:
                raise ModelError(
                    f"frame {key!r} is fixed to {frame.body!r}, which is no body" + _hint(frame.body, index)
                )
            R, p = placement(frame.rotation, frame.position, f"frame {key!r}")
            fixed[key] = Frame(frame.body, R, p)
            self._frame[key] = (index[frame.body], R, p)

    def _constrain(self, tree: System, couplings: tuple[Coupling, ...], loops: tuple[Loop, ...]) -> None:
        """Become the tree with couplings and loops; what is only a tree's (layout, address) stays unset."""
        put = super().__setattr__
        expect_kinds(tree.name, couplings, loops)
        for loop in loops:
            for end in (loop.frame_a, loop.frame_b, loop.rolling):
                if end is not None:
                    tree.locate(end)
        if loops:
            put("_base", self._of(tree, couplings, ()) if couplings else tree)
        expansion = self._base._expansion if loops and couplings else Expansion(tree, couplings)
        same = ("name", "indefinite_inertia", "bodies", "n_bodies", "gravity", "body_names", "hinge_names", "parent")
        for key in (*same, "mass", "frames", "origin", "is_specialised", "_frame", "_hinge"):
            put(key, getattr(tree, key))
        for key in ("lower", "upper", "speed", "effort"):
            put(key, expansion.tightest(key) if couplings else getattr(tree, key))
        if not couplings:
            for key in ("armature", "damping", "stiffness"):
                put(key, getattr(tree, key))
        for key, value in (
            ("is_tree", False),
            ("couplings", couplings),
            ("loops", loops),
            ("nq", expansion.nq),
            ("nv", expansion.nv),
            ("_expansion", expansion),
            ("_open", tree),
        ):
            put(key, value)

    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:
            """Say what a tree has and a system with couplings or loops has not: no function takes one for the other."""
            if key in ("layout", "address") and not self.is_tree:
                raise ModelError(
                    f"system {self.name!r} has {self.constraints}, and this function is for trees; take "
                    "system.open_tree, in whose coordinates system.expand(q) and system.expansion(q) @ v are the state"
                )
            if key in ("armature", "damping", "stiffness") and not self.is_tree:
                raise ModelError(
                    f"system {self.name!r} has {self.constraints}: its {key} is a full matrix, X* diag(r) X with "
                    f"r = system.open_tree.{key} and X = system.expansion(q)"
                )
            raise AttributeError(f"'System' object has no attribute {key!r}")

    @property
    def open_tree(self) -> System:
        """The same bodies without couplings and loops; the system itself if it has none."""
        return self if self.is_tree else self._open

    @property
    def uncoupled(self) -> System:
        """:attr:`open_tree`; every kind of system has this name for what its coordinates are reduced from."""
        return self.open_tree

    @property
    def places(self) -> Places:
        """Where the hinges of a tree are in q and v."""
        return Places(self.layout.q_start, self.layout.v_start, tuple(body.hinge for body in self.bodies))

    def carrier(self, frame: str) -> int:
        """Index of the body that carries the named frame, or that it is."""
        return self.locate(frame)[0]

    @property
    def without_loops(self) -> System:
        """The same bodies and couplings without loops, in the same coordinates."""
        return self if not self.loops else self._base

    @property
    def constraints(self) -> str:
        """Couplings and loops in words."""
        counts = ((len(self.couplings), "coupling"), (len(self.loops), "loop"))
        return " and ".join(f"{n} {what}{'s' * (n > 1)}" for n, what in counts if n) or "no couplings or loops"

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
        every = (*self.loops, *loops)
        return self._of(self.open_tree, self.couplings, every) if every else self

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
        every = (*self.couplings, *couplings)
        return self._of(self.open_tree, every, self.loops) if every else self

    def like(self, tree: System) -> System:
        """Return the couplings and loops of this system on another tree of the same hinges and frames."""
        return tree if self.is_tree else self._of(tree, self.couplings, self.loops)

    @staticmethod
    def _of(tree: System, couplings: tuple[Coupling, ...], loops: tuple[Loop, ...]) -> System:
        system = System.__new__(System)
        system._constrain(tree, couplings, loops)
        return system

    def expand(self, q: ArrayLike) -> Array:
        """Positions of all hinges, coupled ones included: q of :attr:`open_tree`.

        Parameters
        ----------
        q : (..., nq)
            Configurations.

        Returns
        -------
        (..., nq of the open tree) array
        """
        from kfdyn.multibody.arguments import configuration

        return self.positions(configuration(self, q))

    def positions(self, q: Array) -> Array:
        """:meth:`expand` of numbers that were looked at."""
        return q if self.is_tree else self._expansion.positions(q)

    def opened(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """A state as one of :attr:`open_tree`: the tree, its q, and its part of each rate (v, a, dv), None if None.

        Every kind of system has this method, so that what is read off a tree is read off all of them.
        """
        if self.is_tree:
            return self, q, *rates.values()
        from kfdyn.multibody.arguments import checked

        every = [
            None if value is None else self._expansion.rates(checked(self, value, (self.nv,), name))
            for name, value in rates.items()
        ]
        return self.open_tree, self.expand(q), *every

    def narrowed(self, q: ArrayLike, J: Array) -> Array:
        """J X (..., nv) of rows J (..., nv of the open tree): what they see of this system's own rates."""
        return J if self.is_tree else self._expansion.forces(J)

    def moved(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """:func:`kfdyn.integrate` of a system with couplings or loops."""
        from kfdyn.multibody.configuration import integrate

        tree, here, move = self.opened(q, dv=dv)
        e = self._expansion
        added = np.asarray(q, float)[..., e.own_q] + np.asarray(dv, float)[..., e.own_v]
        return e.contracted(integrate(tree, here, move), added)

    def apart(self, q: ArrayLike, q2: ArrayLike) -> Array:
        """:func:`kfdyn.difference` of a system with couplings or loops."""
        from kfdyn.multibody.configuration import difference

        every, e = difference(self.open_tree, self.expand(q), self.expand(q2)), self._expansion
        return e.kept(every, np.asarray(q2, float)[..., e.own_q] - np.asarray(q, float)[..., e.own_q])

    def beside(self, q: ArrayLike, v: ArrayLike | None = None) -> tuple[PointMasses, ...]:
        """Masses that move beside the bodies of :attr:`open_tree`: none here, those of bodies that bend elsewhere."""
        return ()

    def expansion(self, q: ArrayLike | None = None) -> Array:
        """Matrix X with v of the open tree = X v; the same for every q.

        Parameters
        ----------
        q : (..., nq), optional
            Configurations; they only lend their leading axes.

        Returns
        -------
        (..., nv of the open tree, nv) array
            Read-only.
        """
        X = np.eye(self.nv) if self.is_tree else self._expansion.X
        if q is None:
            return X
        from kfdyn.multibody.arguments import configuration

        return np.broadcast_to(X, (*configuration(self, q).shape[:-1], *X.shape))

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"a System is immutable; build a new one to change {key!r}")

    def __delattr__(self, key: str) -> None:
        self.__setattr__(key, None)

    def __reduce__(self) -> tuple[object, ...]:
        tree = (self.bodies, self.gravity, dict(self.frames), self.name, self.indefinite_inertia)
        return _rebuild, (*tree, self.couplings, self.loops, self.origin, self.is_specialised)

    def specialised(self) -> System:
        """Return the system with leave to be compiled for; see :func:`kfdyn.specialise`."""
        tree = self.open_tree
        same = (tree.bodies, tree.gravity, dict(tree.frames), tree.name, tree.indefinite_inertia)
        own = _rebuild(*same, origin=tree.origin)
        object.__setattr__(own, "is_specialised", True)
        return self.like(own)

    def remember(self, origin: Origin) -> None:
        """Remember what the system was read from."""
        super().__setattr__("origin", origin)
        if not self.is_tree:
            self.open_tree.remember(origin)

    def keep(self, address: int, *arrays: object) -> None:
        """Remember where compiled code finds what it has prepared of the system, and keep that alive."""
        put = super().__setattr__
        put("_kept", arrays)
        put("address", address)

    def _repr_html_(self) -> str:
        """The sizes and a few bodies, for a notebook."""
        from kfdyn.short_tables import html_table, rows_shown

        mass = self.open_tree.layout.mass

        def row(k: int) -> tuple[object, ...]:
            body = self.bodies[k]
            return body.name, body.parent or "the world", body.hinge_name, body.hinge.kind, float(mass[k])

        head = ("body", "on", "hinge", "kind", "mass [kg]")
        return html_table(repr(self).partition("\n")[0], head, rows_shown(self.n_bodies, row))

    def __repr__(self) -> str:
        roots = int((self.parent < 0).sum())
        head = f"System {self.name!r}: {self.n_bodies} bodies, {self.nv} dofs, mass {self.mass:.6g} kg"
        if roots > 1:
            head += f", {roots} trees"
        if not self.is_tree:
            head += f", {self.constraints}"
        if self.is_specialised:
            head += ", specialised"
        return head + "".join(self._lines(12))

    def _lines(self, most: int) -> Iterable[str]:
        shown = self.bodies if self.n_bodies <= most else self.bodies[: most - 1]
        for body, mass in zip(shown, self.open_tree.layout.mass):
            yield f"\n  {body.name}: {body.hinge.kind} on {body.parent or 'the world'}, {mass:.4g} kg"
        if len(shown) < self.n_bodies:
            yield f"\n  ... and {self.n_bodies - len(shown)} more"

    def v_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in v, a and tau."""
        k = self._own(hinge, "v")
        start = int((self.layout if self.is_tree else self._expansion).v_start[k])
        return slice(start, start + self.bodies[k].hinge.nv)

    def q_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in q."""
        k = self._own(hinge, "q")
        start = int((self.layout if self.is_tree else self._expansion).q_start[k])
        return slice(start, start + self.bodies[k].hinge.nq)

    def _own(self, hinge: str, what: str) -> int:
        """Index of a hinge that has coordinates of its own."""
        k = self.hinge_index(hinge)
        if not self.is_tree:
            self._expansion.expect_own(k, hinge, what)
        return k

    def hinge_index(self, hinge: str) -> int:
        """Index of the named hinge, which is the index of the body it carries."""
        if hinge not in self._hinge:
            raise ModelError(f"system {self.name!r} has no hinge {hinge!r}" + _hint(hinge, self._hinge))
        return self._hinge[hinge]

    def body_index(self, body: str) -> int:
        """Index of the named body."""
        if body not in self._frame or body in self.frames:
            raise ModelError(f"system {self.name!r} has no body {body!r}" + _hint(body, self.body_names))
        return self._frame[body][0]

    def locate(self, frame: str) -> tuple[int, Array, Array]:
        """Body index, rotation (3, 3) and position (3,) of the named frame or body."""
        if frame not in self._frame:
            raise ModelError(f"system {self.name!r} has no body or frame {frame!r}" + _hint(frame, self._frame))
        return self._frame[frame]

    def neutral(self) -> Array:
        """Return q with zero angles and slides and identity quaternions, shape (nq,)."""
        if not self.is_tree:
            tree = self._open.neutral()
            return self._expansion.contracted(tree, np.zeros(len(self._expansion.own_q)))
        return np.concatenate([body.hinge.neutral() for body in self.bodies])

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Array:
        """Draw one q, shape (nq,).

        Within the limits where a hinge has both; else an angle in (−π, π), a slide from N(0, 1), a
        uniform rotation, a position from N(0, 1). A custom hinge is moved from neutral by a random β. Limits of
        coupled hinges bound the coordinate they share; with loops, the draw is moved onto them by
        :func:`kfdyn.assemble`.
        """
        from kfdyn.multibody.configuration import integrate, random_constrained

        rng = np.random.default_rng(rng)
        if not self.is_tree:
            return random_constrained(self, rng, self.open_tree.random_configuration(rng))
        layout, q = self.layout, self.neutral()
        turns = layout.screws[:, :3].any(axis=1)
        draw = np.where(turns, rng.uniform(-np.pi, np.pi, self.nv), rng.normal(size=self.nv))
        bounded = np.isfinite(self.lower) & np.isfinite(self.upper)
        low, high = np.where(bounded, self.lower, 0.0), np.where(bounded, self.upper, 0.0)
        draw = np.where(bounded, rng.uniform(low, high), draw)
        of_screws = layout.coordinates == Coordinates.SCREWS
        v_owner = np.repeat(of_screws, np.diff(layout.v_start))
        q[np.repeat(of_screws, np.diff(layout.q_start))] = draw[v_owner]
        step = np.zeros(self.nv)
        for k in np.flatnonzero(~of_screws):
            at, end = layout.q_start[k : k + 2]
            if self.bodies[k].hinge.kind == "custom":
                own = slice(*layout.v_start[k : k + 2])
                step[own] = rng.uniform(-1, 1, own.stop - own.start)
            else:
                quaternion = rng.normal(size=4)
                q[end - 4 : end] = quaternion / np.linalg.norm(quaternion)
                q[at : end - 4] = rng.normal(size=end - 4 - at)
        return integrate(self, q, step) if step.any() else q


def _rebuild(
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
    """Unpickle: what was to be warned of was said when the system was first built."""
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


def expect_kinds(name: str, couplings: tuple[Coupling, ...], loops: tuple[Loop, ...]) -> None:
    """Refuse couplings and loops that are none."""
    for what, kind, given in (("couplings", Coupling, couplings), ("loops", Loop, loops)):
        for one in given:
            if not isinstance(one, kind):
                raise ModelError(f"system {name!r}: {what} must be {kind.__name__}s, got {one!r:.60}")


def _numbered(names: tuple[str, ...], what: str) -> dict[str, int]:
    index: dict[str, int] = {}
    for k, name in enumerate(names):
        if name in index:
            raise TreeError(f"two {'bodies' if what == 'body' else 'hinges'} are called {name!r}; names must differ")
        index[name] = k
    return index


def _hint(name: object, known: Iterable[str]) -> str:
    close = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
