"""The gather of many models: P and z of a node together, by the page, each number with a lane for each model.

The columns of z are the rows that a model filters: its series, and a column for each flat state.
"""

import math

from kfdyn.estimation.recursions.linalg.matrices import Block, Turned, multiply
from kfdyn.estimation.recursions.linalg.triangular import solve_lower, solve_lower_transposed
from kfdyn.estimation.recursions.node_update import Straight
from kfdyn.estimation.recursions.riccati.nodes import Gather, Scalar, Together, Unseen
from kfdyn.estimation.recursions.riccati.scalar import Measurement
from kfdyn.estimation.recursions.riccati.vector import All
from kfdyn.sweeps import broadcast, if_, local, loop, sqrt, where


class Beside:
    """A model whose layout is that of another, with numbers of its own."""

    def __init__(self, layout, **own):
        self._layout = layout
        vars(self).update(own)

    def __getattr__(self, name):
        return getattr(self._layout, name)


class ManyGather(Gather):
    """The sweep; ``lost`` becomes not a number in the lanes of models that have no answer here."""

    def __init__(self, model, found, work, flow):
        super().__init__(model, found, work)
        self.flow, self.lost = flow, local(broadcast(0.0, work.count))

    def take_noise(self, node):
        """P has come as Q."""


class Flow:
    """The vectors that flow through the nodes, ``rows`` of each: z and z⁺, ε and L⁻¹ε; λ, x̂ and a on the way back."""

    def __init__(self, rows, **places):
        self.rows = rows
        vars(self).update(places)

    def states(self, memory, node):
        """Those of a node's states, (n, rows)."""
        return Block(memory, node.state * self.rows, node.n, self.rows)

    def outputs(self, memory, node):
        """Those of a node's outputs, (m, rows)."""
        return Block(memory, node.output * self.rows, node.m, self.rows)


class Filtering:
    """A node of the gather, with z beside P."""

    def prior(self):
        """P and z."""
        P, _ = super().prior().get()
        flow = self.gather.flow
        self.z, self.ahead = (flow.states(memory, self.node) for memory in (flow.z, flow.z_plus))
        return Straight(P, self.z)

    def fail(self, a, low=True):
        """The lanes where output a says nothing new have no answer."""
        self.gather.lost.set(where(low, math.nan, self.gather.lost))

    def pass_on(self, P, z):
        """φP⁺φ* and φz⁺ into the parent's sums."""
        super().pass_on(P, None)
        flow, node = self.gather.flow, self.node
        for _ in if_(node.parent >= 0):
            above = node.above()
            total = flow.states(flow.z, above)
            multiply(total, node.step(above), z, base=total)


class Innovating:
    """Outputs of such a node."""

    def innovation(self, z):
        """ε = T − H z, 0 where T is missing."""
        node = self.node
        flow = node.gather.flow
        self.eps, self.white = (flow.outputs(memory, node.node) for memory in (flow.eps, flow.white))
        multiply(self.eps, node.H, z, base=self.eps, sign=-1.0)
        for a in loop(node.node.m):
            for s in loop(flow.rows):
                self.eps[a, s] = where(node.seen[a], self.eps[a, s], 0.0)
        return self.eps

    def corrected(self, z, g, eps):
        """z⁺ = z + G ε, in a place of its own."""
        multiply(self.node.ahead, self.node.G, eps, base=z)
        return self.node.ahead

    def residual(self, eps, d):
        """L⁻¹ε, of which ν is half a solution."""
        self.white.copy(eps)
        return self.white


class ManyScalar(Innovating, Measurement):
    """One output, which is seen."""

    def keep(self, g, d, nu):
        """ε/√d."""
        over = 1.0 / sqrt(d)
        for s in loop(nu.shape[1]):
            nu[0, s] = over * nu[0, s]


class ManyAll(Innovating, All):
    """All outputs of a node, some of which may be missing."""

    def keep(self, g, L, nu):
        """L⁻¹ε."""
        solve_rows(L, nu)


class Alone(Filtering, Scalar):
    """A node of one output, which is seen."""

    kind = ManyScalar


class Several(Filtering, Together):
    """A node of any number of outputs."""

    kind = ManyAll


class Nothing(Filtering, Unseen):
    """A node where nothing is seen."""

    def prior(self):
        """P⁺ = P, z⁺ = z."""
        P, z = super().prior().get()
        flow = self.gather.flow
        self.ahead.copy(z)
        for memory in (flow.eps, flow.white):
            flow.outputs(memory, self.node).clear()
        return Straight(P, self.ahead)


def solve_rows(L, X):
    """X ← L⁻¹ X."""
    turned = Turned(X)
    for s in loop(X.shape[1]):
        solve_lower(L, Line(turned, s))


def solve_rows_transposed(L, X):
    """X ← L⁻* X."""
    turned = Turned(X)
    for s in loop(X.shape[1]):
        solve_lower_transposed(L, Line(turned, s))


class Line:
    """A row of a matrix as one looks at it."""

    def __init__(self, A, i):
        self.A, self.i, self.size, self.count = A, i, A.shape[1], A.count

    def __getitem__(self, j):
        return self.A[self.i, j]

    def __setitem__(self, j, value):
        self.A[self.i, j] = value
