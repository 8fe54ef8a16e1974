"""A quantity of dynamics: a compiled recursion, kinds of systems that know better, and an explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.solving.forest import States
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_finite, expect_system
from kfdyn.multibody.calls.kernel import Answers, Explain, Kernel
from kfdyn.multibody.flexible.packed_flexible import flexible_model_of
from kfdyn.multibody.kinds import expect_coordinates, expect_rigid


class Solver(Kernel):
    """A quantity of dynamics, compiled, and what answers or explains where compiled code does not.

    What the module of a kind has under the name of the quantity goes before the explanation (:mod:`.kinds`).

    Parameters
    ----------
    quantity : str
        Its name, that of the public function.
    module, name, how
        Those of a :class:`~kfdyn.multibody.calls.kernel.Kernel`.
    inverts : bool
        Whether a singular mass matrix leaves it without an answer.
    minimal : str
        What tells it in minimal coordinates, where loops make it depend on a choice of these.
    rigid : bool
        Whether it is for rigid bodies alone.
    bending : str
        The module of the recursion for bodies that bend, ``FLEXIBLE_`` and the name; none if empty.
    """

    states = States
    ignores_loops = False

    def __init__(
        self,
        quantity: str,
        module: str,
        name: str,
        *,
        inverts: bool = True,
        minimal: str = "",
        rigid: bool = False,
        bending: str = "",
        **how: Any,
    ) -> None:
        super().__init__(module, name, **how)
        if bending:
            self.variants["flexible"] = Kernel(bending, f"FLEXIBLE_{name}", model=flexible_model_of)
        self.quantity, self.inverts, self.minimal, self.rigid = quantity, inverts, minimal, rigid

    def other(self, system: System) -> Callable[..., Any] | None:
        """The way that this kind of system has of its own."""
        if self.rigid:
            expect_rigid(system, self.quantity)
        own = own_way(system, self.quantity)
        if own is None and self.minimal:
            expect_coordinates(system, self.quantity, self.minimal)
        return own

    def explained(self, system: System, given: tuple[Any, ...]) -> Array:
        """The answer (...) by the explanation alone, or by the way of its own that a kind of system has."""
        expect_system(system)
        own = self.other(system)
        if own is not None:
            return np.asarray(own(system, *given))
        assert self.explain is not None
        states = self.bound(system, given)
        answer: Array = states.shaped(self.mended(states, None, None, self.explain)[0])
        return answer

    def mended(self, states: Any, answers: Answers | None, declined: Any, explain: Explain) -> Answers:
        """The answers with those of the explanation in rows (size,) that are declined; all are where none is known.

        Only those rows are explained: it takes a hundred times as long, and all others keep their bits whoever else is
        in the batch.
        """
        system, rows = states.system, None if declined is None else np.flatnonzero(declined)
        few = states if rows is None or len(rows) == states.size else states.only(rows)
        found = (own_way(system, f"explain_{self.quantity}") or explain)(few)
        if self.inverts:
            few.expect_invertible()
        good = [expect_finite(system, own, what, **few.arrays) for what, own in found.items()]
        if answers is None:
            return tuple(good)
        for answer, own in zip(answers, good):
            answer[rows] = own
        return answers
