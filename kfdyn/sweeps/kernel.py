"""A recursion as the rooms above call it: one callable, for one state and for batches.

::

    FORWARD = Kernel("kfdyn.dynamics.recursions.forward", "FORWARD", System, "address", model_of)

    answer = FORWARD.run(system, q, v, tau, external_forces, gravity)        # a new array
    answer = FORWARD.run(system, q, v, tau, external_forces, gravity, out)   # out, with the answer in it

Call ``run`` with whatever the user gave, without a look at it: a call with one state that is fine is over in a fraction
of a microsecond, and each line of Python before it would take a tenth of one. The answer is one of three things:

- the result, an array, or a tuple of arrays if the recursion has several results;
- :class:`Declined`, if the arrays were taken and some rows have no answer: these rows are NaN, all others are right;
- None, if the arguments were not taken as they stand: no object of the class, a list, float32, other leading axes, …

So a public function is one call of ``run``, and one function that explains what is no array: it converts and checks by
name, calls ``run`` again, and deals with the rows that :attr:`Declined.rows` names.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from kfdyn.sweeps.jit import Checks

if TYPE_CHECKING:
    from kfdyn.sweeps.entry import Entry

Array = NDArray[np.float64]
_FLOAT = np.dtype(np.float64)


class Declined(NamedTuple):
    """Answers (..., *tail) in which some rows are NaN: those that the kernel has no answer for."""

    answers: tuple[Array, ...]
    lead: tuple[int, ...]

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Which rows (...) have no answer."""
        lost = np.zeros(self.lead, dtype=bool)
        for x in self.answers:
            lost |= ~np.isfinite(x).all(axis=tuple(range(len(self.lead), x.ndim)))
        return lost


class Kernel:
    """A recursion over objects that keep their tables packed, compiled when first called.

    Parameters
    ----------
    module, name : str
        Where the :class:`~kfdyn.sweeps.entry.Entry` is; imported on the first call, since what compiles loads slowly.
    owner : type
        The class of the objects that are taken, and of no subclass.
    slot : str
        The slot in which such an object keeps the address of its tables, 0 if it has none yet. Empty if it keeps them
        nowhere: then one state is served as a batch is.
    model_of : callable
        ``model_of(object)`` packs the tables and fills the slot, or finds them: an object with ``address`` (a
        :class:`~kfdyn.sweeps.records.Packed`), ``size`` and, for code of its own, ``specials``. None if this kernel
        does not serve the object.

    Attributes
    ----------
    run : callable
        ``run(object, *parameters, *given, *results)``, see above; the results may be left out or None. It is an
        attribute, which the first call replaces, so do not keep it.
    """

    def __init__(self, module: str, name: str, owner: type, slot: str, model_of: Callable[[Any], Any]) -> None:
        self._module, self._name, self._owner, self._slot, self._model_of = module, name, owner, slot, model_of
        self._entry: Entry | None = None
        self.run: Callable[..., Any] = self._first

    @property
    def entry(self) -> Entry:
        """The recursion, and what it is given; ``entry.plain`` runs it on Python's floats."""
        if self._entry is None:
            entry = self._entry = getattr(import_module(self._module), self._name)
            names = {about.name for about in entry.parameters}
            self._skip = len(entry.parameters)
            self._count = self._skip + len(entry.given)
            self._own = [(self._skip + i, about.name) for i, about in enumerate(entry.given) if about.own]
            self._axes = len(entry.given[0].tail)
            self._tails = [about.tail for about in entry.results]
            self._by_parameters = any(extent in names for tail in self._tails for extent in tail)
        return self._entry

    def _first(self, owner: Any = None, *arrays: Any) -> Any:
        """Compile for one state, and answer."""
        if type(owner) is not self._owner or self._model_of(owner) is None:
            return None
        self.run = self._batch
        if self._slot and not Checks.on:
            self.run = self.entry.single(self._owner, self._slot, self._batch)
        return self.run(owner, *arrays)

    def _batch(self, owner: Any = None, *arrays: Any) -> Any:
        """Answer for a batch, and for one state that the code for one state did not answer."""
        if type(owner) is not self._owner:
            return None
        entry, count = self._entry or self.entry, self._count
        if len(arrays) != count and len(arrays) != count + len(self._tails):
            raise TypeError(f"{entry.name} takes {count} arguments and {len(self._tails)} results, got {len(arrays)}")
        first = arrays[self._skip]
        if type(first) is not ndarray or first.ndim < self._axes:
            return None
        lead = first.shape[: first.ndim - self._axes]
        found: Any = bool(lead) or not self._slot or getattr(owner, self._slot, None)
        model = self._model_of(owner)
        if model is None:
            return None
        if not found and not Checks.on and getattr(owner, self._slot, None):
            return self.run(owner, *arrays)  # now the code for one state finds the tables
        rows, sizes, given = prod(lead), model.address.given, list(arrays[:count])
        results: Any = arrays[count:]
        for i, name in self._own:
            if given[i] is None:
                given[i] = sizes[name]
        if results and results[0] is not None:
            if not all(type(x) is ndarray and not _shares(x, given) for x in results):
                return None
        else:
            if self._by_parameters:
                sizes = sizes | dict(zip((about.name for about in entry.parameters), given))
            results = []
            for tail in self._tails:
                shape = lead
                for extent in tail:
                    shape += (extent if type(extent) is int else sizes[extent],)
                results.append(empty(shape))
            if rows == 1 and lead and self._slot and not Checks.on:
                return self.run(owner, *given, *results)  # a batch of one is one state
        taken: Any = given
        if lead and getattr(model, "specials", None) is not None:
            entry, taken = model.specials.of(entry, tuple(given))
        status = entry(model, *taken, *results, rows=rows)
        if status < 0:
            copies = [_contiguous(x) for x in given]
            if all(x is y for x, y in zip(copies, given)):
                return None
            status = self.entry(model, *copies, *results, rows=rows)
            if status < 0:
                return None
        if status == 0:
            return Declined(tuple(results), lead)
        return results[0] if len(results) == 1 else tuple(results)


def _shares(result: Array, given: list[Any]) -> bool:
    """Whether a result may share memory with what is read: rows are answered while others are still to be read."""
    return any(isinstance(x, ndarray) and np.may_share_memory(result, x) for x in given)


def _contiguous(x: Any) -> Any:
    """The same numbers in order, if it is a plain array of floats; anything else as it is."""
    if type(x) is ndarray and x.dtype == _FLOAT and not (x.flags.c_contiguous and x.flags.aligned):
        return np.array(x, order="C")
    return x
