"""The blocks of a model on a tree: packed, of the sizes that its nodes have, finite, covariances where they must be."""

from __future__ import annotations

import numpy as np

from kfdyn.estimation.model.blocks import Blocks, IntArray
from kfdyn.estimation.model.packing import BlockInput, Packed, pack
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.model.validation import expect_covariance, expect_finite, expect_size

H_RULE = "have one column for each state of its node"
PHI_RULE = "map its node's state to its parent's"
R_RULE = "be square with one row for each output of its node"


def sized(tree: Tree, name: str, packed: Packed, rows: IntArray, cols: IntArray, rule: str) -> Packed:
    """Refuse blocks of the wrong size, or that are not finite."""
    expect_size(tree, name, packed, rows, cols, rule)
    expect_finite(tree, name, packed)
    return packed


def covariances(tree: Tree, name: str, packed: Packed, size: IntArray, rule: str) -> Packed:
    """Refuse blocks that are no covariances of the given size."""
    sized(tree, name, packed, size, size, rule)
    expect_covariance(tree, name, packed)
    return packed


def transitions(tree: Tree, name: str, given: BlockInput, n: IntArray, rule: str) -> Blocks:
    """φ(p(k), k) of all nodes, without rows at a root; the block that many nodes share is stored once."""
    above = parent_sizes(tree, n)
    packed = sized(tree, name, pack(tree, name, given, skip_roots=n), above, n, rule)
    return Blocks(packed.flat, above, n, packed.starts())


def parent_sizes(tree: Tree, n: IntArray) -> IntArray:
    """State sizes of the parents, 0 at a root."""
    if len(tree) and not (n != n[0]).any():
        above = np.full(len(tree), n[0])
    else:
        above = n[tree.parent]
    above[tree.parent < 0] = 0
    return above
