"""A model as compiled code finds it: a table of addresses, and the layout behind it."""

from collections import namedtuple

from numba import carray, njit, types
from numba.extending import intrinsic

from kfdyn.dynamics._kernels.fused.plan import INDEX, REAL, _prepare, tables
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP
from kfdyn.multibody.layout import Layout

#: A Layout, and what the sweeps have made of it once for all calls.
Prepared = namedtuple("Prepared", (*Layout._fields, "index", "real", "slots"))  # type: ignore[misc]
_TABLE = 2 + len(Prepared._fields)


def _pointer(dtype):
    """Make an address a pointer that numba's carray takes."""

    @intrinsic
    def cast(typingctx, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.intp), codegen

    return cast


_integers, _floats = _pointer(types.int64), _pointer(types.float64)


@njit(**ORDERED)
def indices(address, shape):
    return carray(_integers(address), shape)


@njit(**ORDERED)
def numbers(address, shape):
    return carray(_floats(address), shape)


@njit(**ORDERED)
def layout_at(model):
    """The layout whose table is at ``model``."""
    t = indices(model, (_TABLE,))
    n, nv = t[0], t[1]
    return Prepared(
        order=indices(t[3], (n,)),
        parent=indices(t[4], (n,)),
        coordinates=indices(t[5], (n,)),
        q_start=indices(t[6], (n + 1,)),
        v_start=indices(t[7], (n + 1,)),
        screws=numbers(t[8], (nv, 6)),
        rotation=numbers(t[9], (n, 3, 3)),
        position=numbers(t[10], (n, 3)),
        mass=numbers(t[11], (n,)),
        com=numbers(t[12], (n, 3)),
        J=numbers(t[13], (n, 3, 3)),
        armature=numbers(t[14], (nv,)),
        index=indices(t[15], ((n + 1) * INDEX,)),
        real=numbers(t[16], ((n + 1) * REAL,)),
        slots=t[2],
    )


@njit(**ORDERED_SWEEP)
def prepare(layout):
    """What a layout is to be prepared with: index, real, slots."""
    index, real = tables(layout)
    return index, real, _prepare(layout, index, real)
