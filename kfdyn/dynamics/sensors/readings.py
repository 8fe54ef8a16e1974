"""Readings at the door: checked, freed of biases, grouped by what is missing; and the load they are to the solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.body_kinds import ExternalForce
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.factor import Factor
from kfdyn.dynamics.sensors.layout import Layout, Pattern
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.dynamics.sensors.sharing import Join, loop_terms
from kfdyn.dynamics.sensors.solve import Load
from kfdyn.errors import ModelError, ShapeError, as_list
from kfdyn.multibody import System
from kfdyn.multibody.body import as_floats


class Group(NamedTuple):
    """States (indices of the flat batch) whose readings lack the same entries."""

    pattern: Pattern
    members: Index


def check_sensors(sensors: Sequence[Sensor], what: str = "sensor") -> tuple[Sensor, ...]:
    """Return the sensors as a tuple, or say which is none."""
    out = as_list(sensors, f"{what}s", "write [kf.sensors.JointTorque(cov), ...]")
    for i, sensor in enumerate(out):
        if not isinstance(sensor, Sensor):
            raise ModelError(f"{what} {i} is a {type(sensor).__name__}, not one of kf.sensors; build it with cov")
    return out


def check_readings(system: System, sensors: tuple[Sensor, ...], readings: Sequence[ArrayLike | None]) -> list[Array]:
    """Readings (..., size), one a sensor, NaN where missing."""
    given = as_list(readings, "readings", "give one entry a sensor, None for a prior")
    if len(given) != len(sensors):
        raise ShapeError(f"{len(given)} readings for {len(sensors)} sensors; give one entry a sensor, None for a prior")
    out = []
    for sensor, reading in zip(sensors, given):
        size = sensor.size(system)
        if reading is None:
            if not sensor.prior:
                raise ModelError(f"{sensor}: its reading is None; give NaN for one that is missing")
            out.append(np.zeros(size))
            continue
        array = as_floats(reading, f"reading of {sensor}")
        if array.ndim == 0 and size == 1:
            array = array[None]
        if array.ndim == 0 or array.shape[-1] != size:
            raise ShapeError(f"{sensor}: its reading must have shape (..., {size}), got {array.shape}")
        if np.isinf(array).any():
            raise ModelError(f"{sensor}: its reading has infinite entries; NaN is missing")
        if isinstance(sensor, ExternalForce) and np.isnan(array).any():
            raise ModelError(f"{sensor}: a prior's mean cannot be missing; cov=np.inf leaves the force flat")
        out.append(array)
    return out


def group_by_missing(flat: list[Array], size: int) -> list[Group]:
    """Group B states by which readings they lack; ``flat`` are readings (B, size)."""
    if not flat:
        return [Group((), np.arange(size))]
    present = np.concatenate([~np.isnan(array) for array in flat], axis=1)
    cuts = np.cumsum([array.shape[1] for array in flat])[:-1]
    if present.all():
        kinds, which = np.ones((1, present.shape[1]), bool), np.zeros(size, int)
    else:
        kinds, which = np.unique(present, axis=0, return_inverse=True)
    return [
        Group(tuple(tuple(part.tolist()) for part in np.split(kind, cuts)), np.flatnonzero(which.reshape(-1) == i))
        for i, kind in enumerate(kinds)
    ]


def load_of(factor: Factor, readings: list[Array], gravity: Array) -> Load:
    """The linear terms of F: ξ, η, and the readings (B, size) less biases and offsets."""
    layout, terms, size = factor.layout, factor.terms, len(factor.terms.l)
    clean = [y - sensor.biases(layout.system) for y, sensor in zip(readings, layout.sensors)]
    alpha, lam = np.zeros((size, len(layout.nodes), factor.width)), terms.xi.copy()
    q = np.zeros((size, dofs_of(layout.system).nv))
    rows, loose, joined = {}, {}, {}
    for k, node in enumerate(layout.nodes):
        data = factor.nodes[k].data
        for piece, (part, weight) in zip(node.info, data.info):
            y = clean[piece.sensor][:, piece.seen]
            y = y if part.offset is None else y - part.offset
            if part.K is not None:
                alpha[:, k] -= np.einsum("bri,br->bi", part.K, y @ weight)
            if part.e is not None:
                q[:, node.dofs] -= np.einsum(
                    "bri,br->bi", np.broadcast_to(part.e, (size, *part.e.shape[1:])), y @ weight
                )
        if node.rows:
            stacked = [clean[piece.sensor][:, piece.seen] for piece in node.rows] + [np.zeros((size, 1))] * node.geared
            rows[k] = (data.offset - np.concatenate(stacked, axis=1))[..., None]
        if node.joins:
            joined[k] = np.concatenate([_of_join(layout, join, clean, size) for join in node.joins], axis=1)
        if node.spread:
            mean = np.concatenate([clean[push.sensor][:, push.seen] for push in node.spread], axis=1)
            lam[:, k] -= np.einsum("bij,bj->bi", data.P_spread, mean)
        if node.loose:
            mean = np.concatenate([clean[push.sensor][:, push.seen] for push in node.loose], axis=1)
            loose[k] = -(mean @ data.loose)[..., None]
    ends = loop_drifts(factor, gravity)
    return Load(
        alpha[..., None], lam[..., None], q[..., None], rows, loose, terms.eta[..., None], ends=ends, joined=joined
    )


def _of_join(layout: Layout, join: Join, clean: list[Array], size: int) -> Array:
    """The linear terms (B, ·, 1) of what a coupling reads."""
    out = np.zeros((size, len(join.new), 1))
    for piece, places in join.rows:
        out[:, places, 0] = -clean[piece.sensor][:, piece.seen]
    for piece, places in join.info:
        out[:, places, 0] -= clean[piece.sensor][:, piece.seen] @ np.linalg.inv(piece.R)
    return out


def loop_drifts(factor: Factor, gravity: Array) -> dict[int, Array]:
    """The linear terms (B, ·, 1) of loops' multipliers, by node: the drift, at the first end of each."""
    layout, done, out = factor.layout, set(), {}
    for k, node in enumerate(layout.nodes):
        if not node.ends:
            continue
        out[k], at = np.zeros((len(gravity), node.n_own - node.n_loose, 1)), 0
        for end in node.ends:
            r = len(end.rows)
            if end.loop not in done:
                done.add(end.loop)
                _, drift = loop_terms(layout.system, factor.terms, gravity, end.loop)
                out[k][:, at + r : at + 2 * r, 0] = drift[:, list(end.rows)]
            at += 2 * r
    return out
