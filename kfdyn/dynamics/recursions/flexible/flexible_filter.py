"""Forward dynamics where bodies bend: modes are measured first, and what is left of a body is one like all others.

PART's split: the outputs of a body that bends are its modes, at a node of n + 6 states, and behind it its hinge, at a
node of six without mass. So the hinge is served by the nodes of rigid bodies, and only modes are new. An attachment is
a body without mass and without dofs that passes on to the modes, too: Φ = [[0, Π*], [0, φ]].
"""

from kfdyn.dynamics.recursions.articulated import Filter, Many
from kfdyn.dynamics.recursions.flexible.flexible_modes import Modes
from kfdyn.dynamics.recursions.forward import forward_dynamics
from kfdyn.estimation.recursions.node_update import filter_node, smooth_node
from kfdyn.multibody.recursions.attachments import attach
from kfdyn.multibody.recursions.flexible_bodies import ATTACHED, BENT, FLEXIBLE, RIGID, Bending, weigh
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, A, Q, V
from kfdyn.multibody.recursions.outward import Outward
from kfdyn.multibody.recursions.robot import outward
from kfdyn.multibody.recursions.robot_entry import entry, put
from kfdyn.sweeps.control_flow import if_, if_else, loop, switch

FORMS = (RIGID, BENT, ATTACHED)


class FlexibleFilter(Filter):
    """A filter some of whose bodies bend."""

    #: What the modes of a body are.
    modes_of = Modes

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.bending = Bending(robot, row, self.take(Bending.size(robot)))

    def sweep_outward(self):
        """R, l, ω, η of every body; Π of attachments, M_m and ξ of bodies that bend."""
        sweep = Outward(self.robot, self.row, self.work, self.H, moving=True)
        sweep.prepare_sines()
        for body in outward(self.robot):
            form = self.bending.flex(body).form
            for attached in if_else(form == ATTACHED):
                if attached:
                    attach(self.bending, body, self.work)
                else:
                    sweep.reach(body)
                    for _ in if_(form == BENT):
                        weigh(self.bending, body, self.work)

    def filtered(self, body, *more):
        """Gather one body of any form; what the modes leave of one that bends is behind its hinge."""
        for form in switch(self.bending.flex(body).form, FORMS):
            if form == RIGID:
                super().filtered(body)
            elif form == BENT:
                super().filtered(body, self.modes_of(self, body).filtered())
            else:
                slot = self.slots[body.arrives]  # what its children pass on
                filter_node(Attachment(self, body, known=self.prior(body, (slot.P, slot.z))))

    def smoothed(self, body):
        """Scatter to one body of any form."""
        for form in switch(self.bending.flex(body).form, FORMS):
            if form == ATTACHED:
                smooth_node(Attachment(self, body))
            else:
                super().smoothed(body)
                if form == BENT:
                    self.modes_of(self, body).smoothed()


class Attachment(Many):
    """A frame on a body that bends: no mass, no dofs, and Π beside φ."""

    def __init__(self, filter_, body, **more):
        super().__init__(filter_, body, **more)
        self.flex = filter_.bending.flex(body)
        self.modes = filter_.modes_of(filter_, body)  # of the body it is on

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


def flexible_entry(recursion, workspace, *more):
    """The entry of a recursion over robots with bodies that bend, else as all others are."""
    return entry(recursion, workspace, *more, table=FLEXIBLE)


def flexible_forward_dynamics(f):
    """a of hinges and modes: some n(n + 6)²/3 + 3p(n + 6)² operations more for a body of n modes and p points."""
    return forward_dynamics(f)


FLEXIBLE_FORWARD = flexible_entry(flexible_forward_dynamics, FlexibleFilter, [Q, V, TAU, FORCES, GRAVITY], [A])
