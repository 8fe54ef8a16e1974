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
        self.v, self.tau, self.a, self.way = (self.take(robot.nv) for _ in range(4))

    def write(self, k):
        """The state is that of step k."""
        self.row.q_all.part(k * self.robot.nq).copy(self.q, self.robot.nq)
        self.row.v_all.part(k * self.robot.nv).copy(self.v, self.robot.nv)

    def drive(self, k):
        """τ of step k within its limits, less what dampers take; less than 0 where q is out of a hinge's reach."""
        row, nv = self.row, self.robot.nv
        pair = changed(row, q=row.q_ref.part(k * self.robot.nq), q2=self.q, dv=self.way)
        reach = difference(Workspace(self.robot, pair, self.memory))
        for i in loop(nv):
            at = k * nv + i
            tau = loop_vars(row.tau_ref[at] + row.alpha[0] * row.shift[at])
            for j in loop(nv):
                rate = self.v[j] - row.v_ref[k * nv + j]
                tau.set(tau.get() + (row.gains_q[at * nv + j] * self.way[j] + row.gains_v[at * nv + j] * rate))
            tau = tau.get()
            tau = where(tau < row.low[i], row.low[i], where(tau > row.high[i], row.high[i], tau))
            row.tau_all[at] = tau
            self.tau[i] = tau - row.drag[i] * self.v[i]
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
    """States and torques of a motion: semi-implicit Euler steps under τ = τ̄ + α shift + K (x ⊖ x̄)."""
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


_LAW = [
    Given(name, tail, shared=True)
    for name, tail in (
        ("q_ref", ("steps", "nq")), ("v_ref", ("steps", "nv")), ("tau_ref", ("steps", "nv")),
        ("shift", ("steps", "nv")),
        ("gains_q", ("steps", "nv", "nv")), ("gains_v", ("steps", "nv", "nv")), ("gap", ("steps", 2, "nv")),
    )
]  # fmt: skip

ROLLOUT = entry(
    rollout,
    Rollout,
    [Q, V, Given("alpha", ()), *_LAW, FORCES, GRAVITY],
    [Given("q_all", ("states", "nq")), Given("v_all", ("states", "nv")), Given("tau_all", ("steps", "nv"))],
    [
        Parameter("steps", "n"), Parameter("states", "n"),
        *(Parameter(name, "f") for name in ("h", "drag", "low", "high")), *REACH,
    ],
    may_overflow=False,
    block=8,
)  # fmt: skip
