"""Name what a set of sensors leaves undetermined, and exact readings that repeat each other, with the cure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.dofs import dof_labels, dofs_of
from kfdyn.dynamics.sensors.joint_sensors import JointPrior
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES, Declined
from kfdyn.dynamics.sensors.solver.dense import NULL, matrix
from kfdyn.dynamics.sensors.solver.joins import coordinate_maps
from kfdyn.dynamics.sensors.solver.layout import dof_units, make_layout, natural_units, terms_at_rest
from kfdyn.dynamics.sensors.solver.order import find_order
from kfdyn.dynamics.sensors.solver.pivoting import ROOT_CONDITION
from kfdyn.dynamics.sensors.solver.problem import Group, Problem
from kfdyn.dynamics.sensors.solver.swept import SWEPT
from kfdyn.errors import UnobservableError

# Share of a direction below which a part of it is rounding, and not named; and below which a quantity does not follow.
NAMED, FOLLOWS = 1e-6, 1e-7
# One factor of all covariances, which an estimate does not depend on: with it variances that are large may be found.
SHARPER = 1e-16
AXES = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
# Accelerations of a system that is too large for its dense matrix; and how wide priors are there, in natural scales.
LARGE, WIDE = 400, 1e3
# Share of its deviation by which what follows a prior twice as wide must be larger.
MOVED = 1e-4


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
    """Say what state i lacks: by null vectors of the dense matrix, or by priors where that would be too large."""
    return (_by_null_vectors if problem.system.nv <= LARGE else _by_priors)(problem, group, i)


def _by_null_vectors(problem: Problem, group: Group, i: int) -> Undetermined:
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


def _by_priors(problem: Problem, group: Group, i: int) -> Undetermined:
    """Whatever follows a wide prior of all accelerations and forces is undetermined: two sweeps, O(N), and no parts."""
    system, where = problem.system, f" (batch entry {i})" if problem.lead else ""
    at_rest = terms_at_rest(system)
    unit, found = natural_units(system), []
    moves = dof_units(at_rest.H[0], unit)
    maps = coordinate_maps(system)
    size = moves if maps is None else np.abs(maps[1]) @ moves
    for wide in (WIDE, 2.0 * WIDE):
        sensors = tuple(_bounded(sensor, wide / unit[6:]) for sensor in problem.sensors)
        prior = JointPrior(np.ones(system.nv))
        prior = prior.replace(cov=(wide * size[prior.entries(system)]) ** 2)
        pinned = replace(
            problem, sensors=(*sensors, prior), readings=[*problem.readings, np.zeros((problem.size, system.nv))]
        )
        one = Group((*group.pattern, (True,) * system.nv), np.array([i]))
        try:
            found.append({key: x[0] for _, part in SWEPT.deviations(pinned, one) for key, x in part.items() if len(x)})
        except Declined:
            repeated = tuple(str(sensor) for sensor in problem.sensors if not sensor.is_force and not sensor.cov.all())
            text = _sentence(problem, np.zeros((0, 0)), [], (), (repeated,) if repeated else (), where)
            lost = dict.fromkeys(QUANTITIES[:2], np.full(system.nv, np.inf))
            lost |= dict.fromkeys(QUANTITIES[2:], np.full((system.n_bodies, 6), np.inf))
            return Undetermined((), (repeated,), text, lost)
    std = {key: np.where(found[1][key] > (1 + MOVED) * x, np.inf, x) for key, x in found[0].items()}
    share = np.where(np.isinf(std["a"]), found[1]["a"] / size, 0.0)  # the freest first
    pushed = np.isinf(std["external_forces"]).any(-1)
    names = dof_labels(system) + [(f"external force on {name!r}", k) for k, name in enumerate(system.body_names)]
    unknowns = np.concatenate([share / max(share.max(initial=0.0), 1e-300), 2.0 * pushed])[None]
    unseen = tuple(filter(None, [_parts(unknowns[0], [name for name, _ in names])]))
    return Undetermined(unseen, (), _sentence(problem, unknowns, names, unseen, (), where), std)


def _bounded(sensor: Sensor, wide: Array) -> Sensor:
    """A sensor whose infinite variances are wide ones."""
    size = sensor.cov.shape[-1] if sensor.cov.ndim else 6
    if not np.isinf(sensor.cov).any():
        return sensor
    cov = np.array(sensor.cov) if sensor.cov.ndim else np.full(size if sensor.moment else 3, sensor.cov)  # type: ignore[attr-defined]
    at = np.isinf(cov.diagonal() if cov.ndim == 2 else cov)
    into = cov.reshape(-1)[:: len(cov) + 1] if cov.ndim == 2 else cov
    into[at] = wide[-len(at) :][at] ** 2
    return sensor.replace(cov=cov)


def _too_wide(problem: Problem, group: Group, i: int) -> bool:
    """Tell whether a state that is refused is determined after all, but by readings too wide to be told from none."""
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
