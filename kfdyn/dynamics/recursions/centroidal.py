"""The centroidal momentum matrix: composite bodies gathered inward, each moved by its hinge."""

from kfdyn.dynamics.recursions.mass_matrix import Diagonal
from kfdyn.multibody.recursions.energy import Placed, mass_centre
from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.robot import inward
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.sweeps.control_flow import flattened
from kfdyn.sweeps.entry import Given


class Columns(Diagonal, Placed):
    """The workspace: composite bodies, where their hinges are, and the entries of the matrix."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.entries = self.take(6 * robot.nv)

    def own(self, i, value):
        """Nothing: no entry of 𝓜 is wanted."""

    def walk(self, body, i, f):
        """φ(c, k) ℛ h of dof i, at the mass centre c."""
        column = f.force_shifted(self.places[body.t].x - self.centre)
        for j, x in enumerate(flattened(column)):
            self.entries[j * self.robot.nv + i] = x


def centroidal_momentum_matrix(sweep):
    """A(·, i) = φ(c, k) ℛ(k) h(i)*."""
    sweep.sweep_outward(moving=False)
    sweep.centre = mass_centre(sweep)
    for body in inward(sweep.robot):
        sweep.weigh(body)
    sweep.row.matrix.copy(sweep.entries, 6 * sweep.robot.nv)


CENTROIDAL_MATRIX = entry(centroidal_momentum_matrix, Columns, [Q], [Given("matrix", (6, "nv"))])
