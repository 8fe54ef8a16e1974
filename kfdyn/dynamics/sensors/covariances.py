"""How surely: marginal standard deviations by one more scatter, and full covariances column by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.dynamics.sensors.compiled.order_of_elimination import by_sweeps, states_of
from kfdyn.dynamics.sensors.compiled.program import Program
from kfdyn.dynamics.sensors.compiled.sweeps import Spread, answered, deviations, make_states, run, source_of
from kfdyn.dynamics.sensors.dofs import dof_slice, dofs_of
from kfdyn.dynamics.sensors.elimination.factor import Factor, spans
from kfdyn.dynamics.sensors.elimination.layout import is_served
from kfdyn.dynamics.sensors.elimination.loop_unknowns import Join, coordinate_maps
from kfdyn.dynamics.sensors.elimination.marginals import Local, marginals
from kfdyn.dynamics.sensors.elimination.problem import Group, Problem
from kfdyn.dynamics.sensors.elimination.readout import QUANTITIES, quantities
from kfdyn.dynamics.sensors.elimination.solutions import AT_ONCE, solutions
from kfdyn.dynamics.sensors.elimination.solve import Load, solve
from kfdyn.dynamics.sensors.sensor import Array, Index, Mask
from kfdyn.errors import ModelError

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate, Part

# A variance is a difference of two; what is left of it below this share of the first is rounding.
NOTHING = 1e-13


def standard_deviations(est: DynamicsEstimate) -> dict[str, Array]:
    """All five quantities' marginal standard deviations."""
    if est._straight is not None:
        system, program, q = est._straight
        if not system.couplings:
            states = make_states(system, program, q, np.zeros((len(q), system.nv)), system.gravity)
            fine, spread = deviations(system, program, states)
            if fine:
                return {key: value.reshape(getattr(est, key).shape) for key, value in zip(QUANTITIES, spread)}
    problem = est.problem
    out = {key: np.empty_like(getattr(est, key)) for key in QUANTITIES}
    for group in problem.groups:
        for members, found in deviations_of(problem, group):
            for key, value in found.items():
                est.flat(out[key])[members] = value
    return out


def deviations_of(problem: Problem, group: Group, alone: bool = True) -> Iterator[tuple[Index, dict[str, Array]]]:
    """Standard deviations of some states, until all of a group had their turn.

    Unless ``alone``, states that an order of elimination chosen elsewhere does not suit are left out.
    """
    if not is_served(problem.system, problem.sensors):
        for members, factor in problem.parts_of(group, alone):
            yield members, standard_deviations_of(factor)
        return

    def sweep(program: Program, members: Index) -> tuple[Spread, Mask]:
        fine, spread = deviations(problem.system, program, states_of(problem, program, members))
        return spread, answered(fine, spread.a)

    for members, _, spread, good in by_sweeps(problem, group, sweep, alone=alone):
        found = dict(zip(QUANTITIES, spread.only(good).five))
        if problem.system.couplings:
            found |= _of_shared(problem, group._replace(members=members[good]), found)
        yield members[good], found


def standard_deviations_of(factor: Factor) -> dict[str, Array]:
    """The same for the states of one factor."""
    system, size = factor.layout.system, len(factor.terms.l)
    of_dofs = {key: np.zeros((size, dofs_of(system).nv)) for key in ("a", "tau")}
    of_bodies = {key: np.zeros((size, system.n_bodies, 6)) for key in QUANTITIES[2:]}
    for local in marginals(factor):
        if local.k == system.n_bodies:  # the world
            continue
        own = factor.layout.nodes[local.k].dofs
        assert local.others is not None
        tau, f, x = local.others
        of_dofs["a"][:, own], of_dofs["tau"][:, own] = _root(local.a), _root(tau)
        for key, value in zip(QUANTITIES[2:], (local.z[:, : factor.width, : factor.width], f, x)):
            of_bodies[key][:, local.k] = _root(value)[:, :6]
    if system.couplings:
        of_dofs = {key: _of_couplings(factor, key, value) for key, value in of_dofs.items()}
    return of_dofs | of_bodies


def _of_couplings(factor: Factor, key: str, of_tree: Array) -> Array:
    """Deviations (B, nv) from those of the open tree; a coordinate that several hinges share takes a pair of sweeps."""
    system, shared = factor.layout.system, factor.layout.system._expansion
    out = np.empty((len(of_tree), system.nv))
    out[:, shared.here_v] = of_tree[:, shared.plain_v]
    own = np.asarray(shared.own_v)
    source = np.zeros((len(of_tree), system.nv, len(own)))
    source[:, own, range(len(own))] = 1.0
    found = _respond(factor, key, source)[key][:, own]
    out[:, own] = _root(found)
    return out


def _root(cov: Array) -> Array:
    return np.sqrt(np.maximum(np.diagonal(cov, axis1=-2, axis2=-1), 0.0))


def covariance(est: DynamicsEstimate, what: Part, other: Part) -> Array:
    """Cross-covariance of two quantities, each all of it or at one hinge or body."""
    (key, rows), (of, columns) = _entries(est, what), _entries(est, other)
    lead, count = est.problem.lead, len(columns)
    out = np.empty((*lead, len(rows), count))
    if not out.size:
        return out
    for group in est.problem.groups:
        for members, answer in respond(est.problem, group, of, columns):
            est.flat(out)[members] = answer[key].reshape(len(members), -1, count)[:, rows]
    return out


def respond(problem: Problem, group: Group, of: str, columns: Index) -> Iterator[tuple[Index, dict[str, Array]]]:
    """Covariances of all quantities with some entries of one, (B, ..., columns): the sweep answers a row for each."""
    system, count = problem.system, len(columns)
    unit = np.zeros((system.nv if of in ("a", "tau") else 6 * system.n_bodies, count))
    unit[columns, np.arange(count)] = 1.0
    if not is_served(problem.system, problem.sensors):
        for members, factor in problem.parts_of(group):
            yield members, _respond(factor, of, np.broadcast_to(unit, (len(members), *unit.shape)))
        return
    source, few = source_of(system, of, unit), max(1, AT_ONCE // max(count, 1))

    def sweep(program: Program, members: Index) -> tuple[dict[str, Array], Mask]:
        size = len(members)
        states = states_of(problem, program, members).still().only(np.repeat(np.arange(size), count))
        y = np.zeros((size * count, len(problem.bias)))
        fine, answers = run(system, program, states, y, source[whole(size)])
        found = [x.reshape(size, count, *x.shape[1:]) for x in answers.five]
        good = answered(fine, found[0].reshape(size, -1))
        return {key: np.moveaxis(x, 1, -1) for key, x in zip(QUANTITIES, found)}, good

    def whole(size: int) -> Index:
        return np.tile(np.arange(count), size)

    for first in range(0, len(group.members), few):
        part = group._replace(members=group.members[first : first + few])
        for members, _, answer, good in by_sweeps(problem, part, sweep, general=True):
            if good.any():
                yield members[good], {key: x[good] for key, x in answer.items()}


def _of_shared(problem: Problem, group: Group, found: dict[str, Array]) -> dict[str, Array]:
    """Deviations (B, nv) of a and tau from those of the open tree; what several hinges share has columns of its own."""
    system, shared = problem.system, problem.system._expansion
    out, own = {}, np.asarray(shared.own_v)
    place = {int(k): i for i, k in enumerate(group.members)}
    for key in ("a", "tau"):
        out[key] = np.empty((len(group.members), system.nv))
        out[key][:, shared.here_v] = found[key][:, shared.plain_v]
        for members, answer in respond(problem, group, key, own) if group.members.size else ():
            out[key][np.ix_(np.array([place[int(k)] for k in members]), own)] = _root(answer[key][:, own])
    return out


def _respond(factor: Factor, of: str, source: Array) -> dict[str, Array]:
    """Means' response to a source −s*X in F, which is cov(·, X) s."""
    layout = factor.layout
    system, (size, _, count) = layout.system, source.shape
    n, armature, maps = len(layout.nodes), dofs_of(system).armature, coordinate_maps(system)
    by_body = None
    if of not in ("a", "tau"):
        by_body = np.zeros((size, n, factor.width, count))
        by_body[:, : system.n_bodies, :6] = source.reshape(size, -1, 6, count)
    elif maps is not None:
        source = (maps[1].T if of == "a" else maps[0]) @ source
    if of == "a":
        return quantities(factor, solve(factor, Load(q=-source), count))
    if of == "tau":
        shift = np.zeros((size, n, factor.width, count))
        for k, node in enumerate(layout.nodes):
            shift[:, k] = factor.nodes[k].data.H.swapaxes(-1, -2) @ source[:, node.dofs]
        return quantities(factor, solve(factor, Load(q=-armature[:, None] * source, shift=shift), count))
    assert by_body is not None
    if of == "body_accelerations":
        return quantities(factor, solve(factor, Load(alpha=-by_body), count))
    if of == "hinge_forces":
        return quantities(factor, solve(factor, Load(shift=by_body), count))
    lam, loose = np.zeros_like(by_body), {}
    for k, node in enumerate(layout.nodes):
        data = factor.nodes[k].data
        spread = (data.P_spread @ data.cov) @ data.P_spread.swapaxes(-1, -2)
        lam[:, k] = -(spread @ by_body[:, k])
        if node.loose:
            loose[k] = -(data.P_loose.swapaxes(-1, -2) @ by_body[:, k])
    out = quantities(factor, solve(factor, Load(lam=lam, loose=loose), count))
    out["external_forces"] = (
        out["external_forces"] - lam[:, : system.n_bodies, :6]
    )  # x = μ + ΣP*λ, and the source moves μ
    return out


def _entries(est: DynamicsEstimate, what: Part) -> tuple[str, Index]:
    """Name of a quantity, and which of its entries, flattened."""
    key, at = (what, None) if isinstance(what, str) else what
    if key not in QUANTITIES:
        raise ModelError(f"no covariance of {key!r}; there are {', '.join(QUANTITIES)}")
    system = est.problem.system
    total = np.arange(est.flat(getattr(est, key))[:1].size if est.problem.size else 0)
    if at is None:
        return key, total
    if key in ("a", "tau"):
        return key, total[dof_slice(system, at)]
    k = system.body_index(at)
    return key, total[6 * k : 6 * k + 6]


def local_multipliers(factor: Factor, local: Local) -> Iterator[tuple[int, Index, Array]]:
    """Yield (sensor, entries, cov m) of the pieces and forces at a node: −Z_mm, or R⁻¹ − R⁻¹ cov(prediction) R⁻¹."""
    node, own = factor.layout.nodes[local.k], factor.nodes[local.k]
    at = 0
    for piece in node.rows:
        here = slice(at, at + len(piece.seen))
        yield piece.sensor, piece.seen, local.m[:, here, here]
        at = here.stop
    for piece, (rows, weight) in zip(node.info, own.data.info):
        cov = np.zeros_like(weight)
        if rows.K is not None:
            alpha = spans(factor.width)[0]
            cov = rows.K @ local.z[:, alpha, alpha] @ rows.K.swapaxes(-1, -2)
        elif rows.e is not None:
            cov = rows.e @ local.a @ rows.e.swapaxes(-1, -2)
        yield piece.sensor, piece.seen, weight - weight @ cov @ weight
    _, lam = spans(factor.width)
    at = lam.stop
    for push in node.loose:  # Σ⁻¹ − Σ⁻¹ cov(x) Σ⁻¹: of a wide force λ holds too few digits
        here = slice(at, at + len(push.seen))
        if not push.flat:
            yield push.sensor, push.seen, push.weight - push.weight @ local.z[:, here, here] @ push.weight
        at = here.stop
    for join, cov in _joined(factor, local):
        for piece, places in join.rows:
            yield piece.sensor, piece.seen, -cov[:, places[:, None], places]
        for piece, places in join.info:
            weight = np.asarray(np.linalg.inv(piece.R), np.float64)
            yield piece.sensor, piece.seen, weight - weight @ cov[:, places[:, None], places] @ weight
    for push in node.spread:
        P = factor.layout.sensors[push.sensor].wrench(factor.layout.system, factor.terms)[:, :, push.seen]  # type: ignore[attr-defined]
        yield push.sensor, push.seen, -(P.swapaxes(-1, -2) @ local.z[:, lam, lam] @ P)


def _joined(factor: Factor, local: Local) -> Iterator[tuple[Join, Array]]:
    """Covariances (B, ·, ·) of what couplings and loops have at a node, join by join; the last unknowns of it."""
    node = factor.layout.nodes[local.k]
    at = local.z.shape[-1] - sum(len(join.new) for join in node.joins)
    for join in node.joins:
        here = slice(at, at + len(join.new))
        yield join, local.z[:, here, here]
        at = here.stop


def normalised_residuals(est: DynamicsEstimate) -> list[Array]:
    """−m / std(m) for every reading; 0 where nothing else checks it, so that both are rounding."""
    out = [np.where(np.isnan(r), np.nan, 0.0) for r in est.residuals]
    noise = [sensor.variances(sensor.size(est.problem.system)) for sensor in est.problem.sensors]
    for members, factor, _, spread in solutions(est.problem, spreads=True):
        for i, seen, cov in (found for local in spread for found in local_multipliers(factor, local)):
            m = est.flat(est.multipliers[i])[np.ix_(members, seen)]
            variance, R = np.diagonal(cov, axis1=-2, axis2=-1), noise[i][seen]
            size = variance * factor.layout.of_readings[i][seen] ** 2
            good = size > 1e3 * NOTHING * np.abs(size).max(-1, keepdims=True)
            good &= (variance * R > NOTHING) | (R == 0)  # of a noisy reading the share that the others leave
            value = np.where(good, -m / np.sqrt(np.where(good, variance, 1.0)), 0.0)
            est.flat(out[i])[np.ix_(members, seen)] = value
    return out
