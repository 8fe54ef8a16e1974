"""Where the roots of a model's nodes lie, and which children go side by side."""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.columns import Stored, height
from kfdyn.estimation.recursions.model import MODEL, Node
from kfdyn.estimation.recursions.reflections import whole
from kfdyn.sweeps.call import sweep
from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.values import choice, local


class Children(NamedTuple):
    """Where each node's roots (n, n), (n_p, n_p) and (n, n_p) begin, and the end; is it its parent's first child?"""

    own_at: Any
    before_at: Any
    step_at: Any
    first: Any


def own_block(flat, node, children):
    """The root (n, n) of a node."""
    return _block(flat, node, node.n, node.n, children.own_at)


def step_block(flat, node, above, children):
    """What leads from a parent to a child, (n, n_p)."""
    return _block(flat, node, node.n, above.n, children.step_at)


def above_block(flat, node, above, children):
    """A root (n_p, n_p) of a parent, one for each child."""
    return _block(flat, node, above.n, above.n, children.before_at)


def _block(flat, node, rows, columns, at):
    return Stored(flat, node.k * (rows * height(rows)) if node.known else at[node.k], rows, columns, node.known)


class Groups(NamedTuple):
    """Children of the same sizes together: ``members`` from ``starts[g]`` to ``starts[g + 1]``."""

    members: Any
    starts: Any


@sweep(tags=2)
def lay_out(lanes, sizes, model, children, groups, marks, counts):
    """Find where each child's blocks begin, whether it is its parent's first in order, and who shares its sizes.

    ``marks`` are as many zeros as nodes, ``counts`` :func:`kinds` zeros.
    """
    model = MODEL.at(model)
    own, before, step = local(0), local(0), local(0)
    for k in loop(model.nodes):
        node = Node(model, sizes, k)
        children.own_at[k], children.before_at[k], children.step_at[k] = own, before, step
        children.first[k] = False
        high = height(node.n) if node.known else whole(node.n)
        own += node.n * high
        for _ in when(node.parent >= 0):
            r = node.above().n
            before += r * (high if node.known else whole(r))
            step += r * high
    children.own_at[model.nodes], children.before_at[model.nodes], children.step_at[model.nodes] = own, before, step
    for i in loop(model.nodes):
        k = model.order[i]
        p = model.parent[k]
        for _ in when(p >= 0):
            children.first[k] = marks[p] == 0
            marks[p] = 1
            kind = _kind(lanes, sizes, model, children, k)
            counts[kind] = counts[kind] + 1
    at = local(0)
    for kind in loop(counts.size):
        groups.starts[kind] = at
        at += counts[kind]
        counts[kind] = groups.starts[kind]
    groups.starts[counts.size] = at
    for i in loop(model.nodes):
        k = model.order[i]
        for _ in when(model.parent[k] >= 0):
            kind = _kind(lanes, sizes, model, children, k)
            groups.members[counts[kind]] = k
            counts[kind] = counts[kind] + 1


def kinds(lanes, known, most):
    """How many kinds of children there may be: first or not, and of each pair of sizes where they share lanes."""
    return 2 if known or lanes == 1 else 2 * (most + 1) ** 2


def _kind(lanes, sizes, model, children, k):
    later = choice(children.first[k], 0, 1)
    if lanes == 1 or sizes.n is not None:
        return later
    node = Node(model, sizes, k)
    return 2 * (node.n * (model.most + 1) + node.above().n) + later
