"""States of a system that bends, as states of the rigid tree that its kinematics are read off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import checked, configuration, expect_finite
from kfdyn.multibody.coordinates.lookup import FlexibleLookup
from kfdyn.multibody.flexible.bent_tree import BentTree
from kfdyn.multibody.parts.coupling import Coupling

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


class FlexibleCoordinates(FlexibleLookup):
    """The ways between hinges with modes, what couplings leave of them, and the tree."""

    bent: BentTree
    tree: System
    nq: int
    nv: int
    dof_names: tuple[str, ...]
    hinge_names: tuple[str, ...]
    couplings: tuple[Coupling, ...]

    def neutral(self) -> Array:
        """q with hinges at neutral and nothing bent, (nq,); the coordinates of couplings are 0."""
        e = self._expansion
        return e.contracted(self.bent.neutral(), np.zeros(len(e.own_q)))

    def modal(self, x: Array, name: str, velocity: bool) -> Array:
        """Entries of q or v that belong to the modes of a body, (..., n)."""
        return np.asarray(x[..., self.mode_slice(name, velocity)])

    def expand(self, q: ArrayLike) -> Array:
        """q of :attr:`tree`, (..., tree.nq): hinges, then where the modes have the attachments."""
        return self.positions(self.checked(q, self.nq, "q"))

    def positions(self, here: Array) -> Array:
        """:meth:`expand` of numbers that were looked at."""
        return self.bent.positions(self._expansion.positions(here))

    def expect_sound(self, q: Array, what: str) -> None:
        """Refuse numbers (..., nq) that are no configuration of the tree."""
        with np.errstate(over="ignore", invalid="ignore"):  # told in the next line
            every = self.positions(q)
        configuration(self.tree, every, what)

    def expansion(self, q: ArrayLike) -> Array:
        """X (..., tree.nv, nv) with v of the tree = X v."""
        e, here = self._expansion, self.checked(q, self.nq, "q")
        with np.errstate(over="ignore", invalid="ignore"):
            X = e.at(here).narrowed(self.bent.matrix(e.positions(here)))
        return expect_finite(self, X, "the velocity of what stands on a body that bends", q=q)

    def tree_rates(self, q: Array, v: Array) -> Array:
        """X v (..., tree.nv), without X."""
        return self.bent.rates(self._expansion.positions(q), self._expansion.at(q).rates(v))

    def drift(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Ẋv (..., tree.nv), the part of the tree's acceleration that v alone brings."""
        here, rate = self.checked(q, self.nq, "q"), self.checked(v, self.nv, "v")
        e = self._expansion
        positions, at = e.positions(here), e.at(here)
        own = self.bent.drift(positions, at.rates(rate))
        more = at.accelerations(rate, None)  # where hinges follow curves
        return own if more is None else own + self.bent.rates(positions, more)

    @property
    def is_curved(self) -> bool:
        """True if hinges follow others by functions, so that X of the couplings depends on q."""
        return bool(self._expansion.curves)

    def opened(self, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
        """The tree, its q, and the tree's part of each rate: Xv, and Xa + Ẋv for an acceleration ``a`` beside ``v``."""
        here = self.checked(q, self.nq, "q")
        given = {key: None if x is None else self.checked(x, self.nv, key) for key, x in rates.items()}
        with np.errstate(over="ignore", invalid="ignore"):  # told at the end
            out: list[Array | None] = [self.positions(here)]
            for key, value in given.items():
                beside = given.get("v") if key == "a" else None
                whole = None if value is None else self.tree_rates(here, value)
                if beside is not None:  # without an acceleration the drift is still there
                    drift = self.drift(here, beside)
                    whole = drift if whole is None else whole + drift
                out.append(whole)
        for made, what in zip(out, ("place", "velocity", "acceleration")):
            if made is not None:
                expect_finite(self, made, f"the {what} of what stands on a body that bends", q=q, **given)
        return (self.tree, *out)

    def narrowed(self, q: ArrayLike, J: Array, squared: bool = False) -> Array:
        """J X (..., nv) of rows J (..., nv of the tree), or J times the squares of X's entries."""
        X = self.expansion(q)
        return np.asarray(J @ (X**2 if squared else X))

    def moved(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """Hinges moved by their part of dv, modes by theirs, (..., nq)."""
        here, move = self.checked(q, self.nq, "q"), self.checked(dv, self.nv, "dv")
        e = self._expansion
        every = self.bent.moved(e.positions(here), e.at(here).rates(move))
        return e.contracted(every, here[..., e.own_q] + move[..., e.own_v])

    def apart(self, q: ArrayLike, q2: ArrayLike) -> Array:
        """dv with ``moved(q, dv)`` = q2, (..., nv)."""
        here, there = self.checked(q, self.nq, "q"), self.checked(q2, self.nq, "q2")
        e = self._expansion
        every = self.bent.apart(e.positions(here), e.positions(there))
        return e.kept(every, there[..., e.own_q] - here[..., e.own_q])

    def checked(self, x: ArrayLike, size: int, what: str) -> Array:
        """Finite numbers of shape (..., size), or an error."""
        return checked(self, x, (size,), what)

    def listed(self, what: str) -> str:
        """Describe the entries of q or v, for the end of an error."""
        names = self.dof_names if what != "q" else self.hinge_names
        return ": " + ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
