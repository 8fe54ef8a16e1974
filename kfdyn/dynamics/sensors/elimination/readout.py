"""Read what was solved: means of every quantity, predicted readings, residuals, NIS and log-likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.body_sensors import ExternalForce
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.elimination.factor import Factor
from kfdyn.dynamics.sensors.elimination.layout import Node
from kfdyn.dynamics.sensors.elimination.loop_unknowns import Join, coordinate_maps, coupled_hinges
from kfdyn.dynamics.sensors.elimination.solve import Answer
from kfdyn.dynamics.sensors.joint_sensors import AtHinges, JointTorque, MotorCurrent
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.elimination.problem import Problem
    from kfdyn.dynamics.sensors.result import DynamicsEstimate

QUANTITIES = ("a", "tau", "body_accelerations", "hinge_forces", "external_forces")


def quantities(factor: Factor, answer: Answer, means: list[Array] | None = None) -> dict[str, Array]:
    """The five quantities with columns last, (B, ..., c), accelerations less gravity; ``means`` are the readings."""
    system, armature = factor.layout.system, dofs_of(factor.layout.system).armature
    tau = np.empty_like(answer.q)
    external = np.zeros_like(answer.f)
    for k, node in enumerate(factor.layout.nodes):
        data = factor.nodes[k].data
        own = node.dofs
        tau[:, own] = data.H @ answer.f[:, k] + armature[own, None] * answer.q[:, own]
        if node.spread:
            back = data.P_spread.swapaxes(-1, -2)
            x = data.cov @ (back @ answer.lam[:, k])
            if means is not None:
                x = x + np.concatenate([means[push.sensor][:, push.seen] for push in node.spread], axis=1)[..., None]
            external[:, k] += data.P_spread @ x
        if node.loose:
            external[:, k] += data.P_loose @ answer.u[k]
    maps, n = coordinate_maps(system), system.n_bodies
    return {
        "a": answer.q if maps is None else maps[1] @ answer.q,
        "tau": tau if maps is None else maps[0].T @ tau,
        "body_accelerations": answer.alpha[:, :n, :6],
        "hinge_forces": answer.f[:, :n, :6],
        "external_forces": external[:, :n, :6],
    }


def read_out(factor: Factor, readings: list[Array], answer: Answer, out: DynamicsEstimate, members: Index) -> None:
    """Write the means of some states into their places of a result."""
    for key, value in quantities(factor, answer, readings).items():
        out.flat(getattr(out, key))[members] = value[..., 0]
    out.flat(out.body_accelerations)[members, :, 3:] += out.problem.gravity[members, None]  # α is less gravity


class Checks(NamedTuple):
    """Readings held against the estimate, for B states: lists (B, size) a sensor; NIS, its dof and llf (B,)."""

    predicted: list[Array]
    residuals: list[Array]
    multipliers: list[Array]
    nis: Array
    dof: Index
    llf: Array

    @classmethod
    def empty(cls, problem: Problem) -> Checks:
        """Room for those of a problem."""
        size, sizes = problem.size, [reading.shape[1] for reading in problem.readings]
        one, two, three = ([np.empty((size, n)) for n in sizes] for _ in range(3))
        return cls(one, two, three, np.empty(size), np.empty(size, np.int64), np.empty(size))


def read_rest(factor: Factor, readings: list[Array], answer: Answer, out: Checks, members: Index) -> None:
    """Write predictions, residuals, multipliers, NIS and log-likelihood of some states into their places."""
    layout = factor.layout
    nis = np.zeros(len(members))
    expected, pulls = predictions(factor, readings, answer), multipliers(factor, readings, answer)
    for i, (predicted, multiplier) in enumerate(zip(expected, pulls)):
        out.predicted[i][members], out.multipliers[i][members] = predicted, multiplier
        sensor, residual = layout.sensors[i], np.zeros_like(multiplier)
        for site, R in zip(sensor.sites(layout.system), sensor.blocks(layout.system)):
            residual[:, site.rows] = -(multiplier[:, site.rows] @ np.where(np.isfinite(R), R, 0.0))
        out.residuals[i][members] = np.where(np.isnan(readings[i]), np.nan, residual)
        nis -= (multiplier * residual).sum(-1)
    constant = layout.log_weights - 0.5 * layout.n_data * np.log(2 * np.pi)
    out.nis[members] = nis
    out.dof[members] = layout.n_rows - layout.n_flat
    out.llf[members] = constant - 0.5 * nis - 0.5 * factor.log_det


def multipliers(factor: Factor, readings: list[Array], answer: Answer) -> list[Array]:
    """m = ∂ℓ/∂y of every reading, (B, size), zero where missing: −R⁻¹(y − prediction), or the row's own if R = 0."""
    layout, size = factor.layout, len(factor.terms.l)
    out = [np.zeros((size, sensor.size(layout.system))) for sensor in layout.sensors]
    for k, node in enumerate(layout.nodes):
        data, at = factor.nodes[k].data, 0
        for piece in node.rows:
            out[piece.sensor][:, piece.seen] = answer.m[k][:, at : at + len(piece.seen), 0]
            at += len(piece.seen)
        for piece, (rows, weight) in zip(node.info, data.info):
            y = readings[piece.sensor][:, piece.seen] - layout.sensors[piece.sensor].biases(layout.system)[piece.seen]
            y = y if rows.offset is None else y - rows.offset
            if rows.K is not None:
                y = y - (rows.K @ answer.alpha[:, k])[..., 0]
            if rows.e is not None:
                y = y - (rows.e @ answer.q[:, node.dofs])[..., 0]
            out[piece.sensor][:, piece.seen] = -(y @ weight)
        at = 0
        for push in node.loose:
            here = slice(at, at + len(push.seen))
            gone = answer.u[k][:, here, 0] - readings[push.sensor][:, push.seen]
            out[push.sensor][:, push.seen], at = gone @ push.weight, here.stop
        for push in node.spread:
            sensor = layout.sensors[push.sensor]
            assert isinstance(sensor, ExternalForce)
            P = sensor.wrench(layout.system, factor.terms)[:, :, push.seen]
            # x = μ + ΣP*λ, so Σ⁻¹(x − μ) is P*λ, also where Σ has no inverse
            out[push.sensor][:, push.seen] = (P.swapaxes(-1, -2) @ answer.lam[:, k])[..., 0]
        for join, part in joins_of(node, answer.joined.get(k)):
            for piece, places in join.rows:
                out[piece.sensor][:, piece.seen] = part[:, places, 0]
            for piece, places in join.info:
                clean = readings[piece.sensor] - layout.sensors[piece.sensor].biases(layout.system)
                out[piece.sensor][:, piece.seen] = (part[:, places, 0] - clean[:, piece.seen]) @ np.linalg.inv(piece.R)
    return out


def joins_of(node: Node, stacked: Array | None) -> Iterator[tuple[Join, Array]]:
    """The joins of a node with their own part (B, ·, ...) of what is stacked for all of them."""
    at = 0
    for join in node.joins:
        assert stacked is not None
        yield join, stacked[:, at : at + len(join.new)]
        at += len(join.new)


def predictions(factor: Factor, readings: list[Array], answer: Answer) -> list[Array]:
    """What each sensor should have read, (B, size), missing entries too; for an external force its estimate."""
    layout, terms, size = factor.layout, factor.terms, len(factor.terms.l)
    system = layout.system
    geared = coupled_hinges(system)
    out = []
    for i, sensor in enumerate(layout.sensors):
        y = np.zeros((size, sensor.size(system)))
        for site in sensor.sites(system):
            k = site.k
            if isinstance(sensor, ExternalForce):
                y = _external(factor, i, readings[i], answer)
                continue
            if k in geared and isinstance(sensor, AtHinges):
                y[:, site.rows] = _of_coupling(factor, sensor, k, answer)
                continue
            rows = sensor.rows(system, site, terms)
            here = slice(site.first, site.first + site.rows.stop - site.rows.start)
            dofs = answer.q[:, layout.nodes[k].dofs]
            for part, value in ((rows.S, answer.f[:, k]), (rows.K, answer.alpha[:, k]), (rows.e, dofs)):
                if part is not None:
                    y[:, site.rows] += (part @ value)[:, here, 0]
            if rows.offset is not None:
                y[:, site.rows] += rows.offset
        out.append(y + sensor.biases(system))
    return out


def _of_coupling(factor: Factor, sensor: Sensor, k: int, answer: Answer) -> Array:
    """What a sensor should have read (B, 1) of the coordinate of a coupling that is named after hinge k."""
    layout = factor.layout
    system, maps = layout.system, coordinate_maps(layout.system)
    assert maps is not None
    own = system.v_slice(system.hinge_names[k])
    if not isinstance(sensor, JointTorque):
        return np.asarray((maps[1] @ answer.q)[:, own, 0])
    force = np.zeros_like(answer.q)
    for j, node in enumerate(layout.nodes):
        force[:, node.dofs] = factor.nodes[j].data.H @ answer.f[:, j]
    if sensor.rotor:
        force += dofs_of(system).armature[:, None] * answer.q
    out = np.asarray((maps[0].T @ force)[:, own, 0])
    if isinstance(sensor, MotorCurrent):
        site = next(site for site in sensor.sites(system) if site.k == k)
        out = out / np.broadcast_to(sensor.per_ampere, (sensor.size(system),))[site.rows]
    return out


def _external(factor: Factor, i: int, mean: Array, answer: Answer) -> Array:
    layout = factor.layout
    sensor = layout.sensors[i]
    assert isinstance(sensor, ExternalForce)
    k = sensor.sites(layout.system)[0].k
    node, x = layout.nodes[k], mean.copy()
    P = sensor.wrench(layout.system, factor.terms)
    for push in node.spread:
        if push.sensor == i:
            back = P[:, :, push.seen].swapaxes(-1, -2)
            x[:, push.seen] += (push.weight @ (back @ answer.lam[:, k]))[..., 0]
    at = 0
    for push in node.loose:
        if push.sensor == i:
            x[:, push.seen] = answer.u[k][:, at : at + len(push.seen), 0]
        at += len(push.seen)
    return x
