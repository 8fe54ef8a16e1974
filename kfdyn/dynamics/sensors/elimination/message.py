"""The message Γ of a subtree: put together at a body, taken over its hinge, shifted to its parent."""

from __future__ import annotations

import numpy as np

from kfdyn.dynamics.sensors.elimination.factor import NodeData, NodeFactor, spans
from kfdyn.dynamics.sensors.elimination.flexible_terms import FlexibleTerms
from kfdyn.dynamics.sensors.elimination.layout import Node
from kfdyn.dynamics.sensors.elimination.loop_unknowns import Tag
from kfdyn.dynamics.sensors.sensor import Array
from kfdyn.multibody import LinkTerms
from kfdyn.spatial import rigid_transform


def before_hinge(node: Node, data: NodeData, terms: LinkTerms, factors: dict[int, NodeFactor]) -> Array:
    """Γ of body k with all that is outboard: its inertia, information, external forces, and its children."""
    size, own, D = len(terms.l), node.n_own, terms.inertia.shape[-1]
    alpha, lam = spans(D)
    head = 2 * D
    n = head + own + sum(len(factors[j].keep) - head for j in node.children)
    Gamma = np.zeros((size, n, n))
    Gamma[:, lam, alpha] = terms.inertia[:, node.k]
    for rows, weight in data.info:
        if rows.K is not None:
            Gamma[:, alpha, alpha] += rows.K.swapaxes(-1, -2) @ (weight @ rows.K)
    Gamma[:, lam, lam] = -(data.P_spread @ data.cov) @ data.P_spread.swapaxes(-1, -2)
    at = head + node.n_loose
    Gamma[:, lam, head:at] = -data.P_loose
    Gamma[:, head:at, head:at] = data.loose
    for K in data.ends:  # a force K*ν on the body, and a reading of Kα
        r, back = K.shape[1], K.swapaxes(-1, -2)
        Gamma[:, lam, at : at + r], Gamma[:, alpha, at + r : at + 2 * r] = -back, back
        at += 2 * r
    for j in node.children:
        child = factors[j]
        here = slice(at, at + len(child.keep) - head)
        moved = _shifted(child.reduced, child.phi)
        Gamma[:, :head, :head] += moved[:, :head, :head]
        Gamma[:, here, :head] = moved[:, head:, :head]
        Gamma[:, here, here] = moved[:, head:, head:]
        at = here.stop
    # the other triangle: λα was filled for the body alone, so both triangles of the children's are already there
    Gamma[:, alpha, lam] += terms.inertia[:, node.k].swapaxes(-1, -2)
    Gamma[:, head : head + own, :head] = Gamma[:, :head, head : head + own].swapaxes(-1, -2)
    Gamma[:, :head, head + own :] = Gamma[:, head + own :, :head].swapaxes(-1, -2)
    return Gamma


def joined_unknowns(Gamma: Array, T: Array, inner: Array) -> Array:
    """Γ by the unknowns that are left when couplings and loops are joined."""
    head = Gamma.shape[-1] - T.shape[0]
    whole = np.zeros((head + T.shape[0], head + T.shape[1]))
    whole[:head, :head], whole[head:, head:] = np.eye(head), T
    out = np.asarray(whole.T @ Gamma @ whole)
    out[:, head:, head:] += inner
    return out


def arrived(node: Node, passed: dict[int, list[Tag]]) -> list[Tag]:
    """Names of the unknowns that arrive at a node."""
    out: list[Tag] = [("loose", node.k, i) for i in range(node.n_loose)]
    for end in node.ends:
        out += [(kind, end.loop, end.side, i) for kind in ("nu", "mu") for i in range(len(end.rows))]
    for j in node.children:
        out += passed[j]
    return out


def of_hinge(node: Node) -> list[Tag]:
    """Names of q̈ and m."""
    own: list[Tag] = [("q", i) for i in range(node.dofs.start, node.dofs.stop)]
    return own + [("read", node.k, i) for i in range(node.n_rows - node.geared)] + [("row", node.k)] * node.geared


def _shifted(reduced: Array, phi: Array) -> Array:
    """Γ in the parent's (α, λ): α' = φ*α, g = φ*λ on both sides."""
    out = reduced.copy()
    back, (alpha, lam) = phi.swapaxes(-1, -2), spans(phi.shape[-1])
    for part in (alpha, lam):
        out[:, part] = phi @ out[:, part]
    for part in (alpha, lam):
        out[:, :, part] = out[:, :, part] @ back
    return out


def at_hinge(node: Node, data: NodeData, Gamma: Array) -> tuple[Array, Array]:
    """E (B, 2D, m + r), and Γ over (α', g, u, q̈, m)."""
    size, n, m, r, D = len(Gamma), Gamma.shape[-1], node.n_dofs, node.n_rows, data.H.shape[-1]
    (alpha, lam), head = spans(D), 2 * D
    E = np.zeros((size, head, m + r))
    E[:, alpha, :m] = data.H.swapaxes(-1, -2)
    E[:, lam, m:] = data.S.swapaxes(-1, -2)
    beside = Gamma[:, :, :head] @ E
    inner = E.swapaxes(-1, -2) @ beside[:, :head]
    beside[:, alpha, m:] += data.K.swapaxes(-1, -2)
    L = data.K @ data.H.swapaxes(-1, -2) + data.e
    inner[:, m:, :m] += L
    inner[:, :m, m:] += L.swapaxes(-1, -2)
    inner[:, m:, m:] -= data.R
    for rows, weight in data.info:
        if rows.e is not None:
            inner[:, :m, :m] += rows.e.swapaxes(-1, -2) @ (weight @ rows.e)
    whole = np.empty((size, n + m + r, n + m + r))
    whole[:, :n, :n], whole[:, :n, n:], whole[:, n:, :n] = Gamma, beside, beside.swapaxes(-1, -2)
    whole[:, n:, n:] = inner
    return E, whole


def terms_at_hinge(Gamma: Array, E: Array) -> Array:
    """Sums of the sizes of the terms of which entries among (u, q̈, m) are sums."""
    own = np.zeros((len(Gamma), len(Gamma) - len(E) + E.shape[1]))
    own[: len(E), len(Gamma) - len(E) :] = np.abs(E)
    own[range(len(E), len(Gamma)), range(len(Gamma) - len(E))] = 1.0
    return np.asarray(own.T @ np.abs(Gamma) @ own)


def inward(terms: LinkTerms, k: int) -> Array:
    """φ(p,k), (B, D, D)."""
    return terms.phi[:, k] if isinstance(terms, FlexibleTerms) else rigid_transform(terms.l[:, k])
