"""The scatter of many models: λ and Λ of a node together, and what is read off them, a lane for each model."""

import math

from kfdyn.estimation.recursions.costate_covariances import Scatter, Weighed
from kfdyn.estimation.recursions.costate_outputs import ScalarWeigh, VectorWeigh
from kfdyn.estimation.recursions.linalg.matrices import Block, Turned, multiply
from kfdyn.estimation.recursions.many_models.many_gather import solve_rows_transposed
from kfdyn.estimation.recursions.node_update import Output, Straight, smooth_covariance, smooth_node
from kfdyn.sweeps import broadcast, if_, if_else, local, loop, to_float, where
from kfdyn.sweeps.control_flow import both


class ManyScatter(Scatter):
    """The sweep; ``lost`` becomes not a number in the lanes of models whose S has lost digits."""

    def __init__(self, model, known, found, wanted, work, flow):
        super().__init__(model, known, found, wanted, work)
        self.flow, self.lost = flow, local(broadcast(0.0, work.count))

    def lose(self, digits):
        """Remember whose S has lost digits."""
        self.lost.set(where(digits, math.nan, self.lost))

    def smooth(self, node, vectorial):
        """Smooth a node, whose parent has been."""
        smooth_node(Smoothing(self, node))
        own = Weighed(self, node)
        own.arrive()
        alone = both(node.m == 1, lambda own: own.seen[0], own)
        for one in (False,) if vectorial else if_else(alone):
            own.output = VectorWeigh if vectorial else ScalarWeigh.of if one else None
            smooth_covariance(own)


class Smoothing:
    """A node of the scatter of λ, of all rows."""

    def __init__(self, sweep, node):
        self.sweep, self.node, self.flow = sweep, node, sweep.flow
        self.costate = self.flow.states(self.flow.costate, node)

    def arriving(self):
        """λ⁺ = φ*λ(p), 0 at a root; and x̂ = z⁺ + P⁺λ⁺."""
        flow, node, own = self.flow, self.node, self.costate
        for inner in if_else(node.parent >= 0):
            if inner:
                above = node.above()
                multiply(own, Turned(node.step(above)), flow.states(flow.costate, above))
            else:
                own.clear()
        multiply(
            flow.states(flow.x, node), node.square(self.sweep.known.P_plus), own, base=flow.states(flow.z_plus, node)
        )
        return Straight(own)

    def outputs(self, backwards=False):
        """All as one."""
        yield Responding(self)

    def leave(self, costate):
        """It is in its place."""


class Responding(Output):
    """The outputs of a node as one; where nothing is seen, rows of L⁻¹ε and columns of G are 0."""

    def __init__(self, place):
        node, flow, known = place.node, place.flow, place.sweep.known
        self.H, self.G, self.L = node.H, node.gain(known.G), node.among(known.L)
        self.white, self.a = (flow.outputs(memory, node) for memory in (flow.white, flow.a))

    def response(self, costate):
        """a = ν − G*λ⁺, ν = L⁻*(L⁻¹ε)."""
        self.a.copy(self.white)
        solve_rows_transposed(self.L, self.a)
        multiply(self.a, Turned(self.G), costate, base=self.a, sign=-1.0)
        return self.a

    def excited(self, costate, a):
        """λ = λ⁺ + H*a."""
        multiply(costate, Turned(self.H), a, base=costate)
        return costate


def read_off(sweep, node, series, out):
    """Write the score of a node: outer products of what flows, and ``series`` times what does not depend on T."""
    flow, found, times = sweep.flow, sweep.found, to_float(series)
    costate, x, a = flow.states(flow.costate, node), flow.states(flow.x, node), flow.outputs(flow.a, node)
    _sum(out.Q, node.Q_at, costate, costate, 0.5, -0.5 * times, node.square(found.Lambda))
    _sum(out.R, node.R_at, a, a, 0.5, -0.5 * times, node.among(found.C))
    _sum(out.H, node.H_at, a, x, 1.0, times, Block(found.H, node.H_at, node.m, node.n))
    for i in loop(node.n):
        total = local(broadcast(0.0, costate.count))
        for s in loop(series):
            total += costate[i, s]
        out.xi[node.state + i] = total
    for _ in if_(node.parent >= 0):
        above = node.above()
        at = found.phi_at[node.k]
        before = flow.states(flow.costate, above)
        _sum(out.phi, at, before, x, 1.0, times, Block(found.phi, at, above.n, node.n))


def _sum(out, at, left, right, share, times, known):
    """out = share · left right* + times · known, at its place in the rows of the caller."""
    rows, columns = known.shape
    for i in loop(rows):
        for j in loop(columns):
            total = local(times * known[i, j])
            for s in loop(left.shape[1]):
                total += share * left[i, s] * right[j, s]
            out[at + i * columns + j] = total
