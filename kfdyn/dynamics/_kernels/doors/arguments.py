"""What doors have in common: how arrays are taken, how many rows at a time, and whether their numbers are sound."""

import math

from numba import njit, types

from kfdyn.dynamics._kernels.doors.table import numbers
from kfdyn.estimation._kernels.sizes import ORDERED, PART, static
from kfdyn.multibody.arguments import QUATERNION_TOLERANCE
from kfdyn.multibody.hinge import Coordinates

_SCREWS = int(Coordinates.SCREWS)

#: Configurations side by side; eight would leave a machine of 16 vector registers too few for a body. One state goes
#: through the same machine code in all lanes at once, which takes no longer and gives it the same bits as in a batch.
LANES = static(4)

#: Rows looked at before they are swept: they are then in the cache.
BLOCK = 256

#: Inputs are flat, rows one after the other; one state may be a row or a column of anything: strides are respected.
IN = types.Array(types.float64, 1, "A")
VECTORS, MATRICES = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
INDICES = types.Array(types.int64, 1, "C")
ROWS = (types.intp, types.intp, types.intp)


@njit(**ORDERED)
def fit(forces, gravity, width, rows):
    one_for_all = gravity.size == 3
    return (forces.size == 0 or forces.size == rows * width) and (one_for_all or gravity.size == 3 * rows)


@njit(**ORDERED)
def part(values, width, at, end):
    """Rows at … end, or all there is where there is none, or one for all."""
    return values[at * width : end * width] if values.size > width else values


@njit(**ORDERED)
def flat(values):
    """The same numbers without strides, copied only where they have any."""
    if values.size < 2 or values.strides[0] == 8:
        return numbers(values.ctypes.data, (values.size,))
    return values.copy()


@njit(**ORDERED)
def sound(layout, q):
    """Whether all rows of q are finite and their quaternions of unit length."""
    if not finite(q):
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
def finite(values):
    total = 0.0
    for x in values:
        total += 0.0 * x  # NaN where x is not finite; no branch, so that the loop runs on machine vectors
    return total == 0.0


@njit(**PART)
def finite_where(values, marks, mark):
    """Whether, of all rows, the entries marked with ``mark`` are finite."""
    total = 0.0
    for i in range(marks.size):
        if marks[i] == mark:
            for at in range(i, values.size, marks.size):
                total += 0.0 * values[at]
    return total == 0.0
