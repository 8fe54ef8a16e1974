"""The program that the compiled sweep runs: a layout and its order of elimination as tables of numbers.

It serves what most robots have: torques, accelerations, force–torque sensors as rows; inertial units and accelerations
in information form; external forces with covariances. Exact accelerometers, flat forces and whatever is carried inward
are left to :mod:`.gather`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.body_kinds import AngularAcceleration, ExternalForce, ForceTorque
from kfdyn.dynamics.sensors.gather import Factor, at_hinge
from kfdyn.dynamics.sensors.joint_kinds import JointAcceleration, JointTorque, MotorCurrent
from kfdyn.dynamics.sensors.layout import Layout, Node, Piece
from kfdyn.dynamics.sensors.sensor import Array, Index

TORQUE, ACCELERATION, FORCE = 0, 1, 2
# Growth of entries that an order of elimination may have: digits that it costs.
BOUND = 1e4
# Unknowns of a node that the sweep is laid out for; more are better served by LAPACK.
MOST = 24


class Program(NamedTuple):
    """Parameters of the entry, in its order; ``y_start`` says where each sensor's readings begin."""

    parameters: tuple[Any, ...]
    n_rows: int
    n_unknowns: int
    y_start: tuple[int, ...]


def make_program(layout: Layout, factor: Factor) -> Program | None:
    """The program of a layout, its order of elimination chosen in the first state of ``factor``; None if not served."""
    system = layout.system
    if not _served(layout, factor):
        return None
    from kfdyn.multibody.prepared import model_of

    model = model_of(system)
    turned = model.tables["frames"]
    start = np.cumsum([0, *(sensor.size(system) for sensor in layout.sensors)])
    made = _Tables(layout, start, turned, model.place)
    nodes = np.zeros((system.n_bodies + 1, 9), np.int64)
    order: list[int] = []
    pivots: list[float] = []
    most = 1
    # rows and unknowns in the order of bodies; the tables are looked up by place
    for k, node in enumerate(layout.nodes):
        rows, info, push = len(made.rows), len(made.info), len(made.push)
        R_at = made.node(node)
        sequence, sizes = _order(layout, factor, k, made)
        pair = node.n_dofs == 1 and sequence == [1, 0]
        places = rows, len(made.rows), info, len(made.info), push, len(made.push), len(order), R_at, int(pair)
        nodes[model.place[k]] = places
        order += sequence
        pivots += sizes
        most = max(most, len(sequence))
    parameters = (
        len(made.rows),
        len(order),
        int(start[-1]),
        most,
        nodes.reshape(-1),
        np.array(made.rows, np.int64).reshape(-1),
        np.array(made.info, np.int64).reshape(-1),
        np.array(made.push, np.int64).reshape(-1),
        np.array(order, np.int64),
        np.array(made.frames, float).reshape(-1),
        np.array(made.numbers, float),
        np.array(made.scale, float).reshape(-1),
        np.array(pivots, float),
    )
    return Program(parameters, len(made.rows), len(order), tuple(map(int, start)))


def _served(layout: Layout, factor: Factor) -> bool:
    for k, node in enumerate(layout.nodes):
        own = factor.nodes[k]
        if node.loose or len(own.keep) > 12 or own.data.K.any() or node.n_dofs + node.n_rows > MOST:
            return False
    return True


class _Tables:
    """Grows the tables, node by node."""

    def __init__(self, layout: Layout, start: Index, turned: Array, place: Index) -> None:
        self.layout, self.start, self.turned, self.place = layout, start, turned, place
        self.rows: list[tuple[int, ...]] = []
        self.info: list[tuple[int, ...]] = []
        self.push: list[tuple[int, ...]] = []
        self.frames: list[Array] = [np.zeros(12)]
        self.numbers: list[float] = [0.0]
        self.scale: list[tuple[float, float]] = []

    def node(self, node: Node) -> int:
        """Add what is read at a node; where the covariance of its rows is."""
        for piece in node.rows:
            self._rows(node, piece)
        R = np.zeros((node.n_rows, node.n_rows))
        at = 0
        for piece in node.rows:
            here = slice(at, at + len(piece.seen))
            R[here, here], at = piece.R, here.stop
        for piece in node.info:
            self._info(node, piece)
        for push in node.spread:
            sensor = self.layout.sensors[push.sensor]
            assert isinstance(sensor, ExternalForce)
            frame, weight, first = self._frame(sensor.frame), self._keep(push.weight), len(self.push)
            shift = (0 if sensor.axes == "frame" else 6) + (0 if sensor.moment else 3)
            for i in push.seen:
                reading = int(self.start[push.sensor] + i)
                self.push.append((shift + int(i), frame, reading, first, len(push.seen), weight))
        return self._keep(R)

    def _keep(self, matrix: Array) -> int:
        at = len(self.numbers)
        self.numbers += matrix.ravel().tolist()
        return at

    def _frame(self, name: str) -> int:
        k, R, p = self.layout.system.locate(name)
        S = self.turned[self.place[k]].reshape(3, 3)
        self.frames.append(np.concatenate([(S.T @ R).ravel(), S.T @ p]))
        return len(self.frames) - 1

    def _rows(self, node: Node, piece: Piece) -> None:
        system, sensor = self.layout.system, self.layout.sensors[piece.sensor]
        for i, local in zip(piece.seen, piece.local()):
            reading, dof = int(self.start[piece.sensor] + i), node.dofs.start + int(local)
            if isinstance(sensor, JointTorque):
                per = 1.0
                if isinstance(sensor, MotorCurrent):
                    per = 1.0 / float(np.broadcast_to(sensor.per_ampere, (sensor.size(system),))[i])
                self.rows.append((TORQUE, dof, 0, reading))
                self.scale.append((per, per * float(system.armature[dof]) * sensor.rotor))
            elif isinstance(sensor, JointAcceleration):
                self.rows.append((ACCELERATION, dof, 0, reading))
                self.scale.append((0.0, 1.0))
            else:
                assert isinstance(sensor, ForceTorque)
                frame = self._frame(sensor.frame or system.body_names[node.k])
                self.rows.append((FORCE, int(local), frame, reading))
                self.scale.append((-1.0 if sensor.direction == "child_to_parent" else 1.0, 0.0))

    def _info(self, node: Node, piece: Piece) -> None:
        sensor = self.layout.sensors[piece.sensor]
        weight, first = self._keep(np.asarray(np.linalg.inv(piece.R), np.float64)), len(self.info)
        frame = 0 if isinstance(sensor, JointAcceleration) else self._frame(sensor.frame)  # type: ignore[attr-defined]
        linear = sensor.size(self.layout.system) == 3 and not isinstance(sensor, AngularAcceleration)
        for i, local in zip(piece.seen, piece.local()):
            of = 6 + node.dofs.start + int(local) if frame == 0 else int(local) + (3 if linear else 0)
            self.info.append((of, frame, int(self.start[piece.sensor] + i), first, len(piece.seen), weight))


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
