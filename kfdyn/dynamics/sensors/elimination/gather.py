"""The gather: from the tips to the base, each node's unknowns are eliminated and the rest is shifted to its parent.

A subtree is known to its parent by the stationary value of

    F(α, λ, u) = ½ z*Γz + γ*z,   z = (α, λ, u),   Γ = [[J, A*, N*], [A, −C, E], [N, E*, Y]],   γ = (−h, b, −y)

which is THEORY section 11's message f | α ~ N(Aα + b, C), (J, h), with the unknowns u that were carried on from
outboard. At the hinge α = α' + H*q̈ and λ = g + S*m, a row adds m*(Kα + e q̈ − y) − ½ m*Rm, and what can be eliminated of
w = (u, q̈, m) is. Here stand the matrices, which the readings do not enter; ``solve`` runs the vectors.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.sensors.dofs import is_open
from kfdyn.dynamics.sensors.elimination.factor import Factor, NodeData, NodeFactor, node_data
from kfdyn.dynamics.sensors.elimination.flexible_terms import flexible_terms
from kfdyn.dynamics.sensors.elimination.layout import Layout, Node, dof_units, natural_units, terms_at_rest
from kfdyn.dynamics.sensors.elimination.loop_unknowns import Tag, coordinate_maps, joined
from kfdyn.dynamics.sensors.elimination.message import (
    arrived,
    at_hinge,
    before_hinge,
    inward,
    joined_unknowns,
    of_hinge,
    terms_at_hinge,
)
from kfdyn.dynamics.sensors.elimination.pivoting import (
    BOUND,
    BOUND_AGAIN,
    BOUND_ELSEWHERE,
    CAREFUL,
    CONDITION,
    ROOT_CONDITION,
    Choice,
    choose,
    sizes,
)
from kfdyn.dynamics.sensors.sensor import Array
from kfdyn.multibody import FlexibleSystem, LinkTerms, System, integrate
from kfdyn.multibody.links import open_terms


def gather(
    layout: Layout,
    terms: LinkTerms,
    choices: dict[int, Choice] | None = None,
    pins: dict[int, Array] | None = None,
    careful: bool = False,
) -> Factor:
    """Factor B states at once; without ``choices`` they are made for the first state. ``pins`` add to roots' 𝒦.

    ``careful``: where something is carried or might be, what can be carried on is.
    """
    size = len(terms.l)
    factors: dict[int, NodeFactor] = {}
    made: dict[int, Choice] = dict(choices or {})
    log_det, growth, condition = np.zeros(size), np.zeros(size), np.zeros(size)
    passed: dict[int, list[Tag]] = {}
    for k in reversed(layout.order):
        node = layout.nodes[k]
        data = node_data(layout, node, terms)
        Gamma = before_hinge(node, data, terms, factors)
        T, inner, names = joined(node.joins, arrived(node, passed) if layout.waiting else [])
        if T is not None:
            Gamma = joined_unknowns(Gamma, T, inner)
        names = [*names, *of_hinge(node)] if layout.waiting else []
        E, whole = at_hinge(node, data, Gamma)
        first = E.shape[-2]
        if k not in made:
            held = [i for i, name in enumerate(names, first) if name in layout.waiting]
            carries = careful and (Gamma.shape[-1] > first or data.K.any())
            bound = CAREFUL if carries else BOUND
            scale, root = _scales(layout, node, data, made, T), node.parent < 0
            made[k] = choose(whole[0], scale, first, root, held, bound, terms_at_hinge(Gamma[0], E[0]))
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
        if node.parent < 0:
            condition = np.maximum(condition, np.abs(inverse / scale[:, None] / scale).max((1, 2), initial=0.0))
        else:
            growth = np.maximum(growth, _growth(layout, node, choice, whole, beside, X))
        phi = inward(terms, k)
        factors[k] = NodeFactor(data, Gamma, E, keep, gone, inverse, X, beside, reduced, phi, T, tuple(names))
    return Factor(layout, terms, factors, log_det, growth, condition, made)


def _growth(layout: Layout, node: Node, choice: Choice, whole: Array, beside: Array, X: Array) -> Array:
    """How far (B,) entries grew by the elimination, in natural scales."""
    unit = _passed_on(layout.units[node.k])
    head = len(unit)
    outer = np.concatenate([unit, choice.scale[choice.carry]])
    left = (beside * outer).swapaxes(-1, -2) @ (X * outer)
    every = np.concatenate([unit, choice.scale])
    keep = np.concatenate([np.arange(head), head + choice.carry])
    size = sizes(whole * every[:, None] * every, head)[:, keep[:, None], keep]
    growth = (np.abs(left) / size).max((1, 2), initial=0.0)
    return np.where(np.isfinite(growth), growth, np.inf)


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
    """Mask (B,) of the states that are singular, or lose digits, with choices made for the first of them."""
    return ~((factor.growth <= BOUND_AGAIN) & (factor.condition <= ROOT_CONDITION))


def unlike(factor: Factor) -> NDArray[np.bool_]:
    """Mask (B,) of the states for which choices made elsewhere are not as good as their own.

    Those may hide what is singular, so a state that comes near is decided by its own.
    """
    return ~((factor.growth <= BOUND_ELSEWHERE) & (factor.condition <= CONDITION))


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
    unknowns = np.concatenate([of_loose, *of_ends, *carried])
    if T is not None:
        size = np.abs(T) / unknowns[:, None]
        unknowns = 1.0 / np.where(size.any(0), size.max(0, initial=0.0), 1.0)
    return np.concatenate([_passed_on(unit), unknowns, of_dofs, of_rows])


def _passed_on(unit: Array) -> Array:
    """Scales of α' and g at a node; those of modes are always 0, so that what is said of them counts nowhere."""
    D = len(unit) // 2
    return np.where(np.arange(2 * D) % D < 6, unit, 0.0)


@lru_cache(maxsize=64)
def in_general_position(layout: Layout, careful: bool = False) -> Factor | None:
    """The factor of one state there, with its choices; None where the sensors leave something undetermined even so."""
    system = layout.system
    q = general_position(system)[None]
    factor = gather(layout, terms_of(system, q, np.zeros((1, system.nv)), system.gravity[None]), careful=careful)
    return None if unsuited(factor)[0] else factor


@lru_cache(maxsize=64)
def general_position(system: System) -> Array:
    """A configuration (nq,) away from neutral and right angles, by about a radian and about the robot's length."""
    H, unit, maps = terms_at_rest(system).H[0, :, :6], natural_units(system), coordinate_maps(system)
    step = dof_units(H, unit) / unit[0] * np.sin(1.0 + np.arange(len(H)))
    if isinstance(system, FlexibleSystem):
        step[system.elastic] = 0.0
    return integrate(system, system.neutral(), step if maps is None else maps[1] @ step)


def terms_of(system: System, q: Array, v: Array, gravity: Array) -> LinkTerms:
    """Link terms of B states; of couplings and loops those of the open tree, and the world as one body more."""
    if isinstance(system, FlexibleSystem):
        return flexible_terms(system, q, v, gravity)
    terms = open_terms(system, q, v, gravity=gravity)
    if is_open(system):
        return terms
    ends = [np.zeros((len(q), 1, *x.shape[2:])) for x in terms]
    ends[0][:] = np.eye(3)
    return LinkTerms(
        *(x if i == 3 else np.concatenate([x, end], axis=1) for i, (x, end) in enumerate(zip(terms, ends)))
    )
