"""Tree against brute force that follows parents one by one."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from random_models import fast, forests

from kfdyn.errors import TreeError
from kfdyn.estimation import Tree


def brute_ancestors(parent, k):
    return [] if parent[k] < 0 else [parent[k], *brute_ancestors(parent, parent[k])]


@given(forests(max_nodes=14))
@fast
def test_orders_and_relations(parent):
    """SKO:bwa. Any numbering, any forest: children before parents in a gather, and every relation by brute force."""
    tree, nodes = Tree(parent), range(len(parent))
    above = [brute_ancestors(parent, k) for k in nodes]
    assert len(tree) == len(parent)
    assert sorted(tree.order.tolist()) == list(nodes)
    place = {int(k): i for i, k in enumerate(tree.order)}
    assert all(place[k] < place[p] for k, p in enumerate(parent) if p >= 0)
    assert tree.depth.tolist() == [len(up) for up in above]
    assert tree.roots == [k for k in nodes if parent[k] < 0]
    assert tree.leaves == [k for k in nodes if k not in parent]
    childless_or_single = all(parent.count(k) <= 1 for k in nodes)
    assert tree.is_chain == (parent.count(-1) == 1 and childless_or_single)
    for k in nodes:
        assert list(tree.ancestors(k)) == above[k]
        assert sorted(tree.children(k).tolist()) == [j for j in nodes if parent[j] == k]
        below = tree.descendants(k)
        assert sorted(below) == [j for j in nodes if k in above[j]]
        assert all(parent[j] == k or below.index(parent[j]) < below.index(j) for j in below)
        for j in nodes:
            up_k, up_j = [k, *above[k]], [j, *above[j]]
            common = [i for i in up_k if i in up_j]
            assert tree.nearest_common_ancestor(k, j) == (common[0] if common else None)
            if k in up_j:
                assert tree.path(k, j) == up_j[: up_j.index(k) + 1]
            else:
                with pytest.raises(TreeError, match=rf"node {k} is not an ancestor of node {j}"):
                    tree.path(k, j)


@given(forests())
@fast
def test_edges_give_the_same_tree(parent):
    edges = [(k, p) for k, p in enumerate(parent) if p >= 0]
    assert Tree.from_edges(len(parent), edges[::-1]) == Tree(parent)


def test_a_million_nodes_without_recursion():
    """A chain numbered from either end, and a star: seconds, where a quadratic build would take hours."""
    N = 10**6
    up, down, star = np.arange(1, N + 1), np.arange(-1, N - 1), np.full(N, N - 1)
    up[-1] = star[-1] = -1
    for parent, height in ((up, N), (down, N), (star, 2)):
        tree = Tree(parent)
        assert tree.depth.max() == height - 1
        assert len(tree.roots) == 1
    assert Tree(up).order[0] == 0
    assert Tree(down).order[0] == N - 1
    assert Tree(up).is_chain
    assert not tree.is_chain
    assert len(tree.descendants(N - 1)) == N - 1


@pytest.mark.parametrize(
    ("parent", "message"),
    [
        ([0], r"loop: node 0 -> node 0; cut one of these edges"),
        ([1, 2, 0, -1], r"loop: node \d -> node \d -> node \d -> node \d; cut"),
        ([1, 2, 1, -1], r"loop: node 1 -> node 2 -> node 1"),
        ([1, 5], r"node 1 has parent 5, but there are only the nodes 0 to 1; use -1 for a root"),
        ([-2, 0], r"node 0 has parent -2.*use -1 for a root"),
        ([[1, 2], [-1], [-1]], r"one parent"),
        ([[1, 2], [-1, 0]], r"two parents"),
        ([1, None], r"parent of node 1 is None; give one integer, -1 for a root"),
        ([0.5, -1], r"parents must be integers"),
        ([np.nan, -1], r"parents must be integers"),
        ([True, False], r"parents must be integers"),
        (["base", "tip"], r"parents must be integers"),
        (-1, r"flat sequence"),
    ],
)
def test_what_is_no_forest_is_refused_by_name(parent, message):
    with pytest.raises(TreeError, match=message):
        Tree(parent)


def test_names_are_used_in_messages():
    with pytest.raises(TreeError, match=r"node 0 \('arm'\) -> node 1 \('hand'\) -> node 0 \('arm'\)"):
        Tree([1, 0], names=["arm", "hand"])
    with pytest.raises(TreeError, match=r"node 1 \('hand'\) has parent 7"):
        Tree([-1, 7], names=["arm", "hand"])
    with pytest.raises(TreeError, match=r"1 names were given for 2 nodes"):
        Tree([-1, 0], names=["arm"])


def test_edges_refuse_two_parents_and_strangers():
    with pytest.raises(TreeError, match=r"node 0 has two parents, 1 and 2; a tree allows one"):
        Tree.from_edges(3, [(0, 1), (0, 2)])
    with pytest.raises(TreeError, match=r"node 0 \('arm'\) has two parents"):
        Tree.from_edges(3, [(0, 1), (0, 2)], names=["arm", "b", "c"])
    with pytest.raises(TreeError, match=r"edge \(5, 1\): node 5 is not one of 0 to 2"):
        Tree.from_edges(3, [(5, 1)])
    with pytest.raises(TreeError, match=r"node 0 has parent 9"):
        Tree.from_edges(3, [(0, 9)])


def test_immutable_hashable_picklable():
    given = np.array([2, 2, -1, 2])
    tree = Tree(given, names="abcd")
    given[0] = -1  # the tree has its own copy
    assert tree.parent.tolist() == [2, 2, -1, 2]
    with pytest.raises(AttributeError, match="immutable"):
        tree.parent = given
    for array in (tree.parent, tree.order, tree.depth, tree.children(2)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    copy = pickle.loads(pickle.dumps(tree))
    assert copy == tree
    assert copy.names == tree.names == ("a", "b", "c", "d")
    assert len({tree, copy, Tree([-1])}) == 2
    assert tree != Tree([2, 2, -1, -1])
    assert tree != "tree"


@pytest.mark.parametrize(
    ("parent", "text"),
    [
        ([1, 2, -1], "Tree(chain of 3 nodes, 1 roots, 1 leaves, height 3)"),
        ([2, 2, -1], "Tree(tree of 3 nodes, 1 roots, 2 leaves, height 2)"),
        ([-1, -1], "Tree(forest of 2 nodes, 2 roots, 2 leaves, height 1)"),
        ([], "Tree(forest of 0 nodes, 0 roots, 0 leaves, height 0)"),
    ],
)
def test_repr(parent, text):
    assert repr(Tree(parent)) == text


@pytest.mark.parametrize("parent", [np.array([2**64 - 1, 0], np.uint64), [1e300, -1.0], np.array([-1, 2**40])])
def test_parents_beyond_any_integer_are_not_wrapped(parent):
    with pytest.raises(TreeError, match="only the nodes 0 to 1"):
        Tree(parent)


@pytest.mark.parametrize("k", [-1, 3])
def test_what_is_no_node_is_refused(k):
    """−1 lies beyond a root: to take it for the last node would answer for another one."""
    tree = Tree([2, 2, -1])
    for ask in (
        tree.children,
        lambda k: list(tree.ancestors(k)),
        tree.descendants,
        lambda k: tree.path(2, k),
        lambda k: tree.path(k, 0),
        lambda k: tree.nearest_common_ancestor(0, k),
        lambda k: tree.nearest_common_ancestor(k, k),
    ):
        with pytest.raises(TreeError, match=f"no node {k}; the nodes are 0 to 2"):
            ask(k)
