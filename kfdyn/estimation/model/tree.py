"""The rooted forest along which the filter runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import TreeError

IntArray = NDArray[np.int64]

_LONGEST_KEPT = 4096  # nodes: longer chains are made anew each time


class Tree:
    """A rooted forest given by the parent of every node, in any numbering.

    "Time" runs from the leaves to the roots: a *gather* visits children before parents, a *scatter*
    parents before children (SKO, tree BWA matrices: no canonical numbering is needed).

    Parameters
    ----------
    parent : sequence of int, shape (N,)
        ``parent[k]`` is the parent of node k, −1 at a root.
    names : sequence of str, optional
        Names of the nodes, used in error messages.

    Raises
    ------
    TreeError
        If a parent is out of range, a node is its own ancestor, or an entry is no integer.

    Notes
    -----
    Construction is O(N), without recursion.

    Examples
    --------
    >>> tree = Tree([2, 2, 4, 4, -1])
    >>> tree.roots, tree.leaves, tree.children(4).tolist()
    ([4], [0, 1, 3], [2, 3])
    >>> tree.nearest_common_ancestor(0, 3)
    4
    """

    __slots__ = ("child_list", "child_start", "depth", "names", "order", "parent")

    parent: IntArray
    order: IntArray
    depth: IntArray
    child_start: IntArray
    child_list: IntArray
    names: tuple[str, ...] | None

    def __init__(self, parent: ArrayLike, names: Sequence[str] | None = None) -> None:
        from kfdyn.estimation.recursions import tree as kernels

        array = _parent_array(parent, names)
        object.__setattr__(self, "names", None if names is None else tuple(map(str, names)))
        object.__setattr__(self, "parent", array)
        N = array.size
        start, filled, depth = np.zeros(N + 1, np.int64), np.zeros(N, np.int64), np.zeros(N, np.int64)
        order, children = np.empty(N, np.int64), np.empty(np.count_nonzero(array >= 0), np.int64)
        reached = kernels.orders(array, start, filled, children, order, depth)
        if reached < N:
            loop = " -> ".join(self.label(k) for k in _find_loop(array, order[:reached]))
            raise TreeError(f"the nodes form a loop: {loop}; cut one of these edges (a root has parent -1)")
        for name, value in (
            ("order", order),
            ("depth", depth),
            ("child_start", start),
            ("child_list", children),
        ):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def chain(cls, n_nodes: int) -> Tree:
        """Build the tree without branches in which node k has parent k + 1: a time series.

        Examples
        --------
        >>> Tree.chain(3).parent.tolist()
        [1, 2, -1]
        """
        if n_nodes < 1:
            raise TreeError(f"a chain needs at least one node, got {n_nodes}")
        return _kept_chain(n_nodes) if n_nodes <= _LONGEST_KEPT else _chain(n_nodes)

    @classmethod
    def from_edges(cls, n_nodes: int, edges: Iterable[tuple[int, int]], names: Sequence[str] | None = None) -> Tree:
        """Build a forest from (child, parent) pairs; a node named as child twice is refused.

        Examples
        --------
        >>> Tree.from_edges(3, [(0, 2), (1, 2)]).parent.tolist()
        [2, 2, -1]
        """
        parent = np.full(n_nodes, -1, dtype=np.int64)
        for child, above in edges:
            if not 0 <= child < n_nodes:
                raise TreeError(f"edge ({child}, {above}): node {child} is not one of 0 to {n_nodes - 1}")
            if parent[child] >= 0:
                raise TreeError(
                    f"{_label(names, child)} has two parents, {parent[child]} and {above}; a tree allows one "
                    "(a closed loop must be cut or its nodes merged into one)"
                )
            parent[child] = above
        return cls(parent, names)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Tree is immutable; cannot set '{name}'")

    def __reduce__(self) -> tuple[type[Tree], tuple[list[int], tuple[str, ...] | None]]:
        return Tree, (self.parent.tolist(), self.names)

    def __len__(self) -> int:
        return self.parent.size

    def __repr__(self) -> str:
        kind = "chain" if self.is_chain else "tree" if len(self.roots) == 1 else "forest"
        depth = int(self.depth.max()) + 1 if len(self) else 0
        return f"Tree({kind} of {len(self)} nodes, {len(self.roots)} roots, {len(self.leaves)} leaves, height {depth})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and np.array_equal(self.parent, other.parent)

    def __hash__(self) -> int:
        return hash(self.parent.tobytes())

    def label(self, k: int) -> str:
        """Node k as error messages call it: its number, and its name if it has one."""
        return _label(self.names, k)

    def _node(self, k: int) -> int:
        """K as int; a number that is no node is refused, and −1 too, for it is what lies beyond a root."""
        if not 0 <= k < len(self):
            raise TreeError(f"there is no node {k}; the nodes are 0 to {len(self) - 1}")
        return int(k)

    @property
    def roots(self) -> list[int]:
        """Nodes without a parent."""
        return np.flatnonzero(self.parent < 0).tolist()

    @property
    def leaves(self) -> list[int]:
        """Nodes without children."""
        return np.flatnonzero(np.diff(self.child_start) == 0).tolist()

    @property
    def is_chain(self) -> bool:
        """True if there is one root and no node has two children."""
        return len(self) > 0 and len(self.roots) == 1 and bool(np.diff(self.child_start).max() <= 1)

    def children(self, k: int) -> IntArray:
        """Children c(k) of node k."""
        k = self._node(k)
        return self.child_list[self.child_start[k] : self.child_start[k + 1]]

    def ancestors(self, k: int) -> Iterator[int]:
        """Parent, grandparent, … of node k, up to its root."""
        p = int(self.parent[self._node(k)])
        while p >= 0:
            yield p
            p = int(self.parent[p])

    def descendants(self, k: int) -> list[int]:
        """All nodes outboard of k, k excluded, parents before children."""
        found = self.children(k).tolist()
        for j in found:  # grows while it is read
            found.extend(self.children(j).tolist())
        return found

    def path(self, i: int, j: int) -> list[int]:
        """Nodes from j up to its ancestor i, both included: the blocks of φ(i, j).

        Raises
        ------
        TreeError
            If i is neither j nor an ancestor of j.
        """
        i, walk = self._node(i), [self._node(j)]
        while walk[-1] != i:
            above = int(self.parent[walk[-1]])
            if above < 0:
                raise TreeError(f"{self.label(i)} is not an ancestor of {self.label(j)}")
            walk.append(above)
        return walk

    def nearest_common_ancestor(self, i: int, j: int) -> int | None:
        """The deepest node that is i, j or an ancestor of both; None in different trees. O(depth)."""
        i, j = self._node(i), self._node(j)
        while i != j:
            if i < 0 or j < 0:
                return None
            if self.depth[i] >= self.depth[j]:
                i = int(self.parent[i])
            else:
                j = int(self.parent[j])
        return None if i < 0 else i


def _chain(n_nodes: int) -> Tree:
    """Build the tree in which node k has parent k + 1."""
    tree, order = Tree.__new__(Tree), np.arange(n_nodes)
    parent, start = np.arange(1, n_nodes + 1), np.arange(-1, n_nodes)
    parent[-1], start[0] = -1, 0
    arrays = {
        "parent": parent, "order": order, "depth": order[::-1], "child_start": start,
        "child_list": order[:-1],
    }  # fmt: skip
    for name, value in arrays.items():
        value.flags.writeable = False
        object.__setattr__(tree, name, value)
    object.__setattr__(tree, "names", None)
    return tree


_kept_chain = lru_cache(maxsize=64)(_chain)  # series of one length are modelled again and again


def _label(names: Sequence[str] | None, k: int) -> str:
    return f"node {k} ('{names[k]}')" if names is not None and names[k] else f"node {k}"


def _parent_array(parent: ArrayLike, names: Sequence[str] | None) -> IntArray:
    """Parent as int64, refusing nested lists (several parents), fractions and nodes that do not exist by name."""
    try:
        raw = np.asarray(parent)
    except ValueError as error:  # ragged nesting
        raise TreeError("every node has one parent; got a nested list of parents") from error
    if raw.ndim != 1:
        raise TreeError(
            f"parent must be a flat sequence with one entry for each node, got shape {raw.shape}; "
            "a node cannot have two parents"
        )
    if raw.dtype == object:
        k = next((k for k, p in enumerate(raw) if not isinstance(p, int | np.integer)), 0)
        raise TreeError(f"parent of node {k} is {raw[k]!r}; give one integer, -1 for a root")
    whole = raw.dtype.kind in "iu" or (raw.dtype.kind == "f" and bool((raw == np.rint(raw)).all()))  # NaN is not
    if raw.size and not whole:
        raise TreeError(f"parents must be integers, got {raw.dtype} values")
    if names is not None and len(names) != raw.size:
        raise TreeError(f"{len(names)} names were given for {raw.size} nodes; give one name for each node")
    bad = np.flatnonzero((raw < -1) | (raw >= raw.size))  # before the cast, which would wrap or overflow
    if bad.size:
        k = int(bad[0])
        raise TreeError(
            f"{_label(names, k)} has parent {raw[k]}, but there are only the nodes 0 to {raw.size - 1}; "
            "use -1 for a root"
        )
    array = np.array(raw, dtype=np.int64)
    array.flags.writeable = False
    return array


def _find_loop(parent: IntArray, done: IntArray) -> list[int]:
    """One loop among the nodes that no gather order could reach."""
    left = np.ones(parent.size, dtype=bool)
    left[done] = False
    k = int(np.flatnonzero(left)[0])
    seen: dict[int, int] = {}
    walk: list[int] = []
    while k not in seen:
        seen[k] = len(walk)
        walk.append(k)
        k = int(parent[k])
    return [*walk[seen[k] :], k]
