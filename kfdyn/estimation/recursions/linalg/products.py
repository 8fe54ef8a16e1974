"""Products with φ, ψ and their adjoints, full and strict, as gathers and scatters; and with blocks, node by node.

Sources: SKO "gather", "scatter", "strict".
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.lanes import Batch, Numbers
from kfdyn.estimation.recursions.linalg.matrices import multiply
from kfdyn.estimation.recursions.linalg.ragged import Parts, Ragged
from kfdyn.estimation.recursions.state_space import MODEL, inward, outward
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control_flow import if_, if_else, loop


class Product(NamedTuple):
    """Rows x and y = A x, flat: A is φ, or ψ with the gains G if it is ``closed``; Ã = A − 1 if ``strict``."""

    x: Any
    y: Any
    G: Any
    closed: Any
    strict: Any


@sweep(tags=3)
def gather(lanes, sizes, weighted, model, product, share):
    """y = A x or Ã x, leaves to roots, for A = φ or (closed) A = ψ, whose step is φ τ̄ = φ(1 − G H).

    With s(k) = Σ_j A(k,j)(s(j) + x(j)), Ã x = s and A x = s + x. Of A Q x where it is ``weighted``, else None. The
    workspace is a :class:`Flow`.
    """
    flow = Flow(lanes, MODEL.at(model), product, share.work)
    for _ in flow.passes(share):
        flow.sums.clear()
        for node in inward(flow.model, sizes):
            own = node.states(flow.sums)
            flow.add(node, own, weighted is not None)
            for _ in if_(node.parent >= 0):
                for _ in if_((product.closed != 0) & (node.m > 0)):
                    seen = flow.seen.part(0, node.m, node.one)
                    seen.multiply(node.H, own)
                    own.multiply(node.gain(product.G), seen, base=own, sign=-1.0)
                above = node.above()
                total = above.states(flow.sums)
                total.multiply(node.step(above), own, base=total)


@sweep(tags=2)
def scatter(lanes, sizes, model, product, share):
    """y = A* x or Ã* x, roots to leaves: s(k) = A*(p,k) (s(p) + x(p)), Ã* x = s and A* x = s + x."""
    flow = Flow(lanes, MODEL.at(model), product, share.work)
    for _ in flow.passes(share):
        for node in outward(flow.model, sizes):
            own = node.states(flow.sums)
            own.clear()
            for _ in if_(node.parent >= 0):
                above = node.above()
                own.multiply_turned(node.step(above), above.states(flow.sums))
                for _ in if_((product.closed != 0) & (node.m > 0)):
                    seen = flow.seen.part(0, node.m, node.one)
                    seen.multiply_turned(node.gain(product.G), own)
                    own.multiply_turned(node.H, seen, base=own, sign=-1.0)
            flow.add(node, own)


class Flow(Batch):
    """The vectors that flow through a tree in both: s of every node, then s + x."""

    def __init__(self, lanes, model, product, work):
        self.model, self.product, self.states = model, product, model.state[model.nodes]
        super().__init__(lanes, work, self.states, model.most, model.most_outputs)

    @staticmethod
    def layout(states, n, m):
        """Return the layout for that many states in all, and at most n states and m outputs to a node."""
        return {"sums": states, "known": n, "seen": m}

    def add(self, node, own, weighted=False):
        """Add x or Q x to s, and keep s before that if strict, else after."""
        x, y, strict = self.product.x, self.product.y, self.product.strict
        known = node.one_state(self.known)
        for _ in if_(strict != 0):
            own.store(y, self.states, node.state)
        known.load(x, self.states, node.state)
        if weighted:
            own.multiply_turned(node.square(self.model.Q), known, base=own)
        else:
            own.add(known)
        for _ in if_(strict == 0):
            own.store(y, self.states, node.state)


@sweep(tags=1)
def add_products(lanes, blocks: Ragged, x: Parts, y: Parts, turned, share):
    """y(k) += B(k) x(k), or B*(k) x(k) where ``turned``, no recursion.

    Parts of y may be the same for several nodes. The workspace is for :func:`pair_size` numbers with so many lanes.
    """
    batch = Batch(lanes, share.work)
    both = Numbers(batch, batch.memory, None)  # of a node: of x, then of y
    for _ in batch.passes(share):
        for k in loop(blocks.rows.size):
            B = blocks.block(k)
            for back in if_else(turned != 0):
                to, source = B.shape[::-1] if back else B.shape
                given, result = both.part(0, source), both.part(source, to)
                given.load(x.flat, x.width, x.at[k])
                result.load(y.flat, y.width, y.at[k])
                (result.multiply_turned if back else result.multiply)(B, given, base=result)
                result.store(y.flat, y.width, y.at[k])


def pair_size(most):
    """Numbers that two vectors of at most so many take."""
    return Batch.size() + 2 * most


@sweep(tags=0)
def node_products(A: Ragged, B: Ragged, C: Ragged):
    """C(k) = A(k) B(k) for every node."""
    for k in loop(C.rows.size):
        multiply(C.block(k), A.block(k), B.block(k))
