"""Motion: a system with all that drives it, the right-hand side which the integrators march."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import FlexibleSystem, System, difference, potential_energy
from kfdyn.multibody.arguments import checked, configuration
from kfdyn.multibody.coupling import told
from kfdyn.multibody.hinge import Coordinates
from kfdyn.multibody.links import open_terms

Array = NDArray[np.float64]
Law = Callable[[float, Array, Array], ArrayLike]


@dataclass(frozen=True, eq=False)
class Motion:
    """The equation 𝓜 a + c = τ(t, q, v) − B v − K (q ⊖ rest), with its energy.

    Damping B and stiffness K are diagonal and no part of :func:`forward_dynamics`; here they join the
    generalised force. They are those of the hinges, so that with couplings the forces are X*BXv and X*K(q ⊖ rest), and
    ``damping``, ``stiffness`` and ``rest`` are of the open tree. Build it with :func:`motion`, which checks.

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
    """

    system: System
    torque: Law | Array | None
    external_forces: Law | Array | None
    gravity: Array
    damping: Array
    stiffness: Array
    rest: Array
    _damped: dict[float, System] = field(default_factory=dict, repr=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what a step leaves to the next one

    def driving(self, t: float, q: Array, v: Array) -> Array:
        """Driving torque τ(t, q, v), shape of v."""
        if self.torque is None:
            return np.zeros_like(v)
        value = self.torque(t, q, v) if callable(self.torque) else self.torque
        return _fitting(self.system, value, (self.system.nv,), v.shape[:-1], _called("torque", self.torque))

    def external(self, t: float, q: Array, v: Array) -> Array | None:
        """External forces (..., n_bodies, 6), or None."""
        if self.external_forces is None:
            return None
        law = self.external_forces
        value = law(t, q, v) if callable(law) else law
        return _fitting(self.system, value, (self.system.n_bodies, 6), v.shape[:-1], _called("external_forces", law))

    def driving_along(self, times: Array, q: Array, v: Array) -> Array:
        """Driving torques (nt, ..., nv) at states (nt, ...)."""
        if isinstance(self.torque, LinearFeedback):
            return self.torque(times, q, v)
        if not callable(self.torque):
            return np.array(self.driving(0.0, q, v))
        return np.array([self.driving(float(t), *state) for t, *state in zip(times, q, v)])

    def beginning(self, t: float) -> Motion:
        """The motion in a step that begins at t: the same, unless a law holds what was then."""
        if not (isinstance(self.torque, LinearFeedback) and self.torque.held):
            return self
        return replace(self, torque=self.torque.beginning(t))

    def onto(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """The state at time t, brought to where it must be: here it may be anywhere."""
        return q, v

    def of_row(self, where: tuple[int, ...], lead: tuple[int, ...]) -> Motion:
        """One motion of a batch with these leading axes."""

        def own(x: Array, tail: int) -> Array:
            return np.broadcast_to(x, lead + x.shape[x.ndim - tail :])[where]

        torque, force = self.torque, self.external_forces
        if isinstance(torque, LinearFeedback):
            torque = torque.of_row(own)
        elif torque is not None and not callable(torque):
            torque = own(torque, 1)
        if force is not None and not callable(force):
            force = own(force, 2)
        return replace(self, torque=torque, external_forces=force, gravity=own(self.gravity, 1))

    def asked(self, t: float, q: Array, v: Array) -> tuple[Any, Array | None]:
        """Driving torque, as a law gives it, and external forces."""
        law = self.torque
        tau = law(t, q, v) if callable(law) else self.driving(t, q, v)
        return tau, self.external(t, q, v)

    def fitted(self, tau: Any, v: Array) -> Array:
        """What a law gave, spread over the batch of velocities v; an array as it should be is looked at no further.

        Compiled code looks whether its numbers are finite.
        """
        if type(tau) is np.ndarray and tau.shape == v.shape and tau.dtype == np.float64:
            return tau
        return _fitting(self.system, tau, (self.system.nv,), v.shape[:-1], _called("torque", self.torque))

    def spring(self, q: Array) -> Array:
        """−K (q ⊖ rest), shape (..., nv)."""
        if not self.stiffness.any():
            return np.zeros((*q.shape[:-1], self.system.nv))
        return self._of_hinges(-self.stiffness * self.deflection(q))

    def deflection(self, q: Array) -> Array:
        """Return q ⊖ rest (..., nv) of the open tree, zero at free and custom hinges, which have no springs."""
        tree, every = self.system.uncoupled, q if not self.system.couplings else self.system._expansion.positions(q)
        return difference(tree, self.rest, np.where(_without_spring(tree), self.rest, every))

    def resistance(self, v: Array, factor: Array) -> Array:
        """Diagonal B or K of the hinges times rates v (..., nv): X*BXv with couplings."""
        if not self.system.couplings:
            return factor * v
        return self._of_hinges(factor * self.system._expansion.rates(v))

    def elastic(self, v: Array) -> Array:
        """K of bodies that bend times rates of their modes (..., nv); their forces are part of forward dynamics."""
        return v @ self.system.elasticity[0] if isinstance(self.system, FlexibleSystem) else np.zeros_like(v)

    def _of_hinges(self, tau: Array) -> Array:
        return tau if not self.system.couplings else self.system._expansion.forces(tau)

    def force(self, t: float, q: Array, v: Array) -> tuple[Array, Array | None]:
        """Generalised force τ − B v − K (q ⊖ rest), and the external forces."""
        tau = self.driving(t, q, v) - self.resistance(v, self.damping) + self.spring(q)
        return tau, self.external(t, q, v)

    def acceleration(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """Return a (..., nv) by one forward dynamics, filter and smoother, and the power (...); O(N)."""
        driving, external = self.driving(t, q, v), self.external(t, q, v)
        tau = driving - self.resistance(v, self.damping) + self.spring(q)
        a = forward_dynamics(self.system, q, v, tau, external, self.gravity)
        return a, self.power_of(driving, external, q, v, v)

    def power(self, t: float, q: Array, v: Array) -> Array:
        """Power (...) of everything that is not in the energy: torques, damping, external forces."""
        return self.power_of(self.driving(t, q, v), self.external(t, q, v), q, v, v)

    def power_of(self, driving: Array, external: Array | None, q: Array, v: Array, rate: Array) -> Array:
        """Power (...) of driving torques and dampers at a rate (..., nv), of external forces at the state's own v."""
        power: Array = ((driving - self.resistance(rate, self.damping)) * rate).sum(-1)
        if isinstance(self.system, FlexibleSystem):
            power = power - (rate * (rate @ self.system.elasticity[1])).sum(-1)
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
        if key not in self._damped and isinstance(self.system, FlexibleSystem):
            K, C = self.system.uncoupled.elasticity
            noise = key * (C + np.diag(self.damping)) + key**2 * (K + np.diag(self.stiffness))
            self._damped[key] = self.system.with_noise(noise)
        if key not in self._damped:
            tree = self.system.open_tree
            rotors = tree.armature + key * self.damping + key**2 * self.stiffness
            self._damped[key] = self.system.like(with_armature(tree, rotors))
        return self._damped[key]


def damped_key(h: float) -> float:
    """The step that a damped system is kept under: steps of a linspace differ in their last bit."""
    return float(f"{h:.12e}")


def motion(
    system: System,
    torque: Law | ArrayLike | None = None,
    damping: bool | ArrayLike = False,
    stiffness: bool | ArrayLike = False,
    rest: ArrayLike | None = None,
    external_forces: Law | ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Motion:
    """Check what drives a system; parameters as for :func:`kfdyn.dynamics.simulation.simulate`.

    Examples
    --------
    >>> from kfdyn.multibody.models import pendulum
    >>> from kfdyn.dynamics.simulation.motion import motion
    >>> swing = motion(pendulum(), damping=[0.5])
    >>> a, power = swing.acceleration(0.0, np.array([0.0]), np.array([2.0]))
    >>> a, float(power)
    (array([-1.]), -2.0)
    """
    nv, tree, layout = system.nv, system.uncoupled, system.open_tree.layout
    if isinstance(torque, LinearFeedback) and torque.system.nv != nv:
        raise ShapeError(
            f"the torque is a law for {torque.system.nv} coordinates, those of {torque.system.name!r}, but system "
            f"{system.name!r} has {nv}"
        )
    if not (torque is None or callable(torque)):
        torque = checked(system, torque, (nv,), "torque")
    if not (external_forces is None or callable(external_forces)):
        external_forces = checked(system, external_forces, (system.n_bodies, 6), "external_forces")
    g = system.gravity if gravity is None else checked(system, gravity, (3,), "gravity")
    K = _per_dof(system, stiffness, tree.stiffness, "stiffness")
    for k in np.flatnonzero(layout.coordinates[: system.n_bodies] != Coordinates.SCREWS):
        own = K[tree.v_slice(system.hinge_names[k])]
        if layout.coordinates[k] == Coordinates.POSE and own.any():
            raise ModelError(
                f"hinge {system.hinge_names[k]!r}: a {system.bodies[k].hinge.kind} hinge takes no stiffness, since "
                "the way back to rest is not unique; give the spring as torque(t, q, v)"
            )
        if np.ptp(own) > 0:
            raise ModelError(
                f"hinge {system.hinge_names[k]!r}: the stiffness of a ball hinge must be the same about its three "
                f"axes, got {own}; give another spring as torque(t, q, v)"
            )
    at_rest = system.neutral() if rest is None else configuration(system, rest, "rest")
    if at_rest.ndim > 1:
        raise ShapeError(f"rest must have shape ({system.nq},), one for all, got {at_rest.shape}")
    B = _per_dof(system, damping, tree.damping, "damping")
    where = system._expansion.positions(at_rest) if system.couplings else at_rest
    return Motion(system, torque, external_forces, g, B, K, where)


def _without_spring(system: System) -> NDArray[np.bool_]:
    """Entries of q (nq,) of free and custom hinges, which have no springs, and of modes, whose springs are bodies'."""
    coordinates, out = system.open_tree.layout.coordinates, np.ones(system.nq, dtype=bool)
    for k, name in enumerate(system.hinge_names):
        out[system.q_slice(name)] = coordinates[k] == Coordinates.POSE
    return out


def with_armature(system: System, armature: Array) -> System:
    """Return the same system with other rotors, armature (nv,)."""
    import warnings

    from kfdyn.spatial import TriangleInequalityWarning

    start = system.layout.v_start
    bodies = [
        replace(body, armature=armature[start[k] : start[k + 1]]) if body.hinge.nv else body
        for k, body in enumerate(system.bodies)
    ]
    with warnings.catch_warnings():  # said when the system was first built
        warnings.simplefilter("ignore", TriangleInequalityWarning)
        return System(
            bodies,
            system.gravity,
            dict(system.frames),
            system.name,
            indefinite_inertia=system.indefinite_inertia,
        )


def _per_dof(system: System, value: bool | ArrayLike, own: Array, what: str) -> Array:
    if isinstance(value, bool | np.bool_):
        return own if value else np.zeros(len(own))
    elastic = system.elastic if isinstance(system, FlexibleSystem) else np.zeros(system.nv, dtype=bool)
    # one number is that of every hinge; springs of joints and modes have their own
    given = np.where(elastic, 0.0, value) if np.ndim(value) == 0 else value
    array = checked(system, given, (system.nv,), what)
    if array.ndim > 1:
        raise ShapeError(f"{what} must be True, False, a scalar or have shape ({system.nv},), got {array.shape}")
    if (array < 0).any():
        i = int(np.argmax(array < 0))
        raise ModelError(f"{what} must not be negative, got {array[i]} at dof {i} of system {system.name!r}")
    if isinstance(system, FlexibleSystem) and what == "stiffness" and array[elastic].any():
        i = int(np.flatnonzero(elastic & (array != 0))[0])
        raise ModelError(
            f"stiffness of {system.dof_names[i]!r}: a mode, or the spring of a flexible joint, has its stiffness from "
            "its body or joint; give it there, and 0 here"
        )
    if system.couplings and array.any():
        array = _of_named_hinges(system, array, what)
    return array


def _of_named_hinges(system: System, array: Array, what: str) -> Array:
    """Damping or stiffness of coordinates (nv,) as that of the hinges they are named after (nv_tree,)."""
    for coupling in system.couplings:
        if not coupling.is_selection:
            raise ModelError(
                f"{what} of the coordinates of the coupling of {told(coupling.hinges)} is of no hinge; give the hinges "
                f"{what} and simulate with {what}=True"
            )
    e = system._expansion
    out = np.zeros(system.uncoupled.nv)
    out[e.plain_v] = array[e.here_v]
    named = [system.uncoupled.v_slice(name).start for coupling in system.couplings for name in coupling.named]
    out[named] = array[e.own_v]
    return out


def _called(what: str, law: object) -> str:
    return f"{what}(t, q, v)" if callable(law) else what


def _fitting(system: System, value: ArrayLike, tail: tuple[int, ...], lead: tuple[int, ...], what: str) -> Array:
    """Check a force and spread it over the batch, which it may not enlarge."""
    array = checked(system, value, tail, what)
    try:
        return np.broadcast_to(array, lead + tail)
    except ValueError:
        raise ShapeError(
            f"{what} has leading axes {array.shape[: array.ndim - len(tail)]}, but the state has {lead}; "
            "it must broadcast to them"
        ) from None
