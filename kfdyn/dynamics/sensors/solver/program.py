"""The program that the compiled sweep runs: a layout and its order of elimination as tables of numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.recursions.sensing.tables import (
    ACCELERATION,
    FORCE,
    GENERAL,
    MOTION,
    NODE,
    PAIR,
    QUIET,
    QUIET_PARENT,
    SHRUNK,
    TABLES,
    TORQUE,
)
from kfdyn.dynamics.sensors.sensor import Array, Index, Rows
from kfdyn.dynamics.sensors.solver.layout import Layout, Node, Piece, Push, terms_at_rest
from kfdyn.dynamics.sensors.solver.order import NodeOrder, Order
from kfdyn.dynamics.sensors.solver.pivoting import BOUND_AGAIN, BOUND_ELSEWHERE, CONDITION, ROOT_CONDITION, WATCHED
from kfdyn.multibody import LinkTerms
from kfdyn.multibody.calls.packed_model import model_of

# Growth of entries that the order of a pair may have: digits that it costs.
BOUND = 1e2
# The axes of the products xx, xy, xz, yy, yz, zz, and whether they are two.
AXES = np.triu_indices(3)
UNEQUAL = (AXES[0] != AXES[1])[:, None]


class Program(NamedTuple):
    """Parameters of the entries, in their order, and what else their callers size arrays by.

    ``blank`` is how many readings are 0 beside those of sensors; ``ends`` the loop, the end and the row of each row of
    loops, and whether its drift counts there.
    """

    parameters: tuple[Any, ...]
    n_rows: int
    n_unknowns: int
    n_values: int
    pushed: bool
    blank: int
    ends: tuple[tuple[int, str, int, bool], ...]
    joint: tuple[int, ...]  # where the covariance of each node's unknowns begins, by node; and how many numbers all are
    places: dict[int, int]  # of a node in general, where its unknowns begin among all
    layout: Layout
    first_row: tuple[int, ...]  # of every node
    left: tuple[int, ...]  # how many unknowns every node has before q̈ and m
    joined: dict[int, Array]  # T of nodes where unknowns are joined
    log_scale: float  # what scales bring to the logarithms of pivots


def make_program(layout: Layout, order: Order, general: bool = False, own: bool = False) -> Program:
    """The program of a layout, its order of elimination chosen in one state.

    ``general``: no node goes by a shorter way, as sources need it. ``own``: it is for that very state, and what would
    be too little for others will do.
    """
    system, bodies = layout.system, layout.system.n_bodies
    model = model_of(system.open_tree)
    start = np.cumsum([0, *(sensor.size(system) for sensor in layout.sensors)])
    made = _Tables(layout, start, model.tables["frames"], model.place, BOUND_AGAIN if own else BOUND_ELSEWHERE)
    columns: dict[str, list[int]] = {name: [0] * (bodies + 1) for name in NODE.fields}
    columns["way"] = [PAIR] * (bodies + 1)
    pivots: list[float] = []
    most, inverse, joint = 1, 0, [0]
    wide = [_is_wide(node, order.nodes[k]) for k, node in enumerate(layout.nodes)]
    pairs = [None if general or wide[k] else _pair(layout, order, k) for k in range(len(layout.nodes))]
    quiet, unknowns = _quiet(layout, pairs), _General(layout, order, made, ROOT_CONDITION if own else CONDITION)
    # rows and unknowns in the order of bodies, and then of the world; the tables are looked up by place
    for k, node in enumerate(layout.nodes):
        at, before = int(model.place[k]) if k < bodies else 0, made.counts()
        places = made.node(node)
        for name, first, last in zip(("rows", "own", "seen", "push"), before, made.counts()):
            places |= {name: first, f"{name}_end": last}
        pair = pairs[k]
        if pair is not None:
            calm = QUIET_PARENT if node.parent >= 0 and quiet[node.parent] else QUIET
            places |= {"way": calm if quiet[k] else PAIR}
            size, sizes = 2, pair
        else:
            size, sizes = unknowns.node(k)
            places |= {"way": GENERAL, "wide": len(unknowns.rows) - 1}
        places |= {"unknowns": len(pivots), "inverse": inverse, "joint": joint[-1]}
        for name, value in places.items():
            columns[name][at] = value
        pivots += sizes
        most, inverse = max(most, size), inverse + len(sizes) ** 2
        joint.append(joint[-1] + size**2)
    blank = int(any(wide))  # with couplings there are rows without a reading: theirs is 0, after all others
    given: dict[str, Any] = {"nodes": NODE.filled(bodies + 1, np.int64, **columns), "pivots": pivots}
    given |= {name: getattr(made, name) for name in ("rows", "own", "seen", "push", "frames", "numbers", "scale")}
    given |= unknowns.tables()
    sizes_of = {"n_rows": len(made.rows), "n_unknowns": len(pivots), "n_values": unknowns.sizes[0]}
    address = TABLES.packed(n_inverse=inverse, most=most, **sizes_of, **_as_arrays(given))
    return Program(
        (address, int(start[-1]) + blank, len(unknowns.ends)),
        **sizes_of,
        pushed=bool(made.push),
        blank=blank,
        ends=tuple(unknowns.ends),
        joint=tuple(joint),
        places=unknowns.at,
        layout=layout,
        first_row=tuple(np.cumsum([0, *(node.n_rows for node in layout.nodes[:-1])]).tolist()),
        left=tuple(order.nodes[k].left for k in range(len(layout.nodes))),
        joined={k: order.nodes[k].T for k, node in enumerate(layout.nodes) if node.joins},
        log_scale=unknowns.log_scale,
    )


def _as_arrays(given: dict[str, Any]) -> dict[str, Any]:
    """Tables of integers and of numbers, one row after the other; sizes as they are."""
    real = "frames", "numbers", "scale", "pivots"
    kinds = {name: np.float64 if name in real else np.int64 for name, x in given.items() if not isinstance(x, int)}
    return {**given, **{name: np.array(given[name], kind).reshape(-1) for name, kind in kinds.items()}}


def _is_wide(node: Node, own: NodeOrder) -> bool:
    """Tell whether unknowns arrive, are joined, or are carried on, or exact readings of accelerations are rows."""
    return bool(own.left or len(own.choice.carry) or node.geared or own.exact)


def _quiet(layout: Layout, pairs: list[list[float] | None]) -> list[bool]:
    """Tell whether no acceleration is known at a node and outboard, and all there have one dof with one torque."""
    out = [False] * len(layout.nodes)
    for k in reversed(layout.order):
        node = layout.nodes[k]
        torque = pairs[k] is not None and layout.rows(node.rows[0], layout.at_rest).S is not None
        out[k] = torque and not node.info and all(out[j] for j in node.children)
    return out


class _Tables:
    """Grows the tables, node by node; what is fixed to a body stands in its turned axes."""

    def __init__(self, layout: Layout, start: Index, turned: Array, place: Index, growth: float) -> None:
        self.layout, self.start, self.turned, self.place = layout, start, turned, place
        self.fixed = self._body_axes()
        self.rows: list[tuple[int, ...]] = []
        self.own: list[tuple[int, ...]] = []
        self.seen: list[int] = []
        self.push: list[tuple[int, ...]] = []
        self.frames: list[Array] = [np.zeros(12)]
        self.numbers: list[float] = [growth, *layout.units.tolist()]
        self.scale: list[tuple[float, float]] = []

    def counts(self) -> tuple[int, ...]:
        """The numbers of rows, known dofs, readings of accelerations and pushes."""
        return len(self.rows), len(self.own), len(self.seen), len(self.push)

    def node(self, node: Node) -> dict[str, int]:
        """Add what is read at a node; where the covariance of its rows and the constants of its readings are."""
        for piece in node.rows:
            self._rows(node, piece)
        R = np.zeros((node.n_rows, node.n_rows))
        at = 0
        for piece in node.rows:
            here = slice(at, at + len(piece.seen))
            R[here, here], at = piece.R, here.stop
        if node.geared:  # of what its coupling reads, with its rotor
            dof = node.dofs.start
            self.rows.append((TORQUE, dof, int(self.start[-1]), 0))
            self.scale.append((1.0, float(self.layout.dofs.armature[dof])))
        for push in node.spread:
            self.pushes(push)
        return {"R": self.keep(R), "inform": self._inform(node)}

    def pushes(self, push: Push) -> None:
        """Add an external force, a row for each component."""
        sensor: Any = self.layout.sensors[push.sensor]
        k, R, p = self.layout.system.locate(sensor.frame)
        turn = self.fixed.rotation[0, k]
        self.frames.append(np.concatenate([(turn @ R).ravel(), turn @ p]))
        weight, first = self.keep(push.weight), len(self.push)
        shift = (0 if sensor.axes == "frame" else 6) + (0 if sensor.moment else 3)
        for i in push.seen:
            reading = int(self.start[push.sensor] + i)
            self.push.append((shift + int(i), len(self.frames) - 1, reading, first, len(push.seen), weight))

    def keep(self, matrix: Array) -> int:
        """Keep these numbers, and return their place."""
        at = len(self.numbers)
        self.numbers += matrix.ravel().tolist()
        return at

    def _body_axes(self) -> LinkTerms:
        """Terms of six states in which every body's turned axes are the world's; it turns about x, x + y, ..., z."""
        at_rest = terms_at_rest(self.layout.system)
        fixed = LinkTerms(*(np.repeat(x, 6, axis=0) for x in at_rest))
        turned = self.turned[self.place[: fixed.rotation.shape[1]]].reshape(-1, 3, 3)
        fixed.rotation[:] = turned.swapaxes(-1, -2)
        fixed.velocity[:] = 0.0
        fixed.velocity[..., :3] = (np.eye(3)[AXES[0]] + np.eye(3)[AXES[1]] * UNEQUAL)[:, None]
        return fixed

    def _rows(self, node: Node, piece: Piece) -> None:
        sensor: Any = self.layout.sensors[piece.sensor]
        rows, system = self.layout.rows(piece, self.fixed), self.layout.system
        for i, seen in enumerate(piece.seen):
            reading, scale = int(self.start[piece.sensor] + seen), (0.0, 0.0)
            if sensor.at_hinges:
                dof = node.dofs.start + int(piece.site.first + piece.local[i])
                strain, rotor, moved = (float(part[seen]) for part in sensor.factors(system))
                scale = strain, rotor * float(self.layout.dofs.armature[dof]) + moved
                row = TORQUE if strain else ACCELERATION, dof, reading, 0
            elif rows.S is not None:
                row = FORCE, 0, reading, self.keep(rows.S[0, i])
            else:
                assert rows.K is not None
                row = MOTION, 0, reading, self.keep(np.concatenate([rows.K[0, i], _products(rows)[i]]))
            self.rows.append(row)
            self.scale.append(scale)

    def _inform(self, node: Node) -> int:
        """Readings in information form: of dofs, one by one; of the body's acceleration, as one constant matrix."""
        J, turning, weights = np.zeros((6, 6)), np.zeros((6, 6)), []
        for piece in node.info:
            weight, rows = piece.weight, self.layout.rows(piece, self.fixed)
            readings = [int(self.start[piece.sensor] + i) for i in piece.seen]
            if rows.K is None:
                first, at = len(self.own), self.keep(weight)
                for local, reading in zip(piece.site.first + piece.local, readings):
                    self.own.append((node.dofs.start + int(local), reading, first, len(readings), at))
                continue
            pulled = rows.K[0].T @ weight
            J += pulled @ rows.K[0]
            turning -= pulled @ _products(rows)
            weights.append(pulled.T)
            self.seen += readings
        if not weights:
            return 0
        at = self.keep(J[np.triu_indices(6)])
        self.keep(turning)
        self.keep(np.concatenate(weights))
        return at


def _products(rows: Rows) -> Array:
    """Return the part of ω in readings of motion, (r, 6) by the products xx, xy, xz, yy, yz, zz, from six states."""
    assert rows.offset is not None
    alone = rows.offset[[0, 3, 5]]
    return np.asarray((rows.offset - UNEQUAL * (alone[AXES[0]] + alone[AXES[1]])).T)


class _General:
    """Grows the tables of nodes that are eliminated in general."""

    def __init__(self, layout: Layout, order: Order, made: _Tables, condition: float) -> None:
        self.layout, self.order, self.made, self.condition = layout, order, made, condition
        self.rows: list[list[int]] = []
        self.of: dict[int, int] = {}  # by node, its row
        self.at: dict[int, int] = {}  # by node, where its unknowns begin
        self.loads: list[tuple[int, int, int]] = []
        self.loose: list[tuple[int, int]] = []
        self.children: list[list[int]] = []
        self.places: list[int] = []
        self.loop_ends: list[tuple[int, int, int]] = []
        self.ends: list[tuple[int, str, int, bool]] = []
        self.sizes, self.log_scale = [0, 0, 0], 0.0

    def node(self, k: int) -> tuple[int, list[float]]:
        """Add a node: how many unknowns it has, and for each that it eliminates how small a pivot may not become."""
        own, made, node = self.order.nodes[k], self.made, self.layout.nodes[k]
        scale, left, T = own.choice.scale, own.left, own.T
        gone, kept = own.choice.eliminate, own.choice.carry
        rows, least = _rows(own.inner[np.ix_(gone, gone)], scale[gone])
        before = [len(table) for table in (self.loads, self.loose, self.children, self.loop_ends)]
        first_place = len(self.places)
        self.places += [*gone[rows].tolist(), *gone.tolist(), *kept.tolist()]
        inner, at = np.zeros((left, left)), 0
        for push in node.loose:
            to = [int(T[at + i].argmax()) for i in range(len(push.seen))]
            inner[np.ix_(to, to)] = push.weight
            self.loose += [(i, len(made.push) + j) for j, i in enumerate(to)]
            made.pushes(push)
            self._load(to, push.sensor, push.seen, push.weight)
            at += len(push.seen)
        for end in node.ends:
            first_end = not any(loop == end.loop for loop, *_ in self.ends)
            r = len(end.rows)
            for i in range(r):
                nu, mu = (int(T[at + j].argmax()) for j in (i, r + i))
                self.loop_ends.append((nu, mu, len(self.ends) + i))
            self.ends += [(end.loop, end.side, row, first_end) for row in end.rows]
            at += 2 * r
        for join, here in node.joined_at(left):
            inner[here, here] = join.inner
            for piece, new in join.rows:
                self._load(here.start + new, piece.sensor, piece.seen, np.eye(len(new)))
            for piece, new in join.info:
                self._load(here.start + new, piece.sensor, piece.seen, piece.weight)
        for j in node.children:
            count = len(self.order.nodes[j].choice.carry)
            if count:
                self.children.append([j, made.keep(T[at : at + count])])
            at += count
        size = left + node.n_dofs + node.n_rows
        room = [size, len(kept) * (13 + len(kept)), len(gone) * len(kept)]
        values, store, beside = self.sizes
        self.sizes = [a + b for a, b in zip(self.sizes, room)]
        parts = [left, len(gone), len(kept), first_place, values, store, beside, made.keep(inner), made.keep(scale)]
        parts.append(int(_is_wide(node, own) or own.growth > WATCHED))
        after = [len(table) for table in (self.loads, self.loose, self.children, self.loop_ends)]
        self.log_scale += 2.0 * float(np.log(scale[gone]).sum())
        self.of[k], self.at[k] = len(self.rows), values
        self.rows.append([*parts, *(place for both in zip(before, after) for place in both)])
        return size, [1 / (SHRUNK * self.condition) if node.parent < 0 else least] * len(gone)

    def _load(self, to: Any, sensor: int, seen: Index, weight: Array) -> None:
        """γ[to] −= weight y."""
        at = self.made.keep(weight)
        for i, a in enumerate(to):
            for j, b in enumerate(seen):
                if weight[i, j]:
                    self.loads.append((int(a), int(self.made.start[sensor] + b), at + i * len(seen) + j))

    def tables(self) -> dict[str, Any]:
        """Sizes and tables by name."""
        _, n_store, n_beside = self.sizes
        inner = [[self.of[j], T] for j, T in self.children]
        tables = {"wide": self.rows, "loads": self.loads, "loose": self.loose, "places": self.places}
        return {**tables, "inner_nodes": inner, "loop_ends": self.loop_ends, "n_store": n_store, "n_beside": n_beside}


def _rows(block: Array, scale: Array) -> tuple[list[int], float]:
    """Rows of a matrix by Gauss's rule, in natural scales, and its smallest pivot."""
    rows = list(range(len(block)))
    if not rows:
        return rows, 0.0
    from scipy.linalg import lu_factor

    factors, swaps = lu_factor(block * np.outer(scale, scale))
    for i, j in enumerate(swaps):
        rows[i], rows[j] = rows[j], rows[i]
    return rows, float(np.abs(factors.diagonal()).min())


def _pair(layout: Layout, order: Order, k: int) -> list[float] | None:
    """Sizes of the two pivots of a dof with a row of its own; None if it has none, or if they will not do.

    The row stands where its dof's equation would, and the equation where the row would: then the pivots are inertias,
    and what the signs of a quasi-definite matrix keep from zero in every state.
    """
    own, node = order.nodes[k], layout.nodes[k]
    if node.n_dofs != 1 or node.n_rows != 1 or not layout.sensors[node.rows[0].sensor].at_hinges:
        return None
    scale = own.choice.scale
    pivots, growth = _pivots((own.inner * np.outer(scale, scale))[::-1])
    return (np.abs(pivots) / (scale[::-1] * scale)).tolist() if growth <= BOUND else None


def _pivots(matrix: Array) -> tuple[Array, float]:
    """Pivots of a matrix in the order of its rows, and the largest entry on the way against the largest at first."""
    work, largest = matrix.copy(), np.abs(matrix).max()
    growth = 1.0
    for p in range(len(work)):
        if work[p, p] == 0:
            return work.diagonal(), np.inf
        work[p + 1 :, p:] -= np.outer(work[p + 1 :, p] / work[p, p], work[p, p:])
        growth = max(growth, np.abs(work[p + 1 :, p + 1 :]).max(initial=0.0) / largest)
    return work.diagonal(), growth
