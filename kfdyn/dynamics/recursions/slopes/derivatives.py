"""Parts of the derivatives of inverse and of forward dynamics (THEORY section 16; Singh, Russell, Wensing).

Spatial vectors here are those of the point of each body that passes one fixed origin, in world orientation: then
nothing is shifted from body to body, and composite inertias are plain sums. The origin is that of the tree's root, so
that a robot far away loses no digits. A hinge of several screws is a chain of hinges of one dof on mass-less bodies; a
ball or a free hinge is one step whose columns are fixed in the child.
"""

from collections import namedtuple

from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import SCREWS, dofs, outward
from kfdyn.multibody.recursions.robot_entry import vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop_vars
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import where


class Drag(namedtuple("Drag", "X h")):
    """2 B = (v×*) I − I (v×) + (I v)×̄*: what a body that moves at v asks for when its velocity turns.

    Of a rigid body it is [[X, 0], [−2 h~, 0]], h the momentum, for what stands in the second column cancels (Jacobi's
    identity); X u = 2 p × (u × v) − 2 ω × Σu, with Σ = tr(J)/2 − J.
    """

    SIZE = 12

    @classmethod
    def of(cls, numbers):
        """The matrix of twelve numbers."""
        return cls(Mat3(*numbers[:9]), Vec3(*numbers[9:]))

    @classmethod
    def of_body(cls, inertia, v, h):
        """Build it for a body with this inertia, velocity and momentum."""
        (xx, xy, xz, yy, yz, zz), p, w = inertia.J.s, inertia.p, 2.0 * v.w
        half = 0.5 * (xx + yy + zz)
        second = Vec3(half - xx, -xy, -xz), Vec3(-xy, half - yy, -yz), Vec3(-xz, -yz, half - zz)
        v, along = 2.0 * v.v, 2.0 * p.dot(v.v)
        columns = [-(k * v).plus_cross(w, s) for k, s in zip(p, second)]
        for i, name in enumerate("xyz"):
            setattr(columns[i], name, getattr(columns[i], name) + along)
        return cls(Mat3.columns(*columns), h)

    def __add__(self, other):
        return Drag(self.X + other.X, self.h + other.h)

    def __matmul__(self, u):
        return Spatial(self.X @ u.w, (2.0 * u.w).cross(self.h))

    def turned_back(self, u):
        """The angular part of (2 B)* u; the other is 0."""
        return self.X.turned_back(u.w).plus_cross(2.0 * self.h, u.v)


#: Motion of each body: position of its origin, velocity and acceleration (less g). Row 0 is the world.
MOVED = Record(x=Vec3, v=Spatial, a=Spatial)

#: Of each dof: S, Ψ̇ = v_p × S, Ψ̈ = a_p × S + v_p × Ψ̇, and Ψ̇ + Ṡ.
COLUMN = Record(S=Spatial, psi=Spatial, psi2=Spatial, rate=Spatial)


class Motion:
    """Positions, velocities and accelerations about the origin, in the workspace of an outward sweep."""

    def __init__(self, swept):
        self.swept, self.robot, self.row = swept, swept.robot, swept.row
        self.moved = swept.take_rows(MOVED, self.robot.n + 1)
        self.columns = swept.take_rows(COLUMN, self.robot.nv)

    def begin(self):
        """The world is at rest."""
        clear(self.moved.memory, MOVED.width)

    def run(self, a, keep, meanwhile=None):
        """Move all bodies at accelerations ``a[i]``; ``keep(body, inertia, drag, f)`` is told what is a body's own.

        ``meanwhile()`` is called once for each body.
        """
        self.moved[0].a = Spatial(zeros(self.robot), -vector(self.row.gravity))
        for body in outward(self.robot):
            v, acc, x = self._move(body, a)
            inertia = self.swept.inertia(body).shifted(x)
            h = inertia @ v
            keep(body, inertia, Drag.of_body(inertia, v, h.v), inertia @ acc + v.cross_force(h))
            if meanwhile is not None:
                meanwhile()

    def _move(self, body, a):
        """Velocity, acceleration and position of a body; the columns of its dofs."""
        row, up, here = self.row, self.moved[body.parent], self.swept.bodies[body.t]
        v, acc = up.v, up.a
        x = Vec3(*(where(body.parent == 0, 0.0, far) for far in up.x + here.l))
        for i, h in self.swept.rows(body):  # as motions at the origin: [w; v + x × w]
            self.columns[i].S = Spatial(h.w, x.cross(h.w) + h.v)
        before, after = loop_vars(v, acc), loop_vars(v, acc)
        chained = body.kind <= SCREWS
        for i in dofs(self.robot, body):
            column = self.columns[i]
            S, (v_p, a_p), (v_now, a_now) = column.S, before.get(), after.get()
            psi = v_p.cross(S)
            column.psi, column.psi2 = psi, a_p.cross(S) + v_p.cross(psi)
            v_now = v_now + row.v[i] * S
            a_now = a_now + a[i] * S + row.v[i] * psi
            after.set(v_now, a_now)
            for _ in if_(chained):
                before.set(v_now, a_now)
        v, acc = after.get()
        for i in dofs(self.robot, body):  # Ṡ = v × S where S is fixed in the child; else Ψ̇, as in a chain
            column = self.columns[i]
            for single in if_else(chained):
                column.rate = column.psi + (column.psi if single else v.cross(column.S))
        kept = self.moved[body.t]
        kept.x, kept.v, kept.a = x, v, acc
        return v, acc, x
