"""One step of a motion with its derivatives: the chain rule over the stages of ``simulate``'s steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics import forward_dynamics, forward_dynamics_derivatives
from kfdyn.dynamics.derivatives import FORWARD
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.nonlinear.functions import finite
from kfdyn.motion import recursions
from kfdyn.multibody import System, integrate, jacobian
from kfdyn.multibody.calls.arguments import checked, configuration, expect_system
from kfdyn.multibody.frame_derivatives import force_derivatives
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid
from kfdyn.multibody.parts.armature import with_armature
from kfdyn.multibody.tangents import Points

METHODS = ("euler", "implicit", "rk4")
_BEYOND = 1e50  # no robot is there
_CACHE, _LANES = 40_000, 64  # numbers of slopes that stay in the cache, and the rows from which on lanes are full


class StepDerivatives(NamedTuple):
    """State after a step, and its Jacobians in the tangent of (q, v) and in the generalised force.

    Attributes
    ----------
    q, v : ndarray, shape (..., nq), (..., nv)
        State after the step.
    F : ndarray, shape (..., 2 nv, 2 nv)
        In (q, v) before the step.
    B : ndarray, shape (..., 2 nv, nv)
        In τ.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.step_derivatives(kf.models.pendulum(length=1.0), [0.0], [0.0], [0.0], 0.1).F.round(4)
    array([[ 0.9019,  0.1   ],
           [-0.981 ,  1.    ]])
    """

    q: Array
    v: Array
    F: Array
    B: Array


class Dual(NamedTuple):
    """Rows of tangents with their Jacobians, (rows, n) and (rows, n, columns)."""

    value: Array
    slope: Array

    def __add__(self, other: Dual) -> Dual:  # type: ignore[override]
        return Dual(self.value + other.value, self.slope + other.slope)

    def times(self, h: float) -> Dual:
        """The multiple by a number."""
        return Dual(h * self.value, h * self.slope)


class Stepper:
    """A step of ``kf.simulate`` with one stage, or four, and its exact Jacobians.

    Parameters
    ----------
    system : System
        The robot; couplings are served, loops and bodies that bend are not.
    dt : float
        Seconds a step.
    method : {"euler", "implicit", "rk4"}
        As in :func:`kfdyn.simulate`.
    damping, stiffness : bool or (nv,)
        True: those of the system.
    rest : (nq,), optional
        Where springs are at rest; neutral if not given.
    gravity : (3,), optional
        ``system.gravity`` if not given.
    wrenches : sequence of str
        Bodies or frames at which a force [moment; force], world axes, acts beside the generalised force.
    friction : bool or (nv,)
        Coulomb friction μ, regularised: −μ tanh(v/v₀). True: that of the system.
    friction_speed : float
        v₀.
    """

    def __init__(
        self,
        system: System,
        dt: float,
        method: str = "euler",
        damping: bool | ArrayLike = False,
        stiffness: bool | ArrayLike = False,
        rest: ArrayLike | None = None,
        gravity: ArrayLike | None = None,
        wrenches: Sequence[str] = (),
        friction: bool | ArrayLike = False,
        friction_speed: float = 0.01,
    ) -> None:
        expect_system(system)
        expect_rigid(
            system,
            "a motion",
            "a joint that gives way is two hinges of a rigid System by FlexibleJoint.split; give stiffness=True and "
            "damping=True to the motion",
        )
        expect_no_loops(
            system,
            "a motion",
            "it needs free coordinates; take system.open_tree, and hold its loops by exact readings",
        )
        if method not in METHODS:
            raise ModelError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
        if not (isinstance(dt, int | float | np.integer | np.floating) and 0 < dt < np.inf):
            raise ModelError(f"dt must be a positive number of seconds, got {dt!r}; time does not run backwards")
        self.system, self.dt, self.method = system, float(dt), method
        self.points = Points.of(system)
        self.gravity = None if gravity is None else checked(system, gravity, (3,), "gravity")
        self.B, self.K = _per_dof(system, damping, "damping"), _per_dof(system, stiffness, "stiffness")
        self.mu = _per_dof(system, friction, "friction")
        if not (np.ndim(friction_speed) == 0 and 0.0 < friction_speed < np.inf):
            raise ModelError(f"friction_speed must be a positive number, got {friction_speed!r}")
        self.slow = float(friction_speed)
        turning = np.ones(system.nv, bool)
        turning[self.points._tangents] = False
        if (self.K[turning] != 0).any():
            raise ModelError(
                "stiffness of a ball or free hinge has no place in a motion; give springs to angles and slides"
            )
        drag = self.B + self.dt * self.K if method == "implicit" else self.B
        self.drag, self.sprung = (drag if drag.any() else None), bool(self.K.any())
        self.rubs = bool(self.mu.any())
        self.rest = system.neutral() if rest is None else configuration(system, rest)
        for frame in wrenches:
            system.locate(frame)
        self.wrenches = tuple(wrenches)
        self.moved = system
        if method == "implicit":
            tree = system.open_tree
            if system is not tree and (self.B.any() or self.K.any()):
                raise ModelError("implicit damping of systems with couplings is not served; use method='euler'")
            rotors = tree.armature + self.dt * self.B + self.dt**2 * self.K if tree is system else tree.armature
            self.moved = with_armature(tree, rotors) if tree is system else system

    # --- accelerations

    def _forces(self, q: Array, v: Array, tau: Array, wrench: Array | None) -> Array:
        """Generalised forces of motors, dampers, springs and wrenches."""
        total = tau if self.drag is None else tau - self.drag * v
        if self.rubs:
            total = total - self.mu * np.tanh(v / self.slow)
        if self.sprung:
            total = total - self.K * self.points.minus(q, np.broadcast_to(self.rest, q.shape))
        for i, frame in enumerate(self.wrenches):
            J = jacobian(self.system, q, frame)
            total = total + np.einsum("rij,ri->rj", J, wrench[:, 6 * i : 6 * i + 6])  # type: ignore[index]
        return np.ascontiguousarray(total)

    def acceleration(self, q: Array, v: Array, tau: Array, wrench: Array | None = None) -> Array:
        """Accelerations of rows of states."""
        return self._solved(q, v, self._forces(q, v, tau, wrench))

    def _solved(self, q: Array, v: Array, forces: Array) -> Array:
        try:
            if len(q) > 1:
                return forward_dynamics(self.moved, q, v, forces, gravity=self.gravity)
            return forward_dynamics(self.moved, q[0], v[0], forces[0], gravity=self.gravity)[None]  # the quicker call
        except ModelError as error:
            raise _flown_off(error, q, v) from None

    def _moved(self, q: Array, d: Array) -> Array:
        """q ⊕ d."""
        try:
            if len(q) == 1:
                return np.asarray(integrate(self.system, q[0], d[0]))[None]
            return np.asarray(integrate(self.system, q, d))
        except ModelError as error:
            raise _flown_off(error, q, d) from None

    def _with_slopes(self, q: Array, v: Array, forces: Array) -> tuple[Array, Array, Array, Array]:
        """a, ∂a/∂q, ∂a/∂v, ∂a/∂τ of rows of states, or of one state (nq,)."""
        robot, g = self.moved, self.gravity
        try:
            if robot.kind == "tree":
                found = FORWARD.rows(robot, (q, v, forces, g))
                if len(found) == 4 and finite(found[3]):  # what filters find on the way
                    return found[3], *found[:3]
            return forward_dynamics(robot, q, v, forces, None, g), *forward_dynamics_derivatives(robot, q, v, forces, g)
        except ModelError as error:
            raise _flown_off(error, q, v) from None

    def linear_acceleration(
        self, q: Array, v: Array, tau: Array, wrench: Array | None = None
    ) -> tuple[Array, Array, Array, Array, Array | None]:
        """a, ∂a/∂q, ∂a/∂v, ∂a/∂τ, and ∂a/∂wrench if there are any."""
        forces = self._forces(q, v, tau, wrench)
        if len(q) > 1:
            a, a_q, a_v, a_tau = self._with_slopes(q, v, forces)
        else:  # the quicker call
            a, a_q, a_v, a_tau = (x[None] for x in self._with_slopes(q[0], v[0], forces[0]))
        if self.drag is not None:
            a_v = a_v - a_tau * self.drag
        if self.rubs:
            a_v = a_v - a_tau * (self.mu / self.slow / np.cosh(np.minimum(np.abs(v / self.slow), 350.0)) ** 2)[:, None]
        if self.sprung:
            a_q = a_q - a_tau * self.K
        a_f = None
        if self.wrenches:
            columns = []
            for i, frame in enumerate(self.wrenches):
                _, turned = force_derivatives(self.system, q, wrench[:, 6 * i : 6 * i + 6], frame)  # type: ignore[index]
                a_q = a_q + a_tau @ turned
                columns.append(a_tau @ jacobian(self.system, q, frame).swapaxes(1, 2))
            a_f = np.concatenate(columns, axis=2)
        return a, a_q, a_v, a_tau, a_f

    def linear_acceleration_of_one(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array, Array]:
        """The same for one state (nq,), (nv,) without wrenches: a, ∂a/∂q, ∂a/∂v, ∂a/∂τ."""
        if self.drag is not None or self.sprung or self.rubs:
            a, a_q, a_v, a_tau, _ = self.linear_acceleration(q[None], v[None], tau[None])
            return a[0], a_q[0], a_v[0], a_tau[0]
        return self._with_slopes(q, v, tau)

    # --- steps

    def step(self, q: Array, v: Array, tau: Array, wrench: Array | None = None) -> tuple[Array, Array]:
        """State after a step, for rows of states."""
        h = self.dt
        if self.method != "rk4":
            after = v + h * self.acceleration(q, v, tau, wrench)
            return self._moved(q, h * after), after

        def move(q: Array, d: Array) -> Array:
            return integrate(self.system, q, d)

        v1, a1 = v, self.acceleration(q, v, tau, wrench)
        q2, v2 = move(q, h / 2 * v1), v + h / 2 * a1
        a2 = self.acceleration(q2, v2, tau, wrench)
        q3, v3 = move(q, h / 2 * v2), v + h / 2 * a2
        a3 = self.acceleration(q3, v3, tau, wrench)
        q4, v4 = move(q2, h * (v3 - v1 / 2)), v + h * a3
        a4 = self.acceleration(q4, v4, tau, wrench)
        half = move(q, h / 12 * (3 * v1 + 2 * v2 + 2 * v3 - v4))
        end = move(half, h / 12 * (-v1 + 2 * v2 + 2 * v3 + 3 * v4))
        return end, v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    def linear_step(
        self, q: Array, v: Array, tau: Array, wrench: Array | None = None
    ) -> tuple[Array, Array, Array, Array]:
        """State after a step, and the Jacobians of its tangent (q, v): in (q, v), and in (τ, wrenches)."""
        rows, nv, inputs = len(q), self.system.nv, self.system.nv + 6 * len(self.wrenches)
        F, B = np.empty((rows, 2 * nv, 2 * nv)), np.empty((rows, 2 * nv, inputs))
        linear = self._linear_stages if self.method == "rk4" else self._linear_euler
        together = max(_LANES, _CACHE // max(1, nv * (2 * nv + inputs)))
        if rows <= together:
            return *linear(q, v, tau, wrench, F, B), F, B
        q_next, v_next = np.empty_like(q), np.empty_like(v)
        for first in range(0, rows, together):
            own = slice(first, first + together)
            pushes = None if wrench is None else wrench[own]
            q_next[own], v_next[own] = linear(q[own], v[own], tau[own], pushes, F[own], B[own])
        return q_next, v_next, F, B

    def _linear_stages(
        self, q: Array, v: Array, tau: Array, wrench: Array | None, F: Array, B: Array
    ) -> tuple[Array, Array]:
        """The step of Runge and Kutta, by stages with their derivatives; F and B are written to."""
        h, nv, rows = self.dt, self.system.nv, len(q)
        inputs = B.shape[2]
        columns = 2 * nv + inputs
        Dq, Dv = np.zeros((rows, nv, columns)), np.zeros((rows, nv, columns))
        Dq[:, range(nv), range(nv)] = 1.0
        Dv[:, range(nv), range(nv, 2 * nv)] = 1.0

        def accelerated(q: Array, Dq: Array, v: Dual) -> Dual:
            a, a_q, a_v, a_tau, a_f = self.linear_acceleration(q, v.value, tau, wrench)
            slope = a_q @ Dq + a_v @ v.slope
            slope[:, :, 2 * nv : 3 * nv] += a_tau
            if a_f is not None:
                slope[:, :, 3 * nv :] += a_f
            return Dual(a, slope)

        def moved(q: Array, Dq: Array, d: Dual) -> tuple[Array, Array]:
            at = integrate(self.system, q, d.value)
            A, J = self.points.transported(d.value), self.points.right_jacobian(d.value)
            return at, A @ Dq + J @ d.slope

        v1 = Dual(v, Dv)
        a1 = accelerated(q, Dq, v1)
        q2, v2 = moved(q, Dq, v1.times(h / 2)), v1 + a1.times(h / 2)
        a2 = accelerated(*q2, v2)
        q3, v3 = moved(q, Dq, v2.times(h / 2)), v1 + a2.times(h / 2)
        a3 = accelerated(*q3, v3)
        q4, v4 = moved(*q2, (v3 + v1.times(-0.5)).times(h)), v1 + a3.times(h)
        a4 = accelerated(*q4, v4)
        first = v1.times(3) + v2.times(2) + v3.times(2) + v4.times(-1)
        second = v1.times(-1) + v2.times(2) + v3.times(2) + v4.times(3)
        end, slope = moved(*moved(q, Dq, first.times(h / 12)), second.times(h / 12))
        after = v1 + (a1 + a2.times(2) + a3.times(2) + a4).times(h / 6)
        for own, part in ((slice(0, nv), slope), (slice(nv, 2 * nv), after.slope)):
            F[:, own], B[:, own] = part[:, :, : 2 * nv], part[:, :, 2 * nv :]
        return end, after.value

    def _linear_euler(
        self, q: Array, v: Array, tau: Array, wrench: Array | None, F: Array, B: Array
    ) -> tuple[Array, Array]:
        """F = [[A + dt² J a_q, dt J + dt² J a_v], [dt a_q, 1 + dt a_v]],  B = [[dt² J 𝓜⁻¹], [dt 𝓜⁻¹]] (THEORY 18)."""
        h, nv, rows = self.dt, self.system.nv, len(q)
        a, a_q, a_v, a_tau, a_f = self.linear_acceleration(q, v, tau, wrench)
        inputs = a_tau if a_f is None else np.concatenate([a_tau, a_f], axis=2)
        slopes = (a_q.ravel(), a_v.ravel(), inputs.ravel())
        recursions.euler_jacobians(*slopes, F.reshape(-1), B.reshape(-1), h, nv, B.shape[2], rows)
        after = v + h * a
        d = h * after
        for own, A, J in self.points.turns(d):
            F[:, own] = h * (J @ F[:, nv:][:, own])
            F[:, own, own] += A
            B[:, own] = h * (J @ B[:, nv:][:, own])
        return self._moved(q, d), after


def _flown_off(error: ModelError, q: Array, v: Array) -> ModelError:
    """Return the error to raise: states that have flown off are named, any other error is kept."""
    size = max(np.abs(q).max(initial=0.0), np.abs(v).max(initial=0.0))
    if size <= _BEYOND:
        return error
    reach = f"reach {size:.3g}" if size == size else "are no numbers any more"
    return ModelError(
        f"the motion has diverged: q and v {reach}; check the units of tau and of force_noise, the prior and "
        "the covariances of the sensors, or take a smaller dt"
    )


def _per_dof(system: System, given: bool | ArrayLike, name: str) -> Array:
    """Damping, stiffness or friction of each dof, (nv,)."""
    if given is False or given is None:
        return np.zeros(system.nv)
    array = np.asarray(getattr(system, name) if given is True else given, np.float64)
    if array.shape not in ((), (system.nv,)) or not np.isfinite(array).all() or (array < 0).any():
        raise ShapeError(f"{name} must be True, or {system.nv} numbers that are not negative")
    return np.array(np.broadcast_to(array, (system.nv,)))


def step_derivatives(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    *,
    method: str = "euler",
    damping: bool | ArrayLike = False,
    stiffness: bool | ArrayLike = False,
    rest: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    friction: bool | ArrayLike = False,
    friction_speed: float = 0.01,
) -> StepDerivatives:
    """Take one step of ``kf.simulate`` from many states, with its exact Jacobians.

    ::

        a = FD(q, v, τ),  v⁺ = v + dt a,  q⁺ = q ⊕ dt v⁺                  "euler"
        F = [[A + dt² J a_q, dt J + dt² J a_v], [dt a_q, 1 + dt a_v]],    B = [[dt² J 𝓜⁻¹], [dt 𝓜⁻¹]]

    Parameters
    ----------
    system : System
        The robot, with or without couplings.
    q, v, tau : (..., nq), (..., nv), (..., nv)
        States and generalised forces; leading axes broadcast.
    dt : float
        Seconds.
    method : {"euler", "implicit", "rk4"}
        As in :func:`kfdyn.simulate`.
    damping, stiffness : bool or (nv,)
        True: those of the system.
    rest : (nq,), optional
        Where springs are at rest; neutral if not given.
    gravity : (3,), optional
        ``system.gravity`` if not given.
    friction : bool or (nv,)
        Coulomb friction μ, regularised: −μ tanh(v/v₀). True: that of the system.
    friction_speed : float
        v₀.

    Returns
    -------
    StepDerivatives
        ``q, v, F, B``; tangents are of the state after the step.

    Notes
    -----
    A = Ad(Exp(−dt v⁺)) and J the right Jacobian at dt v⁺, both the identity where coordinates add. THEORY section 18.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.step_derivatives(kf.models.pendulum(length=1.0, mass=2.0), [0.0], [0.0], [0.0], 0.1).B
    array([[0.005],
           [0.05 ]])
    """
    stepper = Stepper(
        system, dt, method, damping, stiffness, rest, gravity, friction=friction, friction_speed=friction_speed
    )
    arrays: list[Any] = [
        configuration(system, q), checked(system, v, (system.nv,), "v"), checked(system, tau, (system.nv,), "tau"),
    ]  # fmt: skip
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    rows = [np.ascontiguousarray(np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1])) for x in arrays]
    return StepDerivatives(*(x.reshape(*lead, *x.shape[1:]) for x in stepper.linear_step(*rows)))
