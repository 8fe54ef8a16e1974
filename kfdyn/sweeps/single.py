"""An entry for one state: what loops of Python's call, so that nothing is done that only many rows need.

The function takes the model itself and the arrays of one row, and returns new arrays, or None where it has no answer:
the caller then goes the way of batches, which finds one or the words. There are two lanes, which hold the same numbers,
since a lane is rounded as in any batch and a number by itself may not be; and what many bodies want alike, sines and
cosines above all, is computed for several of them side by side.
"""

from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.interpreter import ERROR, TOLD
from kfdyn.sweeps.ir import VectorType
from kfdyn.sweeps.memory import LINE, Vector, pointer
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.template import borrow, extent_of, finite, give_back, sound_rows, width_of
from kfdyn.sweeps.values import (
    BIT,
    INT,
    REAL,
    Place,
    Value,
    choice,
    everywhere,
    from_lanes,
    ir_of,
    lane,
    local,
    stack,
    wide,
)

#: Lanes of one row.
LANES = 2

# Numbers that are worked on side by side.
_SIDE = 4


class OneRow:
    """The numbers of a caller's only row, the same in every lane."""

    def __init__(self, memory, lanes, at=0):
        self.memory, self.lanes, self.at = memory, lanes, at

    def __getitem__(self, i):
        return kept_wide(Value(ir_of(self.number(i), wide(self.lanes))))

    def __setitem__(self, i, value):
        self.memory[self.at + i] = lane(kept_wide(value), 0)

    def number(self, i):
        """The number itself."""
        return self.memory[self.at + i]

    def part(self, start):
        """The numbers from ``start`` on."""
        return OneRow(self.memory, self.lanes, self.at + start)

    def copy(self, numbers, count):
        """Set the first ``count`` numbers to those of a workspace, unless they were written here."""
        if isinstance(numbers, OneRow):
            return
        for i in loop(count):
            self[i] = numbers[i]


def kept_wide(value):
    """The same number, in lanes of which nobody knows that they are the same, or that only one is asked for.

    Else a compiler computes single numbers, and rounds them otherwise. An instruction that is none takes the lanes and
    gives them back.
    """
    if not isinstance(value, Value) or not isinstance(value.ir.type, VectorType):
        return value
    from kfdyn.sweeps.driver import machine

    arm = machine().triple.startswith(("aarch64", "arm64"))
    return Value(Place.builder.unseen(value.ir, "w" if arm else "x"))


def side_by_side(function, count, numbers, put):
    """``function(*numbers(i))`` of every i < count, several at a time in one vector; ``put(i, *results)`` takes them.

    Any lane of a number gets the same bits; the last ones are computed again rather than left out.
    """
    for first in loop(count, step=_SIDE):
        places = [choice(first + l < count, first + l, count - 1) for l in range(_SIDE)]
        given = zip(*(numbers(i) for i in places))
        results = [kept_wide(x) for x in function(*(from_lanes(lanes) for lanes in given))]
        for l, i in enumerate(places):
            put(i, *(lane(x, l) for x in results))


def write_single(entry, python, address, *arrays):
    """Write the whole of an entry for one row."""
    model = entry.seen(address)
    model.lanes, model.alone = LANES, True
    row, arrays = Fields(), list(arrays)
    for parameter in entry.parameters:
        setattr(row, parameter.name, arrays.pop(0))
    given, results = arrays[: len(entry.given)], arrays[len(entry.given) :]
    answer = local(0)
    fits = _fit(entry, model, row, given, results)
    for _ in when(fits):
        given = [_own(about, model, array) for about, array in zip(entry.given, given)]
        first, last = (Value(ir_of(i, INT)) for i in range(2))
        for _ in when(sound_rows(entry, model, row, given, [False] * len(given), first, last)):
            _write_answer(entry, python, model, row, given, results, answer)
    return answer


def _fit(entry, model, row, given, results):
    """Whether the arrays have the axes of one row; leading ones of length 1 only beside results of the caller's."""
    taken = results[0].given
    fits = local(Value(ir_of(True, BIT)))
    for about, array in zip((*entry.given, *entry.results), (*given, *results)):
        tail = len(about.tail)
        for _ in when(array.given):
            begin = array.axes - tail
            fits.set(fits & ((begin == 0) | (taken & (begin > 0))))
            for _ in when(fits):
                for i in loop(begin):
                    fits.set(fits & (array.shape[i] == 1))
                for i, extent in enumerate(about.tail):
                    fits.set(fits & (array.shape[begin + i] == extent_of(extent, model, row)))
    for array in results[1:]:
        fits.set(fits & (array.given == taken))
    return Value(fits.ir)


def _own(about, model, array):
    """The array, or what the model has of its own where none is given."""
    if not about.own:
        return array
    mine = getattr(model, about.name)
    seen = Vector(Place.builder.select(array.given.ir, array.data, mine.data), None, REAL)
    seen.given = True
    return seen


def _write_answer(entry, python, model, row, given, results, answer):
    """Make room for the results unless the caller has, sweep, and answer if all went well."""
    taken = results[0].given
    made = [_room(python, model, row, about, array) for about, array in zip(entry.results, results)]
    there = made[0] != 0
    for array in made[1:]:
        there = there & (array != 0)
    answer.set(ERROR)
    for _ in when(there | taken, likely=True):
        fine = local(there)
        memory, owner, got = borrow(model, entry.workspace(model, row) * LANES + LINE)
        fine.set(got)
        for _ in when(got, likely=True):
            for about, array in zip(entry.given, given):
                column = OneRow(array, LANES)
                column.given = array.given
                setattr(row, about.name, column)
            memories = [_numbers(python, array, new) for array, new in zip(results, made)]
            for about, array in zip(entry.results, memories):
                setattr(row, about.name, OneRow(array, LANES))
            work = memory.aligned().lanes(LANES)
            if entry.begin is not None:
                entry.begin(model, row, work)
            least = entry.recursion(model, row, work)
            if least is not None:
                fine.set(everywhere(least > 0.0))
            give_back(model, owner)
            for about, array in zip(entry.results, memories) if entry.may_overflow else ():
                fine.set(fine & finite(array, 0, width_of(about, model, row)))
        _tell(python, Value(fine.ir), taken, made, answer)


def _tell(python, fine, taken, made, answer):
    """The new arrays, a tuple if there are several; TOLD where the caller has them; no answer, and nothing is kept."""
    new = fine & ~taken
    answer.set(choice(new, made[0], choice(fine, TOLD, 0)))
    if len(made) > 1:
        for _ in when(new, likely=True):
            answer.set(Value(python.tuple_of([array.ir for array in made])))
    for _ in when(~(fine | taken), likely=False):
        for array in made:
            python.release(array.ir)


def _room(python, model, row, about, array):
    """The address of a new array for a result, or 0 where there is one."""
    made, place = local(0), stack(INT, max(1, len(about.tail)))
    for _ in when(~array.given, likely=True):
        for i, extent in enumerate(about.tail):
            Vector(place, None, INT)[i] = extent_of(extent, model, row)
        made.set(Value(python.new_array(place, len(about.tail))))
    return Value(made.ir)


def _numbers(python, array, new):
    """Where a result is written: in a new array, if that is not 0."""
    place = local(Value(Place.builder.cast("ptrtoint", array.data, INT)))
    for _ in when(new != 0, likely=True):
        place.set(Value(Place.builder.cast("ptrtoint", python.data(new.ir), INT)))
    return pointer(place)


__all__ = ["LANES", "OneRow", "write_single"]
