"""Products and sums of stored factors: in registers where sizes are known in the code, else in memory."""

from kfdyn.estimation.recursions.linalg.reflections import Array, triangularise
from kfdyn.estimation.recursions.linalg.root_columns import absorb, product, put_square
from kfdyn.sweeps.control_flow import loop
from kfdyn.sweeps.functions import fma
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import where
from kfdyn.sweeps.variables import local


def in_registers(x):
    """Tell whether the columns of a node, or of a stored root, are registers."""
    return x.known and tracing.builder is not None


def put_product(out, C, work):
    """out = C C* of a stored root, exactly symmetric, since both numbers of a pair are the same sum."""
    if in_registers(C):
        put_square(out, C.columns())
        return
    n = C.shape[0]
    A = Array(work.aligned(), 1, n, n)
    for j in loop(n):
        put_combination(A, j, C, lambda l, j=j: C[j, l])
        for i in loop(j + 1):
            out[i, j] = A[i, j]
            out[j, i] = A[i, j]


def put_combination(A, j, C, factor):
    """Column j of A: the columns of a stored C, each times its factor."""
    for i in A.parts(C.shape[0]):
        s = local(A.blank)
        for l in loop(C.shape[1]):
            s.set(fma(factor(l), C.part(i, l), s))
        A.set_part(i, j, s)


def absorb_product(S, B, C, out, work):
    """out ← the lower triangular root of S S* + B C C*B*."""
    if in_registers(S):
        out.set_columns(absorb(S.columns(), product(B.columns(), C.columns())))
        return
    r, n = S.shape[0], C.shape[1]
    A = Array(work.aligned(), 1, r, r + n)
    for j in loop(r):
        for i in A.parts(r):
            A.set_part(i, j, S.part(i, j))
    for j in loop(n):
        put_combination(A, r + j, B, lambda l, j=j: C[l, j])
    triangularise(A, r, (0, 0), r, lambda s: (r, r + n))
    for j in loop(r):
        for i in loop(r):
            out[i, j] = where(j > i, 0.0, A[i, j])
    out.clear_spare()


def copy(out, given):
    """A stored root becomes a matrix."""
    if in_registers(out) and getattr(given, "height", None) is not None:
        out.set_columns(given.columns())
        return
    for j in loop(out.shape[1]):
        for i in loop(out.shape[0]):
            out[i, j] = given[i, j]
    out.clear_spare()
