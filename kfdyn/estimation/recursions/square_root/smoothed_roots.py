"""The scatter of the square-root form: smoothed states, and factors of their covariances (THEORY section 14).

With s the sum that a parent's state was after child k was added to it, s' before, and M, Z, M', Z' of
:mod:`~.steps`::

    x(k):  z⁺ + M (ŝ − z(s)),     root [Z, M S(s)^½]
    s':    z' + M'(ŝ − z(s)),     root [Z', M' S(s)^½]

Sums of squares alone: nothing cancels.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.lanes import Batch
from kfdyn.estimation.recursions.linalg.reflections import array_size
from kfdyn.estimation.recursions.square_root.layout import Roots
from kfdyn.estimation.recursions.square_root.node import absorb_product, copy, put_product
from kfdyn.estimation.recursions.square_root.steps import Steps
from kfdyn.estimation.recursions.state_space import MODEL, outward
from kfdyn.sweeps.control_flow import if_, if_else, loop
from kfdyn.sweeps.jit import sweep
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.values import not_


@sweep(tags=1)
def scatter_roots(sizes, model, roots: Roots, steps: Steps, S, work):
    """Fill S of every node, roots to leaves; Z of a node becomes a root of S, then of the sum, and is used up.

    ``work`` holds :func:`scatter_work` numbers. Some 5n³ flops a node, twice that for one not its parent's first.
    """
    for node in outward(MODEL.at(model), sizes):
        C = roots.own(steps.Z, node)
        for inner in if_else(node.parent >= 0):
            if inner:
                above = node.above()
                total = roots.own(steps.Z, above)
                absorb_product(C, roots.step(steps.M, node, above), total, C, work)
                for _ in if_(not_(roots.first[node.k])):
                    M, Z = (roots.above(x, node, above) for x in (steps.M_aside, steps.Z_aside))
                    absorb_product(Z, M, total, total, work)
            else:
                copy(C, roots.own(roots.P_plus, node))
        put_product(node.square(S), C, work)


def scatter_work(n):
    """Numbers that :func:`scatter_roots` works in, with at most n states to a node."""
    return array_size(n, 2 * n) + LINE


class RootedRows(NamedTuple):
    """Rows that are smoothed, flat: z and z⁺ of the filter, and x̂; and M, M', by which they are."""

    z: Any
    z_plus: Any
    x: Any
    M: Any
    M_aside: Any


@sweep(tags=2)
def smooth_states(lanes, sizes, model, roots, rows, share):
    """Fill x̂ = z⁺ + M (ŝ − z(s)) of a share of rows, roots to leaves.

    The workspace is a :class:`Gaps`. 2n² flops a node and row, twice that for a node that was not its parent's first.
    """
    model = MODEL.at(model)
    total = model.state[model.nodes]
    gaps = Gaps(lanes, share.work, total, model.most)
    for _ in gaps.passes(share):
        for node in outward(model, sizes):
            x, own = node.one_state(gaps.state), node.states(gaps.sums)
            x.load(rows.z_plus, total, node.state)
            for _ in if_(node.parent >= 0):
                above = node.above()
                sums = above.states(gaps.sums)
                x.multiply_turned(roots.step(rows.M, node, above).turned(), sums, base=x)
                for _ in if_(not_(roots.first[node.k])):
                    moved = above.one_state(gaps.moved)
                    moved.multiply_turned(roots.above(rows.M_aside, node, above).turned(), sums)
                    sums.copy(moved)
            x.store(rows.x, total, node.state)
            own.load(rows.z, total, node.state)
            for i in loop(node.n):
                own[i] = x[i] - own[i]


class Gaps(Batch):
    """x̂ − z of the sums; x̂ of a node, and a sum before a child was added to it."""

    @staticmethod
    def layout(states, n):
        """Return the layout for that many states in all, and at most n to a node."""
        return {"sums": states, "state": n, "moved": n}
