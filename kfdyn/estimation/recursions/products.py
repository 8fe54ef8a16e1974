"""Products with φ, ψ and their adjoints, full and strict, as gathers and scatters.

Sources: SKO "gather", "scatter", "strict".
"""

from kfdyn.estimation.recursions.dense import Block, multiply
from kfdyn.estimation.recursions.lanes import SPARE, Batch, passes
from kfdyn.estimation.recursions.model import ANY, MODEL, inward, outward
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control import loop, when


@sweep(tags=3)
def gather(lanes, sizes, weighted, model, G, closed, strict, x, first, last, y, work):
    """y = A x or Ã x, leaves to roots, for A = φ or (closed) A = ψ, whose step is φ τ̄ = φ(1 − G H).

    With s(k) = Σ_j A(k,j)(s(j) + x(j)), Ã x = s and A x = s + x. Of A Q x where it is ``weighted``, else None. ``work``
    is for :func:`work_size` numbers with so many lanes.
    """
    flow = Flow(lanes, MODEL.at(model), work)
    for pass_ in passes(lanes, first, last):
        flow.batch.rows = pass_
        flow.sums.clear()
        for node in inward(flow.model, sizes):
            own = flow.of(node)
            flow.add(node, own, strict, x, y, weighted is not None)
            for _ in when(node.parent >= 0):
                for _ in when((closed != 0) & (node.m > 0)):
                    seen = flow.seen.part(0, node.m, node.one)
                    seen.multiply(node.H, own)
                    own.multiply(node.gain(G), seen, base=own, sign=-1.0)
                above = node.above()
                total = flow.of(above)
                total.multiply(node.step(above), own, base=total)


@sweep(tags=2)
def scatter(lanes, sizes, model, G, closed, strict, x, first, last, y, work):
    """y = A* x or Ã* x, roots to leaves: s(k) = A*(p,k) (s(p) + x(p)), Ã* x = s and A* x = s + x."""
    flow = Flow(lanes, MODEL.at(model), work)
    for pass_ in passes(lanes, first, last):
        flow.batch.rows = pass_
        for node in outward(flow.model, sizes):
            own = flow.of(node)
            own.clear()
            for _ in when(node.parent >= 0):
                above = node.above()
                own.multiply_turned(node.step(above), flow.of(above))
                for _ in when((closed != 0) & (node.m > 0)):
                    seen = flow.seen.part(0, node.m, node.one)
                    seen.multiply_turned(node.gain(G), own)
                    own.multiply_turned(node.H, seen, base=own, sign=-1.0)
            flow.add(node, own, strict, x, y)


class Flow:
    """What flows through a tree in both: s of every node, then s + x."""

    def __init__(self, lanes, model, work):
        self.model, self.batch = model, Batch(lanes, work)
        self.states = model.state[model.nodes]
        self.sums, self.known = self.batch.numbers(self.states), self.batch.numbers(model.most)
        self.seen = self.batch.numbers(model.most_outputs)

    def of(self, node):
        """The part of a node."""
        return self.sums.part(node.state, node.n, node.known)

    def add(self, node, own, strict, x, y, weighted=False):
        """Add x or Q x to s, and keep s before that if strict, else after."""
        known = self.known.part(0, node.n, node.known)
        for _ in when(strict != 0):
            own.store(y, self.states, node.state)
        known.load(x, self.states, node.state)
        if weighted:
            own.multiply_turned(node.square(self.model.Q), known, base=own)
        else:
            own.add(known)
        for _ in when(strict == 0):
            own.store(y, self.states, node.state)


def work_size(states, most_states, most_outputs):
    """Numbers that the sweeps work in, with so many states in all, and at most so many to a node."""
    return states + most_states + most_outputs + SPARE


@sweep(tags=1)
def step(lanes, model, transposed, x, first, last, y, work):
    """y += ℰ_φ x, y(p) += φ(p,k) x(k), or its adjoint y(k) += φ*(p,k) x(p): one edge, no recursion.

    ``work`` is for :func:`pair_size` numbers with so many lanes.
    """
    model = MODEL.at(model)
    pair = Pair(lanes, model.most, x, y, work)
    states = model.state[model.nodes]
    for pass_ in passes(lanes, first, last):
        pair.batch.rows = pass_
        for node in inward(model, ANY):
            for _ in when(node.parent >= 0):
                above = node.above()
                pair.multiply(node.step(above), transposed, (states, above.state), (states, node.state))


@sweep(tags=1)
def multiply_blocks(lanes, blocks, blocks_at, rows, cols, transposed, x, first, last, y, most, work):
    """y(k) += B(k) x(k), or B*(k) x(k), for rows first … last of x and y: a block-diagonal product.

    ``rows`` and ``cols`` are where the parts of nodes begin, ``most`` is the largest of them; ``work`` is for
    :func:`pair_size` numbers with so many lanes.
    """
    pair, nodes = Pair(lanes, most, x, y, work), rows.size - 1
    for pass_ in passes(lanes, first, last):
        pair.batch.rows = pass_
        for k in loop(nodes):
            block = Block(blocks, blocks_at[k], rows[k + 1] - rows[k], cols[k + 1] - cols[k])
            pair.multiply(block, transposed, (rows[nodes], rows[k]), (cols[nodes], cols[k]))


class Pair:
    """Two vectors of a node, to be multiplied with its block."""

    def __init__(self, lanes, most, x, y, work):
        self.batch, self.x, self.y = Batch(lanes, work), x, y
        self.given, self.result = self.batch.numbers(most), self.batch.numbers(most)

    def multiply(self, block, transposed, left, right):
        """y += B x, or B* x; ``left`` and ``right`` are the width of rows and the place in them, of either side."""
        for _ in when(transposed == 0):
            self._run(block, False, block.shape[1], right, block.shape[0], left)
        for _ in when(transposed != 0):
            self._run(block, True, block.shape[0], left, block.shape[1], right)

    def _run(self, block, transposed, size, source, to, target):
        given, result = self.given.part(0, size), self.result.part(0, to)
        given.load(self.x, *source)
        result.load(self.y, *target)
        (result.multiply_turned if transposed else result.multiply)(block, given, base=result)
        result.store(self.y, *target)


def pair_size(most):
    """Numbers that two vectors of at most so many take."""
    return 2 * most + SPARE


@sweep(tags=0)
def node_products(A, A_at, B, B_at, rows, inner, cols, C, C_at):
    """C(k) = A(k) B(k) for every node."""
    for k in loop(rows.size):
        r, n, c = rows[k], inner[k], cols[k]
        multiply(C.matrix(C_at[k], r, c), A.matrix(A_at[k], r, n), B.matrix(B_at[k], n, c))
