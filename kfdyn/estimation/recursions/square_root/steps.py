"""The map from a parent to a child in the square-root form of the smoother (THEORY section 14).

A parent's state is a sum to which its children were added one after the other. With s the sum after child k and s' the
sum before::

    [ P(s')^½   φ P⁺^½ ]      [ P(s)^½   0  ]
    [    0      P⁺^½   ]  →   [   Y      Z  ]        M = Y P(s)^-½,     M' = Y' P(s)^-½
    [ P(s')^½     0    ]      [   Y'     Z' ]

What depends on a node and its parent alone, M and Z, is found for several nodes side by side; what depends on all that
lies inboard is left to :mod:`~.smoothed_roots`: a product and n reflections a node.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.lanes import SPARE
from kfdyn.estimation.recursions.linalg.reflections import Array, array_size, triangularise, whole
from kfdyn.estimation.recursions.linalg.tolerances import EPS
from kfdyn.estimation.recursions.square_root.layout import Roots
from kfdyn.estimation.recursions.state_space import MODEL, Node
from kfdyn.sweeps.control_flow import down, if_, if_else, loop
from kfdyn.sweeps.functions import maximum
from kfdyn.sweeps.jit import sweep
from kfdyn.sweeps.memory import passes
from kfdyn.sweeps.values import any_lanes, from_lanes, lane, to_float, where
from kfdyn.sweeps.variables import local


class Steps(NamedTuple):
    """M and Z of every child, M' and Z' of those that were not their parent's first."""

    M: Any
    Z: Any
    M_aside: Any
    Z_aside: Any


@sweep(tags=3)
def step_back(lanes, sizes, rooted, model, roots: Roots, steps, work):
    """Fill M and M' of every child, and Z and Z' unless ``rooted`` is None.

    ``work`` is for :func:`step_work` numbers with so many lanes. Some 10n³ flops a node, and 8n³ more for one that was
    not its parent's first.
    """
    model, work = MODEL.at(model), work.aligned()
    for g in loop(roots.starts.size - 1):
        for at, apart in passes(lanes, roots.starts[g], roots.starts[g + 1]):
            nodes = [Node(model, sizes, roots.members[at + l * apart]) for l in range(lanes)]
            for alone in if_else(roots.first[nodes[0].k]):
                Step(nodes, alone, roots, work).fill(steps, rooted is not None)


def step_work(n):
    """Numbers that :func:`step_back` works in, with at most n states to a node."""
    return array_size(3 * n + 8, 2 * n) + n + 4 + array_size(2 * n + 8, n) + SPARE


class Step:
    """Children of the same sizes, one in each lane, and the array above; ``alone``: each is its parent's first."""

    def __init__(self, nodes, alone, roots, work):
        lanes, above = len(nodes), [node.above() for node in nodes]
        self.pairs, self.alone, self.roots = list(zip(nodes, above)), alone, roots
        n, r = self.n, self.r = nodes[0].n, above[0].n
        self.wide = r + (n if alone else maximum(r, n))
        # where the rows of x(k) begin: with a chunk, so that reflections touch no other
        self.here = whole(r) if lanes == 1 else r
        self.aside = self.here + (whole(n) if lanes == 1 else n)
        self.rows = self.here + n if alone else self.aside + r
        self.A = Array(work, lanes, self.rows, self.wide)
        rest = work.part((self.A.used + self.wide) * lanes)
        self.pivot, self.M = rest.lanes(lanes), Array(rest.part(whole(r) * lanes), lanes, self.rows - self.here, r)

    def own(self, flat):
        """Roots (n, n) of the children."""
        return Side([self.roots.own(flat, node) for node, _ in self.pairs])

    def above(self, flat):
        """Roots (n_p, n_p) of their parents."""
        return Side([self.roots.above(flat, *pair) for pair in self.pairs])

    def fill(self, steps, rooted):
        """M and M', and Z and Z' if they are ``rooted``."""
        n, r, M = self.n, self.r, self.M
        self.put_sum()
        triangularise(self.A, r, (0, 0), self.rows, lambda s: (r, r + n))
        irregular = self.invert_diagonal()
        self.divide()
        _put(n, r, Side([self.roots.step(steps.M, *pair) for pair in self.pairs]), lambda i, j: M[i, j])
        if rooted:
            self.finish(n, self.here, r + n, irregular, self.own(steps.Z))
        if not self.alone:
            _put(r, r, self.above(steps.M_aside), lambda i, j: M[self.aside - self.here + i, j])
            if rooted:
                self.finish(r, self.aside, self.wide, irregular, self.above(steps.Z_aside))

    def put_sum(self):
        """The array, as it is before reflections."""
        A, n, r, here = self.A, self.n, self.r, self.here
        own, phi = self.own(self.roots.P_plus), Side([node.step(parent) for node, parent in self.pairs])
        if self.alone:
            kept = Side([parent.square(self.roots.Q) for _, parent in self.pairs])
        else:
            kept = self.above(self.roots.before)
        A.clear()
        for i in loop(n):
            for j in loop(n):
                A[here + i, r + j] = own[i, j]
        for i in loop(r):
            for j in loop(i + 1):
                x = kept[i, j]
                A[i, j] = x
                if not self.alone:
                    A[self.aside + i, j] = x
            for l in loop(n):
                x = phi[i, l]
                for j in loop(n):
                    A[i, r + j] = A[i, r + j] + x * A[here + l, r + j]

    def invert_diagonal(self):
        """One over the diagonal of P(s)^½; 0 where that is no more than rounding of its row. Whether some are 0."""
        A, r = self.A, self.r
        least = local(A.zero + 1.0)
        for i in loop(r):
            d = abs(A[i, i])
            most = local(d)
            for l in loop(i):
                most.set(maximum(most, abs(A[i, l])))
            good = d > 32.0 * EPS * to_float(r) * most
            self.pivot[i] = where(good, 1.0 / where(good, A[i, i], 1.0), 0.0 * d)
            least.set(where(good, least, 0.0 * d))
        return least == 0.0

    def divide(self):
        """M P(s)^½ = Y: in the range of P(s), where that is singular."""
        A, M, r, here = self.A, self.M, self.r, self.here
        for i in loop(self.rows - here):
            for j in down(r):
                s = local(A[here + i, j])
                for l in loop(r, j + 1):
                    s -= M[i, l] * A[l, j]
                M[i, j] = s * self.pivot[j]

    def finish(self, n, row, stop, irregular, out):
        """Keep Z, the n rows from ``row`` on and the columns from r to ``stop``, as a lower triangular root.

        A column of Y without a pivot says nothing of the sum, so it stays as unknown as it was: it is one more of Z.
        """
        A, r, pivot = self.A, self.r, self.pivot
        triangularise(A, n, (row, r), row + n, lambda s: (r + s + 1, stop))
        for _ in if_(any_lanes(irregular), likely=False):
            for i in loop(n):
                for j in loop(r):
                    A[row + i, j] = where(pivot[j] == 0.0, A[row + i, j], A.zero)
            triangularise(A, n, (row, r), row + n, lambda s: (0, r))
        _put(n, n, out, lambda i, j: where(j > i, A.zero, A[row + i, r + j]))


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
