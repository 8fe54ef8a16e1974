"""Every body's terms of the equations of motion, read off one outward sweep: what assembly makes a state space of."""

from kfdyn.multibody.recursions.energy import Placed
from kfdyn.multibody.recursions.given import FORCES, Q, V
from kfdyn.multibody.recursions.robot import outward
from kfdyn.multibody.recursions.robot_entry import entry, push_on, put, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import if_, loop_vars
from kfdyn.sweeps.entry import Given


def link_terms(swept):
    """R, x, l, H, M, V, ξ and η of every body (R86 3.1, 4.4, 5.1–5.6), world orientation, at its origin."""
    swept.sweep_outward(moving=True)
    for body in outward(swept.robot):
        _write(swept, body)


def _write(swept, body):
    row, here, k = swept.row, swept.bodies[body.t], body.body
    omega, eta, inertia = here.omega, loop_vars(here.eta), swept.inertia(body)
    put(row.R, 9 * k, here.R @ body.frame.T)  # the tables have turned the bodies' frames
    put(row.x, 3 * k, swept.place_of(body))
    put(row.l, 3 * k, here.l)
    put(row.V, 6 * k, swept.velocity_of(body))
    for i, h in swept.rows(body):
        put(row.H, 6 * i, h)
    put(row.M, 36 * k, *inertia.rows())
    xi = loop_vars(inertia.bias(omega))
    for _ in if_(row.external_forces.given):
        xi.set(xi.get() - push_on(row, body))
    for _ in if_(body.parent == 0):
        eta.set(Spatial(eta.get().w, eta.get().v - vector(row.gravity)))
    put(row.xi, 6 * k, xi.get())
    put(row.eta, 6 * k, eta.get())


LINK_TERMS = entry(
    link_terms,
    Placed,
    [Q, V, FORCES, Given("gravity", (3,), shared=True)],
    [
        Given("R", ("n", 3, 3)), Given("x", ("n", 3)), Given("l", ("n", 3)), Given("H", ("nv", 6)),
        Given("M", ("n", 6, 6)), Given("V", ("n", 6)), Given("xi", ("n", 6)), Given("eta", ("n", 6)),
    ],
)  # fmt: skip
