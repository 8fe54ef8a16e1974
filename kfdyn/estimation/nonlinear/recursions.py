"""The two halves of a filter's step, compiled: their matrices are so small that NumPy's calls would cost most."""

from kfdyn.estimation.recursions.linalg.matrices import Block, Turned, add_congruence, multiply
from kfdyn.estimation.recursions.linalg.triangular import cholesky, solve_lower, solve_lower_transposed
from kfdyn.sweeps import if_, local, loop, sweep, where

#: A pivot below that part of an innovation's variance is rounding.
REGULAR = 1e-13


@sweep(tags=0)
def innovation(P, H, R, R_step, C, D, n, m, rows):
    """C = P H* and D = H P H* + R of every belief; ``R_step`` is 0 where they share R."""
    for b in loop(rows):
        P_b, H_b, C_b = Block(P, b * n * n, n, n), Block(H, b * m * n, m, n), Block(C, b * n * m, n, m)
        multiply(C_b, P_b, Turned(H_b))
        multiply(Block(D, b * m * m, m, m), H_b, C_b, base=Block(R, b * R_step, m, m), symmetric=True)


@sweep(tags=0)
def corrected(P, C, D, T, seen, found, P_plus, L, work, n, m, rows):
    """Update every belief; returns b m + i where output i of belief b has no variance, else −1.

    ``found`` has d (n), ε, ν (m) and the quadratic form ε*D⁻¹ε of every belief, one after the other; L is the factor of
    D on what is seen. ``work`` is for n m numbers.
    """
    failed, each = local(-1), n + 2 * m + 1
    for b in loop(rows, until=failed):
        D_b, L_b = Block(D, b * m * m, m, m), Block(L, b * m * m, m, m)
        C_b, W = Block(C, b * n * m, n, m), Block(work, 0, n, m)
        there, T_b = seen.part(b * m), T.part(b * m)
        out = found.part(b * each)
        eps, nu = Block(out.part(n), 0, 1, m), Block(out.part(n + m), 0, 1, m)
        bad = cholesky(D_b, L_b, there, REGULAR)
        for _ in if_(bad >= 0):
            failed.set(b * m + bad)
        for _ in if_(bad < 0):
            for i in loop(n):
                for a in loop(m):
                    W[i, a] = where(there[a], C_b[i, a], 0.0)
                solve_lower(L_b, W.line(i))
            for a in loop(m):
                eps[0, a] = where(there[a], T_b[a], 0.0)
                nu[0, a] = eps[0, a]
            solve_lower(L_b, nu.line(0))
            square = local(0.0)
            for a in loop(m):
                square += nu[0, a] * nu[0, a]
            out[n + 2 * m] = square
            for i in loop(n):
                d = local(0.0)
                for a in loop(m):
                    d += W[i, a] * nu[0, a]
                out[i] = d
            solve_lower_transposed(L_b, nu.line(0))
            P_b = Block(P, b * n * n, n, n)
            multiply(Block(P_plus, b * n * n, n, n), W, Turned(W), base=P_b, sign=-1.0, symmetric=True)
    return failed


@sweep(tags=0)
def predicted(F, P, B, Q, Q_step, out, work, n, p, rows):
    """F P F* + B Q B* of every belief; ``work`` is for 2n(n + p) numbers."""
    for b in loop(rows):
        P_next = Block(out, b * n * n, n, n)
        P_next.clear()
        add_congruence(P_next, Block(F, b * n * n, n, n), Block(P, b * n * n, n, n), work)
        add_congruence(P_next, Block(B, b * n * p, n, p), Block(Q, b * Q_step, p, p), work)
