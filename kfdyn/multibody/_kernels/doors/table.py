"""A model as compiled code finds it: a table of numbers and addresses, the plan behind it, and room to work in."""

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from kfdyn._kernels.sizes import ORDERED
from kfdyn._kernels.vectors import item
from kfdyn.multibody._kernels.fused.plan import Plan

#: Columns of a model's table. BUSY is 1 while a thread works in the model's own room, which has FLOATS floats.
N, NQ, NV, SLOTS, SNAPS, INDEX, REAL, SCREWS, ARMATURE, BUSY, ROOM, FLOATS, TABLE = range(13)


def _pointer(dtype):
    """Make an address a pointer."""

    @intrinsic
    def cast(typingctx, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.intp), codegen

    return cast


_integers, floats = _pointer(types.int64), _pointer(types.float64)


@njit(**ORDERED)
def plan_at(model):
    """The plan of the model whose table is at the address ``model``."""
    t = _integers(model)
    return Plan(
        index=_integers(item(t, INDEX)), real=floats(item(t, REAL)), screws=floats(item(t, SCREWS)),
        armature=floats(item(t, ARMATURE)), n=item(t, N), nq=item(t, NQ), nv=item(t, NV), slots=item(t, SLOTS),
        snaps=item(t, SNAPS),
    )  # fmt: skip


@njit(**ORDERED)
def borrow(model, count):
    """Room for ``count`` floats and seven more: the model's own, or, if it is too small or taken, new.

    New room costs time, and a great deal where it is large: the system zeroes it page by page.
    """
    t = _integers(model)
    if count + 7 <= item(t, FLOATS) and _exchange(t, BUSY, 0, 1):
        return carray(floats(item(t, ROOM)), (item(t, FLOATS),))
    return np.empty(count + 7)


@njit(**ORDERED)
def give_back(model, room):
    """End :func:`borrow`."""
    t = _integers(model)
    if room.ctypes.data == item(t, ROOM):
        _exchange(t, BUSY, 1, 0)


@njit(**ORDERED)
def claim(counter, at, size):
    """The row to go on with after a block of ``size`` rows from ``at`` on; at first ``at`` is less than 0.

    Threads that share the work share a ``counter`` at that address, and each takes the next block; 0 is to be alone.
    """
    if counter:
        return _add(_integers(counter), size)
    return at + size if at >= 0 else 0


@intrinsic
def _exchange(typingctx, array, i, old, new):
    """Set element i of a flat array to ``new`` if it is ``old``, as one step that no thread comes between; whether."""

    def codegen(context, builder, signature, args):
        done = builder.cmpxchg(builder.gep(args[0], [args[1]]), args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(done, 1)

    return types.boolean(array, types.intp, types.intp, types.intp), codegen


@intrinsic
def _add(typingctx, array, amount):
    """Add to the first element of a flat array as one step that no thread comes between; what it was before."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", args[0], args[1], "acq_rel")

    return types.intp(array, types.intp), codegen
