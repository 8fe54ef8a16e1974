"""The variational step of a tree: kick and move, both implicit, solved by iteration as long as that contracts.

    π = p + h/2 (τ − B u + F(q, u)),   𝓜(q) u = J*π;       q½ = q ⊕ h/2 u,   p½ = Ad*π
    𝓜(q½ ⊕ h/2 w) w = J*p½                                 (see :mod:`kfdyn.dynamics.simulation.symplectic.variational`)

A row whose corrections do not halve from one to the next, as where a damper is stiff, has no answer here: Python's step
then looks for its root.
"""

from kfdyn.dynamics.recursions.articulated import Filter, everything
from kfdyn.dynamics.recursions.forward import forward_dynamics
from kfdyn.dynamics.recursions.steps.lagrangian import Lagrange, ad_star, add, lagrangian, twist
from kfdyn.dynamics.simulation.symplectic.implicit_equations import CONTRACTION, MOST_CORRECTIONS, ROUNDING, STAGNANT
from kfdyn.multibody.recursions.displacement import moved
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, Q, V, changed
from kfdyn.multibody.recursions.robot import BALL, dofs, outward
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.control_flow import if_, loop, loop_vars, while_
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.functions import maximum, minimum, sqrt
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.specialise import Absent
from kfdyn.sweeps.values import any_lanes, now, to_float, where
from kfdyn.sweeps.variables import local

#: Terms of exp(ad), and the largest entry of a step for which the rest of them is below rounding: 3.5²⁰ 0.3²⁰ / 20!.
TERMS, LONGEST = 20, 0.3


class Verlet(Workspace):
    """The workspace: those of the filter and of momenta, and the vectors of a step."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        nq, nv = robot.nq, robot.nv
        self.filter_memory, self.momenta_memory = self.take(Filter.size(robot)), self.take(Lagrange.size(robot))
        self.p, self.kicked, self.mean, self.at_rest, self.x, self.g = (self.take(nv) for _ in range(6))
        self.momentum, self.force, self.way, self.spare = (self.take(nv) for _ in range(4))
        self.q_half, self.q_end, self.weightless = self.take(nq), self.take(nq), self.take(3)
        self.half = 0.5 * row.step[0]

    def begin(self):
        """Prepare what stays from row to row."""
        Filter(self.robot, self.row, self.filter_memory).begin()
        Lagrange(self.robot, self.row, self.momenta_memory).begin()
        clear(self.at_rest, self.robot.nv)
        clear(self.weightless, 3)

    def weigh(self, q, v):
        """𝓜(q) v into ``momentum``, and F(q, v) into ``force``."""
        state = changed(self.row, q=q, v=v, momentum=self.momentum, force=self.force)
        lagrangian(Lagrange(self.robot, state, self.momenta_memory))

    def solve(self, q, p, out):
        """𝓜⁻¹(q) p, the least d."""
        state = changed(
            self.row, q=q, v=self.at_rest, tau=p, a=out, gravity=self.weightless, external_forces=Absent()
        )  # fmt: skip
        return forward_dynamics(Filter(self.robot, state, self.filter_memory))

    def carry(self, step, p, mean, out):
        """J*p and Ad*p of a move exp(h/2 step), as :func:`.lagrangian.transport` has it."""
        robot = self.robot
        for i in loop(robot.nv):
            self.way[i] = self.half * step[i]
            mean[i] = p[i]
            out[i] = p[i]
        for body in outward(robot):
            count = body.v_end - body.v
            for _ in if_(is_group(body)):
                whole = count == 6
                along, term = twist(self.way, body.v, whole), loop_vars(twist(p, body.v, whole))
                factor = loop_vars(1.0)
                for i in loop(TERMS - 1):
                    order = to_float(i + 1)
                    term.set(ad_star(along, term.get()))
                    factor.set(factor.get() / order)
                    add(out, body.v, whole, factor.get(), term.get())
                    add(mean, body.v, whole, factor.get() / (order + 1.0), term.get())

    def longest(self):
        """The largest entry of x at a hinge that momenta are carried along, times h/2."""
        largest = loop_vars(everything(self.robot, 0.0))
        for body in outward(self.robot):
            for _ in if_(is_group(body)):
                for i in dofs(self.robot, body):
                    size = abs(self.x[i])
                    largest.set(maximum(largest.get(), size))
        return self.half * largest.get()

    def moved(self, q, v, out):
        """q ⊕ h/2 v."""
        moved(self.robot, q, lambda i: self.half * v[i], out)

    def push(self, u):
        """π = p + h/2 (τ − B u + F(q, u)) into ``kicked``; 𝓜(q) u is in ``momentum`` then."""
        row = self.row
        self.weigh(row.q, u)
        for i in loop(self.robot.nv):
            self.kicked[i] = self.p[i] + self.half * ((row.tau[i] - row.damping[i] * u[i]) + self.force[i])

    def kick(self, u):
        """𝓜⁻¹(q) J*π into ``g``."""
        self.push(u)
        self.carry(u, self.kicked, self.mean, self.spare)
        return self.solve(self.row.q, self.mean, self.g)

    def move(self, w):
        """𝓜⁻¹ J*p½ at the q that w leads to, into ``g``."""
        self.moved(self.q_half, w, self.q_end)
        self.carry(w, self.kicked, self.mean, self.spare)
        self.weigh(self.q_end, w)
        return self.solve(self.q_end, self.mean, self.g)

    def length(self, x, p):
        """√(x* 𝓜 x) with p = 𝓜 x."""
        total = loop_vars(everything(self.robot, 0.0))
        for i in loop(self.robot.nv):
            total.set(total.get() + x(i) * p(i))
        return sqrt(abs(total.get()))

    def settle(self, update, rounding):
        """x = g(x) from the x that is there, of which ``rounding`` is what rounding is a part of beside it.

        A correction r = g − x is measured by r*(J*π − 𝓜x), which is r*𝓜r; 1 where x is the root, −1 where corrections
        do not halve.
        """
        nv, x, robot = self.robot.nv, self.x, self.robot

        def correction():
            least = update(x)
            size = self.length(lambda i: self.g[i] - x[i], lambda i: self.mean[i] - self.momentum[i])
            return least, size

        least, first = correction()
        own = self.length(lambda i: x[i], lambda i: self.momentum[i])
        scale = own + first + rounding
        one = everything(robot, 1.0)
        margin, before = local(least), local(first)
        going, turns = local(where(first <= ROUNDING * scale, 0.0 * one, one)), local(0)
        for _ in while_(lambda: any_lanes(now(going) > 0.0) & (turns < MOST_CORRECTIONS)):
            active = now(going) > 0.0
            for i in loop(nv):
                x[i] = where(active, self.g[i], x[i])
            least, size = correction()
            last = now(before)
            contracts = size <= CONTRACTION * last
            arrived = contracts & (2.0 * (size * size) <= ROUNDING * scale * last)
            rounded = last <= STAGNANT * scale
            for i in loop(nv):
                x[i] = where(active & arrived, self.g[i], x[i])
            goes_on = where(contracts, where(arrived, 0.0 * one, one), where(rounded, 0.0 * one, -1.0 * one))
            going.set(where(active, goes_on, now(going)))
            before.set(where(active, size, last))
            margin.set(minimum(now(margin), where(active, least, now(margin))))
            turns.set(turns + 1)
        return where(now(going) == 0.0, now(margin), -1.0 * one)


def is_group(body):
    """Tell whether a hinge moves in all of SO(3) or SE(3)."""
    return (body.kind >= BALL) & (body.v_end - body.v == where(body.kind == BALL, 3, 6))


def variational_step(s):
    """u, w, the configuration after both moves and the momentum there; the second kick is not made yet."""
    robot, row, nv = s.robot, s.row, s.robot.nv
    s.weigh(row.q, row.v)
    for i in loop(nv):
        s.p[i], s.x[i] = s.momentum[i], row.v[i]
        s.mean[i] = s.half * (abs(row.tau[i]) + abs(row.damping[i] * row.v[i]) + abs(s.force[i]))
    least = s.solve(row.q, s.mean, s.g)
    rounding = s.length(lambda i: s.g[i], lambda i: s.mean[i])
    least = minimum(least, s.settle(s.kick, rounding))
    least = minimum(least, LONGEST - s.longest())
    for i in loop(nv):
        row.u[i] = s.x[i]
    s.push(s.x)
    s.carry(s.x, s.kicked, s.mean, s.p)
    s.moved(row.q, s.x, s.q_half)
    for i in loop(nv):
        s.kicked[i] = s.p[i]
    least = minimum(least, s.solve(s.q_half, s.kicked, s.x))
    rounding = s.length(lambda i: s.x[i], lambda i: s.kicked[i])
    least = minimum(least, s.settle(s.move, rounding))
    least = minimum(least, LONGEST - s.longest())
    for i in loop(nv):
        row.w[i] = s.x[i]
    s.carry(s.x, s.kicked, s.mean, s.p)
    row.p_end.copy(s.p, nv)
    s.moved(s.q_half, s.x, s.q_end)
    row.q_end.copy(s.q_end, robot.nq)
    return least


VARIATIONAL_STEP = entry(
    variational_step,
    Verlet,
    [Q, V, TAU, FORCES, GRAVITY],
    [Given("u", ("nv",)), Given("w", ("nv",)), Given("q_end", ("nq",)), Given("p_end", ("nv",))],
    [Parameter("step", "f"), Parameter("damping", "f")],
)
