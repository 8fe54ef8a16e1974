"""Three-vectors and matrices as tuples, so that nothing is allocated per body; the decorators of all kernels."""

from numba import njit

from kfdyn._kernels.compiler import KEPT

jit = njit(cache=KEPT, nogil=True, error_model="numpy", fastmath={"contract"})
# Called from compiled code only: no doors for Python or C, which would take longer to compile than they do. And never
# called there either, but made lines of their caller: a call would hand every tuple and array through memory.
DOORLESS: dict = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(nogil=True, error_model="numpy", fastmath={"contract"}, forceinline=True, **DOORLESS)


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
    """A x for nine numbers, row by row, and a tuple."""
    return (
        A[0] * x[0] + A[1] * x[1] + A[2] * x[2],
        A[3] * x[0] + A[4] * x[1] + A[5] * x[2],
        A[6] * x[0] + A[7] * x[1] + A[8] * x[2],
    )


@inner
def apply_transposed(A, x):
    """A* x for nine numbers, row by row, and a tuple."""
    return (
        A[0] * x[0] + A[3] * x[1] + A[6] * x[2],
        A[1] * x[0] + A[4] * x[1] + A[7] * x[2],
        A[2] * x[0] + A[5] * x[1] + A[8] * x[2],
    )


@inner
def compose(A, B):
    """A B for matrices of nine numbers."""
    x, y, z = (B[0], B[3], B[6]), (B[1], B[4], B[7]), (B[2], B[5], B[8])
    x, y, z = apply(A, x), apply(A, y), apply(A, z)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@inner
def put6(a, i, top, bottom):
    a[i, 0], a[i, 1], a[i, 2] = top
    a[i, 3], a[i, 4], a[i, 5] = bottom
