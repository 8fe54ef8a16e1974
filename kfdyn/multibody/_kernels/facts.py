"""A layout as pointers: what a sweep reads and keeps without counting references, which took most of its time."""

from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from kfdyn.multibody._kernels.vectors import inner


class Facts(NamedTuple):
    """Pointers to the arrays of a Layout, its sizes, and how many bodies are in its order."""

    order: Any
    parent: Any
    coordinates: Any
    q_start: Any
    v_start: Any
    screws: Any
    rotation: Any
    position: Any
    mass: Any
    com: Any
    J: Any
    armature: Any
    n: int
    nq: int
    nv: int
    steps: int


@intrinsic
def pointer(typingctx, array, at):
    """Where element ``at`` of a contiguous array is; the array's owner must keep it for as long."""

    def codegen(context, builder, signature, args):
        data = make_array(signature.args[0])(context, builder, value=args[0]).data
        return builder.gep(data, [args[1]])

    return types.CPointer(array.dtype)(array, types.intp), codegen


@inner
def facts_of(layout):
    return Facts(
        pointer(layout.order, 0), pointer(layout.parent, 0), pointer(layout.coordinates, 0), pointer(layout.q_start, 0),
        pointer(layout.v_start, 0), pointer(layout.screws, 0), pointer(layout.rotation, 0), pointer(layout.position, 0),
        pointer(layout.mass, 0), pointer(layout.com, 0), pointer(layout.J, 0), pointer(layout.armature, 0),
        layout.parent.size, layout.q_start[-1], layout.v_start[-1], layout.order.size,
    )  # fmt: skip


@inner
def get3(a, at):
    """Three numbers from ``at`` on."""
    return a[at], a[at + 1], a[at + 2]


@inner
def get9(a, at):
    return a[at], a[at + 1], a[at + 2], a[at + 3], a[at + 4], a[at + 5], a[at + 6], a[at + 7], a[at + 8]


@inner
def set3(a, at, x):
    a[at] = x[0]
    a[at + 1] = x[1]
    a[at + 2] = x[2]


@inner
def set9(a, at, R):
    set3(a, at, (R[0], R[1], R[2]))
    set3(a, at + 3, (R[3], R[4], R[5]))
    set3(a, at + 6, (R[6], R[7], R[8]))
