"""One call: run the compiled recursion, and hand what it declines, and nothing else, to an explanation.

A :class:`Kernel` is a compiled recursion by name. Its :meth:`~Kernel.solve` is all that a public function calls. One
state goes straight in; arrays that fit as they stand go in as a batch; everything else is bound first, that is checked
by name and broadcast (:mod:`.states`). Rows that have no answer are NaN then, and go to ``explain``, which has an
answer by other means or the words why there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import KfdynError
from kfdyn.multibody.calls.arguments import expect_system, filled, of_one, overflow, straight
from kfdyn.multibody.calls.packed_model import MODELS, Model, varied_of
from kfdyn.multibody.calls.states import SIZES, States

if TYPE_CHECKING:
    from kfdyn.multibody.system import System
    from kfdyn.sweeps.entry import Entry

Answers = tuple[Array, ...]
#: Answers (size, ...) for some states, each array with what it is called in errors.
Explain = Callable[[Any], dict[str, Array]]

FINE = 1
_FLOAT = np.dtype(np.float64)

#: A kind of system: where it keeps the address of its tables, and how these are made.
KINDS: dict[str, tuple[str, Callable[[Any], Model]]] = {
    kind: (slot, MODELS[kind]) for kind, slot in (("tree", "address"), ("geared", "gears"), ("curved", "cams"))
}
#: How names of entries begin that are written for couplings; from others those for couplings follow.
FOR_COUPLINGS = "GEARED_"
#: Robots that differ in numbers: entries are those of one of them (:mod:`~kfdyn.multibody.recursions.variants.varied`).
VARIED = "varied "
KINDS |= {VARIED + kind: ("", varied_of) for kind in KINDS}


class Kernel:
    """A compiled recursion by name, imported when first called: what compiles is slow to load.

    Parameters
    ----------
    module, name : str
        Where the entry for trees is.
    coupled : bool or str
        Whether compiled code serves systems with couplings, too: by the recursion of trees, with q, v and a expanded
        and answers narrowed; or the module of a recursion that is written for them, ``GEARED_`` and the name.
    meaning : str or callable
        What is said to overflow where an answer is not finite and nothing explains it; or what tells, given the system
        and the arguments.
    explain : callable, optional
        ``explain(states)``: the answers (size, ...) of states that the compiled code declines, by what they are called,
        or an error.
    otherwise : callable, optional
        ``otherwise(system, *parameters, *arrays)``: the answer for kinds of systems that no compiled code serves; if
        not given, they are explained.
    opened : bool
        Whether the answer for these kinds is that for their open tree, narrowed (:meth:`of_open_tree`).
    rest : bool
        Whether no ``v`` is at rest.
    most : int, optional
        Dofs of a system with couplings up to which this serves.
    model : callable, optional
        How the tables are made, if not as ``kind`` has them.
    kind : str
        Whose entry it is, one of ``KINDS``.
    kinds : tuple of str
        Which kinds of couplings are served.

    Attributes
    ----------
    one : callable
        The compiled function for one state, without anything around it: ``one(system, *arrays)`` is a new array, a
        tuple of them if there are several results, or None where it has no answer. It takes whatever it is given: what
        is no system, or no array as it should be, has no answer. Specialised systems take it, too: to fetch
        straight-line code for a single state takes longer than to run it. Where every index is to be checked it never
        has an answer.
    solve : callable
        ``solve(system, *parameters, *arrays, *out)``: the answer, whatever the arrays are like. It is the compiled
        function for one state, which calls :meth:`rows` where it has no answer; so do not keep it.
    variants : dict of str to Kernel
        For each kind of system that is served, the kernel that serves it.
    """

    #: What arguments are bound to, and whether quantities of it are those of the system without its loops.
    states: type[States] = States
    called: Mapping[str, str] = MappingProxyType({})  # names that callers know arrays by, where entries have others
    ignores_loops = True

    def __init__(
        self,
        module: str,
        name: str,
        *,
        coupled: bool | str = False,
        meaning: str | Callable[..., str] = "",
        explain: Explain | None = None,
        otherwise: Callable[..., Any] | None = None,
        opened: bool = False,
        rest: bool = True,
        most: int | None = None,
        model: Callable[[Any], Model] | None = None,
        kind: str = "tree",
        kinds: tuple[str, ...] = ("geared", "curved"),
    ) -> None:
        self._slot, self._model = KINDS[kind]
        if model is not None:
            self._slot, self._model = "", model
        self._module, self._name, self._kind = module, name, kind
        self._entry: Entry | None = None
        self._count, self._replaced, self._tails = 0, list[tuple[int, str]](), list[list[Any]]()
        self._checks: Any = None
        self.meaning, self.explain, self.rest, self.most = meaning, explain, rest, most
        self.otherwise = self.of_open_tree if opened else otherwise
        self.one: Callable[..., Any] = self._first
        self.solve: Callable[..., Any] = self._first_solve
        self.variants = {kind: self}
        for other in set(kinds) - {kind} if coupled else ():
            self.variants[other] = Kernel(coupled if isinstance(coupled, str) else module, name, kind=other)
        if model is None and not kind.startswith(VARIED):
            self.variants[VARIED + kind] = Kernel(module, name, rest=rest, kind=VARIED + kind)
            for other in set(self.variants) & set(kinds):
                self.variants |= self.variants[other].variants

    @property
    def entry(self) -> Entry:
        """The entry itself."""
        if self._entry is None:
            from kfdyn.sweeps.jit import Checks

            entry = _entry_for(self._kind, import_module(self._module), self._name)
            self._count = count = len(entry.parameters)
            self._replaced = [
                (count + i, about.name) for i, about in enumerate(entry.given) if about.name in ("v", "gravity")
            ]
            names = [about.name for about in entry.parameters]
            # extents: attributes of a system, numbers, or places of parameters, counted from −1 backwards
            self._tails = [
                [~names.index(x) if x in names else SIZES.get(x, x) for x in about.tail] for about in entry.results
            ]
            self._checks, self._entry = Checks, entry
        return self._entry

    def _first(self, system: Any, *arrays: Any) -> Any:
        """The first call, which compiles."""
        if getattr(system, "kind", None) != self._kind:
            return None
        return self.ready(system)(system, *arrays)

    def ready(self, system: System) -> Callable[..., Any]:
        """:attr:`one`, compiled, for a system that is prepared: one that is not has no answer."""
        served = self.variants.get(system.kind, self)
        if served is not self:
            return served.ready(system)
        entry, _ = self.entry, self._model(system)
        if self.one == self._first:
            alone = self._slot and not self._checks.on
            self.one = entry.single(type(system), self._slot) if alone else lambda *_: None
        return self.one

    def serving(self, system: System) -> Kernel | None:
        """The kernel for this kind of system, if there is one."""
        served = self.variants.get(system.kind)
        return None if served is None or self._is_beyond(served, system) else served

    def model(self, system: System) -> Model:
        """The system as the entry finds it."""
        return self._model(system)

    def _is_beyond(self, served: Kernel, system: System) -> bool:
        """Tell whether a system with couplings has more dofs than this serves."""
        return self.most is not None and "tree" not in served._kind and system.nv > self.most

    def other(self, system: System) -> Callable[..., Any] | None:
        """Return the answer for a kind of system without compiled code; None leaves it to the explanation."""
        return self.otherwise

    def of_open_tree(self, system: System, *arguments: Any) -> Any:
        """The answer for a state of the open tree: J X where it is J, dof by dof."""
        count = len(self.entry.parameters)
        given = {about.name: x for about, x in zip(self.entry.given, arguments[count:])}
        rates = {name: given[name] for name in ("v", "a") if name in given}
        tree, *opened = system.opened(given["q"], **rates)
        found = self.rows(tree, (*arguments[:count], *(given | dict(zip(("q", *rates), opened))).values()))
        several = found if type(found) is tuple else (found,)
        tails = [about.tail for about in self.entry.results]
        own = [system.narrowed(given["q"], x) if "nv" in tail else x for x, tail in zip(several, tails)]
        return tuple(own) if type(found) is tuple else own[0]

    def __call__(self, system: System, rows: int, *arrays: Any, effort: int = 1) -> int:
        """Run it on these arrays; of what does not fit as it stands, contiguous copies are tried."""
        served = self.variants.get(system.kind, self)
        if served is not self:
            return served(system, rows, *arrays, effort=effort)
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

    def _first_solve(self, system: Any = None, *arguments: Any) -> Any:
        """The first call, which compiles; with a system of another kind that is left to a later one."""
        entry = self.entry
        if getattr(system, "kind", None) == self._kind:
            self._model(system)
            compiled = self._slot and not self._checks.on
            self.solve = entry.single(type(system), self._slot, self._unsolved) if compiled else self._unsolved
            return self.solve(system, *arguments)
        return self._unsolved(system, *arguments)

    def _unsolved(self, system: Any = None, *arguments: Any) -> Any:
        """Answer one state for which the compiled function has no answer."""
        served = self.variants.get(getattr(system, "kind", ""))
        if served is not None and served is not self and not self._is_beyond(served, system):
            found = served.one(system, *arguments)
            if found is not None:
                return found
        count = self._count + len(self.entry.given)
        outs = arguments[count:]
        out = None if not outs or outs[0] is None else outs[0] if len(outs) == 1 else outs
        return self._rows(system, served, arguments[:count], out, None)

    def rows(self, system: System, arguments: tuple[Any, ...], out: Any = None, explain: Explain | None = None) -> Any:
        """The answer to parameters and arrays of any kind; a tuple of several.

        Parameters
        ----------
        system : System
            Of any kind.
        arguments : tuple
            Parameters of the entry and what its rows are given; arrays broadcast, and None is what it stands for.
        out : array or sequence of arrays, optional
            Where answers go.
        explain : callable, optional
            Instead of the one that the kernel was made with.
        """
        expect_system(system)
        served = self.serving(system)
        if served is not None and out is None:
            found = served.one(system, *arguments)
            if found is not None:
                return found
        return self._rows(system, served, arguments, out, explain)

    def _rows(
        self, system: System, served: Kernel | None, arguments: tuple[Any, ...], out: Any, explain: Explain | None
    ) -> Any:
        """Answer rows by the kernel of their kind, by code without a kernel, or by the explanation."""
        if served is None or self._is_beyond(served, system):
            expect_system(system)
            if self.ignores_loops and system.without_loops is not system:
                return self.rows(system.without_loops, arguments, out, explain)
            other, served = self.other(system), None
            if other is not None:
                found = other(system, *arguments)
                return self._written(out, found if type(found) is tuple else (found,))
        count = self._count if self._entry is not None else len(self.entry.parameters)
        answers, declined = None, None
        if served is not None:
            answers, fine = self.attempt(system, arguments, out)
            if answers is not None and fine:
                return _told(answers, out)
        states = self.bound(system, arguments)
        if answers is not None:  # right where they are finite
            answers = flattened(states, answers)
        elif served is not None:
            answers, declined = self.swept(states, arguments[:count])
        if declined is None and answers is not None:
            declined = unanswered(False, *answers)
        if system.robots and (declined is None or declined.any()):
            answers = self._one_by_one(states, arguments[:count], answers, declined)
        elif declined is None or declined.any():
            explain = explain or self.explain
            if explain is None:
                meaning = self.meaning if isinstance(self.meaning, str) else self.meaning(system, *arguments)
                raise overflow(system, meaning, **states.arrays)
            answers = self.mended(states, answers, declined, explain)
        assert answers is not None
        return self._written(out, tuple([states.shaped(x) for x in answers]))

    def attempt(self, system: System, arguments: tuple[Any, ...], out: Any = None) -> tuple[Answers | None, bool]:
        """Answers (..., *tail) to arrays that fit as they stand, NaN in rows that have none, and whether all have one.

        None if some array does not fit, or ``out`` cannot be written to straight away.
        """
        count = self._count if self._entry is not None else len(self.entry.parameters)
        q = arguments[count]
        if type(q) is not ndarray or not q.ndim:
            return None, False
        lead = q.shape[:-1]
        if lead[len(lead) - len(system.robots) :] != system.robots:
            return None, False
        given = list(arguments)
        for i, name in self._replaced:
            if given[i] is None and (name != "v" or self.rest):
                given[i] = system.gravity if name == "gravity" else np.zeros((*lead, system.nv))
        answers = self._room(system, lead, arguments, out)
        if answers is None:
            return None, False
        status = self(system, math.prod(lead) if lead else 1, *given, *answers)
        return (None if status < 0 else answers), status == FINE

    def bound(self, system: System, arguments: tuple[Any, ...]) -> Any:
        """Arrays that rows are given, checked by name and broadcast."""
        given = arguments[len(self.entry.parameters) :]
        return self.states.bound(system, self.entry.given, given, self.rest, self.called)

    def swept(self, states: Any, parameters: tuple[Any, ...] = (), **more: Any) -> tuple[Answers, NDArray[np.bool_]]:
        """Answers (size, ...) to bound arguments, and which rows (size,) have none and are NaN; ``more`` by name."""
        given = []
        for about in self.entry.given:
            x = states.arrays.get(self.called.get(about.name, about.name))
            x = more.get(about.name) if x is None else states.as_given(x)
            given.append(self._usual(states.system, about.name, x, (states.size,) if states.lead else ()))
        answers = self._room(states.system, (states.size,), (*parameters, *given))
        assert answers is not None
        status = self(states.system, states.size, *parameters, *given, *(states.as_given(x) for x in answers))
        return answers, unanswered(known(status), *answers)

    def mended(self, states: Any, answers: Answers | None, declined: Any, explain: Explain) -> Answers:
        """The answers with those of the explanation in their place."""
        few = states if declined is None else states.only(np.flatnonzero(declined))
        found = tuple(explain(few).values())
        if answers is None:
            return found
        for answer, own in zip(answers, found):
            answer[declined] = own
        return answers

    def _one_by_one(
        self, states: Any, parameters: tuple[Any, ...], answers: Answers | None, declined: Any
    ) -> Answers | None:
        """The answers with those of one robot after the other in rows (size,) that are declined; or its words."""
        system, names = states.system, [self.called.get(about.name, about.name) for about in self.entry.given]
        if answers is None:
            raise of_one(system, self._name.lower())
        for i in np.flatnonzero(declined):
            given = [states.arrays[name][i] if name in states.arrays else None for name in names]
            robot = int(i % system.size)
            try:
                found = self.rows(system[robot], (*parameters, *given))
            except KfdynError as error:
                error.args = (f"robot {robot}: {error}", *error.args[1:])
                raise
            for answer, own in zip(answers, found if type(found) is tuple else (found,)):
                answer[i] = own
        return answers

    def _usual(self, system: System, name: str, x: Any, lead: tuple[int, ...]) -> Any:
        """An array that rows are given, or what stands for it where none is."""
        if x is None:
            if name == "gravity":
                return system.gravity
            if name == "v" and self.rest:
                return np.zeros((*lead, system.nv))
        return x

    def _room(
        self, system: System, lead: tuple[int, ...], arguments: tuple[Any, ...], out: Any = None
    ) -> Answers | None:
        """Arrays (..., *tail) for the results: ``out`` where compiled code can write to it, None if not to all."""
        answers: list[Array] = []
        outs = () if out is None else (out,) if len(self._tails) == 1 else out
        for k, tail in enumerate(self._tails):
            shape = lead
            for x in tail:
                shape += (getattr(system, x) if type(x) is str else x if x >= 0 else int(arguments[~x]),)
            if k < len(outs):
                own = straight(outs[k], shape, *arguments, *answers)
                if own is None:
                    return None
                answers.append(own)
            else:
                answers.append(empty(shape))
        return tuple(answers)

    def _written(self, out: Any, answers: Answers) -> Any:
        """The answers, in ``out`` if that is given."""
        if len(answers) == 1:
            return filled(out, answers[0])
        return answers if out is None else tuple([filled(x, answer) for x, answer in zip(out, answers)])


def _entry_for(kind: str, module: Any, name: str) -> Any:
    """The entry of this name for a kind of system."""
    if kind.startswith(VARIED):
        return _entry_for(kind.removeprefix(VARIED), module, name).varied()
    if kind == "tree":
        return getattr(module, name)
    written: Any = getattr(module, FOR_COUPLINGS + name, None) or getattr(module, name)
    return written.coupled(kind)


def _told(answers: Answers, out: Any) -> Any:
    """Return the results to a caller: the one array, or all; the caller's own where given."""
    if out is not None:
        return out
    return answers[0] if len(answers) == 1 else answers


def flattened(states: States, answers: Answers) -> Answers:
    """Answers (..., *tail) to arguments that are bound now, with their leading axes made one."""
    return tuple([x.reshape((states.size, *x.shape[len(states.lead) :])) for x in answers])


def unanswered(fine: bool, *answers: Array) -> NDArray[np.bool_]:
    """In which rows (size,) an entry has no answer; it has none to look for if its status was fine."""
    lost = np.zeros(len(answers[0]), dtype=bool)
    for x in () if fine else answers:
        lost |= ~np.isfinite(x).all(axis=tuple(range(1, x.ndim)))
    return lost


def _is_batch(entry: Entry, arrays: tuple[Any, ...]) -> bool:
    """Tell whether the results have batch axes; without them it is one state."""
    results = entry.results
    return bool(arrays[-len(results)].ndim > len(results[0].tail))


def _contiguous(x: Any) -> Any:
    """The same numbers in order, if it is a plain array of floats; anything else as it is."""
    if type(x) is ndarray and x.dtype == _FLOAT and not (x.flags.c_contiguous and x.flags.aligned):
        return np.array(x, order="C")
    return x


def known(status: int) -> bool:
    """Tell whether an entry has answered all rows; raise for arrays that it cannot take, a mistake of ours."""
    if status < 0:
        raise AssertionError(f"an entry does not take arrays that were checked ({status})")
    return status == FINE
