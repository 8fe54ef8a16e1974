"""Entry point for a single state, without the batch machinery.

The function takes the model itself and the arrays of one row, and returns new arrays, or None where it has no answer:
the caller then goes the way of batches, which finds one or the words. There are two lanes, which hold the same numbers,
since a lane is rounded as in any batch and a number by itself may not be; and what many bodies want alike, sines and
cosines above all, is computed for several of them side by side.
"""

from kfdyn.sweeps.batch.entry_codegen import Call, finite
from kfdyn.sweeps.compiler.cpython_abi import DATA, ERROR, TOLD, field
from kfdyn.sweeps.compiler.ir import INT
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.memory import Memory, Vector, pointer
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import all_lanes, broadcast, from_lanes, lane, lanes_of, now, where
from kfdyn.sweeps.variables import local

#: Lanes of one row.
LANES = 2

# Numbers that are worked on side by side, where a register holds as many.
_SIDE = 4


class OneRow(Memory):
    """A caller's only row, the same in every lane."""

    def __init__(self, memory, lanes, at=0):
        self.memory, self.lanes, self.at = memory, lanes, at

    def __getitem__(self, i):
        return kept_wide(broadcast(self.number(i), self.lanes))

    def __setitem__(self, i, value):
        self.memory[self.at + i] = lane(kept_wide(value), 0)

    def number(self, i):
        """Return number i itself, in one lane."""
        return self.memory[self.at + i]

    def part(self, start):
        """Return the numbers from ``start`` on."""
        return OneRow(self.memory, self.lanes, self.at + start)

    def copy(self, numbers, count):
        """Set the first ``count`` numbers to those of a workspace, unless they were written here."""
        if isinstance(numbers, OneRow):
            return
        for i in loop(count):
            self[i] = numbers[i]


def kept_wide(value):
    """Hide from LLVM that all lanes are equal, so that it does not compute one number and round it differently.

    An empty instruction takes the lanes in one register, which must have room for them, and returns them.
    """
    if lanes_of(value) == 1:
        return value
    build, value, machine = tracing.builder, now(value), tracing.machine
    if machine.is_x86 or machine.is_arm:
        register = "w" if machine.is_arm else "x"
        return build.pure(value.type, f'call {value.type} asm "", "={register},0"({value})')
    place = build.alloca(value.type)  # whose registers have other names: memory that anybody might change
    build.line(f"store volatile {value}, {place}")
    return build.value(value.type, f"load volatile {value.type}, {place}")


def side_by_side(function, count, numbers, put):
    """Compute ``function(*numbers(i))`` for every i < count, several at a time; ``put(i, *results)`` stores.

    Any lane of a number gets the same bits; the last ones are computed again rather than left out.
    """
    side = min(_SIDE, tracing.machine.register)
    for first in loop(count, step=side):
        places = [where(first + l < count, first + l, count - 1) for l in range(side)]
        given = zip(*(numbers(i) for i in places))
        results = [kept_wide(x) for x in function(*(from_lanes(lanes) for lanes in given))]
        for l, i in enumerate(places):
            put(i, *(lane(x, l) for x in results))


def write_single(entry, python, address, *arrays):
    """Write the whole of an entry for one row."""
    call = Call(entry, entry.seen(address), LANES, arrays)
    call.model.alone = True
    answer, taken = local(0), call.results[0][1].given
    fits = call.fits() & (call.rows == 1)
    for _, array in call.results[1:]:
        fits = fits & (array.given == taken)
    for _ in if_(fits):
        call.given = [(about, _own(about, call.model, array)) for about, array in call.given]
        for _ in if_(call.sound(0, 1) & _apart(call, taken)):
            _write_answer(call, python, taken, answer)
    return answer


def _own(about, model, array):
    """Return the array, or the model's own where none is given."""
    if not about.own:
        return array
    mine = getattr(model, about.name)
    seen = Vector(tracing.builder.select(array.given, array.data, mine.data))
    seen.axes, seen.given = len(about.tail), True
    return seen


def _apart(call, taken):
    """Check that no result array of the caller shares memory with what is read while it is written."""
    apart = local(True)
    for _ in if_(taken, likely=False):
        for about, result in call.results:
            for other, given in call.given:
                (a, a_end), (b, b_end) = _span(call, about, result), _span(call, other, given)
                apart.set(apart & ((a >= b_end) | (b >= a_end)))
    return apart


def _span(call, about, array):
    """Return where the numbers of an array begin and end; an array that is not given is far from all others."""
    start = tracing.builder.cast("ptrtoint", array.data, INT)
    return start, start + 8 * call.width(about)


def _write_answer(call, python, taken, answer):
    """Allocate the results unless the caller gave them, sweep, and answer if all went well."""
    made = [_room(call, python, about, array) for about, array in call.results]
    there = made[0] != 0
    for array in made[1:]:
        there = there & (array != 0)
    answer.set(ERROR)
    for _ in if_(there | taken, likely=True):
        fine, results = local(False), [_numbers(array, new) for (_, array), new in zip(call.results, made)]
        call.see([OneRow(array, LANES) for array in (*(array for _, array in call.given), *results)])
        for work in call.workspace():  # which may begin with what the row has
            least = call.swept(work)
            fine.set(True if least is None else all_lanes(least > 0.0))
            for (about, _), array in zip(call.results, results) if call.entry.options.may_overflow else ():
                fine.set(fine & finite(array, 0, call.width(about)))
        _tell(python, now(fine), taken, made, answer)


def _tell(python, fine, taken, made, answer):
    """Return the new arrays, a tuple if several; TOLD if the caller has them; release them if there is no answer."""
    new = fine & ~taken
    answer.set(where(new, made[0], where(fine, TOLD, 0)))
    if len(made) > 1:
        for _ in if_(new, likely=True):
            answer.set(python.tuple_of(made))
    for _ in if_(~(fine | taken), likely=False):
        for array in made:
            python.release(array)


def _room(call, python, about, array):
    """Return the address of a new array for a result, 0 if the caller gave one."""
    made, dims = local(0), Vector(tracing.builder.alloca(INT, max(1, len(about.tail))))
    for _ in if_(~array.given, likely=True):
        for i, extent in enumerate(about.tail):
            dims[i] = call.extent(extent)
        made.set(python.new_array(dims.data, len(about.tail)))
    return now(made)


def _numbers(array, new):
    """Return the memory a result is written to: the new array's, if that is not 0."""
    place = local(tracing.builder.cast("ptrtoint", array.data, INT))
    for _ in if_(new != 0, likely=True):
        place.set(field(new, DATA))
    return pointer(place)
