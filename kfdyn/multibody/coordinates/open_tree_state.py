"""A system read as its open tree, on which couplings and loops are not: a tree is its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import configuration, expect_unit_quaternions
from kfdyn.multibody.coordinates.configuration import difference, integrate
from kfdyn.multibody.coordinates.expansion import Expansion
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.points import PointMasses

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


class Opened:
    """Members that each kind of system has in its own way; here those of a tree.

    A function that asks for these need not know the kind: :class:`.constrained.Constrained` overrides what couplings
    and loops change, :class:`~kfdyn.FlexibleSystem` what bodies that bend do.
    """

    __slots__ = ()

    flexible: Any = None  #: of a FlexibleSystem the bodies that bend, by name
    bodies: tuple[Body, ...]
    name: str
    nv: int
    _expansion: Expansion

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
        return configuration(self, q)

    def positions(self, q: Array) -> Array:
        """:meth:`expand` of numbers that were looked at."""
        return q

    def expect_sound(self, q: Array, what: str) -> None:
        """Refuse numbers (..., nq) that are no configuration: quaternions whose length is not 1."""
        expect_unit_quaternions(self, q, what)  # type: ignore[arg-type]

    def opened(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """A state as one of :attr:`open_tree`: the tree, its q, and its part of each rate (v, a, dv), None if None.

        Where hinges follow curves, an acceleration ``a`` beside ``v`` is X a + Ẋv, also if it is None.

        Every kind of system has this method, so that what is read off a tree is read off all of them.
        """
        return self, q, *rates.values()

    @property
    def is_curved(self) -> bool:
        """True if hinges follow others by functions, so that X depends on q."""
        return bool(self._expansion.curves)

    def narrowed(self, q: ArrayLike, J: Array, squared: bool = False) -> Array:
        """J X (..., nv) of rows J (..., nv of the open tree), or J times the squares of X's entries."""
        return J

    @property
    def coordinates(self) -> System:
        """A tree with the same coordinates: the hinges that have some of their own, each on the world, without bodies.

        How q moves, and how far two q are apart, is told by these alone.
        """
        return self  # type: ignore[return-value]  # it is a System

    def moved(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """:func:`kfdyn.integrate` of a system with couplings or loops."""
        return integrate(self.coordinates, q, dv)

    def apart(self, q: ArrayLike, q2: ArrayLike) -> Array:
        """:func:`kfdyn.difference` of a system with couplings or loops."""
        return difference(self.coordinates, q, q2)

    def listed(self, what: str) -> str:
        """Describe the entries of q or v, for the end of an error; :meth:`Lookup.q_slice` tells hinges."""
        return ""

    @property
    def slack(self) -> Any:
        """The system without what bends its bodies, which here nothing does."""
        return self

    @property
    def elastic(self) -> NDArray[np.bool_]:
        """Mark the entries of v that are rates of modes, (nv,): none."""
        return np.zeros(self.nv, dtype=bool)

    def modal_forces(self, x: Array) -> Array:
        """K x (..., nv) of the modes of bodies that bend: 0."""
        return np.zeros_like(x)

    def modal_losses(self, v: Array) -> Array | float:
        """v*C v (...): the power that modes lose at rates (..., nv)."""
        return 0.0

    @property
    def sizes(self) -> Array:
        """The change of each coordinate that makes another geometry, (nv,): a radian or a metre."""
        return np.ones(self.nv)

    @property
    def stiffened(self) -> Any:
        """The system as a displacement meets it, whose bodies resist to be bent: itself."""
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
            return self._expansion.at(configuration(self, q)).X
        X = self._expansion.X
        if q is None:
            return X
        return np.broadcast_to(X, (*configuration(self, q).shape[:-1], *X.shape))

    def neutral(self) -> Array:
        """Return q with zero angles and slides and identity quaternions, shape (nq,)."""
        return np.concatenate([body.hinge.neutral() for body in self.bodies])
