"""The equation of motion: a system with all that drives it, the right-hand side which the integrators march."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.dynamics.simulation.hinge_forces import HingeForces
from kfdyn.errors import ShapeError
from kfdyn.multibody import System, difference, potential_energy
from kfdyn.multibody.calls.arguments import checked
from kfdyn.multibody.links import open_terms
from kfdyn.multibody.parts.hinge import Coordinates

Law = Callable[[float, Array, Array], ArrayLike]


@dataclass(frozen=True, eq=False)
class Motion:
    """The equation 𝓜 a + c = τ(t, q, v) − B v − K (q ⊖ rest), with its energy.

    Damping B and stiffness K are diagonal and no part of :func:`forward_dynamics`; here they join the
    generalised force. They are those of the hinges, so that with couplings the forces are X*BXv and X*K(q ⊖ rest), and
    ``damping``, ``stiffness`` and ``rest`` are of the open tree. Build it with
    :func:`~kfdyn.dynamics.simulation.motion_arguments.motion`, which checks.

    Attributes
    ----------
    system : System
        What moves.
    torque : callable(t, q, v), array (..., nv) or None
        Driving generalised force.
    external_forces : callable(t, q, v), array (..., n_bodies, 6) or None
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3)
        Acceleration of gravity.
    damping, stiffness : (nv,)
        B and K.
    rest : (nq,)
        Configuration in which the springs are slack.
    hinges : HingeForces, optional
        Stops, friction and limits of torques; they join the driving force.
    """

    system: System
    torque: Law | Array | None
    external_forces: Law | Array | None
    gravity: Array
    damping: Array
    stiffness: Array
    rest: Array
    hinges: HingeForces | None = None
    _damped: dict[float, System] = field(default_factory=dict, repr=False)
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # what a step leaves to the next one

    def motor(self, t: float, q: Array, v: Array) -> Array:
        """Driving torque τ(t, q, v), shape of v, as far as the motors can give it."""
        if self.torque is None:
            return np.zeros(v.shape)
        value = self.torque(t, _shown(q), _shown(v)) if callable(self.torque) else self.torque
        tau = _fitting(self.system, value, (self.system.nv,), v.shape[:-1], _called("torque", self.torque))
        return tau if self.hinges is None else self.hinges.clipped(tau)

    def driving(self, t: float, q: Array, v: Array) -> Array:
        """All that is neither linear in the state nor in the energy, shape of v: the motors, stops and friction."""
        tau = self.motor(t, q, v)
        return tau if self.hinges is None else tau + self.hinges.forces(q, v)

    def external(self, t: float, q: Array, v: Array) -> Array | None:
        """External forces (..., n_bodies, 6), or None."""
        if self.external_forces is None:
            return None
        law = self.external_forces
        value = law(t, _shown(q), _shown(v)) if callable(law) else law
        return _fitting(self.system, value, (self.system.n_bodies, 6), v.shape[:-1], _called("external_forces", law))

    def driving_along(self, times: Array, q: Array, v: Array) -> Array:
        """Driving torques (nt, ..., nv) of the motors at states (nt, ...)."""
        if isinstance(self.torque, LinearFeedback):
            tau = self.torque(times, q, v)
            return tau if self.hinges is None else self.hinges.clipped(tau)
        if not callable(self.torque):
            return np.array(self.motor(0.0, q, v))
        return np.array([self.motor(float(t), *state) for t, *state in zip(times, q, v)])

    def beginning(self, t: float) -> Motion:
        """The motion in a step that begins at t: the same, unless a law holds what was then."""
        if not (isinstance(self.torque, LinearFeedback) and self.torque.held):
            return self
        return replace(self, torque=self.torque.beginning(t))

    def onto(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """The state at time t, brought to where it must be: here it may be anywhere."""
        return q, v

    def of_row(self, where: tuple[Any, ...], lead: tuple[int, ...]) -> Motion:
        """One motion of a batch with these leading axes; several, if ``where`` has arrays of their places."""

        def own(x: Array, tail: int) -> Array:
            return np.broadcast_to(x, lead + x.shape[x.ndim - tail :])[where]

        torque, force = self.torque, self.external_forces
        if isinstance(torque, LinearFeedback):
            torque = torque.of_row(own)
        elif torque is not None and not callable(torque):
            torque = own(torque, 1)
        if force is not None and not callable(force):
            force = own(force, 2)
        one: dict[str, Any] = {"torque": torque, "external_forces": force, "gravity": own(self.gravity, 1)}
        if self.system.robots:
            robots: Any = self.system
            of_all = {name: getattr(self, name) for name in ("damping", "stiffness")}
            one |= {name: own(x, 1) for name, x in of_all.items()}
            at = where[-1]
            one |= {"system": robots.some(at) if np.ndim(at) else robots[at], "_damped": {}, "kept": {}}
        return replace(self, **one)

    def asked(self, t: float, q: Array, v: Array) -> tuple[Any, Array | None]:
        """Driving torque, as a law gives it, and external forces; of a state that is a copy, or read-only."""
        law = self.torque
        tau = law(t, q, v) if callable(law) and self.hinges is None else self.driving(t, q, v)
        return tau, self.external(t, q, v)

    def fitted(self, tau: Any, v: Array) -> Array:
        """Spread what a law gave over the batch of velocities v; return an array that fits as it is.

        Compiled code looks whether its numbers are finite.
        """
        if type(tau) is np.ndarray and tau.shape == v.shape and tau.dtype == np.float64:
            return tau
        return _fitting(self.system, tau, (self.system.nv,), v.shape[:-1], _called("torque", self.torque))

    def spring(self, q: Array) -> Array:
        """−K (q ⊖ rest), shape (..., nv)."""
        if not self._is_sprung:
            return np.zeros((*q.shape[:-1], self.system.nv))
        return self.system._expansion.at(q).forces(-self.stiffness * self.deflection(q))

    @cached_property
    def _is_sprung(self) -> bool:
        return bool(self.stiffness.any())

    def deflection(self, q: Array) -> Array:
        """Return q ⊖ rest (..., nv) of the open tree, zero at free and custom hinges, which have no springs."""
        tree, every = self.system.pattern.uncoupled, self.system._expansion.positions(q)
        return difference(tree, self.rest, np.where(_without_spring(tree), self.rest, every))

    def resistance(self, q: Array, v: Array, factor: Array) -> Array:
        """Diagonal B or K of the hinges times rates v (..., nv): X*BXv with couplings, X at q."""
        here = self.system._expansion.at(q)
        return here.forces(factor * here.rates(v))

    def elastic(self, v: Array) -> Array:
        """K of bodies that bend times rates of their modes (..., nv); their forces are part of forward dynamics."""
        return self.system.modal_forces(v)

    def force(self, t: float, q: Array, v: Array) -> tuple[Array, Array | None]:
        """Generalised force τ − B v − K (q ⊖ rest), and the external forces."""
        tau = self.driving(t, q, v) - self.resistance(q, v, self.damping) + self.spring(q)
        return tau, self.external(t, q, v)

    def acceleration(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """Return a (..., nv) by one forward dynamics, filter and smoother, and the power (...); O(N)."""
        driving, external = self.driving(t, q, v), self.external(t, q, v)
        tau = driving - self.resistance(q, v, self.damping) + self.spring(q)
        a = forward_dynamics(self.system, q, v, tau, external, self.gravity)
        return a, self.power_of(driving, external, q, v, v)

    def power(self, t: float, q: Array, v: Array) -> Array:
        """Power (...) of everything that is not in the energy: torques, damping, external forces."""
        return self.power_of(self.driving(t, q, v), self.external(t, q, v), q, v, v)

    def power_of(self, driving: Array, external: Array | None, q: Array, v: Array, rate: Array) -> Array:
        """Power (...) of driving torques and dampers at a rate (..., nv), of external forces at the state's own v."""
        power: Array = ((driving - self.resistance(q, rate, self.damping)) * rate).sum(-1)
        power = power - self.system.modal_losses(rate)
        if external is not None:
            velocity = open_terms(self.system, q, v).velocity[..., : self.system.n_bodies, :]
            power = power + (external * velocity).sum((-2, -1))
        return power

    def potential(self, q: Array) -> Array:
        """Potential energy (...) of gravity and springs."""
        energy = potential_energy(self.system, q, self.gravity)
        if self.stiffness.any():
            energy = energy + 0.5 * (self.stiffness * self.deflection(q) ** 2).sum(-1)
        return energy

    def damped(self, h: float) -> System:
        """Return the system with R ← R + hB + h²K: the measurement noise of an implicit step (THEORY section 6).

        Matrices of bodies that bend join those of the hinges. Kept, since a simulation asks for the same one at every
        step.
        """
        key = damped_key(h)
        if key not in self._damped:
            self._damped[key] = self.system.damped(key, self.damping, self.stiffness)
        return self._damped[key]


def damped_key(h: float) -> float:
    """The step that a damped system is kept under: steps of a linspace differ in their last bit."""
    return float(f"{h:.12e}")


def _without_spring(system: System) -> NDArray[np.bool_]:
    """Entries of q (nq,) of free and custom hinges, which have no springs, and of modes, whose springs are bodies'."""
    coordinates, out = system.pattern.open_tree.layout.coordinates, np.ones(system.nq, dtype=bool)
    for k, name in enumerate(system.hinge_names):
        out[system.q_slice(name)] = coordinates[k] == Coordinates.POSE
    return out


def _shown(x: Array) -> Array:
    """A view for a law to look at: one that wrote to the state would change the motion without a word."""
    view = x.view()
    view.flags.writeable = False
    return view


def _called(what: str, law: object) -> str:
    return f"{what}(t, q, v)" if callable(law) else what


def _fitting(system: System, value: ArrayLike, tail: tuple[int, ...], lead: tuple[int, ...], what: str) -> Array:
    """Check a force and spread it over the batch, which it may not enlarge."""
    array = checked(system, value, tail, what)
    try:
        return np.broadcast_to(array, lead + tail)
    except ValueError:
        raise not_of_the_states(what, array.shape[: array.ndim - len(tail)], lead) from None


def not_of_the_states(what: str, own: tuple[int, ...], lead: tuple[int, ...]) -> ShapeError:
    """Say that the leading axes of an argument are not those of the states, and what samples in time would be."""
    words = f"{what} has leading axes {own}, but the state has {lead}; it must broadcast to them"
    if what == "torque":
        words += "; an array is constant in time, samples at times t are kf.LinearFeedback(system, tau=samples, t=t)"
    return ShapeError(words)
