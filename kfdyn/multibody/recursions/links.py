"""Every body's terms of the equations of motion, read off one outward sweep: what assembly makes a state space of."""

from kfdyn.multibody.recursions.energy import Q, Swept, V, begin, speed_of
from kfdyn.multibody.recursions.outward import axis_of, inertia_of, sweep_outward
from kfdyn.multibody.recursions.robot import REVOLUTE, ROBOT, dofs, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control import carried, either, when
from kfdyn.sweeps.entry import Entry, Given


def put(column, start, numbers):
    """Numbers one after the other."""
    for i, x in enumerate(numbers):
        column[start + i] = x


def link_terms(robot, row, work):
    """R, x, l, H, M, V, ξ and η of every body (R86 3.1, 4.4, 5.1–5.6), world orientation, at its origin."""
    swept = Swept(robot, work)
    sweep_outward(robot, row, swept.work, swept.H, moving=True)
    for body in outward(robot):
        _write(robot, row, swept, body)


def _write(robot, row, swept, body):
    here, k = swept.bodies[body.t], body.body
    R, l, omega, eta = here.R, here.l, here.omega, carried(here.eta)
    x = swept.places[body.parent].x + l
    swept.places[body.t].x = x
    put(row.R, 9 * k, (R @ body.frame.T).m)  # the tables have turned the bodies' frames
    put(row.x, 3 * k, x)
    put(row.l, 3 * k, l)
    put(row.V, 6 * k, [*omega, *speed_of(robot, body, row, swept)])
    for i in dofs(robot, body):
        for revolute in either(body.kind == REVOLUTE):
            h = Spatial(axis_of(body.t, swept.work), Vec3.zero()) if revolute else swept.rows_of_H[i].h
            put(row.H, 6 * i, [*h.w, *h.v])
    # M(k) = [[J, m p~], [−m p~, m 1]], symmetric to the bit  (R86 3.1)
    moment, p = inertia_of(body, swept.work)
    J, m = moment.s, body.mass
    put(row.M, 36 * k, [
        J[0], J[1], J[2], 0.0, -p.z, p.y,
        J[1], J[3], J[4], p.z, 0.0, -p.x,
        J[2], J[4], J[5], -p.y, p.x, 0.0,
        0.0, p.z, -p.y, m, 0.0, 0.0,
        -p.z, 0.0, p.x, 0.0, m, 0.0,
        p.y, -p.x, 0.0, 0.0, 0.0, m,
    ])  # fmt: skip
    xi = carried(Spatial(omega.cross(moment @ omega), omega.cross(omega.cross(p))))  # less f_ext  (R86 4.4)
    for _ in when(row.external_forces.given):
        push = row.external_forces.part(6 * k)
        xi.set(xi.get() - Spatial.of([push[i] for i in range(6)]))
    for _ in when(body.parent == 0):
        g = Vec3(*(row.gravity[i] for i in range(3)))
        eta.set(Spatial(eta.get().w, eta.get().v - g))
    put(row.xi, 6 * k, [*xi.get().w, *xi.get().v])
    put(row.eta, 6 * k, [*eta.get().w, *eta.get().v])


LINK_TERMS = Entry(
    link_terms,
    ROBOT,
    [Q, V, Given("external_forces", ("n", 6), optional=True), Given("gravity", (3,), shared=True)],
    [
        Given("R", ("n", 3, 3)), Given("x", ("n", 3)), Given("l", ("n", 3)), Given("H", ("nv", 6)),
        Given("M", ("n", 6, 6)), Given("V", ("n", 6)), Given("xi", ("n", 6)), Given("eta", ("n", 6)),
    ],
    Swept.size,
    begin,
)  # fmt: skip
