"""The vectors: a gather and a scatter through a factor, for one right-hand side or many.

What is put in is a linear term of F at every node; what comes out is where F is stationary: α, λ, q̈, the multipliers m
of the rows, the unknown forces u, and the hinge forces f = Aα + b − Cλ + Eu.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.gather import ALPHA, LAMBDA, Factor
from kfdyn.dynamics.sensors.sensor import Array


class Load(NamedTuple):
    """Linear terms for B states and c columns; None is zero.

    ``alpha``, ``lam`` (B, n, 6, c) add to γ_α and γ_λ, ``q`` (B, nv, c) to γ_q̈, ``rows`` and ``loose`` (by node,
    (B, r, c)) to those of m and of unknown forces; ``eta`` (B, n, 6, c) is the bias acceleration of each hinge, and
    ``shift`` (B, n, 6, c) the source that reads f: λ − shift stands for λ in the subtree. ``ends`` (by node, (B, ·, c))
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
    """Where F is stationary: α, λ, f (B, n, 6, c), q̈ (B, nv, c), and by node m (B, r, c) and u (B, ·, c).

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
    layout, size = factor.layout, len(factor.terms.l)
    before: dict[int, Array] = {}
    gone: dict[int, Array] = {}
    inward: dict[int, Array] = {}
    for k in reversed(layout.order):
        node, own = layout.nodes[k], factor.nodes[k]
        n = own.Gamma.shape[-1]
        gamma, at = np.zeros((size, n if own.T is None else 12 + len(own.T), columns)), 12 + node.n_own
        if load.alpha is not None:
            gamma[:, ALPHA] += load.alpha[:, k]
        if load.lam is not None:
            gamma[:, LAMBDA] += load.lam[:, k]
        if load.loose is not None and k in load.loose:
            gamma[:, 12 : 12 + node.n_loose] += load.loose[k]
        if load.ends is not None and k in load.ends:
            gamma[:, 12 + node.n_loose : at] += load.ends[k]
        for j in node.children:
            child, moved = factor.nodes[j], inward[j]
            gamma[:, ALPHA] += child.phi @ moved[:, ALPHA]
            gamma[:, LAMBDA] += child.phi @ moved[:, LAMBDA]
            gamma[:, at : at + moved.shape[1] - 12] = moved[:, 12:]
            at += moved.shape[1] - 12
        if own.T is not None:
            gamma = np.concatenate([gamma[:, :12], own.T.T @ gamma[:, 12:]], axis=1)
            if load.joined is not None and k in load.joined:
                gamma[:, n - load.joined[k].shape[1] :] += load.joined[k]
        if load.shift is not None:
            gamma -= own.Gamma[:, :, LAMBDA] @ load.shift[:, k]
        before[k] = gamma
        hinge = own.E.swapaxes(-1, -2) @ gamma[:, :12]
        m = node.n_dofs
        if load.q is not None:
            hinge[:, :m] += load.q[:, node.dofs]
        if load.rows is not None and k in load.rows:
            hinge[:, m:] += load.rows[k]
        whole = np.concatenate([gamma, hinge], axis=1)
        gone[k] = own.inverse @ whole[:, own.gone]  # 𝒦⁻¹ γ₁
        inward[k] = whole[:, own.keep] - own.beside.swapaxes(-1, -2) @ gone[k]
        if load.eta is not None:
            inward[k] = inward[k] + own.reduced[:, :, ALPHA] @ load.eta[:, k]
    return _scatter(factor, load, columns, before, gone)


def _scatter(factor: Factor, load: Load, columns: int, before: dict[int, Array], gone: dict[int, Array]) -> Answer:
    layout, size = factor.layout, len(factor.terms.l)
    n_bodies, nv = len(layout.nodes), layout.system.open_tree.nv
    alpha, lam, f = (np.zeros((size, n_bodies, 6, columns)) for _ in range(3))
    q, m_of, u_of, joined = np.zeros((size, nv, columns)), {}, {}, {}
    carried: dict[int, Array] = {}
    for k in layout.order:
        node, own = layout.nodes[k], factor.nodes[k]
        kept = np.zeros((size, len(own.keep), columns))
        if node.parent >= 0:
            back = own.phi.swapaxes(-1, -2)
            kept[:, ALPHA] = back @ alpha[:, node.parent]
            kept[:, LAMBDA] = back @ lam[:, node.parent]
            kept[:, 12:] = carried[k]
        if load.eta is not None:
            kept[:, ALPHA] += load.eta[:, k]
        n = own.Gamma.shape[-1]
        whole = np.empty((size, len(own.keep) + len(own.gone), columns))
        whole[:, own.keep], whole[:, own.gone] = kept, -(own.X @ kept) - gone[k]
        z = whole[:, :n].copy()
        z[:, :12] += own.E @ whole[:, n:]
        f[:, k] = own.Gamma[:, LAMBDA] @ z + before[k][:, LAMBDA]
        alpha[:, k], lam[:, k] = z[:, ALPHA], z[:, LAMBDA]
        if load.shift is not None:
            lam[:, k] -= load.shift[:, k]  # what the body and all outboard of it see
        q[:, node.dofs], m_of[k] = whole[:, n : n + node.n_dofs], whole[:, n + node.n_dofs :]
        joined[k] = z[:, n - sum(len(join.new) for join in node.joins) :]
        z, at = own.parted(z), 12 + node.n_own
        u_of[k] = z[:, 12 : 12 + node.n_loose]
        for j in node.children:
            count = len(factor.nodes[j].keep) - 12
            carried[j] = z[:, at : at + count]
            at += count
    return Answer(alpha, lam, f, q, m_of, u_of, joined)
