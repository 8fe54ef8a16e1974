"""The compiled sweeps: means of B states, and covariances; couplings and loops brought to what the sweeps take."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array, Index, Mask
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES
from kfdyn.dynamics.sensors.solver.joins import coordinate_maps, loop_terms
from kfdyn.dynamics.sensors.solver.program import Program
from kfdyn.multibody import System
from kfdyn.multibody.calls.kernel import FINE, Kernel
from kfdyn.multibody.links import open_terms

SENSE = Kernel("kfdyn.dynamics.recursions.sensing.means", "SENSE")
DEVIATE = Kernel("kfdyn.dynamics.recursions.sensing.covariances", "DEVIATE")

# Rounding of a pseudo-inverse of couplings.
ROUNDING = 1e-14


class Means(NamedTuple):
    """Results of the sweep for B states: the five means; λ, multipliers, pivots, unknowns, empty if not asked for."""

    a: Array
    tau: Array
    alpha: Array
    f: Array
    x: Array
    lam: Array
    m: Array
    pivot: Array
    w: Array

    def only(self, rows: Any) -> Means:
        """Those of some states."""
        return Means(*(x[rows] for x in self))

    @property
    def five(self) -> tuple[Array, Array, Array, Array, Array]:
        """The quantities of an estimate."""
        return self[:5]


@lru_cache(maxsize=64)
def _nothing(size: int) -> tuple[Array, Array]:
    """Rows of no loops, and no drift or source, of so many states."""
    return np.empty((size, 0, 6)), np.empty((size, 0))


def rates_of_tree(system: System, a: Array, back: bool = False) -> Array:
    """Rates of the open tree from those of the coordinates, (B, nv); ``back``: their forces from the tree's."""
    maps = _shares(system)
    return a if maps is None else maps[2 if back else 0].times(a)


class States(NamedTuple):
    """B states as the sweeps take them: q and v of the open tree, gravity, rows of loops and their drift."""

    q: Array
    v: Array
    gravity: Array
    ends: Array
    drift: Array

    def only(self, rows: Any) -> States:
        """Some of them."""
        return States(*(x[rows] for x in self))

    def still(self) -> States:
        """The same configurations, with nothing that moves or pulls: only a source is answered."""
        v, gravity, drift = (np.zeros_like(x) for x in (self.v, self.gravity, self.drift))
        return States(self.q, v, gravity, self.ends, drift)


def make_states(system: System, program: Program, q: Array, v: Array, gravity: Array) -> States:
    """States (B, ·) of a system."""
    maps, n_ends = _shares(system), len(program.ends)
    size = len(q)
    ends, drift = (np.empty((size, n_ends, 6)), np.empty((size, n_ends))) if n_ends else _nothing(size)
    if n_ends:
        terms = open_terms(system, q, v, gravity=gravity)
        of_loops = {loop: loop_terms(system, terms, gravity, loop) for loop in {end[0] for end in program.ends}}
        for i, (loop, side, row, counts) in enumerate(program.ends):
            rows, brought = of_loops[loop]
            ends[:, i] = rows[side][:, row]
            drift[:, i] = brought[:, row] if counts else 0.0
    if maps is not None:
        q, v = system.expand(q), maps[0].times(v)
    return States(q, v, gravity, ends, drift)


def run(
    system: System, program: Program, states: States, y: Array, source: Array | None = None, checks: bool = False
) -> tuple[bool, Means]:
    """Run the sweep over rows (B, ·): whether all have an answer, and what, NaN where there is none.

    With ``checks``, all that these need.
    """
    size, n, tree, maps = len(y), system.n_bodies, system.open_tree, _shares(system)
    counts = (n, program.n_rows, program.n_unknowns, program.n_values) if checks else (0, 0, 0, 0)
    told = (n if program.pushed else 0, *counts)
    dofs, bodies = (size, tree.nv), (size, n, 6)
    shapes = [dofs, dofs, bodies, bodies, (size, told[0], 6), (size, told[1], 6), *((size, x) for x in told[2:])]
    out = Means(*together(shapes))
    if program.blank:
        y = np.concatenate([y, np.zeros((size, 1))], axis=1)
    source = _nothing(size)[1] if source is None else source
    given = states.q, states.v, y, states.gravity, states.ends, states.drift, source
    fine = SENSE(tree, size, *program.parameters, source.shape[1], *told, *given, *out) == FINE
    if maps is not None:
        out = out._replace(a=maps[1].times(out.a), tau=maps[2].times(out.tau))
    return fine, out if program.pushed else out._replace(x=np.zeros(bodies))


class Shares(NamedTuple):
    """A matrix of couplings by its rows: those that copy one coordinate, and the others term by term."""

    plain: Index
    source: Index
    mixed: list[tuple[int, list[tuple[int, float]]]]

    @staticmethod
    def of(A: Array) -> Shares:
        """Return the shares of a matrix; what rounding has left of zeros and ones is taken off."""
        A = np.where(np.abs(A) < ROUNDING, 0.0, np.where(np.abs(A - 1) < ROUNDING, 1.0, A))
        copied = (np.count_nonzero(A, axis=1) == 1) & (A.sum(1) == 1)
        plain = np.flatnonzero(copied)
        mixed = [(int(r), [(int(i), float(A[r, i])) for i in np.flatnonzero(A[r])]) for r in np.flatnonzero(~copied)]
        return Shares(plain, A[plain].argmax(1), mixed)

    def times(self, x: Array) -> Array:
        """xA*, x (B, n): the same bits in any batch, which BLAS does not promise."""
        out = np.zeros((len(x), len(self.plain) + len(self.mixed)))
        out[:, self.plain] = x[:, self.source]
        for r, terms in self.mixed:
            for i, factor in terms:
                out[:, r] += factor * x[:, i]
        return out


@lru_cache(maxsize=64)
def _shares(system: System) -> tuple[Shares, Shares, Shares] | None:
    """Return the tables of X, of the coordinates read off the open tree's rates, and of X*, which gives forces."""
    maps = coordinate_maps(system)
    return None if maps is None else (Shares.of(maps[0]), Shares.of(maps[1]), Shares.of(maps[0].T))


def answered(fine: bool, a: Array) -> Mask:
    """Mask of the rows that have an answer; ``fine``: all do."""
    if fine:
        return np.ones(len(a), bool)
    return np.asarray(np.isfinite(a).all(1))


def source_of(system: System, of: str, columns: Array) -> Array:
    """Sources (c, ·) of combinations (·, c) of the entries of a quantity."""
    maps, n, nv = coordinate_maps(system), system.n_bodies, system.open_tree.nv
    if maps is not None and of in ("a", "tau"):
        columns = (maps[1].T if of == "a" else maps[0]) @ columns
    out = np.zeros((columns.shape[1], 2 * nv + 18 * n))
    first = np.cumsum([0, nv, nv, 6 * n, 6 * n])[QUANTITIES.index(of)]
    out[:, first : first + len(columns)] = columns.T
    return out


class Spread(NamedTuple):
    """Standard deviations (B, ·) of the five quantities, those of the open tree; Z and V, empty if not asked for."""

    a: Array
    tau: Array
    alpha: Array
    f: Array
    x: Array
    Z: Array
    V: Array

    def only(self, rows: Any) -> Spread:
        """Those of some states."""
        return Spread(*(x[rows] for x in self))

    @property
    def five(self) -> tuple[Array, Array, Array, Array, Array]:
        """The quantities of an estimate."""
        return self[:5]


def deviations_in(system: System, program: Program, states: States, blocks: bool = False) -> tuple[bool, Spread]:
    """Marginal standard deviations: whether all states have them, and what; with ``blocks``, Z and V too."""
    size, n, tree = len(states.q), system.n_bodies, system.open_tree
    told = n if program.pushed else 0, n * blocks, program.joint[-1] * blocks
    dofs, bodies = (size, tree.nv), (size, n, 6)
    out = Spread(*together([dofs, dofs, bodies, bodies, (size, told[0], 6), (size, told[1], 78), (size, told[2])]))
    fine = DEVIATE(tree, size, *program.parameters, *told, states.q, states.ends, *out) == FINE
    return fine, out if program.pushed else out._replace(x=np.zeros(bodies))


def together(shapes: list[tuple[int, ...]]) -> list[Array]:
    """Arrays of these shapes in one piece of memory: large ones apart are mapped anew in every call, page by page."""
    if shapes[0][0] < 8:
        return [np.empty(shape) for shape in shapes]
    ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
    block = np.empty(ends[-1])
    return [block[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes)]
