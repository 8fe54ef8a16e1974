"""Forward dynamics where bodies bend: modes are measured first, and what is left of a body is one like all others.

PART's split: the outputs of a body that bends are its modes, at a node of n + 6 states, and behind it its hinge, at a
node of six without mass. So the hinge is served by the nodes of rigid bodies, and only modes are new. An attachment is
a body without mass and without dofs that passes on to the modes, too: Φ = [[0, Π*], [0, φ]].
"""

from kfdyn.dynamics.recursions.articulated import Filter, Many, Node
from kfdyn.dynamics.recursions.flexible_modes import Modes
from kfdyn.dynamics.recursions.forward import FORCES, GRAVITY
from kfdyn.estimation.recursions.page import filter_node, smooth_node
from kfdyn.multibody.recursions.bending import ATTACHED, BENT, FLEXIBLE, RIGID, Bending, attach, put, weigh
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.outward import outward_body, prepare_sines
from kfdyn.multibody.recursions.robot import outward
from kfdyn.sweeps.control import cases, either, loop, when
from kfdyn.sweeps.entry import Entry, Given, Space

FORMS = (RIGID, BENT, ATTACHED)


class FlexibleFilter(Filter):
    """A filter some of whose bodies bend."""

    #: What the modes of a body are.
    modes_of = Modes

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work, moving=True)
        self.bending = Bending(robot, row, self.rest)

    @staticmethod
    def size(robot):
        """How many numbers it works in."""
        return Filter.size(robot) + Bending.size(robot)

    def sweep_outward(self):
        """R, l, ω, η of every body; Π of attachments, M_m and ξ of bodies that bend."""
        prepare_sines(self.robot, self.row, self.work)
        for body in outward(self.robot):
            form = self.bending.flex(body).form
            for attached in either(form == ATTACHED):
                if attached:
                    attach(self.bending, body, self.work)
                else:
                    outward_body(self.robot, body, self.row, self.work, self.H, moving=True)
                    for _ in when(form == BENT):
                        weigh(self.bending, body, self.work)

    def gather(self):
        """The filter over bodies of any form."""
        return super().gather(self._gather_one)

    def _gather_one(self, body):
        for form in cases(self.bending.flex(body).form, FORMS):
            if form == RIGID:
                self.filtered(body)
            elif form == BENT:
                self.filtered(body, Behind)
            else:
                node = Attachment(self, body)
                node.look()
                filter_node(node)

    def scatter(self):
        """The smoother over bodies of any form."""
        super().scatter(self._scatter_one)

    def _scatter_one(self, body):
        for form in cases(self.bending.flex(body).form, FORMS):
            if form == ATTACHED:
                smooth_node(Attachment(self, body))
            else:
                self.smoothed(body)
                if form == BENT:
                    self.modes_of(self, body).smoothed()


class Behind(Node):
    """The hinge of a body that bends, behind its modes."""

    def whole(self):
        """P and z that the modes leave."""
        return self.filter.modes_of(self.filter, self.body).filtered()


class Attachment(Many):
    """A frame on a body that bends: no mass, no dofs, and Π beside φ."""

    def __init__(self, filter_, body):
        super().__init__(filter_, body)
        self.flex = filter_.bending.flex(body)
        self.modes = filter_.modes_of(filter_, body)  # of the body it is on

    def whole(self):
        """What its children pass on."""
        slot = self.filter.slots[self.body.arrives]
        return slot.P, slot.z

    def outputs(self, backwards=False):
        """None."""
        return ()

    def column(self, i):
        """Π of mode i."""
        return self.filter.bending.column(self.flex, i)

    def pass_on(self, P, z):
        """Φ P Φ* and Φ z, Φ = [[0, Π*], [0, φ]]: to the modes, and then as always."""
        modes, n, l = self.modes, self.flex.modes, self.here.l
        for i in loop(n):
            h = self.column(i)
            u, at = P.applied(h), modes.row(i)
            modes.z[i] += h.dot(z)
            for k in loop(n, i):
                at[k] += u.dot(self.column(k))
            put(at, n, modes.six(i) + u.force_shifted(l))
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
    least = f.gather()
    f.scatter()
    return least


def begin(robot, row, work):
    """Slot 0 and the world stay as they are from row to row."""
    FlexibleFilter(robot, row, work).begin()


FLEXIBLE_FORWARD = Entry(
    flexible_forward_dynamics,
    FLEXIBLE,
    [Q, V, Given("tau", ("nv",)), FORCES, GRAVITY],
    [Given("a", ("nv",))],
    Space(lambda robot, row: FlexibleFilter.size(robot), begin),
)
