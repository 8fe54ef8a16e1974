"""What is read at a node, evaluated in B states, and how its unknowns were eliminated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.body_sensors import ExternalForce
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.elimination.layout import Layout, Node, Push
from kfdyn.dynamics.sensors.elimination.loop_unknowns import Tag, loop_terms
from kfdyn.dynamics.sensors.elimination.pivoting import Choice
from kfdyn.dynamics.sensors.sensor import Array, Index, Rows
from kfdyn.multibody import LinkTerms


def spans(width: int) -> tuple[slice, slice]:
    """Where α and λ of a node with so many states are in z."""
    return slice(0, width), slice(width, 2 * width)


class NodeData(NamedTuple):
    """What node k reads in B states: H (B, m, D); S, K (B, r, D), e (B, r, m), R (r, r) of its rows, stacked.

    D is 6, and more where bodies bend: the states of the widest node. ``info`` are rows in information form with their
    R⁻¹; ``P_spread`` (B, D, s) with ``cov`` and ``P_loose`` (B, D, u) with ``loose`` belong to external forces.
    ``offset`` lies under readings. ``ends`` are rows (B, r, 6) of loops on the body's acceleration.
    """

    H: Array
    S: Array
    K: Array
    e: Array
    R: Array
    offset: Array
    info: tuple[tuple[Rows, Array], ...]
    P_spread: Array
    cov: Array
    P_loose: Array
    loose: Array
    ends: tuple[Array, ...] = ()


class NodeFactor(NamedTuple):
    """Factor of one node: Γ before the hinge, E = [H*, ·; ·, S*], and the elimination w₁ = −X z_kept − 𝒦⁻¹γ₁.

    ``keep`` are the indices of (α', g, u, q̈, m) that stay, ``gone`` those eliminated; ``reduced`` is Γ after it.
    """

    data: NodeData
    Gamma: Array
    E: Array
    keep: Index
    gone: Index
    inverse: Array
    X: Array
    beside: Array
    reduced: Array
    phi: Array
    T: Array | None = None  # unknowns as they arrive, by those that are left when couplings and loops are joined
    names: tuple[Tag, ...] = ()  # of all unknowns, with couplings and loops

    @property
    def head(self) -> int:
        """How many entries of z are α and λ."""
        return self.E.shape[-2]

    def parted(self, z: Array) -> Array:
        """(α, λ, unknowns) (B, n, c) as they arrived, before they were joined."""
        head = self.head
        return z if self.T is None else np.concatenate([z[:, :head], self.T @ z[:, head:]], axis=1)

    def parted_covariance(self, Z: Array) -> Array:
        """The same of a covariance (B, n, n)."""
        return Z if self.T is None else self.parted(self.parted(Z).swapaxes(-1, -2)).swapaxes(-1, -2)


class Factor(NamedTuple):
    """The factors of all nodes for B states, Σ log|det 𝒦|; growth of entries, and the largest of roots' 𝒦⁻¹, scaled."""

    layout: Layout
    terms: LinkTerms
    nodes: dict[int, NodeFactor]
    log_det: Array
    growth: Array
    condition: Array
    choices: dict[int, Choice]

    @property
    def width(self) -> int:
        """States of the widest node."""
        return self.terms.inertia.shape[-1]


def node_data(layout: Layout, node: Node, terms: LinkTerms) -> NodeData:
    """Evaluate the rows of one node in B states."""
    system, sensors, size = layout.system, layout.sensors, len(terms.l)
    m, H, D = node.n_dofs, terms.H[:, node.dofs], terms.inertia.shape[-1]
    r = node.n_rows
    S, K, e = np.zeros((size, r, D)), np.zeros((size, r, D)), np.zeros((size, r, m))
    offset, R, at = np.zeros((size, r)), np.zeros((r, r)), 0
    for piece in node.rows:
        own, local = sensors[piece.sensor].rows(system, piece.site, terms), piece.local()
        here = slice(at, at + len(local))
        for into, given in ((S, own.S), (K, own.K), (e, own.e), (offset, own.offset)):
            if given is not None:
                into[:, here] = given[:, local]
        R[here, here] = piece.R
        at = here.stop
    info = []
    for piece in node.info:
        own, local = sensors[piece.sensor].rows(system, piece.site, terms), piece.local()
        info.append(
            (
                Rows(*(None if part is None else part[:, local] for part in own)),
                np.asarray(np.linalg.inv(piece.R), np.float64),
            )
        )
    spread, cov = _wrenches(layout, node.spread, terms)
    loose, weight = _wrenches(layout, node.loose, terms)
    if node.geared:
        S[:, -1:], e[:, -1:] = H, dofs_of(system).armature[node.dofs]
    ends = []
    for end in node.ends:
        rows, _ = loop_terms(system, terms, np.zeros((size, 3)), end.loop)
        ends.append(rows[end.side][:, list(end.rows)])
    return NodeData(H, S, K, e, R, offset, tuple(info), spread, cov, loose, weight, tuple(ends))


def _wrenches(layout: Layout, pushes: tuple[Push, ...], terms: LinkTerms) -> tuple[Array, Array]:
    total = sum(len(push.seen) for push in pushes)
    P, weight, at = np.zeros((len(terms.l), terms.inertia.shape[-1], total)), np.zeros((total, total)), 0
    for push in pushes:
        sensor = layout.sensors[push.sensor]
        assert isinstance(sensor, ExternalForce)
        here = slice(at, at + len(push.seen))
        P[:, :, here] = sensor.wrench(layout.system, terms)[:, :, push.seen]
        weight[here, here] = push.weight
        at = here.stop
    return P, weight
