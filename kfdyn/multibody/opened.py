"""States of a system as states of its open tree, on which couplings and loops are not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.multibody.body import Body
from kfdyn.multibody.expansion import Expansion
from kfdyn.multibody.points import PointMasses

if TYPE_CHECKING:
    from kfdyn.multibody.system import System

Array = NDArray[np.float64]


class Opened:
    """What a system with couplings or loops does through its tree; a tree is its own."""

    __slots__ = ()

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
        from kfdyn.multibody.arguments import configuration
        from kfdyn.multibody.entries import EXPAND, FINE

        system: System = self.without_loops  # type: ignore[attr-defined]  # it is a System
        answer: Array | None = EXPAND.one(system, q)
        if answer is not None:  # what loops call
            return answer
        if not system.is_tree and type(q) is np.ndarray and q.ndim:
            every = np.empty((*q.shape[:-1], system.open_tree.nq))
            if EXPAND(system, math.prod(q.shape[:-1]), q, every) == FINE:
                return every
        return self.positions(configuration(system, q))

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
            None if value is None else self._expansion.rates(checked(self, value, (self.nv,), name))  # type: ignore[arg-type]
            for name, value in rates.items()
        ]
        return self._open, self.expand(q), *every

    def rigid_state(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """A state as one of rigid bodies, whose couplings entries know: itself. That of bodies that bend is opened."""
        return self, q, *rates.values()

    def narrowed(self, q: ArrayLike, J: Array) -> Array:
        """J X (..., nv) of rows J (..., nv of the open tree): what they see of this system's own rates."""
        return J if self.is_tree else self._expansion.forces(J)

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
            from kfdyn.multibody.system import System

            own = [
                Body(body.name, np.zeros((6, 6)), body.hinge if kept else None, hinge_name=body.hinge_name)
                for body, kept in zip(self.bodies, self._expansion.has_own)
            ]
            object.__setattr__(self, "_coordinates", System(own, name=self.name))
            return self._coordinates

    def moved(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """:func:`kfdyn.integrate` of a system with couplings or loops."""
        from kfdyn.multibody.configuration import integrate

        return integrate(self.coordinates, q, dv)

    def apart(self, q: ArrayLike, q2: ArrayLike) -> Array:
        """:func:`kfdyn.difference` of a system with couplings or loops."""
        from kfdyn.multibody.configuration import difference

        return difference(self.coordinates, q, q2)

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

        return np.broadcast_to(X, (*configuration(self, q).shape[:-1], *X.shape))  # type: ignore[arg-type]

    def neutral(self) -> Array:
        """Return q with zero angles and slides and identity quaternions, shape (nq,)."""
        if not self.is_tree:
            tree = self._open.neutral()
            return self._expansion.contracted(tree, np.zeros(len(self._expansion.own_q)))
        return np.concatenate([body.hinge.neutral() for body in self.bodies])
