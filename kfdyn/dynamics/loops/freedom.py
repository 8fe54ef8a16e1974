"""Freedom of a node: the rates X that its loops leave to its coordinates, and the acceleration Ẋβ they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.loops.aggregation import Node, described
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody import System, integrate
from kfdyn.multibody.closure import RANK, expect_closed, loop_slices
from kfdyn.multibody.loop_tables import loop_readings

Array = NDArray[np.float64]

# Radians or so: how far nearby is.
NEARBY = 1e-4
# A loop whose rows are this near to dependent is at a dead centre: half of all digits of X would be lost.
NEARLY = 1e-7
# Accelerations that dependent rows ask for and no motion has, as part of all that they ask for.
CONSISTENT = 1e-6
# Independent coordinates that others follow more than so many times as fast are badly chosen.
STEEP = 1e6


@dataclass(frozen=True, eq=False)
class Freedom:
    """Rates of a node's m coordinates are X times f free ones, (B, m, f); ``drift`` (B, m) is Ẋβ.

    ``independent`` (f,) tells which coordinates the free ones are, where they are coordinates.
    """

    X: Array
    drift: Array
    independent: NDArray[np.int64] | None

    @property
    def size(self) -> int:
        """Number f of free rates."""
        return int(self.X.shape[-1])

    def forces(self, tau: Array) -> Array:
        """X*tau (B, f)."""
        return (np.swapaxes(self.X, -1, -2) @ tau[..., None])[..., 0]

    def accelerations(self, free: Array) -> Array:
        """X a + Ẋβ (B, m) of accelerations a (B, f)."""
        return (self.X @ free[..., None])[..., 0] + self.drift


class Rows:
    """What the rows of all loops say of B states: rates of the coordinates, drift, and how large the rates are.

    Parameters
    ----------
    system : System
        With loops.
    q, v : (B, nq), (B, nv) or None
        States; no v is at rest.
    """

    def __init__(self, system: System, q: Array, v: Array | None = None) -> None:
        self.q, self.read, self.X = q, loop_readings(system, q, v), system.expansion(q)
        self.of_loops = list(loop_slices(system))

    def of(self, node: Node) -> _Gap:
        """The rows of a node's own loops, in its own coordinates: what is inboard of both ends moves none of them."""
        rows = np.concatenate([np.arange(self.of_loops[i].start, self.of_loops[i].stop) for i in node.loops])
        weights = (self.X[..., node.own] ** 2).sum(-1)
        scale = np.sqrt((self.read.made_of[:, rows] @ weights[..., None])[..., 0])
        return _Gap(self.read.J[:, rows][..., node.own], self.read.drift[:, rows], scale)


@dataclass(frozen=True, eq=False)
class _Gap:
    """Rates J (B, r, m) of all rows of a node's loops, their drift (B, r), and how large the parts of J are (B, r)."""

    J: Array
    drift: Array
    scale: Array


def freedom(system: System, node: Node, size: int, rows: Rows | None, named: bool = False) -> Freedom:
    """Solve a node's loops for the rates they leave free in ``size`` states; ``rows`` are those of the loops.

    Raises
    ------
    SingularError
        At a configuration where the loop can move in more ways than elsewhere (a dead centre).
    ModelError
        If the loops contradict each other, or are open where their rows are dependent.
    """
    m = len(node.own)
    if not node.loops:
        return Freedom(np.eye(m)[None], np.zeros((size, m)), np.arange(m))
    assert rows is not None
    gap, q = rows.of(node), rows.q
    row, column, U, s, Vt = _decomposed(gap)
    ranks = (s > RANK * s[:, :1]).sum(axis=1) if s.shape[1] else np.zeros(size, dtype=int)
    rank = int(ranks.max(initial=0))
    _refuse_singular(system, node, q, s, ranks, rank, lambda: _grows(system, node, q[0], Vt[0, rank:], column[0], rank))
    wanted = (np.swapaxes(U, -1, -2) @ (gap.drift / row)[..., None])[..., 0]
    _refuse_contradiction(system, node, wanted, rank)
    solved = -wanted[:, :rank] / s[:, :rank]
    drift = (np.swapaxes(Vt[:, :rank], -1, -2) @ solved[..., None])[..., 0] / column
    N = np.swapaxes(Vt[:, rank:], -1, -2)
    independent = None
    X = N / column[..., None]
    if named:
        independent = _pivots(N[0])
        X = X @ _inverse(system, node, N[:, independent], column[:, independent])
        drift = drift - (X @ drift[:, independent, None])[..., 0]
    return Freedom(X, drift, independent)


def _decomposed(gap: _Gap) -> tuple[Array, Array, Array, Array, Array]:
    """Scales of rows and columns, and the singular values of J with them: metres and radians weigh the same."""
    row = np.where(gap.scale > 0, gap.scale, 1.0)
    J = gap.J / row[..., None]
    column = np.abs(J).max(axis=1, initial=0.0)
    column = np.where(column > RANK, column, 1.0)
    return row, column, *np.linalg.svd(J / column[:, None], full_matrices=True)


def _refuse_singular(
    system: System, node: Node, q: Array, s: Array, ranks: NDArray[np.int64], rank: int, grows: Callable[[], bool]
) -> None:
    usual = _usual_ranks(system)
    low = np.flatnonzero(ranks < max(rank, usual.get(node.loops, 0)))
    if rank and not low.size:
        low = np.flatnonzero(s[:, rank - 1] < NEARLY * s[:, 0])
    if not low.size and usual.get(node.loops, -1) < rank:
        if rank < min(s.shape[1], len(node.own)) and grows():
            low = np.zeros(1, dtype=np.int64)
        else:
            usual[node.loops] = rank
    if low.size:
        expect_closed(system, q[low[0]])  # rows of a loop that is open say nothing of dead centres
        which = ", ".join(system.loops[i].name for i in node.loops)
        at = f" (state {low[0]} of the batch)" if len(s) > 1 else ""
        raise SingularError(
            f"loop {which}{at}: a singular configuration, where it can move in more ways than elsewhere (a dead "
            f"centre): its {s.shape[1]} rows have less rank here than nearby, so the coordinates of "
            f"{described(system, node)} cannot be reduced; forward_dynamics with method='cut' or 'proximal' passes "
            "through"
        )


def _grows(system: System, node: Node, q: Array, basis: Array, column: Array, rank: int) -> bool:
    """Whether the rank of a node's loops is higher a small step along its free rates.

    At a singular configuration the next singular value grows with the step ε, where rows are merely redundant with
    ε², the step having left the loop by that: between the two, ε^1.5 decides.
    """
    step = np.zeros(system.nv)
    step[node.own] = NEARBY * (np.random.default_rng(0).normal(size=len(basis)) @ basis) / column
    s = _decomposed(Rows(system, integrate(system.without_loops, q, step)[None]).of(node))[3][0]
    return bool(rank < len(s) and s[rank] > NEARBY**1.5 * s[0])


def _refuse_contradiction(system: System, node: Node, wanted: Array, rank: int) -> None:
    off, size = np.abs(wanted[:, rank:]).max(initial=0.0), np.abs(wanted).max(initial=0.0)
    if off > CONSISTENT * max(size, 1.0):
        which = ", ".join(system.loops[i].name for i in node.loops)
        raise ModelError(
            f"loop {which}: its rows contradict each other by {off:.3g} (m/s² or rad/s²); bring q and v onto the loop "
            "first (kf.assemble), or leave rows out"
        )


def _pivots(N: Array) -> NDArray[np.int64]:
    """Coordinates (f,) that tell all others best: pivoted QR of the basis of free rates, largest first."""
    from scipy.linalg import qr

    if not N.shape[1]:
        return np.zeros(0, dtype=np.int64)
    _, _, order = qr(N.T, pivoting=True, mode="economic")
    return np.sort(order[: N.shape[1]]).astype(np.int64)


def _inverse(system: System, node: Node, N: Array, column: Array) -> Array:
    if N.shape[-1] and np.linalg.cond(N).max() > STEEP:
        raise SingularError(
            f"the coordinates of {described(system, node)} that are independent in the first state are not so in "
            "all of the batch; call it for one state at a time"
        )
    return np.linalg.inv(N) * column[:, None]


@lru_cache(maxsize=32)
def _usual_ranks(system: System) -> dict[tuple[int, ...], int]:
    """Rank of each node's loops where it was found not to grow nearby: filled as configurations are seen."""
    return {}
