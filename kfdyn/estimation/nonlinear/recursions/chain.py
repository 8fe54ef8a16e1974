"""A whole linearised trajectory, compiled: one filter and one Bryson–Frazier smoother, for a step towards the mode."""

from kfdyn.estimation.nonlinear.recursions.halves import combined, correct
from kfdyn.estimation.recursions.linalg.matrices import Block, Column, Turned, add_congruence, by_rows, multiply
from kfdyn.estimation.recursions.linalg.triangular import solve_lower_transposed
from kfdyn.sweeps import down, if_, local, loop, sweep

#: A variance that a reading leaves below that part of itself has lost digits: the engine's way is more careful then.
CAREFUL = 1e-9


@sweep(tags=2)
def chain_solved(sizes, tiled, F, B, H, H_step, R, R_step, Q, Q_step, given, found, kept, work, n, m, p, N):
    """One Gauss–Newton step of one series; returns −1, or the step at which digits are lost.

    Parameters
    ----------
    sizes : three tags, or None
        n, m and p where they are known while code is written: then rows of matrices go into registers.
    tiled : Tag
        1 where products of matrices go by tiles.
    F, B : (N−1, n, n), (N−1, n, p), flat
        Jacobians of the steps.
    H, R, Q : flat
        Of the readings (N, m, n) and (N, m, m), of the noise (N−1, p, p); their step is 0 where all times share one.
    given : named tuple of flat arrays
        P0 (n, n) and z0 (n) of the prior, defects (N−1, n), w (N−1, p), T and seen (N, m).
    found : named tuple of flat arrays
        d and costate (N, n), w (N−1, p), a (N, m), variances before and after each reading (N, n).
    kept : named tuple of flat arrays
        P (N, n, n), z (N, n), W (N, m, n), L (N, m, m) and updates (N, n + 2m + 2), from the filter to the smoother.
    work : flat
        For 4n² + 2n max(n, p) + 2nm + m² + 3n + m numbers.
    """
    if sizes is not None:
        n, m, p = sizes
    how = {"known": sizes is not None, "tiled": tiled == 1}
    P_plus, D, C, free = (work.part(0), work.part(n * n), work.part(n * n + m * m), work.part(n * n + m * m + n * m))
    T, z_plus, rest = free.part(0), Column(free, m, n), free.part(m + n)
    each, failed, P, z = n + 2 * m + 2, local(-1), kept.P, kept.z
    for i in loop(n * n):
        P[i] = given.P0[i]
    for i in loop(n):
        z[i] = given.z0[i]
    for k in loop(N, until=failed):
        P_k, z_k, H_k = Block(P, k * n * n, n, n, **how), z.part(k * n), Block(H, k * H_step, m, n, **how)
        C_k = Block(C, 0, m, n, **how)
        multiply(C_k, H_k, by_rows(P_k))
        multiply(Block(D, 0, m, m), H_k, Turned(C_k), base=Block(R, k * R_step, m, m), symmetric=True)
        for i in loop(m):
            s = local(given.T[k * m + i])
            for j in loop(n):
                s -= H_k[i, j] * z_k[j]
            T[i] = s
        update, seen = kept.updates.part(k * each), given.seen.part(k * m)
        bad, W_k = local(-1), kept.W.part(k * m * n)
        correct(0, bad, P_k.place, C, D, T, seen, update, P_plus, kept.L.part(k * m * m), W_k, n, m, **how)
        for i in loop(n):
            before, after = P_k[i, i], P_plus[i * n + i]
            found.before[k * n + i] = before
            found.after[k * n + i] = after
            z_plus[i] = z_k[i] + update[i]
            for _ in if_(after < CAREFUL * before):
                bad.set(k)
        for _ in if_(bad >= 0):
            failed.set(k)
        for _ in if_(k + 1 < N):
            P_next, F_k = Block(P, (k + 1) * n * n, n, n, **how), Block(F, k * n * n, n, n, **how)
            B_k, Q_k = Block(B, k * n * p, n, p, **how), Block(Q, k * Q_step, p, p, **how)
            P_next.clear()
            add_congruence(P_next, F_k, Block(P_plus, 0, n, n, **how), rest)
            add_congruence(P_next, B_k, Q_k, rest)
            for i in loop(n):
                s = local(given.defects[k * n + i])
                for j in loop(n):
                    s += F_k[i, j] * z_plus[j]
                for j in loop(p):
                    s -= B_k[i, j] * given.w[k * p + j]
                z[(k + 1) * n + i] = s
    for _ in if_(failed < 0):
        _smooth(F, B, H, H_step, Q, Q_step, found, kept, work, n, m, p, N, sizes is not None)
    return failed


def _smooth(F, B, H, H_step, Q, Q_step, found, kept, work, n, m, p, N, known):
    """λ⁺ = F* λ(k+1),  a = ν − L⁻* W λ⁺,  λ = λ⁺ + H* a,  d = z + P λ,  w = Q B* λ(k+1)."""
    ahead, pushed, each = Column(work, 0, n, known), Column(work, n, p, known), n + 2 * m + 2
    ahead.clear()
    for k in down(N):
        for _ in if_(k + 1 < N):
            after = Column(found.costate, (k + 1) * n, n, known)
            combined(ahead, after, Block(F, k * n * n, n, n, known))
            combined(pushed, after, Block(B, k * n * p, n, p, known))
            combined(Column(found.w, k * p, p, known), pushed, Block(Q, k * Q_step, p, p, known))
        a, W = Column(found.a, k * m, m, known), Block(kept.W, k * m * n, m, n)
        for i in loop(m):
            s = local(0.0)
            for j in loop(n):
                s += W[i, j] * ahead[j]
            a[i] = s
        solve_lower_transposed(Block(kept.L, k * m * m, m, m), a)
        nu = kept.updates.part(k * each + n + m)
        for i in loop(m):
            a[i] = nu[i] - a[i]
        costate, d = Column(found.costate, k * n, n, known), Column(found.d, k * n, n, known)
        combined(costate, a, Block(H, k * H_step, m, n, known))
        for i in loop(n):
            costate[i] = costate[i] + ahead[i]
        combined(d, costate, Block(kept.P, k * n * n, n, n, known))
        for i in loop(n):
            d[i] = d[i] + kept.z[k * n + i]
