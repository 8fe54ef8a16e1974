"""Terms of a system with bodies that bend, as sensors read them: nodes of 6 + modes, the six first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.flexible.assembly import flexible_blocks, reach
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.sensor import Array
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


def flexible_terms(system: FlexibleSystem, q: Array, v: Array, gravity: Array) -> FlexibleTerms:
    """Read them off the blocks of the translation and the tree of attachments, for states q (B, nq), v (B, nv)."""
    B, n, D = len(q), system.n_bodies, dofs_of(system).width
    terms = open_terms(system, q, v, gravity=gravity)  # type: ignore[arg-type]
    X, drift = system.expansion(q), system.drift(q, v)
    six_first = [np.r_[int(m) : int(m) + 6, : int(m)] for m in system.modes]  # the translation has modes first
    H, inertia, phi = np.zeros((B, system.nv, D)), np.zeros((B, n, D, D)), np.zeros((B, n, D, D))
    xi, eta = np.zeros((2, B, n, D))
    _, blocks = flexible_blocks(system, q, v, gravity)
    for k, (order, block) in enumerate(zip(six_first, blocks)):
        d, p = len(order), int(system.parent[k])
        H[:, dofs_of(system).of(k), :d] = block.H[:, :, order]
        inertia[:, k, :d, :d] = block.Q[:, order[:, None], order]
        xi[:, k, :d], eta[:, k, :d] = block.xi[:, order], block.eta[:, order]
        if block.phi is not None:
            phi[:, k, : len(six_first[p]), :d] = block.phi[:, six_first[p][:, None], order]
    reached, pushed = np.zeros((B, len(system.attached), 6, D)), np.zeros((B, len(system.attached), 6))
    for i, (k, _) in enumerate(system.attached.values()):
        c, order = n + i, six_first[k]
        six = slice(int(system.tree.layout.v_start[c]), int(system.tree.layout.v_start[c + 1]))
        reached[:, i, :, : len(order)] = reach(system, c, X, terms)[:, :, order]
        pushed[:, i] = terms.eta[:, c] + np.einsum("bji,bj->bi", terms.H[:, six], drift[:, six])
    placed = terms.rotation, terms.position, terms.l
    return FlexibleTerms(*placed, H, inertia, terms.velocity, xi, eta, phi, reached, pushed)
