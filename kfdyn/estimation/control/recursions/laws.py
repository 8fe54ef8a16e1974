"""Linear-quadratic problems of chains, compiled: cost to go and law from the last step to the first, then the plan.

It is the update of the engine's filter with a control for an output (THEORY 19), taken before A and not behind it: so
cross terms need no square to be completed. Matrices are in registers or go by tiles: one algorithm.
"""

import math
from typing import Any, NamedTuple

from kfdyn.estimation.nonlinear.recursions.halves import combined, correct
from kfdyn.estimation.recursions.linalg.matrices import (
    Block,
    Column,
    Turned,
    by_rows,
    dot,
    multiply,
)
from kfdyn.estimation.recursions.linalg.small_blocks import combination
from kfdyn.sweeps import LANEWISE, arithmetic, clear, down, if_, if_else, local, loop, sweep
from kfdyn.sweeps.workspace import Workspace


class Given(NamedTuple):
    """min Σ ½ x*Q x + q*x + ½ r u*u + g*u + u*M x(k − 1),  x(k) = A x(k − 1) + B u(k) + c(k), x before the first 0.

    Of many chains of N steps, (chains, N, ...) and flat; r (chains,). A control whose g is NaN is held at 0.
    """

    A: Any
    B: Any
    Q: Any
    M: Any
    c: Any
    q: Any
    g: Any
    r: Any


class Found(NamedTuple):
    """The minimum: states, costates (chains, N, n), controls u = shift + gains x(k − 1), gains (chains, N, p, n)."""

    x: Any
    costate: Any
    u: Any
    shift: Any
    gains: Any


class Room(Workspace):
    """The memory of a pass."""

    @staticmethod
    def layout(n, p, N):
        """Lay out the memory for n states and p controls."""
        return {
            "P": N * n * n, "z": N * n, "y": n, "pushed": p, "ahead": n, "eps": p, "C": p * n, "D": p * p, "L": p * p,
            "S": p * n, "W": p * n, "before": n * n, "V": n * n, "update": n + 2 * p + 2, "half": n * n,
        }  # fmt: skip


class Free:
    """Mark the controls that are free: those whose residual is a number."""

    def __init__(self, eps):
        self.eps = eps

    def __getitem__(self, i):
        return self.eps[i] == self.eps[i]


@sweep(tags=3)
def laws_found(sizes, tiled, crossed, given, found, work, n, p, N, chains):
    """Solve each chain; returns of how many some D = r + B*P B is not positive definite: x of these is not a number.

    Parameters
    ----------
    sizes : two tags, or None
        n and p where they are known while code is written: rows of matrices go into registers then.
    tiled : Tag
        1 where products of matrices go by tiles.
    crossed : Tag
        1 where there is M.
    given, found : Given, Found
        See there.
    work : flat
        For a :class:`Room`.
    """
    if sizes is not None:
        n, p = sizes
    lost = local(0)
    for chain in loop(chains):
        one, failed = (
            _Chain(sizes is not None, tiled == 1, given, found, Room(work, n, p, N), chain, n, p, N),
            local(-1),
        )
        one.gather(crossed == 1, failed)
        for fine in if_else(failed < 0):
            if fine:
                one.scatter()
            else:
                one.found.x[0] = math.nan
                lost += 1
    return lost


class _Chain:
    """One of the chains."""

    def __init__(self, known, tiled, given, found, room, chain, n, p, N):
        self.known, self.how = known, {"known": known, "tiled": tiled}
        self.room, self.chain, self.n, self.p, self.N = room, chain, n, p, N
        sizes = {"n": n, "p": p, "nn": n * n, "np": n * p, "pn": p * n}
        kinds = ("nn", "np", "nn", "pn", "n", "n", "p")
        self.given = Given(*(flat.part(chain * N * sizes[kind]) for flat, kind in zip(given, kinds)), given.r)
        self.found = Found(
            *(flat.part(chain * N * sizes[kind]) for flat, kind in zip(found, ("n", "n", "p", "p", "pn")))
        )

    def block(self, flat, k, rows, columns):
        """The matrix of step k."""
        return Block(flat, k * rows * columns, rows, columns, **self.how)

    def column(self, flat, k, size):
        """The vector of step k."""
        return Column(flat, k * size, size, self.known)

    def gather(self, crossed, failed):
        """Cost to go ½ x*P x + z*x of x(k), and the law of u(k), from the last step to the first."""
        given, found, room, n, p = self.given, self.found, self.room, self.n, self.p
        C, S, W = (self.block(flat, 0, p, n) for flat in (room.C, room.S, room.W))
        D, L = self.block(room.D, 0, p, p), Block(room.L, 0, p, p)
        half, before = (self.block(flat, 0, n, n) for flat in (room.half, room.before))
        ahead, update, eps = self.column(room.ahead, 0, n), room.update, room.eps
        clear(room.V, n * n)
        clear(room.ahead, n)
        for at in loop(self.N, until=failed):
            k = self.N - 1 - at
            A, B, P = self.block(given.A, k, n, n), self.block(given.B, k, n, p), self.block(room.P, k, n, n)
            Q, z, y = given.Q.part(k * n * n), self.column(room.z, k, n), self.column(room.y, 0, n)
            q, c, g = given.q.part(k * n), self.column(given.c, k, n), given.g.part(k * p)
            for i in loop(n * n):
                P.place[i] = Q[i] + room.V[i]
            combined(y, c, P)
            for i in loop(n):
                z[i] = q[i] + ahead[i]
                y[i] = z[i] + y[i]
            multiply(C, Turned(B), by_rows(P))
            multiply(D, C, B, symmetric=True)
            multiply(S, C, A, base=self.block(given.M, k, p, n) if crossed else None)
            multiply(half, Turned(A), by_rows(P))
            multiply(before, half, A, symmetric=True)
            combined(self.column(room.pushed, 0, p), y, B)
            for i in loop(p):
                D[i, i] = D[i, i] + given.r[self.chain]
                eps[i] = -g[i] - room.pushed[i]
            bad = local(-1)
            rooms = (room.before, room.S, room.D, eps, Free(eps), update, room.V, room.L, room.W)
            correct(0, bad, *rooms, n, p, **self.how)
            for _ in if_(bad >= 0):
                failed.set(k)
            combined(ahead, y, A)
            for i in loop(n):
                ahead[i] = ahead[i] + update[i]
            for i in loop(p):
                found.shift[k * p + i] = update[n + p + i]
            _gains(self.block(found.gains, k, p, n), L, W)

    def scatter(self):
        """u = shift + gains x(k − 1), x = A x(k − 1) + B u + c, costate = P x + z, from the first step to the last."""
        given, found, room, n, p = self.given, self.found, self.room, self.n, self.p
        before = self.column(room.y, 0, n)
        before.clear()
        for k in loop(self.N):
            A, B, gains = self.block(given.A, k, n, n), self.block(given.B, k, n, p), self.block(found.gains, k, p, n)
            x, u, costate = self.column(found.x, k, n), self.column(found.u, k, p), self.column(found.costate, k, n)
            for i in loop(p):
                u[i] = found.shift[k * p + i] + dot(gains.line(i), before)
            for i in loop(n):
                x[i] = given.c[k * n + i] + dot(A.line(i), before) + dot(B.line(i), u)
            combined(costate, x, self.block(room.P, k, n, n))
            for i in loop(n):
                before[i] = x[i]
                costate[i] = costate[i] + room.z[k * n + i]


def _gains(K, L, W):
    """K = −L⁻* W, the last row first."""
    p, n = W.shape
    if W.known:
        rows = {}
        with arithmetic(LANEWISE):
            for i in reversed(range(p)):
                row, later = W.row(i), range(i + 1, p)
                if later:
                    row = row + combination([L[j, i] for j in later], [rows[j] for j in later])
                rows[i] = (-1.0 / L[i, i]) * row
        K.set_rows([rows[i] for i in range(p)])
        return
    for i in down(p):
        for j in loop(n):
            K[i, j] = -W[i, j]
        for l in loop(p, i + 1):
            for j in loop(n):
                K[i, j] = K[i, j] - L[l, i] * K[l, j]
        c = 1.0 / L[i, i]
        for j in loop(n):
            K[i, j] = c * K[i, j]
