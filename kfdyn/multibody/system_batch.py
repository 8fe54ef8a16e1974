"""SystemBatch: many robots of one topology that differ in numbers, one a row of q."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, shown
from kfdyn.multibody.calls.arguments import expect_one, expect_system, of_one
from kfdyn.multibody.calls.layout import Numbers, masses_and_centres
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid
from kfdyn.multibody.parts.body import as_floats
from kfdyn.multibody.system import System, rebuilt
from kfdyn.spatial import inertia_parameters, spatial_inertia, validate_inertia

Varied = ArrayLike | Mapping[str, ArrayLike]

#: What a batch has as its pattern has it.
_SAME = (
    "n_bodies", "nq", "nv", "body_names", "hinge_names", "dof_names", "parent", "gravity", "frames", "couplings",
    "loops", "lower", "upper", "speed", "effort", "friction", "places", "coordinates", "is_curved",
    "indefinite_inertia", "v_slice", "q_slice", "hinge_index", "body_index", "locate", "carrier", "neutral", "moved",
    "apart", "positions", "expand", "expansion", "listed", "beside", "slack", "constraints", "_expansion",
    "elastic", "modal_forces", "modal_losses", "expect_sound",
)  # fmt: skip


class SystemBatch:
    """Robots of one topology that differ in numbers; :func:`with_parameters` makes one.

    Functions of a :class:`System` that take batches of q take it in its place: the last leading axis of q is that of
    the robots, and a q without leading axes is that of all. It is so for forward, inverse and hybrid dynamics, their
    derivatives, the mass matrix and what is made of it, energies, kinematics, control, and :func:`simulate` by fixed
    steps. Other functions take one robot, ``batch[i]``, and say so.

    Attributes
    ----------
    pattern : System
        What all have in common; whatever does not differ is read there.
    size : int
        How many robots there are.
    inertia : (size, n_bodies, 6, 6)
        Spatial inertias about the bodies' origins.
    position : (size, n_bodies, 3)
        Of each hinge in the frame of its body's parent.
    armature, damping, stiffness : (size, nv)
        Of the hinges; with couplings, of those of ``pattern.open_tree``.
    mass : (size,)
        Of all bodies.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> arms = kf.with_parameters(kf.models.pendulum(length=1.0), masses={"bob": [1.0, 2.0, 4.0]})
    >>> arms.size, arms.mass, arms[2].mass
    (3, array([1., 2., 4.]), 4.0)
    """

    is_tree = False
    address = 0
    flexible = None
    is_specialised = False
    origin = None

    def __init__(
        self, pattern: System, inertia: Array, position: Array, armature: Array, damping: Array, stiffness: Array
    ) -> None:
        self.pattern, self.size = pattern, len(inertia)
        self.name, self.kind = pattern.name, f"varied {pattern.kind}"
        self.robots = (self.size,)
        self.inertia, self.position = inertia, position
        self.armature, self.damping, self.stiffness = armature, damping, stiffness
        mass, com = masses_and_centres(inertia)
        self.numbers = Numbers(mass, com, inertia[..., :3, :3], position, armature)
        self.mass = mass.sum(axis=-1)
        self.kept: list[Any] = []  # what compiled code has prepared of it
        for array in (inertia, position, armature, damping, stiffness, *self.numbers, self.mass):
            array.flags.writeable = False

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int | np.integer[Any]) -> System:
        """One of the robots."""
        if not isinstance(index, int | np.integer) or not -self.size <= index < self.size:
            raise ModelError(f"system {self.name!r} has robots 0 to {self.size - 1}, got {shown(index)}")
        tree, bodies = self.pattern.open_tree, []
        for k, body in enumerate(tree.bodies):
            dofs = slice(*tree.layout.v_start[k : k + 2])
            own = {name: getattr(self, name)[index, dofs] for name in ("armature", "damping", "stiffness")}
            here = {"inertia": self.inertia[index, k], "position": self.position[index, k]}
            bodies.append(replace(body, **here, **(own if body.hinge.nv else {})))
        name = f"{self.name}[{index}]"
        return self.pattern.like(rebuilt(tuple(bodies), tree.gravity, dict(tree.frames), name, tree.indefinite_inertia))

    def some(self, which: slice | NDArray[np.int64]) -> SystemBatch:
        """Some of the robots."""
        arrays = (self.inertia, self.position, self.armature, self.damping, self.stiffness)
        return SystemBatch(self.pattern, *(x[which] for x in arrays))

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.size))

    @property
    def uncoupled(self) -> SystemBatch:
        """The system with rotors, dampers and springs of all hinges: the batch itself."""
        return self

    @property
    def without_loops(self) -> SystemBatch:
        """The batch itself: none has loops."""
        return self

    def with_rotors(self, armature: Array) -> SystemBatch:
        """The same robots with other rotors (size, nv)."""
        return SystemBatch(self.pattern, self.inertia, self.position, armature, self.damping, self.stiffness)

    def damped(self, h: float, damping: Array, stiffness: Array) -> SystemBatch:
        """The same robots with R ← R + hB + h²K, as :meth:`System.damped`."""
        return self.with_rotors(self.armature + h * damping + h**2 * stiffness)

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Array:
        """Draw one q for each robot, (size, nq), as :meth:`System.random_configuration`."""
        rng = np.random.default_rng(rng)
        return np.array([self.pattern.random_configuration(rng) for _ in range(self.size)])

    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:
            if key in _SAME:
                return getattr(self.pattern, key)
            if hasattr(System, key) and not key.startswith("_"):
                raise of_one(self, "this function")
            raise AttributeError(f"'SystemBatch' object has no attribute {key!r}")

    def __repr__(self) -> str:
        return f"<{self.size} robots like {self.name!r}: {self.pattern.n_bodies} bodies, {self.pattern.nv} dofs>"


def with_parameters(
    system: System,
    *,
    masses: Varied | None = None,
    coms: Varied | None = None,
    inertias: Varied | None = None,
    positions: Varied | None = None,
    armature: Varied | None = None,
    damping: Varied | None = None,
    stiffness: Varied | None = None,
) -> SystemBatch:
    """Return B robots like this one with numbers of their own, one a row of q.

    Each argument is an array with a leading axis of B, of all bodies or hinges; or a dict of arrays with that axis, of
    some by their names. A leading axis of 1 stands for all. What is not given stays as it is in ``system``.

    Parameters
    ----------
    system : System
        A tree, with or without couplings.
    masses : (B, n_bodies) array, or dict of body name to (B,), optional
        Masses. Inertias about the mass centre stay as they are unless given, too.
    coms : (B, n_bodies, 3) array, or dict of body name to (B, 3), optional
        Mass centres, from the body's origin in its axes.
    inertias : (B, n_bodies, 3, 3) array, or dict of body name to (B, 3, 3), optional
        Moments of inertia about the mass centre, in the body's axes.
    positions : (B, n_bodies, 3) array, or dict of body name to (B, 3), optional
        Where the body's hinge is in the frame of its parent.
    armature, damping, stiffness : (B, nv) array, or dict of hinge name to (B,) or (B, m), optional
        Of the dofs of each hinge; with couplings, of those of ``system.open_tree``.

    Returns
    -------
    SystemBatch
        It goes where a system goes, with q (..., B, nq): the compiled recursions read the numbers of its own robot for
        every row, in lanes.

    Notes
    -----
    10 000 arms of seven joints are made in some tenths of a second, 1.5 kB each; as systems of their own they would
    take minutes.

    Examples
    --------
    Three pendulums of one length and three masses swing alike; with three lengths they do not:

    >>> import numpy as np, kfdyn as kf
    >>> bob = kf.models.pendulum(length=1.0)
    >>> heavier = kf.with_parameters(bob, masses={"bob": [1.0, 2.0, 4.0]})
    >>> kf.forward_dynamics(heavier, [0.5 * np.pi], None, [0.0]).round(6).ravel()
    array([-9.81, -9.81, -9.81])
    >>> longer = kf.with_parameters(bob, coms={"bob": [[0, 0, -1.0], [0, 0, -2.0], [0, 0, -4.0]]})
    >>> kf.forward_dynamics(longer, [0.5 * np.pi], None, [0.0]).ravel()
    array([-9.81  , -4.905 , -2.4525])
    """
    expect_system(system)
    expect_one(system, "with_parameters")
    expect_rigid(system, "with_parameters")
    expect_no_loops(system, "with_parameters", "loops are not served")
    if system.kind == "opaque":
        raise ModelError(
            f"with_parameters: system {system.name!r} has hinges that follow functions of Python's, which no compiled "
            "code knows; take polynomials (kf.Coupling), or a system for each robot"
        )
    tree = system.open_tree
    bodies = {body.name: slice(k, k + 1) for k, body in enumerate(tree.bodies)}
    dofs = {name: tree.v_slice(name) for name in tree.hinge_names}
    given = {
        "masses": (masses, bodies, ()), "coms": (coms, bodies, (3,)), "inertias": (inertias, bodies, (3, 3)),
        "positions": (positions, bodies, (3,)), "armature": (armature, dofs, ()), "damping": (damping, dofs, ()),
        "stiffness": (stiffness, dofs, ()),
    }  # fmt: skip
    found = {name: _parts(system, name, *about) for name, about in given.items() if about[0] is not None}
    sizes = {len(values) for parts in found.values() for _, values in parts} - {1}
    if len(sizes) > 1:
        told = ", ".join(f"{name} {len(values)}" for name, parts in found.items() for _, values in parts[:1])
        raise ShapeError(f"with_parameters: the arguments are of different numbers of robots: {told}")
    size = sizes.pop() if sizes else 1

    def spread(own: Array, name: str) -> Array:
        whole = np.repeat(own[None], size, axis=0)
        for where, values in found.get(name, ()):
            whole[:, where] = values
        return whole

    inertia = np.repeat(np.stack([body.inertia for body in tree.bodies])[None], size, axis=0)
    changed = sorted(
        {k for name in _OF_INERTIA for where, _ in found.get(name, ()) for k in range(where.start, where.stop)}
    )
    if changed:
        mass, com, central = (
            spread(own, name)[:, changed] for own, name in zip(inertia_parameters(inertia[0]), _OF_INERTIA)
        )
        inertia[:, changed] = spatial_inertia(mass, com, central)
        names = [tree.body_names[k] for k in changed]
        validate_inertia(np.moveaxis(inertia[:, changed], 1, 0), names, indefinite_inertia=tree.indefinite_inertia)
    position = spread(tree.layout.position, "positions")
    rotors, drag, springs = (spread(getattr(tree, name), name) for name in ("armature", "damping", "stiffness"))
    for name, array in (("armature", rotors), ("damping", drag), ("stiffness", springs)):
        if (array < 0).any():
            b, i = np.argwhere(array < 0)[0]
            raise ModelError(
                f"with_parameters: {name} of dof {tree.dof_names[i]!r} of robot {b} is negative, {array[b, i]}"
            )
    return SystemBatch(system, inertia, position, rotors, drag, springs)


_OF_INERTIA = ("masses", "coms", "inertias")


def _parts(
    system: System, what: str, value: Any, places: Mapping[str, slice], tail: tuple[int, ...]
) -> list[tuple[slice, Array]]:
    """Return the places of some numbers, and these (B, places, *tail)."""
    count = max((place.stop for place in places.values()), default=0)
    if not isinstance(value, Mapping):
        return [(slice(0, count), _checked(system, value, (count, *tail), what))]
    out = []
    for name, numbers in value.items():
        if name not in places:
            known = ", ".join(places)
            raise ModelError(
                f"with_parameters: {what} of {shown(name)}, which system {system.name!r} has not; it has {known}"
            )
        place = places[name]
        m = place.stop - place.start
        array = as_floats(numbers, f"{what}[{name!r}]")
        if m == 1 and array.ndim == len(tail) + 1:
            array = array[:, None]
        out.append((place, _checked(system, array, (m, *tail), f"{what}[{name!r}]")))
    return out


def _checked(system: System, value: Any, tail: tuple[int, ...], what: str) -> Array:
    array = as_floats(value, what)
    if array.shape[1:] != tail or not array.ndim or not len(array):
        wanted = ", ".join(["B", *map(str, tail)])
        raise ShapeError(
            f"with_parameters: {what} must have shape ({wanted}), got {array.shape} (system {system.name!r})"
        )
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ModelError(f"with_parameters: {what} has entries that are not finite; the first is that at {where}")
    return array
