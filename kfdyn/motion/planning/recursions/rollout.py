"""Motions under a feedback law of which every step has its own gains, in one loop; a motion in every lane."""

from kfdyn.dynamics.recursions.articulated import Filter, everything
from kfdyn.dynamics.recursions.forward import forward_dynamics
from kfdyn.multibody.recursions.displacement import REACH, difference, moved
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, Q, V, changed
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.control_flow import loop, loop_vars
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.functions import minimum
from kfdyn.sweeps.values import where


class Rollout(Filter):
    """The workspace of the filter, and a state on its way."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.q, self.next_q = (self.take(robot.nq) for _ in range(2))
        self.tau, self.a = (self.take(robot.nv) for _ in range(2))
        self.way = self.take(2 * robot.nv)
        self.v = self.take(robot.nv)

    def write(self, k):
        """The state is that of step k."""
        out = self.row.x_all.part(k * self.row.nx)
        out.copy(self.q, self.robot.nq)
        out.part(self.robot.nq).copy(self.v, self.robot.nv)

    def drive(self, k):
        """Controls of step k within limits, and τ less what dampers take; < 0 where q is out of a hinge's reach."""
        row, (nq, nv), p = self.row, (self.robot.nq, self.robot.nv), self.row.p
        before = row.x_ref.part(k * row.nx)
        reach = difference(Workspace(self.robot, changed(row, q=before, q2=self.q, dv=self.way), self.memory))
        for i in loop(nv):
            self.way[nv + i] = self.v[i] - before[nq + i]
            self.tau[i] = -row.drag[i] * self.v[i]
        for i in loop(p):
            at = k * p + i
            s = loop_vars(row.s_ref[at] + row.alpha[0] * row.shift[at])
            for j in loop(2 * nv):
                s.set(s.get() + row.gains[2 * at * nv + j] * self.way[j])
            s = s.get()
            s = where(s < row.low[i], row.low[i], where(s > row.high[i], row.high[i], s))
            row.s_all[at] = s
            for j in loop(nv):
                self.tau[j] = self.tau[j] + row.root[j * p + i] * s
        return reach

    def advance(self, k):
        """The step, short of a part of the gap to the next state of the reference; the filter's least d."""
        robot, row, h = self.robot, self.row, self.row.h[0]
        state = changed(row, q=self.q, v=self.v, tau=self.tau, a=self.a)
        least = forward_dynamics(Filter(robot, state, self.memory))
        left, gap = 1.0 - row.alpha[0], row.gap.part(2 * k * robot.nv)
        for i in loop(robot.nv):
            v = self.v[i] + h * self.a[i]
            self.way[i] = h * v
            self.v[i] = v - left * gap[robot.nv + i]
        moved(robot, self.q, lambda i: self.way[i], self.next_q)
        moved(robot, self.next_q, lambda i: -left * gap[i], self.q)
        return least


def rollout(r):
    """States and controls of a motion: semi-implicit Euler steps under s = s̄ + α shift + K (x ⊖ x̄), τ = L s."""
    robot, row, least = r.robot, r.row, loop_vars(everything(r.robot, 1.0))
    for i in loop(robot.nq):
        r.q[i] = row.q[i]
    for i in loop(robot.nv):
        r.v[i] = row.v[i]
    for k in loop(row.steps):
        r.write(k)
        least.set(minimum(least.get(), r.drive(k)))
        least.set(minimum(least.get(), r.advance(k)))
    r.write(row.steps)
    return least.get()


#: What is known of every step: states and controls x̄, s̄ that the law is about, its gains, and gaps.
_LAW = [
    Given(name, ("steps", *tail), shared=True)
    for name, tail in (
        ("x_ref", ("nx",)), ("s_ref", ("p",)), ("shift", ("p",)), ("gains", ("p", 2, "nv")), ("gap", (2, "nv"))
    )
]  # fmt: skip

ROLLOUT = entry(
    rollout,
    Rollout,
    [Q, V, Given("alpha", ()), *_LAW, FORCES, GRAVITY],
    [Given("x_all", ("states", "nx")), Given("s_all", ("steps", "p"))],
    [
        *(Parameter(name, "n") for name in ("steps", "states", "nx", "p")),
        *(Parameter(name, "f") for name in ("h", "drag", "root", "low", "high")), *REACH,
    ],
    may_overflow=False,
    block=8,
)  # fmt: skip
