"""The program that the compiled sweep runs: a layout and its order of elimination as tables of numbers.

It serves what most robots have: torques, accelerations, force–torque sensors as rows; inertial units and accelerations
in information form; external forces with covariances. Exact accelerometers, flat forces and whatever is carried inward
are left to :mod:`~kfdyn.dynamics.sensors.elimination.gather`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.body_sensors import AngularAcceleration, ExternalForce, ForceTorque
from kfdyn.dynamics.sensors.elimination.factor import Factor
from kfdyn.dynamics.sensors.elimination.layout import Layout, Node, Piece
from kfdyn.dynamics.sensors.elimination.message import at_hinge
from kfdyn.dynamics.sensors.joint_sensors import JointAcceleration, JointTorque, MotorCurrent
from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.spatial import skew

TORQUE, ACCELERATION, FORCE = 0, 1, 2
GENERAL, PAIR, QUIET, QUIET_PARENT = 0, 1, 2, 3
# Growth of entries that an order of elimination may have: digits that it costs.
BOUND = 1e2
# Unknowns of a node that the sweep is laid out for; more are better served by LAPACK.
MOST = 24


class Program(NamedTuple):
    """Parameters of the entries, in their order; whether any body has external forces."""

    parameters: tuple[Any, ...]
    n_rows: int
    n_unknowns: int
    pushed: bool


def make_program(layout: Layout, factor: Factor) -> Program | None:
    """The program of a layout, its order of elimination chosen in the first state of ``factor``; None if not served."""
    system = layout.system
    if not _served(layout, factor):
        return None
    from kfdyn.dynamics.recursions.sensing.tables import NODE
    from kfdyn.multibody.calls.prepared import model_of

    model = model_of(system)
    start = np.cumsum([0, *(sensor.size(system) for sensor in layout.sensors)])
    made = _Tables(layout, start, model.tables["frames"], model.place)
    columns: dict[str, list[int]] = {name: [0] * (system.n_bodies + 1) for name in NODE.fields}
    order: list[int] = []
    pivots: list[float] = []
    most, inverse = 1, 0
    quiet = _quiet(layout)
    # rows and unknowns in the order of bodies; the tables are looked up by place
    for k, node in enumerate(layout.nodes):
        at, before = int(model.place[k]), made.counts()
        places = made.node(node)
        sequence, sizes = _order(layout, factor, k, made)
        pair = node.n_dofs == 1 and sequence == [1, 0]
        calm = QUIET_PARENT if node.parent >= 0 and quiet[node.parent] else QUIET
        places |= {"way": (calm if quiet[k] else PAIR) if pair else GENERAL, "unknowns": len(order), "inverse": inverse}
        for name, first, last in zip(("rows", "own", "seen", "push"), before, made.counts()):
            places |= {name: first, f"{name}_end": last}
        for name, value in places.items():
            columns[name][at] = value
        if quiet[k] and not pair:
            return None
        order += sequence
        pivots += sizes
        most, inverse = max(most, len(sequence)), inverse + len(sequence) ** 2
    tables = [NODE.filled(system.n_bodies + 1, np.int64, **columns), made.rows, made.own, made.seen, made.push, order]
    reals = [made.frames, made.numbers, made.scale, pivots]
    parameters = (
        len(made.rows),
        len(order),
        inverse,
        int(start[-1]),
        most,
        *(np.array(table, np.int64).reshape(-1) for table in tables),
        *(np.array(table, float).reshape(-1) for table in reals),
    )
    return Program(parameters, len(made.rows), len(order), bool(made.push))


def _served(layout: Layout, factor: Factor) -> bool:
    for k, node in enumerate(layout.nodes):
        own = factor.nodes[k]
        if node.loose or len(own.keep) > 12 or own.data.K.any() or node.n_dofs + node.n_rows > MOST:
            return False
    return True


def _quiet(layout: Layout) -> list[bool]:
    """Whether nothing is known of accelerations at a node and outboard, and all there have one dof with one torque."""
    out = [False] * len(layout.nodes)
    for k in reversed(layout.order):
        node = layout.nodes[k]
        torque = node.n_rows == 1 and isinstance(layout.sensors[node.rows[0].sensor], JointTorque)
        out[k] = node.n_dofs == 1 and torque and not node.info and all(out[j] for j in node.children)
    return out


class _Tables:
    """Grows the tables, node by node; what is fixed to a body stands in its turned axes."""

    def __init__(self, layout: Layout, start: Index, turned: Array, place: Index) -> None:
        self.layout, self.start, self.turned, self.place = layout, start, turned, place
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
        for push in node.spread:
            sensor = self.layout.sensors[push.sensor]
            assert isinstance(sensor, ExternalForce)
            self.frames.append(np.concatenate([part.ravel() for part in self._placed(sensor.frame)]))
            weight, first = self._keep(push.weight), len(self.push)
            shift = (0 if sensor.axes == "frame" else 6) + (0 if sensor.moment else 3)
            for i in push.seen:
                reading = int(self.start[push.sensor] + i)
                self.push.append((shift + int(i), len(self.frames) - 1, reading, first, len(push.seen), weight))
        return {"R": self._keep(R), "inform": self._inform(node)}

    def _keep(self, matrix: Array) -> int:
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
                self.scale.append((per, per * float(system.armature[dof]) * sensor.rotor))
            elif isinstance(sensor, JointAcceleration):
                self.rows.append((ACCELERATION, dof, reading, 0))
                self.scale.append((0.0, 1.0))
            else:
                assert isinstance(sensor, ForceTorque)
                R, p = self._placed(sensor.frame or system.body_names[node.k])
                S = np.zeros((6, 6))  # R*[1, −p~] and R*[0, 1]
                S[:3, :3] = S[3:, 3:] = R.T
                S[:3, 3:] = -R.T @ skew(p)
                sign = -1.0 if sensor.direction == "child_to_parent" else 1.0
                self.rows.append((FORCE, 0, reading, self._keep(sign * S[local])))
                self.scale.append((0.0, 0.0))

    def _inform(self, node: Node) -> int:
        """Readings in information form: of dofs, one by one; of the body's acceleration, as one constant matrix."""
        J, turning, weights = np.zeros((6, 6)), np.zeros((6, 6)), []
        for piece in node.info:
            sensor = self.layout.sensors[piece.sensor]
            weight = np.asarray(np.linalg.inv(piece.R), np.float64)
            readings = [int(self.start[piece.sensor] + i) for i in piece.seen]
            if isinstance(sensor, JointAcceleration):
                first, at = len(self.own), self._keep(weight)
                for local, reading in zip(piece.local(), readings):
                    self.own.append((node.dofs.start + int(local), reading, first, len(readings), at))
                continue
            R, p = self._placed(sensor.frame)  # type: ignore[attr-defined]
            K = np.zeros((6, 6))  # R*[1, 0] and R*[−p~, 1]
            K[:3, :3] = K[3:, 3:] = R.T
            K[3:, :3] = -R.T @ skew(p)
            linear = sensor.size(self.layout.system) == 3 and not isinstance(sensor, AngularAcceleration)
            rows = piece.local() + (3 if linear else 0)
            K, pulled = K[rows], K[rows].T @ weight
            J += pulled @ K
            # the offset axis·(ω × (ω × p)) = Σ ω_i ω_j (axis_i p_j − δ_ij axis·p), and none of an angular row
            for c, axis in enumerate(K[:, 3:]):
                outer = np.outer(axis, p) - (axis @ p) * np.eye(3)
                both = outer + outer.T - np.diag(outer.diagonal())
                turning -= np.outer(pulled[:, c], both[np.triu_indices(3)])
            weights.append(pulled.T)
            self.seen += readings
        if not weights:
            return 0
        at = self._keep(J[np.triu_indices(6)])
        self._keep(turning)
        self._keep(np.concatenate(weights))
        return at


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
        from scipy.linalg import lu_factor

        for i, j in enumerate(lu_factor(scaled)[1]):
            rows = list(range(len(block))) if i == 0 else rows
            rows[i], rows[j] = rows[j], rows[i]
        pivots, _ = _pivots(scaled[rows])
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
