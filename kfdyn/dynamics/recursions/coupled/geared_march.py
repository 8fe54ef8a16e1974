"""Steps in time of trees whose hinges are geared: the stages of :mod:`.march`, in the coordinates that couplings leave.

Springs and dampers are those of the hinges, so that they act as X*(K(rest ⊖ q) − BXv).
"""

from kfdyn.dynamics.recursions.coupled.geared import Driven, like_that_of_trees
from kfdyn.dynamics.recursions.steps.march import MARCH, ONE_STAGE, Steps, march, one_stage
from kfdyn.multibody.recursions.displacement import difference
from kfdyn.multibody.recursions.energy import Placed
from kfdyn.multibody.recursions.given import changed
from kfdyn.multibody.recursions.robot import outward
from kfdyn.multibody.recursions.robot_entry import push_on
from kfdyn.multibody.recursions.variants.geared import Expansion, Kept, coordinates
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.control_flow import if_, loop


class GearedMarch(Steps, Driven):
    """The workspace: that of forward dynamics, the state of all hinges, and the stages of a step."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.X, self.braked = Expansion(robot, self.take), self.take(self.n)
        self.every_q, self.every_rest = self.take(robot.nq), self.take(robot.nq)
        self.every_v, self.felt = self.take(robot.nv), self.take(robot.nv)
        self.sight = self.take(Placed.size(robot))
        self.take_steps(coordinates(robot))

    def begin(self):
        """Prepare what stays from row to row."""
        super().begin()
        Placed(self.robot, self.row, self.sight).begin()

    def solve(self, state):
        """a = (X*𝓜X)⁻¹(tau − X*c); the least pivot."""
        driven = Driven(self.robot, changed(state, q=Kept(state.q), v=Kept(state.v)), self.memory)
        least = driven.accelerate()
        for i in loop(self.n):
            self.a[i] = driven.vector[i]
        return least

    def resist(self, m):
        """Total = τ + X*(K (rest ⊖ q) − drag X v)."""
        robot, v, felt = self.robot, self.every_v, self.felt
        self.X.lead(self.q(m))
        self.X.rates(self.v(m), v)
        for i in loop(robot.nv):
            felt[i] = -self.hinges[i].drag * v[i]
        for _ in if_(self.plan.springs != 0):
            self.deflect(m)
            for i in loop(robot.nv):
                felt[i] = felt[i] + self.hinges[i].stiffness * v[i]
        self.X.rows(felt, 1, self.total)
        for i in loop(self.n):
            self.total[i] = self.tau[i] + self.total[i]

    def deflect(self, m):
        """Rest ⊖ q of all hinges, where their rates were; free and custom ones, which may not get there, have no K."""
        robot, row = self.robot, self.row
        self.X.positions(self.q(m), self.every_q)
        for i in loop(robot.nq):
            self.every_rest[i] = row.rest[i]
        pair = changed(row, q=self.every_q, q2=self.every_rest, dv=self.every_v, left_inverse=row.tree_inverse)
        difference(Workspace(robot, pair, self.memory))

    def braking(self, rate):
        """X*BX v at a rate."""
        self.X.rates(rate, self.every_v)
        for i in loop(self.robot.nv):
            self.felt[i] = self.hinges[i].damping * self.every_v[i]
        self.X.rows(self.felt, 1, self.braked)
        return lambda i: self.braked[i]

    def pushes(self, state):
        """Over the power of the external force on each body."""
        self.X.positions(state.q, self.every_q)
        self.X.rates(state.v, self.every_v)
        bodies = Placed(self.robot, changed(state, q=self.every_q, v=self.every_v), self.sight)
        bodies.sweep_outward()
        for body in outward(self.robot):
            yield push_on(self.row, body).dot(bodies.velocity_of(body))


def geared_march(m):
    """A whole motion."""
    march(m)


def geared_stage(m):
    """From one stage of a step to the next."""
    return one_stage(m)


GEARED_MARCH = like_that_of_trees(MARCH, geared_march, GearedMarch, MARCH.parameters)
GEARED_ONE_STAGE = like_that_of_trees(ONE_STAGE, geared_stage, GearedMarch, ONE_STAGE.parameters)
