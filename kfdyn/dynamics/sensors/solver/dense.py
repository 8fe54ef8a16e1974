"""The dense estimate: all readings of a state at once, through one symmetric matrix; it answers, or says what lacks.

Unknown are θ = (accelerations of the coordinates, external forces, forces of loops). With every quantity as Aθ + c, and
the readings y = Gθ + c + r of covariance R, multipliers m and estimates solve

    [[0, G*], [G, −R]] (θ, m) = (0, y − c),   cov θ = (K⁻¹)_θθ,   cov m = −(K⁻¹)_mm

It serves bodies that bend, for which no sweep is compiled, and says of any system why the sweeps have no answer. A null
vector of the matrix is what no sensor sees, or what exact readings say twice. Cost O(N³).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES, Declined, Few, Solved, Solver, predicted_at_hinges
from kfdyn.dynamics.sensors.solver.joins import coordinate_maps, loop_terms
from kfdyn.dynamics.sensors.solver.pivoting import ROOT_CONDITION
from kfdyn.dynamics.sensors.solver.problem import Group, Problem
from kfdyn.multibody import LinkTerms
from kfdyn.spatial import rigid_transform

# States solved at once.
AT_ONCE = 256
# Eigenvalue of the matrix, scaled so that its largest entries are 1, below which it is rounding.
NULL = 1e-11


class Linear(NamedTuple):
    """B states as linear maps, c in the last column: the quantities (B, ·, n + 1) by name, readings a sensor, loops."""

    of: dict[str, Array]
    readings: list[Array]
    loops: Array
    terms: LinkTerms


def linear(problem: Problem, members: Index) -> Linear:
    """Accelerations outward, forces inward, readings off both, all columns at once."""
    system, sensors, size = problem.system, problem.sensors, len(members)
    terms, dofs, maps = problem.terms(members), dofs_of(problem.system), coordinate_maps(problem.system)
    n, nv, D = system.n_bodies, system.nv, terms.inertia.shape[-1]
    forces = {i: sensor.size(system) for i, sensor in enumerate(sensors) if sensor.is_force}
    start = dict(zip(forces, nv + np.cumsum([0, *forces.values()])))
    held = [(loop, row) for loop, rows in enumerate(problem.loop_rows) for row in rows]
    first = nv + sum(forces.values())
    count = first + len(held) + 1
    a, push = np.zeros((size, dofs.nv, count)), np.zeros((size, n, D, count))
    a[:, :, :nv] = np.eye(nv) if maps is None else maps[0]
    for i, at in start.items():
        push[:, sensors[i].sites(system)[0].k, :, at : at + forces[i]] += sensors[i].wrench(system, terms)  # type: ignore[attr-defined]
    external, loops = push[:, :, :6].copy(), np.zeros((size, len(held), count))
    phi = getattr(terms, "phi", None)
    phi = rigid_transform(terms.l[:, :n]) if phi is None else phi
    alpha, f = np.zeros((2, size, n, D, count))
    for k in dofs.order:
        own, p = dofs.of(k), int(system.parent[k])
        alpha[:, k] = terms.H[:, own].swapaxes(-1, -2) @ a[:, own]
        alpha[:, k, :, -1] += terms.eta[:, k]
        if p >= 0:
            alpha[:, k] += phi[:, k].swapaxes(-1, -2) @ alpha[:, p]
    for at, (loop, row) in enumerate(held):
        of, drift = loop_terms(system, terms, problem.gravity[members], loop)
        loops[:, at, -1] = drift[:, row]
        for side, rows in of.items():
            name = getattr(system.loops[loop], f"frame_{side}")
            k = system.locate(system.loops[loop].moves_with(name))[0]
            push[:, k, :6, first + at] += rows[:, row]
            loops[:, at] += np.einsum("bi,bic->bc", rows[:, row], alpha[:, k])
    tau = np.zeros_like(a)
    for k in reversed(dofs.order):
        own, p = dofs.of(k), int(system.parent[k])
        f[:, k] += terms.inertia[:, k] @ alpha[:, k] - push[:, k]
        f[:, k, :, -1] += terms.xi[:, k]
        tau[:, own] = terms.H[:, own] @ f[:, k]
        if p >= 0:
            f[:, p] += phi[:, k] @ f[:, k]
    rotor = dofs.armature[:, None] * a
    tau = tau + rotor
    if maps is not None:
        tau, rotor, a = maps[0].T @ tau, maps[0].T @ rotor, maps[1] @ a
    readings = []
    for i, sensor in enumerate(sensors):
        y = np.zeros((size, sensor.size(system), count))
        if sensor.is_force:
            y[:, range(forces[i]), range(start[i], start[i] + forces[i])] = 1.0
        elif sensor.at_hinges:
            y = predicted_at_hinges(sensor, system, a, tau, rotor)
        for site in () if sensor.is_force or sensor.at_hinges else sensor.sites(system):
            felt_by = sensor.rows(system, site, terms)
            for part, felt in ((felt_by.S, f), (felt_by.K, alpha)):
                if part is not None:
                    y[:, site.rows] += part @ felt[:, site.k]
            if felt_by.offset is not None:
                y[:, site.rows, -1] += felt_by.offset
        y[:, :, -1] += sensor.biases(system)
        readings.append(y)
    moved = alpha[:, :, :6].copy()
    moved[:, :, 3:, -1] += problem.gravity[members, None]
    flat = [x.reshape(size, 6 * n, count) for x in (moved, f[:, :, :6], external)]
    return Linear(dict(zip(QUANTITIES, (a, tau, *flat))), readings, loops, terms)


class Matrix(NamedTuple):
    """K of some states, scaled by ``scale`` (B, ·) on both sides; θ has ``n`` entries; ``seen`` of each sensor."""

    linear: Linear
    K: Array
    scale: Array
    right: Array
    n: int
    seen: list[Index]


def matrix(problem: Problem, group: Group, members: Index) -> Matrix:
    """Put all readings that are there together, and the rows of loops, which are exact."""
    found = linear(problem, members)
    seen, parts, right, R = [], [], [], []
    for sensor, present, rows, y in zip(problem.sensors, group.pattern, found.readings, problem.readings):
        cov = sensor.covariance(problem.system)
        here = np.flatnonzero(np.isfinite(cov.diagonal()) & np.array(present, bool))
        seen.append(here)
        parts.append(rows[:, here])
        right.append(y[members][:, here])
        R.append(cov[np.ix_(here, here)])
    parts.append(found.loops)
    G = np.concatenate(parts, axis=1)
    n, size = G.shape[-1] - 1, G.shape[1]
    K = np.zeros((len(members), n + size, n + size))
    K[:, n:, :n], K[:, :n, n:] = G[..., :n], G[..., :n].swapaxes(-1, -2)
    at = n
    for block in R:
        K[:, at : at + len(block), at : at + len(block)] = -block
        at += len(block)
    y = np.concatenate([np.zeros((len(members), n)), *right, np.zeros(found.loops.shape[:2])], axis=1)
    y[:, n:] -= G[..., n]
    scale = np.ones(y.shape)
    for _ in range(20):
        largest = np.abs(K * scale[:, :, None] * scale[:, None]).max(-1, initial=0.0)
        scale /= np.sqrt(np.where(largest * scale > NULL * scale, largest, 1.0))
    return Matrix(found, K * scale[:, :, None] * scale[:, None], scale, y, n, seen)


class Answer(NamedTuple):
    """The solution of some states: what K is of, (θ, m), and K⁻¹."""

    members: Index
    of: Matrix
    x: Array
    inverse: Array

    def mean(self, key: str) -> Array:
        """Return the mean of a quantity (B, ·)."""
        return _value(self.of.linear.of[key], self.x[:, : self.of.n])

    def cov(self, one: str, other: str) -> Array:
        """Return the covariance of two quantities, (B, ·, ·)."""
        n, maps = self.of.n, self.of.linear.of
        return maps[one][..., :-1] @ self.inverse[:, :n, :n] @ maps[other][..., :-1].swapaxes(-1, -2)

    def deviation(self, key: str) -> Array:
        """Return the standard deviation of a quantity, (B, ·)."""
        n, A = self.of.n, self.of.linear.of[key][..., :-1]
        return np.sqrt(np.maximum(((A @ self.inverse[:, :n, :n]) * A).sum(-1), 0.0))


def _value(rows: Array, theta: Array) -> Array:
    return np.asarray((rows[..., :-1] @ theta[..., None])[..., 0] + rows[..., -1])


def answers(problem: Problem, group: Group, alone: bool = True) -> Iterator[Answer]:
    """Solve all states of a group; one that cannot be is refused by name or, unless ``alone``, left out."""
    for part in group.parts(AT_ONCE):
        of = matrix(problem, group, part.members)
        inverse = _inverse(of.K)
        good = np.abs(inverse).max((1, 2), initial=0.0) <= ROOT_CONDITION  # NaN is not
        if alone and not good.all():
            raise Declined(group, int(part.members[~good][0]))
        K, scale, inverse = of.K[good], of.scale[good], inverse[good]
        inverse = inverse + inverse @ (np.eye(K.shape[-1]) - K @ inverse)
        right = of.right[good] * scale
        x = np.zeros_like(right)
        for _ in range(3):
            x = x + (inverse @ (right - (K @ x[..., None])[..., 0])[..., None])[..., 0]
        here = of.linear
        few = Linear({k: a[good] for k, a in here.of.items()}, [a[good] for a in here.readings], here.loops, here.terms)
        kept = of._replace(linear=few, K=K, scale=scale, right=right)
        yield Answer(part.members[good], kept, x * scale, inverse * scale[:, :, None] * scale[:, None])


def _inverse(K: Array) -> Array:
    try:
        return np.asarray(np.linalg.inv(K))
    except np.linalg.LinAlgError:
        return K + np.nan if len(K) == 1 else np.concatenate([_inverse(one[None]) for one in K])


def means(problem: Problem, group: Group) -> Iterator[tuple[Index, tuple[Array, ...]]]:
    """The five quantities of some states, until all had their turn."""
    for one in answers(problem, group):
        found = [one.mean(key) for key in QUANTITIES]
        yield one.members, (*found[:2], *(x.reshape(len(x), problem.system.n_bodies, 6) for x in found[2:]))


def deviations(problem: Problem, group: Group, alone: bool = True) -> Iterator[tuple[Index, dict[str, Array]]]:
    """Standard deviations of some states; unless ``alone``, those without an answer are left out."""
    for one in answers(problem, group, alone):
        found = {key: one.deviation(key) for key in QUANTITIES}
        n = problem.system.n_bodies
        yield one.members, {k: x if k in QUANTITIES[:2] else x.reshape(len(x), n, 6) for k, x in found.items()}


def respond(problem: Problem, group: Group, of: str, columns: Index) -> Iterator[tuple[Index, dict[str, Array]]]:
    """Covariances of all quantities with some entries of one, (B, ..., columns)."""
    for one in answers(problem, group):
        yield one.members, {key: one.cov(key, of)[..., columns] for key in QUANTITIES}


def solutions(problem: Problem, group: Group, spreads: bool = False) -> Iterator[Solved]:
    """Readings held against the estimate, some states at a time, with covariances of multipliers."""
    for one in answers(problem, group):
        n, at, few, pulls, sizes, theta = one.of.n, one.of.n, [], [], [], one.x[:, : one.of.n]
        for i, (seen, rows) in enumerate(zip(one.of.seen, one.of.linear.readings)):
            here = slice(at, at + len(seen))
            pull, size = np.zeros(rows.shape[:2]), np.ones(rows.shape[1])
            pull[:, seen], size[seen] = one.x[:, here], 1.0 / one.of.scale[0, here] if len(one.x) else 1.0
            few.append(Few(i, seen, -one.inverse[:, here, here]))
            pulls.append(pull)
            sizes.append(size)
            at = here.stop
        log_det = np.linalg.slogdet(one.of.K)[1] - 2.0 * np.log(one.of.scale).sum(-1)
        predicted = [_value(rows, theta) for rows in one.of.linear.readings]
        none = np.zeros((len(theta), 0, n))
        yield Solved(one.members, predicted, pulls, log_det, tuple(few), sizes, none, none, none, one.of.linear.terms)


DENSE = Solver(means, deviations, respond, solutions)
