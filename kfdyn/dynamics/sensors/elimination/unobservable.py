"""What a set of sensors leaves undetermined, and which exact readings say the same twice: by name, with the cure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.dofs import dof_labels, dofs_of
from kfdyn.dynamics.sensors.elimination.factor import Factor, spans
from kfdyn.dynamics.sensors.elimination.gather import gather, unsuited
from kfdyn.dynamics.sensors.elimination.layout import Layout, make_layout
from kfdyn.dynamics.sensors.elimination.loop_unknowns import READ, coordinate_maps
from kfdyn.dynamics.sensors.elimination.message import at_hinge
from kfdyn.dynamics.sensors.elimination.pivoting import ROOT_CONDITION
from kfdyn.dynamics.sensors.joint_sensors import JointTorque
from kfdyn.dynamics.sensors.sensor import Array
from kfdyn.errors import UnobservableError
from kfdyn.multibody import LinkTerms

# Share of a direction below which a part of it is rounding, and not named.
NAMED = 1e-6
# One factor of all covariances, which an estimate does not depend on: with it variances that are large may be found.
SHARPER = 1e-16
AXES = ("moment x", "moment y", "moment z", "force x", "force y", "force z")


class Undetermined(NamedTuple):
    """Null vectors of the KKT matrix of one state.

    ``a`` (d, nv), ``forces`` (d, n_bodies, 6) are directions in which accelerations and external forces can move
    unseen; ``unseen`` and ``repeated`` name the parts of each, ``text`` is the sentence.
    """

    a: Array
    forces: Array
    unseen: tuple[tuple[str, ...], ...]
    repeated: tuple[tuple[str, ...], ...]
    text: str
    pins: dict[int, Array]

    def error(self) -> UnobservableError:
        """The exception that says so."""
        return UnobservableError(self.text, self.unseen, self.repeated)


def undetermined(layout: Layout, terms: LinkTerms, lead: tuple[int, ...] = (), entry: int = 0) -> Undetermined:
    """Find the null vectors for the first state of ``terms``: at the roots, and from there outward."""
    one = type(terms)(*(part[:1] for part in terms))
    factor = gather(layout, one)
    free, bound, pins = [], [], {}
    for k in layout.order:
        if layout.nodes[k].parent >= 0:
            continue
        vectors, sign = _null_at(factor, k)
        if vectors.size:
            pins[k] = vectors @ np.diag(sign) @ vectors.T
            for vector in vectors.T:
                unknowns, rows = _outward(factor, k, vector)
                free.append(unknowns)
                bound.append(rows)
    names, readings = _unknown_names(layout), _row_names(layout)
    unknowns = _basis(np.array(free).reshape(len(free), len(names)))
    rows = _basis(np.array(bound).reshape(len(bound), len(readings)))
    unseen = tuple(_parts(vector, [name for name, _ in names]) for vector in unknowns)
    repeated = tuple(_parts(vector, readings) for vector in rows)
    nv, maps = dofs_of(layout.system).nv, coordinate_maps(layout.system)
    forces = np.zeros((len(unknowns), layout.system.n_bodies, 6))
    at = nv
    for k in layout.order:
        if k == layout.system.n_bodies:  # the world
            continue
        P = factor.nodes[k].data.P_loose[0]
        forces[:, k] = unknowns[:, at : at + P.shape[1]] @ P[:6].T if len(unknowns) else 0.0
        at += P.shape[1]
    where = f" (batch entry {tuple(map(int, np.unravel_index(entry, lead)))})" if lead else ""
    if _too_wide(layout, one):
        text = _wide_sentence(unseen, where)
    else:
        text = _sentence(layout, unknowns, names, unseen, repeated, where)
    moved = unknowns[:, :nv] if maps is None else unknowns[:, :nv] @ maps[1].T
    return Undetermined(moved, forces, unseen, repeated, text, pins)


def _too_wide(layout: Layout, one: LinkTerms) -> bool:
    """Whether a state that is refused is determined after all, but by readings too wide to be told from none."""
    sensors = tuple(sensor.replace(cov=SHARPER * sensor.cov) for sensor in layout.sensors)
    sharper = make_layout(layout.system, sensors, layout.pattern, layout.loop_rows)
    return not unsuited(gather(sharper, one))[0]


def _null_at(factor: Factor, k: int) -> tuple[Array, Array]:
    """Null vectors (n, d) of a root's matrix in natural scales, and the sign with which each may be pinned."""
    own, scale = factor.nodes[k], factor.choices[k].scale
    node = factor.layout.nodes[k]
    block = at_hinge(node, own.data, own.Gamma)[1][0][np.ix_(own.gone, own.gone)] * np.outer(scale, scale)
    if not len(block):
        return np.zeros((0, 0)), np.zeros(0)
    values, vectors = np.linalg.eigh(block)
    null = np.abs(values) <= len(block) / ROOT_CONDITION
    vectors = vectors[:, null]
    # an unknown is pinned by information, a row by noise: the sign follows where the vector lies
    kind = np.where([name[0] in READ for name in own.names], -1.0, 1.0)
    if not own.names:
        kind = np.concatenate([np.ones(own.Gamma.shape[-1] - own.head + node.n_dofs), -np.ones(node.n_rows)])
    sign = np.where((kind[:, None] * vectors**2).sum(0) >= 0, 1.0, -1.0)
    return vectors, sign


def _outward(factor: Factor, root: int, vector: Array) -> tuple[Array, Array]:
    """Back-substitute a null vector: scaled q̈ and unknown forces, and scaled multipliers of the rows."""
    layout = factor.layout
    q, loose = np.zeros(dofs_of(layout.system).nv), {k: np.zeros(layout.nodes[k].n_loose) for k in layout.order}
    m = {k: np.zeros(layout.nodes[k].n_rows) for k in layout.order}
    state: dict[int, Array] = {}
    alpha, lam = spans(factor.width)
    for k in layout.order:
        node, own, choice = layout.nodes[k], factor.nodes[k], factor.choices[k]
        head = own.head
        if k == root:
            whole = np.zeros(head + len(choice.scale))
            whole[own.gone] = vector * choice.scale[choice.eliminate]
        elif node.parent in state:
            above = state[node.parent]
            back = own.phi[0].T
            kept = np.concatenate([back @ above[alpha], back @ above[lam], _carried(factor, k, above)])
            whole = np.zeros(len(own.keep) + len(own.gone))
            whole[own.keep], whole[own.gone] = kept, -(own.X[0] @ kept)
        else:
            continue
        n = own.Gamma.shape[-1]
        z = whole[:n].copy()
        z[:head] += own.E[0] @ whole[n:]
        state[k] = own.parted(z[None, :, None])[0, :, 0]
        scale = choice.scale
        at = node.n_loose
        loose[k] = whole[head : head + at] / scale[:at]
        q[node.dofs] = whole[n : n + node.n_dofs] / scale[n - head : n - head + node.n_dofs]
        m[k] = whole[n + node.n_dofs :] / scale[n - head + node.n_dofs :]
    order = layout.order
    return np.concatenate([q, *(loose[k] for k in order)]), np.concatenate([m[k] for k in order])


def _carried(factor: Factor, k: int, above: Array) -> Array:
    """What node k had carried on to its parent, out of the parent's z."""
    parent = factor.layout.nodes[factor.layout.nodes[k].parent]
    head = factor.nodes[k].head
    at = head + parent.n_own
    for j in parent.children:
        count = len(factor.nodes[j].keep) - head
        if j == k:
            return above[at : at + count]
        at += count
    raise AssertionError


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
    return tuple(dict.fromkeys(names[i] for i in order if vector[i]))


def _unknown_names(layout: Layout) -> list[tuple[str, int]]:
    """Names of q̈ and of the unknown forces, and the node where each is."""
    system, out = layout.system, dof_labels(layout.system)
    for k in layout.order:
        for push in layout.nodes[k].loose:
            sensor = layout.sensors[push.sensor]
            entries = AXES if sensor.size(system) == 6 else AXES[3:]
            out += [(f"external force on {sensor.frame!r} ({entries[i]})", k) for i in push.seen]  # type: ignore[attr-defined]
    return out


def _row_names(layout: Layout) -> list[str]:
    out, several = [], [len(sensor.sites(layout.system)) > 1 for sensor in layout.sensors]
    for k in layout.order:
        for piece in layout.nodes[k].rows:
            where = f" at hinge {layout.system.hinge_names[k]!r}" if several[piece.sensor] else ""
            out += [f"{layout.sensors[piece.sensor]}{where}"] * len(piece.seen)
        if layout.nodes[k].geared:
            out.append(f"torque at the coupled hinge {layout.system.hinge_names[k]!r}")
    return out


def _sentence(
    layout: Layout,
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
        hinge, body = layout.system.hinge_names[node], layout.system.body_names[node]
        if any(part.startswith("mode") for part in unseen[0]):
            part = next(part for part in unseen[0] if part.startswith("mode"))
            said.append(
                f"a JointTorque of {part} (0, where nothing drives it), or an Imu on a frame there, would cure it"
            )
        elif any("force" in part for part in unseen[0]):
            said.append(f"a ForceTorque inboard of {body!r}, or a finite covariance of that force, would cure it")
        else:
            here = [layout.sensors[piece.sensor] for piece in (*layout.nodes[node].info, *layout.nodes[node].rows)]
            torque = "" if any(isinstance(sensor, JointTorque) for sensor in here) else "JointTorque or "
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
