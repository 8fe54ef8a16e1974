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
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.flexible_terms import FlexibleTerms
from kfdyn.dynamics.sensors.layout import Layout, Node, Push, dof_units
from kfdyn.dynamics.sensors.sensor import Array, Index, Rows
from kfdyn.dynamics.sensors.sharing import Tag, joined, loop_terms
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
    """The factors of all nodes for B states, Σ log|det 𝒦|, and which states a choice does not suit."""

    layout: Layout
    terms: LinkTerms
    nodes: dict[int, NodeFactor]
    log_det: Array
    growth: Array
    choices: dict[int, Choice]

    @property
    def width(self) -> int:
        """States of the widest node."""
        return self.terms.inertia.shape[-1]


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
        first = E.shape[-2]
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
        phi = inward(terms, k)
        factors[k] = NodeFactor(data, Gamma, E, keep, gone, inverse, X, beside, reduced, phi, T, tuple(names))
    return Factor(layout, terms, factors, log_det, growth, made)


def _growth(layout: Layout, node: Node, choice: Choice, whole: Array, inverse: Array, beside: Array, X: Array) -> Array:
    """How far (B,) entries grew by the elimination, in natural scales; at a root, infinite where 𝒦 is singular."""
    scale = choice.scale[choice.eliminate]
    if node.parent < 0:
        size = np.abs(inverse / scale[:, None] / scale).max((1, 2), initial=0.0)
        return np.where(size <= ROOT_CONDITION, 0.0, np.inf)
    unit = _passed_on(layout.units[node.k])
    head = len(unit)
    outer = np.concatenate([unit, choice.scale[choice.carry]])
    left = (beside * outer).swapaxes(-1, -2) @ (X * outer)
    every = np.concatenate([unit, choice.scale])
    keep = np.concatenate([np.arange(head), head + choice.carry])
    size = sizes(whole * every[:, None] * every, head)[:, keep[:, None], keep]
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


def _before_hinge(node: Node, data: NodeData, terms: LinkTerms, factors: dict[int, NodeFactor]) -> Array:
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


def _joined(Gamma: Array, T: Array, inner: Array) -> Array:
    """Γ by the unknowns that are left when couplings and loops are joined."""
    head = Gamma.shape[-1] - T.shape[0]
    whole = np.zeros((head + T.shape[0], head + T.shape[1]))
    whole[:head, :head], whole[head:, head:] = np.eye(head), T
    out = np.asarray(whole.T @ Gamma @ whole)
    out[:, head:, head:] += inner
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


def _scales(layout: Layout, node: Node, data: NodeData, made: dict[int, Choice], T: Array | None) -> Array:
    """Natural sizes of (α', g, u, q̈, m) at a node, in its first state."""
    unit, D = layout.units[node.k], data.H.shape[-1]
    force = 1.0 / unit[D:]
    of_loose = 1.0 / np.sqrt(((data.P_loose[0] / force[:, None]) ** 2).sum(0))
    carried = [made[j].scale[made[j].carry] for j in node.children]
    of_dofs = dof_units(data.H[0], unit)
    row = (data.S[0] * force) ** 2, (data.K[0] * unit[:D]) ** 2, (data.e[0] * of_dofs) ** 2
    size = np.sqrt(sum(part.sum(-1) for part in row))
    of_rows = 1.0 / np.where(size > 0, size, 1.0)
    of_ends = []
    for K in data.ends:
        for scale in (unit[D:], unit[:D]):
            of_ends.append(1.0 / np.sqrt(((K[0] * scale) ** 2).sum(-1)))
    arrived = np.concatenate([of_loose, *of_ends, *carried])
    if T is not None:
        size = np.abs(T) / arrived[:, None]
        arrived = 1.0 / np.where(size.any(0), size.max(0, initial=0.0), 1.0)
    return np.concatenate([_passed_on(unit), arrived, of_dofs, of_rows])


def _passed_on(unit: Array) -> Array:
    """Scales of α' and g at a node; those of modes are always 0, so that what is said of them counts nowhere."""
    D = len(unit) // 2
    return np.where(np.arange(2 * D) % D < 6, unit, 0.0)


def inward(terms: LinkTerms, k: int) -> Array:
    """φ(p,k), (B, D, D)."""
    return terms.phi[:, k] if isinstance(terms, FlexibleTerms) else shift(terms.l[:, k])


def shift(l: Array) -> Array:
    """φ(p,k) = [[1, l~], [0, 1]], (B, 6, 6)."""
    phi = np.zeros((*l.shape[:-1], 6, 6))
    phi[..., range(6), range(6)] = 1.0
    phi[..., :3, 3:] = skew(l)
    return phi
