"""A node of the Riccati gather, by the ways in which it is measured."""

from kfdyn.estimation.recursions.linalg.matrices import Block, Column, add_congruence
from kfdyn.estimation.recursions.node_update import Straight
from kfdyn.estimation.recursions.riccati.scalar import Measurement
from kfdyn.estimation.recursions.riccati.vector import All, innovations
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.variables import local
from kfdyn.sweeps.workspace import Workspace


class Gather(Workspace):
    """The sweep: what it fills, where it works, and the output that failed."""

    def __init__(self, model, found, work):
        super().__init__(work, model.most, model.most_outputs)
        self.model, self.found, self.failed = model, found, local(-1)

    @staticmethod
    def layout(n, m):
        """Return the layout for at most n states and m outputs to a node."""
        return {"congruence": 2 * n * n, "before": n, "scratch": (n + m) * (n + 2 * m), "line": n + m}

    def begin(self, nodes):
        """P = Q where a sum over children begins with it; an only child does so itself, when P is about to be used."""
        for node in nodes:
            for _ in if_(self.children(node) != 1):
                self.take_noise(node)

    def children(self, node):
        """The number of a node's children."""
        return self.model.child_start[node.k + 1] - self.model.child_start[node.k]

    def take_noise(self, node):
        """P = Q."""
        node.square(self.found.P).copy(node.square(self.model.Q))

    # What :class:`~.settled.Settling` asks of a sweep.

    def follows(self, before, node):
        """Tell whether all that a node gathers comes from the node before it."""
        return (before.parent == node.k) & (self.children(node) == 1)

    def edge(self, before, node):
        """The node whose φ leads from one to the other."""
        return before.k

    def given(self, node):
        """H, Q, R and what is seen."""
        model, n, m = self.model, node.n, node.m
        blocks = (model.Q, node.Q_at, n * n), (model.H, node.H_at, m * n), (model.R, node.R_at, m * m)
        return *blocks, (self.found.seen, node.output, m)

    def filled(self, node):
        """P, P⁺, D, L, G."""
        found, n, m = self.found, node.n, node.m
        squares = [(flat, node.Q_at, n * n) for flat in (found.P, found.P_plus)]
        return *squares, *((flat, node.R_at, m * m) for flat in (found.D, found.L)), (found.G, node.H_at, n * m)

    def settled(self, node):
        """P, P⁺ and D."""
        return node.square(self.found.P), node.square(self.found.P_plus), node.among(self.found.D)

    def resume(self, node):
        """Add what a node that was copied passes on."""
        Measured(self, node).pass_on(node.square(self.found.P_plus), None)


class Measured:
    """A node whose covariance is measured: P, D, L, G of its own."""

    def __init__(self, gather, node):
        found = gather.found
        self.gather, self.node = gather, node
        self.P, self.P_plus, self.G = node.square(found.P), node.square(found.P_plus), node.gain(found.G)
        self.H, self.R = node.H, node.among(gather.model.R)
        self.D, self.L = node.among(found.D), node.among(found.L)
        self.seen = Column(found.seen, node.output, node.m)

    def prior(self):
        """P; no z: it is for the gather of the states."""
        return Straight(self.P, None)

    def fail(self, a, low=True):
        """Remember that output a says nothing new; ``low`` are the lanes where it does not."""
        self.gather.failed.set(self.node.output + a)

    def pass_on(self, P, z):
        """φP⁺φ* into the parent's sum."""
        node, gather = self.node, self.gather
        for _ in if_((node.parent >= 0) & (gather.failed < 0)):
            above = node.above()
            for _ in if_(gather.children(above) == 1):
                gather.take_noise(above)
            add_congruence(above.square(gather.found.P), node.step(above), P, gather.congruence)


class Scalar(Measured):
    """A node with one output, which is seen."""

    kind = Measurement

    def outputs(self):
        """The output, of which D and its root are kept."""
        h, g = (Column(block.memory, 0, self.node.n, self.node.known) for block in (self.H, self.G))
        output = self.kind(self, 0, h, self.R[0, 0], g, self.gather.scratch)
        yield output
        self.D[0, 0], self.L[0, 0] = output.d, sqrt(output.d)


class Unseen(Measured):
    """A node without an output, or whose only one is missing."""

    def prior(self):
        """P⁺ = P."""
        n, m = self.node.n, self.node.m
        innovations(self, Block(self.gather.scratch, 0, n, m))
        self.P_plus.copy(self.P)
        self.G.clear()
        for a in loop(m):
            self.L[a, a] = 1.0
        return Straight(self.P_plus, None)

    def outputs(self):
        """None."""
        return ()


class Together(Measured):
    """All outputs at once, as one whose variance is the matrix D."""

    kind = All

    def outputs(self):
        """The one."""
        yield self.kind(self)
