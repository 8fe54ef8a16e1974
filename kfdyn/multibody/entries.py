"""Calls into compiled entries: plain arrays go straight in, others are checked and broadcast first."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from kfdyn.multibody.arguments import batch, checked, configuration, expect_system
from kfdyn.multibody.overflow import overflow
from kfdyn.multibody.prepared import Model, gears_of, in_own_frames, model_of
from kfdyn.multibody.results import straight
from kfdyn.multibody.system import System

if TYPE_CHECKING:
    from kfdyn.sweeps.entry import Entry

Array = NDArray[np.float64]
Shape = tuple[int, ...]

FINE = 1
_FLOAT = np.dtype(np.float64)


class Later:
    """An entry by name, imported when first called: what compiles is slow to load.

    Attributes
    ----------
    one : callable
        The compiled function for one state, without anything around it: ``one(system, *arrays)`` is a new array, a
        tuple of them if there are several results, or None where it has no answer. It is the first thing that a public
        function tries, so it takes whatever that is given: what is no system, or no array as it should be, has no
        answer, and the long way finds the words. Specialised systems take it, too: to fetch straight-line code for a
        single state takes longer than to run it. Where every index is to be checked it never has an answer.
    geared, curved : Later or None
        The same for systems with couplings, from the module that has it under the name of this one and ``GEARED_``, or
        ``CURVED_`` where hinges follow polynomials.
    """

    def __init__(
        self, module: str, name: str, model: Callable[[System], Model] = model_of, geared: str = "", slot: str = ""
    ) -> None:
        self._module, self._name, self._model = module, name, model
        self._slot = slot or ("address" if model is model_of else "gears" if model is gears_of else "")
        self._entry: Entry | None = None
        self._checks: Any = None
        self.geared = Later(geared, f"GEARED_{name}", gears_of) if geared else None
        self.curved = Later(geared, f"CURVED_{name}", gears_of, slot="cams") if geared else None
        self.one: Callable[..., Any] = self._first

    @property
    def entry(self) -> Entry:
        """The entry itself."""
        if self._entry is None:
            from kfdyn.sweeps.jit import Checks

            self._checks, self._entry = Checks, getattr(import_module(self._module), self._name)
        return self._entry

    def _first(self, system: Any, *arrays: Any) -> Any:
        """The first call, which compiles."""
        if type(system) is not System:
            return None
        if self._slot == "address":
            known = system.is_tree
        else:
            known = has_gears(system) and system.is_curved == (self._slot == "cams")
        return self.ready(system)(system, *arrays) if known else None

    def coupled(self, system: System) -> Later | None:
        """What serves a system with couplings: :attr:`geared` or :attr:`curved`."""
        return self.curved if system.is_curved else self.geared

    def ready(self, system: System) -> Callable[..., Any]:
        """:attr:`one`, compiled, for a system that is prepared: one that is not has no answer."""
        if not system.is_tree and (coupled := self.coupled(system)) is not None:
            return coupled.ready(system)
        entry, _ = self.entry, self._model(system)
        if self.one == self._first:
            self.one = (lambda *_: None) if self._checks.on else entry.single(System, self._slot)
        return self.one

    def constrained(self, system: Any, *arrays: Any) -> Any:
        """:attr:`one` of what does not depend on loops, for a system with couplings or loops; others have no answer."""
        if type(system) is not System or system.is_tree:
            return None
        base = system.without_loops
        if base.is_tree:
            return self.one(base, *arrays)
        if self.geared is None:
            return None
        answer = self.geared.one(base, *arrays)
        return answer if answer is not None or not base.is_curved else self.curved.one(base, *arrays)  # type: ignore

    def __call__(self, system: System, rows: int, *arrays: Any, effort: int = 1) -> int:
        """Run it on these arrays; of what does not fit as it stands, contiguous copies are tried."""
        if not system.is_tree and (coupled := self.coupled(system)) is not None:
            return coupled(system, rows, *arrays, effort=effort)
        entry, model = self._entry or self.entry, self._model(system)
        special = model.specials if model.specials is not None and _is_batch(entry, arrays) else None
        alone = rows == 1 and special is None and self._slot and not self._checks.on
        if alone and self.one(system, *arrays) is not None:
            return FINE
        if special is not None:
            entry, arrays = special.of(entry, arrays)
        status = entry(model, *arrays, rows=rows, effort=effort)
        if status >= 0:
            return status
        results = len(entry.results)
        given = [_contiguous(x) for x in arrays[:-results]]
        return entry(model, *given, *arrays[-results:], rows=rows, effort=effort)


def has_gears(system: System) -> bool:
    """Whether a system has couplings and no loops, and compiled code knows X, which is all between it and its tree."""
    return bool(system.couplings) and not system.loops and system._expansion.is_polynomial


def _is_batch(entry: Entry, arrays: tuple[Any, ...]) -> bool:
    """Whether the results have batch axes; without them it is one state, which no code of a system's own is for."""
    results = entry.results
    return bool(arrays[-len(results)].ndim > len(results[0].tail))


def _contiguous(x: Any) -> Any:
    """The same numbers in order, if it is a plain array of floats; anything else as it is."""
    if type(x) is ndarray and x.dtype == _FLOAT and not (x.flags.c_contiguous and x.flags.aligned):
        return np.array(x, order="C")
    return x


def known(status: int) -> bool:
    """Whether an entry has answered all rows; arrays that it cannot take are a mistake of ours, never an answer."""
    if status < 0:
        raise AssertionError(f"an entry does not take arrays that were checked ({status})")
    return status == FINE


_GEARED = "kfdyn.multibody.recursions.geared"

KINETIC = Later("kfdyn.multibody.recursions.energy", "KINETIC", geared=_GEARED)
POTENTIAL = Later("kfdyn.multibody.recursions.energy", "POTENTIAL", geared=_GEARED)
MOMENT = Later("kfdyn.multibody.recursions.energy", "MOMENT", geared=_GEARED)
MOMENTUM = Later("kfdyn.multibody.recursions.energy", "MOMENTUM", geared=_GEARED)
CENTROIDAL = Later("kfdyn.multibody.recursions.energy", "CENTROIDAL", geared=_GEARED)
MOMENTUM_ABOUT = Later("kfdyn.multibody.recursions.energy", "MOMENTUM_ABOUT")
JACOBIAN = Later("kfdyn.multibody.recursions.frames", "JACOBIAN", geared=_GEARED)
POSE = Later("kfdyn.multibody.recursions.frames", "POSE", geared=_GEARED)
VELOCITY = Later("kfdyn.multibody.recursions.frames", "VELOCITY", geared=_GEARED)
ACCELERATION = Later("kfdyn.multibody.recursions.frames", "ACCELERATION", geared=_GEARED)
EXPAND = Later(_GEARED, "GEARED_EXPAND", gears_of)
EXPAND_CURVED = Later(_GEARED, "CURVED_EXPAND", gears_of, slot="cams")
LINK_TERMS = Later("kfdyn.multibody.recursions.links", "LINK_TERMS", in_own_frames)
INTEGRATE = Later("kfdyn.multibody.recursions.displacement", "INTEGRATE")
DIFFERENCE = Later("kfdyn.multibody.recursions.displacement", "DIFFERENCE")


def reading(
    system: System,
    entry: Later,
    tails: tuple[Shape, ...],
    meaning: str,
    q: Any,
    *more: Any,
    of: tuple[Any, ...] = (),
    out: Any = None,
) -> tuple[Array, ...]:
    """What an entry says (..., *tail) of configurations q (..., nq), and of v and a (..., nv) if it takes them.

    Of a system with loops it says what is true without them.

    ``of`` is what the entry takes beside: a frame, for example. An entry looks at the numbers it is given and has no
    answer if one is not sound; then the checks find the words, or ``meaning`` has overflown. An answer goes to ``out``
    if compiled code can write to that. For one state callers try :attr:`Later.one` themselves: here every line costs.
    """
    expect_system(system)
    system = system.without_loops
    if type(q) is ndarray and q.ndim:
        lead = q.shape[:-1]
        answers = tuple([_where(out, lead + tail, q, *more) for tail in tails])
        if answers[0] is not None and entry(system, math.prod(lead) if lead else 1, *of, q, *more, *answers) == FINE:
            return cast(tuple[Array, ...], answers)
    looked_at = {"q": (configuration(system, q), 1)}
    for name, x in zip(("v", "a"), more):
        if x is not None or name == "v":  # no entry does without v, and one takes no ``a`` as a = 0
            looked_at[name] = (checked(system, x, (system.nv,), name), 1)
    lead, arrays = batch(system, **looked_at)
    by_name = dict(zip(looked_at, arrays))
    given = [by_name.get(name) for name, _ in zip(("q", "v", "a"), (q, *more))]
    flat = tuple([np.empty((math.prod(lead), *tail)) for tail in tails])
    if not known(entry(system, math.prod(lead), *of, *given, *flat)):
        raise overflow(system, meaning, **by_name)
    return tuple([x.reshape(lead + x.shape[1:]) for x in flat])


def _where(out: Any, shape: Shape, *given: Any) -> Array | None:
    return empty(shape) if out is None else straight(out, shape, *given)
