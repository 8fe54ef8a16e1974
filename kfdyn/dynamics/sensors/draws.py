"""Draws from the posterior: a truth and readings are made up, estimated, and the error of that estimate is the draw's.

The error of an estimate does not depend on the readings, so mean + (truth − estimate of truth) is an exact draw of all
quantities jointly. A flat unknown may be made up as zero, for the error does not depend on it either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.elimination.factor import Factor
from kfdyn.dynamics.sensors.elimination.layout import Node
from kfdyn.dynamics.sensors.elimination.loop_unknowns import coordinate_maps
from kfdyn.dynamics.sensors.elimination.readout import QUANTITIES, quantities
from kfdyn.dynamics.sensors.elimination.solve import Load, solve
from kfdyn.dynamics.sensors.sensor import Array

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate


def draw(est: DynamicsEstimate, rng: np.random.Generator, n: int) -> dict[str, Array]:
    """Draw n times, (n, ..., shape) for each quantity; one pair of sweeps a draw."""
    lead = est.problem.lead
    out = {key: np.empty((n, *getattr(est, key).shape)) for key in QUANTITIES}
    for members, factor in (part for group in est.problem.groups for part in est.problem.parts_of(group)):
        errors = _errors(factor, rng, n)
        for key, error in errors.items():
            mean = est.flat(getattr(est, key))[members]
            shape = (n, est.problem.size, *getattr(est, key).shape[len(lead) :])
            out[key].reshape(shape)[:, members] = mean + np.moveaxis(error, -1, 0)
    return out


def _errors(factor: Factor, rng: np.random.Generator, n: int) -> dict[str, Array]:
    """Truth less estimate of n made-up truths, columns last."""
    layout, size = factor.layout, len(factor.terms.l)
    n_bodies, nv = len(layout.nodes), dofs_of(layout.system).nv
    force, f = np.zeros((2, size, n_bodies, factor.width, n))
    for k in reversed(layout.order):
        node, own = layout.nodes[k], factor.nodes[k]
        data = own.data
        force[:, k] += data.P_spread @ _normal(rng, data.cov, size, n)
        if node.n_loose and data.loose.any():
            inner = np.flatnonzero(data.loose.any(0))
            cov = np.zeros_like(data.loose)
            cov[np.ix_(inner, inner)] = np.linalg.inv(data.loose[np.ix_(inner, inner)])
            force[:, k] += data.P_loose @ _normal(rng, cov, size, n)
        f[:, k] -= force[:, k]  # accelerations are zero, and forces less those of rest
        if node.parent >= 0:
            f[:, node.parent] += own.phi @ f[:, k]
    alpha, q, rows = np.zeros_like(f), np.zeros((size, nv, n)), {}
    for k, node in enumerate(layout.nodes):
        data = factor.nodes[k].data
        if node.rows:
            rows[k] = -(data.S @ f[:, k] + _normal(rng, data.R, size, n))
            if node.geared:
                rows[k][:, -1] = 0.0  # its coupling is read instead
        for part, weight in data.info:
            pulled = np.asarray(weight @ _normal(rng, np.asarray(np.linalg.inv(weight), np.float64), size, n))
            if part.K is not None:
                alpha[:, k] -= part.K.swapaxes(-1, -2) @ pulled
            if part.e is not None:
                q[:, node.dofs] -= part.e.swapaxes(-1, -2) @ pulled
    tau = np.zeros((size, nv, n))
    for k, node in enumerate(layout.nodes):
        tau[:, node.dofs] = factor.nodes[k].data.H @ f[:, k]
    joined = {k: _of_joins(factor, node, tau, rng) for k, node in enumerate(layout.nodes) if node.joins}
    guess = quantities(factor, solve(factor, Load(alpha=alpha, q=q, rows=rows, joined=joined), n))
    maps, bodies = coordinate_maps(layout.system), layout.system.n_bodies
    tau = tau if maps is None else maps[0].T @ tau
    truth = {"tau": tau, "hinge_forces": f[:, :bodies, :6], "external_forces": force[:, :bodies, :6]}
    return {key: truth.get(key, 0.0) - guess[key] for key in QUANTITIES}


def _of_joins(factor: Factor, node: Node, tau: Array, rng: np.random.Generator) -> Array:
    """Readings of couplings of a made-up truth, as linear terms (size, ·, n); their accelerations are zero."""
    size, _, n = tau.shape
    parts = []
    for join in node.joins:
        out = np.zeros((size, len(join.new), n))
        dofs = [i for i, tag in enumerate(join.old) if tag[0] == "q"]
        turned = [i for i, tag in enumerate(join.old) if tag[0] == "row"]
        for piece, places in join.rows:
            out[:, places] = -_normal(rng, piece.R, size, n)
            if turned:  # m at hinge i is T_ij m_j, so reading j is Σ T_ij tau_i
                own = tau[:, [join.old[i][1] for i in dofs]]
                out[:, places] -= join.T[turned][:, places].T @ own
        for piece, places in join.info:
            out[:, places] -= np.linalg.inv(piece.R) @ _normal(rng, piece.R, size, n)
        parts.append(out)
    return np.concatenate(parts, axis=1)


def _normal(rng: np.random.Generator, cov: Array, size: int, n: int) -> Array:
    """Draws (size, m, n) from N(0, cov), which may be singular."""
    if not len(cov):
        return np.zeros((size, 0, n))
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return root @ rng.normal(size=(size, len(cov), n))
