"""Kinetic and potential energy, mass centre and momentum: one outward sweep and a sum."""

from kfdyn.multibody.recursions.hinges import cross_hinge, zeros
from kfdyn.multibody.recursions.outward import WORK, into_body, place_world, sines, sweep_outward
from kfdyn.multibody.recursions.robot import (
    KINDS,
    REVOLUTE,
    ROBOT,
    SCREW,
    SLIDE,
    configuration_is_sound,
    dofs,
    outward,
    screw_of,
)
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control import carried, cases, when
from kfdyn.sweeps.entry import Entry, Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record

#: Position of a body, and velocity of its origin.
PLACE = Record(x=Vec3, speed=Vec3)

#: Sine and cosine of a body's angle; gravity in its frame, and g·x of its origin. Row 0 is the world.
FALL = Record(sine=float, cosine=float, g=Vec3, fall=float)


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


def mass_moment(robot, row, work):
    """Σ m c: the mass centre times the mass."""
    swept, total = Swept(robot, work), carried(zeros(robot))
    sweep_outward(robot, row, swept.work, swept.H, moving=False)
    for body in outward(robot):
        here = swept.bodies[body.t]
        x = swept.places[body.parent].x + here.l
        swept.places[body.t].x = x
        total.set(total.get() + (body.mass * x + here.R @ body.first))
    for i, x in enumerate(total.get()):
        row.moment[i] = x


class Fall:
    """The workspace of the potential energy: rows of H, and what is kept of each body."""

    def __init__(self, robot, work):
        self.robot, self.bodies, self.H = robot, FALL.rows(work), work.part((robot.n + 1) * FALL.width)

    @staticmethod
    def size(robot, row):
        """How many numbers it works in."""
        return (robot.n + 1) * FALL.width + robot.nv * SCREW.width

    def put_sine(self, t, s, c):
        """Keep a sine and a cosine for a body."""
        here = self.bodies[t]
        here.sine, here.cosine = s, c

    def go(self, body, row):
        """Gravity as a body sees it, and g·x of its origin; about 30 flops for a revolute hinge."""
        here, up = self.bodies[body.t], self.bodies[body.parent]
        for kind in cases(body.kind, KINDS):
            if kind == REVOLUTE:
                here.g = into_body(body, here.sine, here.cosine, up.g)
                here.fall = up.fall + up.g.dot(body.position)
            elif kind == SLIDE:
                here.g = body.rotation.turned_back(up.g)
                slide = screw_of(self.robot, body.v).v
                here.fall = up.fall + up.g.dot(body.position) + row.q[body.q] * here.g.dot(slide)
            else:
                none = zeros(self.robot)
                R, l, _, _ = cross_hinge(self.robot, body, row, body.rotation, body.position, none, self.H, False)
                here.g, here.fall = R.turned_back(up.g), up.fall + up.g.dot(l)
        return body.mass * here.fall + here.g.dot(body.first)


def potential_energy(robot, row, work):
    """−Σ m g·c. Nothing but gravity is turned from body to body, which is a third of turning the bodies."""
    sweep, total = Fall(robot, work), carried(zeros(robot).x)
    sines(robot, row, sweep.put_sine)
    world = sweep.bodies[0]
    world.g, world.fall = Vec3(*(row.gravity[i] for i in range(3))), zeros(robot).x
    for body in outward(robot):
        total.set(total.get() + sweep.go(body, row))
    row.energy[0] = -total.get()


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
    potential_energy, ROBOT, [Q, Given("gravity", (3,), shared=True, own=True)], [Given("energy", ())], Fall.size
)
KINETIC = Entry(kinetic_energy, ROBOT, [Q, V], [Given("energy", ())], Swept.size, begin)
MOMENTUM = Entry(momentum, ROBOT, [Q, V, Given("centre", (3,))], [Given("momentum", (6,))], Swept.size, begin)
