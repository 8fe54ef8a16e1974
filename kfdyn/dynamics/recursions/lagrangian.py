"""Lagrange's side of a motion: generalised momenta, forces from the Lagrangian, and their transport."""

from kfdyn.dynamics.recursions.forward import FORCES, GRAVITY
from kfdyn.multibody.hinge import Coordinates
from kfdyn.multibody.recursions.energy import Q, Swept, V, begin, speed_of
from kfdyn.multibody.recursions.outward import axis_of, inertia_of, sweep_outward
from kfdyn.multibody.recursions.robot import BALL as BODY_BALL
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, ROBOT, SLIDE, dofs, inward, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps import IN_ORDER, Record, Vec3, carried, cases, choice, local, loop, real, sweep, when
from kfdyn.sweeps.entry import Entry, Given

SCREWS, BALL = int(Coordinates.SCREWS), int(Coordinates.BALL)
# Terms of the exponential series: |ad| = 2 leaves 2^40 / 40! = 1e-36.
TERMS = 40

#: Kept for each body: the momentum and the force of all that is outboard.
OUTBOARD = Record(h=Spatial, f=Spatial)


class Lagrange(Swept):
    """The workspace: bodies, rows of H, velocities, what is outboard, and what rotors of a hinge are turned by."""

    def __init__(self, robot, row, work):
        super().__init__(robot, work)
        at = Swept.size(robot, row)
        self.robot, self.row = robot, row
        self.outboard, self.rotor = OUTBOARD.rows(work.part(at)), work.part(at + (robot.n + 1) * OUTBOARD.width)

    @staticmethod
    def size(robot, row):
        """How many numbers it works in."""
        return Swept.size(robot, row) + (robot.n + 1) * OUTBOARD.width + 6

    def put_body(self, body):
        """Momentum M V of a body, and the force of gravity and from outside on it."""
        row, omega, speed = self.row, self.bodies[body.t].omega, speed_of(self.robot, body, self.row, self)
        J, p = inertia_of(body, self.work)
        g = Vec3(*(row.gravity[i] for i in range(3)))
        here, force = self.outboard[body.t], carried(Spatial(p.cross(g), body.mass * g))
        here.h = Spatial((J @ omega).plus_cross(p, speed), (body.mass * speed).plus_cross(omega, p))
        for _ in when(row.external_forces.given):
            push = row.external_forces.part(6 * body.body)
            force.set(force.get() + Spatial.of([push[i] for i in range(6)]))
        here.f = force.get()

    def answer(self, body):
        """p and dL/dq of a body's dofs; then all of it is the parent's, too."""
        here, own = self.bodies[body.t], self.outboard[body.t]
        V = Spatial(here.omega, self.places[body.t].speed)
        for kind in cases(body.kind, KINDS):
            if kind == REVOLUTE:
                self._put(body.v, Spatial(axis_of(body.t, self.work), Vec3.zero()), V, own)
            elif kind == SLIDE:
                self._put(body.v, self.rows_of_H[body.v].h, V, own)
            else:
                self._put_many(body, V, own)
        for _ in when(body.parent != 0):
            up = self.outboard[body.parent]
            up.h, up.f = up.h + own.h.force_shifted(here.l), up.f + own.f.force_shifted(here.l)

    def _put_many(self, body, V, own):
        """The last screw first: an earlier one is carried by those before it alone, those of a group by none."""
        v, moving = self.row.v, carried(V)
        whole = body.v_end - body.v == 6
        group = (body.kind >= BODY_BALL) & (body.v_end - body.v == choice(body.kind == BODY_BALL, 3, 6))
        for i in range(6):
            self.rotor[i] = 0.0
        for _ in when(group):
            for i in dofs(self.robot, body):
                moving.set(moving.get() - v[i] * self.rows_of_H[i].h)
            # rotors are not turned with the body: take back what transport will do to R v
            speed = twist(v, body.v, whole)
            spin = [r * x for r, x in zip(numbers(twist(self.robot.armature, body.v, whole)), numbers(speed))]
            for i, x in enumerate(numbers(ad_star(speed, Spatial.of(spin)))):
                self.rotor[i] = x
        for i in dofs(self.robot, body, backwards=True):
            h = self.rows_of_H[i].h
            self._put(i, h, moving.get(), own, self.rotor[i - body.v])
            for _ in when(body.kind < BODY_BALL):
                moving.set(moving.get() - v[i] * h)

    def _put(self, i, h, V, own, less=0.0):
        """p = H h + R v; turning a hinge at fixed rates moves what is outboard against V: dL/dq = (V × H*)·h + H f."""
        self.row.momentum[i] = h.dot(own.h) + self.robot.armature[i] * self.row.v[i]
        self.row.force[i] = turned(V, h).dot(own.h) + h.dot(own.f) - less


def lagrangian(robot, row, work):
    """p = dL/dv and dL/dq at fixed v: one sweep out, one in; about 250 flops a body."""
    swept = Lagrange(robot, row, work)
    sweep_outward(robot, row, swept.work, swept.H, moving=True)
    for body in outward(robot):
        swept.put_body(body)
    for body in inward(robot):
        swept.answer(body)


LAGRANGIAN = Entry(
    lagrangian,
    ROBOT,
    [Q, V, FORCES, GRAVITY],
    [Given("momentum", ("nv",)), Given("force", ("nv",))],
    Lagrange.size,
    begin,
)


@sweep(flags=IN_ORDER)
def transport(coordinates, v_start, step, p, mean, moved):
    """Mean = J* p and moved = Ad* p along exp(step), hinge by hinge, for a batch (batch, nv), flat.

    Ad* = exp(ad*) and J* = Σ ad*ⁿ / (n + 1)!, the transposed left Jacobian of the exponential. Hinges of screws have
    coordinates, hence ad = 0; so do hinge maps that form no group, whose turning is in the rate.
    """
    n = coordinates.size
    nv = v_start[n]
    for b in loop(choice(nv > 0, p.size // choice(nv > 0, nv, 1), 0)):
        for i in loop(nv):
            mean[nv * b + i] = p[nv * b + i]
            moved[nv * b + i] = p[nv * b + i]
        for k in loop(n):
            for _ in when(in_group(coordinates, v_start, k)):
                at, whole = nv * b + v_start[k], v_start[k + 1] - v_start[k] == 6
                along, factor = twist(step, at, whole), local(1.0)
                term = carried(twist(p, at, whole))
                for order in loop(TERMS, 1):
                    term.set(ad_star(along, term.get()))
                    factor.set(factor / real(order))
                    add(moved, at, whole, factor, term.get())
                    add(mean, at, whole, factor / real(order + 1), term.get())


def in_group(coordinates, v_start, k):
    """Whether hinge k moves in all of SO(3) or SE(3), so that its momentum can be carried along."""
    return (coordinates[k] != SCREWS) & (v_start[k + 1] - v_start[k] == choice(coordinates[k] == BALL, 3, 6))


def turned(V, x):
    """V × x of two motions."""
    return Spatial(V.w.cross(x.w), V.w.cross(x.v) + V.v.cross(x.w))


def ad_star(x, p):
    """ad*_x p in se(3), body frame: the rate of a momentum that is fixed in space, as x moves."""
    return Spatial(p.w.cross(x.w) + p.v.cross(x.v), p.v.cross(x.w))


def twist(memory, at, whole):
    """Three or six numbers as a spatial vector; the other three are 0, and so(3) is a part of se(3)."""
    linear = [choice(whole, memory[choice(whole, at + 3 + i, at)], 0.0) for i in range(3)]
    return Spatial.of([*(memory[at + i] for i in range(3)), *linear])


def numbers(x):
    """The six numbers of a spatial vector."""
    return [*x.w, *x.v]


def add(memory, at, whole, factor, x):
    """Add factor x to three or six numbers."""
    for i, value in enumerate(x.w):
        memory[at + i] = memory[at + i] + factor * value
    for _ in when(whole):
        for i, value in enumerate(x.v):
            memory[at + 3 + i] = memory[at + 3 + i] + factor * value
