"""The vectors: a gather and a scatter through a factor, for one right-hand side or many.

What is put in is a linear term of F at every node; what comes out is where F is stationary: α, λ, q̈, the multipliers m
of the rows, the unknown forces u, and the hinge forces f = Aα + b − Cλ + Eu.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.elimination.factor import Factor, spans
from kfdyn.dynamics.sensors.elimination.layout import Layout
from kfdyn.dynamics.sensors.elimination.loop_unknowns import Join, loop_terms
from kfdyn.dynamics.sensors.sensor import Array


class Load(NamedTuple):
    """Linear terms for B states and c columns; None is zero. D is 6, and more where bodies bend.

    ``alpha``, ``lam`` (B, n, D, c) add to γ_α and γ_λ, ``q`` (B, nv, c) to γ_q̈, ``rows`` and ``loose`` (by node,
    (B, r, c)) to those of m and of unknown forces; ``eta`` (B, n, D, c) is the bias acceleration of each hinge, and
    ``shift`` (B, n, D, c) the source that reads f: λ − shift stands for λ in the subtree. ``ends`` (by node, (B, ·, c))
    adds to the unknowns of loops' ends, and ``joined`` to those that couplings and loops leave when they are joined.
    """

    alpha: Array | None = None
    lam: Array | None = None
    q: Array | None = None
    rows: dict[int, Array] | None = None
    loose: dict[int, Array] | None = None
    eta: Array | None = None
    shift: Array | None = None
    ends: dict[int, Array] | None = None
    joined: dict[int, Array] | None = None


class Answer(NamedTuple):
    """Where F is stationary: α, λ, f (B, n, D, c), q̈ (B, nv, c), and by node m (B, r, c) and u (B, ·, c).

    ``joined`` are by node what couplings and loops left when they were joined there: β and m, ν and μ. With couplings
    or loops n counts the world, and q̈ is that of the open tree.
    """

    alpha: Array
    lam: Array
    f: Array
    q: Array
    m: dict[int, Array]
    u: dict[int, Array]
    joined: dict[int, Array]


def solve(factor: Factor, load: Load, columns: int = 1) -> Answer:
    """Run the two sweeps; cost O(N) a column."""
    layout, size, (alpha, lam) = factor.layout, len(factor.terms.l), spans(factor.width)
    before: dict[int, Array] = {}
    gone: dict[int, Array] = {}
    inward: dict[int, Array] = {}
    for k in reversed(layout.order):
        node, own = layout.nodes[k], factor.nodes[k]
        n, head = own.Gamma.shape[-1], own.head
        gamma, at = np.zeros((size, n if own.T is None else head + len(own.T), columns)), head + node.n_own
        if load.alpha is not None:
            gamma[:, alpha] += load.alpha[:, k]
        if load.lam is not None:
            gamma[:, lam] += load.lam[:, k]
        if load.loose is not None and k in load.loose:
            gamma[:, head : head + node.n_loose] += load.loose[k]
        if load.ends is not None and k in load.ends:
            gamma[:, head + node.n_loose : at] += load.ends[k]
        for j in node.children:
            child, moved = factor.nodes[j], inward[j]
            gamma[:, alpha] += child.phi @ moved[:, alpha]
            gamma[:, lam] += child.phi @ moved[:, lam]
            gamma[:, at : at + moved.shape[1] - head] = moved[:, head:]
            at += moved.shape[1] - head
        if own.T is not None:
            gamma = np.concatenate([gamma[:, :head], own.T.T @ gamma[:, head:]], axis=1)
            if load.joined is not None and k in load.joined:
                gamma[:, n - load.joined[k].shape[1] :] += load.joined[k]
        if load.shift is not None:
            gamma -= own.Gamma[:, :, lam] @ load.shift[:, k]
        before[k] = gamma
        hinge = own.E.swapaxes(-1, -2) @ gamma[:, :head]
        m = node.n_dofs
        if load.q is not None:
            hinge[:, :m] += load.q[:, node.dofs]
        if load.rows is not None and k in load.rows:
            hinge[:, m:] += load.rows[k]
        whole = np.concatenate([gamma, hinge], axis=1)
        gone[k] = own.inverse @ whole[:, own.gone]  # 𝒦⁻¹ γ₁
        inward[k] = whole[:, own.keep] - own.beside.swapaxes(-1, -2) @ gone[k]
        if load.eta is not None:
            inward[k] = inward[k] + own.reduced[:, :, alpha] @ load.eta[:, k]
    return _scatter(factor, load, columns, before, gone)


def _scatter(factor: Factor, load: Load, columns: int, before: dict[int, Array], gone: dict[int, Array]) -> Answer:
    layout, size = factor.layout, len(factor.terms.l)
    n_bodies, nv, (of_alpha, of_lam) = len(layout.nodes), dofs_of(layout.system).nv, spans(factor.width)
    alpha, lam, f = (np.zeros((size, n_bodies, factor.width, columns)) for _ in range(3))
    q, m_of, u_of, joined = np.zeros((size, nv, columns)), {}, {}, {}
    carried: dict[int, Array] = {}
    for k in layout.order:
        node, own = layout.nodes[k], factor.nodes[k]
        kept = np.zeros((size, len(own.keep), columns))
        if node.parent >= 0:
            back = own.phi.swapaxes(-1, -2)
            kept[:, of_alpha] = back @ alpha[:, node.parent]
            kept[:, of_lam] = back @ lam[:, node.parent]
            kept[:, own.head :] = carried[k]
        if load.eta is not None:
            kept[:, of_alpha] += load.eta[:, k]
        n = own.Gamma.shape[-1]
        whole = np.empty((size, len(own.keep) + len(own.gone), columns))
        whole[:, own.keep], whole[:, own.gone] = kept, -(own.X @ kept) - gone[k]
        z = whole[:, :n].copy()
        z[:, : own.head] += own.E @ whole[:, n:]
        f[:, k] = own.Gamma[:, of_lam] @ z + before[k][:, of_lam]
        alpha[:, k], lam[:, k] = z[:, of_alpha], z[:, of_lam]
        if load.shift is not None:
            lam[:, k] -= load.shift[:, k]  # what the body and all outboard of it see
        q[:, node.dofs], m_of[k] = whole[:, n : n + node.n_dofs], whole[:, n + node.n_dofs :]
        joined[k] = z[:, n - sum(len(join.new) for join in node.joins) :]
        z, at = own.parted(z), own.head + node.n_own
        u_of[k] = z[:, own.head : own.head + node.n_loose]
        for j in node.children:
            count = len(factor.nodes[j].keep) - own.head
            carried[j] = z[:, at : at + count]
            at += count
    return Answer(alpha, lam, f, q, m_of, u_of, joined)


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
