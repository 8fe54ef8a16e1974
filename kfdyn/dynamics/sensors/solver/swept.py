"""Answers of the compiled sweeps: means, deviations, covariances, and residuals of the readings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array, Index, Mask
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES, Few, Solved, Solver, predicted_at_hinges
from kfdyn.dynamics.sensors.solver.dense import DENSE
from kfdyn.dynamics.sensors.solver.problem import Group, Problem
from kfdyn.dynamics.sensors.solver.program import Program
from kfdyn.dynamics.sensors.solver.programs import by_sweeps, is_swept, states_of
from kfdyn.dynamics.sensors.solver.sweeps import Means, Spread, answered, deviations_in, rates_of_tree, run, source_of
from kfdyn.multibody import LinkTerms

# States whose matrices are held at once.
AT_ONCE = 1024
UPPER = np.triu_indices(6)


def means(problem: Problem, group: Group) -> Iterator[tuple[Index, tuple[Array, ...]]]:
    """The five quantities of some states, until all had their turn."""
    y = problem.clean_readings

    def sweep(program: Program, members: Index) -> tuple[Means, Mask]:
        fine, found = run(problem.system, program, states_of(problem, program, members), y[members])
        return found, answered(fine, found.a)

    for members, _, found, _ in by_sweeps(problem, group, sweep):
        yield members, found.five


def deviations(problem: Problem, group: Group, alone: bool = True) -> Iterator[tuple[Index, dict[str, Array]]]:
    """Standard deviations of some states; unless ``alone``, states that need a program of their own are left out."""

    def sweep(program: Program, members: Index) -> tuple[Spread, Mask]:
        fine, spread = deviations_in(problem.system, program, states_of(problem, program, members))
        return spread, answered(fine, spread.a)

    for members, _, spread, good in by_sweeps(problem, group, sweep, alone=alone):
        found = dict(zip(QUANTITIES, spread.only(good).five))
        if problem.system.couplings:
            found |= _of_shared(problem, group._replace(members=members[good]), found)
        yield members[good], found


def _of_shared(problem: Problem, group: Group, found: dict[str, Array]) -> dict[str, Array]:
    """Deviations (B, nv) of a and tau from those of the open tree; what several hinges share has columns of its own."""
    system, shared = problem.system, problem.system._expansion
    out, own = {}, np.asarray(shared.own_v)
    place = {int(k): i for i, k in enumerate(group.members)}
    for key in ("a", "tau"):
        out[key] = np.empty((len(group.members), system.nv))
        out[key][:, shared.here_v] = found[key][:, shared.plain_v]
        for members, answer in respond(problem, group, key, own) if group.members.size else ():
            variance = np.diagonal(answer[key][:, own], axis1=-2, axis2=-1)
            out[key][np.ix_(np.array([place[int(k)] for k in members]), own)] = np.sqrt(np.maximum(variance, 0.0))
    return out


def respond(problem: Problem, group: Group, of: str, columns: Index) -> Iterator[tuple[Index, dict[str, Array]]]:
    """Covariances of all quantities with some entries of one, (B, ..., columns): the sweep answers a row for each."""
    system, count = problem.system, len(columns)
    unit = np.zeros((system.nv if of in ("a", "tau") else 6 * system.n_bodies, count))
    unit[columns, np.arange(count)] = 1.0
    source, few = source_of(system, of, unit), max(1, AT_ONCE // max(count, 1))

    def sweep(program: Program, members: Index) -> tuple[dict[str, Array], Mask]:
        size = len(members)
        states = states_of(problem, program, members).still().only(np.repeat(np.arange(size), count))
        y = np.zeros((size * count, len(problem.bias)))
        fine, answers = run(system, program, states, y, source[np.tile(np.arange(count), size)])
        found = [x.reshape(size, count, *x.shape[1:]) for x in answers.five]
        good = answered(fine, found[0].reshape(size, -1))
        return {key: np.moveaxis(x, 1, -1) for key, x in zip(QUANTITIES, found)}, good

    for part in group.parts(few):
        for members, _, answer, good in by_sweeps(problem, part, sweep, general=True):
            if good.any():
                yield members[good], {key: x[good] for key, x in answer.items()}


def solutions(problem: Problem, group: Group, spreads: bool = False) -> Iterator[Solved]:
    """Over some states at a time, readings held against the estimate; covariances of multipliers if ``spreads``."""
    y = problem.clean_readings

    def sweep(program: Program, members: Index) -> tuple[tuple[Means, Spread | None], Mask]:
        states, spread = states_of(problem, program, members), None
        fine, found = run(problem.system, program, states, y[members], checks=True)
        good = answered(fine, found.a)
        if spreads:
            fine, spread = deviations_in(problem.system, program, states, blocks=True)
            good &= answered(fine, spread.a)
        return (found, spread), good

    for part in group.parts(AT_ONCE):
        for members, program, (found, spread), good in by_sweeps(problem, part, sweep):
            if good.any():
                yield _solved(problem, program, members[good], found.only(good), spread and spread.only(good))


def _solved(problem: Problem, program: Program, members: Index, found: Means, spread: Spread | None) -> Solved:
    """Predictions and multipliers of some states: told by the sweep of rows, of all others from the predictions."""
    system, sensors, layout, terms = problem.system, problem.sensors, program.layout, problem.terms(members)
    readings, size = [y[members] for y in problem.readings], len(members)
    alpha = found.alpha.copy()
    alpha[:, :, 3:] -= problem.gravity[members, None]
    predicted, pulls = [], [np.zeros(y.shape) for y in readings]
    armature = layout.dofs.armature
    rotor = rates_of_tree(system, armature * rates_of_tree(system, found.a), back=True)
    for sensor, y in zip(sensors, readings):
        if sensor.is_force:
            predicted.append(y.copy())
            continue
        if sensor.at_hinges:
            value = predicted_at_hinges(sensor, system, found.a[..., None], found.tau[..., None], rotor[..., None])[
                ..., 0
            ]
        else:
            value = np.zeros(y.shape)
            for site in sensor.sites(system):
                rows = sensor.rows(system, site, terms)
                for part, felt in ((rows.S, found.f), (rows.K, alpha)):
                    if part is not None:
                        value[:, site.rows] += np.einsum("bri,bi->br", part, felt[:, site.k])
                if rows.offset is not None:
                    value[:, site.rows] += rows.offset
        predicted.append(value + sensor.biases(system))
    weighed = []
    for k, (node, first, left) in enumerate(zip(layout.nodes, program.first_row, program.left)):
        at = first
        for piece in node.rows:
            pulls[piece.sensor][:, piece.seen] = found.m[:, at : at + len(piece.seen)]
            at += len(piece.seen)
        for push in node.spread:  # x = μ + ΣP*λ, so Σ⁻¹(x − μ) is P*λ, also where Σ has no inverse
            pull = np.einsum("bij,bi->bj", layout.wrench(push, terms), found.lam[:, k])
            pulls[push.sensor][:, push.seen] = pull
            predicted[push.sensor][:, push.seen] += pull @ push.weight
        u = found.w[:, program.places[k] : program.places[k] + left] if k in program.places else None
        at = 0
        for push in node.loose:
            assert u is not None
            x = (
                u @ program.joined[k][at : at + len(push.seen)].T
                if k in program.joined
                else u[:, at : at + len(push.seen)]
            )
            predicted[push.sensor][:, push.seen], at = x, at + len(push.seen)
        for join, places in node.joined_at(left):
            assert u is not None
            for piece, own in join.rows:
                pulls[piece.sensor][:, piece.seen] = u[:, places][:, own]
            weighed += [piece for piece, _ in join.info]
        weighed += [*node.info, *node.loose]
    for one in weighed:
        miss = predicted[one.sensor][:, one.seen] - readings[one.sensor][:, one.seen]
        pulls[one.sensor][:, one.seen] = miss @ one.weight
    log_det = np.log(np.abs(found.pivot)).sum(-1) - program.log_scale - 2.0 * layout.log_weights
    Z = np.zeros((size, 0, 12, 12)) if spread is None else _blocks(spread.Z)
    few = () if spread is None else tuple(_covariances(program, spread, Z, terms))
    sizes = list(layout.of_readings)
    return Solved(members, predicted, pulls, log_det, few, sizes, alpha, found.lam, Z, terms)


def _blocks(packed: Array) -> Array:
    """Z (B, n, 12, 12) of (α, λ) from its 78 numbers."""
    Z = np.zeros((*packed.shape[:2], 12, 12))
    for at, part in ((0, packed[..., :21]), (6, packed[..., 57:])):
        Z[..., at + UPPER[0], at + UPPER[1]] = Z[..., at + UPPER[1], at + UPPER[0]] = part
    Z[..., :6, 6:] = packed[..., 21:57].reshape(*packed.shape[:2], 6, 6)
    Z[..., 6:, :6] = Z[..., :6, 6:].swapaxes(-1, -2)
    return Z


def _covariances(program: Program, spread: Spread, Z: Array, terms: LinkTerms) -> Iterator[Few]:
    """Cov m of pieces and forces, node by node: −Z_mm of rows, R⁻¹ − R⁻¹ cov(prediction) R⁻¹ of the others."""
    layout = program.layout
    for k, (node, left) in enumerate(zip(layout.nodes, program.left)):
        count = left + node.n_dofs + node.n_rows
        V = spread.V[:, program.joint[k] : program.joint[k + 1]].reshape(len(Z), count, count)

        def seen(matrix: Array, places: Index | slice) -> Array:
            return matrix[:, places][:, :, places]

        at = left + node.n_dofs
        for piece in node.rows:
            here = slice(at, at + len(piece.seen))
            yield Few(piece.sensor, piece.seen, -seen(V, here))
            at = here.stop
        for piece in node.info:
            rows = layout.rows(piece, terms)
            part, inner = (
                (rows.e, seen(V, slice(left, left + node.n_dofs))) if rows.K is None else (rows.K, Z[:, k, :6, :6])
            )
            assert part is not None
            yield Few.of_weight(piece, part @ inner @ part.swapaxes(-1, -2))
        at = 0
        for push in node.loose:  # of a wide force λ holds too few digits
            T = (
                program.joined[k][at : at + len(push.seen)]
                if k in program.joined
                else np.eye(left)[at : at + len(push.seen)]
            )
            if not push.flat:
                yield Few.of_weight(push, T @ V[:, :left, :left] @ T.T)
            at += len(push.seen)
        for join, places in node.joined_at(left):
            own = seen(V, places)
            for piece, new in join.rows:
                yield Few(piece.sensor, piece.seen, -seen(own, new))
            for piece, new in join.info:
                yield Few.of_weight(piece, seen(own, new))
        for push in node.spread:
            P = layout.wrench(push, terms)
            yield Few(push.sensor, push.seen, -(P.swapaxes(-1, -2) @ Z[:, k, 6:, 6:] @ P))


SWEPT = Solver(means, deviations, respond, solutions)


def solver_of(problem: Problem) -> Solver:
    """Return the solver of a problem."""
    return SWEPT if is_swept(problem) else DENSE
