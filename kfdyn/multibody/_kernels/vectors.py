"""Three-vectors as tuples, so that nothing is allocated per body; the decorators of all kernels."""

from numba import njit

jit = njit(cache=True, nogil=True, error_model="numpy")
# Called from compiled code only: no doors for Python or C, which would take longer to compile than they do.
DOORLESS: dict = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(nogil=True, error_model="numpy", **DOORLESS)


@inner
def get(a, i):
    """Row a[i, :3] as a tuple."""
    return a[i, 0], a[i, 1], a[i, 2]


low = get


@inner
def high(a, i):
    """Row a[i, 3:] as a tuple: the linear half of a spatial vector."""
    return a[i, 3], a[i, 4], a[i, 5]


@inner
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inner
def sub(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inner
def scale(s, a):
    return s * a[0], s * a[1], s * a[2]


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inner
def apply(A, x):
    """A x for a 3 x 3 array and a tuple."""
    return (
        A[0, 0] * x[0] + A[0, 1] * x[1] + A[0, 2] * x[2],
        A[1, 0] * x[0] + A[1, 1] * x[1] + A[1, 2] * x[2],
        A[2, 0] * x[0] + A[2, 1] * x[1] + A[2, 2] * x[2],
    )


@inner
def apply_transposed(A, x):
    """A* x for a 3 x 3 array and a tuple."""
    return (
        A[0, 0] * x[0] + A[1, 0] * x[1] + A[2, 0] * x[2],
        A[0, 1] * x[0] + A[1, 1] * x[1] + A[2, 1] * x[2],
        A[0, 2] * x[0] + A[1, 2] * x[1] + A[2, 2] * x[2],
    )


@inner
def copy3(A, out):
    """Entry by entry: a slice assignment would have numba compile its error messages, 5 s of them."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, j]


@inner
def put6(a, i, top, bottom):
    a[i, 0], a[i, 1], a[i, 2] = top
    a[i, 3], a[i, 4], a[i, 5] = bottom
