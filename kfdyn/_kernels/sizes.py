"""What the compiled sweeps are built of: views of flat buffers, and sizes known when a kernel is compiled.

``vector(flat, start, n)`` and ``matrix(flat, start, rows, columns)`` look at part of a buffer without owning it: no
reference counts and no wrap-around checks stand between a loop and its vector instructions.

A kernel asks ``size(tag, runtime)``. With ``tag = None`` it gets the run-time value; with a tuple of length n
(see :func:`static`) it gets the constant n, which LLVM folds and unrolls. One source, two kernels.
"""

from kfdyn._kernels.compiler import KEPT

# isort: split
from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array

_COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_FAST = {"contract", "reassoc", "nsz", "arcp"}

#: Compiler options of the parts of a sweep. Reassociation lets short dot products use vector registers; NaN and
#: infinity keep their meaning. Parts are called from compiled code only, so they have no doors for Python or C, which
#: would take longer to compile than they do.
PART: dict[str, Any] = _COMMON | {"fastmath": _FAST, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

#: For parts that cancel on purpose: there the order of the operations is the method.
ORDERED: dict[str, Any] = PART | {"fastmath": {"contract"}}

#: For whole sweeps, which are kept on disk with all their parts.
SWEEP: dict[str, Any] = _COMMON | {"fastmath": _FAST, "cache": KEPT, "no_cfunc_wrapper": True}

#: For whole sweeps whose answers must not depend on how many lanes they run in.
ORDERED_SWEEP: dict[str, Any] = SWEEP | {"fastmath": {"contract"}}

#: Measurement vectors that one pass of a sweep carries side by side.
LANES = 16


class Sizes(NamedTuple):
    """Tags of the state and output sizes that all nodes of a model share; None where they differ."""

    n: Any
    m: Any


def static(n):
    """Tag that makes ``size`` the compile-time constant n."""
    return (0,) * n


def size(tag, runtime):
    """Run-time size, or the length of the tag where one is given."""
    return runtime if tag is None else len(tag)


@overload(size)
def _size(tag, runtime):
    if isinstance(tag, types.UniTuple):
        count = tag.count
        return lambda tag, runtime: count
    return lambda tag, runtime: runtime


def _view(context, builder, array_type, data, shape):
    """An array that owns nothing: the given data seen with the given shape, row by row."""
    view = make_array(array_type)(context, builder)
    stride = context.get_constant(types.intp, 8 if array_type.dtype == types.float64 else 1)
    itemsize, strides = stride, []
    for extent in reversed(shape):
        strides.insert(0, stride)
        stride = builder.mul(stride, extent)
    populate_array(view, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return view._getvalue()


@intrinsic
def vector(typingctx, flat, start, n):
    """The n numbers of a flat array from start on."""
    view_type = types.Array(flat.dtype, 1, "C")

    def codegen(context, builder, signature, args):
        source = make_array(signature.args[0])(context, builder, value=args[0])
        return _view(context, builder, view_type, builder.gep(source.data, [args[1]]), [args[2]])

    return view_type(flat, types.intp, types.intp), codegen


@intrinsic
def matrix(typingctx, flat, start, rows, columns):
    """The numbers of a flat array from start on as a matrix (rows, columns)."""
    view_type = types.Array(flat.dtype, 2, "C")

    def codegen(context, builder, signature, args):
        source = make_array(signature.args[0])(context, builder, value=args[0])
        return _view(context, builder, view_type, builder.gep(source.data, [args[1]]), [args[2], args[3]])

    return view_type(flat, types.intp, types.intp, types.intp), codegen
