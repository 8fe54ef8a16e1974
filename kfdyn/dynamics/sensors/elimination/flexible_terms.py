"""Terms of a system with bodies that bend, as the estimator takes them: nodes of 6 + modes, the six first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.flexible.assembly import flexible_forest, reach
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.sensor import Array
from kfdyn.estimation.model.blocks import Blocks
from kfdyn.multibody import FlexibleSystem
from kfdyn.multibody.links import open_terms


class FlexibleTerms(NamedTuple):
    """The fields of :class:`~kfdyn.multibody.LinkTerms` for B states, wider by the modes, and where attachments are.

    ``rotation``, ``position``, ``velocity`` and ``l`` are of the tree's bodies, attachments included; ``H`` (B, nv, D),
    ``inertia`` (B, n, D, D), ``xi`` and ``eta`` (B, n, D) of the system's, padded by zeros to D states; ``phi``
    (B, n, D, D) leads inward. Of attachment c ``reach`` (B, ·, 6, D) is [φ*, Π], from its body's [V; η̇] to its own
    velocity, and ``pushed`` (B, ·, 6) the acceleration that rates alone bring.
    """

    rotation: Array
    position: Array
    l: Array
    H: Array
    inertia: Array
    velocity: Array
    xi: Array
    eta: Array
    phi: Array
    reach: Array
    pushed: Array


def flexible_terms(system: FlexibleSystem, q: Array, v: Array, gravity: Array | None = None) -> FlexibleTerms:
    """Read them off the assembled model and the tree of attachments, for states q (B, nq), v (B, nv)."""
    ss, B, n, D = flexible_forest(system, q, v, gravity).ss, len(q), system.n_bodies, dofs_of(system).width
    terms = open_terms(system, q, v, gravity=gravity)  # type: ignore[arg-type]
    X, drift = system.expansion(q), system.drift(q, v)
    six_first = [np.r_[int(m) : int(m) + 6, : int(m)] for m in system.modes]  # the assembly has modes first
    H, inertia, phi = np.zeros((B, system.nv, D)), np.zeros((B, n, D, D)), np.zeros((B, n, D, D))
    xi, eta = np.zeros((2, B, n, D))
    start = np.concatenate([[0], np.cumsum(system.modes + 6)])
    for k, order in enumerate(six_first):
        d, own, p = len(order), slice(start[k], start[k + 1]), int(system.parent[k])
        H[:, dofs_of(system).of(k), :d] = _block(ss.H, B, k)[:, :, order]
        inertia[:, k, :d, :d] = _block(ss.Q, B, k)[:, order[:, None], order]
        xi[:, k, :d] = np.reshape(ss.xi, (B, -1))[:, own][:, order]
        eta[:, k, :d] = np.reshape(ss.eta, (B, -1))[:, own][:, order]
        if p >= 0:
            phi[:, k, : len(six_first[p]), :d] = _block(ss.phi, B, k)[:, six_first[p][:, None], order]
    count = len(system.attached)
    reached, pushed = np.zeros((B, count, 6, D)), np.zeros((B, count, 6))
    for i, (k, _) in enumerate(system.attached.values()):
        c, order = n + i, six_first[k]
        six = slice(int(system.tree.layout.v_start[c]), int(system.tree.layout.v_start[c + 1]))
        reached[:, i, :, : len(order)] = reach(system, c, X, terms)[:, :, order]
        pushed[:, i] = terms.eta[:, c] + np.einsum("bji,bj->bi", terms.H[:, six], drift[:, six])
    return FlexibleTerms(
        terms.rotation, terms.position, terms.l, H, inertia, terms.velocity, xi, eta, phi, reached, pushed
    )


def _block(blocks: Blocks, B: int, k: int) -> Array:
    """Block k of all states (B, rows, columns); a state's blocks stand together."""
    flat: Any = blocks.flat.reshape(B, -1)
    return np.asarray(flat[:, blocks.offsets[k] : blocks.offsets[k + 1]]).reshape(B, blocks.rows[k], blocks.cols[k])  # type: ignore[index]
