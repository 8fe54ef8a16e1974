"""Steps in time: forward dynamics and moves of the configuration in turn, as a tableau says; whole motions in one loop.

A step has stages, each with a configuration, a velocity and an acceleration, and moves, each of which leads from one
configuration along velocities of the stages to another::

    a_m from (Q_m, V_m, τ_m),   V_(m+1) = v + h c_m a_m,   Q_(m+1) = Q_base(m) ⊕ h Σ_j A_mj V_j,   v ← v + h Σ b_m a_m

Q_0 = q, V_0 = v, and the last Q is the new q. Runge and Kutta's method on the configuration space has four stages and
five moves, semi-implicit Euler one of each (tables in :mod:`kfdyn.dynamics.simulation.compiled_stepper`).
"""

from kfdyn.dynamics.recursions.articulated import Filter, everything
from kfdyn.dynamics.recursions.control import add_gains
from kfdyn.dynamics.recursions.forward import forward_dynamics
from kfdyn.multibody.recursions.displacement import REACH, difference, moved
from kfdyn.multibody.recursions.energy import PLACE, speed_of
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, Q, V, changed
from kfdyn.multibody.recursions.robot import outward
from kfdyn.multibody.recursions.robot_entry import entry, push_on
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.control_flow import if_, loop, loop_vars, while_
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.functions import minimum
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import now, to_float, where
from kfdyn.sweeps.variables import local

#: Sizes and choices of a march, before the bases of its moves. ahead: which velocity work is done at, that of the stage
#: (0) or the next one (1). dense: gains are matrices. held: a reference stays what it is when a step begins.
PLAN = Record(stages=int, moves=int, ahead=int, substeps=int, feedback=int, dense=int, held=int, springs=int)

#: c_m and b_m of a stage, and when it is, as a part of the step.
STAGE = Record(c=float, b=float, time=float)

#: Of a dof: stiffness; what its velocity is opposed by; what of that takes energy away.
HINGE = Record(stiffness=float, drag=float, damping=float)

#: Beyond this a velocity is a motion that has exploded.
OVERFLOW = 1e100


class Steps:
    """The stages of a step, in a workspace that knows what moves.

    ``own`` are its coordinates: how many there are, and how they move. What else depends on what moves: ``solve`` the
    acceleration, ``resist`` by springs and dampers, what ``braking`` takes, the power of what ``pushes`` bodies.
    """

    def take_steps(self, own):
        """Room for the stages."""
        row, self.own = self.row, own
        self.plan, self.hinges = PLAN.rows(row.plan)[0], self.take_rows(HINGE, self.robot.nv)
        self.tau, self.total, self.a, self.way, self.rate = (self.take(own.nv) for _ in range(5))
        self.reference = self.take(own.nq)
        self.block = self.rest  # what goes from one stage to the next
        self.work_done, self.gained = self.take(1), self.take(own.nv)
        self.velocities = self.take((self.plan.stages + 1) * own.nv)
        self.positions = self.take((self.plan.moves + 1) * own.nq)

    def look(self):
        """Take the springs and dampers of the row from where they are given."""
        for i in loop(self.robot.nv * HINGE.width):
            self.hinges.memory[i] = self.row.hinges[i]

    def q(self, m):
        """Configuration of stage m."""
        return self.positions.part(m * self.own.nq)

    def v(self, m):
        """Velocity of stage m."""
        return self.velocities.part(m * self.own.nv)

    def write(self, i):
        """The state, and the work done so far, are those at time i."""
        own, row = self.own, self.row
        row.q_all.part(i * own.nq).copy(self.q(0), own.nq)
        row.v_all.part(i * own.nv).copy(self.v(0), own.nv)
        row.work_all[i] = self.work_done[0]

    def run_stage(self, m, h):
        """The acceleration of stage m under ``total``, the next velocity, and the work; the filter's least d."""
        row, nv = self.row, self.own.nv
        state = changed(row, q=self.q(m), v=self.v(m), tau=self.total, a=self.a)
        least = self.solve(state)
        stage, start, after, rate = STAGE.rows(row.tableau)[m], self.v(0), self.v(m + 1), self.v(m + self.plan.ahead)
        weight, ahead, power = h * stage.b, h * stage.c, loop_vars(everything(self.robot, 0.0))
        for i in loop(nv):
            a = self.a[i]
            after[i] = start[i] + ahead * a
            self.gained[i] = self.gained[i] + weight * a
        taken = self.braking(rate)
        for i in loop(nv):
            power.set(power.get() + (self.tau[i] - taken(i)) * rate[i])
        for _ in if_(row.external_forces.given):
            for push in self.pushes(state):
                power.set(power.get() + push)
        self.work_done[0] = self.work_done[0] + weight * power.get()
        return least

    def move(self, m, h):
        """From the base of move m to the next configuration, along the velocities so far."""
        robot, plan, row = self.own, self.plan, self.row
        width = plan.stages + 1
        base, known = row.plan[PLAN.width + m], where(m + 2 < width, m + 2, width)
        for i in loop(robot.nv):
            total = loop_vars(everything(robot, 0.0))
            for j in loop(known):
                total.set(total.get() + row.weights[m * width + j] * self.v(j)[i])
            self.way[i] = h * total.get()
        moved(robot, self.q(base), lambda i: self.way[i], self.q(m + 1))

    def finish(self):
        """The new state, where the old one was; positive if it is one of numbers, −1 if not."""
        robot, v, q = self.own, self.v(0), self.q(0)
        fine, last = loop_vars(everything(robot, 1.0)), self.q(self.plan.moves)
        for i in loop(robot.nv):
            x = v[i] + self.gained[i]
            v[i], self.gained[i] = x, 0.0
            fine.set(where(abs(x) < OVERFLOW, fine.get(), -1.0))  # NaN is not less either
        for i in loop(robot.nq):
            q[i] = last[i]
            fine.set(where(abs(last[i]) < OVERFLOW, fine.get(), -1.0))
        return fine.get()

    def deviate(self, m):
        """Way = reference ⊖ q; less than 0 where a hinge cannot go there at constant velocity."""
        pair = changed(self.row, q=self.q(m), q2=self.reference, dv=self.way)
        return difference(Workspace(self.own, pair, self.memory))


class March(Steps, Filter):
    """The workspace of a march of a tree: that of the filter, and the stages of a step."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.places = self.take_rows(PLACE, robot.n + 1)
        self.take_steps(robot)

    def begin(self):
        """The world, which stays as it is."""
        super().begin()
        clear(self.places.memory, PLACE.width)

    def solve(self, state):
        """a, by filter and smoother; the least d."""
        return forward_dynamics(Filter(self.robot, state, self.memory))

    def resist(self, m):
        """Total = τ − drag v + K (rest ⊖ q)."""
        v = self.v(m)
        for i in loop(self.robot.nv):
            self.total[i] = self.tau[i] - self.hinges[i].drag * v[i]
        for _ in if_(self.plan.springs != 0):
            for i in loop(self.robot.nq):
                self.reference[i] = self.row.rest[i]
            self.deviate(m)
            for i in loop(self.robot.nv):
                self.total[i] = self.total[i] + self.hinges[i].stiffness * self.way[i]

    def braking(self, rate):
        """B v at a rate, dof by dof."""
        return lambda i: self.hinges[i].damping * rate[i]

    def pushes(self, state):
        """Over the power of the external force on each body."""
        for body in outward(self.robot):
            speed = Spatial(self.bodies[body.t].omega, speed_of(self, body, state.v))
            yield push_on(self.row, body).dot(speed)


class Law:
    """τ = τ_ref(t) + Kp (q_ref(t) ⊖ q) + Kd (v_ref(t) − v), references between knots linear in time, or held."""

    def __init__(self, march):
        self.march, self.row, self.robot = march, march.row, march.own
        self.knot = local(0)

    def drive(self, m, start, h):
        """τ of stage m of a step that begins at ``start``; less than 0 where a hinge cannot go to its reference."""
        reach = loop_vars(everything(self.robot, 1.0))
        march, row, nv = self.march, self.row, self.robot.nv
        held = march.plan.held != 0
        t = start + where(held, 0.0, STAGE.rows(row.tableau)[m].time) * h
        k, after, part = self._between(t)
        part = where(held, 0.0, part)

        def reference(column, i):
            x = column[k * nv + i]
            return x + part * (column[after * nv + i] - x)

        for i in loop(nv):
            march.tau[i] = reference(row.tau, i)
        for _ in if_(march.plan.feedback != 0):
            v = march.v(m)
            for i in loop(nv):
                march.rate[i] = reference(row.v_ref, i) - v[i]
                march.way[i] = part * row.way_ref[k * nv + i]
            moved(self.robot, row.q_ref.part(k * self.robot.nq), lambda i: march.way[i], march.reference)
            reach.set(march.deviate(m))
            add_gains(nv, march.plan.dense, row.gains, march.way, march.rate, march.tau)
        return reach.get()

    def _between(self, t):
        """The knots before and after t, and how far t is from the first to the second."""
        times, knots, knot = self.row.knot_times, self.row.knots, self.knot

        def following(k):
            return where(k + 1 < knots, k + 1, k)

        # By rounding the last step's end may be behind this one's start. So it goes back, too: what is between depends
        # on t alone, and a march that is done in pieces has the same bits.
        for _ in while_(lambda: (now(knot) > 0) & (times[now(knot)] > t)):
            knot.set(knot - 1)
        for _ in while_(lambda: (following(now(knot)) > now(knot)) & (times[following(now(knot))] <= t)):
            knot.set(knot + 1)
        k = now(knot)
        after = following(k)
        span = times[after] - times[k]
        part = (t - times[k]) / where(after > k, span, 1.0)
        return k, after, where(after > k, where(part < 0.0, 0.0, part), 0.0)  # before the first knot, that one


def march(m):
    """A motion: states at all times, the work done until then, and the interval in which a row failed, or −1.

    Of every interval steps ``begin`` to ``end`` of its substeps are taken; the state and ``work`` are those before.
    """
    robot, row = m.own, m.row
    m.look()
    law, substeps, fate = Law(m), m.plan.substeps, local(everything(robot, -1.0))
    for i in loop(robot.nq):
        m.q(0)[i] = row.q[i]
    for i in loop(robot.nv):
        m.v(0)[i], m.gained[i] = row.v[i], 0.0
    m.work_done[0] = row.work[0]
    m.write(0)
    for i in loop(row.nt, 1):
        start = row.times[i - 1]
        h = (row.times[i] - start) / to_float(substeps)
        for j in loop(row.end, row.begin):
            margin = step(m, law, start + to_float(j) * h, h)
            fate.set(where(margin > 0.0, now(fate), where(now(fate) < 0.0, to_float(i - 1), now(fate))))
        m.write(i)
    row.fate[0] = now(fate)


def step(march, law, t, h):
    """One step; the least d of its stages, or −1 where it left the numbers."""
    least = local(everything(march.robot, 1e300))
    for m in loop(march.plan.moves):
        for _ in if_(m < march.plan.stages):
            least.set(minimum(now(least), law.drive(m, t, h)))
            march.resist(m)
            least.set(minimum(now(least), march.run_stage(m, h)))
        march.move(m, h)
    fine = march.finish()
    return where(fine > 0.0, now(least), -1.0)


def one_stage(m):
    """From one stage of a step to the next, or to the next step, under forces that the caller knows.

    ``before`` and ``after`` are what one call hands to the next: the work, v gained so far, V and Q of the stages.
    """
    robot, row, h = m.own, m.row, m.row.step[0]
    stage, stages, fine = row.stage, m.plan.stages, loop_vars(everything(robot, 1.0))
    last = stage + 1 == stages
    m.look()
    for i in loop(row.block):
        m.block[i] = row.before[i]
    for i in loop(robot.nv):
        m.tau[i] = row.tau[i]
    m.resist(stage)
    least = m.run_stage(stage, h)
    for i in loop(where(last, m.plan.moves, stage + 1), stage):
        m.move(i, h)
    for _ in if_(last):
        fine.set(m.finish())
    reached = where(last, 0, stage + 1)
    row.after.copy(m.block, row.block)
    row.q.copy(m.q(reached), robot.nq)
    row.v.copy(m.v(reached), robot.nv)
    return where(fine.get() > 0.0, least, -1.0)


_COMMON = [
    Parameter("plan", "i"), *(Parameter(name, "f") for name in ("tableau", "weights", "rest")), *REACH,
]  # fmt: skip
_LAW = [
    *(Parameter(name, "n") for name in ("begin", "end", "nt")), Parameter("times", "f"),
    Parameter("knots", "n"), Parameter("knot_times", "f"), Parameter("gains", "f"),
]  # fmt: skip
#: Of all hinges, the open tree's; one for all rows, or for each its own.
_SPRINGS = Given("hinges", ("nv", HINGE.width), shared=True)
#: Of all hinges, whose springs these are; couplings leave other coordinates, and that of these is ``left_inverse``.
_HINGES = Parameter("tree_inverse", "f")
_REFERENCES = [
    Given(name, ("knots", size), shared=True)
    for name, size in (("tau", "nv"), ("q_ref", "nq"), ("way_ref", "nv"), ("v_ref", "nv"))
]

MARCH = entry(
    march,
    March,
    [Q, V, Given("work", ()), *_REFERENCES, _SPRINGS, FORCES, GRAVITY],
    [Given("q_all", ("nt", "nq")), Given("v_all", ("nt", "nv")), Given("work_all", ("nt",)), Given("fate", ())],
    [*_COMMON, *_LAW, _HINGES],
    may_overflow=False,
    block=8,
    long=True,
)

ONE_STAGE = entry(
    one_stage,
    March,
    [Given("before", ("block",)), TAU, _SPRINGS, FORCES, GRAVITY],
    [Given("after", ("block",)), Given("q", ("nq",)), Given("v", ("nv",))],
    [*_COMMON, Parameter("block", "n"), Parameter("stage", "n"), Parameter("step", "f"), _HINGES],
    may_overflow=False,
)
