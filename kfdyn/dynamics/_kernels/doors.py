"""Doors to the fused sweeps: what stands between Python's arrays and the kernels, compiled.

A model reaches compiled code as one number, the address of a table of addresses (:func:`kfdyn.multibody.layout.table`),
since each array that Python hands over costs 50 ns and a Layout has twelve of them. The doors look at what Python could
only look at slowly: that numbers are finite and quaternions of unit length. Where they are not, or where a hinge has no
inertia, they answer False, and nothing is said about the result; the caller's long way then finds the words.
"""

import math

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from kfdyn.dynamics._kernels.fused.forward import forward_dynamics
from kfdyn.dynamics._kernels.fused.inverse import inverse_dynamics
from kfdyn.dynamics._kernels.fused.mass_matrix import mass_matrix
from kfdyn.dynamics._kernels.fused.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.estimation._kernels.sizes import ORDERED, ORDERED_SWEEP, PART, static
from kfdyn.multibody.arguments import QUATERNION_TOLERANCE
from kfdyn.multibody.hinge import Coordinates
from kfdyn.multibody.layout import Layout

# Configurations side by side. One alone takes as long in four lanes as in one; eight leave a machine of 16 vector
# registers too few for a body. Vectors of any width round alike, so that the answer does not depend on the size of
# the batch.
_ONE = _MANY = static(4)
_BLOCK = 256  # rows looked at before they are swept: they are then in the cache
_SCREWS = int(Coordinates.SCREWS)
_TABLE = 2 + len(Layout._fields)

# One state may be a row or a column of anything: strides are respected. Batches are flat.
_VECTOR, _MATRIX = types.Array(types.float64, 1, "A"), types.Array(types.float64, 2, "A")
_FLAT, _SQUARE = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
_STATE = types.boolean(types.intp, _VECTOR, _VECTOR, _VECTOR, _MATRIX, _VECTOR, _FLAT)
_CONFIGURATION = types.boolean(types.intp, _VECTOR, _SQUARE)
_STATES = (types.intp, _FLAT, _FLAT, _FLAT, _FLAT, _FLAT, types.intp, types.intp, _FLAT)
_CONFIGURATIONS = (types.intp, _FLAT, types.intp, types.intp, _FLAT)

#: What each door takes: the model's address, then arrays, for batches also the first row and the one after the last.
SIGNATURES = {
    "forward_one": _STATE,
    "inverse_one": _STATE,
    "mass_matrix_one": _CONFIGURATION,
    "mass_matrix_inverse_one": _CONFIGURATION,
    "forward_rows": types.boolean(*_STATES, _FLAT),
    "inverse_rows": types.boolean(*_STATES),
    "mass_matrix_rows": types.boolean(*_CONFIGURATIONS),
    "mass_matrix_inverse_rows": types.boolean(*_CONFIGURATIONS, _FLAT),
}


@njit(**ORDERED_SWEEP)
def forward_one(model, q, v, tau, forces, gravity, a):
    """a (nv,) of one state; ``forces`` is (n, 6), or (0, 6) where there are none."""
    layout = _layout(model)
    if not _fit(layout, q, v, tau, gravity):
        return False
    state = _load(layout, q, v, tau, forces, gravity)
    at_tau = q.size + v.size
    at_forces = at_tau + tau.size
    at_gravity = at_forces + forces.size
    if not _finite(state):
        return False
    margin = np.empty(1)
    forward_dynamics(
        _ONE, layout, state[: q.size], state[q.size : at_tau], state[at_tau:at_forces],
        state[at_forces:at_gravity], state[at_gravity:], 0, 1, a, margin,
    )  # fmt: skip
    return margin[0] > 0.0


@njit(**ORDERED_SWEEP)
def inverse_one(model, q, v, acceleration, forces, gravity, tau):
    """tau (nv,) of one state; ``forces`` is (n, 6), or (0, 6) where there are none."""
    layout = _layout(model)
    if not _fit(layout, q, v, acceleration, gravity):
        return False
    state = _load(layout, q, v, acceleration, forces, gravity)
    at_a = q.size + v.size
    at_forces = at_a + acceleration.size
    at_gravity = at_forces + forces.size
    if not _finite(state):
        return False
    inverse_dynamics(
        _ONE, layout, state[: q.size], state[q.size : at_a], state[at_a:at_forces],
        state[at_forces:at_gravity], state[at_gravity:], 0, 1, tau,
    )  # fmt: skip
    return True


@njit(**ORDERED_SWEEP)
def mass_matrix_one(model, q, out):
    """𝓜 (nv, nv) of one configuration."""
    layout = _layout(model)
    if q.size != layout.q_start[-1]:
        return False
    state = np.empty(q.size)
    _load_configuration(layout, q, state)
    if not _finite(state):
        return False
    mass_matrix(_ONE, layout, state, 0, 1, out.reshape(out.size))
    return True


@njit(**ORDERED_SWEEP)
def mass_matrix_inverse_one(model, q, out):
    """𝓜⁻¹ (nv, nv) of one configuration."""
    layout = _layout(model)
    if q.size != layout.q_start[-1]:
        return False
    state, margin = np.empty(q.size), np.empty(1)
    _load_configuration(layout, q, state)
    if not _finite(state):
        return False
    out[:] = 0.0
    mass_matrix_inverse(_ONE, layout, state, 0, 1, out.reshape(out.size), margin)
    return margin[0] > 0.0


@njit(**ORDERED_SWEEP)
def forward_rows(model, q, v, tau, forces, gravity, first, last, a, margin):
    """a (rows, nv) of rows first … last; ``forces`` may be empty, gravity has one row or one for each.

    The margin (rows,) is not positive where a hinge has no inertia, and NaN near a row that is not sound.
    """
    layout = _layout(model)
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    fine = True
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own_q, own_v, own_tau = q[at * nq : end * nq], v[at * nv : end * nv], tau[at * nv : end * nv]
        f, g = _own(forces, layout.parent.size * 6, at, end), _own(gravity, 3, at, end)
        if _sound(layout, own_q) and _finite(own_v) and _finite(own_tau) and _finite(f) and _finite(g):
            into = a[at * nv : end * nv]
            forward_dynamics(_MANY, layout, own_q, own_v, own_tau, f, g, 0, end - at, into, margin[at:end])
            for room in margin[at:end]:
                fine &= room > 0.0
        else:
            margin[at:end] = np.nan
            fine = False
    return fine


@njit(**ORDERED_SWEEP)
def inverse_rows(model, q, v, acceleration, forces, gravity, first, last, tau):
    """tau (rows, nv) of rows first … last; ``forces`` may be empty, gravity has one row or one for each."""
    layout = _layout(model)
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own_q, own_v, own_a = q[at * nq : end * nq], v[at * nv : end * nv], acceleration[at * nv : end * nv]
        f, g = _own(forces, layout.parent.size * 6, at, end), _own(gravity, 3, at, end)
        if not (_sound(layout, own_q) and _finite(own_v) and _finite(own_a) and _finite(f) and _finite(g)):
            return False
        inverse_dynamics(_MANY, layout, own_q, own_v, own_a, f, g, 0, end - at, tau[at * nv : end * nv])
    return True


@njit(**ORDERED_SWEEP)
def mass_matrix_rows(model, q, first, last, out):
    """𝓜 (rows, nv, nv) of rows first … last."""
    layout = _layout(model)
    nq, entries = layout.q_start[-1], layout.v_start[-1] ** 2
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own = q[at * nq : end * nq]
        if not _sound(layout, own):
            return False
        mass_matrix(_MANY, layout, own, 0, end - at, out[at * entries : end * entries])
    return True


@njit(**ORDERED_SWEEP)
def mass_matrix_inverse_rows(model, q, first, last, out, margin):
    """𝓜⁻¹ (rows, nv, nv) of rows first … last, and the margin as in :func:`forward_rows`."""
    layout = _layout(model)
    nq, entries = layout.q_start[-1], layout.v_start[-1] ** 2
    fine = True
    for at in range(first, last, _BLOCK):
        end = min(at + _BLOCK, last)
        own, into = q[at * nq : end * nq], out[at * entries : end * entries]
        if _sound(layout, own):
            into[:] = 0.0
            mass_matrix_inverse(_MANY, layout, own, 0, end - at, into, margin[at:end])
            for room in margin[at:end]:
                fine &= room > 0.0
        else:
            margin[at:end] = np.nan
            fine = False
    return fine


@njit(**ORDERED)
def _own(rows, width, at, end):
    """Rows at … end, or all there is where there are none, or one for all."""
    return rows[at * width : end * width] if rows.size > width else rows


@njit(**ORDERED)
def _fit(layout, q, v, u, gravity):
    nq, nv = layout.q_start[-1], layout.v_start[-1]
    return q.size == nq and v.size == nv and u.size == nv and gravity.size == 3


@njit(**ORDERED)
def _load(layout, q, v, u, forces, gravity):
    """All arguments of a state one after the other, contiguous."""
    state = np.empty(q.size + v.size + u.size + forces.size + 3)
    _load_configuration(layout, q, state)
    at = q.size
    for i in range(v.size):
        state[at + i] = v[i]
        state[at + v.size + i] = u[i]
    at += 2 * v.size
    for k in range(forces.shape[0]):
        for i in range(6):
            state[at + i] = forces[k, i]
        at += 6
    for i in range(3):
        state[at + i] = gravity[i]
    return state


@njit(**ORDERED)
def _load_configuration(layout, q, state):
    """Copy q; where it is not sound one entry becomes NaN, so that one look finds all that is wrong with a state."""
    for i in range(q.size):
        state[i] = q[i]
    if not _unit_quaternions(layout, state, 0):
        state[0] = np.nan


@njit(**ORDERED)
def _sound(layout, q):
    """Whether all rows of q are finite and their quaternions of unit length."""
    fine = _finite(q)
    nq = layout.q_start[-1]
    if nq != layout.v_start[-1]:  # each quaternion is one number longer than its velocity
        for at in range(0, q.size, nq):
            fine &= _unit_quaternions(layout, q, at)
    return fine


@njit(**ORDERED)
def _unit_quaternions(layout, q, at):
    fine = True
    for k in range(layout.coordinates.size):
        if layout.coordinates[k] != _SCREWS:
            end = at + layout.q_start[k + 1]
            x, y, z, w = q[end - 4], q[end - 3], q[end - 2], q[end - 1]
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
    """The Layout whose table of addresses is at ``model``."""
    t = _indices(model, (_TABLE,))
    n, nv = t[0], t[1]
    return Layout(
        order=_indices(t[2], (n,)),
        parent=_indices(t[3], (n,)),
        coordinates=_indices(t[4], (n,)),
        q_start=_indices(t[5], (n + 1,)),
        v_start=_indices(t[6], (n + 1,)),
        screws=_numbers(t[7], (nv, 6)),
        rotation=_numbers(t[8], (n, 3, 3)),
        position=_numbers(t[9], (n, 3)),
        mass=_numbers(t[10], (n,)),
        com=_numbers(t[11], (n, 3)),
        J=_numbers(t[12], (n, 3, 3)),
        armature=_numbers(t[13], (nv,)),
    )
