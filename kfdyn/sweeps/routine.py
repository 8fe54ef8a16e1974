"""Routines: parts of a recursion that compiled code calls instead of repeating them."""

from functools import wraps

from kfdyn.sweeps.compiler.builder import Builder
from kfdyn.sweeps.compiler.ir import INT, REAL, VOID, Function
from kfdyn.sweeps.memory import Vector
from kfdyn.sweeps.trace_context import LANEWISE, tracing
from kfdyn.sweeps.values import Value, ir_of, now


def routine(function):
    """Compile a function once and call it, instead of writing its code at every call.

    Its arguments are memory of doubles, indices and numbers, none of which it knows while code is written, so that one
    text serves all calls in a module. What it returns is an index, or nothing. Run as it stands it is an ordinary
    function.
    """

    @wraps(function)
    def call(*args):
        build = tracing.builder
        if build is None:
            return function(*args)
        given = [_given(x) for x in args]
        kinds = [_letter(x) for x in args]
        name = f"{function.__module__}.{function.__qualname__}.{''.join(kinds)}"
        module = build.function.module
        if name not in module.functions:
            _write(module, name, function, given, kinds)
        inner = module.functions[name]
        return build.call(name, inner.returned, given)

    return call


def _write(module, name, function, given, kinds):
    """Write the function into the module."""
    inner = Function(module, name, VOID, [x.type for x in given], "internal", "noinline")
    build = Builder(inner)
    with tracing.having(builder=build, flags=LANEWISE, unrolled=False):
        result = function(*(Vector(x) if kind == "p" else x for x, kind in zip(build.args, kinds)))
        if result is None:
            build.ret("void")
        else:
            inner.returned = INT
            build.ret(ir_of(result, INT))


def _given(x):
    """Return an argument as instructions take it."""
    if isinstance(x, Vector):
        return x.data
    x = now(x)
    return x.ir if isinstance(x, Value) else ir_of(x, INT if isinstance(x, int) else REAL)


def _letter(x):
    """Return the kind of an argument: p memory, i an index, x a number."""
    if isinstance(x, Vector):
        return "p"
    x = now(x)
    return "i" if isinstance(x, int) or (isinstance(x, Value) and x.type is INT) else "x"
