"""Lagrange's side of a motion: generalised momenta, forces from the Lagrangian, and their transport."""

from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.multibody.recursions.energy import Placed
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, Q, V
from kfdyn.multibody.recursions.robot import BALL as BODY_BALL
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, SLIDE, dofs, inward, outward
from kfdyn.multibody.recursions.robot_entry import entry, push_on, put, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps import IN_ORDER, Record, if_, local, loop, loop_vars, sweep, switch, to_float, where
from kfdyn.sweeps.control_flow import flattened
from kfdyn.sweeps.entry import Given

SCREWS, BALL = int(Coordinates.SCREWS), int(Coordinates.BALL)
#: Kept for each body: the momentum and the force of all that is outboard.
OUTBOARD = Record(h=Spatial, f=Spatial)


class Lagrange(Placed):
    """The workspace: bodies, rows of H, velocities, what is outboard, and what rotors of a hinge are turned by."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.outboard, self.rotor = self.take_rows(OUTBOARD, robot.n + 1), self.take(6)

    def put_body(self, body):
        """Momentum M V of a body, and the force of gravity and from outside on it."""
        inertia, here, g = self.inertia(body), self.outboard[body.t], vector(self.row.gravity)
        force = loop_vars(Spatial(inertia.p.cross(g), inertia.m * g))
        here.h = inertia @ self.velocity_of(body)
        for _ in if_(self.row.external_forces.given):
            force.set(force.get() + push_on(self.row, body))
        here.f = force.get()

    def answer(self, body):
        """p and dL/dq of a body's dofs; then all of it is the parent's, too."""
        here, own = self.bodies[body.t], self.outboard[body.t]
        V = Spatial(here.omega, self.places[body.t].speed)
        for kind in switch(body.kind, KINDS):
            if kind in (REVOLUTE, SLIDE):
                self._put(body.v, self.one_row(body, kind), V, own)
            else:
                self._put_many(body, V, own)
        for _ in if_(body.parent != 0):
            up = self.outboard[body.parent]
            up.h, up.f = up.h + own.h.force_shifted(here.l), up.f + own.f.force_shifted(here.l)

    def _put_many(self, body, V, own):
        """The last screw first: an earlier one is carried by those before it alone, those of a group by none."""
        v, moving = self.row.v, loop_vars(V)
        whole = body.v_end - body.v == 6
        group = (body.kind >= BODY_BALL) & (body.v_end - body.v == where(body.kind == BODY_BALL, 3, 6))
        put(self.rotor, 0, Spatial.zero())
        for _ in if_(group):
            for i in dofs(self.robot, body):
                moving.set(moving.get() - v[i] * self.rows_of_H[i].h)
            # rotors are not turned with the body: take back what transport will do to R v
            speed = twist(v, body.v, whole)
            spin = [r * x for r, x in zip(flattened(twist(self.robot.armature, body.v, whole)), flattened(speed))]
            put(self.rotor, 0, ad_star(speed, Spatial.of(spin)))
        for i in dofs(self.robot, body, backwards=True):
            h = self.rows_of_H[i].h
            self._put(i, h, moving.get(), own, self.rotor[i - body.v])
            for _ in if_(body.kind < BODY_BALL):
                moving.set(moving.get() - v[i] * h)

    def _put(self, i, h, V, own, less=0.0):
        """p = H h + R v; turning a hinge at fixed rates moves what is outboard against V: dL/dq = (V × H*)·h + H f."""
        self.row.momentum[i] = h.dot(own.h) + self.robot.armature[i] * self.row.v[i]
        self.row.force[i] = V.cross(h).dot(own.h) + h.dot(own.f) - less


def lagrangian(swept):
    """p = dL/dv and dL/dq at fixed v: one sweep out, one in; about 250 flops a body."""
    swept.sweep_outward()
    for body in outward(swept.robot):
        swept.put_body(body)
    for body in inward(swept.robot):
        swept.answer(body)


LAGRANGIAN = entry(lagrangian, Lagrange, [Q, V, FORCES, GRAVITY], [Given("momentum", ("nv",)), Given("force", ("nv",))])


@sweep(flags=IN_ORDER)
def transport(coordinates, v_start, terms, step, p, mean, moved):
    """Mean = J* p and moved = Ad* p along exp(step), hinge by hinge, for a batch (batch, nv), flat.

    Ad* = exp(ad*) and J* = Σ ad*ⁿ / (n + 1)!, the transposed left Jacobian of the exponential; of both sums, as many
    ``terms``. Hinges of screws have coordinates, hence ad = 0; so do hinge maps that form no group, whose turning is in
    the rate.
    """
    n = coordinates.size
    nv = v_start[n]
    for b in loop(where(nv > 0, p.size // where(nv > 0, nv, 1), 0)):
        for i in loop(nv):
            mean[nv * b + i] = p[nv * b + i]
            moved[nv * b + i] = p[nv * b + i]
        for k in loop(n):
            for _ in if_(in_group(coordinates, v_start, k)):
                at, whole = nv * b + v_start[k], v_start[k + 1] - v_start[k] == 6
                along, factor = twist(step, at, whole), local(1.0)
                term = loop_vars(twist(p, at, whole))
                for order in loop(terms, 1):
                    term.set(ad_star(along, term.get()))
                    factor.set(factor / to_float(order))
                    add(moved, at, whole, factor, term.get())
                    add(mean, at, whole, factor / to_float(order + 1), term.get())


def in_group(coordinates, v_start, k):
    """Tell whether hinge k moves in all of SO(3) or SE(3), so that its momentum can be carried along."""
    return (coordinates[k] != SCREWS) & (v_start[k + 1] - v_start[k] == where(coordinates[k] == BALL, 3, 6))


def ad_star(x, p):
    """ad*_x p in se(3), body frame: the rate of a momentum that is fixed in space, as x moves."""
    return -x.cross_force(p)


def twist(memory, at, whole):
    """Three or six numbers as a spatial vector; the other three are 0, and so(3) is a part of se(3)."""
    linear = [where(whole, memory[where(whole, at + 3 + i, at)], 0.0) for i in range(3)]
    return Spatial.of([*(memory[at + i] for i in range(3)), *linear])


def add(memory, at, whole, factor, x):
    """Add factor x to three or six numbers."""
    for i, value in enumerate(x.w):
        memory[at + i] = memory[at + i] + factor * value
    for _ in if_(whole):
        for i, value in enumerate(x.v):
            memory[at + 3 + i] = memory[at + 3 + i] + factor * value
