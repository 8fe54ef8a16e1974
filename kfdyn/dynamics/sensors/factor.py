"""What the gather leaves at every node: its rows in B states, and how its unknowns were eliminated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.choice import Choice
from kfdyn.dynamics.sensors.layout import Layout
from kfdyn.dynamics.sensors.sensor import Array, Index, Rows
from kfdyn.dynamics.sensors.sharing import Tag
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
