"""The modes of a body, measured before its hinge: n + 6 states, of which only the six at the hinge are passed on.

A mode is an output whose row of H is a unit row, so that P h* is a row of P: the filter and the smoother of
:mod:`kfdyn.estimation.recursions.node_update` are an elimination in place. Rows of P from the diagonal on stand in the
workspace; as a mode is measured, its gain takes the place of its row and ν that of z, and then its acceleration that.
"""

from kfdyn.dynamics.recursions.articulated import ROUNDING
from kfdyn.estimation.recursions import node_update
from kfdyn.estimation.recursions.node_update import Straight, filter_node, smooth_node
from kfdyn.multibody.recursions.flexible_bodies import OWN
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import down, loop, loop_vars


class Modes:
    """The modes of a body: n states beside its six."""

    def __init__(self, filter_, body):
        self.filter, self.body = filter_, body
        self.flex = flex = filter_.bending.flex(body)
        self.n, self.wide = flex.modes, flex.modes + 6
        self.rows = filter_.bending.kept.part(flex.rows)
        self.z = self.rows.part(self.n * self.wide)
        self.before = self.z.part(self.n + OWN.width)

    def row(self, i):
        """Row i of P, and then the gain of mode i."""
        return self.rows.part(i * self.wide)

    def six(self, i):
        """Return the part that the hinge sees."""
        row = self.row(i)
        return Spatial.of([row[self.n + k] for k in range(6)])

    def measured(self, backwards=False):
        """The modes that are measured: all."""
        yield from down(self.n) if backwards else loop(self.n)

    def met(self, i):
        """Modes that mode i changes when it is measured, P(k, i), and the entry from which on row k is to be kept."""
        row = self.row(i)
        for k in loop(self.n, i + 1):
            yield k, row[k], k

    def prior(self):
        """P and z at the hinge: what the attachments passed on, and M_m, ξ."""
        slot, own = self.filter.slots[self.body.arrives], OWN.rows(self.z.part(self.n))[0]
        return loop_vars(slot.P.plus_body(own.moment, own.first, self.body.mass), slot.z + own.xi)

    def outputs(self, backwards=False):
        """The modes."""
        for i in self.measured(backwards):
            yield Mode(self, i)

    def pass_on(self, P, z):
        """Pass on what the modes leave to the hinge."""
        self.left = P, z

    def arriving(self):
        """λ of the body behind its hinge."""
        return Straight(self.filter.bodies[self.body.t].eta)

    def leave(self, costate):
        """Nothing: the modes' accelerations are in their places, and attachments meet them there."""

    def filtered(self):
        """P and z that the modes leave to the hinge."""
        for i in loop(self.n):
            self.before[i] = self.row(i)[i]
        filter_node(self)
        return self.left

    def smoothed(self):
        """Accelerations of the modes, once the hinge has its own."""
        smooth_node(self)


class Mode(node_update.Output):
    """A mode as an output; P, z and λ are those of the hinge, what modes have of them stands in the workspace."""

    def __init__(self, modes, i):
        self.modes, self.i, self.line = modes, i, modes.row(i)

    def applied(self, P):
        """P h*, a row of P."""
        return self.modes.six(self.i)

    def variance(self, u):
        """P(i, i), of which rounding is a part of what it was before."""
        d = self.line[self.i]
        self.modes.filter.watch(d, ROUNDING * self.modes.before[self.i], 1.0)
        self.inverse = 1.0 / d
        return d

    def reduced(self, P, g, u):
        """P − g d g*, rows of other modes in place."""
        for k, beside, first in self.modes.met(self.i):
            other, factor = self.modes.row(k), self.inverse * beside
            for l in loop(self.modes.wide, first):
                other[l] -= factor * self.line[l]
        return P.less(g, u).now()

    def innovation(self, z):
        """ε = T − h z."""
        modes = self.modes
        return modes.filter.row.tau[modes.flex.v + self.i] - modes.z[self.i]

    def corrected(self, z, g, eps):
        """z + g ε, that of other modes in place."""
        for k, beside, _ in self.modes.met(self.i):
            self.modes.z[k] += eps * (self.inverse * beside)
        return super().corrected(z, g, eps)

    def keep(self, g, d, nu):
        """The gain and ν, where the row and z were."""
        for k in loop(self.modes.wide, self.i + 1):
            self.line[k] = self.inverse * self.line[k]
        self.modes.z[self.i] = nu

    def response(self, costate):
        """a = ν − g*λ, accelerations of modes that were measured later being part of λ."""
        modes, total = self.modes, loop_vars(self.modes.six(self.i).dot(costate))
        for k in loop(modes.n, self.i + 1):
            total.set(total.get() + self.line[k] * modes.z[k])
        return modes.z[self.i] - total.get()

    def answer(self, a):
        """The acceleration, where ν was, and to the caller."""
        modes = self.modes
        modes.z[self.i] = a
        modes.filter.row.a[modes.flex.v + self.i] = a

    def excited(self, costate, a):
        """The hinge's λ knows nothing of modes."""
        return costate
