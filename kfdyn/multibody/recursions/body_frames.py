"""Hinges seen from the frames of their bodies: for sweeps that turn vectors, and no inertias, to the world's axes.

Turning a few vectors from body to body costs less than turning every body's inertia to the world's orientation.
"""

from kfdyn.multibody.recursions.hinges import Hinges, zeros
from kfdyn.multibody.recursions.outward import sines, turned_frame
from kfdyn.multibody.recursions.robot import REVOLUTE, SCREW, SLIDE, screw_of
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import if_, loop_vars
from kfdyn.sweeps.functions import sincos
from kfdyn.sweeps.records import Record

#: Kept for each body: sine and cosine of its angle.
ANGLE = Record(sine=float, cosine=float)

#: Kept for hinges other than revolute ones: orientation in the parent's frame, l; of a slide only l.
HINGE = Record(R=Mat3, l=Vec3)


class Turned:
    """The step across a revolute hinge: Rz(a) Rx(alpha) Rz(b + q), given the sine and cosine of b + q."""

    def __init__(self, body, s, c):
        self.body, self.s, self.c, self.l = body, s, c, body.position

    def into(self, v):
        """A vector of the parent's frame seen in the body's."""
        (x, y, z), body, s, c = v, self.body, self.s, self.c
        first = loop_vars(x, y)
        for _ in if_(body.twisted != 0):
            ca, sa = body.twist
            first.set(ca * x + sa * y, ca * y - sa * x)
        x, y = first.get()
        ct, st = body.tilt
        y, z = ct * y + st * z, ct * z - st * y
        return Vec3(c * x + s * y, c * y - s * x, z)

    def out_of(self, v):
        """A vector of the body's frame seen in the parent's."""
        (x, y, z), body, s, c = v, self.body, self.s, self.c
        x, y = c * x - s * y, s * x + c * y
        ct, st = body.tilt
        y, z = ct * y - st * z, st * y + ct * z
        last = loop_vars(x, y)
        for _ in if_(body.twisted != 0):
            ca, sa = body.twist
            last.set(ca * x - sa * y, sa * x + ca * y)
        x, y = last.get()
        return Vec3(x, y, z)

    def turn(self, R):
        """The orientation of the body, given its parent's."""
        return turned_frame(self.body, R, self.s, self.c)


class Rotated:
    """The step across any other hinge, given its rotation matrix."""

    def __init__(self, R, l):
        self.R, self.l = R, l

    def into(self, v):
        """A vector of the parent's frame seen in the body's."""
        return self.R.turned_back(v)

    def out_of(self, v):
        """A vector of the body's frame seen in the parent's."""
        return self.R @ v

    def turn(self, R):
        """The orientation of the body, given its parent's."""
        return R @ self.R


class BodyFrames(Workspace):
    """Steps across hinges, and rows of H of those of several dofs in the parents' frames."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.angles, self.hinges = self.take_rows(ANGLE, robot.n + 1), self.take_rows(HINGE, robot.n + 1)
        self.H = self.take(robot.nv * SCREW.width)
        self.rows_of_H = SCREW.rows(self.H)

    def prepare_sines(self):
        """Compute sines of several hinges of one row side by side; others are computed where they are first needed."""
        if self.robot.alone:
            sines(self.robot, self.row, self._put_sine)

    def _put_sine(self, t, s, c):
        angle = self.angles[t]
        angle.sine, angle.cosine = s, c

    def step(self, body, kind):
        """Outward across a hinge; where it leads is kept."""
        row, hinge = self.row, self.hinges[body.t]
        if kind == REVOLUTE:
            if not self.robot.alone:
                self._put_sine(body.t, *sincos(row.q[body.q], body.offset))
            return self.kept_step(body, kind)
        if kind == SLIDE:
            hinge.l = body.position + row.q[body.q] * (body.rotation @ screw_of(self.robot, body.v).v)
            return self.kept_step(body, kind)
        still = Hinges(self.robot, row, self.H, moving=False)
        return Rotated(*still.cross(body, body.rotation, body.position, zeros(self.robot))[:2])

    def kept_step(self, body, kind):
        """The same again, from what was kept."""
        angle, hinge = self.angles[body.t], self.hinges[body.t]
        if kind == REVOLUTE:
            return Turned(body, angle.sine, angle.cosine)
        return Rotated(body.rotation if kind == SLIDE else hinge.R, hinge.l)
