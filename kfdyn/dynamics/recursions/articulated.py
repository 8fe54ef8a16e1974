"""Bodies as nodes of the filter (ABA): articulated body inertias and forces, one dof at a time.

What :mod:`kfdyn.estimation.recursions.node_update` calls a node is a body here, an output one dof of its hinge. z holds
P η beforehand, so that ε is what THEORY section 3 calls SKO's.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions import node_update
from kfdyn.estimation.recursions.node_update import Straight, filter_node, smooth_node
from kfdyn.multibody.recursions.outward import WORK, axis_of, inertia_of
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, SLIDE, Body, dofs, inward, outward
from kfdyn.multibody.recursions.robot_entry import Swept, push_on, put, vector
from kfdyn.multibody.recursions.spatial import Articulated, Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop, loop_vars, switch
from kfdyn.sweeps.functions import minimum, sqrt
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import broadcast, now, where
from kfdyn.sweeps.variables import local

#: Kept for each dof beside its row of H: gain, ν = ε/d, 1/d. The gain g = P h/d is that of the dof; for a revolute
#: hinge or a slide it is φ g, what the parent sees of it.
DOF = Record(gain=Spatial, nu=float, inverse=float)

#: A slot: P and z of what is outboard, and bounds of the composite body's moments of inertia.
SLOT = Record(P=Articulated, z=Spatial, bound=Vec3)

#: What is below this part of the composite body's inertia is rounding. A false alarm costs time, not truth: the engine
#: then decides.
ROUNDING = 1024 * 2.220446049250313e-16


#: What is rounding in P becomes g g* times that in P⁺: a hinge that feels little of what it carries, as one of three
#: axes through a mass without extent may, leaves the next one few digits. So d is compared with rounding times the
#: largest g² so far. ROUNDING allows for a second largest of this size; what is more counts, too. Squares are below
#: 64 in most poses of the public robots.
SECOND_GAIN = 512.0


class Output(node_update.Output):
    """One dof as an output of its node: h, noise, measurement, and what is kept of it; l of a hinge of one dof."""

    def __init__(self, node, i, row, noise, lever=None):
        self.node, self.i, self.row, self.noise, self.lever = node, i, row, noise, lever
        self.kept = node.filter.dofs[i]

    @property
    def measured(self):
        """The generalised force."""
        return self.node.filter.row.tau[self.i]

    @property
    def gain(self):
        """g, or φ g where the node is of one dof."""
        node, gain = self.node, self.kept.gain
        return gain if self.lever is None else Passed(gain, node.filter.bodies[node.body.parent].eta)

    @property
    def nu(self):
        """ν."""
        return self.kept.nu

    def keep(self, g, d, nu):
        """Remember the gain, 1/d and ν, and how much of d is above rounding."""
        self.node.watch(self, g, d)
        self.kept.gain = g if self.lever is None else g.force_shifted(self.lever)
        self.kept.inverse = 1.0 / d
        if nu is not None:
            self.kept.nu = nu

    def answer(self, a):
        """The acceleration of the dof."""
        self.node.filter.row.a[self.i] = a


class Passed:
    """φ g: it meets the parent's λ, so that the product need not wait for λ⁺ = φ*λ."""

    def __init__(self, gain, parent):
        self.gain, self.parent = gain, parent

    def dot(self, costate):
        """g*λ⁺ = (φ g)*λ(p)."""
        return self.gain.w.dot(self.parent.w) + self.gain.v.dot(self.parent.v)


class Prior(NamedTuple):
    """The prior of a body, before its dofs are measured; z is None if nothing moves."""

    P: Any
    z: Any
    rounding: Any


class Filter(Swept):
    """The workspace of a filter over a robot: bodies, rows of H, dofs, sums."""

    #: What a dof is to it, and whether those of a hinge are measured from the outermost on.
    output, outermost_first = Output, False
    #: Whether z is gathered, too: not if the outward sweep was one at rest.
    moving = True

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.dofs, self.slots = self.take_rows(DOF, robot.nv), self.take_rows(SLOT, robot.slots + 1)

    def begin(self):
        """Slot 0 and the world."""
        super().begin()
        clear(self.slots.memory, SLOT.width)

    def gather(self):
        """The filter, leaves to roots; the least d less rounding."""
        self.least = local(everything(self.robot, 1e300))
        self.largest, self.magnified = (local(everything(self.robot, 1.0)) for _ in range(2))
        for body in inward(self.robot):
            self.filtered(body)
        return now(self.least)

    def filtered(self, body, state=None):
        """Gather one body, of which P and z may be known but for external forces and Pη."""
        prior = self.prior(body, state)
        for kind in switch(body.kind, KINDS):
            filter_node(self.node(body, kind, prior))

    def scatter(self):
        """The smoother, roots to leaves; the world's acceleration is −g."""
        put(self.work, WORK.place("eta") + 3, -vector(self.row.gravity))
        for body in outward(self.robot):
            self.smoothed(body)

    def smoothed(self, body):
        """Scatter to one body."""
        for kind in switch(body.kind, KINDS):
            smooth_node(self.node(body, kind))

    def node(self, body, kind, prior=None):
        """A body as a node of its kind."""
        return (One if kind in (REVOLUTE, SLIDE) else Many)(self, body, kind, prior)

    def prior(self, body, state=None, prescribed=False):
        """P = Σ φP⁺φ* + M and z = Σ φz⁺ + ξ + Pη with ξ = [ω × Jω; m ω × (ω × p)] − external force.

        Unless something is prescribed and its acceleration part of η, η of a hinge of one dof on the world is 0.
        """
        P, z = state or self._whole(body)
        if self.moving:
            state = loop_vars(z)
            for _ in if_(self.row.external_forces.given):
                state.set(z - push_on(self.row, body))
            for _ in if_(True if prescribed else (body.parent != 0) | (body.kind > SLIDE)):
                state.set(state.get() + P.applied(self.bodies[body.t].eta))
            z = state.get()
        return Prior(P, z, self._rounding(body, P))

    def _whole(self, body):
        """P, and z less external forces and Pη; no z if nothing moves."""
        slot = self.slots[body.arrives]
        M, p = inertia_of(body, self.work)
        P = slot.P.plus_body(M, p, body.mass)
        if not self.moving:
            return P, None
        omega, z = self.bodies[body.t].omega, slot.z
        return P, Spatial(z.w.plus_cross(omega, M @ omega), z.v.plus_cross(omega, omega.cross(p)))

    def _rounding(self, body, P):
        """Bound the rounding of a moment of inertia about the hinge point, and sum up the parent's bound.

        A part of a bound of the composite body's moment of inertia, which is a constant of the robot unless the body is
        loose. Then it is summed up by the parallel axis theorem. What a hinge has taken out of P stays in the bound,
        since its rounding stays in P; so all mass counts, and not only what C tells to move along. Where very many
        bodies are outboard that would be far too much, and most of the rounding has faded on its way: there C does
        tell. Axis of the world by axis, √(moment) being what adds up: a planar chain that lies in two of them moves as
        one heavy body out of its plane, and its hinges need not know. A revolute hinge adds its armature.
        """
        mass, moment = (everything(self.robot, 0.0) + x for x in (body.all_mass, body.all_moment))
        masses, about, turning = (
            loop_vars(Vec3(mass, mass, mass)),
            loop_vars(Vec3(moment, moment, moment)),
            loop_vars(moment),
        )
        for _ in if_(body.loose != 0):
            J, C = body.moment.s, P.C.s
            own = abs(J[0]) + abs(J[3]) + abs(J[5])
            outboard = self.slots[body.arrives].bound
            about.set(Vec3(*(x + own for x in outboard)))
            for _ in if_(body.loose > 1):
                masses.set(Vec3(*(minimum(mass, abs(C[i])) for i in (0, 3, 5))))
            x, y, z = about.get()
            turning.set(x + y + z)
        for _ in if_((Body(self.robot, body.parent).loose != 0) & (body.parent != 0)):
            x, y, z = (abs(x) for x in self.bodies[body.t].l)
            mx, my, mz = (sqrt(m) for m in masses.get())
            a, b, c = (sqrt(m) for m in about.get())
            a, b, c = a + my * z + mz * y, b + mz * x + mx * z, c + mx * y + my * x
            self.slots[body.leaves].bound = self.slots[body.base].bound + Vec3(a * a, b * b, c * c)
        for _ in if_(body.kind == REVOLUTE):
            for _ in if_(body.loose != 0):
                x, y, z = (abs(x) for x in axis_of(body.t, self.work))
                a, b, c = (sqrt(m) for m in about.get())
                side = x * a + y * b + z * c
                turning.set(side * side)
            turning.set(turning.get() + body.armature)
        return ROUNDING * turning.get()

    def watch(self, d, rounding, gain):
        """Remember the least of what is left of d above rounding; ``gain`` is the square of that."""
        largest, magnified = now(self.largest), now(self.magnified)
        self.least.set(minimum(self.least, d - rounding * magnified))
        two = gain * largest / SECOND_GAIN
        largest = where(gain > largest, gain, largest)
        magnified = where(two > magnified, two, magnified)
        self.largest.set(largest)
        self.magnified.set(where(largest > magnified, largest, magnified))

    def one_dof(self, body, kind):
        """Read off a hinge of one dof its row of H, l, and φ g."""
        return self.one_row(body, kind), self.bodies[body.t].l, self.dofs[body.v].gain


def everything(robot, x):
    """A number of the robot's kind."""
    return broadcast(x, robot.lanes)


class Node:
    """A body as a node; P and z are ``variables`` that may change in loops, or not."""

    variables: type = loop_vars

    def __init__(self, filter_, body, kind=None, known=None):
        self.filter, self.body, self.kind, self.known = filter_, body, kind, known
        self.here = filter_.bodies[body.t]

    def prior(self):
        """P, z."""
        return self.variables(self.known.P, self.known.z)

    def arriving(self):
        """λ⁺."""
        return self.variables(self.filter.bodies[self.body.parent].eta.motion_shifted(self.here.l))

    def leave(self, costate):
        """λ + η, where η was."""
        self.here.eta = self.here.eta + costate


class One(Node):
    """A body on one rotation or one translation."""

    variables = Straight

    def outputs(self, backwards=False):
        """The one dof."""
        f, body = self.filter, self.body
        yield f.output(self, body.v, f.one_row(body, self.kind), body.armature, self.here.l)

    def watch(self, h, g, d):
        """Rounding of a turn is that of a moment of inertia, of a slide that of a mass."""
        body, turns = self.body, self.kind == REVOLUTE
        margin = self.known.rounding if turns else ROUNDING * (body.all_mass + body.armature)
        along = g.w if turns else g.v
        self.filter.watch(d, margin, along.dot(along))

    def pass_on(self, P, z):
        """Add what the parent sees to the parent's sum, or begin the sum with it."""
        f, body, l = self.filter, self.body, self.here.l
        for _ in if_(body.parent != 0):
            P, z = P.shifted(l), None if z is None else z.force_shifted(l)
            out, base = f.slots[body.leaves], f.slots[body.base]
            for first in if_else(body.base == 0):  # nothing yet: what a chain always does
                out.P = P if first else base.P + P
                if z is not None:
                    out.z = z if first else base.z + z


class Many(Node):
    """A body on a hinge of any number of dofs."""

    def outputs(self, backwards=False):
        """The dofs."""
        f = self.filter
        for i in dofs(f.robot, self.body, backwards != f.outermost_first):
            yield f.output(self, i, f.rows_of_H[i].h, f.robot.armature[i])

    def watch(self, h, g, d):
        """A dof that turns and slides may lose by both."""
        w, v = h.row.w, h.row.v
        weight = self.body.all_mass * v.dot(v) + h.noise
        rounding = self.known.rounding * w.dot(w) + ROUNDING * weight
        self.filter.watch(d, rounding, g.w.dot(g.w) * w.dot(w) + g.v.dot(g.v) * v.dot(v))

    def pass_on(self, P, z):
        """Add what the parent sees to the parent's sum.

        By way of a spare slot: the compiler would join this end to that of other hinges, whose numbers then could not
        stay in registers.
        """
        f, body, l = self.filter, self.body, self.here.l
        for _ in if_(body.parent != 0):
            spare, sums = f.slots[f.robot.slots], f.slots.memory
            spare.P = P.shifted(l)
            if z is not None:
                spare.z = z.force_shifted(l)
            start, base, out = (x * SLOT.width for x in (f.robot.slots, body.base, body.leaves))
            count = SLOT.place("bound") if z is not None else SLOT.place("z")
            for i in loop(count) if not isinstance(out, int) or tracing.builder is None else range(count):
                sums[out + i] = sums[base + i] + sums[start + i]
