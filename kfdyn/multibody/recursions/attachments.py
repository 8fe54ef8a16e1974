"""Frames on bodies that bend: where the modes have them, how they move, and Π of the modes (THEORY section 17)."""

from typing import NamedTuple

from kfdyn.multibody.recursions.displacement import exp_coefficients
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import WORK
from kfdyn.multibody.recursions.robot_entry import put, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import loop, loop_vars
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.values import where


class Carried(NamedTuple):
    """A frame on a body that bends, in that body's axes: where it is, and what η̇ does to it."""

    R: Mat3
    l: Vec3
    spin: Vec3
    slide: Vec3
    drift: Spatial


def carried_frame(bending, body, turn=lambda x: x):
    """Return the frame that modes carry; keep its Π, each column ``turn``-ed to the axes it is wanted in.

    With θ = Π_ωη the frame is turned by exp(θ~), whose angular velocity is J_l θ̇ in the body's axes.
    """
    flex = bending.flex(body)
    n, numbers = flex.modes, bending.robot.numbers
    bending.look(flex)
    s, ds, bent = bending.point(flex, flex.numbers)
    turns = flex.numbers + 3 + 3 * n + where(flex.bends != 0, 3 * n * n, 0)
    state = loop_vars(zeros(bending.robot), zeros(bending.robot))
    for i in loop(n):
        theta, dtheta = state.get()
        shape = vector(numbers, turns + 3 * i)
        state.set(theta + bending.eta[i] * shape, dtheta + bending.rate[i] * shape)
    theta, dtheta = state.get()
    a, b, da, db = exponential(theta)
    for i in loop(n):
        turned = swept(theta, vector(numbers, turns + 3 * i), a, b)
        put(bending.kept, flex.map + 6 * i, Spatial(turn(turned), turn(bending.shape(i))))
    once = theta.cross(dtheta)
    along, twice = theta.dot(dtheta), theta.cross(once)
    drift = b * dtheta.cross(once) + along * (da * once + db * twice)
    R = turned_by(theta, a, b) @ body.rotation
    return Carried(R, s, swept(theta, dtheta, a, b), ds, Spatial(drift, bent))


def attach(bending, body, work):
    """R, l, ω and η of a frame on a body that bends, and Π of its modes, world orientation."""
    here, up = WORK.rows(work)[body.t], WORK.rows(work)[body.parent]
    R, omega = up.R, up.omega
    frame = carried_frame(bending, body, lambda x: R @ x)
    l, spin, slide = R @ frame.l, R @ frame.spin, R @ frame.slide
    here.R, here.l, here.omega = R @ frame.R, l, omega + spin
    push = omega.cross(omega.cross(l) + 2.0 * slide) + R @ frame.drift.v
    here.eta = Spatial((R @ frame.drift.w).plus_cross(omega, spin), push)


def swept(theta, x, a, b):
    """J_l x = x + a θ × x + b θ × (θ × x)."""
    once = theta.cross(x)
    return x + a * once + b * theta.cross(once)


def turned_by(theta, a, b):
    """exp(θ~) = 1 + (sin t/t) θ~ + a θ~², column by column; sin t/t = 1 − b t²."""
    c = 1.0 - b * theta.dot(theta)
    columns = []
    for e in (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)):
        once = theta.cross(e)
        columns.append(e + c * once + a * theta.cross(once))
    return Mat3.columns(*columns)


def exponential(theta):
    """a = (1 − cos t)/t², b = (t − sin t)/t³, and a'/t, b'/t; by series where t is small."""
    t2 = theta.dot(theta)
    a, b = exp_coefficients(sqrt(t2))
    small = t2 < 1e-2
    x, inverse = where(small, t2, 0.0), 1.0 / where(small, 1.0, t2)
    return (
        a,
        b,
        where(
            small,
            -1 / 12 + x * (1 / 180 - x * (1 / 6720 - x * (1 / 453600 - x * (1 / 47900160)))),
            ((1.0 - b * t2) - 2.0 * a) * inverse,
        ),
        where(
            small,
            -1 / 60 + x * (1 / 1260 - x * (1 / 60480 - x * (1 / 4989600 - x * (1 / 622702080)))),
            (a - 3.0 * b) * inverse,
        ),
    )
