"""The scatter of the square-root form: smoothed states, and roots of their covariances (THEORY section 14).

With s the sum that a parent's state was after child k was added to it, s' before, and M, Z, M', Z' of
:mod:`~.square_root_steps`::

    x(k):  z⁺ + M (ŝ − z(s)),     root [Z, M S(s)^½]
    s':    z' + M'(ŝ − z(s)),     root [Z', M' S(s)^½]

Sums of squares alone: nothing cancels.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.lanes import SPARE, Batch, passes
from kfdyn.estimation.recursions.model import MODEL, outward
from kfdyn.estimation.recursions.reflections import array_size
from kfdyn.estimation.recursions.square_root_layout import above_block, own_block, step_block
from kfdyn.estimation.recursions.square_root_node import absorb_product, copy, put_product
from kfdyn.sweeps.call import sweep
from kfdyn.sweeps.control import either, loop, when
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.values import no


@sweep(tags=1)
def scatter_roots(sizes, model, children, roots, steps, S, work):
    """Fill S of every node, roots to leaves; Z of a node becomes a root of S, then of the sum, and is used up.

    ``work`` holds :func:`scatter_work` numbers. Some 5n³ flops a node, twice that for one not its parent's first.
    """
    for node in outward(MODEL.at(model), sizes):
        C = own_block(steps.Z, node, children)
        for inner in either(node.parent >= 0):
            if inner:
                above = node.above()
                total = own_block(steps.Z, above, children)
                absorb_product(C, step_block(steps.M, node, above, children), total, C, work)
                for _ in when(no(children.first[node.k])):
                    M, Z = (above_block(x, node, above, children) for x in (steps.M_aside, steps.Z_aside))
                    absorb_product(Z, M, total, total, work)
            else:
                copy(C, own_block(roots.P_plus, node, children))
        put_product(node.square(S), C, work)


def scatter_work(n):
    """Numbers that :func:`scatter_roots` works in, with at most n states to a node."""
    return array_size(n, 2 * n) + LINE


class RootedRows(NamedTuple):
    """Rows that are smoothed, flat: z and z⁺ of the filter, and x̂."""

    z: Any
    z_plus: Any
    x: Any


@sweep(tags=2)
def smooth_states(lanes, sizes, model, children, M, M_aside, rows, first, last, work):
    """Fill x̂ = z⁺ + M (ŝ − z(s)) of rows first … last, roots to leaves.

    ``work`` is for :func:`states_work` numbers with so many lanes; it carries x̂ − z of the sums. 2n² flops a node and
    row, twice that for a node that was not its parent's first.
    """
    model = MODEL.at(model)
    total = model.state[model.nodes]
    batch = Batch(lanes, work)
    gap, state, other = batch.numbers(total), batch.numbers(model.most), batch.numbers(model.most)
    for pass_ in passes(lanes, first, last):
        batch.rows = pass_
        for node in outward(model, sizes):
            x, own = state.part(0, node.n, node.known), gap.part(node.state, node.n, node.known)
            x.load(rows.z_plus, total, node.state)
            for _ in when(node.parent >= 0):
                above = node.above()
                sums = gap.part(above.state, above.n, above.known)
                x.multiply_turned(step_block(M, node, above, children).turned(), sums, base=x)
                for _ in when(no(children.first[node.k])):
                    moved = other.part(0, above.n, above.known)
                    moved.multiply_turned(above_block(M_aside, node, above, children).turned(), sums)
                    sums.copy(moved)
            x.store(rows.x, total, node.state)
            own.load(rows.z, total, node.state)
            for i in loop(node.n):
                own[i] = x[i] - own[i]


def states_work(states, most):
    """Numbers that :func:`smooth_states` works in, with so many states, at most so many to a node."""
    return states + 2 * most + SPARE
