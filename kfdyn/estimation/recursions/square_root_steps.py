"""What leads from a parent to a child in the square-root form of the smoother (THEORY section 14).

A parent's state is a sum to which its children were added one after the other. With s the sum after child k and s' the
sum before::

    [ P(s')^½   φ P⁺^½ ]      [ P(s)^½   0  ]
    [    0      P⁺^½   ]  →   [   Y      Z  ]        M = Y P(s)^-½,     M' = Y' P(s)^-½
    [ P(s')^½     0    ]      [   Y'     Z' ]

What depends on a node and its parent alone, M and Z, is found for several nodes side by side; what depends on all that
lies inboard is left to :mod:`~.square_root_smoother`: a product and n reflections a node.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.lanes import SPARE
from kfdyn.estimation.recursions.model import MODEL, Node
from kfdyn.estimation.recursions.reflections import Array, array_size, larger, triangularise, whole
from kfdyn.estimation.recursions.rounding import EPS
from kfdyn.estimation.recursions.square_root_layout import above_block, own_block, step_block
from kfdyn.sweeps.call import sweep
from kfdyn.sweeps.control import down, either, loop, when
from kfdyn.sweeps.functions import absolute
from kfdyn.sweeps.memory import passes
from kfdyn.sweeps.values import anywhere, choice, from_lanes, lane, local, real


class Steps(NamedTuple):
    """M and Z of every child, M' and Z' of those that were not their parent's first."""

    M: Any
    Z: Any
    M_aside: Any
    Z_aside: Any


@sweep(tags=3)
def step_back(lanes, sizes, covariances, model, children, groups, roots, steps, work):
    """Fill M and M' of every child, and Z and Z' unless ``covariances`` is None.

    ``work`` is for :func:`step_work` numbers with so many lanes. Some 10n³ flops a node, and 8n³ more for one that was
    not its parent's first.
    """
    model, work = MODEL.at(model), work.aligned()
    for g in loop(groups.starts.size - 1):
        for at, apart in passes(lanes, groups.starts[g], groups.starts[g + 1]):
            nodes = [Node(model, sizes, groups.members[at + l * apart]) for l in range(lanes)]
            for alone in either(children.first[nodes[0].k]):
                _step(lanes, nodes, alone, covariances is not None, children, roots, steps, work)


def step_work(n):
    """Numbers that :func:`step_back` works in, with at most n states to a node."""
    return array_size(3 * n + 8, 2 * n) + n + 4 + array_size(2 * n + 8, n) + SPARE


def _step(lanes, nodes, alone, rooted, children, roots, steps, work):
    above = [node.above() for node in nodes]
    pairs = list(zip(nodes, above))
    n, r = nodes[0].n, above[0].n
    wide = r + (n if alone else choice(n > r, n, r))
    # where the rows of x(k) begin: with a chunk, so that reflections touch no other
    here = whole(r) if lanes == 1 else r
    aside = here + (whole(n) if lanes == 1 else n)
    rows = here + n if alone else aside + r
    A = Array(work, lanes, rows, wide)
    own = Side([own_block(roots.P_plus, node, children) for node in nodes])
    if alone:
        kept = Side([parent.square(roots.Q) for parent in above])
    else:
        kept = Side([above_block(roots.before, *pair, children) for pair in pairs])
    phi = Side([node.step(parent) for node, parent in pairs])
    A.clear()
    for i in loop(n):
        for j in loop(n):
            A[here + i, r + j] = own[i, j]
    for i in loop(r):
        for j in loop(i + 1):
            x = kept[i, j]
            A[i, j] = x
            if not alone:
                A[aside + i, j] = x
        for l in loop(n):
            x = phi[i, l]
            for j in loop(n):
                A[i, r + j] = A[i, r + j] + x * A[here + l, r + j]
    triangularise(A, r, 0, 0, rows, lambda s: r, r + n)
    pivot = work.part((A.used + wide) * lanes).lanes(lanes)
    M = Array(work.part((A.used + wide + whole(r)) * lanes), lanes, rows - here, r)
    irregular = _pivots(A, r, pivot)
    _divide(A, r, here, rows, pivot, M)
    _put(n, r, Side([step_block(steps.M, *pair, children) for pair in pairs]), lambda i, j: M[i, j])
    if rooted:
        _finish(A, n, r, here, r + n, pivot, irregular, Side([own_block(steps.Z, node, children) for node in nodes]))
    if not alone:
        back = Side([above_block(steps.M_aside, *pair, children) for pair in pairs])
        _put(r, r, back, lambda i, j: M[aside - here + i, j])
        if rooted:
            Z = Side([above_block(steps.Z_aside, *pair, children) for pair in pairs])
            _finish(A, r, r, aside, wide, pivot, irregular, Z)


def _put(n, r, out, number):
    """Keep a block (n, r) of every node."""
    for i in loop(n):
        for j in loop(r):
            out[i, j] = number(i, j)
    for block in out.blocks:
        block.clear_spare()


class Side:
    """Blocks of several nodes side by side: one number with lanes for each of their numbers."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __getitem__(self, place):
        if len(self.blocks) == 1:
            return self.blocks[0][place]
        return from_lanes([block[place] for block in self.blocks])

    def __setitem__(self, place, value):
        for l, block in enumerate(self.blocks):
            block[place] = lane(value, l)


def _pivots(A, r, pivot):
    """One over the diagonal of P(s)^½; 0 where that is no more than rounding of its row. Whether some are 0."""
    least = local(A.zero + 1.0)
    for i in loop(r):
        d = absolute(A[i, i])
        most = local(d)
        for l in loop(i):
            most.set(larger(most, absolute(A[i, l])))
        good = d > 32.0 * EPS * real(r) * most
        pivot[i] = choice(good, 1.0 / choice(good, A[i, i], 1.0), 0.0 * d)
        least.set(choice(good, least, 0.0 * d))
    return least == 0.0


def _divide(A, r, here, rows, pivot, M):
    """M P(s)^½ = Y: in the range of P(s), where that is singular."""
    for i in loop(rows - here):
        for j in down(r):
            s = local(A[here + i, j])
            for l in loop(r, j + 1):
                s -= M[i, l] * A[l, j]
            M[i, j] = s * pivot[j]


def _finish(A, n, r, row, stop, pivot, irregular, out):
    """Keep Z, the n rows from ``row`` on and the columns from r on, as a lower triangular root.

    A column of Y without a pivot says nothing of the sum, so it stays as unknown as it was: it is one more of Z.
    """
    triangularise(A, n, row, r, row + n, lambda s: r + s + 1, stop)
    for _ in when(anywhere(irregular), likely=False):
        for i in loop(n):
            for j in loop(r):
                A[row + i, j] = choice(pivot[j] == 0.0, A[row + i, j], A.zero)
        triangularise(A, n, row, r, row + n, lambda s: 0, r)
    _put(n, n, out, lambda i, j: choice(j > i, A.zero, A[row + i, r + j]))
