"""Functions of one number of any kind: a double, lanes, Python's float, a symbol, mpmath's."""

import math

from kfdyn.sweeps.compiler.ir import REAL
from kfdyn.sweeps.control_flow import if_
from kfdyn.sweeps.trace_context import LANEWISE, arithmetic, tracing
from kfdyn.sweeps.values import Value, any_lanes, from_lanes, lane, lanes_of, lanewise, now, number, unboxed, where
from kfdyn.sweeps.variables import local

# π/2 in three parts of 33 bits, so that k times the first two is exact for |k| < 2²⁰.
_FIRST, _SECOND, _THIRD = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
LARGEST_ANGLE = 1e5


def sqrt(x):
    """Return √x, NaN for negative x."""
    x = unboxed(x)
    if isinstance(x, Value):
        return lanewise("sqrt", x)
    if not isinstance(x, int | float):
        return _method(x, "sqrt")
    return math.nan if x < 0 else math.sqrt(x)


def minimum(a, b):
    """Return the smaller of two numbers, lane by lane; a where b is NaN."""
    return where(unboxed(b) < unboxed(a), b, a)


def maximum(a, b):
    """Return the larger of two numbers, lane by lane; a where b is NaN."""
    return where(unboxed(b) > unboxed(a), b, a)


def fma(a, b, c):
    """Return a b + c rounded once where the processor can (fused multiply-add), with the same bits in any code.

    Where a compiler may fuse as it likes, it chooses which of two products is rounded, here so and there otherwise.
    """
    a, b, c = (unboxed(x) for x in (a, b, c))
    written = any(isinstance(x, Value) for x in (a, b, c))
    if not written or any(isinstance(x, int | float) and x in (0, 1) for x in (a, b)):  # nothing is rounded twice
        return a * b + c
    if tracing.machine.fuses:
        return lanewise("fma", a, b, c)
    with arithmetic(()):
        return a * b + c


def sincos(x, offset=0.0):
    """Return sine and cosine of x + offset, to 2e-16 for doubles and lanes.

    A large x is reduced before the offset, which is of the size of 1, is added: else that would be lost in it.
    """
    x = unboxed(x)
    if not isinstance(x, Value):
        if isinstance(x, int | float):
            if not math.isfinite(x):
                return math.nan, math.nan
            x = math.atan2(math.sin(x), math.cos(x)) if abs(x) > LARGEST_ANGLE else x
            return math.sin(x + offset), math.cos(x + offset)
        x = x + offset
        return _method(x, "sin"), _method(x, "cos")
    with arithmetic(LANEWISE):  # the reduction cancels on purpose
        return _series(_reduced(x) + offset)


def log(x):
    """Return the natural logarithm of one positive number, by the C library."""
    x = unboxed(x)
    return _library("log", x) if isinstance(x, Value | int | float) else _method(x, "log")


def atan2(y, x):
    """Return atan2(y, x), by the C library, lane after lane."""
    y, x = unboxed(y), unboxed(x)
    lanes = max(lanes_of(y), lanes_of(x))
    if lanes > 1:
        return from_lanes([_library("atan2", lane(y, l), lane(x, l)) for l in range(lanes)])
    if not any(isinstance(v, Value | int | float) for v in (y, x)):
        return _method(y, "atan2", x)
    return _library("atan2", y, x)


def _method(x, name, *more):
    """Call the function of the number's own module: mpmath's context, SymPy, or NumPy's ufunc."""
    module = type(x).__module__.partition(".")[0]
    if module == "mpmath":
        return getattr(x.context, name)(x, *more)
    if module == "sympy":
        import sympy

        return getattr(sympy, name)(x, *more)
    import numpy

    return getattr(numpy, "arctan2" if name == "atan2" else name)(x, *more)


def _library(name, *args):
    args = [unboxed(x) for x in args]
    if not any(isinstance(x, Value) for x in args):
        return getattr(math, name)(*args)
    return tracing.builder.call(name, REAL, [number(x) for x in args])


def _series(x):
    """Reduce to r = x − kπ/2, sum minimax series on |r| ≤ π/4, put the quadrant k in.

    It enters by arithmetic: with k = 2h + odd, sin x = ± sin r or ± cos r, and likewise cos x.
    """
    k = lanewise("rint", x * 0.6366197723675814)
    r = ((x - k * _FIRST) - k * _SECOND) - k * _THIRD
    y = r * r
    s = y * 1.58962301576546568060e-10 + -2.50507477628578072866e-8
    s = s * y + 2.75573136213857245213e-6
    s = s * y + -1.98412698295895385996e-4
    s = s * y + 8.33333333332211858878e-3
    s = s * y + -1.66666666666666307295e-1
    s = r + r * y * s
    c = y * -1.13585365213876817300e-11 + 2.08757008419747316778e-9
    c = c * y + -2.75573141792967388112e-7
    c = c * y + 2.48015872888517045348e-5
    c = c * y + -1.38888888888730564116e-3
    c = c * y + 4.16666666666665929218e-2
    c = (1.0 - 0.5 * y) + y * y * c
    half = lanewise("floor", k * 0.5)
    odd = k - 2.0 * half
    sign = 1.0 - 2.0 * (half - 2.0 * lanewise("floor", half * 0.5))
    return sign * (s + odd * (c - s)), sign * (c - odd * (c + s))


def _reduced(angle):
    """Return the angle, reduced to −π … π in lanes where it is large, by the C library."""
    result = local(angle)
    for _ in if_(any_lanes(abs(angle) > LARGEST_ANGLE), likely=False):
        parts = []
        for x in (lane(angle, l) for l in range(lanes_of(angle))):
            parts.append(where(abs(x) > LARGEST_ANGLE, atan2(_library("sin", x), _library("cos", x)), x))
        result.set(from_lanes(parts))
    return now(result)
