"""Entries of 𝓜⁻¹ and products with the Cholesky factors of D."""

from kfdyn.estimation.recursions.dense import Block, Column, solve_lower, solve_lower_transposed
from kfdyn.estimation.recursions.lanes import SPARE, Batch
from kfdyn.estimation.recursions.model import ANY, MODEL, Node
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control import down, loop, when, while_
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.values import choice, local, now


@sweep(tags=0)
def dense_inverses(tree, phi, H, seen, L, G, trees, out, work):
    """Fill the symmetric 𝓜⁻¹ of every tree of a forest of equal trees, zeros given: (trees, m, m), flat.

    ``tree`` is a model that lends its numbering to the buffers of each tree of the forest, which lie one after the
    other; ``work`` is for :func:`work_size` numbers.
    """
    lent = MODEL.at(tree)
    n_phi, n_H, n_R = (starts[lent.nodes] for starts in (lent.phi_at, lent.H_at, lent.R_at))
    outputs = lent.output[lent.nodes]
    for b in loop(trees):
        one = Fields()
        one.__dict__.update(lent.__dict__)
        one.phi, one.H = phi.part(b * n_phi, n_phi), H.part(b * n_H, n_H)
        inverse = Block(out, b * outputs * outputs, outputs, outputs)
        Columns(one, seen, L.part(b * n_R, n_R), G.part(b * n_H, n_H), work).fill(inverse)


def work_size(states, outputs, most_states):
    """Numbers that :func:`dense_inverses` works in: totals of one tree, and at most so many states to a node."""
    return states + outputs + most_states + SPARE


class Columns:
    """𝓜⁻¹ of one tree, one column after the other.

    The filter answers a unit measurement at node i only along the ancestors of i: ε(i) = 1, ε(k) = −H w(k) with
    w = ψ(k⁻, i⁺) G(i). The smoother then runs from the roots down to i in scatter order; what lies beyond is
    given by symmetry.
    """

    def __init__(self, model, seen, L, G, work):
        self.model, self.seen, self.L, self.G = model, seen, L, G
        batch = Batch(1, work)
        self.flow, self.nu = (batch.numbers(starts[model.nodes]) for starts in (model.state, model.output))
        self.arriving = batch.numbers(model.most)

    def fill(self, out):
        """All columns of what is seen."""
        model = self.model
        self.nu.clear()
        for here in loop(model.nodes):
            i = model.order[here]
            for column in loop(model.output[i + 1], model.output[i]):
                for _ in when(self.seen[column]):
                    self.gather(i, column)
                    self.scatter(here, i, column, out)

    def gather(self, i, column):
        """ν along the ancestors of node i."""
        at = local(i)
        self.arriving.part(0, self.node(i).n).clear()
        for _ in while_(lambda: at >= 0):
            node = self.node(now(at))
            arriving, e = self.arriving.part(0, node.n), self.nu.part(node.output, node.m)
            e.clear()
            e.add_product(-1.0, node.H, arriving)
            for a in loop(node.m):
                given = e[a] + choice(node.output + a == column, 1.0, 0.0)
                e[a] = choice(self.seen[node.output + a], given, 0.0)
            arriving.add_product(1.0, node.gain(self.G), e)
            e.solve(node.among(self.L))
            for _ in when(node.parent >= 0):
                above = node.above()
                own = self.flow.part(above.state, above.n)
                own.clear()
                own.add_product(1.0, node.step(above), arriving)
                self.arriving.part(0, above.n).copy(own)
            at.set(node.parent)

    def scatter(self, here, i, column, out):
        """The column, from the roots down to node i, which is number ``here`` of the gather."""
        model = self.model
        for step in down(model.nodes, here):
            node = self.node(model.order[step])
            own, e = self.flow.part(node.state, node.n), self.nu.part(node.output, node.m)
            own.clear()
            for _ in when(node.parent >= 0):
                above = node.above()
                own.add_transposed(1.0, node.step(above), self.flow.part(above.state, above.n))
            e.add_transposed(-1.0, node.gain(self.G), own)
            own.add_transposed(1.0, node.H, e)
            for a in loop(node.m):
                for _ in when((node.k != i) | (node.output + a >= column)):
                    out[node.output + a, column] = e[a]
                    out[column, node.output + a] = e[a]
                e[a] = 0.0

    def node(self, k):
        """Node k."""
        return Node(self.model, ANY, k)


@sweep(tags=0)
def apply_lower(model, L, inverse, transposed, x):
    """x ← L x, L* x, L⁻¹ x or L⁻* x in place for every row and node."""
    model = MODEL.at(model)
    outputs = model.output[model.nodes]
    for row in loop(x.size // outputs):
        for k in loop(model.nodes):
            node = Node(model, ANY, k)
            factor, own = node.among(L), Column(x, row * outputs + node.output, node.m)
            for _ in when((inverse != 0) & (transposed != 0)):
                solve_lower_transposed(factor, own)
            for _ in when((inverse != 0) & (transposed == 0)):
                solve_lower(factor, own)
            for _ in when((inverse == 0) & (transposed != 0)):
                for i in loop(node.m):
                    s = local(0.0)
                    for j in loop(node.m, i):
                        s += factor[j, i] * own[j]
                    own[i] = s
            for _ in when((inverse == 0) & (transposed == 0)):
                for i in down(node.m):
                    s = local(0.0)
                    for j in loop(i + 1):
                        s += factor[i, j] * own[j]
                    own[i] = s
