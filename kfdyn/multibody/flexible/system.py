"""FlexibleSystem: bodies of which some bend, on a rigid tree whose attachments are moved by the modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError, TreeError
from kfdyn.multibody.body import Body, Frame
from kfdyn.multibody.flexible.attachment import attachment_drift, attachment_map, attachment_pose
from kfdyn.multibody.flexible.body import FlexibleBody, Shape
from kfdyn.multibody.hinge import Hinge
from kfdyn.multibody.loop import Loop
from kfdyn.multibody.points import PointMasses
from kfdyn.multibody.system import EARTH, System

Array = NDArray[np.float64]


class FlexibleSystem:
    """Rigid and flexible bodies joined by hinges to a tree or a forest.

    Every child of a flexible body (and every frame on one) stands on a frame that the modes move. That frame is a body
    without mass on a free hinge of :attr:`tree`, whose coordinates :meth:`expand` computes from the modes; so hinges of
    every kind, rotations of the attachment and Coriolis terms are those of the rigid side.

    Parameters
    ----------
    bodies : iterable of Body and FlexibleBody
        In any order; their order is that of bodies, hinges, q and v.
    gravity : (3,)
        Acceleration of gravity in the world.
    frames : mapping of str to Frame
        Fixed to bodies, in the undeformed body; on a flexible one they move with it.
    name : str
        For people.

    Attributes
    ----------
    nq, nv : int
        Hinge coordinates of each body followed by its modal ones.
    dof_names : tuple of str
        One for each entry of v: the hinge's name, ``body/mode_1``, …
    damping, stiffness, lower, upper, speed, effort, armature : (nv,)
        Of the hinges, as of a :class:`System`; 0 or without limit for modes, whose own matrices the bodies have.
    tree, open_tree : System
        The rigid tree with attachments, on which bodies that bend have no mass of their own; kinematics are read off
        it. ``stiff_tree`` is the same with the masses of nothing bent.

    Examples
    --------
    A rod that bends, on a hinge, with a mass at its end:

    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.spatial import spatial_inertia
    >>> rod = kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=2, hinge=kf.Hinge.revolute([0, 1, 0]))
    >>> tip = kf.Body("tip", spatial_inertia(0.5, [0, 0, 0], np.zeros((3, 3))), None, "rod", position=[1.0, 0, 0])
    >>> arm = kf.FlexibleSystem([rod, tip])
    >>> arm.nv, arm.dof_names
    (3, ('rod', 'rod/mode_1', 'rod/mode_2'))
    """

    is_tree = False
    loops: tuple[Loop, ...] = ()
    couplings: tuple[()] = ()
    noise: Array | None = None
    is_slack = False
    model: Any = None  # what compiled code has prepared of it

    def __init__(
        self,
        bodies: Iterable[Body | FlexibleBody],
        gravity: ArrayLike = EARTH,
        frames: Mapping[str, Frame] | None = None,
        name: str = "system",
    ) -> None:
        self.name, self.bodies = name, tuple(bodies)
        rigid = [b.rigid if isinstance(b, FlexibleBody) else b for b in self.bodies]
        self.flexible = {b.name: b for b in self.bodies if isinstance(b, FlexibleBody)}
        self.body_names = tuple(b.name for b in rigid)
        self.hinge_names = tuple(b.hinge_name for b in rigid)
        if len(set(self.body_names)) < len(rigid):
            raise TreeError(f"system {name!r}: two bodies have one name; names must differ")
        self.attached: dict[str, tuple[int, Shape]] = {}  # name of the tree's body: flexible body, shape there
        on_tree = [self._on_deformed(body) for body in rigid]
        given = {key: Frame(*frame) for key, frame in (frames or {}).items()}
        self.frames: Mapping[str, Frame] = MappingProxyType(given)
        moved = {key: self._frame(key, frame) for key, frame in given.items()}
        massless = [
            Body(key, np.zeros((6, 6)), Hinge.free(), self.body_names[k], position=shape.place)
            for key, (k, shape) in self.attached.items()
        ]
        self.stiff_tree = System([*on_tree, *massless], gravity, moved, name)
        bare = [replace(b, inertia=np.zeros((6, 6))) if b.name in self.flexible else b for b in on_tree]
        self.tree = System([*bare, *massless], gravity, moved, name)
        self.gravity = self.tree.gravity
        up = [b.parent for b in rigid]
        self.parent = np.array([-1 if p is None else self.body_names.index(p) for p in up])
        self.n_bodies = len(rigid)
        self.mass = self.stiff_tree.mass
        self.modes = np.array([self.flexible[b.name].n_modes if b.name in self.flexible else 0 for b in rigid])
        self._index()

    def _on_deformed(self, body: Body) -> Body:
        """The body as the rigid tree has it: on an attachment, if its parent bends."""
        if body.parent not in self.flexible:
            if body.parent is not None and body.parent not in self.body_names:
                raise TreeError(f"body {body.name!r} hangs on {body.parent!r}, which is no body")
            return body
        name = f"{body.parent}@{body.name}"
        self.attached[name] = (
            self.body_names.index(body.parent),
            self.flexible[body.parent].shape_of(body.position, body.name),
        )
        return replace(body, parent=name, position=np.zeros(3))

    def _frame(self, key: str, frame: Frame) -> Frame:
        if frame.body not in self.flexible:
            return frame
        name = f"{frame.body}@{key}"
        shape = self.flexible[frame.body].shape_of(frame.position, key)
        self.attached[name] = (self.body_names.index(frame.body), shape)
        return Frame(name, frame.rotation, np.zeros(3))

    def _index(self) -> None:
        """Where hinges and modes stand in q and v, here and in the tree."""
        layout, n = self.tree.layout, self.n_bodies
        hinge_q, hinge_v = np.diff(layout.q_start)[:n], np.diff(layout.v_start)[:n]
        self.q_start = np.concatenate([[0], np.cumsum(hinge_q + self.modes)])
        self.v_start = np.concatenate([[0], np.cumsum(hinge_v + self.modes)])
        self.nq, self.nv = int(self.q_start[-1]), int(self.v_start[-1])
        self.hinge_q, self.hinge_v = hinge_q, hinge_v
        self.q_of_hinges = np.concatenate([np.arange(s, s + k) for s, k in zip(self.q_start, hinge_q)]).astype(int)
        self.v_of_hinges = np.concatenate([np.arange(s, s + k) for s, k in zip(self.v_start, hinge_v)]).astype(int)
        names: list[str] = []
        for k, name in enumerate(self.hinge_names):
            own = int(hinge_v[k])
            names += [name] if own == 1 else [f"{name}/{i + 1}" for i in range(own)]
            names += [f"{self.body_names[k]}/mode_{i + 1}" for i in range(self.modes[k])]
        self.dof_names = tuple(names)
        for key in ("armature", "damping", "stiffness", "lower", "upper", "speed", "effort"):
            every = np.full(
                self.nv, {"lower": -np.inf, "armature": 0.0, "damping": 0.0, "stiffness": 0.0}.get(key, np.inf)
            )
            every[self.v_of_hinges] = getattr(self.tree, key)[: len(self.v_of_hinges)]
            setattr(self, key, every)

    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:
            """Say what only a rigid tree has: no function takes a body that bends for one that does not."""
            if key in ("layout", "address"):
                raise ModelError(f"system {self.name!r} has {self.constraints}, and this function is for rigid bodies")
            raise AttributeError(f"'FlexibleSystem' object has no attribute {key!r}")

    armature: Array
    damping: Array
    stiffness: Array
    lower: Array
    upper: Array
    speed: Array
    effort: Array

    @property
    def open_tree(self) -> System:
        """The tree that kinematics are read off."""
        return self.tree

    @property
    def constraints(self) -> str:
        """What makes it no rigid tree, in words."""
        count = len(self.loops)
        return "flexible bodies" + (f" and {count} loop{'s' * (count > 1)}" if count else "")

    @cached_property
    def without_loops(self) -> FlexibleSystem:
        """The same without loops, in the same coordinates."""
        return self._changed(loops=()) if self.loops else self

    def with_loops(self, loops: Iterable[Loop]) -> FlexibleSystem:
        """Return the system with loops or contacts closed, beside those it has; q, v, a and tau stay the same."""
        more = tuple(loops)
        for loop in more:
            for end in (loop.frame_a, loop.frame_b):
                if end is not None:
                    self.locate(end)
        return self._changed(loops=(*self.loops, *more), without_loops=self.without_loops)

    def with_noise(self, noise: Array) -> FlexibleSystem:
        """Return the system with more measurement noise R beside its rotors, (nv, nv): blocks of the bodies count."""
        return self._changed(noise=noise, model=None)

    @cached_property
    def slack(self) -> FlexibleSystem:
        """The same without forces of elasticity and modal damping: what a push alone does to it."""
        return self._changed(is_slack=True, model=None)

    def _changed(self, **parts: Any) -> FlexibleSystem:
        other = copy(self)
        for made in ("slack", "without_loops"):
            other.__dict__.pop(made, None)
        other.__dict__.update(parts)
        return other

    def _number(self, name: str, names: tuple[str, ...], what: str) -> int:
        if name not in names:
            raise ModelError(f"system {self.name!r} has no {what} {name!r}; there are {', '.join(names)}")
        return names.index(name)

    def body_index(self, name: str) -> int:
        """Number of the named body."""
        return self._number(name, self.body_names, "body")

    def hinge_index(self, name: str) -> int:
        """Number of the named hinge, and of the body it carries."""
        return self._number(name, self.hinge_names, "hinge")

    def q_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in q."""
        k = self.hinge_index(hinge)
        return slice(int(self.q_start[k]), int(self.q_start[k] + self.hinge_q[k]))

    def v_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in v, a and tau."""
        k = self.hinge_index(hinge)
        return slice(int(self.v_start[k]), int(self.v_start[k] + self.hinge_v[k]))

    def mode_slice(self, body: str, velocity: bool = False) -> slice:
        """Where the modes of a body sit in q, or in v."""
        k = self.body_index(body)
        end = int((self.v_start if velocity else self.q_start)[k + 1])
        return slice(end - int(self.modes[k]), end)

    @cached_property
    def elasticity(self) -> tuple[Array, Array]:
        """K and C of the modes of all bodies, (nv, nv): zero but for blocks of bodies that bend."""
        K, C = np.zeros((2, self.nv, self.nv))
        for name, body in self.flexible.items():
            own = self.mode_slice(name, True)
            K[own, own], C[own, own] = body.stiffness, body.damping
        return K, C

    @property
    def elastic(self) -> NDArray[np.bool_]:
        """Which entries of v are rates of modes, (nv,)."""
        mask = np.ones(self.nv, dtype=bool)
        mask[self.v_of_hinges] = False
        return mask

    def neutral(self) -> Array:
        """q with hinges at neutral and nothing bent, (nq,)."""
        q = np.zeros(self.nq)
        q[self.q_of_hinges] = self.tree.neutral()[: len(self.q_of_hinges)]
        return q

    def random_configuration(self, rng: np.random.Generator | int | None = None, bent: float = 0.05) -> Array:
        """Draw hinges as the rigid tree does, and modes that displace points by about ``bent`` of the body's length."""
        rng = np.random.default_rng(rng)
        q = self.neutral()
        q[self.q_of_hinges] = self.tree.random_configuration(rng)[: len(self.q_of_hinges)]
        for name, body in self.flexible.items():
            most = np.abs(body.shapes).max(axis=(0, 1))
            size = float(np.abs(body.points).max()) or 1.0
            q[self.mode_slice(name)] = (
                bent * size * rng.uniform(-1, 1, body.n_modes) / np.where(most > 0, most, 1.0) / body.n_modes
            )
        return q

    def attachments(self, k: int) -> list[int]:
        """Bodies of the tree that are the attachments to body k."""
        first = self.n_bodies
        return [first + i for i, (body, _) in enumerate(self.attached.values()) if body == k]

    def modal(self, x: Array, name: str, velocity: bool) -> Array:
        """Entries of q or v that belong to the modes of a body, (..., n)."""
        return np.asarray(x[..., self.mode_slice(name, velocity)])

    def expand(self, q: ArrayLike) -> Array:
        """q of :attr:`tree`, (..., tree.nq): hinges, then where the modes have the attachments."""
        return self.positions(self.checked(q, self.nq, "q"))

    def positions(self, here: Array) -> Array:
        """:meth:`expand` of numbers that were looked at."""
        parts = [here[..., self.q_of_hinges]]
        parts += [
            attachment_pose(shape, self.modal(here, self.body_names[k], False)) for k, shape in self.attached.values()
        ]
        return np.concatenate(parts, axis=-1)

    def expansion(self, q: ArrayLike) -> Array:
        """X (..., tree.nv, nv) with v of the tree = X v."""
        here = self.checked(q, self.nq, "q")
        X = np.zeros((*here.shape[:-1], self.tree.nv, self.nv))
        h = len(self.v_of_hinges)
        X[..., np.arange(h), self.v_of_hinges] = 1.0
        for i, (k, shape) in enumerate(self.attached.values()):
            name = self.body_names[k]
            X[..., h + 6 * i : h + 6 * i + 6, self.mode_slice(name, True)] = attachment_map(
                shape, self.modal(here, name, False)
            )
        return X

    def tree_rates(self, q: Array, v: Array) -> Array:
        """X v (..., tree.nv), without X."""
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        out = np.empty((*lead, self.tree.nv))
        h = len(self.v_of_hinges)
        out[..., :h] = v[..., self.v_of_hinges]
        for i, (k, shape) in enumerate(self.attached.values()):
            name = self.body_names[k]
            X = attachment_map(shape, self.modal(q, name, False))
            out[..., h + 6 * i : h + 6 * i + 6] = np.einsum("...ij,...j->...i", X, self.modal(v, name, True))
        return out

    def drift(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Ẋv (..., tree.nv), the part of the tree's acceleration that v alone brings."""
        here, rate = self.checked(q, self.nq, "q"), self.checked(v, self.nv, "v")
        lead = np.broadcast_shapes(here.shape[:-1], rate.shape[:-1])
        out = np.zeros((*lead, self.tree.nv))
        h = len(self.v_of_hinges)
        for i, (k, shape) in enumerate(self.attached.values()):
            name = self.body_names[k]
            out[..., h + 6 * i : h + 6 * i + 6] = attachment_drift(
                shape,
                np.broadcast_to(self.modal(here, name, False), (*lead, self.modes[k])),
                self.modal(rate, name, True),
            )
        return out

    def opened(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """The tree, its q, and the tree's part of each rate: Xv, and Xa + Ẋv for an acceleration ``a`` beside ``v``."""
        here = self.checked(q, self.nq, "q")
        out: list[Array | None] = []
        for key, value in rates.items():
            beside = rates.get("v") if key == "a" else None
            whole = None if value is None else self.tree_rates(here, self.checked(value, self.nv, key))
            if beside is not None:  # without an acceleration the drift is still there
                drift = self.drift(here, self.checked(beside, self.nv, "v"))
                whole = drift if whole is None else whole + drift
            out.append(whole)
        return (self.tree, self.positions(here), *out)

    def narrowed(self, q: ArrayLike, J: Array) -> Array:
        """J X (..., nv) of rows J (..., nv of the tree)."""
        return np.asarray(J @ self.expansion(q))

    def beside(self, q: ArrayLike, v: ArrayLike | None = None) -> tuple[PointMasses, ...]:
        """The points of the bodies that bend, in the world, and what bends them."""
        from kfdyn.multibody.flexible.points import point_motion

        rate = np.zeros(self.nv) if v is None else v
        return tuple(point_motion(self, q, rate, name) for name in self.flexible)

    def locate(self, frame: str) -> tuple[int, Array, Array]:
        """Body index of the tree, rotation and position of the named frame or body."""
        return self.tree.locate(frame)

    def moved(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """Hinges moved by their part of dv, modes by theirs, (..., nq)."""
        from kfdyn.multibody.configuration import integrate

        here, move = self.checked(q, self.nq, "q"), self.checked(dv, self.nv, "dv")
        lead = np.broadcast_shapes(here.shape[:-1], move.shape[:-1])
        step = np.zeros((*lead, self.tree.nv))
        step[..., : len(self.v_of_hinges)] = move[..., self.v_of_hinges]
        out = np.broadcast_to(here, (*lead, self.nq)).copy()
        out[..., self.q_of_hinges] = integrate(self.tree, self.expand(here), step)[..., : len(self.q_of_hinges)]
        for name in self.flexible:
            out[..., self.mode_slice(name)] += move[..., self.mode_slice(name, True)]
        return out

    def apart(self, q: ArrayLike, q2: ArrayLike) -> Array:
        """dv with ``moved(q, dv)`` = q2, (..., nv)."""
        from kfdyn.multibody.configuration import difference

        here, there = self.checked(q, self.nq, "q"), self.checked(q2, self.nq, "q2")
        every = difference(self.tree, self.expand(here), self.expand(there))
        out = np.zeros((*every.shape[:-1], self.nv))
        out[..., self.v_of_hinges] = every[..., : len(self.v_of_hinges)]
        for name in self.flexible:
            out[..., self.mode_slice(name, True)] = there[..., self.mode_slice(name)] - here[..., self.mode_slice(name)]
        return out

    def checked(self, x: ArrayLike, size: int, what: str) -> Array:
        """Finite numbers of shape (..., size), or an error."""
        array = np.asarray(x, dtype=float)
        if array.shape[-1:] != (size,):
            raise ShapeError(
                f"system {self.name!r}: {what} must have shape (..., {size}), got {array.shape}: {_listed(self, what)}"
            )
        if not np.isfinite(array).all():
            raise ModelError(f"system {self.name!r}: {what} has entries that are not finite")
        return array

    def __repr__(self) -> str:
        bends = ", ".join(f"{name} ({body.n_modes} modes)" for name, body in self.flexible.items()) or "none"
        head = f"FlexibleSystem {self.name!r}: {self.n_bodies} bodies, {self.nv} dofs, mass {self.mass:.6g} kg"
        return f"{head}; flexible: {bends}"


def _listed(system: FlexibleSystem, what: str) -> str:
    names: Any = system.dof_names if what != "q" else system.hinge_names
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
