"""What a hinge carries along a motion, with derivatives: the inverse dynamics of a robot that is cut there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics import inverse_dynamics, inverse_dynamics_derivatives
from kfdyn.dynamics.sensors.body_sensors import ForceTorque
from kfdyn.multibody import Body, Hinge, System, jacobian
from kfdyn.multibody.frame_derivatives import force_derivatives
from kfdyn.multibody.kinds import expect_tree
from kfdyn.multibody.system import rebuilt
from kfdyn.spatial import skew

#: A frame and the forces [moment; force] that act there, world axes, (rows, 6).
Pushes = Sequence[tuple[str, Array]]


class Carried(NamedTuple):
    """A force–torque reading for rows of (q, v, a), and its derivatives in them and in the forces that push."""

    reading: Array
    of_q: Array
    of_v: Array
    of_a: Array
    of_pushes: Array


class CutHinge:
    """A robot with one more hinge, free and held, between a body and the hinge that carries it.

    The generalised force of that hinge is what the sensor feels, so its derivatives are those of inverse dynamics.

    Parameters
    ----------
    system : System
        A tree.
    sensor : ForceTorque
        Where it is cut, and in which axes the force is told.
    """

    def __init__(self, system: System, sensor: ForceTorque) -> None:
        expect_tree(system, f"{sensor.name} along a motion", "take system.open_tree, whose hinges move alone")
        k = sensor.sites(system)[0].k
        name = system.body_names[k]
        held = name + " beyond its sensor"
        bodies = []
        for body in system.bodies:
            if body.name == name:
                bodies.append(Body(
                    held, np.zeros((6, 6)), body.hinge, body.parent, body.rotation, body.position, body.hinge_name
                ))  # fmt: skip
                body = Body(name, body.inertia, Hinge.free(), held, hinge_name=held)
            bodies.append(body)
        cut = rebuilt(tuple(bodies), system.gravity, dict(system.frames), system.name, system.indefinite_inertia)
        self.cut, self.nv = cut, system.nv
        self.q, self.v = np.empty(system.nq, np.intp), np.empty(system.nv, np.intp)
        for hinge in system.hinge_names:
            self.q[system.q_slice(hinge)] = np.arange(cut.nq)[cut.q_slice(hinge)]
            self.v[system.v_slice(hinge)] = np.arange(cut.nv)[cut.v_slice(hinge)]
        self.own = cut.v_slice(held)
        self.neutral = cut.neutral()
        _, R, r = system.locate(sensor.frame or name)
        self.S = np.zeros((6, 6))
        self.S[:3, :3] = self.S[3:, 3:] = R.T
        self.S[:3, 3:] = -R.T @ skew(r)
        if sensor.direction == "child_to_parent":
            self.S *= -1.0

    def _states(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        positions = np.tile(self.neutral, (len(q), 1))
        positions[:, self.q] = q
        rates, accelerations = np.zeros((2, len(q), self.cut.nv))
        rates[:, self.v], accelerations[:, self.v] = v, a
        return positions, rates, accelerations

    def reading(self, q: Array, v: Array, a: Array, g: Array, pushes: Pushes = ()) -> Array:
        """What the sensor reads, (rows, 6)."""
        states = self._states(q, v, a)
        force = inverse_dynamics(self.cut, *states, gravity=g)[:, self.own]
        for frame, push in pushes:
            force = force - np.einsum("rij,ri->rj", jacobian(self.cut, states[0], frame)[:, :, self.own], push)
        return np.asarray(force @ self.S.T)

    def linear(self, q: Array, v: Array, a: Array, g: Array, pushes: Pushes = ()) -> Carried:
        """The reading and its derivatives."""
        states = self._states(q, v, a)
        force = inverse_dynamics(self.cut, *states, gravity=g)[:, self.own]
        of_q, of_v, of_a = (x[:, self.own][:, :, self.v] for x in inverse_dynamics_derivatives(self.cut, *states, g))
        of_pushes = np.zeros((len(q), 6, 6 * len(pushes)))
        for i, (frame, push) in enumerate(pushes):
            torque, turned = force_derivatives(self.cut, states[0], push, frame)
            force = force - torque[:, self.own]
            of_q = of_q - turned[:, self.own][:, :, self.v]
            J = jacobian(self.cut, states[0], frame)[:, :, self.own]
            of_pushes[:, :, 6 * i : 6 * i + 6] = -J.swapaxes(1, 2)
        return Carried(force @ self.S.T, *(self.S @ x for x in (of_q, of_v, of_a, of_pushes)))
