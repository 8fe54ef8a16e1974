"""Whole linearised trajectories, compiled: one filter and one Bryson–Frazier smoother each, for a step to the mode.

A series has its matrices in registers or by tiles, or several series go side by side in lanes: one algorithm.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.nonlinear.recursions.halves import combined, correct
from kfdyn.estimation.recursions.linalg.matrices import Block, Column, Turned, add_congruence, by_rows, multiply
from kfdyn.estimation.recursions.linalg.triangular import solve_lower_transposed
from kfdyn.sweeps import Column as Rows
from kfdyn.sweeps import any_lanes, broadcast, down, if_, local, loop, not_, passes, sweep, where
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.workspace import Workspace

#: A variance that a reading leaves below that part of itself has lost digits: the engine's way is more careful then.
CAREFUL = 1e-9


class Given(NamedTuple):
    """A linear model about each series: F (n, n), B (n, p) and Q (p, p) of N − 1 steps, H (m, n) and R (m, m) of N.

    P0 (n, n) and z0 (n) are its prior; defects (N−1, n) and w (N−1, p) belong to steps, T (N, m) to readings, NaN where
    nothing was read. Matrices of series, and of steps, are as far apart as is said; 0 where all share one.
    """

    F: Any
    B: Any
    H: Any
    R: Any
    Q: Any
    P0: Any
    z0: Any
    defects: Any
    w: Any
    T: Any
    F_series: Any
    F_step: Any
    B_series: Any
    B_step: Any
    H_series: Any
    H_step: Any
    R_series: Any
    R_step: Any
    Q_series: Any
    Q_step: Any


class Found(NamedTuple):
    """Results by series: tangents d, co-states (N, n), w (N−1, p), multipliers a (N, m), variances around readings."""

    d: Any
    costate: Any
    w: Any
    a: Any
    before: Any
    after: Any


class Room(Workspace):
    """The memory of a pass, each number with its lanes; results too where there are several."""

    @staticmethod
    def layout(n, m, p, N, several):
        """Lay out the workspace for nodes of n states and m outputs, and p numbers of noise."""
        return {
            "P": N * n * n, "z": N * n, "W": N * n * m, "L": N * m * m, "updates": N * (n + 2 * m + 2),
            "P_plus": n * n, "D": m * m, "C": n * m, "z_plus": n, "free": 2 * n * (n + p),
            "F": several * n * n, "B": several * n * p, "H": several * n * m, "R": several * m * m,
            "Q": several * p * p, "T": m, "ahead": n, "pushed": p,
            "d": several * N * n, "costate": several * N * n, "w": several * (N - 1) * p, "a": several * N * m,
            "before": several * N * n, "after": several * N * n,
        }  # fmt: skip


def numbers(n, m, p, N, lanes):
    """Return the size of the workspace of a call, in numbers."""
    return lanes * (Room.size(n, m, p, N, int(lanes > 1)) + LINE)


class There:
    """Mark the readings that are there: those that are numbers."""

    def __init__(self, T):
        self.T = T

    def __getitem__(self, i):
        return self.T[i] == self.T[i]


@sweep(tags=3)
def chains_solved(lanes, sizes, tiled, given, found, work, n, m, p, N, series):
    """Compute one Gauss–Newton step of each series; return −1, or the step of one at which digits are lost.

    Parameters
    ----------
    lanes : Tag
        How many series go side by side.
    sizes : three tags, or None
        n, m and p where they are known while code is written: with one lane rows of matrices go into registers then.
    tiled : Tag
        1 where products of matrices go by tiles; with one lane.
    given, found : Given, Found
        See there.
    work : flat
        For :func:`numbers` of them.
    """
    if sizes is not None:
        n, m, p = sizes
    failed = local(-1)
    chain = _Chain(int(lanes), {"known": sizes is not None and lanes == 1, "tiled": tiled == 1}, n, m, p, N)
    for first, apart in passes(chain.lanes, 0, series):
        chain.begin(given, found, work, first, apart)
        chain.filter(failed)
        for _ in if_(failed < 0):
            chain.smooth()
    return failed


class _Chain:
    """A pass over as many series as there are lanes."""

    def __init__(self, lanes, how, n, m, p, N):
        self.lanes, self.how, self.n, self.m, self.p, self.N = lanes, how, n, m, p, N

    def begin(self, given, found, work, first, apart):
        """The series of the pass: ``first``, and how far the next is."""
        self.given, self.first, self.apart = given, first, apart
        memory = work.aligned().lanes(self.lanes) if self.lanes > 1 else work
        self.room = Room(memory, self.n, self.m, self.p, self.N, int(self.lanes > 1))
        N, n, m, p = self.N, self.n, self.m, self.p
        widths = (N * n, N * n, (N - 1) * p, N * m, N * n, N * n)
        self.told = [
            Rows(memory.part(0), first * width, apart * width, self.lanes) for memory, width in zip(found, widths)
        ]
        if self.lanes == 1:
            self.found = Found(*(memory.part(first * width) for memory, width in zip(found, widths)))
        else:
            self.found = Found(*(getattr(self.room, name) for name in Found._fields))
        self.widths = widths

    def block(self, name, k, rows, columns):
        """The matrix of step k."""
        numbers, series, step = (getattr(self.given, name + rest) for rest in ("", "_series", "_step"))
        at = self.first * series + k * step
        if self.lanes == 1:
            return Block(numbers, at, rows, columns, **self.how)
        room = getattr(self.room, name)
        theirs = Rows(numbers.part(0), at, self.apart * series, self.lanes)
        for _ in if_((step > 0) | (k == 0)):  # one of all steps is there
            for i in loop(rows * columns):
                room[i] = theirs[i]
        return Block(room, 0, rows, columns)

    def vector(self, name, width, k):
        """Numbers of step k of which there are ``width`` in all."""
        flat, count = getattr(self.given, name), {"z0": 1, "defects": self.N - 1, "w": self.N - 1, "T": self.N}[name]
        return Rows(flat.part(0), self.first * count * width + k * width, self.apart * count * width, self.lanes)

    def filter(self, failed):
        """P(k), z(k) and what updates leave, from the first step to the last."""
        room, found, n, m, p, N, how = self.room, self.found, self.n, self.m, self.p, self.N, self.how
        P, z, C, D, T, P_plus = room.P, room.z, room.C, room.D, room.T, room.P_plus
        z_plus, each = Column(room.z_plus, 0, n), n + 2 * m + 2
        P0, z0 = (
            Rows(self.given.P0.part(0), self.first * n * n, self.apart * n * n, self.lanes),
            self.vector("z0", n, 0),
        )
        for i in loop(n * n):
            P[i] = P0[i]
        for i in loop(n):
            z[i] = z0[i]
        for k in loop(N, until=failed):
            P_k, z_k, H_k = Block(P, k * n * n, n, n, **how), z.part(k * n), self.block("H", k, m, n)
            multiply(Block(C, 0, m, n, **how), H_k, by_rows(P_k))
            turned = Turned(Block(C, 0, m, n, **how))
            multiply(Block(D, 0, m, m), H_k, turned, base=self.block("R", k, m, m), symmetric=True)
            read = self.vector("T", m, k)
            for i in loop(m):
                s = local(read[i])
                for j in loop(n):
                    s -= H_k[i, j] * z_k[j]
                T[i] = s
            update, bad = room.updates.part(k * each), local(-1)
            L_k, W_k = room.L.part(k * m * m), room.W.part(k * m * n)
            correct(0, bad, P_k.place, C, D, T, There(T), update, P_plus, L_k, W_k, n, m, **how)
            lost = local(broadcast(0.0, self.lanes))
            for i in loop(n):
                before, after = P_k[i, i], P_plus[i * n + i]
                found.before[k * n + i] = before
                found.after[k * n + i] = after
                z_plus[i] = z_k[i] + update[i]
                lost.set(where(not_(after >= CAREFUL * before), 1.0, lost))  # not a number, too
            for _ in if_((bad >= 0) | any_lanes(lost > 0.0)):
                failed.set(k)
            for _ in if_(k + 1 < N):
                P_next, F_k = Block(P, (k + 1) * n * n, n, n, **how), self.block("F", k, n, n)
                B_k, Q_k = self.block("B", k, n, p), self.block("Q", k, p, p)
                P_next.clear()
                add_congruence(P_next, F_k, Block(P_plus, 0, n, n, **how), room.free)
                add_congruence(P_next, B_k, Q_k, room.free)
                defects, w = self.vector("defects", n, k), self.vector("w", p, k)
                for i in loop(n):
                    s = local(defects[i])
                    for j in loop(n):
                        s += F_k[i, j] * z_plus[j]
                    for j in loop(p):
                        s -= B_k[i, j] * w[j]
                    z[(k + 1) * n + i] = s

    def smooth(self):
        """λ⁺ = F* λ(k+1),  a = ν − L⁻* W λ⁺,  λ = λ⁺ + H* a,  d = z + P λ,  w = Q B* λ(k+1)."""
        room, found, n, m, p, N, known = self.room, self.found, self.n, self.m, self.p, self.N, self.how["known"]
        ahead, pushed, each = Column(room.ahead, 0, n, known), Column(room.pushed, 0, p, known), n + 2 * m + 2
        ahead.clear()
        for k in down(N):
            for _ in if_(k + 1 < N):
                after = Column(found.costate, (k + 1) * n, n, known)
                combined(ahead, after, self.block("F", k, n, n))
                combined(pushed, after, self.block("B", k, n, p))
                combined(Column(found.w, k * p, p, known), pushed, self.block("Q", k, p, p))
            a, W = Column(found.a, k * m, m, known), Block(room.W, k * m * n, m, n)
            for i in loop(m):
                s = local(broadcast(0.0, self.lanes))
                for j in loop(n):
                    s += W[i, j] * ahead[j]
                a[i] = s
            solve_lower_transposed(Block(room.L, k * m * m, m, m), a)
            nu = room.updates.part(k * each + n + m)
            for i in loop(m):
                a[i] = nu[i] - a[i]
            costate, d = Column(found.costate, k * n, n, known), Column(found.d, k * n, n, known)
            combined(costate, a, self.block("H", k, m, n))
            for i in loop(n):
                costate[i] = costate[i] + ahead[i]
            combined(d, costate, Block(room.P, k * n * n, n, n, **self.how))
            for i in loop(n):
                d[i] = d[i] + room.z[k * n + i]
        if self.lanes > 1:
            for to, width, mine in zip(self.told, self.widths, found):
                to.copy(mine, width)
