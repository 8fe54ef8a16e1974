"""The roots of a model's nodes, where they lie, and which children go side by side."""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.reflections import whole
from kfdyn.estimation.recursions.linalg.root_columns import Stored, height
from kfdyn.estimation.recursions.state_space import MODEL, Node
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.jit import sweep
from kfdyn.sweeps.values import where
from kfdyn.sweeps.variables import local


class Roots(NamedTuple):
    """Roots of the noise, Q^½ and R^½, lower triangular, row by row; P^½ and P⁺^½ (:class:`~.root_columns.Stored`).

    ``before`` holds P(p)^½ as each child found it that was not the first. ``own_at``, ``before_at`` and ``step_at`` are
    where each node's blocks (n, n), (n_p, n_p) and (n, n_p) begin, and the end; ``first``: is it its parent's first
    child? Children of the same sizes are together: ``members`` from ``starts[g]`` to ``starts[g + 1]``.
    """

    own_at: Any
    before_at: Any
    step_at: Any
    first: Any
    members: Any
    starts: Any
    Q: Any
    R: Any
    P: Any
    P_plus: Any
    before: Any

    def own(self, flat, node):
        """The root (n, n) of a node."""
        return _block(flat, node, node.n, node.n, self.own_at)

    def step(self, flat, node, above):
        """Return the map from a parent to a child, (n, n_p)."""
        return _block(flat, node, node.n, above.n, self.step_at)

    def above(self, flat, node, above):
        """A root (n_p, n_p) of a parent, one for each child."""
        return _block(flat, node, above.n, above.n, self.before_at)


def _block(flat, node, rows, columns, at):
    return Stored(flat, node.k * (rows * height(rows)) if node.known else at[node.k], rows, columns, node.known)


@sweep(tags=2)
def lay_out(lanes, sizes, model, roots, marks, counts):
    """Find where each child's blocks begin, whether it is its parent's first in order, and who shares its sizes.

    ``marks`` are as many zeros as nodes, ``counts`` :func:`kinds` zeros.
    """
    model = MODEL.at(model)
    own, before, step = local(0), local(0), local(0)
    for k in loop(model.nodes):
        node = Node(model, sizes, k)
        roots.own_at[k], roots.before_at[k], roots.step_at[k] = own, before, step
        roots.first[k] = False
        own += node.n * (height(node.n) if node.known else whole(node.n))
        if node.known:  # a root has room for what it has not, so that all are found without a look
            before.set(own)
            step.set(own)
            continue
        for _ in if_(node.parent >= 0):
            r = node.above().n
            before += r * whole(r)
            step += r * whole(node.n)
    roots.own_at[model.nodes], roots.before_at[model.nodes], roots.step_at[model.nodes] = own, before, step
    for i in loop(model.nodes):
        k = model.order[i]
        p = model.parent[k]
        for _ in if_(p >= 0):
            roots.first[k] = marks[p] == 0
            marks[p] = 1
            kind = _kind(lanes, Node(model, sizes, k), roots)
            counts[kind] = counts[kind] + 1
    at = local(0)
    for kind in loop(counts.size):
        roots.starts[kind] = at
        at += counts[kind]
        counts[kind] = roots.starts[kind]
    roots.starts[counts.size] = at
    for i in loop(model.nodes):
        k = model.order[i]
        for _ in if_(model.parent[k] >= 0):
            kind = _kind(lanes, Node(model, sizes, k), roots)
            roots.members[counts[kind]] = k
            counts[kind] = counts[kind] + 1


def kinds(lanes, known, most):
    """The largest number of kinds of children: first or not, and of each pair of sizes where they share lanes."""
    return 2 if known or lanes == 1 else 2 * (most + 1) ** 2


def _kind(lanes, node, roots):
    later = where(roots.first[node.k], 0, 1)
    if lanes == 1 or node.known:
        return later
    return 2 * (node.n * (node.model.most + 1) + node.above().n) + later
