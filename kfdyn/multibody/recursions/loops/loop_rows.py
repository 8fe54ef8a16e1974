"""Rows of loops: the forces on both ends that a row is dual to, how it drifts, and the walk of forces to the world.

A row of a loop is K_a V_a + K_b V_b; K_a*, K_b* are forces on its two ends. Carried inward from both ends, hinge by
hinge, they show every dof its part of the row, h x: that is a row of J. Where the two ways meet they go on as one.
"""

from kfdyn.multibody.recursions.energy import PLACE, speed_of
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, SCREW, SLIDE, Body, dofs, outward
from kfdyn.multibody.recursions.robot_entry import Reached, put
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop, switch, while_
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import now, to_float, where
from kfdyn.sweeps.variables import local

#: What a row holds: a turn about an axis of frame_a, a move along one, or axis j of frame_a across axis k of frame_b.
ANGULAR, LINEAR, ACROSS = 0, 1, 2

#: A loop: bodies of its ends (0 is the world), bodies that carry their frames (others where something rolls), its rows
#: first … last, whether it holds positions, how many of them are angular, and which axis the angular ones leave out.
LOOP = Record(a=int, b=int, at_a=int, at_b=int, first=int, last=int, holds=int, angular=int, third=int)

#: A row: its kind, axis i, and j, k.
ROW = Record(kind=int, i=int, j=int, k=int)

#: An end: how its frame is turned in its body, where it is, and the size of its loop.
END = Record(turn=Mat3, arm=Vec3, size=float)

#: Kept for each row: its forces on the bodies of both ends at their origins, and its acceleration when β̇ = 0.
FORCES = Record(on_a=Spatial, on_b=Spatial, drift=float)

#: Of a force that walks: how large, squared, what may cancel: its moment at the shortest lever, and where two ways met.
LOST = Record(w=float, v=float)

#: Rows of one loop.
MOST = 6


class End:
    """A frame at one end of a loop: R, x, its lever from the body's origin; what turns its axes; and ω, velocity and
    ω × (rate of the lever) of the body's point that is there.
    """

    def __init__(self, rows, t, carrier, place):
        end, body, here = END.rows(rows.row.ends)[place], rows.bodies[t], rows.bodies[carrier]
        own, at = rows.places[t], rows.places[carrier]
        arm = here.R @ end.arm
        self.R, self.lever, self.x = here.R @ end.turn, arm + (at.x - own.x), at.x + arm
        if rows.moving:
            self.axes, self.omega = here.omega, body.omega
            self.speed = own.speed.plus_cross(self.omega, self.lever)
            self.inward = self.omega.cross(here.omega.cross(arm) + (at.speed - own.speed))


class LoopRows(Reached, Workspace):
    """The rows of all loops of a robot whose outward sweep is done, ``bodies`` and ``rows_of_H``."""

    #: Whether velocities are known, so that rows drift.
    moving = True

    #: How short a lever counts, as part of its loop's size: where it may be nothing but rounding, so may what it makes.
    shortest = 1.0

    @staticmethod
    def layout(robot, row):
        """Places of bodies, rows, what walks for one loop (columns of both ends), and what dofs have seen of rows."""
        return {
            "places": (PLACE, robot.n + 1), "forces": (FORCES, row.rows), "columns": (SCREW, 2 * MOST), "axes": 18,
            "lost": (LOST, MOST), "seen": row.rows * robot.nv,
        }  # fmt: skip

    def begin(self):
        """The world, and what rows show to dofs that are on no way to the world."""
        clear(self.places.memory, PLACE.width)
        clear(self.seen, self.row.rows * self.robot.nv)

    def write(self):
        """Write where all bodies are, then each loop's forces and their walk."""
        for body in outward(self.robot):
            self.places[body.t].x = self.places[body.parent].x + self.bodies[body.t].l
            if self.moving:
                speed_of(self, body, self.row.v)
        for i in loop(self.row.loops):
            one = LOOP.rows(self.row.loop_table)[i]
            self._put_forces(one, End(self, one.a, one.at_a, 2 * i), End(self, one.b, one.at_b, 2 * i + 1))
            size = self.shortest * END.rows(self.row.ends)[2 * i].size
            self._walk(one.a, one.b, one.first, one.last - one.first, size)

    def _put_forces(self, one, a, b):
        """Put forces and drift of a loop's rows: see :func:`kfdyn.multibody.loops.relative_motion.relative_rows`."""
        holds = to_float(one.holds)
        d = holds * (b.x - a.x)
        put(self.axes, 0, a.R, b.R)
        if self.moving:
            turn = b.omega - a.omega
            turns = a.axes.cross(turn)
            drags = a.axes.cross(a.axes.cross(d)) - (1.0 + holds) * a.axes.cross(b.speed - a.speed)
            drags = drags + (b.inward - a.inward)
        for r in loop(one.last, one.first):
            row, out = ROW.rows(self.row.row_table)[r], self.forces[r]
            for kind in switch(row.kind, (ANGULAR, LINEAR, ACROSS)):
                if kind == LINEAR:
                    e = self._axis(row.i)
                    out.on_b = Spatial(b.lever.cross(e), e)
                    out.on_a = -Spatial((d + a.lever).cross(e), e)
                    drift = e.dot(drags) if self.moving else 0.0
                else:
                    j, k = self._axis(row.j), self._axis(row.k, 9)
                    e = self._axis(row.i) if kind == ANGULAR else j.cross(k)
                    out.on_b, out.on_a = Spatial(e, Vec3.zero()), Spatial(-e, Vec3.zero())
                    drift = -e.dot(turns) if self.moving else 0.0
                    if kind == ACROSS and self.moving:
                        drift = drift + j.cross(turn.cross(k)).dot(turn)
                out.drift = drift

    def _axis(self, i, start=0):
        return Vec3(*(self.axes[start + 3 * n + i] for n in range(3)))

    def _walk(self, a, b, first, count, size):
        """Carry the forces of a loop's rows from body a and body b inward to the world, and leave them there.

        Levers count as long as ``size`` at least.
        """
        for c in loop(count):
            self.columns[c].h = self.forces[first + c].on_a
            self.columns[MOST + c].h = self.forces[first + c].on_b
            e = self.forces[first + c].on_b.v
            self.lost[c].w, self.lost[c].v = size * size * e.dot(e), 0.0
        at_a, at_b = local(a), local(b)
        for _ in while_(lambda: now(at_a) + now(at_b) != 0):
            for _ in if_(now(at_a) == now(at_b)):
                self._meet(count)
                at_b.set(0)
            of_a = now(at_a) >= now(at_b)
            body = Body(self.robot, where(of_a, now(at_a), now(at_b)))
            self._cross(body, where(of_a, 0, MOST), first, count)
            for yes in if_else(of_a):
                (at_a if yes else at_b).set(body.parent)

    def _meet(self, count):
        """Go on as one, and remember how large both were."""
        for c in loop(count):
            a, b, lost = self.columns[c].h, self.columns[MOST + c].h, self.lost[c]
            self.columns[c].h, self.columns[MOST + c].h = a + b, Spatial.zero()
            lost.w = lost.w + a.w.dot(a.w) + b.w.dot(b.w)
            lost.v = a.v.dot(a.v) + b.v.dot(b.v)

    def _cross(self, body, side, first, count):
        """Show a body's hinge the forces x, and pass them on to its parent: h x, then φ x less what the hinge took."""
        here = self.bodies[body.t]
        if self.moving:
            for c in loop(count):
                out = self.forces[first + c]
                out.drift = out.drift + self.columns[side + c].h.dot(here.eta)
        for kind in switch(body.kind, KINDS):
            alone = kind in (REVOLUTE, SLIDE)
            for i in (body.v,) if alone else dofs(self.robot, body):
                h = self.one_row(body, kind) if alone else self.rows_of_H[i].h
                turns, slides = h.w.dot(h.w), h.v.dot(h.v)
                for c in loop(count):
                    x, lost = self.columns[side + c].h, self.lost[c]
                    seen = h.dot(x)
                    size = turns * (x.w.dot(x.w) + lost.w) + slides * (x.v.dot(x.v) + lost.v)
                    passed = x.force_shifted(here.l) if alone else x
                    self.columns[side + c].h = self.show(first + c, i, passed, seen, size)
                self.shown(first, count, i)
            if not alone:
                for c in loop(count):
                    self.columns[side + c].h = self.columns[side + c].h.force_shifted(here.l)
        for c in loop(count):  # levers make moments of what cancelled
            self.lost[c].w = self.lost[c].w + here.l.dot(here.l) * self.lost[c].v

    def show(self, r, i, x, seen, size):
        """Keep what dof i sees of row r; what is left of the force x when it has answered: here it only looks on.

        ``size`` is |h|²|x|², what the square of ``seen`` is made of before anything cancels, where ways meet and at
        levers that are ``shortest`` or less.
        """
        self.seen[r * self.robot.nv + i] = seen
        return x

    def shown(self, first, count, i):
        """All rows of a loop have been shown to dof i."""


#: What entries with loops take: how many rows and loops, tables of both, and where the frames of the ends are.
LOOPS = [Parameter("rows", "n"), Parameter("loops", "n"), Parameter("loop_table", "i"), Parameter("row_table", "i")]
ENDS = Given("ends", ("loops", 2 * END.width), shared=True)
