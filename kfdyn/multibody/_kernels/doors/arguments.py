"""What doors have in common: how arrays are taken, how many rows at a time, and whether their numbers are sound."""

import math

from numba import carray, njit, types

from kfdyn._kernels.sizes import ORDERED, PART, static
from kfdyn._kernels.vectors import item
from kfdyn.multibody._kernels.doors.table import floats
from kfdyn.multibody._kernels.fused.plan import BALL, KIND, POSE, Q, at
from kfdyn.multibody.arguments import QUATERNION_TOLERANCE

#: Configurations side by side; eight would leave a machine of 16 vector registers too few for a body. One state goes
#: through the same machine code in all lanes at once, which takes no longer and gives it the same bits as in a batch.
LANES = static(4)

#: Inputs are flat, rows one after the other; one state may be a row or a column of anything: strides are respected.
IN = types.Array(types.float64, 1, "A")
VECTORS, MATRICES = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
INDICES = types.Array(types.int64, 1, "C")

#: How many rows there are; how many are looked at, and then swept while they are in the cache, at a time; and the
#: address of the counter by which threads share them (:func:`.table.claim`).
ROWS = (types.intp, types.intp, types.intp)


@njit(**ORDERED)
def fit(forces, gravity, width, rows):
    one_for_all = gravity.size == 3
    return (forces.size == 0 or forces.size == rows * width) and (one_for_all or gravity.size == 3 * rows)


@njit(**ORDERED)
def flat(values):
    """The same numbers without strides, copied only where they have any."""
    if values.size < 2 or values.strides[0] == 8:
        return carray(floats(values.ctypes.data), (values.size,))
    return values.copy()


@njit(**ORDERED)
def sound(plan, q, row, end):
    """Whether rows row … end of q are finite and their quaternions of unit length."""
    nq = plan.nq
    if not finite(q, row * nq, end * nq):
        return False
    if nq != plan.nv:  # each quaternion is one number longer than its velocity
        for t in range(1, plan.n + 1):
            if at(plan, t, KIND) >= BALL:
                place = at(plan, t, Q) + (3 if at(plan, t, KIND) == POSE else 0)
                if not _unit_quaternions(q, row * nq + place, end * nq, nq):
                    return False
    return True


@njit(**ORDERED)
def _unit_quaternions(q, start, end, step):
    fine = True
    for i in range(start, end, step):
        x, y, z, w = item(q, i), item(q, i + 1), item(q, i + 2), item(q, i + 3)
        fine &= abs(math.sqrt(x * x + y * y + z * z + w * w) - 1.0) <= QUATERNION_TOLERANCE
    return fine


@njit(**ORDERED)
def rows_finite(values, given, width, row, end):
    """Whether rows row … end are finite; if ``given``, not 0, is one row's width, one row stands for all of them."""
    if given <= width:
        return finite(values, 0, given)
    return finite(values, row * width, end * width)


@njit(**PART)
def finite(values, start, end):
    """Whether numbers start … end are: of arguments before a sweep, and of its answers, which may overflow."""
    total = 0.0
    for i in range(start, end):
        total += 0.0 * item(values, i)  # NaN where one is not finite; no branch, so that this runs on machine vectors
    return total == 0.0


@njit(**PART)
def finite_where(values, marks, count, mark, row, end):
    """Whether of rows row … end the entries marked with ``mark`` are finite; ``count`` is a row's width."""
    total = 0.0
    for i in range(count):
        if item(marks, i) == mark:
            for place in range(row * count + i, end * count, count):
                total += 0.0 * item(values, place)
    return total == 0.0
