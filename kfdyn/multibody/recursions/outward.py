"""The outward sweep in world orientation: orientation, l, angular velocity and bias acceleration of every body."""

from kfdyn.multibody.recursions.hinges import Hinges
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, SLIDE, Body, outward, screw_of
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Sym3, Vec3
from kfdyn.sweeps.batch.single_row import side_by_side
from kfdyn.sweeps.control_flow import if_, loop, loop_vars, switch
from kfdyn.sweeps.functions import fma, sincos
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import where

#: Kept for each body: orientation (its third column is a revolute hinge's axis), l, angular velocity, η and then λ.
#: Row 0 is the world. Sine and cosine of a revolute hinge's angle stand where η will be.
WORK = Record(R=Mat3, l=Vec3, omega=Vec3, eta=Spatial)


def place_world(work):
    """Row 0: at rest, orientation 1."""
    clear(work, WORK.width)
    WORK.rows(work)[0].R = Mat3.identity()


class Outward(Hinges):
    """An outward sweep: R, l, ω, η of bodies go to ``work``, rows of H of other hinges than revolute ones to ``H``."""

    def __init__(self, robot, row, work, H, moving):
        super().__init__(robot, row, H, moving)
        self.work, self.bodies = work, WORK.rows(work)

    def run(self):
        """All bodies; about 150 flops for a revolute hinge.

        Sines and cosines come first: each is a long chain of operations, and here the processor does those of several
        bodies side by side.
        """
        self.prepare_sines()
        for body in outward(self.robot):
            self.reach(body)

    def prepare_sines(self, path=None):
        """Sines and cosines of the angles of all revolute hinges, or of those on a path, where η will be."""
        sines(self.robot, self.row, self._put_sine, path)

    def _sine_of(self, t):
        return t * WORK.width + WORK.place("eta")

    def _put_sine(self, t, s, c):
        place = self._sine_of(t)
        self.work[place], self.work[place + 1] = s, c

    def reach(self, body):
        """One body, given its parent."""
        here, up, row, moving = self.bodies[body.t], self.bodies[body.parent], self.row, self.moving
        R = up.R
        l = R @ body.position
        omega = up.omega if moving else Vec3.zero()
        for kind in switch(body.kind, KINDS):
            if kind == REVOLUTE:
                place = self._sine_of(body.t)
                O = turned_frame(body, R, self.work[place], self.work[place + 1])
                here.R, here.l = O, l
                if moving:  # R86 5.1–5.6 with H* = [z; 0]
                    spin = row.v[body.v] * O.column(2)
                    here.eta = Spatial(omega.cross(spin), omega.cross(omega.cross(l)))
                    here.omega = omega + spin
            elif kind == SLIDE:
                O = R @ body.rotation
                z = O @ screw_of(self.robot, body.v).v
                l_now = l + row.q[body.q] * z
                here.R, here.l = O, l_now
                self.rows_of_H[body.v].h = Spatial(Vec3.zero(), z)
                if moving:  # H* = [0; z]: Coriolis' acceleration beside the centripetal one
                    slide = (2.0 * row.v[body.v]) * z
                    here.eta = Spatial(Vec3.zero(), omega.cross(omega.cross(l_now) + slide))
                    here.omega = omega
            else:
                O, l_now, omega_now, eta = self.cross(body, R @ body.rotation, l, omega)
                here.R, here.l = O, l_now
                if moving:
                    here.omega, here.eta = omega_now, eta


def sweep_outward(robot, row, work, H, moving):
    """R, l of all bodies and rows of H, and if they are moving ω and η."""
    Outward(robot, row, work, H, moving).run()


def sines(robot, row, put, path=None):
    """``put(t, s, c)`` the sine and cosine of b + q of every revolute hinge, or of those on a path of ``row.length``.

    Of one row, several hinges' are computed side by side; then others get some, too.
    """
    if not robot.alone:
        for body in outward(robot) if path is None else along(robot, path, row.length):
            for _ in if_(body.kind == REVOLUTE):
                put(body.t, *sincos(row.q[body.q], body.offset))
        return

    def body_at(i):
        return Body(robot, i + 1 if path is None else path[i])

    def angle(i):
        body = body_at(i)
        turns = body.kind == REVOLUTE
        return where(turns, row.q.number(where(turns, body.q, 0)), 0.0), body.offset

    for _ in if_(robot.nq != 0):  # else there is no number to look at
        count = robot.n if path is None else row.length
        side_by_side(sincos, count, angle, lambda i, s, c: put(body_at(i).t, s, c))


def along(robot, path, length):
    """Over the bodies of a path, outward."""
    for i in loop(length):
        yield Body(robot, path[i])


def mixed(c, s, x, y):
    """c x + s y and c y − s x: two columns of a matrix turned about the third.

    It says which product is rounded: else that depends on what stands around it, and one row is not rounded as many.
    """
    return (
        Vec3(*(fma(c, a, s * b) for a, b in zip(x, y))),
        Vec3(*(fma(c, b, -(s * a)) for a, b in zip(x, y))),
    )


def turned_frame(body, R, s, c):
    """R Rz(a) Rx(alpha) Rz(b + q), given the sine and cosine of b + q: from the parent's orientation to the body's."""
    x, y, z = (R.column(j) for j in range(3))
    first = loop_vars(x, y)
    for _ in if_(body.twisted != 0):
        first.set(*mixed(*body.twist, x, y))
    x, y = first.get()
    y, z = mixed(*body.tilt, y, z)
    x, y = mixed(c, s, x, y)
    return Mat3.columns(x, y, z)


def inertia_of(body, work):
    """Moment of inertia and m p of a body about its hinge point, world orientation.

    R J R* = j + sym(x g) + sym(y h), the columns of R being x, y, z: 45 operations, 20 fewer than by two products.
    """
    R = WORK.rows(work)[body.t].R
    x, y, m = R.column(0), R.column(1), R.m
    a0, a1, a2, b, c, j = body.split.s
    g = R @ Vec3(a0, a1, a2)
    h = Vec3(b * m[1] + c * m[2], b * m[4] + c * m[5], b * m[7] + c * m[8])
    moment = Sym3(
        j + 2.0 * (x.x * g.x + y.x * h.x),
        x.x * g.y + g.x * x.y + y.x * h.y + h.x * y.y,
        x.x * g.z + g.x * x.z + y.x * h.z + h.x * y.z,
        j + 2.0 * (x.y * g.y + y.y * h.y),
        x.y * g.z + g.y * x.z + y.y * h.z + h.y * y.z,
        j + 2.0 * (x.z * g.z + y.z * h.z),
    )
    return moment, R @ body.first


def axis_of(t, work):
    """The axis of body t's revolute hinge: the third column of its orientation."""
    start = t * WORK.width
    return Vec3(work[start + 2], work[start + 5], work[start + 8])
