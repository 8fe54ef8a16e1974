"""Doors to the fused sweeps: what stands between Python's arrays and the kernels, compiled.

A model reaches compiled code as one number, the address of a table (:func:`kfdyn.dynamics.doors.address_of`). The doors
look at what Python could only look at slowly: that numbers are finite and quaternions of unit length. Where they are
not, or where a hinge has no inertia, they answer False, and nothing is said about the result; the caller's long way
then finds the words.
"""

import math
from collections import namedtuple

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from kfdyn.dynamics._kernels.fused.forward import forward_dynamics
from kfdyn.dynamics._kernels.fused.inverse import inverse_dynamics
from kfdyn.dynamics._kernels.fused.mass_matrix import mass_matrix
from kfdyn.dynamics._kernels.fused.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.dynamics._kernels.fused.plan import INDEX, REAL, _prepare, tables
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, PART, static
from kfdyn.multibody.arguments import QUATERNION_TOLERANCE
from kfdyn.multibody.hinge import Coordinates
from kfdyn.multibody.layout import Layout

# Configurations side by side; eight would leave a machine of 16 vector registers too few for a body. One state goes
# through the same machine code in all lanes at once, which takes it no longer and gives it the same bits as in a batch.
_LANES = static(4)
_BLOCK = 256  # rows looked at before they are swept: they are then in the cache
_SCREWS = int(Coordinates.SCREWS)

#: A Layout, and what the sweeps have made of it once for all calls.
Prepared = namedtuple("Prepared", (*Layout._fields, "index", "real", "slots"))  # type: ignore[misc]
_TABLE = 2 + len(Prepared._fields)

# Inputs are flat, rows one after the other; one state may be a row or a column of anything: strides are respected.
_IN = types.Array(types.float64, 1, "A")
_VECTORS, _MATRICES = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
_ROWS = (types.intp, types.intp, types.intp)

#: What each door takes: the model's address; arrays; the first row to do, the one after the last, and how many there
#: are; the result.
SIGNATURES = {
    "forward": types.boolean(types.intp, _IN, _IN, _IN, _IN, _IN, *_ROWS, _VECTORS),
    "inverse": types.boolean(types.intp, _IN, _IN, _IN, _IN, _IN, *_ROWS, _VECTORS),
    "mass": types.boolean(types.intp, _IN, *_ROWS, _MATRICES),
    "mass_inverse": types.boolean(types.intp, _IN, *_ROWS, _MATRICES),
}


@njit(**ORDERED_SWEEP)
def forward(model, q, v, tau, forces, gravity, first, last, rows, a):
    """a (rows nv,); NaN where a hinge has no inertia, and near a row that is not sound.

    ``forces`` (rows 6 n,) may be empty, gravity (rows 3,) may be one for all.
    """
    layout = _layout(model)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and v.size == tau.size == a.size == rows * nv and _fit(forces, gravity, 6 * n, rows)):
        return False
    q_all, v_all, tau_all, f_all, g_all = _flat(q), _flat(v), _flat(tau), _flat(forces), _flat(gravity)
    margin = np.empty(min(_BLOCK, last - first))
    fine = True
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own_q, own_v, own_tau = _own(q_all, nq, at, end), _own(v_all, nv, at, end), _own(tau_all, nv, at, end)
        f, g, into = _own(f_all, 6 * n, at, end), _own(g_all, 3, at, end), a[at * nv : end * nv]
        if _sound(layout, own_q) and _finite(own_v) and _finite(own_tau) and _finite(f) and _finite(g):
            forward_dynamics(_LANES, layout, own_q, own_v, own_tau, f, g, 0, end - at, into, margin)
            for i in range(end - at):
                if not margin[i] > 0.0:
                    into[i * nv : (i + 1) * nv] = np.nan
                    fine = False
        else:
            into[:] = np.nan
            fine = False
    return fine


@njit(**ORDERED_SWEEP)
def inverse(model, q, v, acceleration, forces, gravity, first, last, rows, tau):
    """tau (rows nv,); arguments as in :func:`forward`, and ``acceleration`` may be empty, too."""
    layout = _layout(model)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and v.size == tau.size == rows * nv and _fit(forces, gravity, 6 * n, rows)):
        return False
    if acceleration.size != 0 and acceleration.size != tau.size:
        return False
    q_all, v_all, a_all, f_all, g_all = _flat(q), _flat(v), _flat(acceleration), _flat(forces), _flat(gravity)
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own_q, own_v, own_a = _own(q_all, nq, at, end), _own(v_all, nv, at, end), _own(a_all, nv, at, end)
        f, g = _own(f_all, 6 * n, at, end), _own(g_all, 3, at, end)
        if not (_sound(layout, own_q) and _finite(own_v) and _finite(own_a) and _finite(f) and _finite(g)):
            return False
        inverse_dynamics(_LANES, layout, own_q, own_v, own_a, f, g, 0, end - at, tau[at * nv : end * nv])
    return True


@njit(**ORDERED_SWEEP)
def mass(model, q, first, last, rows, out):
    """𝓜 (rows nv, nv)."""
    layout = _layout(model)
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and out.shape == (rows * nv, nv)):
        return False
    q_all, entries = _flat(q), out.reshape(out.size)
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own = _own(q_all, nq, at, end)
        if not _sound(layout, own):
            return False
        mass_matrix(_LANES, layout, own, 0, end - at, entries[at * nv * nv : end * nv * nv])
    return True


@njit(**ORDERED_SWEEP)
def mass_inverse(model, q, first, last, rows, out):
    """𝓜⁻¹ (rows nv, nv); NaN as in :func:`forward`."""
    layout = _layout(model)
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and out.shape == (rows * nv, nv)):
        return False
    q_all, entries, margin = _flat(q), out.reshape(out.size), np.empty(min(_BLOCK, last - first))
    fine = True
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own, into = _own(q_all, nq, at, end), entries[at * nv * nv : end * nv * nv]
        if _sound(layout, own):
            mass_matrix_inverse(_LANES, layout, own, 0, end - at, into, margin)
            for i in range(end - at):
                if not margin[i] > 0.0:
                    into[i * nv * nv : (i + 1) * nv * nv] = np.nan
                    fine = False
        else:
            into[:] = np.nan
            fine = False
    return fine


@njit(**ORDERED)
def _fit(forces, gravity, width, rows):
    one_for_all = gravity.size == 3
    return (forces.size == 0 or forces.size == rows * width) and (one_for_all or gravity.size == 3 * rows)


@njit(**ORDERED)
def _own(values, width, at, end):
    """Rows at … end, or all there is where there is none, or one for all."""
    return values[at * width : end * width] if values.size > width else values


@njit(**ORDERED)
def _flat(values):
    """The same numbers without strides, copied only where they have any."""
    if values.size < 2 or values.strides[0] == 8:
        return _numbers(values.ctypes.data, (values.size,))
    return values.copy()


@njit(**ORDERED)
def _sound(layout, q):
    """Whether all rows of q are finite and their quaternions of unit length."""
    if not _finite(q):
        return False
    nq = layout.q_start[-1]
    if nq != layout.v_start[-1]:  # each quaternion is one number longer than its velocity
        for k in range(layout.coordinates.size):
            if layout.coordinates[k] != _SCREWS and not _unit_quaternions(q, layout.q_start[k + 1] - 4, nq):
                return False
    return True


@njit(**ORDERED)
def _unit_quaternions(q, start, step):
    fine = True
    for at in range(start, q.size, step):
        x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
        fine &= abs(math.sqrt(x * x + y * y + z * z + w * w) - 1.0) <= QUATERNION_TOLERANCE
    return fine


@njit(**PART)
def _finite(values):
    total = 0.0
    for x in values:
        total += 0.0 * x  # NaN where x is not finite; no branch, so that the loop runs on machine vectors
    return total == 0.0


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
def _indices(address, shape):
    return carray(_integers(address), shape)


@njit(**ORDERED)
def _numbers(address, shape):
    return carray(_floats(address), shape)


@njit(**ORDERED)
def _layout(model):
    """The layout whose table is at ``model``."""
    t = _indices(model, (_TABLE,))
    n, nv = t[0], t[1]
    return Prepared(
        order=_indices(t[3], (n,)),
        parent=_indices(t[4], (n,)),
        coordinates=_indices(t[5], (n,)),
        q_start=_indices(t[6], (n + 1,)),
        v_start=_indices(t[7], (n + 1,)),
        screws=_numbers(t[8], (nv, 6)),
        rotation=_numbers(t[9], (n, 3, 3)),
        position=_numbers(t[10], (n, 3)),
        mass=_numbers(t[11], (n,)),
        com=_numbers(t[12], (n, 3)),
        J=_numbers(t[13], (n, 3, 3)),
        armature=_numbers(t[14], (nv,)),
        index=_indices(t[15], ((n + 1) * INDEX,)),
        real=_numbers(t[16], ((n + 1) * REAL,)),
        slots=t[2],
    )


@njit(**ORDERED_SWEEP)
def prepare(layout):
    """What a layout is to be prepared with: index, real, slots."""
    index, real = tables(layout)
    return index, real, _prepare(layout, index, real)
