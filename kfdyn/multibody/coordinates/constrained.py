"""Changes that couplings and loops make to a system: its coordinates, and members without a meaning of their own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import checked, configuration
from kfdyn.multibody.calls.kernel import FINE, Kernel
from kfdyn.multibody.coordinates.configuration import drawn_of_couplings
from kfdyn.multibody.coordinates.expansion import Expansion
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.parts.origin import Origin

if TYPE_CHECKING:
    from kfdyn.multibody.system import System

#: What a dof has beside its limits.
PER_DOF = ("armature", "damping", "stiffness", "friction")


class Constrained:
    """A system whose coordinates are those that couplings leave of its open tree, on loops if it has some."""

    __slots__ = ()

    is_tree = False
    bodies: tuple[Body, ...]
    constraints: str
    is_curved: bool
    name: str
    nv: int
    _coordinates: System
    _expansion: Expansion
    _open: System

    @property
    def open_tree(self) -> System:
        """The same bodies without couplings and loops."""
        return self._open

    def expand(self, q: ArrayLike) -> Array:
        """Positions of all hinges, coupled ones included: q of :attr:`open_tree`."""
        system: System = self.without_loops  # type: ignore[attr-defined]  # it is a System
        kernel = _EXPAND.serving(system)
        if kernel is not None:
            answer: Array | None = kernel.one(system, q)
            if answer is not None:
                return answer
            if type(q) is np.ndarray and q.ndim:
                every = np.empty((*q.shape[:-1], self._open.nq))
                if kernel(system, math.prod(q.shape[:-1]), q, every) == FINE:
                    return every
        return self.positions(configuration(system, q))

    def positions(self, q: Array) -> Array:
        """:meth:`expand` of numbers that were looked at."""
        return self._expansion.positions(q)

    def expect_sound(self, q: Array, what: str) -> None:
        """Refuse numbers (..., nq) that are no configuration of all hinges."""
        with np.errstate(over="ignore", invalid="ignore"):  # told in the next line
            every = self.positions(q)
        configuration(self._open, every, what)

    def opened(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """A state as one of :attr:`open_tree`: Xv of rates, X a + Ẋv of an acceleration ``a`` beside ``v``."""
        positions = self.expand(q)  # which looks at q
        here = self._here(q)
        given = {
            name: None if value is None else checked(self, value, (self.nv,), name) for name, value in rates.items()
        }
        every = [
            here.accelerations(given.get("v"), value) if name == "a" else None if value is None else here.rates(value)
            for name, value in given.items()
        ]
        return self._open, positions, *every

    def _here(self, q: ArrayLike) -> Any:
        """Return the map from rates at q to those of all hinges; q is not looked at where X is constant."""
        e = self._expansion
        return e.at(configuration(self, q)) if e.curves else e

    def narrowed(self, q: ArrayLike, J: Array, squared: bool = False) -> Array:
        """J X (..., nv) of rows J (..., nv of the open tree), or J times the squares of X's entries."""
        here = self._here(q)
        return here.squares(J) if squared else here.narrowed(J)

    @property
    def coordinates(self) -> System:
        """A tree with the same coordinates, kept: hinges on the world, without bodies."""
        if self._expansion.is_identity:
            return self._open
        try:
            return self._coordinates
        except AttributeError:
            own = [
                Body(body.name, np.zeros((6, 6)), body.hinge if kept else None, hinge_name=body.hinge_name)
                for body, kept in zip(self.bodies, self._expansion.has_own)
            ]
            object.__setattr__(self, "_coordinates", type(self._open)(own, name=self.name))
            return self._coordinates

    def neutral(self) -> Array:
        """Return the tree's neutral q with the coordinates of couplings 0, shape (nq,)."""
        return self._expansion.contracted(self._open.neutral(), np.zeros(len(self._expansion.own_q)))

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Array:
        """Draw one q, shape (nq,): a draw of the tree, moved onto couplings."""
        rng = np.random.default_rng(rng)
        return drawn_of_couplings(self, rng, self._open.random_configuration(rng))  # type: ignore[arg-type]

    def remember(self, origin: Origin) -> None:
        """Remember what the system was read from."""
        object.__setattr__(self, "origin", origin)
        self._open.remember(origin)

    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:
            """Say what a tree has and a system with couplings or loops has not: no function takes one for the other."""
            if key in ("layout", "address"):
                raise ModelError(
                    f"system {self.name!r} has {self.constraints}, and this function is for trees; take "
                    "system.open_tree, in whose coordinates system.expand(q) and system.expansion(q) @ v are the state"
                )
            if key in PER_DOF and self._expansion.is_identity:
                return getattr(self.open_tree, key)
            if key == "friction":
                X = None if self.is_curved else self.expansion()
                r = self.open_tree.friction
                if X is not None and (np.count_nonzero(X[r > 0], axis=1) <= 1).all():
                    return np.abs(X).T @ r
                raise ModelError(
                    f"system {self.name!r} has {self.constraints}: its friction is of hinges that move with several "
                    "coordinates, and of no coordinate; take system.open_tree.friction"
                )
            if key in PER_DOF:
                matrix = None if self.is_curved else self._expansion.matrix(np.diag(getattr(self.open_tree, key)))
                if matrix is not None and np.array_equal(
                    matrix, np.diag(np.diag(matrix))
                ):  # as it is but where a coupling has several columns
                    return np.diag(matrix)
                raise ModelError(
                    f"system {self.name!r} has {self.constraints}: its {key} is a full matrix, X* diag(r) X with "
                    f"r = system.open_tree.{key} and X = system.expansion(q)"
                )
            raise AttributeError(f"'System' object has no attribute {key!r}")


#: The compiled :meth:`Constrained.expand` of systems with couplings.
_EXPAND = Kernel("kfdyn.multibody.recursions.displacement", "EXPAND", coupled=True, kind="geared")
