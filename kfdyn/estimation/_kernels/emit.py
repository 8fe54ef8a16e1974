"""Parts of a sweep as functions that write code: Python runs them once, while numba compiles the sweep that calls them.

Numba takes a tenth of a second to infer the types of a small function, to lower it and to compile it on its own, before
it compiles it again inside its caller. A function decorated with :func:`emitted` is called with proxies of the values
instead, whose operators write machine-independent code (LLVM's) straight into the caller. It reads as usual but for

- ``for i in loop(n)``: the body runs once in Python and writes the body of a loop;
- ``with when(c)``: likewise the body of an ``if``, and ``choice(c, a, b)`` is ``a if c else b``;
- ``s = local(0.0)``: a variable that changes in a loop or an ``if``, by ``s += x`` or ``s.set(x)``.

Tags (see sizes) arrive as Python's None or int, so ``if tag is None`` chooses what is written. An emitted function
may call another, whose code is then written in place. Nothing leaves a loop or a ``with`` early: where ``break`` would
stand, ``loop(n, until=failed)`` ends once ``failed`` is not negative, and the only ``return`` is at the end.
"""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from contextlib import contextmanager
from functools import wraps

from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import lower_builtin
from numba.np.arrayobj import make_array

from kfdyn.estimation._kernels.values import BIT, FAST, INT, Matrix, Place, Value, Vector, arithmetic, ir_of, local


def emitted(returns, flags=FAST):
    """Let a function write its code where compiled code calls it; the result has the numba type ``returns``."""

    def decorate(function):
        @wraps(function)
        def write(*args):
            with arithmetic(flags):
                return function(*args)

        class Template(AbstractTemplate):
            key = write

            def generic(self, args, kws):
                return signature(returns, *args)

        infer_global(write, types.Function(Template))

        @lower_builtin(write, types.VarArg(types.Any))
        def lower(context, builder, signature, args):
            before, Place.builder = Place.builder, builder
            try:
                result = write(*(_proxy(context, kind, value) for kind, value in zip(signature.args, args)))
                if result is None:
                    return context.get_dummy_value()
                if isinstance(result, tuple):
                    parts = [
                        ir_of(value, context.get_value_type(kind)) for value, kind in zip(result, returns, strict=True)
                    ]
                    return context.make_tuple(builder, returns, parts)
                return ir_of(result, context.get_value_type(returns))
            finally:
                Place.builder = before

        return write

    return decorate


def loop(stop, start=0, step=1, until=None):
    """Write a loop over i = start, start + step, … < stop, which ends early once ``until`` is not negative."""
    build, first, before = Place.builder, ir_of(start, INT), Place.builder.basic_block
    head, body, after = (build.append_basic_block(name) for name in ("head", "body", "after"))
    build.branch(head)
    build.position_at_end(head)
    i = build.phi(INT)
    i.add_incoming(first, before)
    on = Value(i) < stop
    build.cbranch((on if until is None else on & (until < 0)).ir, body, after)
    build.position_at_end(body)
    yield Value(i)
    i.add_incoming(build.add(i, ir_of(step, INT), flags=("nsw",)), build.basic_block)
    build.branch(head)
    build.position_at_end(after)


def down(stop, start=0):
    """Write a loop over the same i in the opposite order."""
    for i in loop(stop - start):
        yield stop - 1 - i


@contextmanager
def when(condition):
    """Write what is done only where the condition holds."""
    with Place.builder.if_then(condition.ir):
        yield


@contextmanager
def either(condition):
    """Write two ways: with either(c) as (yes, no), and then ``with yes`` and ``with no``."""
    with Place.builder.if_else(ir_of(condition, BIT)) as ways:
        yield ways


def both(first, second, *args):
    """``first and second(*args)``, where the second is computed only if the first holds."""
    result = local(Value(ir_of(first, BIT)))
    with when(result):
        result.set(second(*args))
    return result


def size(tag, runtime):
    """The size that a tag knows, or else the one given."""
    return runtime if tag is None else tag


def _proxy(context, kind, value):
    """What an emitted function sees of an argument."""
    if kind == types.none or isinstance(kind, types.Omitted):
        return None
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        fields = cgutils.unpack_tuple(Place.builder, value, len(kind))
        return kind.instance_class(*(_proxy(context, *field) for field in zip(kind, fields)))
    if isinstance(kind, types.UniTuple):
        return kind.count
    if isinstance(kind, types.CPointer):
        return Vector(value)
    if isinstance(kind, types.Array):
        assert kind.layout == "C" and kind.ndim <= 2
        array = make_array(kind)(context, Place.builder, value=value)
        shape = tuple(map(Value, cgutils.unpack_tuple(Place.builder, array.shape, kind.ndim)))
        return Matrix(array.data, shape) if kind.ndim == 2 else Vector(array.data, shape[0])
    return Value(value)
