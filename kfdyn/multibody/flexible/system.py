"""FlexibleSystem: bodies and joints of which some bend, in the coordinates of their hinges and modes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, TreeError, as_list
from kfdyn.multibody.calls.arguments import checked
from kfdyn.multibody.coordinates.configuration import drawn_of_couplings
from kfdyn.multibody.coordinates.expansion import Expansion, Places, Same
from kfdyn.multibody.flexible.bent_tree import BentTree, columns_of_hinges
from kfdyn.multibody.flexible.body import FlexibleBody
from kfdyn.multibody.flexible.coordinates import FlexibleCoordinates
from kfdyn.multibody.flexible.joint import Motor, regeared, with_motors
from kfdyn.multibody.loops.loop import Loop
from kfdyn.multibody.parts.body import Body, Frame, as_floats
from kfdyn.multibody.parts.coupling import Coupling
from kfdyn.multibody.parts.system_validation import expect_couplings, expect_loops, numbered
from kfdyn.multibody.points import PointMasses
from kfdyn.multibody.system import EARTH, PER_DOF, System
from kfdyn.spatial import TriangleInequalityWarning

#: Of hinges as of a :class:`System`; what they are for modes, which have none.
OF_DOFS = dict.fromkeys(PER_DOF, 0.0) | {"lower": -np.inf} | dict.fromkeys(("upper", "speed", "effort"), np.inf)


class FlexibleSystem(FlexibleCoordinates):
    """Rigid and flexible bodies joined by hinges to a tree or a forest; hinges may be flexible, too.

    A body on a :class:`FlexibleJoint` brings another, without mass: ``body/motor`` is on the hinge, and the body is
    fixed to the far end of its spring.

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
    couplings : sequence of Coupling
        Gears, belts, mimic joints, differentials: hinges that share fewer coordinates. A flexible joint takes part
        with its motor.
    loops : sequence of Loop
        Closed loops and contacts; they leave the coordinates as they are.

    Attributes
    ----------
    nq, nv : int
        Hinge coordinates of each body followed by its modal ones; of coupled hinges the independent ones.
    dof_names : tuple of str
        One for each entry of v: the hinge's name, ``body/mode_1``, …, ``hinge/spring`` of a flexible joint.
    damping, stiffness, friction, lower, upper, speed, effort, armature : (nv,)
        Of the hinges, as of a :class:`System`; 0 or without limit for modes, whose own matrices the bodies have.
    tree, open_tree : System
        The rigid tree with attachments, on which bodies that bend have no mass of their own; kinematics are read off
        it (:class:`~kfdyn.multibody.flexible.bent_tree.BentTree`).
    uncoupled : FlexibleSystem
        The same bodies without couplings and loops.

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
    robots: tuple[int, ...] = ()
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    noise: Array | None = None
    is_slack = False
    origin = None  # no file has bodies that bend
    model: Any = None  # what compiled code has prepared of it
    _uncoupled: FlexibleSystem | None = None
    _built = False

    def __init__(
        self,
        bodies: Iterable[Body | FlexibleBody],
        gravity: ArrayLike = EARTH,
        frames: Mapping[str, Frame] | None = None,
        name: str = "system",
        *,
        couplings: Iterable[Coupling] = (),
        loops: Iterable[Loop] = (),
    ) -> None:
        self.bodies, gears = with_motors(
            as_list(bodies, f"system {name!r}: bodies", "write [kf.beam(...), kf.Body(...), ...]"),
            as_list(couplings, f"system {name!r}: couplings", "write [kf.Coupling(...), ...]"),
        )
        self.name, self.n_bodies = name, len(self.bodies)
        self.bent = bent = BentTree(self.bodies, gravity, frames or {}, name)
        self.flexible, self.attached, self.frames = bent.flexible, bent.attached, bent.frames
        self.tree, self.stiff_tree, self.parent, self.modes = bent.tree, bent.stiff_tree, bent.parent, bent.modes
        self.body_names, self.hinge_names = bent.body_names, bent.tree.hinge_names[: self.n_bodies]
        self._frame, self._hinge = bent.tree._frame, numbered(self.hinge_names, "hinge")
        self.gravity, self.mass = bent.tree.gravity, bent.stiff_tree.mass
        self.springs = {b.spring: b.name for b in self.bodies if isinstance(b, Motor)}
        self._expansion: Expansion = Same(bent.places)
        self._index()
        expect_names(name, self.hinge_names, self.springs, self.flexible)
        if gears:
            self.__dict__ = self._changed()._coupled(gears).__dict__
            self.__dict__["_built"] = False
        self.loops = as_list(loops, f"system {name!r}: loops", "write [kf.Loop(...), ...]")
        expect_loops(self, self.loops)
        self._finish()

    @property
    def pattern(self) -> FlexibleSystem:
        """The system itself; every kind of system has this name for what it is like."""
        return self

    def _index(self) -> None:
        """Return the places of hinges and modes in q and v, and their names."""
        e, bent = self._expansion, self.bent
        self.nq, self.nv, self.q_start, self.v_start = e.nq, e.nv, e.q_start, e.v_start
        self.hinge_q, self.hinge_v = (np.where(e.has_own, size, 0) for size in (bent.hinge_q, bent.hinge_v))
        self.q_of_hinges = columns_of_hinges(self.q_start, self.hinge_q)
        self.v_of_hinges = columns_of_hinges(self.v_start, self.hinge_v)
        names: list[str] = []
        for k, (name, body) in enumerate(zip(self.hinge_names, self.bodies)):
            own = int(self.hinge_v[k])
            names += [name] if own == 1 else [f"{name}/{i + 1}" for i in range(own)]
            modes = range(1, int(self.modes[k]) + 1)
            names += [body.spring] if isinstance(body, Motor) else [f"{body.name}/mode_{i}" for i in modes]
        self.dof_names = tuple(names)
        for key, of_modes in OF_DOFS.items():
            self.__dict__.pop(key, None)
            if e.is_identity:
                every = np.full(self.nv, of_modes)
                every[self.v_of_hinges] = getattr(self.tree, key)[: len(self.v_of_hinges)]
                setattr(self, key, every)
            elif key in ("lower", "upper", "speed", "effort"):
                setattr(self, key, e.tightest(key))

    def _finish(self) -> None:
        """From here on nothing changes: compiled code, and what was derived, would not hear of it."""
        for value in self.__dict__.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self._built = True

    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:
            """Say what only a rigid tree has: no function takes a body that bends for one that does not."""
            if key in ("layout", "address"):
                raise ModelError(f"system {self.name!r} has {self.constraints}, and this function is for rigid bodies")
            if key in PER_DOF:
                full = "that of its hinges," if key == "friction" else "a full matrix, X* diag(r) X with r ="
                raise ModelError(
                    f"system {self.name!r} has {self.constraints}: its {key} is {full} system.uncoupled.{key}"
                )
            raise AttributeError(f"'FlexibleSystem' object has no attribute {key!r}")

    armature: Array
    damping: Array
    stiffness: Array
    friction: Array
    lower: Array
    upper: Array
    speed: Array
    effort: Array

    @property
    def open_tree(self) -> System:
        """The tree that kinematics are read off."""
        return self.tree

    @cached_property
    def kind(self) -> str:
        """The kind that compiled code knows; none for couplings, nor for noise that joins hinges to other dofs."""
        if self.loops or self.couplings:
            return "looped" if self.loops else "coupled flexible"
        if self.noise is None:
            return "flexible"
        hinges, off = ~self.elastic, self.noise - np.diag(np.diag(self.noise))
        return "opaque flexible" if off[hinges].any() or off[:, hinges].any() else "flexible"

    @property
    def places(self) -> Places:
        """Return the places of hinges, and of modes behind them, in q and v of :attr:`uncoupled`."""
        return self.bent.places

    @property
    def constraints(self) -> str:
        """The reason why it is no rigid tree, in words."""
        counts = ((len(self.couplings), "coupling"), (len(self.loops), "loop"))
        return "flexible bodies" + "".join(f" and {n} {what}{'s' * (n > 1)}" for n, what in counts if n)

    @cached_property
    def without_loops(self) -> FlexibleSystem:
        """The same without loops, in the same coordinates."""
        return self._changed(loops=()) if self.loops else self

    @property
    def uncoupled(self) -> FlexibleSystem:
        """The same bodies without couplings and loops."""
        return self.without_loops if self._uncoupled is None else self._uncoupled

    def with_loops(self, loops: Iterable[Loop]) -> FlexibleSystem:
        """Return the system with loops or contacts closed, beside those it has; q, v, a and tau stay the same."""
        given = as_list(loops, f"system {self.name!r}: loops", "write [kf.Loop(...), ...]")
        expect_loops(self, given)
        return self._changed(loops=(*self.loops, *given), without_loops=self.without_loops) if given else self

    def with_couplings(self, couplings: Iterable[Coupling]) -> FlexibleSystem:
        """Return the system with hinges coupled, beside those that are; its loops stay.

        A rotor that a flexible joint carries joins the coupling of its hinge, as it does in the constructor.
        """
        given = as_list(couplings, f"system {self.name!r}: couplings", "write [kf.Coupling(...), ...]")
        return self.uncoupled._coupled(regeared(self.couplings, given, self.bodies)).with_loops(self.loops)

    def _coupled(self, couplings: tuple[Coupling, ...]) -> FlexibleSystem:
        expect_couplings(self.name, couplings)
        if not couplings:
            return self
        expansion = Expansion(self, couplings)
        other = self._changed(couplings=couplings, _uncoupled=self, _expansion=expansion, model=None, _built=False)
        other._index()
        other._finish()
        return other

    def like(self, uncoupled: FlexibleSystem) -> FlexibleSystem:
        """Return the couplings and loops of this system on another one of the same hinges and frames."""
        return uncoupled._coupled(self.couplings).with_loops(self.loops)

    def with_noise(self, noise: Array) -> FlexibleSystem:
        """Return the system with more measurement noise R beside its rotors; blocks of the bodies count.

        The noise is that of hinges and modes before couplings, (nv, nv) of :attr:`uncoupled`.
        """
        return self.like(self.uncoupled._changed(noise=noise, model=None))

    @cached_property
    def slack(self) -> FlexibleSystem:
        """The same without forces of elasticity and modal damping: what a push alone does to it."""
        return self.like(self.uncoupled._changed(is_slack=True, model=None))

    def _changed(self, **parts: Any) -> FlexibleSystem:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for made in ("kind", "slack", "without_loops", "elasticity"):
            other.__dict__.pop(made, None)
        other.__dict__.update(parts)
        return other

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
        """Mark the entries of v that are rates of modes, (nv,)."""
        mask = np.ones(self.nv, dtype=bool)
        mask[self.v_of_hinges] = False
        return mask

    def with_attachments(self, external_forces: ArrayLike) -> Array:
        """Check forces on bodies, and perhaps on attachments: (..., tree.n_bodies, 6), 0 where none are given."""
        force = as_floats(external_forces, "external_forces")
        every = self.tree.n_bodies
        force = checked(self, force, (every if force.shape[-2:-1] == (every,) else self.n_bodies, 6), "external_forces")
        more = np.zeros((*force.shape[:-2], every - force.shape[-2], 6))
        return np.concatenate([force, more], axis=-2)

    def modal_forces(self, x: Array) -> Array:
        """K x (..., nv) of the modes."""
        return np.asarray(x @ self.elasticity[0])

    def modal_losses(self, v: Array) -> Array:
        """v*C v (...): the power that modes lose at rates (..., nv)."""
        return np.asarray((v * (v @ self.elasticity[1])).sum(-1))

    @property
    def sizes(self) -> Array:
        """The change of each coordinate that makes another geometry, (nv,), whatever its unit.

        A mode's unit is that of its shape: with a modal mass of 1, the modes of a light beam are tiny numbers.
        """
        moves = np.abs(self._expansion.at(self.neutral()).rates(np.eye(self.nv)))  # what moves how far, at neutral
        return np.asarray(1.0 / (moves / self.bent.sizes()).max(axis=1, initial=0.0))

    def damped(self, h: float, damping: Array, stiffness: Array) -> FlexibleSystem:
        """Return the system with R ← R + hB + h²K: the measurement noise of an implicit step (THEORY section 6).

        Matrices of bodies that bend join those of the hinges of :attr:`uncoupled`.
        """
        K, C = self.uncoupled.elasticity
        return self.with_noise(h * (C + np.diag(damping)) + h**2 * (K + np.diag(stiffness)))

    @property
    def stiffened(self) -> FlexibleSystem:
        """The system as a displacement meets it, whose bodies resist to be bent: elasticity joins the inertia."""
        return self.with_noise(self.uncoupled.elasticity[0])

    def random_configuration(self, rng: np.random.Generator | int | None = None, bent: float = 0.05) -> Array:
        """Draw hinges as a rigid tree does, and modes that displace points by about ``bent`` of the body's length.

        A flexible joint gives way by up to ``bent`` radians or metres. Loops are closed by :func:`kfdyn.assemble`.
        """
        from kfdyn.multibody.loops.closure import draw_closed

        rng = np.random.default_rng(rng)
        drawn = drawn_of_couplings(self, rng, self.bent.drawn(rng, bent))
        return draw_closed(self, drawn, rng)  # type: ignore[arg-type]

    def beside(self, q: ArrayLike, v: ArrayLike | None = None) -> tuple[PointMasses, ...]:
        """The points of the bodies that bend, in the world, and what bends them."""
        from kfdyn.multibody.points import point_motion

        e = self._expansion
        own = np.asarray(q, float)
        with np.errstate(over="ignore", invalid="ignore"):  # sums of these are looked at
            here, rate = e.positions(own), None if v is None else e.at(own).rates(np.asarray(v, float))
            rate = np.zeros(self.bent.nv) if rate is None else rate
            return tuple(point_motion(self.uncoupled, here, rate, name) for name in self.flexible)

    def __setattr__(self, key: str, value: object) -> None:
        if self._built:
            raise AttributeError(f"a FlexibleSystem is immutable; build a new one to change {key!r}")
        super().__setattr__(key, value)

    def __delattr__(self, key: str) -> None:
        self.__setattr__(key, None)

    def keep(self, model: Any) -> None:
        """Remember what compiled code has prepared of the system."""
        self.__dict__["model"] = model

    def __reduce__(self) -> tuple[object, ...]:
        given = (self.bodies, self.gravity, dict(self.frames), self.name, self.couplings, self.loops)
        return rebuilt, (*given, self.noise, self.is_slack)

    def __repr__(self) -> str:
        parts = [f"{b.rigid.hinge_name} (spring)" if isinstance(b, Motor) else f"{b.name} ({b.n_modes} modes)"
                 for b in self.flexible.values()]  # fmt: skip
        head = f"FlexibleSystem {self.name!r}: {self.n_bodies} bodies, {self.nv} dofs, mass {self.mass:.6g} kg"
        joined = self.constraints.partition(" and ")[2]
        return f"{head}; flexible: {', '.join(parts) or 'none'}" + (f"; {joined}" if joined else "")


def expect_names(
    system: str, hinges: Iterable[str], springs: Mapping[str, str], flexible: Mapping[str, FlexibleBody]
) -> None:
    """Refuse a hinge that is named as a spring or a mode is: by that name both would be asked for."""
    taken = {spring: f"the spring of hinge {flexible[motor].rigid.hinge_name!r}" for spring, motor in springs.items()}
    for name, body in flexible.items():
        if not isinstance(body, Motor):
            taken |= {f"{name}/mode_{i + 1}": f"mode {i + 1} of body {name!r}" for i in range(body.n_modes)}
    for hinge in hinges:
        if hinge in taken:
            raise TreeError(f"system {system!r}: hinge {hinge!r} bears the name of {taken[hinge]}; give it another")


def rebuilt(
    bodies: tuple[Body | FlexibleBody, ...],
    gravity: Array,
    frames: dict[str, Frame],
    name: str,
    couplings: tuple[Coupling, ...],
    loops: tuple[Loop, ...],
    noise: Array | None,
    slack: bool,
) -> FlexibleSystem:
    """Unpickle: bodies have their motors, couplings their rotors, and what was to be warned of was said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TriangleInequalityWarning)
        system = FlexibleSystem(bodies, gravity, frames, name, couplings=couplings, loops=loops)
    system = system if noise is None else system.with_noise(noise)
    return system.slack if slack else system
