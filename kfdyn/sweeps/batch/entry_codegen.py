"""Write the compiled code of an :class:`~kfdyn.sweeps.entry.Entry` around its recursion, or run it in Python.

It is written in the language of sweeps itself, so that Python runs the same text on its own floats.
"""

import math

import numpy as np

from kfdyn.sweeps.batch.streaming_store import LINE, SHORTEST, Late, settle, streams
from kfdyn.sweeps.compiler.ir import BIT, BYTE, INT, VOID, Type, vector
from kfdyn.sweeps.control_flow import if_, if_else, loop, while_
from kfdyn.sweeps.memory import REAL, Checked, Column, Result, passes, pointer
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import Value, all_lanes, broadcast, ir_of, lane, not_, now, unboxed, vanishing, where
from kfdyn.sweeps.variables import local

#: What an entry answers where arrays do not fit, and where the system has no memory for its workspace.
UNFIT, NO_MEMORY = -1, -2

# Numbers that are looked at side by side, as long as there are as many: fewer wait for each other longer than for the
# numbers.
_SIDE_BY_SIDE = 16, 1

#: Numbers from which on matrices are streamed: 24 MB. Somewhat less would be faster by itself, but not with whoever
#: reads the answers next, since then they are no longer in a cache of 32 MB.
_LARGE = 3 * 2**20


class Call:
    """One call of an entry while its code is written: the model, a row with the parameters, and all arrays.

    Attributes
    ----------
    rows : Value or int
        How many rows there are; known when :meth:`fits` was asked.
    """

    def __init__(self, entry, model, lanes, arrays):
        self.entry, self.model, self.row = entry, model, Fields()
        model.lanes = lanes
        left = iter(arrays)
        for parameter in entry.parameters:
            setattr(self.row, parameter.name, next(left))
        self.given, self.results = ([(about, next(left)) for about in some] for some in (entry.given, entry.results))

    def extent(self, extent):
        """Return an extent that is a number, or the size that it names."""
        if isinstance(extent, int):
            return extent
        return getattr(self.row, extent) if hasattr(self.row, extent) else getattr(self.model, extent)

    def width(self, about):
        """Return how many numbers a row of an array has."""
        width = 1
        for extent in about.tail:
            width = width * self.extent(extent)
        return width

    def fits(self):
        """Check that all arrays have the leading axes of the first result and their own trailing ones."""
        about, first = self.results[0]
        self.lead = where(first.given, first.axes - len(about.tail), 0)
        fits, rows = local(self.lead >= 0), local(1)
        for i in loop(self.lead):
            rows.set(rows * first.shape[i])
        for about, array in (*self.given, *self.results):
            for _ in if_(array.given):
                lead = array.axes - len(about.tail)
                fits.set(fits & ((lead == self.lead) | (lead == 0) if about.shared else lead == self.lead))
                for _ in if_(fits):
                    for i in loop(lead):
                        fits.set(fits & (array.shape[i] == first.shape[i]))
                    for i, extent in enumerate(about.tail):
                        fits.set(fits & (array.shape[lead + i] == self.extent(extent)))
        self.rows = now(rows)
        return now(fits)

    def _for_all(self, about, array):
        """Return True if one row of the array stands for all rows."""
        return (array.axes == len(about.tail)) & (self.lead > 0) if about.shared else False

    def sound(self, first, end):
        """Check the numbers of some rows: finite, or as the array's own test asks."""
        fine = local(True)
        for about, array in self.given:
            for _ in if_(fine & array.given):
                width, alone = self.width(about), self._for_all(about, array)
                begin, stop = where(alone, 0, first), where(alone, 1, end)
                if about.sound is not None:
                    fine.set(about.sound(self.model, self.row, array, begin, stop, width))
                else:
                    fine.set(finite(array, begin * width, stop * width))
        return now(fine)

    def workspace(self):
        """Yield an initialised workspace, if there is memory for one."""
        count, lanes = self.entry.workspace.size(self.model, self.row), self.model.lanes
        for memory in borrowed(self.model, count * lanes + LINE) if tracing.builder is not None else [_unset(count)]:
            work = memory.aligned().lanes(lanes)
            self.entry.workspace.start(self.model, self.row, work)
            yield work

    def column(self, about, array, start, step, *result):
        """Return the rows of an array from ``start`` on as a column, one row in each lane."""
        width, alone = self.width(about), self._for_all(about, array)
        at, apart = where(alone, 0, start * width), where(alone, 0, step * width)
        if tracing.builder is None:  # of a row's numbers none but these can be reached
            array, at = array.part(at, width) if array.given else array, 0
        return Column(array, at, apart, self.model.lanes, *result)

    def see(self, columns):
        """Give the row what the recursion reads and writes, by name."""
        for (about, _), column in zip((*self.given, *self.results), columns):
            setattr(self.row, about.name, column)
        for about, array in self.given:
            getattr(self.row, about.name).given = array.given

    def swept(self, work):
        """Run the recursion; return its result, positive where all went well, or None."""
        try:
            return self.entry.recursion(self.model, self.row, work)
        except ZeroDivisionError:
            if tracing.builder is not None:
                raise
            return 0.0  # compiled code has an infinity there, and then no answer either

    def spoil(self, first, end):
        """Fill all results of these rows with NaN."""
        for about, array in self.results:
            width = self.width(about)
            for i in loop(end * width, first * width):
                array[i] = math.nan


def _unset(count):
    """Return a workspace of Python's numbers, all NaN."""
    return Checked([math.nan] * int(count))


def write_entry(entry, model, lanes, counter, *arrays):
    """Write a whole compiled entry; run it where no code is written."""
    call = Call(entry, model, lanes, arrays)
    align_stack()
    status = local(UNFIT)
    for _ in if_(call.fits()):
        status.set(NO_MEMORY)
        for work in call.workspace():
            status.set(1)
            _write_rows(call, work, counter, Answers(call, status))
    return status


def _write_rows(call, work, counter, answers):
    """Process blocks of rows while some are left, at most as many as the counter allows."""
    rows, block = call.rows, call.entry.options.block
    left = allowed(counter)
    at = local(claimed(counter, -block, block))
    for _ in while_(lambda: at < rows):
        first = now(at)
        _write_block(call, work, first, where(rows - first < block, rows, first + block), answers)
        left.set(left - 1)
        for more in if_else(left > 0):
            at.set(claimed(counter, first, block) if more else rows)
    answers.finish()


def _write_block(call, work, first, end, answers):
    """Check the numbers of some rows and sweep them; fill their results with NaN if the check fails."""
    for sound in if_else(call.sound(first, end)):
        if not sound:
            answers.status.set(0)
            call.spoil(first, end)
            continue
        for start, step in passes(call.model.lanes, first, end):
            given = [call.column(about, array, start, step) for about, array in call.given]
            results = [answers.column_of(about.name, start, step) for about, _ in call.results]
            call.see([*given, *results])
            call.row.row_in = lambda l, start=start, step=step: start + step * l
            answers.swept(call.swept(work), start, step)
        answers.look(first, end)


class Answers:
    """The results of a call, pass by pass; ``status`` is what the entry returns."""

    def __init__(self, call, status):
        self.call, self.status, lanes = call, status, call.model.lanes
        self.results = {about.name: (about, array) for about, array in call.results}
        self.streamed = self._streamed()
        self.total = local(broadcast(0.0, lanes)) if call.entry.options.may_overflow else None
        call.row.late = self.late = Late(self.column_of) if self.streamed is not False else None

    def _streamed(self):
        """Return True if all matrices together are larger than the caches are likely to keep.

        Not in code for one model, which is a small one.
        """
        call = self.call
        widths = [call.width(about) for about, _ in call.results if _large(about)]
        if not streams(call.model.lanes) or not any(isinstance(width, Value) for width in widths):
            return False
        streamed = call.rows * sum(widths) >= _LARGE
        for width in widths:
            streamed = streamed & (width >= SHORTEST)
        return streamed

    def column_of(self, name, start, step):
        """Return a result as a column, of the rows from ``start`` on."""
        about, array = self.results[name]
        result = Result(self.call.width(about), self.streamed, self.total) if _large(about) else Result()
        return self.call.column(about, array, start, step, result)

    def look(self, first, end):
        """Check the answers of some rows while they are in a cache; matrices are checked as they are copied.

        For the others that would be slower: a sum that a whole recursion must carry along has no register.
        """
        for about, array in self.call.results if self.total is not None else ():
            if not _large(about):
                width = self.call.width(about)
                for _ in if_(not_(finite(array, first * width, end * width)), likely=False):
                    self.status.set(0)

    def swept(self, least, start, step):
        """Note that a pass is done: these rows have answers where ``least`` is positive."""
        if self.late is not None:
            self.late.start.set(start)
            self.late.step.set(step)
        if least is not None:
            for _ in if_(not_(all_lanes(least > 0.0)), likely=False):
                self.status.set(0)
                self._settle()
                for l in range(self.call.model.lanes):
                    for _ in if_(not_(lane(least, l) > 0.0)):
                        row = start + step * l
                        self.call.spoil(row, row + 1)

    def finish(self):
        """Finish after the last pass."""
        self._settle()
        if self.total is not None:
            for _ in if_(not_(all_lanes(self.total == 0.0)), likely=False):
                self.status.set(0)

    def _settle(self):
        """Copy what is still late, and order it before all later stores."""
        if self.late is not None:
            self.late.flush()
        settle(self.streamed)


def _large(about):
    """Return True if a result may be so large that memory sets its speed: a matrix may."""
    return len(about.tail) > 1


def finite(array, first, last):
    """Check that numbers first … last are finite."""
    if tracing.builder is None:
        return all(math.isfinite(array[i]) for i in range(first, last))
    fine = True
    for side in _SIDE_BY_SIDE:
        total, end = local(broadcast(0.0, side)), last - (last - first) % side
        for i in loop(end, first, step=side):
            total += vanishing(array.part(i).lanes(side)[0])
        fine, first = all_lanes(total == 0.0) & fine, end
    return fine


def run_plain(entry, model, *arrays):
    """Run an entry on Python's floats, every index checked, row by row."""
    seen, left = [], iter(arrays)
    for parameter in entry.parameters:
        value = next(left)
        seen.append(value if parameter.kind == "n" else Checked(value.reshape(-1)))
    for about, array in zip((*entry.given, *entry.results), left):
        given = array is not None or not about.optional
        if given and not (type(array) is np.ndarray and array.dtype == np.float64 and array.flags.c_contiguous):
            return UNFIT
        memory = Checked(array.reshape(-1) if given else [])
        memory.given, memory.axes, memory.shape = given, np.ndim(array), np.shape(array)
        seen.append(memory)
    return int(unboxed(write_entry(entry, entry.table.at(model.address), 1, 0, *seen)))


_EXCHANGED = Type("{i64, i1}")


def borrowed(model, count):
    """Yield a workspace of ``count`` floats if one can be had: ``for memory in borrowed(...)``.

    It is the model's own, or, if that is too small or taken, a new one. A new one costs time, and a great deal where it
    is large: the system zeroes it page by page.
    """
    build, busy = tracing.builder, model.busy.data
    address, new, free = local(model.workspace), local(0), local(False)
    for _ in if_(model.floats >= count):
        # one step that no thread comes between
        done = build.value(_EXCHANGED, f"cmpxchg {busy}, i64 0, i64 1 acq_rel acquire")
        free.set(build.value(BIT, f"extractvalue {done}, 1"))
    for _ in if_(~free):
        made = build.call("malloc", BYTE.as_pointer(), [ir_of(count * 8, INT)])
        new.set(build.cast("ptrtoint", made, INT))
        address.set(new)
    for _ in if_(now(address) != 0, likely=True):
        yield pointer(address)
        for own in if_else(new == 0):
            if own:
                build.line(f"store atomic i64 0, {busy} release, align 8")
            else:
                build.call("free", VOID, [pointer(new, BYTE).data])


def claimed(counter, at, block):
    """Return the first row of the next block after the one at ``at``.

    Threads that share the work share a ``counter`` at that address, and each takes the next block; 0 is to be alone.
    """
    following = local(at + block)
    for _ in if_(counter != 0):
        place = pointer(counter, INT).data
        following.set(tracing.builder.value(INT, f"atomicrmw add {place}, i64 {block} acq_rel"))
    return following


def allowed(counter):
    """Return how many blocks one call may take: the number behind the counter, all of them without one."""
    most = local(2**62)
    for _ in if_(counter != 0):
        most.set(pointer(counter, INT)[1])
    return most


def align_stack():
    """Align the stack so that no spilled vector crosses a cache line.

    The compiler aligns the stack only where a variable asks for it, so here is one.
    """
    if tracing.builder is not None:
        place = tracing.builder.alloca(vector(REAL, 8), align=64)
        tracing.builder.line(f'call void asm sideeffect "", "r"({place})')
