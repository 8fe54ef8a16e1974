"""Entries of 𝓜⁻¹ and quotients by the Cholesky factors of D."""

from kfdyn.estimation.recursions.linalg.matrices import Block, Column
from kfdyn.estimation.recursions.linalg.triangular import solve_lower, solve_lower_transposed
from kfdyn.estimation.recursions.node_update import Straight, filter_node, smooth_node
from kfdyn.estimation.recursions.state_space import ANY, MODEL, Node
from kfdyn.estimation.recursions.vector_pass import Filtered, Gather, Smoothed
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control_flow import down, if_, if_else, loop, while_
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.values import now, where
from kfdyn.sweeps.variables import local


@sweep(tags=0)
def dense_inverses(tree, forest, covariances, trees, out, work):
    """Fill the symmetric 𝓜⁻¹ of every tree of a forest of equal trees, zeros given: (trees, m, m), flat.

    ``tree`` is a model that lends its numbering to the buffers of each tree of the forest, which lie one after the
    other; ``work`` is for a :class:`Columns`.
    """
    lent, forest = MODEL.at(tree), MODEL.at(forest)
    n_phi, n_H, n_R = (starts[lent.nodes] for starts in (lent.phi_at, lent.H_at, lent.R_at))
    outputs = lent.output[lent.nodes]
    for b in loop(trees):
        one = Fields()
        one.__dict__.update(lent.__dict__)
        one.phi, one.H = forest.phi.part(b * n_phi, n_phi), forest.H.part(b * n_H, n_H)
        L, G = covariances.L.part(b * n_R, n_R), covariances.G.part(b * n_H, n_H)
        Columns(one, covariances._replace(L=L, G=G), Block(out, b * outputs * outputs, outputs, outputs), work).fill()


class Columns(Gather):
    """𝓜⁻¹ of one tree, one column after the other.

    The filter answers a unit measurement at node i only along the ancestors of i. The smoother then runs from the roots
    down to i in scatter order; what lies beyond is given by symmetry. ν is 0 wherever the filter did not come by.
    """

    def __init__(self, model, covariances, out, work):
        super().__init__(1, model, covariances, None, work)
        self.rate, self.out = self.residual, out

    def fill(self):
        """All columns of what is seen."""
        model = self.model
        self.residual.clear()
        for here in loop(model.nodes):
            i = model.order[here]
            for column in loop(model.output[i + 1], model.output[i]):
                for _ in if_(self.covariances.seen[column]):
                    self.gather(i, column)
                    for step in down(model.nodes, here):
                        smooth_node(Inboard(self, self.node(model.order[step]), i, column))

    def gather(self, i, column):
        """ν along the ancestors of node i."""
        at = local(i)
        Ancestor(self, self.node(i), column).own.clear()
        for _ in while_(lambda: at >= 0):
            node = self.node(now(at))
            filter_node(Ancestor(self, node, column))
            at.set(node.parent)

    def node(self, k):
        """Node k."""
        return Node(self.model, ANY, k)


class Ancestor(Filtered):
    """A node on the way to the root, in the gather: the measurement is 1 at one output, 0 at all others."""

    def __init__(self, sweep, node, column):
        super().__init__(sweep, node)
        self.column = column

    def prior(self):
        """z, and the measurement."""
        first, m = self.node.output, self.node.m
        T = self.sweep.innovation.part(first, m)
        for a in loop(m):
            T[a] = where(first + a == self.column, 1.0, 0.0)
        return super().prior()

    def pass_on(self, P, ahead):
        """φ z⁺ is all that arrives at the parent."""
        for _ in if_(self.node.parent >= 0):
            phi, above = self.above()
            above.multiply(phi, ahead)


class Inboard(Smoothed):
    """A node of the scatter to node i, which fills its part of the column."""

    def __init__(self, sweep, node, i, column):
        super().__init__(sweep, node)
        self.i, self.column = i, column

    def arriving(self):
        """λ⁺."""
        self.costate_plus()
        return Straight(self.own)

    def leave(self, costate):
        """The column, and the row, which is the same; ν is used up."""
        node, out, column = self.node, self.sweep.out, self.column
        a = self.sweep.rate.part(node.output, node.m)
        for l in loop(node.m):
            for _ in if_((node.k != self.i) | (node.output + l >= column)):
                out[node.output + l, column] = a[l]
                out[column, node.output + l] = a[l]
            a[l] = 0.0


@sweep(tags=0)
def divide_by_lower(model, L, transposed, x):
    """x ← L⁻¹ x or L⁻* x in place for every row and node."""
    model = MODEL.at(model)
    outputs = model.output[model.nodes]
    for row in loop(x.size // outputs):
        for k in loop(model.nodes):
            node = Node(model, ANY, k)
            factor, own = node.among(L), Column(x, row * outputs + node.output, node.m)
            for back in if_else(transposed != 0):
                (solve_lower_transposed if back else solve_lower)(factor, own)
