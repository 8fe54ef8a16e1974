"""The Jacobian of a frame: an outward sweep along its path, then a column for each dof on it."""

from numba import njit

from kfdyn._kernels.sizes import size
from kfdyn._kernels.vectors import align_stack, beyond, item, put
from kfdyn.multibody._kernels.fused.memory import clear, get3, get9, lanes_at, real9, write_out
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import (
    BODY,
    ORIENTATION,
    SHIFT,
    axis_of,
    outward_body,
    place_world,
    prepare_sine,
)
from kfdyn.multibody._kernels.fused.plan import _FRAME, FORCE_ROW, KIND, PARENT, REVOLUTE, V_END, V, at
from kfdyn.multibody._kernels.fused.spatial import add, add_cross, apply, apply_transposed, cross


@njit(**INLINED)
def jacobian_room(plan, lanes):
    """How many floats :func:`jacobian` works in."""
    return ((plan.n + 1) * BODY + plan.nv * 12) * lanes


@njit(**INLINED)
def path_to(plan, body, path):
    """The bodies from a root to ``body`` at the end of ``path`` (n,); where they begin in it."""
    t = 0
    for other in range(1, plan.n + 1):
        if at(plan, other, FORCE_ROW) == 6 * body:
            t = other
    begin = plan.n
    while t:
        begin -= 1
        path[begin] = t
        t = at(plan, t, PARENT)
    return begin


@njit(**INLINED)
def jacobian(tag, plan, path, begin, position, q, first, last, room, out):
    """J of rows first … last, 6 nv numbers each: columns φ*(k, frame) H*(k) of the bodies on the path, else 0.

    The frame is at ``position`` of the last of them.
    """
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    work, H = room, beyond(room, (n + 1) * BODY * lanes)
    entries = beyond(H, nv * 6 * lanes)
    arm = apply_transposed(  # the plan has turned the bodies' frames
        real9(plan, item(path, n - 1), _FRAME), (item(position, 0), item(position, 1), item(position, 2))
    )
    align_stack()
    clear(tag, entries, 6 * nv)
    place_world(tag, work)
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        for i in range(begin, n):
            prepare_sine(tag, plan, item(path, i), q, start * nq, step * nq, work)
        for i in range(begin, n):
            outward_body(tag, plan, item(path, i), q, start * nq, step * nq, q, 0, 0, False, work, H)
        l = apply(get9(tag, work, item(path, n - 1) * BODY + ORIENTATION), arm)  # from body t to the frame
        for back in range(n - begin):
            t = item(path, n - 1 - back)
            if at(plan, t, KIND) == REVOLUTE:
                axis = axis_of(tag, t, work)
                _put_column(tag, at(plan, t, V), nv, axis, cross(axis, l), entries)
            else:
                for i in range(at(plan, t, V), at(plan, t, V_END)):
                    w = get3(tag, H, 6 * i)
                    _put_column(tag, i, nv, w, add_cross(get3(tag, H, 6 * i + 3), w, l), entries)
            l = add(l, get3(tag, work, t * BODY + SHIFT))
        write_out(tag, entries, 6 * nv, out, start * 6 * nv, step * 6 * nv)


@njit(**INLINED)
def _put_column(tag, i, nv, w, u, entries):
    for j in range(3):
        put(tag, entries, j * nv + i, w[j])
        put(tag, entries, (3 + j) * nv + i, u[j])
