"""The entry of a recursion: arrays with leading batch axes go through it, one row in every lane.

An :class:`Entry` says what a recursion is given, row by row, and what it answers, all by name. The template looks at
shapes and numbers, borrows a workspace, shares rows out to lanes and threads, and marks the rows that have no answer.
The recursion itself is ``recursion(model, row, work)``, in the language of sweeps: ``row.q[i]`` are the row's numbers,
``row.a[i] = x`` its answers, ``work`` the workspace; it returns a number that is positive where all went well, or None
where nothing can go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from kfdyn.sweeps import thread_pool
from kfdyn.sweeps.batch.entry_codegen import NO_MEMORY, run_plain, write_entry
from kfdyn.sweeps.batch.single_row import LANES, write_single
from kfdyn.sweeps.compiler.wrapper import Array, Model, Whole
from kfdyn.sweeps.jit import Checks
from kfdyn.sweeps.records import Table, address_of
from kfdyn.sweeps.trace_context import LANEWISE

# Nodes times rows a thread must have before waking it pays: some 0.1 ms of work.
_LEAST = 4096
# Nodes times rows after which Python looks up, some 10 ms; and the seconds that it is then to take, or up to four times
# as long, since nodes differ.
_BRIEF, _SOON = 2**18, 0.02
# Rows from which on the widest vectors pay.
_WIDE = 8
#: Lanes for few rows: more would take as long as four, or longer.
NARROW = 4

#: What an entry answers: all rows; not all, and those that have none are NaN; arguments that do not fit.
FINE, FAILED = 1, 0


class Given(NamedTuple):
    """An array (..., *tail) of numbers that must be finite; ``shared``: one row may stand for all of them.

    ``tail`` holds numbers, or names of sizes of the model or of parameters. ``sound(model, row, array, first, last,
    width)`` is asked instead of whether all is finite, if given. ``own``: the model has one of this name, which stands
    for None where there is one row.
    """

    name: str
    tail: tuple[Any, ...]
    optional: bool = False
    shared: bool = False
    sound: Callable[..., Any] | None = None
    own: bool = False


class Parameter(NamedTuple):
    """An argument that is the same for all rows: floats ("f"), int64 ("i"), or one integer ("n")."""

    name: str
    kind: str


class Space(NamedTuple):
    """Workspace of a recursion: ``size(model, row)`` numbers, ``row`` having the parameters.

    ``start(model, row, work)`` puts there what stays from row to row.
    """

    size: Callable[..., Any]
    start: Callable[..., Any] = lambda model, row, work: None


class Options(NamedTuple):
    """Options of an entry.

    ``may_overflow``: answers are looked at, too, and FAILED where one is not finite. ``block``: rows that a thread
    takes at a time; few where a row is much work. ``unroll``: how large a model may be for straight-line code of its
    own to pay, in nodes or numbers a row (see :mod:`specialise`); 0: none pays. Beyond, memory is no slower than
    what fits no register. ``long``: a single row may be much work, so that other threads run meanwhile.
    """

    may_overflow: bool = True
    block: int = 128
    unroll: int = 0
    long: bool = False


_USUAL = Options()


class Entry:
    """A recursion over the rows of a batch, compiled when first called.

    Parameters
    ----------
    recursion : callable
        ``recursion(model, row, work)``, see above. ``model`` has the fields of ``table``, and ``lanes``.
    table : Table
        What the model is, with sizes ``busy``, ``workspace`` and ``floats`` for the workspace that is its own.
    given : sequence of Parameter and Given
        What is read, parameters first.
    results : sequence of Given
        Arrays that are written.
    workspace : Space
        What it works in; a class that has both functions will do.
    options : Options
        What else may be said.
    """

    def __init__(
        self,
        recursion: Callable[..., Any],
        table: Table,
        given: Sequence[Given | Parameter],
        results: Sequence[Given],
        workspace: Space | type[Any],
        options: Options = _USUAL,
    ) -> None:
        self.recursion, self.table, self.workspace, self.options = recursion, table, workspace, options
        self.parameters = tuple(about for about in given if isinstance(about, Parameter))
        self.given = tuple(about for about in given if isinstance(about, Given))
        self.results, self.name = tuple(results), recursion.__name__
        if (*self.parameters, *self.given) != tuple(given):
            raise TypeError(f"{self.name}: parameters come before arrays, as whoever calls gives them")

    #: What else code depends on, and how hard the compiler works at it.
    key: tuple[Any, ...] = ()
    level = 2

    def facts(self) -> tuple[Any, ...]:
        """Return what the entry is made of, for the cache's digest."""
        return self.recursion, self.table, self.parameters, self.given, self.results, self.workspace, self.options

    def seen(self, address: Any) -> Any:
        """Return the model as the code being written sees it."""
        return self.table.at(address)

    def compiled(self, lanes: int) -> Callable[..., int]:
        """Compile ``enter(address, counter, *parameters, *given, *results)`` for so many lanes.

        Any two numbers of lanes from two on give the same bits.
        """

        def write(address: Any, *values: Any) -> Any:
            return write_entry(self, self.seen(address), lanes, *values)

        return self._compiled(write, [Whole(), Whole()], ("entry", lanes, self.options.block))

    def handler(self, lanes: int, handed: int, version: tuple[int, int]) -> tuple[int, object]:
        """Return the address of XLA's handler for so many lanes, and the engine its code lives in.

        The first ``handed`` arrays that rows are given are XLA's. It is told all else beforehand, as words
        (:mod:`~kfdyn.sweeps.compiler.xla_handler`): after two of its own the address of the model, 0, parameters, and
        the other arrays; an array is its address, its number of axes and the address of its shape.
        """
        from kfdyn.sweeps.compiler.driver import Code, located
        from kfdyn.sweeps.compiler.xla_handler import write_handler

        def write(address: Any, *values: Any) -> Any:
            return write_entry(self, self.seen(address), lanes, *values)

        arguments: list[Any] = [Whole(), Whole()]
        arguments += [Whole() if p.kind == "n" else Array(p.kind) for p in self.parameters]
        for i, about in enumerate(self.given):
            array = Array(optional=about.optional)
            array.handed = i < handed
            arguments.append(array)
        arguments += [Array(writeable=True) for _ in self.results]
        outer = partial(write_handler, version=version)
        key, module = ("foreign", lanes, handed, self.options.block, version, *self.key), self.recursion.__module__
        return located(Code(self.name, module, key, write, arguments, LANEWISE, level=self.level, outer=outer))

    def single(self, owner: type, slot: str, otherwise: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The function for one row: ``single(model, *parameters, *given)``, the model an ``owner`` and its address in
        a slot.

        It returns a new array, or a tuple of them if there are several results (see :mod:`single_row`). Arrays for the
        results may follow, which it fills and returns; None for all of them asks for new ones. What it does not take (a
        batch, a list, arrays that share memory with results), and a row that has no answer, go to
        ``otherwise(model, ...)`` with the same arguments, and its answer is returned; without it None is. So the rooms
        above have one callable for one state and for batches. The bits are those of :meth:`compiled`.
        """
        first = Model(owner, slot, self.options.long, otherwise)
        return self._compiled(partial(write_single, self), [first], ("one row", LANES), alone=True)

    def _compiled(
        self, write: Callable[..., Any], first: list[Any], key: tuple[Any, ...], alone: bool = False
    ) -> Callable[..., Any]:
        """Compile what ``write`` writes; for one row ``alone``, results and the model's own arrays are optional."""
        from kfdyn.sweeps.compiler.driver import Code, compiled

        arguments = [*first, *(Whole() if p.kind == "n" else Array(p.kind) for p in self.parameters)]
        for i, given in enumerate(self.given):
            arguments.append(Array(optional=given.optional or (alone and given.own), batch=i == 0 and not alone))
        arguments += [Array(writeable=True, optional=alone) for _ in self.results]
        key, module = (*key, *self.key), self.recursion.__module__
        return compiled(Code(self.name, module, key, write, arguments, LANEWISE, level=self.level))

    @cached_property
    def wide(self) -> Callable[..., int]:
        """The compiled function for many rows."""
        from kfdyn.sweeps.compiler.driver import machine

        return self.compiled(machine().lanes)

    @cached_property
    def narrow(self) -> Callable[..., int]:
        """The compiled function for few."""
        from kfdyn.sweeps.compiler.driver import machine

        return self.wide if machine().lanes == NARROW else self.compiled(NARROW)

    def __call__(self, model: Any, *arrays: Any, rows: int = 1, effort: int = 1) -> int:
        """Run over all rows, in threads if there is enough work; return FINE, FAILED or less than 0.

        ``model`` has an ``address``, which is packed, and a ``size`` (its nodes); ``effort`` says how many times a row
        goes through the nodes.
        """
        if Checks.on:
            return self.plain(model, *arrays)
        if rows < _WIDE:
            return _told(self.narrow(model.address, 0, *arrays))
        enter, block = self.wide, self.options.block
        whole = rows * model.size * effort
        workers = min(whole // _LEAST, -(-rows // block) if effort > 1 else rows // NARROW)
        workers = min(workers, thread_pool.threads()) if workers > 1 else 1
        if workers < 2 and whole <= _BRIEF:
            return _told(enter(model.address, 0, *arrays))
        counter = np.array([0, max(1, _BRIEF // max(1, block * model.size * effort))])

        def work(kept: object = (model, counter)) -> int:
            """Sweep; the owners of the addresses are kept, since a thread may outlive an interrupted caller."""
            status = FINE
            try:
                while counter[0] < rows and status >= 0:
                    start = perf_counter()
                    status = min(status, enter(model.address, address_of(counter), *arrays))
                    if perf_counter() - start < _SOON:
                        counter[1] *= 2
                    elif perf_counter() - start > 4 * _SOON:
                        counter[1] = max(1, counter[1] // 2)
            except BaseException:
                counter[0] = rows  # nothing is left for the others
                raise
            return status

        return _told(min(thread_pool.POOL.share(work, workers)))

    def plain(self, model: Any, *arrays: Any) -> int:
        """Run on Python's floats, with every index checked."""
        return run_plain(self, model, *arrays)


def _told(status: int) -> int:
    if status == NO_MEMORY:
        raise MemoryError("no memory for the workspace of a sweep")
    return status
