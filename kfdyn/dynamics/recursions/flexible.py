"""Forward dynamics where bodies bend: modes are measured first, and what is left of a body is one like all others.

PART's split: the outputs of a body that bends are its modes, at a node of n + 6 states, and behind it its hinge, at a
node of six without mass. So the hinge is served by the nodes of rigid bodies, and only modes are new. An attachment is
a body without mass and without dofs that passes on to the modes, too: Φ = [[0, Π*], [0, φ]].
"""

from kfdyn.dynamics.recursions.articulated import ROUNDING, Filter, Many, Node
from kfdyn.dynamics.recursions.forward import FORCES, GRAVITY
from kfdyn.estimation.recursions.page import Output, Straight, filter_node, smooth_node
from kfdyn.multibody.recursions.bending import ATTACHED, BENT, FLEXIBLE, OWN, RIGID, Bending, attach, put, weigh
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.outward import outward_body, prepare_sine
from kfdyn.multibody.recursions.robot import KINDS, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control import carried, cases, either, loop, when
from kfdyn.sweeps.entry import Entry, Given

FORMS = (RIGID, BENT, ATTACHED)


class FlexibleFilter(Filter):
    """A filter some of whose bodies bend."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work, moving=True)
        self.bending = Bending(robot, row, self.rest)

    @staticmethod
    def size(robot):
        """How many numbers it works in."""
        return Filter.size(robot) + Bending.size(robot)

    def sweep_outward(self):
        """R, l, ω, η of every body; Π of attachments, M_m and ξ of bodies that bend."""
        for body in outward(self.robot):
            prepare_sine(body, self.row, self.work)
        for body in outward(self.robot):
            form = self.bending.flex(body).form
            for attached in either(form == ATTACHED):
                if attached:
                    attach(self.bending, body, self.work)
                else:
                    outward_body(self.robot, body, self.row, self.work, self.H, moving=True)
                    for _ in when(form == BENT):
                        weigh(self.bending, body, self.work)

    def gather_one(self, body):
        """One body of any form."""
        for form in cases(self.bending.flex(body).form, FORMS):
            if form == RIGID:
                self.filtered(body)
            elif form == BENT:
                node = Behind(self, body)
                node.look()
                for kind in cases(body.kind, KINDS):
                    filter_node(node.of(kind))
            else:
                node = Attachment(self, body)
                node.look()
                filter_node(node)

    def scatter_one(self, body):
        """To one body of any form."""
        for form in cases(self.bending.flex(body).form, FORMS):
            if form == ATTACHED:
                smooth_node(Attachment(self, body))
            else:
                self.smoothed(body)
                if form == BENT:
                    smooth_node(Modes(self, body))


class Behind(Node):
    """The hinge of a body that bends, behind its modes."""

    def whole(self):
        """P and z that the modes leave."""
        modes = Modes(self.filter, self.body)
        filter_node(modes)
        return modes.left


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
        """P − g u*, for later modes and the six."""
        modes, i, n = self.modes, u.i, self.modes.n
        for k in loop(n, i + 1):
            at, factor = modes.rows.part(k * (n + 6)), g.scale * u.row[k]
            for l in loop(n + 6, k):
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
        """z + k g, for later modes and the six."""
        modes = self.modes
        for l in loop(modes.n, g.i + 1):
            modes.z[l] += (k * g.scale) * g.row[l]
        return Long(modes, self.six + k * g.six)


class Attachment(Many):
    """A frame on a body that bends: no mass, no dofs, and Π beside φ."""

    def __init__(self, filter_, body):
        super().__init__(filter_, body)
        self.flex = filter_.bending.flex(body)
        self.map = filter_.bending.kept.part(self.flex.map)
        self.modes = Modes(filter_, body)  # of the body it is on

    def whole(self):
        """What its children pass on."""
        slot = self.filter.slots[self.body.arrives]
        return slot.P, slot.z

    def outputs(self, backwards=False):
        """None."""
        return ()

    def column(self, i):
        """Π of mode i."""
        return Spatial.of([self.map[6 * i + k] for k in range(6)])

    def pass_on(self, P, z):
        """Φ P Φ* and Φ z, Φ = [[0, Π*], [0, φ]]: to the modes, and then as always."""
        modes, n, l = self.modes, self.flex.modes, self.here.l
        for i in loop(n):
            h = self.column(i)
            u, at = P.applied(h), modes.rows.part(i * (n + 6))
            modes.z[i] += h.dot(z)
            for k in loop(n, i):
                at[k] += u.dot(self.column(k))
            there = u.force_shifted(l)
            six = Spatial.of([at[n + k] for k in range(6)])
            put(at, n, six + there)
        super().pass_on(P, z)

    def arriving(self):
        """λ⁺ = φ*λ + Πη̈."""
        state = super().arriving()
        for i in loop(self.flex.modes):
            state.set(state.get() + self.modes.z[i] * self.column(i))
        return state


def flexible_forward_dynamics(robot, row, work):
    """a of hinges and modes: some n(n + 6)²/3 + 3p(n + 6)² operations more for a body of n modes and p points."""
    f = FlexibleFilter(robot, row, work)
    f.sweep_outward()
    least = f.gather(f.gather_one)
    f.scatter(f.scatter_one)
    return least


def begin(robot, row, work):
    """Slot 0 and the world stay as they are from row to row."""
    FlexibleFilter(robot, row, work).begin()


FLEXIBLE_FORWARD = Entry(
    flexible_forward_dynamics,
    FLEXIBLE,
    [Q, V, Given("tau", ("nv",)), FORCES, GRAVITY],
    [Given("a", ("nv",))],
    lambda robot, row: FlexibleFilter.size(robot),
    begin,
)
