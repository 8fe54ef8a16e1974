"""The two halves of a filter's step, compiled: their matrices are so small that NumPy's calls would cost most."""

from kfdyn.estimation.recursions.linalg.matrices import (
    Block,
    Column,
    Turned,
    add_congruence,
    combine,
    multiply,
    nothing,
)
from kfdyn.estimation.recursions.linalg.small_blocks import combination
from kfdyn.estimation.recursions.linalg.triangular import cholesky, solve_lower, solve_lower_transposed
from kfdyn.sweeps import LANEWISE, arithmetic, if_, local, log, loop, sweep, where

#: A pivot below that part of an innovation's variance is rounding.
REGULAR = 1e-13

LOG_2PI = 1.8378770664093453


@sweep(tags=0)
def linearly_corrected(P, H, R, R_step, C, D, T, seen, found, P_plus, L, work, n, m, rows):
    """C = H P and D = H P H* + R of every belief, which are filled, and the update by them, as :func:`corrected`.

    ``R_step`` is 0 where all beliefs share R.
    """
    failed = local(-1)
    for b in loop(rows, until=failed):
        P_b, H_b, C_b = Block(P, b * n * n, n, n), Block(H, b * m * n, m, n), Block(C, b * m * n, m, n)
        multiply(C_b, H_b, Turned(P_b))
        multiply(Block(D, b * m * m, m, m), H_b, Turned(C_b), base=Block(R, b * R_step, m, m), symmetric=True)
        correct(b, failed, P, C, D, T, seen.part(b * m), found, P_plus, L, work, n, m)
        _say_likelihood(b, seen, found, L, n, m)
    return failed


@sweep(tags=0)
def corrected(P, C, D, T, seen, found, P_plus, L, work, n, m, rows):
    """Update every belief; returns b m + i where output i of belief b has no variance, else −1.

    C (rows, m, n) is the covariance of reading and state. ``found`` has d (n), ε, ν (m), the quadratic form ε*D⁻¹ε and
    the log-likelihood of every belief, one after the other; L is the factor of D on what is seen. ``work`` is for n m
    numbers.
    """
    failed = local(-1)
    for b in loop(rows, until=failed):
        correct(b, failed, P, C, D, T, seen.part(b * m), found, P_plus, L, work, n, m)
        _say_likelihood(b, seen, found, L, n, m)
    return failed


def _say_likelihood(b, seen, found, L, n, m):
    """−½ (ε*D⁻¹ε + log det 2πD) of what is seen; logarithms are called one by one, so whoever needs none has none."""
    out, there, L_b = found.part(b * (n + 2 * m + 2)), seen.part(b * m), Block(L, b * m * m, m, m)
    volume = local(0.0)
    for a in loop(m):
        volume += where(there[a], LOG_2PI + 2.0 * log(L_b[a, a]), 0.0)
    out[n + 2 * m + 1] = -0.5 * (out[n + 2 * m] + volume)


def correct(b, failed, P, C, D, T, there, found, P_plus, L, work, n, m, known=False, tiled=False):
    """The update of one belief: L L* = D,  W = L⁻¹ C,  ν = L⁻* L⁻¹ ε,  d = W* L⁻¹ ε,  P⁺ = P − W* W.

    In lanes one that fails is not a number.
    """
    each = n + 2 * m + 2
    D_b, L_b = Block(D, b * m * m, m, m), Block(L, b * m * m, m, m)
    C_b, W = (Block(flat, start, m, n, known, tiled) for flat, start in ((C, b * m * n), (work, 0)))
    T_b = T.part(b * m)
    out = found.part(b * each)
    eps, nu = out.part(n), Column(out, n + m, m, known)
    bad = cholesky(D_b, L_b, there, REGULAR)
    for _ in if_(bad >= 0):
        failed.set(b * m + bad)
    for _ in if_(bad < 0):
        _whiten(W, L_b, C_b, there)
        for a in loop(m):
            eps[a] = where(there[a], T_b[a], 0.0)
            nu[a] = eps[a]
        solve_lower(L_b, nu)
        square = nothing(nu)
        for a in loop(m):
            square += nu[a] * nu[a]
        out[n + 2 * m] = square
        combined(Column(out, 0, n, known), nu, W)
        solve_lower_transposed(L_b, nu)
        P_b, after = (Block(flat, b * n * n, n, n, known, tiled) for flat in (P, P_plus))
        if known or tiled or D_b.count > 1:
            multiply(after, Turned(W), W, base=P_b, sign=-1.0, symmetric=True)
        else:
            _subtract_square(after, P_b, W)


def _whiten(W, L, C, there):
    """W = L⁻¹ C, 0 in rows that are not there."""
    m, n = W.shape
    if W.known:
        rows = []
        with arithmetic(LANEWISE):
            for a in range(m):
                row = C.row(a)
                if a > 0:
                    row = row - combination([L[a, j] for j in range(a)], rows)
                rows.append(where(there[a], 1.0 / L[a, a], 0.0) * row)
        W.set_rows(rows)
        return
    for a in loop(m):
        for i in loop(n):
            W[a, i] = C[a, i]
        for j in loop(a):
            c = L[a, j]
            for i in loop(n):
                W[a, i] = W[a, i] - c * W[j, i]
        c = where(there[a], 1.0 / L[a, a], 0.0)
        for i in loop(n):
            W[a, i] = c * W[a, i]


def _subtract_square(out, P, W):
    """out = P − W* W, a row of W at a time: sums run along rows of memory."""
    m, n = W.shape
    out.copy(P)
    for a in loop(m):
        for i in loop(n):
            c = W[a, i]
            for j in loop(i + 1):
                out[i, j] = out[i, j] - c * W[a, j]
    for i in loop(n):
        for j in loop(i):
            out[j, i] = out[i, j]


def combined(y, x, A):
    """y = A* x, a row of A at a time."""
    if A.known or A.count > 1:
        combine(y, x, A)
        return
    y.clear()
    for i in loop(A.shape[0]):
        for j in loop(A.shape[1]):
            y[j] = y[j] + x[i] * A[i, j]


@sweep(tags=0)
def predicted(F, P, B, Q, Q_step, out, work, n, p, rows):
    """F P F* + B Q B* of every belief; ``work`` is for 2n(n + p) numbers."""
    for b in loop(rows):
        P_next = Block(out, b * n * n, n, n)
        P_next.clear()
        add_congruence(P_next, Block(F, b * n * n, n, n), Block(P, b * n * n, n, n), work)
        add_congruence(P_next, Block(B, b * n * p, n, p), Block(Q, b * Q_step, p, p), work)
