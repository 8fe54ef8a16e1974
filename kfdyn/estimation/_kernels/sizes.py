"""Sizes that a kernel may know when it is compiled.

A kernel asks ``size(tag, runtime)``. With ``tag = None`` it gets the run-time value; with a tuple of length n
(see :func:`static`) it gets the constant n, which LLVM folds and unrolls. One source, two kernels.
"""

from numba import types
from numba.extending import overload

#: Compiler options of every sweep. Reassociation lets short dot products use vector registers; NaN and
#: infinity keep their meaning.
OPTIONS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}

#: For steps that cancel on purpose: there the order of the operations is the method.
ORDERED = OPTIONS | {"fastmath": {"contract"}}

#: Measurement vectors that one pass of a sweep carries side by side.
LANES = 8


def static(n):
    """Tag that makes ``size`` the compile-time constant n."""
    return (0,) * n


def size(tag, runtime):
    """Run-time size, or the length of the tag where one is given."""
    return runtime if tag is None else len(tag)


@overload(size, inline="always")
def _size(tag, runtime):
    if isinstance(tag, types.UniTuple):
        count = tag.count
        return lambda tag, runtime: count
    if isinstance(tag, types.Tuple) and tag.count == 0:
        return lambda tag, runtime: 0
    return lambda tag, runtime: runtime
