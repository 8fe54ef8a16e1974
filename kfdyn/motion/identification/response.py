"""Answers of the mean of what is read to parameters: the part of the information that a motion's shape tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.motion.identification.effects import Rows, combined, effects
from kfdyn.motion.identification.linear import Linear
from kfdyn.motion.identification.parameters.by_name import Parameters
from kfdyn.motion.identification.parameters.groups import ROBOT, Group
from kfdyn.motion.model import MotionModel
from kfdyn.motion.readings import FEELS

_SIGNED = 64  # rows on which directions that change nothing are looked for


class MeanChanges(NamedTuple):
    """Derivatives of ξ (p, Σn) and of T (p, Σm) in the free numbers, at a random force of zero."""

    xi: Array
    T: Array


def mean_changes(parameters: Parameters, z: Array, line: Linear, base: MotionModel) -> MeanChanges:
    """Differentiate the mean of one log in each free number, where that has a closed form; 0 elsewhere."""
    problem, model = line.problem, line.model
    m = line.point.at.T.shape[2]
    xi = np.zeros((z.size, problem.batch, problem.N, problem.size))
    T = np.zeros((z.size, problem.batch * problem.N, m))
    Minv, nv = line.acceleration[3], model.system.nv
    calm = line.acceleration[0] - (Minv @ line.w.reshape(len(Minv), -1)[:, :nv, None])[..., 0]
    rows = Rows(model.stepper, line.q, line.v, calm, model.g)
    for group, own in zip(parameters.groups, parameters.places):
        if not parameters.closed[own.start]:
            continue
        slope = group.slope(z[own], group.values)
        if group.block[0] in ROBOT:
            r = np.stack([one.r for one in effects(group.block, rows, parameters.masses, False)])
            r = combined(r) if group.block[0] == "body" else r
            da = -np.einsum("rij,prj->pri", Minv, np.tensordot(slope.T, r, axes=1), optimize=True)
            if problem.N > 1:
                xi[own, :, 1:, : 2 * nv] = _stepped(line, da).reshape(own.stop - own.start, problem.batch, -1, 2 * nv)
            if problem.carried:
                T[own] = _felt(line, da, slope if group.block[0] == "gravity" else None)
        elif group.block[0] in ("bias", "scale"):
            T[own] = np.tensordot(slope.T, _read(group, line, base, m), axes=1)
    return MeanChanges(xi.reshape(z.size, -1), T.reshape(z.size, -1))


def _stepped(line: Linear, da: Array) -> Array:
    """Change of the state after each step, (p, edges, 2 nv)."""
    h, nv, own = line.model.dt, da.shape[2], line.edge_rows
    dv = h * da[:, own]
    points = line.model.stepper.points
    if not points.blocks:
        return np.concatenate([h * dv, dv], axis=2)
    turn = np.linalg.inv(points.right_jacobian(line.defects[:, :nv]))
    J = h * points.right_jacobian(h * (line.v[own] + h * line.acceleration[0][own]))
    return np.concatenate([np.einsum("rij,prj->pri", turn @ J, dv, optimize=True), dv], axis=2)


def _felt(line: Linear, da: Array, of_gravity: Array | None) -> Array:
    """Change of T by sensors that feel accelerations, (p, rows, m)."""
    model, a = line.model, line.acceleration[0]
    out = np.zeros((len(da), da.shape[1], line.point.at.T.shape[2]))
    for sensor, own in zip(model.seen.sensors, model.seen.tangents_of):
        feel = FEELS.get(type(sensor))
        if feel is None:
            continue
        s = model.seen.factors[own]
        at = feel(sensor, model.system, line.q, line.v, a, model.g)
        out[:, :, own] = -s * np.einsum("rij,prj->pri", at.of_a, da, optimize=True)
        if of_gravity is not None:
            still = [feel(sensor, model.system, line.q, line.v, a, model.g + unit).reading for unit in np.eye(3)]
            moved = np.stack([reading - at.reading for reading in still])
            out[:, :, own] -= s * np.tensordot(of_gravity.T, moved, axes=1)
    return out


def _read(group: Group, line: Linear, base: MotionModel, m: int) -> Array:
    """Change of T by the bias or the factor of each entry of a sensor, (entries, rows, m)."""
    size, rows = len(group.names), len(line.q)
    out = np.zeros((size, rows, m))
    for sensor, points, own in zip(base.seen.sensors, base.seen.points_of, base.seen.tangents_of):
        if sensor.name != group.block[1]:
            continue
        entry = range(size)
        if group.block[0] == "bias":
            out[entry, :, range(own.start, own.stop)] = -1.0
            continue
        h = (line.point.at.h.reshape(rows, -1) - line.biased)[:, points]
        if line.point.H_w is not None:
            h = h - (line.point.H_w[:, own] @ line.w.reshape(rows, -1, 1))[..., 0]
        out[entry, :, range(own.start, own.stop)] = -(h / line.model.seen.factors[own]).T
    return out


def signatures(parameters: Parameters, z: Array, line: Linear) -> Array:
    """Differentiate inverse dynamics on some rows of one log in each free number, (p, ·), sizes near 1."""
    few = np.unique(np.linspace(0, len(line.q) - 1, _SIGNED).astype(int))
    rows = Rows(line.model.stepper, line.q[few], line.v[few], line.acceleration[0][few], line.model.g)
    nv = line.v.shape[1]
    parts = [np.zeros((z.size, few.size, nv)), *(np.zeros((z.size, few.size, nv, nv)) for _ in range(3))]
    for group, own in zip(parameters.groups, parameters.places):
        if group.block[0] not in ROBOT:
            continue
        slope = group.slope(z[own], group.values)
        found = list(effects(group.block, rows, parameters.masses, True))
        for part, given in zip(parts, zip(*found)):
            shape = part.shape[1:]
            each = np.stack([np.zeros(shape) if one is None else one for one in given])
            part[own] = np.tensordot(slope.T, combined(each) if group.block[0] == "body" else each, axes=1)
    flat = [part.reshape(z.size, -1) for part in parts]
    return np.concatenate([part / (np.abs(part).max(initial=0.0) or 1.0) for part in flat], axis=1)
