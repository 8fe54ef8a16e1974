"""Layout: which sensor reads at which node, and in which form it enters there; made once for many states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.dofs import Dofs, dofs_of, is_open
from kfdyn.dynamics.sensors.sensor import Array, Index, Rows, Sensor, Site
from kfdyn.dynamics.sensors.solver.joins import (
    End,
    Join,
    Tag,
    coupled_hinges,
    join_coupling,
    join_loop,
    meeting_place,
)
from kfdyn.multibody import LinkTerms, System, link_terms

Pattern = tuple[tuple[bool, ...], ...]

# Variances against the scale of what is read. A smaller one enters as a row, not as its inverse; a force with a larger
# one is an unknown of its own: either way nothing that large is added to numbers of size 1 and taken off again.
SMALL, LARGE = 1e-6, 1e6
# Lengths of a robot for which a metre per second squared is a natural acceleration. A longer or a shorter one, as where
# lengths are in micrometres, is measured by its own length per second squared.
ORDINARY = 0.1, 10.0


class Piece(NamedTuple):
    """Entries ``seen`` of a sensor's reading, those at node ``site.k`` that are not missing, and their covariance."""

    sensor: int
    site: Site
    seen: Index
    R: Array

    @property
    def local(self) -> Index:
        """Return which rows of the site they are."""
        return self.seen - self.site.rows.start

    @property
    def weight(self) -> Array:
        """R⁻¹."""
        return np.asarray(np.linalg.inv(self.R), np.float64)


class Push(NamedTuple):
    """Entries ``seen`` of an external force, with covariance (``spread``) or information (``loose``) ``weight``."""

    sensor: int
    seen: Index
    weight: Array
    flat: bool = False


class Node(NamedTuple):
    """All that enters at node k; ``size`` is what the node itself brings to (u, q̈, m)."""

    k: int
    parent: int
    children: tuple[int, ...]
    dofs: slice
    info: tuple[Piece, ...]
    rows: tuple[Piece, ...]
    spread: tuple[Push, ...]
    loose: tuple[Push, ...]
    ends: tuple[End, ...] = ()  # of loops
    joins: tuple[Join, ...] = ()  # of couplings and loops whose parts have all arrived here
    geared: bool = False  # whether a coupling wants to know its torque: one row more, after all others

    @property
    def n_own(self) -> int:
        """Unknowns that come in at the body: forces, and forces and multipliers of loops."""
        return self.n_loose + sum(2 * len(end.rows) for end in self.ends)

    @property
    def n_loose(self) -> int:
        """Unknown forces of its own."""
        return sum(len(push.seen) for push in self.loose)

    @property
    def n_rows(self) -> int:
        """Rows of its own."""
        return sum(len(piece.seen) for piece in self.rows) + self.geared

    @property
    def n_dofs(self) -> int:
        """Entries of q̈."""
        return self.dofs.stop - self.dofs.start

    def joined_at(self, left: int) -> Iterator[tuple[Join, slice]]:
        """Joins, and where their new unknowns are among those that are ``left``: the last of them."""
        first = left - sum(len(join.new) for join in self.joins)
        for join in self.joins:
            yield join, slice(first, first + len(join.new))
            first += len(join.new)

    def own_tags(self) -> list[Tag]:
        """Names of the unknowns that come in at the body."""
        out: list[Tag] = [("loose", self.k, i) for i in range(self.n_loose)]
        for end in self.ends:
            out += [(kind, end.loop, end.side, i) for kind in ("nu", "mu") for i in range(len(end.rows))]
        return out

    def hinge_tags(self) -> list[Tag]:
        """Names of q̈ and m."""
        own: list[Tag] = [("q", i) for i in range(self.dofs.start, self.dofs.stop)]
        return own + [("read", self.k, i) for i in range(self.n_rows - self.geared)] + [("row", self.k)] * self.geared


@dataclass(frozen=True, eq=False)
class Layout:
    """Nodes by body index, the order parents first, natural scales (12,) of (α, λ), a constant of the likelihood.

    ``log_weights`` is Σ −½ log det R over rows in information form and ½ log det of the information of unknown forces
    in that form. ``of_readings`` are the sizes (size,) of what each sensor reads where α and λ have their natural
    scales. ``waiting`` are unknowns that are carried until they are joined with others; where some are joined at the
    world that is a node, too, the last one.
    """

    system: System
    sensors: tuple[Sensor, ...]
    nodes: tuple[Node, ...]
    order: tuple[int, ...]
    units: Array
    log_weights: float
    of_readings: tuple[Array, ...]
    waiting: frozenset[Tag]

    @property
    def dofs(self) -> Dofs:
        """Those of the open tree."""
        return dofs_of(self.system)

    @property
    def at_rest(self) -> LinkTerms:
        """Terms of one state."""
        return terms_at_rest(self.system)

    def rows(self, piece: Piece, terms: LinkTerms) -> Rows:
        """Return what a piece reads in some states."""
        own, local = self.sensors[piece.sensor].rows(self.system, piece.site, terms), piece.local
        return Rows(*(None if part is None else part[:, local] for part in own))

    def wrench(self, push: Push, terms: LinkTerms) -> Array:
        """P (B, 6, ·) of a push in some states."""
        return self.sensors[push.sensor].wrench(self.system, terms)[:, :, push.seen]  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def make_layout(
    system: System, sensors: tuple[Sensor, ...], pattern: Pattern, loop_rows: tuple[tuple[int, ...], ...] = ()
) -> Layout:
    """Share the sensors out over the nodes; ``pattern`` says which entries of each reading are there.

    Of loops those rows are held that are named, which do not follow from the others.
    """
    dofs, at_rest, unit = dofs_of(system), terms_at_rest(system), natural_units(system)
    n, geared = system.n_bodies, coupled_hinges(system)
    # by node, and then by coupling: pieces in information form, and pieces as rows
    info: list[list[Piece]] = [[] for _ in range(n + len(system.couplings))]
    rows: list[list[Piece]] = [[] for _ in info]
    spread: list[list[Push]] = [[] for _ in range(n)]
    loose: list[list[Push]] = [[] for _ in range(n)]
    log_weights = 0.0
    of_readings = [np.ones(sensor.size(system)) for sensor in sensors]
    for i, sensor in enumerate(sensors):
        present = np.array(pattern[i], bool)
        for site, R in zip(sensor.sites(system), sensor.blocks(system)):
            if sensor.is_force:
                of_readings[i] = 1.0 / unit[-len(R) :]
                for push, is_loose, weight in _pushes(i, R, unit):
                    (loose if is_loose else spread)[site.k].append(push)
                    log_weights += weight
                continue
            seen = np.arange(site.rows.start, site.rows.stop)[present[site.rows]]
            if not seen.size:
                continue
            local = seen - site.rows.start
            piece = Piece(i, site, seen, R[np.ix_(local, local)])
            place = n + geared[site.k] if site.k in geared and sensor.at_hinges else site.k
            own = sensor.rows(system, site, at_rest)
            scale = of_readings[i][seen] = _row_scale(own, at_rest.H[0, dofs.of(site.k)], unit)[local]
            if own.S is None and np.linalg.eigvalsh(piece.R / np.outer(scale, scale))[0] >= SMALL:
                info[place].append(piece)
                log_weights -= 0.5 * float(np.linalg.slogdet(piece.R)[1])
            else:
                rows[place].append(piece)
    children: list[list[int]] = [[] for _ in range(n)]
    for k, p in enumerate(system.parent):
        if p >= 0:
            children[p].append(k)
    nodes = tuple(
        Node(
            k,
            int(system.parent[k]),
            tuple(children[k]),
            dofs.of(k),
            tuple(info[k]),
            tuple(rows[k]),
            tuple(spread[k]),
            tuple(loose[k]),
        )
        for k in range(n)
    )
    order, waiting = dofs.order, frozenset[Tag]()
    if not is_open(system):
        nodes, waiting = _shared(system, sensors, nodes, list(zip(rows[n:], info[n:])), loop_rows)
        order = order if len(nodes) == n else (n, *order)
    return Layout(system, sensors, nodes, order, unit, log_weights, tuple(of_readings), waiting)


def _shared(
    system: System,
    sensors: tuple[Sensor, ...],
    nodes: tuple[Node, ...],
    of_coupling: list[tuple[list[Piece], list[Piece]]],
    loop_rows: tuple[tuple[int, ...], ...],
) -> tuple[tuple[Node, ...], frozenset[Tag]]:
    """Couplings and loops, where they enter and where they are joined; the world comes last if any are joined there."""
    n = system.n_bodies
    out = list(nodes)
    joins: list[tuple[int, Join]] = []
    for c, coupling in enumerate(system.couplings):
        bodies = [system.hinge_index(name) for name in coupling.hinges]
        join = join_coupling(system, sensors, c, *of_coupling[c])
        for k in bodies:
            out[k] = out[k]._replace(geared=("row", k) in join.old)
        joins.append((meeting_place(system, [int(system.parent[k]) for k in bodies]), join))
    for i, (loop, rows) in enumerate(zip(system.loops, loop_rows)):
        sides = [(side, name) for side, name in (("a", loop.frame_a), ("b", loop.frame_b)) if name is not None]
        at = [system.locate(loop.moves_with(name))[0] for _, name in sides]
        for k, (side, _) in zip(at, sides):
            out[k] = out[k]._replace(ends=(*out[k].ends, End(i, side, rows)))
        joins.append((meeting_place(system, at), join_loop(i, len(rows), [side for side, _ in sides])))
    if any(place == n for place, _ in joins):
        roots, nv = tuple(k for k in range(n) if system.parent[k] < 0), dofs_of(system).nv
        out = [node._replace(parent=n) if node.parent < 0 else node for node in out]
        out.append(Node(n, -1, roots, slice(nv, nv), (), (), (), ()))
    for place, join in joins:
        out[place] = out[place]._replace(joins=(*out[place].joins, join))
    return tuple(out), frozenset(tag for _, join in joins for tag in join.old)


def natural_units(system: System) -> Array:
    """Scales (12,) of α and λ: an acceleration, linear and at the robot's length, and what moves its mass so."""
    layout = system.open_tree.layout
    mass = float(layout.mass.max(initial=0.0)) or 1.0
    reach = [np.abs(layout.position).max(initial=0.0), np.abs(layout.com).max(initial=0.0)]
    length = float(max(reach)) or float(np.sqrt(np.abs(layout.J).max(initial=0.0) / mass)) or 1.0
    acceleration = 1.0 if ORDINARY[0] <= length <= ORDINARY[1] else length
    move = acceleration * np.repeat([1.0 / length, 1.0], 3)
    return np.concatenate([move, 1.0 / (mass * acceleration * np.repeat([length, 1.0], 3))])


@lru_cache(maxsize=64)
def terms_at_rest(system: System) -> LinkTerms:
    """Terms of one state: neutral, at rest."""
    tree = system.open_tree
    return LinkTerms(*(a[None] for a in link_terms(tree, tree.neutral())))


def _pushes(i: int, cov: Array, unit: Array) -> list[tuple[Push, bool, float]]:
    """Split an external force into its flat entries, and the rest, which is spread unless it is very wide."""
    flat = ~np.isfinite(cov.diagonal())
    out: list[tuple[Push, bool, float]] = []
    if flat.any():
        out.append((Push(i, np.flatnonzero(flat), np.zeros((int(flat.sum()),) * 2), flat=True), True, 0.0))
    rest = np.flatnonzero(~flat)
    if rest.size:
        inner = cov[np.ix_(rest, rest)]
        scale = unit[-len(cov) :]
        scaled = inner * np.outer(scale[rest], scale[rest])
        if np.linalg.eigvalsh(scaled)[0] > LARGE:  # all of it; a force wide in some directions only stays as it is
            weight = np.asarray(np.linalg.inv(inner), dtype=np.float64)
            out.append((Push(i, rest, weight), True, 0.5 * float(np.linalg.slogdet(weight)[1])))
        else:
            out.append((Push(i, rest, inner), False, 0.0))
    return out


def _row_scale(own: Rows, H: Array, unit: Array) -> Array:
    """Size of what each row reads when α, or the force that it reads, has the natural scale."""
    if own.S is not None:
        return np.asarray(np.sqrt(((own.S[0] / unit[6:]) ** 2).sum(-1)))
    if own.K is not None:
        return np.asarray(np.sqrt(((own.K[0] * unit[:6]) ** 2).sum(-1)))
    assert own.e is not None
    return np.asarray(np.abs(own.e[0]) @ dof_units(H, unit))


def dof_units(H: Array, unit: Array) -> Array:
    """Scale (..., m) of q̈ that moves a body by the natural scale of α."""
    size = np.sqrt(((H / unit[: H.shape[-1]]) ** 2).sum(-1))
    return 1.0 / np.where(size > 0, size, 1.0)
