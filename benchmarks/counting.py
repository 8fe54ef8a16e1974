"""How many operations a recursion does: its own text, run by Python on numbers that count."""

from collections import Counter
from typing import Any, ClassVar

import numpy as np

import kfdyn as kf
from kfdyn.dynamics.recursions.forward import FORWARD
from kfdyn.dynamics.recursions.inverse import INVERSE
from kfdyn.dynamics.recursions.mass_matrix import MASS_MATRIX
from kfdyn.dynamics.recursions.mass_matrix_inverse import MASS_MATRIX_INVERSE
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.sweeps.memory import Checked, Column
from kfdyn.sweeps.records import Fields

ENTRIES = {
    "forward_dynamics": FORWARD,
    "inverse_dynamics": INVERSE,
    "mass_matrix": MASS_MATRIX,
    "mass_matrix_inverse": MASS_MATRIX_INVERSE,
}

#: What the series of a sine and a cosine take together, see ``kfdyn/sweeps/functions.py``.
SERIES = Counter({"multiply": 29, "add": 25, "round": 3})


class Number:
    """A float that counts what is done to it; operations between plain floats are constants of the model.

    Products with 0 and 1 and sums with 0 are none where these are Python's own, as no code is written for them.
    """

    done: ClassVar[Counter] = Counter()

    def __init__(self, value: float) -> None:
        self.value = value

    def __neg__(self) -> "Number":
        return Number(-self.value)

    def __float__(self) -> float:
        return self.value

    def __abs__(self) -> "Number":
        Number.done["compare"] += 1
        return Number(abs(self.value))

    def __lt__(self, other: Any) -> bool:
        Number.done["compare"] += 1
        return self.value < float(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > float(other)

    def sqrt(self) -> "Number":
        """What numpy.sqrt asks an object for."""
        Number.done["square root"] += 1
        return Number(self.value**0.5)

    def sin(self) -> "Number":
        """The sine, with all that it shares with the cosine."""
        Number.done += SERIES
        return Number(float(np.sin(self.value)))

    def cos(self) -> "Number":
        """The cosine, which comes with the sine."""
        return Number(float(np.cos(self.value)))


_NUMBERS = (Number, int, float, np.number)


def _define(name: str, kind: str, function) -> None:
    def done(a: Number, b: Any, result: float) -> Any:
        if not isinstance(b, Number) and kind == "multiply" and b in (0, 1):
            return Number(result) if b else b
        if not isinstance(b, Number) and kind == "add" and b == 0:
            return Number(result)
        Number.done[kind] += 1
        return Number(result)

    def operate(a: Number, b: Any) -> Number:
        if not isinstance(b, _NUMBERS):  # a vector times a number is the vector's business
            return NotImplemented
        return done(a, b, function(a.value, getattr(b, "value", b)))

    def reflected(a: Number, b: Any) -> Number:
        if not isinstance(b, _NUMBERS):
            return NotImplemented
        return done(a, b, function(getattr(b, "value", b), a.value))

    setattr(Number, f"__{name}__", operate)
    setattr(Number, f"__r{name}__", reflected)


_define("add", "add", lambda a, b: a + b)
_define("sub", "add", lambda a, b: a - b)
_define("mul", "multiply", lambda a, b: a * b)
_define("truediv", "divide", lambda a, b: a / b)


def counted(system: kf.System, call: str, q: np.ndarray, *given: np.ndarray) -> tuple[Counter, np.ndarray]:
    """Operations of one call for one state, and its answer; ``call`` names one of ENTRIES."""
    entry, model = ENTRIES[call], model_of(system)
    robot, row = entry.table.at(model.address), Fields()
    robot.lanes = 1
    for name, kind in entry.table.fields.items():
        if kind == (float,):  # compiled code does not know what is 0 in a robot's tables, so that it computes with it
            setattr(robot, name, Checked([Number(float(x)) for x in getattr(robot, name).numbers]))
    arrays = iter([q, *given, None, system.gravity])
    for about in entry.given:
        array = next(arrays)
        numbers = [] if array is None else [Number(float(x)) for x in array]
        column = Column(Checked(numbers), 0, 0, 1)
        column.given = array is not None
        setattr(row, about.name, column)
    out = [0.0] * (system.nv if given else system.nv**2)
    setattr(row, entry.results[0].name, Column(Checked(out), 0, 0, 1))
    work = Checked([np.nan] * entry.workspace.size(robot, row))
    entry.workspace.start(robot, row, work)
    Number.done = Counter()
    entry.recursion(robot, row, work)
    return Number.done, np.array([getattr(x, "value", x) for x in out], dtype=float)
