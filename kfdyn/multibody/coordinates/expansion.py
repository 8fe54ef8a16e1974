"""The way from the coordinates that couplings leave to those of all hinges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.parts.coupling import Coupling, Curve, told
from kfdyn.multibody.parts.hinge import RANK_TOLERANCE, Coordinates, Hinge

if TYPE_CHECKING:
    from kfdyn.multibody.flexible.system import FlexibleSystem
    from kfdyn.multibody.system import System

Index = NDArray[np.int64]


class Places(NamedTuple):
    """Places of the hinges of a system in its vectors, for :class:`Expansion`: body k begins at ``q_start[k]``.

    The columns of its hinge come first, then its modes if it bends.
    """

    q_start: Index
    v_start: Index
    hinges: tuple[Hinge, ...]


class Rows(NamedTuple):
    """X row by row, as ``recursions/variants/geared.py`` reads it: sizes of q and v, starts of rows, columns, ratios.

    Rows of positions, which have offsets, come before those of rates.
    """

    own_nq: int
    own_nv: int
    starts: Index
    columns: Index
    ratios: Array
    offsets: Array


class Polynomials(NamedTuple):
    """Beside :class:`Rows`: how many terms there are, where the coefficients of each begin, and of which q it is."""

    terms: int
    powers: Index
    leads: Index
    coefficients: Array


class Expansion:
    """The way from the coordinates of a coupled system to those of its open tree.

    Coordinates of the system follow the order of hinges; hinges that are coupled and give no name to a coordinate
    have none. ``plain`` columns carry over, ``coupled`` ones are X times the coordinates at ``own``. The open tree may
    have bodies that bend: their modes are plain. Where hinges follow ``curves``, X depends on q: :meth:`at` has it
    then, and what would need a constant X is refused.
    """

    #: Whether X is the identity.
    is_identity = False
    #: Row of the coupled hinges, column of the coordinates, and function; no rows where X is constant.
    curves: tuple[tuple[int, int, Curve], ...]

    def __init__(self, tree: System | FlexibleSystem, couplings: Sequence[Coupling]) -> None:
        self.tree, self.couplings, places = tree, tuple(couplings), tree.places
        self.places = places
        owner: dict[int, Coupling] = {}
        for coupling in self.couplings:
            for name in coupling.hinges:
                k = tree.hinge_index(name)
                hinge = places.hinges[k]
                if hinge.nv != 1 or hinge.coordinates is not Coordinates.SCREWS:
                    raise ModelError(
                        f"hinge {name!r}: a {hinge.kind} hinge has {hinge.nv} dofs, and only hinges of one dof can be "
                        "coupled; split it, or close a loop"
                    )
                if k in owner:
                    raise ModelError(f"hinge {name!r} is in two couplings; join them to one")
                owner[k] = coupling
        hinges = np.array([tree.hinge_index(name) for c in self.couplings for name in c.hinges], dtype=np.int64)
        own = np.array([tree.hinge_index(name) for c in self.couplings for name in c.named], dtype=np.int64)
        self.has_own = np.array([k not in owner or k in own for k in range(tree.n_bodies)])
        follow = np.setdiff1d(hinges, own)
        q, v = (_Kept(start, hinges, follow) for start in (places.q_start, places.v_start))
        self.q_start, self.v_start = q.start, v.start
        self.nq, self.nv = int(q.start[-1]), int(v.start[-1])
        self.plain_q, self.plain_v, self.here_q, self.here_v = q.plain, v.plain, q.place[q.plain], v.place[v.plain]
        self.coupled_q, self.coupled_v = places.q_start[hinges], places.v_start[hinges]
        self.own_q, self.own_v = q.place[places.q_start[own]], v.place[places.v_start[own]]
        self.constant = np.zeros((len(hinges), len(own)))
        self.offset, curves = np.zeros(len(hinges)), []
        row = column = 0
        for c in self.couplings:
            g, r = len(c.hinges), c.size
            if c.curves:
                self.constant[row, column] = 1.0
                curves += [(row + i, column, curve) for i, curve in enumerate(c.curves) if curve is not None]
            else:
                self.constant[row : row + g, column : column + r], self.offset[row : row + g] = c.X, c.offset
            row, column = row + g, column + r
        self.curves = tuple(curves)

    def positions(self, q: Array) -> Array:
        """Positions of all hinges (..., nq_tree) of q (..., nq)."""
        out = np.empty((*q.shape[:-1], self.tree.nq))
        out[..., self.plain_q] = q[..., self.here_q]
        out[..., self.coupled_q] = self.of_coordinates(q[..., self.own_q])
        return out

    @property
    def block(self) -> Array:
        """X of the coupled hinges (g, r), constant."""
        if self.curves:
            names = ", ".join(repr(c.hinges[0]) for c in self.couplings if c.curves)
            raise ModelError(
                f"this function is for couplings with a constant X, and hinges follow {names} by functions; "
                "system.expand(q) and system.expansion(q) lead to the coordinates of system.open_tree"
            )
        return self.constant

    def of_coordinates(self, s: Array) -> Array:
        """Positions of the coupled hinges (..., g) of their coordinates (..., r)."""
        out: Array = s @ self.constant.T + self.offset
        for row, column, curve in self.curves:
            out[..., row] = curve(s[..., column])
        return out

    def at(self, q: Array) -> Expansion:
        """Return the map from rates here to those of all hinges: itself where X is constant, else :class:`Bent`."""
        return Bent(self, q) if self.curves else self

    def accelerations(self, v: Array | None, a: Array | None) -> Array | None:
        """X a + Ẋv (..., nv_tree); None where nothing is known to accelerate. X is constant here."""
        return None if a is None else self.rates(a)

    def rates(self, v: Array) -> Array:
        """X v (..., nv_tree) of v (..., nv)."""
        out = np.empty((*v.shape[:-1], self.tree.nv))
        out[..., self.plain_v] = v[..., self.here_v]
        out[..., self.coupled_v] = v[..., self.own_v] @ self.block.T
        return out

    def forces(self, tau: Array) -> Array:
        """X*tau (..., nv) of generalised forces of the open tree (..., nv_tree)."""
        out = np.empty((*tau.shape[:-1], self.nv))
        out[..., self.here_v] = tau[..., self.plain_v]
        out[..., self.own_v] = tau[..., self.coupled_v] @ self.block
        return out

    def narrowed(self, J: Array) -> Array:
        """J X (..., r, nv) of rows (..., r, nv_tree)."""
        return self.forces(J)

    def squares(self, x: Array) -> Array:
        """Rows x (..., nv_tree) times the squares of the entries of X (..., nv)."""
        return np.asarray(x @ self.X**2)

    def part(self, dofs: Index, own: Index) -> Array:
        """X of some dofs of the open tree and some coordinates; 0 where it depends on q, of which :meth:`at` knows."""
        return self.X[np.ix_(dofs, own)] if not self.curves else np.zeros((len(dofs), len(own)))

    def turning(self, momentum: Array, v: Array) -> Array | float:
        """(∂(Xv)/∂q)*p (..., nv) of a momentum p of the open tree (..., nv_tree): 0 where X is constant."""
        return 0.0

    def matrix(self, M: Array) -> Array:
        """X*MX (..., nv, nv) of a symmetric matrix of the open tree (..., nv_tree, nv_tree), symmetric to the bit."""
        whole = np.swapaxes(self.forces(np.swapaxes(self.forces(M), -1, -2)), -1, -2)
        return 0.5 * (whole + np.swapaxes(whole, -1, -2))

    def contracted(self, q_tree: Array, coordinates: Array) -> Array:
        """The system's q (..., nq): plain hinges from the tree's, coupled coordinates from ``coordinates``."""
        out = np.empty((*q_tree.shape[:-1], self.nq))
        out[..., self.here_q] = q_tree[..., self.plain_q]
        out[..., self.own_q] = coordinates
        return out

    def kept(self, v_tree: Array, coordinates: Array) -> Array:
        """The system's v (..., nv): plain hinges from the tree's, coupled ones from ``coordinates``."""
        out = np.empty((*v_tree.shape[:-1], self.nv))
        out[..., self.here_v] = v_tree[..., self.plain_v]
        out[..., self.own_v] = coordinates
        return out

    def nearest(self, q_tree: Array) -> Array:
        """The coupled coordinates (..., n) whose hinges are nearest to those of q_tree."""
        return (q_tree[..., self.coupled_q] - self.offset) @ np.linalg.pinv(self.constant).T

    def of_named(self, x: Array) -> Array:
        """Numbers of coordinates (nv,) as those of the hinges they are named after (nv_tree,), 0 for all others.

        Coordinates of a coupling that are no hinges' own are left out.
        """
        out, at = np.zeros(self.tree.nv), 0
        out[self.plain_v] = x[self.here_v]
        for coupling in self.couplings:
            own = self.own_v[at : at + coupling.size]
            at += coupling.size
            for i, name in zip(own, coupling.named) if coupling.is_selection else ():
                out[self.tree.v_slice(name).start] = x[i]
        return out

    def named_forces(self, tau: Array) -> Array:
        """Forces of all hinges (..., nv_tree) with X* times them = tau (..., nv): the named hinges have them all.

        Every other choice differs from this one by forces that do no work in motions which obey the couplings.
        """
        named = [name for coupling in self.couplings for name in coupling.named]
        own = np.array([self.tree.v_slice(name).start for name in named], dtype=np.int64)
        X = self.X[..., own[:, None], self.own_v]  # a unit matrix where coordinates are positions of hinges
        if named and not (np.linalg.cond(X) < 1 / RANK_TOLERANCE).all():
            raise ModelError(
                f"system {self.tree.name!r}: the hinges {told(named)} do not move with all coordinates that are named "
                "after them, so that these have no forces of their own; begin the coupling with hinges that do, or "
                "leave tau out"
            )
        forces = np.linalg.solve(np.swapaxes(X, -1, -2), tau[..., self.own_v, None])[..., 0]
        out = np.zeros((*forces.shape[:-1], self.tree.nv))
        out[..., self.plain_v], out[..., own] = tau[..., self.here_v], forces
        return out

    @cached_property
    def reach(self) -> NDArray[np.bool_]:
        """Mark the dofs of the open tree that a coordinate may move, (nv_tree, nv)."""
        may = self.constant != 0
        for row, column, _ in self.curves:
            may[row, column] = True
        out = np.zeros((self.tree.nv, self.nv), dtype=bool)
        out[self.plain_v, self.here_v] = True
        out[np.ix_(self.coupled_v, self.own_v)] = may
        return out

    @cached_property
    def X(self) -> Array:
        """The matrix of :meth:`rates`, (nv_tree, nv), read-only."""
        X: Array = self.rates(np.eye(self.nv)).T.copy()
        X.flags.writeable = False
        return X

    @property
    def kind(self) -> str:
        """The kind that compiled code knows: "geared" where X is constant, "curved" for polynomials, else "opaque"."""
        return "geared" if not self.curves else "curved" if self.is_polynomial else "opaque"

    @property
    def is_polynomial(self) -> bool:
        """True if all curves, if there are any, are polynomials."""
        return all(curve.coefficients is not None for _, _, curve in self.curves)

    def polynomials(self) -> Polynomials:
        """The polynomials of the terms of :meth:`rows`, in ascending powers; plain terms have none."""
        rows = self.rows()
        count, of = len(rows.columns), {}
        for row, column, curve in self.curves:
            assert curve.coefficients is not None
            for place in (self.coupled_q[row], self.tree.nq + self.coupled_v[row]):
                of[int(rows.starts[place])] = (int(self.own_q[column]), curve.coefficients)
        parts = [of.get(s, (0, np.zeros(0))) for s in range(count)]
        powers = np.cumsum([0, *(len(c) for _, c in parts)])
        leads = np.array([lead for lead, _ in parts], dtype=np.int64)
        return Polynomials(count, powers, leads, np.concatenate([np.zeros(0), *(c for _, c in parts)]))

    def rows(self) -> Rows:
        """X of positions and of rates, its terms alone; where a hinge follows a curve, one of ratio 0."""
        starts, columns, ratios, offsets = [0], [], [], np.zeros(self.tree.nq)
        offsets[self.coupled_q] = self.offset
        curved = {row: column for row, column, _ in self.curves}
        for count, plain, here, coupled, own in (
            (self.tree.nq, self.plain_q, self.here_q, self.coupled_q, self.own_q),
            (self.tree.nv, self.plain_v, self.here_v, self.coupled_v, self.own_v),
        ):
            rows: list[list[tuple[int, float]]] = [[] for _ in range(count)]
            for i, j in zip(plain.tolist(), here.tolist()):
                rows[i].append((j, 1.0))
            for row, (i, ratio) in enumerate(zip(coupled.tolist(), self.constant)):
                some = [curved[row]] if row in curved else np.flatnonzero(ratio).tolist()
                rows[i] += [(int(own[k]), float(ratio[k])) for k in some]  # a curve's ratio is 0
            for terms in rows:
                columns += [j for j, _ in terms]
                ratios += [ratio for _, ratio in terms]
                starts.append(len(columns))
        return Rows(self.nq, self.nv, np.array(starts), np.array(columns, dtype=np.int64), np.array(ratios), offsets)

    def expect_own(self, k: int, hinge: str, what: str) -> None:
        """Refuse a hinge that has no coordinate of its own in q or v."""
        if self.has_own[k]:
            return
        coupling = next(c for c in self.couplings if hinge in c.hinges)
        driver = " and ".join(map(repr, coupling.named)) or "nothing"
        state = "system.expand(q)" if what == "q" else "(system.expansion(q) @ v)"
        raise ModelError(
            f"hinge {hinge!r} follows {driver} and has no place of its own in {what}; its own is "
            f"{state}[..., system.open_tree.{what}_slice({hinge!r})]"
        )

    def tightest(self, key: str) -> Array:
        """Limits of the coordinates: ``lower`` and ``upper`` such that every hinge obeys its own, ``speed`` likewise.

        ``effort`` is that of the hinge a coordinate is named after: what drives the others is no motor of theirs.
        Only couplings of one coordinate with a constant X pass limits on; where the hinges' limits leave no room
        (published grippers have such), the limits of the hinge that gives the name stand.
        """
        tree = self.tree
        own: Array = getattr(tree, key)
        at = 0
        out = np.empty(self.nv)
        out[self.here_v] = own[self.plain_v]
        for c in self.couplings:
            r = c.size
            mine = [int(self.places.v_start[tree.hinge_index(name)]) for name in c.hinges]
            columns = self.own_v[at : at + r]
            at += r
            out[columns] = own[mine[:r]] if c.is_selection or key in ("effort", "speed") else _unlimited(key)
            if r == 1 and key != "effort" and not c.curves:
                low, high, fast = _interval(tree, c, mine)
                if low < high:
                    out[columns] = {"lower": low, "upper": high, "speed": fast}[key]
        out.flags.writeable = False
        return out


class Same(Expansion):
    """The way where nothing is coupled: coordinates are those of all hinges."""

    is_identity = True

    def __init__(self, places: Places) -> None:
        self.places, self.couplings, self.curves = places, (), ()
        self.q_start, self.v_start = places.q_start, places.v_start
        self.nq, self.nv = int(places.q_start[-1]), int(places.v_start[-1])
        self.has_own = np.ones(len(places.hinges), dtype=bool)
        self.plain_q = self.here_q = np.arange(self.nq)
        self.plain_v = self.here_v = np.arange(self.nv)
        self.coupled_q = self.coupled_v = self.own_q = self.own_v = np.zeros(0, dtype=np.int64)
        self.constant, self.offset = np.zeros((0, 0)), np.zeros(0)

    def positions(self, q: Array) -> Array:
        """As they are."""
        return q

    def rates(self, v: Array) -> Array:
        """As they are."""
        return v

    def forces(self, tau: Array) -> Array:
        """As they are."""
        return tau

    def squares(self, J: Array) -> Array:
        """As they are."""
        return J

    def matrix(self, M: Array) -> Array:
        """As it is."""
        return M

    def part(self, dofs: Index, own: Index) -> Array:
        """1 where a dof is the coordinate."""
        return (dofs[:, None] == own).astype(float)

    def contracted(self, q_tree: Array, coordinates: Array) -> Array:
        """Those of the tree."""
        return q_tree

    def kept(self, v_tree: Array, coordinates: Array) -> Array:
        """Those of the tree."""
        return v_tree

    def of_named(self, x: Array) -> Array:
        """As they are."""
        return x

    def named_forces(self, tau: Array) -> Array:
        """As they are."""
        return tau

    @property
    def reach(self) -> NDArray[np.bool_]:
        """Each moves its own."""
        return np.eye(self.nv, dtype=bool)

    @property
    def X(self) -> Array:
        """The unit matrix."""
        return np.eye(self.nv)


def expansion_of(tree: System | FlexibleSystem, couplings: Sequence[Coupling]) -> Expansion:
    """The way from the coordinates that couplings leave to those of a tree."""
    return Expansion(tree, couplings) if couplings else Same(tree.places)


class Bent(Expansion):
    """The way at configurations q (..., nq) where hinges follow curves: X = ∂q_tree/∂q (..., nv_tree, nv) is theirs."""

    def __init__(self, of: Expansion, q: Array) -> None:
        self.__dict__.update({key: x for key, x in of.__dict__.items() if key != "X"})
        self.q = q

    def slopes(self, order: int) -> Array:
        """Derivatives ∂^order q_i/∂s^order (..., nv_tree) of hinges that follow curves, others 0."""
        out = np.zeros((*self.q.shape[:-1], self.tree.nv))
        for row, column, curve in self.curves:
            out[..., self.coupled_v[row]] = curve(self.q[..., self.own_q[column]], order)
        return out

    @cached_property
    def leads(self) -> Index:
        """The coordinate that each dof of the open tree follows by a curve, (nv_tree,); any one where there is none."""
        out = np.zeros(self.tree.nv, dtype=np.int64)
        for row, column, _ in self.curves:
            out[self.coupled_v[row]] = self.own_v[column]
        return out

    @cached_property
    def X(self) -> Array:
        """The matrix of :meth:`rates`, (..., nv_tree, nv), read-only."""
        X = np.zeros((*self.q.shape[:-1], self.tree.nv, self.nv))
        X[..., self.plain_v, self.here_v] = 1.0
        X[..., self.coupled_v[:, None], self.own_v] = self.constant
        slope = self.slopes(1)
        for row, column, _ in self.curves:
            i = self.coupled_v[row]
            X[..., i, self.own_v[column]] = slope[..., i]
        X.flags.writeable = False
        return X

    def rates(self, v: Array) -> Array:
        """X v (..., nv_tree) of v (..., nv)."""
        return np.asarray((self.X @ v[..., None])[..., 0])

    def forces(self, tau: Array) -> Array:
        """X*tau (..., nv) of generalised forces of the open tree (..., nv_tree)."""
        return np.asarray((np.swapaxes(self.X, -1, -2) @ tau[..., None])[..., 0])

    def narrowed(self, J: Array) -> Array:
        """J X (..., r, nv) of rows (..., r, nv_tree)."""
        return np.asarray(J @ self.X)

    def matrix(self, M: Array) -> Array:
        """X*MX (..., nv, nv) of a symmetric matrix of the open tree (..., nv_tree, nv_tree), symmetric to the bit."""
        whole = np.swapaxes(self.X, -1, -2) @ M @ self.X
        return np.asarray(0.5 * (whole + np.swapaxes(whole, -1, -2)))

    def drift(self, v: Array) -> Array:
        """Ẋv (..., nv_tree): f''(s) ṡ² of every hinge that follows a curve."""
        return np.asarray(self.slopes(2) * v[..., self.leads] ** 2)

    def accelerations(self, v: Array | None, a: Array | None) -> Array | None:
        """X a + Ẋv (..., nv_tree); None where nothing is known to accelerate."""
        if v is None:
            return None if a is None else self.rates(a)
        return self.drift(v) if a is None else self.rates(a) + self.drift(v)

    def turning(self, momentum: Array, v: Array) -> Array:
        """(∂(Xv)/∂q)*p (..., nv) of a momentum p of the open tree (..., nv_tree)."""
        return self.turned(momentum) * v

    def turned_rates(self, v: Array) -> Array:
        """∂(Xv)/∂q, (..., nv_tree, nv)."""
        return self.spread(self.slopes(2) * v[..., self.leads])

    def turned_accelerations(self, v: Array, a: Array) -> Array:
        """∂(Xa + Ẋv)/∂q, (..., nv_tree, nv); in v it is twice :meth:`turned_rates`."""
        return self.spread(self.slopes(2) * a[..., self.leads] + self.slopes(3) * v[..., self.leads] ** 2)

    def turned(self, tau: Array) -> Array:
        """(∂X/∂q_j)*tau at coordinate j (..., nv): what a force of the open tree gains because X turns.

        ∂(X*tau)/∂q is the diagonal matrix of these: a curve is of one coordinate.
        """
        x = self.slopes(2) * tau
        out = np.zeros((*x.shape[:-1], self.nv))
        for row, column, _ in self.curves:
            out[..., self.own_v[column]] += x[..., self.coupled_v[row]]
        return out

    def spread(self, x: Array) -> Array:
        """(..., nv_tree, nv): numbers (..., nv_tree) of hinges, in the columns of the coordinates that they follow."""
        out = np.zeros((*x.shape, self.nv))
        for row, column, _ in self.curves:
            i = self.coupled_v[row]
            out[..., i, self.own_v[column]] = x[..., i]
        return out


class _Kept:
    """Columns of the open tree that a coupled system keeps: all but those of hinges that follow."""

    def __init__(self, tree_start: Index, coupled: Index, follow: Index) -> None:
        kept, plain = np.ones((2, int(tree_start[-1])), dtype=bool)
        kept[tree_start[follow]] = plain[tree_start[coupled]] = False
        before = np.concatenate([[0], np.cumsum(kept)])
        self.start, self.place, self.plain = before[tree_start], before[:-1], np.flatnonzero(plain)


def _unlimited(key: str) -> float:
    return -np.inf if key == "lower" else np.inf


def _interval(tree: System | FlexibleSystem, coupling: Coupling, dofs: Sequence[int]) -> tuple[float, float, float]:
    """Lowest and highest position and highest speed of the one coordinate that all hinges allow."""
    low, high, fast = -np.inf, np.inf, np.inf
    for i, x, shift in zip(dofs, coupling.X[:, 0], coupling.offset):
        if x:
            ends = sorted([(tree.lower[i] - shift) / x, (tree.upper[i] - shift) / x])
            low, high = max(low, ends[0]), min(high, ends[1])
            fast = min(fast, tree.speed[i] / abs(x))
    return float(low), float(high), float(fast)
