"""States of a system as states of its open tree, on which couplings and loops are not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import checked, configuration
from kfdyn.multibody.calls.kernel import FINE, Kernel
from kfdyn.multibody.coordinates.configuration import difference, integrate
from kfdyn.multibody.coordinates.expansion import Expansion
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.points import PointMasses

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


class Opened:
    """What a system with couplings or loops does through its tree; a tree is its own."""

    __slots__ = ()

    flexible: Any = None  #: of a FlexibleSystem the bodies that bend, by name
    bodies: tuple[Body, ...]
    is_tree: bool
    name: str
    nv: int
    _coordinates: System
    _expansion: Expansion
    _open: System

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
        system: System = self.without_loops  # type: ignore[attr-defined]  # it is a System
        kernel = _EXPAND.serving(system)
        if kernel is not None:
            answer: Array | None = kernel.one(system, q)
            if answer is not None:
                return answer
            if type(q) is np.ndarray and q.ndim:
                every = np.empty((*q.shape[:-1], system.open_tree.nq))
                if kernel(system, math.prod(q.shape[:-1]), q, every) == FINE:
                    return every
        return self.positions(configuration(system, q))

    def positions(self, q: Array) -> Array:
        """:meth:`expand` of numbers that were looked at."""
        return q if self.is_tree else self._expansion.positions(q)

    def opened(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """A state as one of :attr:`open_tree`: the tree, its q, and its part of each rate (v, a, dv), None if None.

        Where hinges follow curves, an acceleration ``a`` beside ``v`` is X a + Ẋv, also if it is None.

        Every kind of system has this method, so that what is read off a tree is read off all of them.
        """
        if self.is_tree:
            return self, q, *rates.values()
        positions = self.expand(q)
        here: Any = self._expansion
        if here.curves:
            here = here.at(configuration(self, q))  # type: ignore[arg-type]  # it is a System
        given = {
            name: None if value is None else checked(self, value, (self.nv,), name)  # type: ignore[arg-type]
            for name, value in rates.items()
        }
        every = [
            here.accelerations(given.get("v"), value) if name == "a" else None if value is None else here.rates(value)
            for name, value in given.items()
        ]
        return self._open, positions, *every

    def rigid_state(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """A state as one of rigid bodies, whose couplings entries know: itself. That of bodies that bend is opened.

        So is that of hinges which follow functions that are no polynomials.
        """
        unknown = self.is_curved and not self._expansion.is_polynomial
        return self.opened(q, **rates) if unknown else (self, q, *rates.values())

    @property
    def is_curved(self) -> bool:
        """Whether hinges follow others by functions, so that X depends on q."""
        return not self.is_tree and bool(self._expansion.curves)

    def narrowed(self, q: ArrayLike, J: Array) -> Array:
        """J X (..., nv) of rows J (..., nv of the open tree): what they see of this system's own rates."""
        if self.is_tree:
            return J
        e = self._expansion
        return e.at(configuration(self, q)).narrowed(J) if e.curves else e.forces(J)  # type: ignore[arg-type]

    @property
    def coordinates(self) -> System:
        """A tree with the same coordinates: the hinges that have some of their own, each on the world, without bodies.

        How q moves, and how far two q are apart, is told by these alone.
        """
        if self.is_tree:
            return self  # type: ignore[return-value]  # it is a System
        if not self._expansion.couplings:
            return self._open
        try:
            return self._coordinates
        except AttributeError:
            own = [
                Body(body.name, np.zeros((6, 6)), body.hinge if kept else None, hinge_name=body.hinge_name)
                for body, kept in zip(self.bodies, self._expansion.has_own)
            ]
            object.__setattr__(self, "_coordinates", type(self)(own, name=self.name))  # type: ignore[call-arg]
            return self._coordinates

    def moved(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """:func:`kfdyn.integrate` of a system with couplings or loops."""
        return integrate(self.coordinates, q, dv)

    def apart(self, q: ArrayLike, q2: ArrayLike) -> Array:
        """:func:`kfdyn.difference` of a system with couplings or loops."""
        return difference(self.coordinates, q, q2)

    def listed(self, what: str) -> str:
        """What stands in q or v, as the end of an error; hinges are told by :meth:`Lookup.q_slice`."""
        return ""

    @property
    def slack(self) -> Any:
        """The system without what bends its bodies, which here nothing does."""
        return self

    def beside(self, q: ArrayLike, v: ArrayLike | None = None) -> tuple[PointMasses, ...]:
        """Masses that move beside the bodies of :attr:`open_tree`: none here, those of bodies that bend elsewhere."""
        return ()

    def expansion(self, q: ArrayLike | None = None) -> Array:
        """Matrix X with v of the open tree = X v; the same for every q, unless hinges follow functions.

        Parameters
        ----------
        q : (..., nq), optional
            Configurations; where X is constant they only lend their leading axes.

        Returns
        -------
        (..., nv of the open tree, nv) array
            Read-only.
        """
        if self.is_curved:
            if q is None:
                raise ModelError(
                    f"system {self.name!r} has hinges that follow others by functions, so that X depends on q; give q"
                )
            return self._expansion.at(configuration(self, q)).X  # type: ignore[arg-type]  # it is a System
        X = np.eye(self.nv) if self.is_tree else self._expansion.X
        if q is None:
            return X
        return np.broadcast_to(X, (*configuration(self, q).shape[:-1], *X.shape))  # type: ignore[arg-type]

    def neutral(self) -> Array:
        """Return q with zero angles and slides and identity quaternions, shape (nq,)."""
        if not self.is_tree:
            tree = self._open.neutral()
            return self._expansion.contracted(tree, np.zeros(len(self._expansion.own_q)))
        return np.concatenate([body.hinge.neutral() for body in self.bodies])


_MODULE = "kfdyn.multibody.recursions.geared"

#: The compiled :meth:`Opened.expand` of systems with couplings.
_EXPAND = Kernel(_MODULE, "EXPAND", coupled=_MODULE, kind="geared")
