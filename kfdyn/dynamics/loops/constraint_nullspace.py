"""Freedom of a node: the rates X that its loops leave to its coordinates, and the acceleration Ẋβ they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.loops.aggregation import Node, described
from kfdyn.errors import SingularError
from kfdyn.multibody import System, integrate
from kfdyn.multibody.loops.closure import Ranked, column_units, expect_closed, loop_slices, row_units
from kfdyn.multibody.loops.loop_tables import LoopReadings, loop_readings

# Radians or so: how far nearby is.
NEARBY = 1e-4
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
    """The rows of all loops at B states: rates of the coordinates, drift, and units of both.

    Parameters
    ----------
    system : System
        With loops.
    q, v : (B, nq), (B, nv) or None
        States; no v is at rest.
    """

    def __init__(self, system: System, q: Array, v: Array | None = None) -> None:
        self.system, self.q, self.v = system, q, v

    @cached_property
    def read(self) -> LoopReadings:
        """All rows, read when a node has some."""
        return loop_readings(self.system, self.q, self.v)

    @cached_property
    def row(self) -> Array:
        """Units of the rows, (r,)."""
        return row_units(self.system)

    @cached_property
    def column(self) -> Array:
        """Units of the coordinates, (B, nv)."""
        return column_units(self.system, self.q, self.read)

    @cached_property
    def speed(self) -> Array:
        """The fastest coordinate of each state, (B,)."""
        moved = 0.0 * self.q[:, :1] if self.v is None else np.abs(self.column * self.v)
        return np.asarray(moved.max(axis=-1, initial=0.0))

    @cached_property
    def of_loops(self) -> list[slice]:
        """The rows of each loop."""
        return list(loop_slices(self.system))

    def of(self, node: Node) -> tuple[Ranked, Array]:
        """The rows of a node's own loops, in its own coordinates (nothing inboard moves them), and drift (B, r)."""
        rows = np.concatenate([np.arange(self.of_loops[i].start, self.of_loops[i].stop) for i in node.closes])
        ranked = Ranked.of(self.read.J[:, rows][..., node.own], self.row[rows], self.column[:, node.own])
        return ranked, self.read.drift[:, rows]


def freedom(system: System, node: Node, size: int, rows: Rows, named: bool = False) -> Freedom:
    """Solve a node's loops for the rates they leave free in ``size`` states; ``rows`` are those of the loops.

    Raises
    ------
    SingularError
        At a configuration where the loop can move in more ways than elsewhere (a dead centre).
    ModelError
        If the loops contradict each other, or are open where their rows are dependent.
    """
    m = len(node.own)
    if not node.closes:
        return Freedom(np.eye(m)[None], np.zeros((size, m)), np.arange(m))
    found, asked = rows.of(node)
    _refuse_singular(system, node, rows.q, found)
    found.expect_consistent(_names(system, node), asked, rows.speed)
    drift, X, independent = -found.solve(asked), found.free(), None
    if named:
        column = found.column
        N = X * column[..., None]
        independent = _pivots(N[0]) if size else np.arange(N.shape[2])
        X = X @ _inverse(system, node, N[:, independent], column[:, independent])
        drift = drift - (X @ drift[:, independent, None])[..., 0]
    return Freedom(X, drift, independent)


def _names(system: System, node: Node) -> str:
    return ", ".join(system.loops[i].name for i in node.closes)


def _refuse_singular(system: System, node: Node, q: Array, found: Ranked) -> None:
    usual, ranks, count = _usual_ranks(system), found.rank, found.s.shape[1]
    rank = int(ranks.max(initial=0))
    low = np.flatnonzero(ranks < max(rank, usual.get(node.closes, 0)))
    if ranks.size and not low.size and usual.get(node.closes, -1) < rank:
        if rank < count and _grows(system, node, q[0], found):
            low = np.zeros(1, dtype=np.int64)
        else:
            usual[node.closes] = rank
    if low.size:
        expect_closed(system, q[low[0]])  # rows of a loop that is open say nothing of dead centres
        at = f" (state {low[0]} of the batch)" if len(ranks) > 1 else ""
        raise SingularError(
            f"loop {_names(system, node)}{at}: a singular configuration, where it can move in more ways than elsewhere "
            f"(a dead centre): its {count} rows have less rank here than nearby, so the coordinates of "
            f"{described(system, node)} cannot be reduced; forward_dynamics with method='cut' or 'proximal' passes "
            "through"
        )


def _grows(system: System, node: Node, q: Array, found: Ranked) -> bool:
    """Tell whether the rank of a node's loops is higher a small step along its free rates.

    At a singular configuration the next singular value grows with the step ε, where rows are merely redundant with
    ε², the step having left the loop by that: between the two, ε^1.5 decides.
    """
    step, rank = np.zeros(system.nv), int(found.rank[0])
    basis = found.Vt[0, rank:]
    step[node.own] = NEARBY * (np.random.default_rng(0).normal(size=len(basis)) @ basis) / found.column[0]
    return bool(Rows(system, integrate(system.without_loops, q, step)[None]).of(node)[0].s[0, rank] > NEARBY**1.5)


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
