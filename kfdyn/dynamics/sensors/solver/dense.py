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

from kfdyn.dynamics.sensors.dofs import dof_labels, dofs_of
from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES, Few, Solved, Solver, predicted_at_hinges
from kfdyn.dynamics.sensors.solver.joins import coordinate_maps, loop_terms
from kfdyn.dynamics.sensors.solver.layout import make_layout
from kfdyn.dynamics.sensors.solver.order import find_order
from kfdyn.dynamics.sensors.solver.pivoting import ROOT_CONDITION
from kfdyn.dynamics.sensors.solver.problem import Group, Problem
from kfdyn.errors import UnobservableError
from kfdyn.multibody import LinkTerms
from kfdyn.spatial import rigid_transform

# States solved at once.
AT_ONCE = 256
# Share of a direction below which a part of it is rounding, and not named; and below which a quantity does not follow.
NAMED, FOLLOWS = 1e-6, 1e-7
# Eigenvalue of the matrix, scaled so that its largest entries are 1, below which it is rounding.
NULL = 1e-11
# One factor of all covariances, which an estimate does not depend on: with it variances that are large may be found.
SHARPER = 1e-16
AXES = ("moment x", "moment y", "moment z", "force x", "force y", "force z")


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
        """Of a quantity (B, ·)."""
        return _value(self.of.linear.of[key], self.x[:, : self.of.n])

    def cov(self, one: str, other: str) -> Array:
        """Of two quantities, (B, ·, ·)."""
        n, maps = self.of.n, self.of.linear.of
        return maps[one][..., :-1] @ self.inverse[:, :n, :n] @ maps[other][..., :-1].swapaxes(-1, -2)

    def deviation(self, key: str) -> Array:
        """Of a quantity, (B, ·)."""
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
            raise undetermined(problem, group, int(part.members[~good][0])).error()
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


class Undetermined(NamedTuple):
    """One state without an answer: directions by their parts, the sentence, and deviations, some of them infinite."""

    unseen: tuple[tuple[str, ...], ...]
    repeated: tuple[tuple[str, ...], ...]
    text: str
    std: dict[str, Array]

    def error(self) -> UnobservableError:
        """The exception that says so."""
        return UnobservableError(self.text, self.unseen, self.repeated)


def undetermined(problem: Problem, group: Group, i: int) -> Undetermined:
    """Name the null vectors of the matrix of state i; if it is merely nearly singular, the vector nearest to one."""
    of = matrix(problem, group, np.array([i]))
    n, scale, lead = of.n, of.scale[0], problem.lead
    values, vectors = np.linalg.eigh(of.K[0])
    null = np.abs(values) <= max(NULL, float(np.abs(values).min()))
    names = _unknown_names(problem)
    unknowns, rows = _basis(vectors[:n, null].T), _basis(vectors[n:, null].T)
    readings = _row_names(problem, of.seen)
    unseen = tuple(_parts(vector, [name for name, _ in names]) for vector in unknowns)
    repeated = tuple(filter(None, (_parts(vector, readings) for vector in rows)))
    where = f" (batch entry {tuple(map(int, np.unravel_index(i, lead)))})" if lead else ""
    if _too_wide(problem, group, i):
        text = _wide_sentence(unseen, where)
    else:
        text = _sentence(problem, unknowns, names, unseen, repeated, where)
    inverse = (vectors[:, ~null] / values[~null]) @ vectors[:, ~null].T * np.outer(scale, scale)
    free, std = (unknowns * scale[:n]).T, {}
    for key, rows_of in of.linear.of.items():
        A = rows_of[0, :, :-1]
        follows = np.abs(A @ free).max(1, initial=0.0) > FOLLOWS * np.abs(free).max(initial=0.0)
        value = np.sqrt(np.maximum(((A @ inverse[:n, :n]) * A).sum(1), 0.0))
        value = np.where(follows, np.inf, value)
        std[key] = value if key in QUANTITIES[:2] else value.reshape(problem.system.n_bodies, 6)
    return Undetermined(unseen, repeated, text, std)


def _too_wide(problem: Problem, group: Group, i: int) -> bool:
    """Whether a state that is refused is determined after all, but by readings too wide to be told from none."""
    if dofs_of(problem.system).width > 6 or not problem.system.nv:
        return False
    sensors = tuple(sensor.replace(cov=SHARPER * sensor.cov) for sensor in problem.sensors)
    sharper = make_layout(problem.system, sensors, group.pattern, problem.loop_rows)
    return find_order(sharper, problem.terms(np.array([i]))).suits


def _basis(vectors: Array) -> Array:
    """A basis (d, n) of the rows' span, each with as few parts as a reduction to echelon form leaves it."""
    if not vectors.size:
        return np.zeros((0, vectors.shape[-1] if vectors.ndim == 2 else 0))
    _, size, basis = np.linalg.svd(vectors, full_matrices=False)
    largest = np.abs(vectors).max()
    basis = basis[size > NAMED * max(1.0, size[0])] if largest > NAMED else basis[:0]
    for i in range(len(basis)):
        column = int(np.abs(basis[i]).argmax())
        basis[i] /= basis[i, column]
        for j in range(len(basis)):
            if j != i:
                basis[j] -= basis[j, column] * basis[i]
    return np.where(np.abs(basis) > NAMED, basis, 0.0)


def _parts(vector: Array, names: list[str]) -> tuple[str, ...]:
    order = np.argsort(-np.abs(vector), kind="stable")
    return tuple(dict.fromkeys(names[i] for i in order if vector[i] and names[i]))


def _unknown_names(problem: Problem) -> list[tuple[str, int]]:
    """Names of the entries of θ, and the body where each is."""
    system, out = problem.system, dof_labels(problem.system)
    for sensor in problem.sensors:
        if sensor.is_force:
            size, k = sensor.size(system), sensor.sites(system)[0].k
            out += [(f"external force on {sensor.frame!r} ({axis})", k) for axis in AXES[-size:]]  # type: ignore[attr-defined]
    for i, rows in enumerate(problem.loop_rows):
        out += [(f"force of loop {i}", 0) for _ in rows]
    return out


def _row_names(problem: Problem, seen: list[Index]) -> list[str]:
    """Names of the readings; those of forces are priors, and are not told, nor rows of loops."""
    out = []
    for sensor, here in zip(problem.sensors, seen):
        sites = sensor.sites(problem.system)
        for site in sites:
            where = f" at hinge {problem.system.hinge_names[site.k]!r}" if len(sites) > 1 else ""
            count = int(((here >= site.rows.start) & (here < site.rows.stop)).sum())
            out += ["" if sensor.is_force else f"{sensor}{where}"] * count
    return out + [""] * sum(len(rows) for rows in problem.loop_rows)


def _sentence(
    problem: Problem,
    unknowns: Array,
    names: list[tuple[str, int]],
    unseen: tuple[tuple[str, ...], ...],
    repeated: tuple[tuple[str, ...], ...],
    where: str,
) -> str:
    """The message, at most some directions of each kind, and what would help."""
    said = []
    unseen, repeated = tuple(dict.fromkeys(unseen)), tuple(dict.fromkeys(repeated))
    if unseen:
        said.append(f"the sensors leave undetermined: {_told(unseen)}{where}")
        node = names[int(np.abs(unknowns[0]).argmax())][1] if len(unknowns) else 0
        hinge, body = problem.system.hinge_names[node], problem.system.body_names[node]
        if any(part.startswith("mode") for part in unseen[0]):
            part = next(part for part in unseen[0] if part.startswith("mode"))
            said.append(
                f"a JointTorque of {part} (0, where nothing drives it), or an Imu on a frame there, would cure it"
            )
        elif any("force" in part for part in unseen[0]):
            said.append(f"a ForceTorque inboard of {body!r}, or a finite covariance of that force, would cure it")
        else:
            read = (s for s in problem.sensors if s.at_hinges and s.factors(problem.system)[0].any())  # type: ignore[attr-defined]
            torque = "" if any(site.k == node for s in read for site in s.sites(problem.system)) else "JointTorque or "
            said.append(f"a {torque}JointAcceleration at hinge {hinge!r}, or an Imu on {body!r}, would cure it")
    if repeated:
        told = "; ".join(", ".join(parts[:4]) + (" and more" if len(parts) > 4 else "") for parts in repeated[:4])
        said.append(
            f"exact readings (covariance 0, or all but 0) that say the same twice: {told}{where}; give one of them a "
            "covariance, or leave it out"
        )
    return "; ".join(said) or f"the equations are singular to working precision{where}; rescale the covariances"


def _told(unseen: tuple[tuple[str, ...], ...]) -> str:
    """Some of the directions, each by some of its parts."""
    told = "; ".join(" with ".join(parts[:4]) + (" and more" if len(parts) > 4 else "") for parts in unseen[:4])
    return told + (f"; and {len(unseen) - 4} more" if len(unseen) > 4 else "")


def _wide_sentence(unseen: tuple[tuple[str, ...], ...], where: str) -> str:
    """The message where variances alone are the trouble."""
    told = f": {_told(tuple(dict.fromkeys(unseen)))}" if unseen else ""
    return (
        f"near a singular state the sensors leave variances beyond {ROOT_CONDITION:.0e} in the robot's own units{where}"
        f", which rounding cannot tell from undetermined{told}; divide the covariances of all sensors by one number, "
        f"such as {1 / SHARPER:.0e}: the estimate stays the same, and its covariances are those divided by it; or add "
        "a JointAcceleration or an Imu there"
    )
