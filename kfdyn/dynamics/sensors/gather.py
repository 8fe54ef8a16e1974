"""The gather: from the tips to the base, each node's unknowns are eliminated and the rest is shifted to its parent.

A subtree is known to its parent by the stationary value of

    F(α, λ, u) = ½ z*Γz + γ*z,   z = (α, λ, u),   Γ = [[J, A*, N*], [A, −C, E], [N, E*, Y]],   γ = (−h, b, −y)

which is THEORY section 11's message f | α ~ N(Aα + b, C), (J, h), with the unknowns u that were carried on from
outboard. At the hinge α = α' + H*q̈ and λ = g + S*m, a row adds m*(Kα + e q̈ − y) − ½ m*Rm, and what can be eliminated of
w = (u, q̈, m) is. Here stand the matrices, which the readings do not enter; ``solve`` runs the vectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.sensors.body_kinds import ExternalForce, skew
from kfdyn.dynamics.sensors.choice import BOUND_AGAIN, Choice, choose, sizes
from kfdyn.dynamics.sensors.layout import Layout, Node, Push, dof_units
from kfdyn.dynamics.sensors.sensor import Array, Index, Rows
from kfdyn.dynamics.sensors.sharing import Tag, joined, loop_terms
from kfdyn.multibody import LinkTerms

ALPHA, LAMBDA = slice(0, 6), slice(6, 12)


class NodeData(NamedTuple):
    """What node k reads in B states: H (B, m, 6); S, K (B, r, 6), e (B, r, m), R (r, r) of its rows, stacked.

    ``K_info``, ``e_info`` and ``weight`` (list of R⁻¹) belong to rows in information form; ``P_spread`` (B, 6, s) with
    ``cov`` and ``P_loose`` (B, 6, u) with ``loose`` to external forces. ``offset``, ``offset_info`` lie under readings.
    ``ends`` are rows (B, r, 6) of loops on the body's acceleration.
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

    def parted(self, z: Array) -> Array:
        """(α, λ, unknowns) (B, n, c) as they arrived, before they were joined."""
        return z if self.T is None else np.concatenate([z[:, :12], self.T @ z[:, 12:]], axis=1)

    def parted_covariance(self, Z: Array) -> Array:
        """The same of a covariance (B, n, n)."""
        return Z if self.T is None else self.parted(self.parted(Z).swapaxes(-1, -2)).swapaxes(-1, -2)


class Factor(NamedTuple):
    """The factors of all nodes for B states, Σ log|det 𝒦|, and which states a choice does not suit."""

    layout: Layout
    terms: LinkTerms
    nodes: dict[int, NodeFactor]
    log_det: Array
    growth: Array
    choices: dict[int, Choice]


def gather(
    layout: Layout,
    terms: LinkTerms,
    choices: dict[int, Choice] | None = None,
    pins: dict[int, Array] | None = None,
) -> Factor:
    """Factor B states at once; without ``choices`` they are made for the first state. ``pins`` add to roots' 𝒦."""
    size = len(terms.l)
    factors: dict[int, NodeFactor] = {}
    made: dict[int, Choice] = dict(choices or {})
    log_det, growth = np.zeros(size), np.zeros(size)
    passed: dict[int, list[Tag]] = {}
    for k in reversed(layout.order):
        node = layout.nodes[k]
        data = node_data(layout, node, terms)
        Gamma = _before_hinge(node, data, terms, factors)
        T, inner, names = joined(node.joins, _arrived(node, passed) if layout.waiting else [])
        if T is not None:
            Gamma = _joined(Gamma, T, inner)
        names = [*names, *_of_hinge(node)] if layout.waiting else []
        E, whole = at_hinge(node, data, Gamma)
        first = 12
        if k not in made:
            held = [i for i, name in enumerate(names, first) if name in layout.waiting]
            made[k] = choose(whole[0], _scales(layout, node, data, made, T), first, node.parent < 0, held)
        choice = made[k]
        passed[k] = [names[i] for i in choice.carry] if layout.waiting else []
        gone, keep = choice.eliminate + first, np.concatenate([np.arange(first), choice.carry + first])
        scale = choice.scale[choice.eliminate]
        block = whole[:, gone[:, None], gone] * scale[:, None] * scale
        if pins is not None and k in pins:
            block = block + pins[k]
        inverse, sign_log = _inverse(block)
        inverse = inverse * scale[:, None] * scale
        beside = whole[:, gone[:, None], keep]
        X = inverse @ beside
        reduced = whole[:, keep[:, None], keep] - beside.swapaxes(-1, -2) @ X
        reduced = 0.5 * (reduced + reduced.swapaxes(-1, -2))
        log_det += sign_log - 2.0 * np.log(scale).sum()
        growth = np.maximum(growth, _growth(layout, node, choice, whole, inverse, beside, X))
        phi = shift(terms.l[:, k])
        factors[k] = NodeFactor(data, Gamma, E, keep, gone, inverse, X, beside, reduced, phi, T, tuple(names))
    return Factor(layout, terms, factors, log_det, growth, made)


def _growth(layout: Layout, node: Node, choice: Choice, whole: Array, inverse: Array, beside: Array, X: Array) -> Array:
    """How far (B,) entries grew by the elimination, in natural scales; at a root, infinite where 𝒦 is singular."""
    scale = choice.scale[choice.eliminate]
    if node.parent < 0:
        size = np.abs(inverse / scale[:, None] / scale).max((1, 2), initial=0.0)
        return np.where(size <= ROOT_CONDITION, 0.0, np.inf)
    outer = np.concatenate([layout.unit, choice.scale[choice.carry]])
    left = (beside * outer).swapaxes(-1, -2) @ (X * outer)
    every = np.concatenate([layout.unit, choice.scale])
    keep = np.concatenate([np.arange(12), 12 + choice.carry])
    size = sizes(whole * every[:, None] * every, 12)[:, keep[:, None], keep]
    growth = (np.abs(left) / size).max((1, 2), initial=0.0)
    return np.where(np.isfinite(growth), growth, np.inf)


# Condition of a root's matrix, in natural scales, from which it counts as singular: what is carried on because it is
# zero outboard arrives with the rounding of all the eliminations between.
ROOT_CONDITION = 1e12


def _inverse(block: Array) -> tuple[Array, Array]:
    """Inverse (B, n, n) and log|det| (B,) of symmetric matrices; infinite where there is none."""
    try:
        return np.asarray(np.linalg.inv(block), np.float64), np.asarray(np.linalg.slogdet(block)[1], np.float64)
    except np.linalg.LinAlgError:
        out, log = np.full(block.shape, np.inf), np.zeros(len(block))
        for i, one in enumerate(block):
            try:
                out[i], log[i] = np.linalg.inv(one), np.linalg.slogdet(one)[1]
            except np.linalg.LinAlgError:
                out[i] = np.nan
        return out, log


def unsuited(factor: Factor) -> NDArray[np.bool_]:
    """Mask (B,) of the states that the choices do not suit."""
    return ~(factor.growth <= BOUND_AGAIN)


def node_data(layout: Layout, node: Node, terms: LinkTerms) -> NodeData:
    """Evaluate the rows of one node in B states."""
    system, sensors, size = layout.system, layout.sensors, len(terms.l)
    m, H = node.n_dofs, terms.H[:, node.dofs]
    r = node.n_rows
    S, K, e = np.zeros((size, r, 6)), np.zeros((size, r, 6)), np.zeros((size, r, m))
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
        S[:, -1:], e[:, -1:] = H, system.open_tree.armature[node.dofs]
    ends = []
    for end in node.ends:
        rows, _ = loop_terms(system, terms, np.zeros((size, 3)), end.loop)
        ends.append(rows[end.side][:, list(end.rows)])
    return NodeData(H, S, K, e, R, offset, tuple(info), spread, cov, loose, weight, tuple(ends))


def _wrenches(layout: Layout, pushes: tuple[Push, ...], terms: LinkTerms) -> tuple[Array, Array]:
    total = sum(len(push.seen) for push in pushes)
    P, weight, at = np.zeros((len(terms.l), 6, total)), np.zeros((total, total)), 0
    for push in pushes:
        sensor = layout.sensors[push.sensor]
        assert isinstance(sensor, ExternalForce)
        here = slice(at, at + len(push.seen))
        P[:, :, here] = sensor.wrench(layout.system, terms)[:, :, push.seen]
        weight[here, here] = push.weight
        at = here.stop
    return P, weight


def _before_hinge(node: Node, data: NodeData, terms: LinkTerms, factors: dict[int, NodeFactor]) -> Array:
    """Γ of body k with all that is outboard: its inertia, information, external forces, and its children."""
    size, own = len(terms.l), node.n_own
    n = 12 + own + sum(len(factors[j].keep) - 12 for j in node.children)
    Gamma = np.zeros((size, n, n))
    Gamma[:, LAMBDA, ALPHA] = terms.inertia[:, node.k]
    for rows, weight in data.info:
        if rows.K is not None:
            Gamma[:, ALPHA, ALPHA] += rows.K.swapaxes(-1, -2) @ (weight @ rows.K)
    Gamma[:, LAMBDA, LAMBDA] = -(data.P_spread @ data.cov) @ data.P_spread.swapaxes(-1, -2)
    at = 12 + node.n_loose
    Gamma[:, LAMBDA, 12:at] = -data.P_loose
    Gamma[:, 12:at, 12:at] = data.loose
    for K in data.ends:  # a force K*ν on the body, and a reading of Kα
        r, back = K.shape[1], K.swapaxes(-1, -2)
        Gamma[:, LAMBDA, at : at + r], Gamma[:, ALPHA, at + r : at + 2 * r] = -back, back
        at += 2 * r
    for j in node.children:
        child = factors[j]
        here = slice(at, at + len(child.keep) - 12)
        moved = _shifted(child.reduced, child.phi)
        Gamma[:, :12, :12] += moved[:, :12, :12]
        Gamma[:, here, :12] = moved[:, 12:, :12]
        Gamma[:, here, here] = moved[:, 12:, 12:]
        at = here.stop
    # the other triangle: λα was filled for the body alone, so both triangles of the children's are already there
    Gamma[:, ALPHA, LAMBDA] += terms.inertia[:, node.k].swapaxes(-1, -2)
    Gamma[:, 12 : 12 + own, :12] = Gamma[:, :12, 12 : 12 + own].swapaxes(-1, -2)
    Gamma[:, :12, 12 + own :] = Gamma[:, 12 + own :, :12].swapaxes(-1, -2)
    return Gamma


def _joined(Gamma: Array, T: Array, inner: Array) -> Array:
    """Γ by the unknowns that are left when couplings and loops are joined."""
    whole = np.zeros((12 + T.shape[0], 12 + T.shape[1]))
    whole[:12, :12], whole[12:, 12:] = np.eye(12), T
    out = np.asarray(whole.T @ Gamma @ whole)
    out[:, 12:, 12:] += inner
    return out


def _arrived(node: Node, passed: dict[int, list[Tag]]) -> list[Tag]:
    """Names of the unknowns that arrive at a node."""
    out: list[Tag] = [("loose", node.k, i) for i in range(node.n_loose)]
    for end in node.ends:
        out += [(kind, end.loop, end.side, i) for kind in ("nu", "mu") for i in range(len(end.rows))]
    for j in node.children:
        out += passed[j]
    return out


def _of_hinge(node: Node) -> list[Tag]:
    """Names of q̈ and m."""
    own: list[Tag] = [("q", i) for i in range(node.dofs.start, node.dofs.stop)]
    return own + [("read", node.k, i) for i in range(node.n_rows - node.geared)] + [("row", node.k)] * node.geared


def _shifted(reduced: Array, phi: Array) -> Array:
    """Γ in the parent's (α, λ): α' = φ*α, g = φ*λ on both sides."""
    out = reduced.copy()
    back = phi.swapaxes(-1, -2)
    for part in (ALPHA, LAMBDA):
        out[:, part] = phi @ out[:, part]
    for part in (ALPHA, LAMBDA):
        out[:, :, part] = out[:, :, part] @ back
    return out


def at_hinge(node: Node, data: NodeData, Gamma: Array) -> tuple[Array, Array]:
    """E (B, 12, m + r), and Γ over (α', g, u, q̈, m)."""
    size, n, m, r = len(Gamma), Gamma.shape[-1], node.n_dofs, node.n_rows
    E = np.zeros((size, 12, m + r))
    E[:, ALPHA, :m] = data.H.swapaxes(-1, -2)
    E[:, LAMBDA, m:] = data.S.swapaxes(-1, -2)
    beside = Gamma[:, :, :12] @ E
    inner = E.swapaxes(-1, -2) @ beside[:, :12]
    beside[:, ALPHA, m:] += data.K.swapaxes(-1, -2)
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


def _scales(layout: Layout, node: Node, data: NodeData, made: dict[int, Choice], T: Array | None) -> Array:
    """Natural sizes of (α', g, u, q̈, m) at a node, in its first state."""
    unit = layout.unit
    force = 1.0 / unit[6:]
    of_loose = 1.0 / np.sqrt(((data.P_loose[0] / force[:, None]) ** 2).sum(0))
    carried = [made[j].scale[made[j].carry] for j in node.children]
    of_dofs = dof_units(data.H[0], unit)
    row = (data.S[0] * force) ** 2, (data.K[0] * unit[:6]) ** 2, (data.e[0] * of_dofs) ** 2
    size = np.sqrt(sum(part.sum(-1) for part in row))
    of_rows = 1.0 / np.where(size > 0, size, 1.0)
    of_ends = []
    for K in data.ends:
        for scale in (unit[6:], unit[:6]):
            of_ends.append(1.0 / np.sqrt(((K[0] * scale) ** 2).sum(-1)))
    arrived = np.concatenate([of_loose, *of_ends, *carried])
    if T is not None:
        size = np.abs(T) / arrived[:, None]
        arrived = 1.0 / np.where(size.any(0), size.max(0, initial=0.0), 1.0)
    return np.concatenate([unit, arrived, of_dofs, of_rows])


def shift(l: Array) -> Array:
    """φ(p,k) = [[1, l~], [0, 1]], (B, 6, 6)."""
    phi = np.zeros((*l.shape[:-1], 6, 6))
    phi[..., range(6), range(6)] = 1.0
    phi[..., :3, 3:] = skew(l)
    return phi
