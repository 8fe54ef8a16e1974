"""Kinetic energy, mass centre and momentum: one outward sweep and a sum."""

from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import WORK, place_world, sweep_outward
from kfdyn.multibody.recursions.robot import REVOLUTE, ROBOT, SCREW, configuration_is_sound, dofs, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control import carried, when
from kfdyn.sweeps.entry import Entry, Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record

#: Position of a body, and velocity of its origin.
PLACE = Record(x=Vec3, speed=Vec3)


class Swept:
    """The workspace: bodies, rows of H, and a vector for each body."""

    def __init__(self, robot, work):
        self.work, self.bodies = work, WORK.rows(work)
        at = (robot.n + 1) * WORK.width
        self.H, self.rows_of_H = work.part(at), SCREW.rows(work.part(at))
        at = at + robot.nv * SCREW.width
        self.places, self.place_memory = PLACE.rows(work.part(at)), work.part(at)

    @staticmethod
    def size(robot, row):
        """How many numbers it works in."""
        return (robot.n + 1) * (WORK.width + PLACE.width) + robot.nv * SCREW.width


def begin(robot, row, work):
    """The world."""
    swept = Swept(robot, work)
    place_world(work)
    clear(swept.place_memory, PLACE.width)


def speed_of(robot, body, row, swept):
    """Velocity of a body's origin, V(k) = φ*V(p) + H*β, kept for its children."""
    here, up = swept.bodies[body.t], swept.bodies[body.parent]
    speed = carried(swept.places[body.parent].speed.plus_cross(up.omega, here.l))
    for _ in when(body.kind != REVOLUTE):
        for i in dofs(robot, body):
            speed.set(speed.get() + row.v[i] * swept.rows_of_H[i].h.v)
    swept.places[body.t].speed = speed.get()
    return speed.get()


def _moment(robot, row, work):
    """Σ m c."""
    swept, total = Swept(robot, work), carried(zeros(robot))
    sweep_outward(robot, row, swept.work, swept.H, moving=False)
    for body in outward(robot):
        here = swept.bodies[body.t]
        x = swept.places[body.parent].x + here.l
        swept.places[body.t].x = x
        total.set(total.get() + (body.mass * x + here.R @ body.first))
    return total.get()


def mass_moment(robot, row, work):
    """Σ m c: the mass centre times the mass."""
    for i, x in enumerate(_moment(robot, row, work)):
        row.moment[i] = x


def potential_energy(robot, row, work):
    """−Σ m g·c."""
    x, y, z = _moment(robot, row, work)
    row.energy[0] = -(row.gravity[0] * x + row.gravity[1] * y + row.gravity[2] * z)


def kinetic_energy(robot, row, work):
    """½ Σ V* M V + ½ β* R β (R86 3.2)."""
    swept, twice = Swept(robot, work), carried(zeros(robot).x)
    sweep_outward(robot, row, swept.work, swept.H, moving=True)
    for body in outward(robot):
        here, speed = swept.bodies[body.t], speed_of(robot, body, row, swept)
        for i in dofs(robot, body):
            rate = row.v[i]
            twice.set(twice.get() + robot.armature[i] * rate * rate)
        # in the body's frame: ω*Jω + v*(m v + 2 ω × m p)
        w, u = here.R.turned_back(here.omega), here.R.turned_back(speed)
        push = body.mass * u + 2.0 * w.cross(body.first)
        twice.set(twice.get() + w.dot(body.moment @ w) + u.dot(push))
    row.energy[0] = 0.5 * twice.get()


def momentum(robot, row, work):
    """Momentum of the bodies about the mass centre: φ from each body's origin to it, times M(k) V(k) (R86 3.2)."""
    swept, total = Swept(robot, work), carried(Spatial(zeros(robot), zeros(robot)))
    sweep_outward(robot, row, swept.work, swept.H, moving=True)
    centre = Vec3(*(row.centre[i] for i in range(3)))
    for body in outward(robot):
        here, speed = swept.bodies[body.t], speed_of(robot, body, row, swept)
        x = swept.places[body.parent].x + here.l
        swept.places[body.t].x = x
        p = here.R @ body.first
        spin = here.R @ (body.moment @ here.R.turned_back(here.omega))
        own = Spatial(spin.plus_cross(p, speed), (body.mass * speed).plus_cross(here.omega, p))
        total.set(total.get() + own.force_shifted(x - centre))
    for i, x in enumerate([*total.get().w, *total.get().v]):
        row.momentum[i] = x


Q = Given("q", ("nq",), sound=configuration_is_sound)
V = Given("v", ("nv",))

MOMENT = Entry(mass_moment, ROBOT, [Q], [Given("moment", (3,))], Swept.size, begin)
POTENTIAL = Entry(
    potential_energy, ROBOT, [Q, Given("gravity", (3,), shared=True)], [Given("energy", ())], Swept.size, begin
)
KINETIC = Entry(kinetic_energy, ROBOT, [Q, V], [Given("energy", ())], Swept.size, begin)
MOMENTUM = Entry(momentum, ROBOT, [Q, V, Given("centre", (3,))], [Given("momentum", (6,))], Swept.size, begin)
