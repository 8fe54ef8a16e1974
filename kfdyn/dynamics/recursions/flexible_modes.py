"""The modes of a body as outputs of its node: n + 6 states, of which only the six at the hinge are passed on.

Rows of P from the diagonal on stand in the workspace; as a mode is measured, its gain takes the place of its row.
"""

from kfdyn.dynamics.recursions.articulated import ROUNDING
from kfdyn.estimation.recursions.page import Output, Straight
from kfdyn.multibody.recursions.bending import OWN
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control import carried, loop


class Modes:
    """The modes of a body: n states, of which nothing is passed on, beside its six."""

    def __init__(self, filter_, body):
        self.filter, self.body = filter_, body
        self.flex = flex = filter_.bending.flex(body)
        self.n = flex.modes
        self.rows = filter_.bending.kept.part(flex.rows)
        self.z = self.rows.part(self.n * (self.n + 6))
        self.before = self.z.part(self.n + OWN.width)

    def prior(self):
        """P and z: what the attachments passed on, and M_m, ξ."""
        own = OWN.rows(self.z.part(self.n))[0]
        for i in loop(self.n):
            self.before[i] = self.rows[i * (self.n + 6) + i]
        slot = self.filter.slots[self.body.arrives]
        P = slot.P.plus_body(own.moment, own.first, self.body.mass)
        return carried(Wide(self, P), Long(self, slot.z + own.xi))

    def outputs(self, backwards=False):
        """The modes, each a unit row."""
        for i in loop(self.n):
            yield Mode(self, self.n - 1 - i if backwards else i)

    def pass_on(self, P, z):
        """To the hinge: only the six go on."""
        self.left = P.six, z.six

    def arriving(self):
        """λ of the body, behind its hinge."""
        return Straight(Long(self, self.filter.bodies[self.body.t].eta))

    def leave(self, costate):
        """Accelerations of modes stay where z was, for the attachments."""

    def met(self, i):
        """Modes that mode i changes when it is measured, P(k, i), and the entry from which on row k is to be kept."""
        row = self.rows.part(i * (self.n + 6))
        for k in loop(self.n, i + 1):
            yield k, row[k], k


class Mode(Output):
    """One mode as an output: h is a unit row, and its noise is part of M_ff."""

    noise = 0.0

    def __init__(self, modes, i):
        self.modes, self.i = modes, i
        self.row = self
        self.gain = Step(modes, i, None)

    @property
    def measured(self):
        """The generalised force."""
        return self.modes.filter.row.tau[self.modes.flex.v + self.i]

    @property
    def nu(self):
        """ν."""
        return self.modes.z[self.i]

    def dot(self, x):
        """Entry i."""
        return x.entry(self.i)

    def added_to(self, costate, a):
        """λ + h*a: entry i was 0."""
        self.modes.z[self.i] = a
        return costate

    def keep(self, g, d, nu):
        """The gain, in the place of the row it was made of; ν in that of z. Rounding is a part of the d of before."""
        modes, i = self.modes, self.i
        at = i * (modes.n + 6)
        modes.filter.watch(d - ROUNDING * modes.before[i])
        for k in loop(modes.n + 6, i + 1):
            modes.rows[at + k] = g.scale * modes.rows[at + k]
        modes.z[i] = nu

    def answer(self, a):
        """The acceleration of the mode."""
        self.modes.filter.row.a[self.modes.flex.v + self.i] = a


class Step:
    """P h* of mode i, times ``scale``: the row of the mode from the diagonal on, since earlier modes are known."""

    def __init__(self, modes, i, scale):
        self.modes, self.i, self.scale = modes, i, scale
        self.row = modes.rows.part(i * (modes.n + 6))

    def entry(self, k):
        """Entry k."""
        return self.row[k]

    @property
    def six(self):
        """The part that the hinge sees."""
        x = Spatial.of([self.row[self.modes.n + k] for k in range(6)])
        return x if self.scale is None else self.scale * x

    def __rmul__(self, scale):
        return Step(self.modes, self.i, scale)

    def dot(self, costate):
        """g*λ, of which later modes and the six are not 0."""
        total = carried(self.six.dot(costate.six))
        for k in loop(self.modes.n, self.i + 1):
            total.set(total.get() + self.row[k] * self.modes.z[k])
        return total.get()


class Wide:
    """P of n + 6 states: rows of the modes in memory, the six an articulated inertia."""

    def __init__(self, modes, six):
        self.modes, self.six = modes, six

    def numbers(self):
        """What is not in memory."""
        return (self.six,)

    def like(self, numbers):
        """Another one of the same body."""
        return Wide(self.modes, *numbers)

    def applied(self, h):
        """P h*."""
        return Step(self.modes, h.i, None)

    def less(self, g, u):
        """P − g u*, for the modes that are met and the six."""
        modes, n = self.modes, self.modes.n
        for k, beside, first in modes.met(u.i):
            at, factor = modes.rows.part(k * (n + 6)), g.scale * beside
            for l in loop(n + 6, first):
                at[l] -= factor * u.row[l]
        return Wide(modes, self.six.less(g.six, u.six).now())


class Long:
    """z or λ of n + 6 states: modes in memory, the six a spatial vector."""

    def __init__(self, modes, six):
        self.modes, self.six = modes, six

    def numbers(self):
        """What is not in memory."""
        return (self.six,)

    def like(self, numbers):
        """Another one of the same body."""
        return Long(self.modes, *numbers)

    def entry(self, k):
        """Entry k."""
        return self.modes.z[k]

    def plus(self, g, k):
        """z + k g, for the modes that are met and the six."""
        modes = self.modes
        for l, beside, _ in modes.met(g.i):
            modes.z[l] += (k * g.scale) * beside
        return Long(modes, self.six + k * g.six)
