"""The order of elimination: which unknowns go at which node, found by a gather of one state in NumPy.

A subtree is known to its parent by the stationary value of

    F(α, λ, u) = ½ z*Γz + γ*z,   z = (α, λ, u),   Γ = [[J, A*, N*], [A, −C, E], [N, E*, Y]]

which is THEORY section 11's message f | α ~ N(Aα + b, C), (J, h), with the unknowns u that were carried on from
outboard. At the hinge α = α' + H*q̈ and λ = g + S*m, a row adds m*(Kα + e q̈ − y) − ½ m*Rm, and what can be eliminated of
w = (u, q̈, m) is. The sweeps repeat this in every state, as the program tells them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array
from kfdyn.dynamics.sensors.solver.joins import Tag, coordinate_maps, joined, loop_terms
from kfdyn.dynamics.sensors.solver.layout import Layout, Node, dof_units, natural_units, terms_at_rest
from kfdyn.dynamics.sensors.solver.pivoting import BOUND, BOUND_AGAIN, CAREFUL, ROOT_CONDITION, Choice, choose, sizes
from kfdyn.multibody import LinkTerms, System, integrate
from kfdyn.multibody.links import open_terms
from kfdyn.spatial import rigid_transform

ALPHA, LAMBDA = slice(0, 6), slice(6, 12)


class NodeOrder(NamedTuple):
    """Γ over z = (α, λ) and the unknowns (u, q̈, m) of a node, and which of these go there.

    ``T`` has unknowns as they arrive by those that are left when couplings and loops are joined, 1 where none are;
    ``exact`` says whether motions are read exactly there. ``reduced`` is what is left for the parent, and
    ``growth`` how far entries grew for it, in natural scales.
    """

    whole: Array
    left: int
    T: Array
    exact: bool
    choice: Choice
    reduced: Array
    growth: float

    @property
    def inner(self) -> Array:
        """𝒦, over the unknowns."""
        return self.whole[12:, 12:]


class Order(NamedTuple):
    """The order of all nodes, made in one state; ``suits``: no digits are lost there."""

    nodes: dict[int, NodeOrder]
    suits: bool


def find_order(layout: Layout, terms: LinkTerms, careful: bool = False) -> Order:
    """Eliminate in one state, and note what went where.

    ``careful``: where something is carried or might be, what can be carried on is.
    """
    made: dict[int, NodeOrder] = {}
    passed: dict[int, list[Tag]] = {}
    grown, condition = 0.0, 0.0
    for k in reversed(layout.order):
        node, unit = layout.nodes[k], layout.units
        Gamma, arriving = _before_hinge(layout, node, terms, made, passed)
        T, inner, names = joined(node.joins, arriving)
        if node.joins:
            turn = np.zeros((12 + T.shape[0], 12 + T.shape[1]))
            turn[:12, :12], turn[12:, 12:] = np.eye(12), T
            Gamma = turn.T @ Gamma @ turn
            Gamma[12:, 12:] += inner
        names = [*names, *node.hinge_tags()]
        E, *rows, whole = _at_hinge(layout, node, terms, Gamma)
        scale = _scales(layout, node, terms, rows, made, T)
        held = [i for i, name in enumerate(names, 12) if name in layout.waiting]
        exact = bool(rows[1].any())
        bound = CAREFUL if careful and (len(Gamma) > 12 or exact) else BOUND
        choice = choose(whole, scale, 12, node.parent < 0, held, bound, _summed(Gamma, E))
        passed[k] = [names[i] for i in choice.carry]
        gone, keep = choice.eliminate + 12, np.concatenate([np.arange(12), choice.carry + 12])
        own = choice.scale[choice.eliminate]
        beside = whole[np.ix_(gone, keep)]
        try:
            inverse = np.linalg.inv(whole[np.ix_(gone, gone)] * np.outer(own, own))
        except np.linalg.LinAlgError:
            inverse = np.full((len(gone), len(gone)), np.inf)
        growth = 0.0
        if node.parent < 0:
            condition = max(condition, float(np.abs(inverse).max(initial=0.0)))
            reduced = whole[:0, :0]
        else:
            update = beside.T @ (inverse * np.outer(own, own)) @ beside
            reduced = whole[np.ix_(keep, keep)] - 0.5 * (update + update.T)
            every = np.concatenate([unit, choice.scale])
            size = sizes(whole * np.outer(every, every), 12)[np.ix_(keep, keep)]
            growth = float((np.abs(update * np.outer(every[keep], every[keep])) / size).max(initial=0.0))
            grown = max(grown, growth)
        made[k] = NodeOrder(whole, len(Gamma) - 12, T, exact, choice, reduced, growth)
    return Order(made, grown <= BOUND_AGAIN and condition <= ROOT_CONDITION)


def _before_hinge(
    layout: Layout, node: Node, terms: LinkTerms, made: dict[int, NodeOrder], passed: dict[int, list[Tag]]
) -> tuple[Array, list[Tag]]:
    """Γ of a body with all that is outboard: its inertia, information, external forces, and its children."""
    system, k = layout.system, node.k
    n = 12 + node.n_own + sum(len(made[j].choice.carry) for j in node.children)
    Gamma, names, at = np.zeros((n, n)), node.own_tags(), 12
    if k < system.n_bodies:
        Gamma[LAMBDA, ALPHA] = Gamma[ALPHA, LAMBDA] = terms.inertia[0, k]
    for piece in node.info:
        rows = layout.rows(piece, terms)
        if rows.K is not None:
            Gamma[ALPHA, ALPHA] += rows.K[0].T @ piece.weight @ rows.K[0]
    for push in node.spread:
        P = layout.wrench(push, terms)[0]
        Gamma[LAMBDA, LAMBDA] -= P @ push.weight @ P.T
    for push in node.loose:
        here = slice(at, at + len(push.seen))
        Gamma[here, LAMBDA], Gamma[here, here], at = -layout.wrench(push, terms)[0].T, push.weight, here.stop
    for end in node.ends:  # a force K*ν on the body, and a reading of Kα
        r = len(end.rows)
        K = loop_terms(system, terms, np.zeros((1, 3)), end.loop)[0][end.side][0, list(end.rows)]
        Gamma[at : at + r, LAMBDA], Gamma[at + r : at + 2 * r, ALPHA] = -K, K
        at += 2 * r
    for j in node.children:
        child, phi = made[j].reduced, rigid_transform(terms.l[0, j])
        shift = np.eye(len(child))
        shift[ALPHA, ALPHA] = shift[LAMBDA, LAMBDA] = phi
        moved, here = shift @ child @ shift.T, slice(at, at + len(child) - 12)
        Gamma[:12, :12] += moved[:12, :12]
        Gamma[here, :12], Gamma[here, here], at = moved[12:, :12], moved[12:, 12:], here.stop
        names = names + passed[j]
    Gamma[:12, 12:] = Gamma[12:, :12].T
    return Gamma, names


def _at_hinge(layout: Layout, node: Node, terms: LinkTerms, Gamma: Array) -> list[Array]:
    """E = [H*, ·; ·, S*]; S, K and e of the rows; and Γ over (α', g, u, q̈, m)."""
    H, m, r = terms.H[0, node.dofs], node.n_dofs, node.n_rows
    S, K, e, R = np.zeros((r, 6)), np.zeros((r, 6)), np.zeros((r, m)), np.zeros((r, r))
    at = 0
    for piece in node.rows:
        own, here = layout.rows(piece, terms), slice(at, at + len(piece.seen))
        for into, given in ((S, own.S), (K, own.K), (e, own.e)):
            if given is not None:
                into[here] = given[0]
        R[here, here], at = piece.R, here.stop
    if node.geared:  # its coupling reads its torque, with its rotor
        S[-1], e[-1] = H[0], layout.dofs.armature[node.dofs]
    E = np.zeros((12, m + r))
    E[ALPHA, :m], E[LAMBDA, m:] = H.T, S.T
    beside = Gamma[:, :12] @ E
    inner = E.T @ beside[:12]
    beside[ALPHA, m:] += K.T
    L = K @ H.T + e
    inner[m:, :m] += L
    inner[:m, m:] += L.T
    inner[m:, m:] -= R
    for piece in node.info:
        rows = layout.rows(piece, terms)
        if rows.e is not None:
            inner[:m, :m] += rows.e[0].T @ piece.weight @ rows.e[0]
    return [E, S, K, e, np.block([[Gamma, beside], [beside.T, inner]])]


def _summed(Gamma: Array, E: Array) -> Array:
    """Sums of the sizes of the terms of which entries among (u, q̈, m) are sums."""
    own = np.zeros((len(Gamma), len(Gamma) - 12 + E.shape[1]))
    own[:12, len(Gamma) - 12 :] = np.abs(E)
    own[range(12, len(Gamma)), range(len(Gamma) - 12)] = 1.0
    return np.asarray(own.T @ np.abs(Gamma) @ own)


def _scales(
    layout: Layout, node: Node, terms: LinkTerms, rows: list[Array], made: dict[int, NodeOrder], T: Array
) -> Array:
    """Natural sizes of (α', g, u, q̈, m) at a node."""
    unit, (S, K, e) = layout.units, rows
    push, move = 1.0 / unit[6:], unit[:6]
    parts = [1.0 / np.sqrt(((layout.wrench(one, terms)[0].T * unit[6:]) ** 2).sum(-1)) for one in node.loose]
    for end in node.ends:
        K_end = loop_terms(layout.system, terms, np.zeros((1, 3)), end.loop)[0][end.side][0, list(end.rows)]
        parts += [1.0 / np.sqrt(((K_end * scale) ** 2).sum(-1)) for scale in (unit[6:], move)]
    parts += [made[j].choice.scale[made[j].choice.carry] for j in node.children]
    unknowns = np.concatenate([np.zeros(0), *parts])
    if node.joins:
        size = np.abs(T) / unknowns[:, None]
        unknowns = 1.0 / np.where(size.any(0), size.max(0, initial=0.0), 1.0)
    of_dofs = dof_units(terms.H[0, node.dofs], unit)
    size = np.sqrt(((S * push) ** 2).sum(-1) + ((K * move) ** 2).sum(-1) + ((e * of_dofs) ** 2).sum(-1))
    return np.concatenate([unit, unknowns, of_dofs, 1.0 / np.where(size > 0, size, 1.0)])


@lru_cache(maxsize=64)
def in_general_position(layout: Layout, careful: bool = False) -> Order | None:
    """The order of a state there; None where the sensors leave something undetermined even so."""
    system = layout.system
    q = general_position(system)[None]
    order = find_order(layout, open_terms(system, q, gravity=np.zeros(3)), careful)
    return order if order.suits else None


@lru_cache(maxsize=64)
def general_position(system: System) -> Array:
    """A configuration (nq,) away from neutral and right angles, by about a radian and about the robot's length."""
    H, unit, maps = terms_at_rest(system).H[0], natural_units(system), coordinate_maps(system)
    step = dof_units(H, unit) / unit[0] * np.sin(1.0 + np.arange(len(H)))
    return integrate(system, system.neutral(), step if maps is None else maps[1] @ step)
