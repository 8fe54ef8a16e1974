"""Kinetic and potential energy, mass centre and momentum: one outward sweep and a sum."""

from kfdyn.multibody.recursions.body_frames import BodyFrames
from kfdyn.multibody.recursions.given import GRAVITY, Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import KINDS, dofs, outward
from kfdyn.multibody.recursions.robot_entry import Swept, entry, put, sped, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import loop_vars, switch
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import where

#: Position of a body, and velocity of its origin.
PLACE = Record(x=Vec3, speed=Vec3)

#: Gravity in a body's frame, and g·x of its origin. Row 0 is the world.
FALL = Record(g=Vec3, fall=float)


class Placed(Swept):
    """The workspace: bodies, rows of H, and where each body is and how fast."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.place_memory = self.take((robot.n + 1) * PLACE.width)
        self.places = PLACE.rows(self.place_memory)

    def begin(self):
        """The world."""
        super().begin()
        clear(self.place_memory, PLACE.width)

    def place_of(self, body):
        """Return the place of a body's origin, and keep it for its children."""
        x = self.places[body.parent].x + self.bodies[body.t].l
        self.places[body.t].x = x
        return x

    def velocity_of(self, body):
        """V of a body at its origin, of which the linear part is kept for its children."""
        return Spatial(self.bodies[body.t].omega, speed_of(self, body, self.row.v))


def speed_of(swept, body, v):
    """Velocity of a body's origin, kept for its children."""
    speed = sped(swept, body, swept.places[body.parent].speed, v)
    swept.places[body.t].speed = speed
    return speed


def mass_moment(swept):
    """Σ m c: the mass centre times the mass."""
    swept.sweep_outward(moving=False)
    put(swept.row.moment, 0, _moment(swept))


def _moment(swept):
    """Σ m c of bodies that are swept."""
    total = loop_vars(zeros(swept.robot))
    for body in outward(swept.robot):
        total.set(total.get() + (body.mass * swept.place_of(body) + swept.bodies[body.t].R @ body.first))
    return total.get()


class Fall(BodyFrames):
    """The workspace of the potential energy: hinges in the frames of their bodies, and gravity as each body sees it."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.falls = self.take_rows(FALL, robot.n + 1)


def potential_energy(sweep):
    """−Σ m g·c. Nothing but gravity is turned from body to body, which is a third of turning the bodies.

    About 30 flops for a revolute hinge.
    """
    robot, row, total = sweep.robot, sweep.row, loop_vars(zeros(sweep.robot).x)
    sweep.prepare_sines()
    world = sweep.falls[0]
    world.g, world.fall = vector(row.gravity), zeros(robot).x
    for body in outward(robot):
        here, up = sweep.falls[body.t], sweep.falls[body.parent]
        for kind in switch(body.kind, KINDS):
            step = sweep.step(body, kind)
            here.g, here.fall = step.into(up.g), up.fall + up.g.dot(step.l)
        total.set(total.get() + (body.mass * here.fall + here.g.dot(body.first)))
    row.energy[0] = -total.get()


def kinetic_energy(swept):
    """½ Σ V* M V + ½ β* R β (R86 3.2)."""
    robot, row, twice = swept.robot, swept.row, loop_vars(zeros(swept.robot).x)
    swept.sweep_outward(moving=True)
    for body in outward(robot):
        R, V = swept.bodies[body.t].R, swept.velocity_of(body)
        for i in dofs(robot, body):
            rate = row.v[i]
            twice.set(twice.get() + robot.armature[i] * rate * rate)
        # in the body's frame: ω*Jω + v*(m v + 2 ω × m p)
        w, u = R.turned_back(V.w), R.turned_back(V.v)
        push = body.mass * u + 2.0 * w.cross(body.first)
        twice.set(twice.get() + w.dot(body.moment @ w) + u.dot(push))
    row.energy[0] = 0.5 * twice.get()


def momentum(swept):
    """Momentum of the bodies about the world's origin."""
    centre, about = _centroidal(swept)
    put(swept.row.momentum, 0, about.force_shifted(centre))


def centroidal_momentum(swept):
    """Momentum of the bodies about their mass centre."""
    put(swept.row.momentum, 0, _centroidal(swept)[1])


def momentum_about(swept):
    """Momentum of the bodies about a point that is given: their mass centre with what moves beside them."""
    swept.sweep_outward(moving=True)
    put(swept.row.momentum, 0, _momentum(swept, vector(swept.row.centre)))


def mass_centre(swept):
    """Mass centre of bodies that are swept, or the world's origin if there is no mass."""
    total = loop_vars(zeros(swept.robot).x)
    for body in outward(swept.robot):
        total.set(total.get() + body.mass)
    mass = total.get()
    return (1.0 / where(mass == 0.0, 1.0, mass)) * _moment(swept)


def _centroidal(swept):
    """Mass centre, and momentum about it."""
    swept.sweep_outward(moving=True)
    centre = mass_centre(swept)
    return centre, _momentum(swept, centre)


def _momentum(swept, centre):
    """Σ φ M(k) V(k), φ from each body's origin to the point (R86 3.2)."""
    total = loop_vars(Spatial(zeros(swept.robot), zeros(swept.robot)))
    for body in outward(swept.robot):
        own = swept.inertia(body) @ swept.velocity_of(body)
        total.set(total.get() + own.force_shifted(swept.place_of(body) - centre))
    return total.get()


MOMENT = entry(mass_moment, Placed, [Q], [Given("moment", (3,))])
POTENTIAL = entry(potential_energy, Fall, [Q, GRAVITY], [Given("energy", ())])
KINETIC = entry(kinetic_energy, Placed, [Q, V], [Given("energy", ())])
MOMENTUM = entry(momentum, Placed, [Q, V], [Given("momentum", (6,))])
CENTROIDAL = entry(centroidal_momentum, Placed, [Q, V], [Given("momentum", (6,))])
MOMENTUM_ABOUT = entry(momentum_about, Placed, [Q, V, Given("centre", (3,))], [Given("momentum", (6,))])
