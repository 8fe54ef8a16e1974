"""The inverse mass matrix of every tree of a forest of equal trees."""

from typing import Any, NamedTuple

from numba import njit

from kfdyn._kernels.sizes import SWEEP
from kfdyn.estimation._kernels.inverse import dense_inverse


class OneTree(NamedTuple):
    """What the engine reads of a model when it inverts: topology of one tree, buffers of one configuration."""

    order: Any
    parent: Any
    state: Any
    output: Any
    phi: Any
    phi_at: Any
    H: Any
    H_at: Any
    R_at: Any


@njit(**SWEEP)
def inverses(tag, tree, forest, seen, L, G, out):
    """Fill out (batch, nv, nv), zeros given; ``tree`` lends its topology to the buffers of each tree of ``forest``."""
    n_phi, n_H, n_R = tree.phi_at[-1], tree.H_at[-1], tree.R_at[-1]
    for b in range(len(out)):
        phi, H = forest.phi[b * n_phi : (b + 1) * n_phi], forest.H[b * n_H : (b + 1) * n_H]
        one = OneTree(
            tree.order, tree.parent, tree.state, tree.output, phi, tree.phi_at, H, tree.H_at, tree.R_at
        )  # fmt: skip
        dense_inverse(tag, one, seen, L[b * n_R : (b + 1) * n_R], G[b * n_H : (b + 1) * n_H], out[b])
