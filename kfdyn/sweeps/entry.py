"""The one entry template: arrays with leading batch axes go through one recursion, a row in every lane.

An :class:`Entry` says what a recursion is given, row by row, and what it answers, all by name. The template looks at
shapes and numbers, borrows a workspace, shares rows out to lanes and threads, and marks the rows that have no answer.
The recursion itself is ``recursion(model, row, work)``, in the language of sweeps: ``row.q[i]`` are the row's numbers,
``row.a[i] = x`` its answers, ``work`` the workspace; it returns a number that is positive where all went well, or None
where nothing can go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kfdyn.sweeps import thread_pool
from kfdyn.sweeps.call import Checks
from kfdyn.sweeps.records import Table, address_of

# Nodes times rows a thread must have before waking it pays: some 0.1 ms of work.
_LEAST = 4096
# Rows from which on the widest vectors pay.
_WIDE = 8
#: Lanes for few rows: more would take as long as four, or longer.
NARROW = 4

#: What an entry answers: all rows; not all, and those that have none are NaN; arguments that do not fit.
FINE, FAILED = 1, 0


class Given(NamedTuple):
    """An array (..., *tail) of numbers that must be finite; ``shared``: one row may stand for all of them.

    ``tail`` holds numbers, or names of sizes of the model or of parameters. ``sound(model, column_of, first, last)`` is
    asked instead of whether all is finite, if given. ``own``: the model has one of this name, which stands for None
    where there is one row.
    """

    name: str
    tail: tuple[Any, ...]
    optional: bool = False
    shared: bool = False
    sound: Callable[..., Any] | None = None
    own: bool = False


class Parameter(NamedTuple):
    """What is the same for all rows: an array of floats ("f") or int64 ("i"), or an integer ("n")."""

    name: str
    kind: str


class Entry:
    """A recursion over the rows of a batch, compiled when first called.

    Parameters
    ----------
    recursion : callable
        ``recursion(model, row, work)``, see above. ``model`` has the fields of ``table``, and ``lanes``.
    table : Table
        What the model is, with sizes ``busy``, ``workspace`` and ``floats`` for the workspace that is its own.
    given, results : sequence of Given
        Arrays that are read, and written; parameters come before them.
    workspace : callable
        ``workspace(model, row)``: how many numbers the recursion works in; ``row`` has the parameters.
    begin : callable, optional
        ``begin(model, row, work)``: what is done once for many rows.
    may_overflow : bool
        Whether answers are looked at, too: FAILED where one is not finite.
    block : int
        Rows that a thread takes at a time; few where a row is much work.
    unroll : int
        How large a model may be for straight-line code of its own to pay, in nodes or numbers a row (see
        :mod:`special`); 0: none pays. Beyond, what a loop keeps in memory is no slower than what fits no register.
    """

    def __init__(
        self,
        recursion: Callable[..., Any],
        table: Table,
        given: Sequence[Given],
        results: Sequence[Given],
        workspace: Callable[..., Any],
        begin: Callable[..., Any] | None = None,
        parameters: Sequence[Parameter] = (),
        may_overflow: bool = True,
        block: int = 128,
        unroll: int = 0,
    ) -> None:
        self.recursion, self.table, self.begin = recursion, table, begin
        self.given, self.results, self.workspace = tuple(given), tuple(results), workspace
        self.parameters, self.name, self.may_overflow = tuple(parameters), recursion.__name__, may_overflow
        self.block = block
        self.unroll = unroll
        self.narrow: Callable[..., int] | None = None
        self.wide: Callable[..., int] | None = None

    #: What else code depends on, and how hard the compiler works at it.
    key: tuple[Any, ...] = ()
    level = 2

    def seen(self, address: Any) -> Any:
        """The model as the code that is being written sees it."""
        return self.table.at(address)

    def compiled(self, lanes: int) -> Callable[..., int]:
        """The compiled function: ``enter(address, counter, *parameters, *given, *results)``, in so many lanes.

        Any two numbers of lanes from two on give the same bits.
        """
        from kfdyn.sweeps.template import write_entry
        from kfdyn.sweeps.wrapper import Whole

        def write(address: Any, *values: Any) -> Any:
            return write_entry(self, self.seen(address), lanes, *values)

        return self._compiled(write, [Whole(), Whole()], False, ("entry", lanes, self.block), 2 + len(self.parameters))

    def single(self, owner: type, slot: str) -> Callable[..., Any]:
        """The function for one row: ``single(model, *parameters, *given)``, the model an ``owner`` and its address in
        a slot.

        It answers with a new array, a tuple of them if there are several results, or None (see :mod:`single`). Arrays
        for the results may follow; then it answers 1 or None. The bits are those of :meth:`compiled`.
        """
        from kfdyn.sweeps.single import LANES, write_single
        from kfdyn.sweeps.wrapper import Model

        def write(*values: Any) -> Any:
            return write_single(self, *values)

        return self._compiled(write, [Model(owner, slot)], True, ("one row", LANES), None)

    def _compiled(
        self, write: Callable[..., Any], first: list[Any], alone: bool, key: tuple[Any, ...], release: int | None
    ) -> Callable[..., Any]:
        """What ``write`` writes, compiled; of one row ``alone`` results and what the model has itself are optional."""
        from kfdyn.sweeps.driver import compiled
        from kfdyn.sweeps.values import LANEWISE
        from kfdyn.sweeps.wrapper import Array, Whole

        arguments = [*first, *(Whole() if p.kind == "n" else Array(p.kind) for p in self.parameters)]
        arguments += [Array("f", optional=given.optional or (alone and given.own)) for given in self.given]
        arguments += [Array("f", writeable=True, optional=alone) for _ in self.results]
        return compiled(
            self.name,
            write,
            arguments,
            module=self.recursion.__module__,
            key=(*key, *self.key),
            flags=LANEWISE,
            release=release,
            level=self.level,
        )

    def special(self, tables: dict[str, Any], given: frozenset[str]) -> Entry:
        """The same for one model and for calls that give these optional arguments."""
        from kfdyn.sweeps.special import Special

        return Special(self, tables, given)

    def make_narrow(self) -> Callable[..., int]:
        """Compile for few rows."""
        self.narrow = self.compiled(NARROW)
        return self.narrow

    def _widest(self) -> Callable[..., int]:
        from kfdyn.sweeps.driver import machine

        lanes = machine().lanes
        self.wide = self.compiled(lanes) if lanes != NARROW else self.narrow or self.make_narrow()
        return self.wide

    def __call__(self, model: Any, *arrays: Any, rows: int = 1, effort: int = 1) -> int:
        """Run it over all rows, in threads where there is work for them; FINE, FAILED or less than 0.

        ``model`` has ``address``, ``size`` (its nodes) and ``tables``, what :meth:`Table.plain` takes; ``effort`` says
        how many times a row goes through the nodes.
        """
        if rows < _WIDE:
            if Checks.on:
                return self.plain(model, *arrays)
            return _told((self.narrow or self.make_narrow())(model.address, 0, *arrays))
        if Checks.on:
            return self.plain(model, *arrays)
        enter = self.wide or self._widest()
        workers = min(rows * model.size * effort // _LEAST, -(-rows // self.block) if effort > 1 else rows // NARROW)
        workers = min(workers, thread_pool.threads()) if workers > 1 else 1
        if workers < 2:
            return _told(enter(model.address, 0, *arrays))
        counter = np.zeros(1, dtype=np.int64)

        def work(kept: object = (model, counter)) -> int:
            """Sweep; what the addresses are of is kept, since a thread may go on when its caller was interrupted."""
            return enter(model.address, address_of(counter), *arrays)

        return _told(min(thread_pool.POOL.share(work, workers)))

    def plain(self, model: Any, *arrays: Any) -> int:
        """The same as it stands, on Python's floats, every index checked."""
        from kfdyn.sweeps.template import run_plain

        return run_plain(self, model, *arrays)


def _told(status: int) -> int:
    if status == -2:
        raise MemoryError("no memory for the workspace of a sweep")
    return status
