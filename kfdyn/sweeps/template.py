"""What :class:`~kfdyn.sweeps.entry.Entry` is made of: the code around a recursion, written and run plain."""

import math

import numpy as np

from kfdyn.sweeps.control import either, loop, when, while_
from kfdyn.sweeps.copies import LINE, SHORTEST, Late, settle, streams
from kfdyn.sweeps.functions import declared
from kfdyn.sweeps.ir import BIT, BYTE, EXCHANGED, INT, REAL, VOID, FunctionType, constant, vector
from kfdyn.sweeps.memory import Checked, Column, passes, pointer
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.values import (
    Place,
    Value,
    choice,
    everywhere,
    ir_of,
    lane,
    local,
    stack,
    wide,
)

#: What an entry answers where the system has no memory for its workspace.
NO_MEMORY = -2

#: Sums that answers are looked at by side by side: fewer would wait for each other longer than for the numbers.
_APART = 32

#: Numbers from which on matrices are streamed: 24 MB. Somewhat less would be faster by itself, but not with whoever
#: reads the answers next, since then they are no longer in a cache of 32 MB.
_LARGE = 3 * 2**20


def write_entry(entry, lanes, address, counter, *arrays):
    """Write the whole of a compiled entry."""
    model = entry.seen(address)
    model.lanes = lanes
    row, arrays = Fields(), list(arrays)
    for parameter in entry.parameters:
        setattr(row, parameter.name, arrays.pop(0))
    given, results = arrays[: len(entry.given)], arrays[len(entry.given) :]
    align_stack()
    lead, rows = _leading(entry, model, row, results[0])
    fits = _fit(entry, model, row, given, results, lead)
    status = local(-1)
    for _ in when(fits):
        status.set(NO_MEMORY)
        memory, owner, got = borrow(model, entry.workspace(model, row) * lanes + LINE)
        for _ in when(got):
            status.set(1)
            work = memory.aligned().lanes(lanes)
            if entry.begin is not None:
                entry.begin(model, row, work)
            answers = Answers(entry, model, row, results, rows, status)
            _write_rows(entry, model, row, work, (given, results, lead), rows, counter, answers)
            answers.finish()
            give_back(model, owner)
    return status


def _write_rows(entry, model, row, work, arrays, rows, counter, answers):
    """Write the loop over blocks of rows, as long as some are left."""
    at = local(_claim(counter, -entry.block, entry.block))
    for _ in while_(lambda: at < rows):
        end = choice(rows - at < entry.block, rows, at + entry.block)
        _write_block(entry, model, row, work, arrays, at, end, answers)
        at.set(_claim(counter, at, entry.block))


def _write_block(entry, model, row, work, arrays, at, end, answers):
    """Look at the numbers of some rows, and sweep them if they are sound; NaN for all if not."""
    given, results, lead = arrays
    one = [_one_for_all(about, array, lead) for about, array in zip(entry.given, given)]
    first = Value(at.ir)
    for sound in either(sound_rows(entry, model, row, given, one, first, end)):
        if not sound:
            answers.status.set(0)
            for about, array in zip(entry.results, results):
                width = width_of(about, model, row)
                for i in loop(end * width, first * width):
                    array[i] = math.nan
            continue
        for start, step in passes(model.lanes, first, end):
            for about, array, alone in zip(entry.given, given, one):
                width = width_of(about, model, row)
                begin = start * width if alone is False else choice(alone, 0, start * width)
                apart = step * width if alone is False else choice(alone, 0, step * width)
                column = Column(array, begin, apart, model.lanes)
                column.given = array.given
                setattr(row, about.name, column)
            columns = [answers.column_of(about.name, start, step) for about in entry.results]
            for about, column in zip(entry.results, columns):
                setattr(row, about.name, column)
            answers.swept(entry.recursion(model, row, work), start, step)
        for about, array, column in zip(entry.results, results, columns) if entry.may_overflow else ():
            if not column.looked_at:
                width = width_of(about, model, row)
                for _ in when(~finite(array, first * width, end * width, _APART), likely=False):
                    answers.status.set(0)


class Answers:
    """The results of a call, from pass to pass; ``status`` is what it answers."""

    def __init__(self, entry, model, row, results, rows, status):
        self.entry, self.model, self.row, self.status = entry, model, row, status
        self.results = dict(zip((about.name for about in entry.results), zip(entry.results, results)))
        self.streamed = _streamed(entry, model, row, rows)
        self.total = local(Value(constant(wide(model.lanes), 0.0))) if entry.may_overflow else None
        self.least = local(Value(constant(wide(model.lanes), 1.0)))
        row.late = self.late = Late(self.column_of, self._after) if self.streamed is not False else None

    def column_of(self, name, start, step):
        """A result, of the rows from ``start`` on."""
        about, array = self.results[name]
        width, streamed = width_of(about, self.model, self.row), _may_stream(about) and self.streamed
        return Column(array, start * width, step * width, self.model.lanes, width, streamed, self.total)

    def swept(self, least, start, step):
        """A pass is done, and these rows have answers where ``least`` is positive."""
        late = self.late if self.late is not None and self.late.matrices is not None else None
        if late is not None:
            late.start.set(start)
            late.step.set(step)
        if least is not None:
            self.least.set(least)
            for _ in when(~everywhere(least > 0.0), likely=False):
                self.status.set(0)
                for _ in when(True if late is None else ~late.waiting):  # else some is still to come
                    self._spoil(least, start, step)

    def finish(self):
        """All passes are done."""
        if self.late is not None:
            self.late.flush()
        settle(self.streamed)
        if self.total is not None:
            for _ in when(~everywhere(self.total == 0.0), likely=False):
                self.status.set(0)

    def _after(self, start, step):
        """What came late is there."""
        least = Value(self.least.ir)
        for _ in when(~everywhere(least > 0.0), likely=False):
            self._spoil(least, start, step)

    def _spoil(self, least, start, step):
        """NaN in the rows of the lanes in which ``least`` is not positive."""
        settle(self.streamed)
        for l in range(self.model.lanes):
            for _ in when(~(lane(least, l) > 0.0)):
                for about, array in self.results.values():
                    width = width_of(about, self.model, self.row)
                    begin = (start + step * l) * width
                    for i in loop(begin + width, begin):
                        array[i] = math.nan


def _may_stream(about):
    """Whether a result may be so large that it is streamed: a matrix may."""
    return len(about.tail) > 1


def _streamed(entry, model, row, rows):
    """Whether all matrices together are more than caches are likely to keep until somebody wants them.

    Not in code for one model, which is a small one.
    """
    widths = [width_of(about, model, row) for about in entry.results if _may_stream(about)]
    if not streams(model.lanes) or not any(isinstance(width, Value) for width in widths):
        return False
    total, fits = 0, Value(constant(BIT, 1))
    for width in widths:
        total, fits = total + width, fits & (width >= SHORTEST)
    return fits & (rows * total >= _LARGE)


def width_of(about, model, row):
    """How many numbers a row of an array has."""
    width = 1
    for extent in about.tail:
        width = width * extent_of(extent, model, row)
    return width


def extent_of(extent, model, row):
    """A number, or the size of this name."""
    if isinstance(extent, int):
        return extent
    return getattr(row, extent) if hasattr(row, extent) else getattr(model, extent)


def _leading(entry, model, row, array):
    """The number of leading axes, and of rows, as the first result has them."""
    lead = array.axes - len(entry.results[0].tail)
    rows = local(1)
    for i in loop(lead):
        rows.set(rows * array.shape[i])
    return (lead, array.shape), Value(rows.ir)


def _fit(entry, model, row, given, results, lead):
    """Whether all arrays have the leading axes of the result and the trailing ones that they should."""
    axes, shape = lead
    fits = local(axes >= 0)
    for about, array in zip((*entry.given, *entry.results), (*given, *results)):
        tail = len(about.tail)

        def look(array=array, tail=tail, about=about):
            whole = array.axes == axes + tail
            if about.shared:
                whole = whole | (array.axes == tail)
            fits.set(fits & whole)
            for _ in when(fits):
                begin = array.axes - tail
                for i in loop(begin):
                    fits.set(fits & (array.shape[i] == shape[i]))
                for i, extent in enumerate(about.tail):
                    fits.set(fits & (array.shape[begin + i] == extent_of(extent, model, row)))

        for _ in when(array.given if about.optional else True):
            look()
    return Value(fits.ir)


def _one_for_all(about, array, lead):
    """Whether one row stands for all."""
    return (array.axes == len(about.tail)) & (lead[0] > 0) if about.shared else False


def sound_rows(entry, model, row, given, one, first, end):
    """Whether the numbers of some rows can be worked with."""
    fine = local(Value(constant(BIT, 1)))
    for about, array, alone in zip(entry.given, given, one):
        for _ in when(fine & array.given if about.optional else fine):
            width = width_of(about, model, row)
            begin = first if alone is False else choice(alone, 0, first)
            stop = end if alone is False else choice(alone, 1, end)
            if about.sound is not None:
                fine.set(about.sound(model, row, array, begin, stop, width))
            else:
                fine.set(finite(array, begin * width, stop * width))
    return Value(fine.ir)


def finite(array, first, last, lanes=4):
    """Whether numbers first … last are finite."""
    if Place.builder is None:
        return all(math.isfinite(array[i]) for i in range(first, last))
    wide_type = vector(REAL, lanes)
    total = local(Value(constant(wide_type, 0.0)))
    whole = last - (last - first) % lanes
    for i in loop(whole, first, step=lanes):
        place = Place.builder.cast("bitcast", array._at(i), wide_type.as_pointer())
        zero = Value(constant(wide_type, 0.0))
        total.set(total + Value(Place.builder.real("fmul", Place.builder.load(place, align=8), zero.ir, ())))
    rest = local(0.0)
    for i in loop(last, whole):
        rest += Value(Place.builder.real("fmul", array[i].ir, constant(REAL, 0.0), ()))  # NaN where it is not finite
    return everywhere(total + rest == 0.0)


def align_stack():
    """Have the function put numbers for which it has no register where no cache line ends within one.

    The compiler aligns the stack only where a variable asks for it, so here is one.
    """
    place = stack(vector(REAL, 8), align=64)
    Place.builder.line(f'call void asm sideeffect "", "r"({place.type} {place.name})')


def _atomic(place, text, kind=INT):
    """The value of an instruction on a place that threads share."""
    return Value(Place.builder.value(kind, text.format(f"{place.type} {place.name}")))


def _claim(counter, at, block):
    """The row to go on with after the block from ``at`` on.

    Threads that share the work share a ``counter`` at that address, and each takes the next block; 0 is to be alone.
    """
    result = local(at + block if isinstance(at, int) else Value(at.ir) + block)
    for _ in when(counter != 0):
        place = pointer(counter, INT)
        result.set(_atomic(place.data, f"atomicrmw add {{}}, i64 {block} acq_rel"))
    return result


def borrow(model, count):
    """A workspace of ``count`` floats: the model's own, or, if that is too small or taken, a new one.

    A new one costs time, and a great deal where it is large: the system zeroes it page by page. Returns it, and what
    is to be given back: 0 for the model's own.
    """
    got, owner = local(model.workspace), local(0)
    free = local(Value(constant(BIT, 0)))
    for _ in when(model.floats >= count):
        # one step that no thread comes between
        done = _atomic(model.busy.data, "cmpxchg {}, i64 0, i64 1 acq_rel acquire", EXCHANGED)
        free.set(Value(Place.builder.value(BIT, f"extractvalue {EXCHANGED} {done.ir.name}, 1")))
    for _ in when(~free):
        new = Place.builder.call(declared("malloc", FunctionType(BYTE.as_pointer(), [INT])), [ir_of(count * 8, INT)])
        address = Value(Place.builder.cast("ptrtoint", new, INT))
        got.set(address)
        owner.set(address)
    address = Value(got.ir)
    return pointer(address), Value(owner.ir), address != 0


def give_back(model, owner):
    """Let others have the workspace."""
    for own in either(owner == 0):
        build = Place.builder
        if own:
            build.line(f"store atomic i64 0, {model.busy.data.type} {model.busy.data.name} release, align 8")
        else:
            free = declared("free", FunctionType(VOID, [BYTE.as_pointer()]))
            build.call(free, [build.cast("inttoptr", owner.ir, BYTE.as_pointer())])


def run_plain(entry, model, *arrays):
    """Run an entry on Python's floats, every index checked, row by row."""
    seen = entry.table.plain(**model.tables)
    seen.lanes = 1
    row, arrays = Fields(), list(arrays)
    for parameter in entry.parameters:
        value = arrays.pop(0)
        setattr(row, parameter.name, value if parameter.kind == "n" else Checked(value.reshape(-1)))
    about = (*entry.given, *entry.results)
    lead = arrays[-1].shape[: arrays[-1].ndim - len(about[-1].tail)]
    flat = []
    for one, array in zip(about, arrays):
        if array is None and one.optional:
            flat.append((None, 0))
            continue
        tail = tuple(extent_of(extent, seen, row) for extent in one.tail)
        plain = type(array) is np.ndarray and array.dtype == np.float64 and array.flags.c_contiguous
        if not plain or (array.shape != lead + tail and not (one.shared and array.shape == tail)):
            return -1
        width = 0 if array.shape == tail and lead else math.prod(tail)
        flat.append((Checked(array.reshape(-1)), width))
    status = 1
    for b in range(math.prod(lead)):
        sound = True
        for one, (memory, width) in zip(entry.given, flat):
            if memory is not None:
                tail = math.prod(extent_of(extent, seen, row) for extent in one.tail)
                first = b if width else 0
                if one.sound is not None:
                    sound = sound and one.sound(seen, row, memory, first, first + 1, tail)
                else:
                    sound = sound and finite(memory, first * tail, (first + 1) * tail)
        for one, (memory, width) in zip(about, flat):
            tail = math.prod(extent_of(extent, seen, row) for extent in one.tail)
            column = Column(Checked([]) if memory is None else memory.part(b * width, tail), 0, 0, 1)
            column.given = memory is not None
            setattr(row, one.name, column)
        work = Checked([math.nan] * int(entry.workspace(seen, row)))
        least = None
        if sound:
            if entry.begin is not None:
                entry.begin(seen, row, work)
            try:
                least = entry.recursion(seen, row, work)
            except ZeroDivisionError:  # compiled code has an infinity there, and then no answer either
                least = 0.0
            for memory, width in flat[len(entry.given) :]:
                status &= finite(memory, b * width, (b + 1) * width)
        if not sound or (least is not None and not least > 0.0):
            status = 0
            for one, (memory, width) in list(zip(about, flat))[len(entry.given) :]:
                for i in range(width or math.prod(extent_of(e, seen, row) for e in one.tail)):
                    memory[b * width + i] = math.nan
    return status


__all__ = [
    "align_stack",
    "borrow",
    "extent_of",
    "finite",
    "give_back",
    "run_plain",
    "sound_rows",
    "width_of",
    "write_entry",
]
