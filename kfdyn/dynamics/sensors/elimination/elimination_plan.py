"""The program that the compiled sweep runs: a layout and its order of elimination as tables of numbers.

It serves rigid bodies: torques, accelerations, force–torque sensors and exact inertial units as rows; inertial units
and accelerations in information form; external forces; couplings. Loops, and bodies that bend, are left to
:mod:`~kfdyn.dynamics.sensors.elimination.gather`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.body_sensors import AngularAcceleration, ExternalForce, ForceTorque
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.elimination.factor import Factor
from kfdyn.dynamics.sensors.elimination.layout import Layout, Node, Piece, Push
from kfdyn.dynamics.sensors.elimination.message import at_hinge
from kfdyn.dynamics.sensors.elimination.pivoting import Choice
from kfdyn.dynamics.sensors.joint_sensors import JointAcceleration, JointTorque, MotorCurrent
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.spatial import skew

TORQUE, ACCELERATION, FORCE, MOTION = 0, 1, 2, 3
CARRIES, GENERAL, PAIR, QUIET, QUIET_PARENT = -1, 0, 1, 2, 3
# Growth of entries that an order of elimination may have: digits that it costs.
BOUND = 1e2
# Where unknowns are carried the matrix is not quasi-definite, and a pivot that has shrunk costs as many digits: so much
# less than elsewhere it may shrink before the order counts as wrong.
SHARPER = 1e3
# Unknowns of a node that the sweep is laid out for; more are better served by LAPACK.
MOST = 24


class Program(NamedTuple):
    """Parameters of the entries, in their order; whether any body has external forces, whether unknowns are carried."""

    parameters: tuple[Any, ...]
    n_rows: int
    n_unknowns: int
    pushed: bool
    carries: bool


def make_program(layout: Layout, factor: Factor) -> Program | None:
    """The program of a layout, its order of elimination chosen in the first state of ``factor``; None if not served."""
    system, bodies = layout.system, layout.system.n_bodies
    wide = _wide(layout, factor)
    if not _served(layout, factor, wide):
        return None
    from kfdyn.dynamics.recursions.sensing.tables import NODE
    from kfdyn.multibody.calls.prepared import model_of

    model = model_of(system.open_tree)
    start = np.cumsum([0, *(sensor.size(system) for sensor in layout.sensors)])
    made = _Tables(layout, start, model.tables["frames"], model.place)
    columns: dict[str, list[int]] = {name: [0] * (bodies + 1) for name in NODE.fields}
    order: list[int] = []
    pivots: list[float] = []
    most, inverse = 1, 0
    quiet, carried = _quiet(layout, wide), _Carried(layout, factor, made)
    # rows and unknowns in the order of bodies; the tables are looked up by place
    for k, node in enumerate(layout.nodes[:bodies]):
        at, before = int(model.place[k]), made.counts()
        places, pair = made.node(node), False
        for name, first, last in zip(("rows", "own", "seen", "push"), before, made.counts()):
            places |= {name: first, f"{name}_end": last}
        if wide[k]:
            own = carried.node(k)
            if own is None:
                return None
            count, sizes = own[0], [SHARPER * size for size in own[1]]
            sequence = [0] * len(sizes)
            places |= {"way": CARRIES, "wide": len(carried.rows) - 1}
        else:
            sequence, sizes = _order(layout, factor, k, made)
            count = len(sequence)
            pair = node.n_dofs == 1 and sequence == [1, 0]
            calm = QUIET_PARENT if node.parent >= 0 and quiet[node.parent] else QUIET
            places |= {"way": (calm if quiet[k] else PAIR) if pair else GENERAL}
        places |= {"unknowns": len(order), "inverse": inverse}
        for name, value in places.items():
            columns[name][at] = value
        if quiet[k] and not pair:
            return None
        order += sequence
        pivots += sizes
        most, inverse = max(most, count), inverse + len(sequence) ** 2
    tables = [NODE.filled(bodies + 1, np.int64, **columns), made.rows, made.own, made.seen, made.push, order]
    reals = [made.frames, made.numbers, made.scale, pivots]
    parameters = [
        len(made.rows),
        len(order),
        inverse,
        int(start[-1]) + any(wide),  # with couplings there are rows without a reading: theirs is 0, after all others
        most,
        *(np.array(table, np.int64).reshape(-1) for table in tables),
        *(np.array(table, float).reshape(-1) for table in reals),
    ]
    if any(wide):
        parameters += carried.parameters()
    return Program(tuple(parameters), len(made.rows), len(order), bool(made.push), any(wide))


def _wide(layout: Layout, factor: Factor) -> list[bool]:
    """Where unknowns arrive, are joined, or are carried on, and where exact readings of accelerations are rows."""
    out = [False] * len(layout.nodes)
    for k in reversed(layout.order):
        node, own = layout.nodes[k], factor.nodes[k]
        arrives = any(len(factor.nodes[j].keep) > own.head for j in node.children)
        here = node.loose or node.joins or node.geared or own.data.K.any() or len(own.keep) > own.head
        out[k] = bool(arrives or here)
    return out


def _served(layout: Layout, factor: Factor, wide: list[bool]) -> bool:
    if factor.width > 6 or any(wide[layout.system.n_bodies :]):
        return False
    for k, node in enumerate(layout.nodes):
        own = factor.nodes[k]
        wide_push = any(not push.flat for push in node.loose)  # 1e9 beside 1: LAPACK's choice of rows keeps more digits
        if node.ends or wide_push or len(own.keep) + len(own.gone) - own.head > MOST:
            return False
    return True


def _quiet(layout: Layout, wide: list[bool]) -> list[bool]:
    """Whether nothing is known of accelerations at a node and outboard, and all there have one dof with one torque."""
    out = [False] * len(layout.nodes)
    for k in reversed(layout.order):
        node = layout.nodes[k]
        torque = not wide[k] and node.n_rows == 1 and isinstance(layout.sensors[node.rows[0].sensor], JointTorque)
        out[k] = node.n_dofs == 1 and torque and not node.info and all(out[j] for j in node.children)
    return out


class _Tables:
    """Grows the tables, node by node; what is fixed to a body stands in its turned axes."""

    def __init__(self, layout: Layout, start: Index, turned: Array, place: Index) -> None:
        self.layout, self.start, self.turned, self.place = layout, start, turned, place
        self.armature = dofs_of(layout.system).armature
        self.rows: list[tuple[int, ...]] = []
        self.own: list[tuple[int, ...]] = []
        self.seen: list[int] = []
        self.push: list[tuple[int, ...]] = []
        self.frames: list[Array] = [np.zeros(12)]
        self.numbers: list[float] = [0.0]
        self.scale: list[tuple[float, float]] = []

    def counts(self) -> tuple[int, ...]:
        """How many rows, dofs known, readings of accelerations and pushes there are."""
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
            self.scale.append((1.0, float(self.armature[dof])))
        for push in node.spread:
            self.pushes(push)
        return {"R": self.keep(R), "inform": self._inform(node)}

    def pushes(self, push: Push) -> None:
        """Add an external force, a row for each component."""
        sensor = self.layout.sensors[push.sensor]
        assert isinstance(sensor, ExternalForce)
        self.frames.append(np.concatenate([part.ravel() for part in self._placed(sensor.frame)]))
        weight, first = self.keep(push.weight), len(self.push)
        shift = (0 if sensor.axes == "frame" else 6) + (0 if sensor.moment else 3)
        for i in push.seen:
            reading = int(self.start[push.sensor] + i)
            self.push.append((shift + int(i), len(self.frames) - 1, reading, first, len(push.seen), weight))

    def keep(self, matrix: Array) -> int:
        """Where these numbers are now."""
        at = len(self.numbers)
        self.numbers += matrix.ravel().tolist()
        return at

    def _placed(self, name: str) -> tuple[Array, Array]:
        k, R, p = self.layout.system.locate(name)
        S = self.turned[self.place[k]].reshape(3, 3)
        return S.T @ R, S.T @ p

    def _rows(self, node: Node, piece: Piece) -> None:
        system, sensor = self.layout.system, self.layout.sensors[piece.sensor]
        for i, local in zip(piece.seen, piece.local()):
            reading, dof = int(self.start[piece.sensor] + i), node.dofs.start + int(local)
            if isinstance(sensor, JointTorque):
                per = 1.0
                if isinstance(sensor, MotorCurrent):
                    per = 1.0 / float(np.broadcast_to(sensor.per_ampere, (sensor.size(system),))[i])
                self.rows.append((TORQUE, dof, reading, 0))
                self.scale.append((per, per * float(self.armature[dof]) * sensor.rotor))
            elif isinstance(sensor, JointAcceleration):
                self.rows.append((ACCELERATION, dof, reading, 0))
                self.scale.append((0.0, 1.0))
            elif not isinstance(sensor, ForceTorque):
                K, turning = self._motion(sensor, piece)
                at = int(np.flatnonzero(piece.seen == i)[0])
                self.rows.append((MOTION, 0, reading, self.keep(np.concatenate([K[at], turning[at]]))))
                self.scale.append((0.0, 0.0))
            else:
                R, p = self._placed(sensor.frame or system.body_names[node.k])
                S = np.zeros((6, 6))  # R*[1, −p~] and R*[0, 1]
                S[:3, :3] = S[3:, 3:] = R.T
                S[:3, 3:] = -R.T @ skew(p)
                sign = -1.0 if sensor.direction == "child_to_parent" else 1.0
                self.rows.append((FORCE, 0, reading, self.keep(sign * S[local])))
                self.scale.append((0.0, 0.0))

    def _inform(self, node: Node) -> int:
        """Readings in information form: of dofs, one by one; of the body's acceleration, as one constant matrix."""
        J, turning, weights = np.zeros((6, 6)), np.zeros((6, 6)), []
        for piece in node.info:
            sensor = self.layout.sensors[piece.sensor]
            weight = np.asarray(np.linalg.inv(piece.R), np.float64)
            readings = [int(self.start[piece.sensor] + i) for i in piece.seen]
            if isinstance(sensor, JointAcceleration):
                first, at = len(self.own), self.keep(weight)
                for local, reading in zip(piece.local(), readings):
                    self.own.append((node.dofs.start + int(local), reading, first, len(readings), at))
                continue
            K, brought = self._motion(sensor, piece)
            pulled = K.T @ weight
            J += pulled @ K
            turning -= pulled @ brought
            weights.append(pulled.T)
            self.seen += readings
        if not weights:
            return 0
        at = self.keep(J[np.triu_indices(6)])
        self.keep(turning)
        self.keep(np.concatenate(weights))
        return at

    def _motion(self, sensor: Sensor, piece: Piece) -> tuple[Array, Array]:
        """Rows K (r, 6) of a reading of motion, and what ω brings, by the products xx, xy, xz, yy, yz, zz."""
        R, p = self._placed(sensor.frame)  # type: ignore[attr-defined]
        K = np.zeros((6, 6))  # R*[1, 0] and R*[−p~, 1]
        K[:3, :3] = K[3:, 3:] = R.T
        K[3:, :3] = -R.T @ skew(p)
        linear = sensor.size(self.layout.system) == 3 and not isinstance(sensor, AngularAcceleration)
        K = K[piece.local() + (3 if linear else 0)]
        # the offset axis·(ω × (ω × p)) = Σ ω_i ω_j (axis_i p_j − δ_ij axis·p), and none of an angular row
        turning = np.zeros((len(K), 6))
        for c, axis in enumerate(K[:, 3:]):
            outer = np.outer(axis, p) - (axis @ p) * np.eye(3)
            both = outer + outer.T - np.diag(outer.diagonal())
            turning[c] = both[np.triu_indices(3)]
        return K, turning


class _Carried:
    """Grows the tables of unknowns that are carried, node by node."""

    def __init__(self, layout: Layout, factor: Factor, made: _Tables) -> None:
        self.layout, self.factor, self.made = layout, factor, made
        self.rows: list[list[int]] = []
        self.of: dict[int, int] = {}  # by node, its row
        self.loads: list[tuple[int, int, int]] = []
        self.loose: list[tuple[int, int]] = []
        self.children: list[list[int]] = []
        self.places: list[int] = []
        self.sizes = [0, 0, 0]

    def node(self, k: int) -> tuple[int, list[float]] | None:
        """Add a node: how many unknowns it has, and the sizes of its pivots; None where no order of them will do."""
        own, made, node = self.factor.nodes[k], self.made, self.layout.nodes[k]
        whole = at_hinge(node, own.data, own.Gamma)[1][0]
        rows, sizes = _row_order(whole[np.ix_(own.gone, own.gone)], self.factor.choices[k])
        if not all(sizes):
            return None
        gone, kept, head = own.gone - own.head, own.keep[own.head :] - own.head, own.head
        left = own.Gamma.shape[-1] - head
        T = np.eye(left) if own.T is None else own.T
        order, load, loose = len(self.places), len(self.loads), len(self.loose)
        self.places += [*gone[rows].tolist(), *gone.tolist(), *kept.tolist()]
        inner, at = np.zeros((left, left)), 0
        for push in node.loose:
            to = [int(T[at + i].argmax()) for i in range(len(push.seen))]
            inner[np.ix_(to, to)] = push.weight
            self.loose += [(i, len(made.push) + j) for j, i in enumerate(to)]
            made.pushes(push)
            self._load(to, push.sensor, push.seen, push.weight)
            at += len(push.seen)
        first = left - sum(len(join.new) for join in node.joins)
        for join in node.joins:
            here = slice(first, first + len(join.new))
            inner[here, here] = join.inner
            for piece, at_new in join.rows:
                self._load(first + at_new, piece.sensor, piece.seen, np.eye(len(at_new)))
            for piece, at_new in join.info:
                self._load(first + at_new, piece.sensor, piece.seen, np.linalg.inv(piece.R))
            first = here.stop
        before = len(self.children)
        for j in node.children:
            count = len(self.factor.nodes[j].keep) - head
            if count:
                self.children.append([j, made.keep(T[at : at + count])])
            at += count
        room = [left + node.n_dofs + node.n_rows, len(kept) * (13 + len(kept)), len(gone) * len(kept)]
        values, store, beside = self.sizes
        self.sizes = [a + b for a, b in zip(self.sizes, room)]
        parts = [left, len(gone), len(kept), order, values, store, beside, made.keep(inner)]
        ends = [load, len(self.loads), loose, len(self.loose), before, len(self.children)]
        self.of[k] = len(self.rows)
        self.rows.append(parts + ends)
        return room[0], sizes

    def _load(self, to: Any, sensor: int, seen: Index, weight: Array) -> None:
        """γ[to] −= weight y."""
        at = self.made.keep(weight)
        for i, a in enumerate(to):
            for j, b in enumerate(seen):
                if weight[i, j]:
                    self.loads.append((int(a), int(self.made.start[sensor] + b), at + i * len(seen) + j))

    def parameters(self) -> list[Any]:
        """Sizes and tables, in the order of the entry."""
        children = [[self.of[j], T] for j, T in self.children]
        tables = self.rows, self.loads, self.loose, children, self.places
        return [*self.sizes, *(np.array(table, np.int64).reshape(-1) for table in tables)]


def _row_order(block: Array, choice: Choice, bound: float = BOUND) -> tuple[list[int], list[float]]:
    """Rows of the eliminated unknowns by Gauss's rule in the first state, and the sizes of pivots; zeros if none do."""
    if not len(block):
        return [], []
    from scipy.linalg import lu_factor

    scale = choice.scale[choice.eliminate]
    scaled, rows = block * np.outer(scale, scale), list(range(len(block)))
    for i, j in enumerate(lu_factor(scaled)[1]):
        rows[i], rows[j] = rows[j], rows[i]
    pivots, growth = _pivots(scaled[rows])
    if not growth <= bound:
        return rows, [0.0] * len(rows)
    return rows, (np.abs(pivots) / (scale[rows] * scale)).tolist()


def _order(layout: Layout, factor: Factor, k: int, made: _Tables) -> tuple[list[int], list[float]]:
    """Rows of 𝒦 in the order in which they are eliminated, and the size of each pivot as it will come out.

    The row of a torque or an acceleration stands where its dof's equation would, and the equation where the row would:
    then the pivots are inertias, and what the signs of a quasi-definite matrix keep from zero in every state. Where
    that would leave entries too large, rows are taken by Gauss's rule in the first state.
    """
    own, choice, node = factor.nodes[k], factor.choices[k], layout.nodes[k]
    block = at_hinge(node, own.data, own.Gamma)[1][0, 12:, 12:]
    if not len(block):
        return [], []
    scaled = block * np.outer(choice.scale, choice.scale)
    rows = list(range(len(block)))
    for i, (kind, dof, *_) in enumerate(made.rows[len(made.rows) - node.n_rows :], node.n_dofs):
        at = dof - node.dofs.start
        if kind != FORCE and rows[at] == at:
            rows[at], rows[i] = i, at
    pivots, growth = _pivots(scaled[rows])
    if not growth <= BOUND:
        return _row_order(block, choice, np.inf)
    return rows, (np.abs(pivots) / (choice.scale[rows] * choice.scale)).tolist()


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
