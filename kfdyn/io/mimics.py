"""Mimic joints as couplings, through chains of followers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.io.load_result import Mimic, listed
from kfdyn.multibody import Coupling

#: What a hinge follows that is locked where it is.
NOTHING = ""


def check_choice(mimic: str) -> None:
    """Refuse a word that load does not know."""
    if mimic not in ("obey", "free"):
        raise ModelError(f"mimic must be 'obey' or 'free', got {mimic!r}")


def couplings_of(
    mimics: Iterable[Mimic], movable: Collection[str], locked: Collection[str] = ()
) -> tuple[tuple[Coupling, ...], list[str]]:
    """One coupling for each hinge that others follow, through chains of followers; and notes on what is left free.

    ``movable`` are hinges of one dof; ``locked`` are fixed ones, whose followers stand still at their offset, and so do
    those of :data:`NOTHING`. Polynomials that follow polynomials are nested, and composed where one is a line.
    """
    rule: dict[str, Mimic] = {}
    groups: dict[str | None, dict[str, Nested]] = {}
    lost, again = [], []
    for mimic in mimics:
        if mimic.hinge in movable:
            again += [mimic.hinge] * (mimic.hinge in rule)
            rule.setdefault(mimic.hinge, mimic)
    for name in rule:
        of, function, seen = name, Nested(()), [name]
        while of in rule:  # q(name) = function of q(of)
            step = rule[of]
            function, of = function.after(np.array([step.offset, step.multiplier, *step.curve])), step.of
            if of in seen:
                loop = " -> ".join([*seen[seen.index(of) :], of])
                raise ModelError(f"mimic joints follow each other in a circle: {loop}; let one of them be free")
            seen.append(of)
        if of in movable:
            groups.setdefault(of, {})[name] = function
        elif of in (*locked, NOTHING):
            groups.setdefault(None, {})[name] = function
        else:
            lost.append(name)
    couplings = []
    for driver, followers in groups.items():
        if driver is None:
            at_rest = [float(function(np.zeros(()))) for function in followers.values()]
            couplings.append(Coupling(tuple(followers), np.zeros((len(followers), 0)), at_rest))
        else:
            couplings.append(Coupling.by_functions(driver, {name: f.simplest for name, f in followers.items()}))
    notes = [f"mimic joints move freely, what they follow has not one dof: {listed(lost)}"] if lost else []
    if again:
        notes.append(f"joints that follow several others follow the first alone: {listed(again)}")
    return tuple(couplings), notes


def _composed(outer: Array, inner: Array) -> Array:
    """Coefficients of outer(inner(s)), both polynomials in ascending powers."""
    out = outer[-1:]
    for x in outer[-2::-1]:
        out = np.convolve(out, inner)
        out[0] += x
    return out


class Nested(NamedTuple):
    """A polynomial of a polynomial of …, the outermost first, evaluated one in the other.

    Their composition has the degree 4ⁿ and coefficients that cancel: of four Chebyshev polynomials T₄ it has no digit
    left in [−1, 1]. It is made where one of two is a line, which leaves the degree as it is.
    """

    polynomials: tuple[Array, ...]

    def after(self, inner: Array) -> Nested:
        """Return this function of ``inner``."""
        inner = inner[: max(2, int(np.flatnonzero(inner).max(initial=0)) + 1)]
        if self.polynomials and min(len(self.polynomials[-1]), len(inner)) <= 2:
            return Nested((*self.polynomials[:-1], _composed(self.polynomials[-1], inner)))
        return Nested((*self.polynomials, inner))

    @property
    def simplest(self) -> Array | Nested:
        """Coefficients where there is one polynomial, else itself: what a Coupling by functions takes."""
        return self.polynomials[0] if len(self.polynomials) == 1 else self

    def derivative(self, order: int) -> Callable[[Array], Array]:
        """Return the derivative of so high an order, at most three, as a function."""
        return partial(self.__call__, order=order)

    def __call__(self, s: Array, order: int = 0) -> Array:
        """f(s), or a derivative: Faà di Bruno's formula from the innermost outward."""
        s = np.asarray(s, float)
        x, x1, x2, x3 = s, np.ones(s.shape), np.zeros(s.shape), np.zeros(s.shape)
        for c in self.polynomials[::-1]:
            p = np.polynomial.Polynomial(c)
            y1, y2, y3 = (p.deriv(k)(x) for k in (1, 2, 3))
            x3 = y3 * x1**3 + 3 * y2 * x1 * x2 + y1 * x3
            x, x1, x2 = p(x), y1 * x1, y2 * x1**2 + y1 * x2
        return (x, x1, x2, x3)[order]
