"""Gravity torques: first moments gathered inward, each felt by the hinge that carries it.

Nothing moves and nothing turns but what the outward sweep places, so a body costs some 60 flops beside that sweep.
"""

from kfdyn.multibody.recursions.given import GRAVITY, TAU, Q
from kfdyn.multibody.recursions.robot import inward
from kfdyn.multibody.recursions.robot_entry import Swept, entry, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import if_
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record

#: First moment of a composite body about its hinge point, world orientation. Its mass is a constant.
MOMENT = Record(p=Vec3)


class Carried(Swept):
    """The workspace: first moments of composite bodies."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.sums = self.take_rows(MOMENT, robot.slots)

    def begin(self):
        """Slot 0 and the world."""
        super().begin()
        clear(self.sums.memory, MOMENT.width)


def gravity_torques(sweep):
    """tau = −h [p × g; m g], p and m of all that a hinge carries, and p(parent) += p + m l."""
    robot, g = sweep.robot, vector(sweep.row.gravity)
    sweep.sweep_outward(moving=False)
    for body in inward(robot):
        p = sweep.inertia(body).p + sweep.sums[body.arrives].p
        weight = Spatial(p.cross(g), body.all_mass * g)
        for i, h in sweep.rows(body):
            sweep.row.tau[i] = -h.dot(weight)
        for _ in if_(body.parent != 0):
            sweep.sums[body.leaves].p = sweep.sums[body.base].p + (p + body.all_mass * sweep.bodies[body.t].l)


GRAVITY_TORQUES = entry(gravity_torques, Carried, [Q, GRAVITY], [TAU], unroll=12)
