"""How many operations a kernel does: its own source, run in plain Python on numbers that count.

The kernels are written for one number and know machine vectors only through a handful of intrinsics. Here these are
given a meaning for Python objects, and every compiled function is taken as the Python function it was made of.
"""

import math
from collections import Counter
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from numba.core.dispatcher import Dispatcher

import kfdyn as kf
from kfdyn.dynamics._kernels.fused.articulated import filter_room
from kfdyn.dynamics._kernels.fused.forward import forward_dynamics
from kfdyn.dynamics._kernels.fused.inverse import inverse_dynamics, inverse_room
from kfdyn.dynamics._kernels.fused.mass_matrix import mass_matrix, mass_matrix_room
from kfdyn.dynamics._kernels.fused.mass_matrix_inverse import mass_matrix_inverse, mass_matrix_inverse_room
from kfdyn.multibody._kernels.fused.plan import Plan
from kfdyn.multibody._kernels.fused.prepare import prepare

#: Kernels and the room they work in.
KERNELS = {
    "forward_dynamics": (forward_dynamics, filter_room),
    "inverse_dynamics": (inverse_dynamics, inverse_room),
    "mass_matrix": (mass_matrix, mass_matrix_room),
    "mass_matrix_inverse": (mass_matrix_inverse, mass_matrix_inverse_room),
}


class Number:
    """A float that counts what is done to it; operations between plain floats are constants of the model."""

    done: ClassVar[Counter] = Counter()

    def __init__(self, value: float) -> None:
        self.value = value

    def __neg__(self) -> "Number":
        return Number(-self.value)


def _define(name: str, kind: str, function) -> None:
    def operate(a: Number, b: Any) -> Number:
        Number.done[kind] += 1
        return Number(function(a.value, getattr(b, "value", b)))

    def reflected(a: Number, b: Any) -> Number:
        Number.done[kind] += 1
        return Number(function(getattr(b, "value", b), a.value))

    setattr(Number, f"__{name}__", operate)
    setattr(Number, f"__r{name}__", reflected)


_define("add", "add", lambda a, b: a + b)
_define("sub", "add", lambda a, b: a - b)
_define("mul", "multiply", lambda a, b: a * b)
_define("truediv", "divide", lambda a, b: a / b)


def _unary(kind: str, function):
    def apply(x):
        if not isinstance(x, Number):
            return function(x)
        Number.done[kind] += 1
        return Number(function(x.value))

    return apply


def _smaller(a, b):
    Number.done["compare"] += 1
    return b if getattr(b, "value", b) < getattr(a, "value", a) else a


def _put(tag, array, i, value) -> None:
    array[i] = value


def _spread(tag, array, at, step, value) -> None:
    array[at] = value


def _spread_all(tag, buffer, i, array, start, step) -> None:
    array[start] = buffer[i]


#: What the intrinsics of the kernels mean for one number.
MEANING = {
    "get": lambda tag, array, i: array[i],
    "put": _put,
    "item": lambda array, i: array[i],
    "set_item": lambda array, i, value: _put(None, array, i, value),
    "beyond": lambda array, count: array[count:],
    "align_stack": lambda: None,
    "collect": lambda tag, array, at, step: array[at],
    "spread": _spread,
    "spread_all": _spread_all,
    "zero": lambda tag: 0.0,
    "sqrt": _unary("square root", math.sqrt),
    "floor": _unary("round", math.floor),
    "rint": _unary("round", round),
    "fabs": _unary("compare", abs),
    "any_beyond": lambda x, bound: getattr(x, "value", x) > bound,
    "all_beyond": lambda x, bound: getattr(x, "value", x) > bound,
    "smaller": _smaller,
}


def plain(function, made: dict[Any, Any] | None = None):
    """The Python function that a compiled one was made of, and with it all that it calls."""
    made = {} if made is None else made
    if function not in made:
        source = function.py_func
        copied = FunctionType(source.__code__, {"__builtins__": __builtins__}, source.__name__, source.__defaults__)
        made[function] = copied
        for name in _names(source.__code__):
            if name not in source.__globals__:
                continue
            value = source.__globals__[name]
            if name in MEANING:
                value = MEANING[name]
            elif isinstance(value, Dispatcher):
                value = plain(value, made)
            copied.__globals__[name] = value
    return made[function]


def _names(code) -> set[str]:
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    return set(code.co_names).union(*map(_names, inner))


def counted(system: kf.System, call: str, q: np.ndarray, *given: np.ndarray) -> tuple[Counter, np.ndarray]:
    """Operations of one call for one state, and its answer; ``call`` names one of KERNELS."""
    index, real, *sizes = prepare(system.layout)
    plan = Plan(
        index,
        real,
        system.layout.screws.reshape(-1),
        system.layout.armature,
        system.n_bodies,
        system.nq,
        system.nv,
        *sizes,
    )
    kernel, room_of = (plain(function) for function in KERNELS[call])
    numbers = [np.array([Number(float(x)) for x in values], dtype=object) for values in (q, *given, system.gravity)]
    inputs: list[Any] = numbers[:1]
    if given:  # q, v, tau or a and whether it is given; no forces; one gravity
        inputs = [*numbers[:3], *([True] if call == "inverse_dynamics" else []), None, False, numbers[3], False]
    lanes = (1, False) if call == "inverse_dynamics" else (1,)
    room = np.full(room_of(plan, *lanes), np.nan, dtype=object)
    out = np.full(system.nv if given else system.nv**2, 0.0, dtype=object)
    Number.done = Counter()
    kernel((0,), plan, *inputs, 0, 1, room, out)
    return Number.done, np.array([getattr(x, "value", x) for x in out], dtype=float)
