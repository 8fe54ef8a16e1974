"""Couplings: gears, belts, mimic joints and differentials, where several hinges share fewer coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody.body import as_floats
from kfdyn.multibody.hinge import RANK_TOLERANCE, Coordinates

if TYPE_CHECKING:
    from kfdyn.multibody.system import System

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False, init=False)
class Coupling:
    """The positions of some hinges are X times fewer independent coordinates, plus offsets.

    ::

        q_i = Σ_j X_ij s_j + offset_i,     β_i = Σ_j X_ij ṡ_j        for the hinges i, X constant

    A gear or a mimic joint has one coordinate, a differential two. The coordinates s_j are named after the first
    hinges; where the first rows of X are a unit matrix they *are* the positions of those hinges.

    Parameters
    ----------
    hinges : sequence of str
        Names of g hinges of one dof each.
    X : (g, r) or (g,)
        Rates of the hinges for unit rates of the r ≤ g coordinates; of full column rank.
    offset : scalar or (g,)
        Positions of the hinges when all coordinates are 0.

    Notes
    -----
    To the filter a gear is two sensors that report only their sum: T = X*T_hinges (THEORY section 12). An armature of
    hinge i enters as X_ij² R_i: the rotor behind a gear counts with the square of the ratio.

    Examples
    --------
    A motor that turns three times as fast as the arm it drives:

    >>> import kfdyn as kf
    >>> (rod,) = kf.models.uniform_chain(1).bodies
    >>> rotor = kf.Body("rotor", np.diag([0.01, 0.01, 0.01, 0, 0, 0]), kf.Hinge.revolute())
    >>> geared = kf.System([rod, rotor], couplings=[kf.Coupling([rod.hinge_name, "rotor"], [1.0, 3.0])])
    >>> geared.nv, kf.mass_matrix(geared, [0.0]).round(6)  # 1/3 + 9 · 0.01
    (1, array([[0.423333]]))
    """

    hinges: tuple[str, ...]
    X: Array = field(repr=False)
    offset: Array = field(repr=False)

    def __init__(self, hinges: Sequence[str], X: ArrayLike, offset: ArrayLike = 0.0) -> None:
        names = (hinges,) if isinstance(hinges, str) else tuple(hinges)
        if not names or not all(isinstance(name, str) for name in names):
            raise ModelError(f"a coupling needs the names of its hinges, got {hinges!r:.80}")
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ModelError(f"coupling of {told(names)}: hinge {twice!r} is named twice; name each once")
        where = f"coupling of {told(names)}"
        matrix = np.array(as_floats(X, f"{where}: X"))
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or matrix.shape[0] != len(names) or matrix.shape[1] > len(names):
            raise ShapeError(
                f"{where}: X must have one row for each of the {len(names)} hinges and at most as many columns, got "
                f"{matrix.shape}"
            )
        shift = np.array(as_floats(offset, f"{where}: offset"))
        if shift.shape not in ((), (len(names),)):
            raise ShapeError(f"{where}: offset must be a number or have shape ({len(names)},), got {shift.shape}")
        if not (np.isfinite(matrix).all() and np.isfinite(shift).all()):
            raise ModelError(f"{where}: X and offset must be finite")
        size = np.linalg.norm(matrix, axis=0)
        if (size == 0).any() or (
            matrix.shape[1] and np.linalg.svd(matrix / size, compute_uv=False)[-1] < RANK_TOLERANCE
        ):
            raise ModelError(
                f"{where}: the columns of X are linearly dependent (or zero), so that some coordinate moves nothing "
                "of its own; leave it out"
            )
        shift = np.broadcast_to(shift, (len(names),)).copy()
        matrix.flags.writeable = shift.flags.writeable = False
        for key, value in (("hinges", names), ("X", matrix), ("offset", shift)):
            object.__setattr__(self, key, value)

    @property
    def named(self) -> tuple[str, ...]:
        """The hinges that its coordinates are named after."""
        return self.hinges[: self.X.shape[1]]

    @property
    def is_selection(self) -> bool:
        """Whether its coordinates are the positions of the hinges they are named after."""
        r = self.X.shape[1]
        return bool(np.array_equal(self.X[:r], np.eye(r)) and not self.offset[:r].any())


def told(names: Sequence[str], most: int = 4) -> str:
    """Hinges in a sentence."""
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")


class Expansion:
    """The way from the coordinates of a coupled system to those of its open tree.

    Coordinates of the system follow the order of hinges; hinges that are coupled and give no name to a coordinate
    have none. ``plain`` columns carry over, ``coupled`` ones are X times the coordinates at ``own``.
    """

    def __init__(self, tree: System, couplings: Sequence[Coupling]) -> None:
        layout = tree.layout
        self.tree, self.couplings = tree, tuple(couplings)
        owner: dict[int, Coupling] = {}
        for coupling in self.couplings:
            for name in coupling.hinges:
                k = tree.hinge_index(name)
                hinge = tree.bodies[k].hinge
                if hinge.nv != 1 or hinge.coordinates is not Coordinates.SCREWS:
                    raise ModelError(
                        f"hinge {name!r}: a {hinge.kind} hinge has {hinge.nv} dofs, and only hinges of one dof can be "
                        "coupled; split it, or close a loop"
                    )
                if k in owner:
                    raise ModelError(f"hinge {name!r} is in two couplings; join them to one")
                owner[k] = coupling
        named = {tree.hinge_index(name) for coupling in self.couplings for name in coupling.named}
        has_own = np.array([k not in owner or k in named for k in range(tree.n_bodies)])
        self.has_own = has_own
        sizes_q = np.where(has_own, np.diff(layout.q_start), 0)
        sizes_v = np.where(has_own, np.diff(layout.v_start), 0)
        self.q_start, self.v_start = (np.concatenate([[0], np.cumsum(s)]) for s in (sizes_q, sizes_v))
        self.nq, self.nv = int(self.q_start[-1]), int(self.v_start[-1])
        free = np.array([k not in owner for k in range(tree.n_bodies)])
        self.plain_q = np.flatnonzero(np.repeat(free, np.diff(layout.q_start)))
        self.plain_v = np.flatnonzero(np.repeat(free, np.diff(layout.v_start)))
        self.here_q = _columns(self.q_start, free, layout.q_start)
        self.here_v = _columns(self.v_start, free, layout.v_start)
        hinges = [tree.hinge_index(name) for c in self.couplings for name in c.hinges]
        own = [tree.hinge_index(name) for c in self.couplings for name in c.named]
        self.coupled_q, self.coupled_v = layout.q_start[hinges], layout.v_start[hinges]
        self.own_q, self.own_v = self.q_start[own], self.v_start[own]
        self.block = np.zeros((len(hinges), len(own)))
        self.offset = np.concatenate([np.zeros(0), *(c.offset for c in self.couplings)])
        row = column = 0
        for c in self.couplings:
            g, r = c.X.shape
            self.block[row : row + g, column : column + r] = c.X
            row, column = row + g, column + r

    def positions(self, q: Array) -> Array:
        """Positions of all hinges (..., nq_tree) of q (..., nq)."""
        if not self.couplings:
            return q
        out = np.empty((*q.shape[:-1], self.tree.nq))
        out[..., self.plain_q] = q[..., self.here_q]
        out[..., self.coupled_q] = q[..., self.own_q] @ self.block.T + self.offset
        return out

    def rates(self, v: Array) -> Array:
        """X v (..., nv_tree) of v (..., nv)."""
        if not self.couplings:
            return v
        out = np.empty((*v.shape[:-1], self.tree.nv))
        out[..., self.plain_v] = v[..., self.here_v]
        out[..., self.coupled_v] = v[..., self.own_v] @ self.block.T
        return out

    def forces(self, tau: Array) -> Array:
        """X*tau (..., nv) of generalised forces of the open tree (..., nv_tree)."""
        if not self.couplings:
            return tau
        out = np.empty((*tau.shape[:-1], self.nv))
        out[..., self.here_v] = tau[..., self.plain_v]
        out[..., self.own_v] = tau[..., self.coupled_v] @ self.block
        return out

    def matrix(self, M: Array) -> Array:
        """X*MX (..., nv, nv) of a symmetric matrix of the open tree (..., nv_tree, nv_tree)."""
        half = self.forces(M)
        whole = self.forces(np.swapaxes(half, -1, -2))
        return 0.5 * (whole + np.swapaxes(whole, -1, -2)) if self.couplings else M

    def contracted(self, q_tree: Array, coordinates: Array) -> Array:
        """The system's q (..., nq): plain hinges from the tree's, coupled coordinates from ``coordinates``."""
        if not self.couplings:
            return q_tree
        out = np.empty((*q_tree.shape[:-1], self.nq))
        out[..., self.here_q] = q_tree[..., self.plain_q]
        out[..., self.own_q] = coordinates
        return out

    def nearest(self, q_tree: Array) -> Array:
        """The coupled coordinates (..., n) whose hinges are nearest to those of q_tree."""
        return (q_tree[..., self.coupled_q] - self.offset) @ np.linalg.pinv(self.block).T

    @cached_property
    def X(self) -> Array:
        """The matrix of :meth:`rates`, (nv_tree, nv), read-only."""
        X: Array = self.rates(np.eye(self.nv)).T.copy()
        X.flags.writeable = False
        return X

    def tightest(self, key: str) -> Array:
        """Limits of the coordinates: ``lower`` and ``upper`` such that every hinge obeys its own, ``speed`` likewise.

        ``effort`` is that of the hinge a coordinate is named after: what drives the others is no motor of theirs.
        Only couplings of one coordinate pass limits on; where the hinges' limits leave no room (published grippers
        have such), the limits of the hinge that gives the name stand.
        """
        tree = self.tree
        own: Array = getattr(tree, key)
        at = 0
        out = np.empty(self.nv)
        out[self.here_v] = own[self.plain_v]
        for c in self.couplings:
            r = c.X.shape[1]
            mine = [int(tree.layout.v_start[tree.hinge_index(name)]) for name in c.hinges]
            columns = self.own_v[at : at + r]
            at += r
            out[columns] = own[mine[:r]] if c.is_selection or key in ("effort", "speed") else _unlimited(key)
            if r == 1 and key != "effort":
                low, high, fast = _interval(tree, c, mine)
                if low < high:
                    out[columns] = {"lower": low, "upper": high, "speed": fast}[key]
        out.flags.writeable = False
        return out


def _columns(start: Index, free: NDArray[np.bool_], tree_start: Index) -> Index:
    """Where the columns of free hinges are in the system's vectors."""
    size = np.diff(tree_start)
    pieces = [np.arange(start[k], start[k] + size[k]) for k in np.flatnonzero(free)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *pieces]).astype(np.int64)


def _unlimited(key: str) -> float:
    return -np.inf if key == "lower" else np.inf


def _interval(tree: System, coupling: Coupling, dofs: Sequence[int]) -> tuple[float, float, float]:
    """Lowest and highest position and highest speed of the one coordinate that all hinges allow."""
    low, high, fast = -np.inf, np.inf, np.inf
    for i, x, shift in zip(dofs, coupling.X[:, 0], coupling.offset):
        if x:
            ends = sorted([(tree.lower[i] - shift) / x, (tree.upper[i] - shift) / x])
            low, high = max(low, ends[0]), min(high, ends[1])
            fast = min(fast, tree.speed[i] / abs(x))
    return float(low), float(high), float(fast)
