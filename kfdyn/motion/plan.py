"""Plans of a robot's motion: controls are noise, goals are readings, and an exact goal is a reading without noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.sensors.in_motion import MotionSensor
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.control.lqr import lqr
from kfdyn.estimation.control.solution import LinearPlan
from kfdyn.estimation.nonlinear.smoother import iterated_kalman_smoother
from kfdyn.motion.limited import Bounds
from kfdyn.motion.limited import search as search_within
from kfdyn.motion.model import MotionModel
from kfdyn.motion.result import MotionSmoothed
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system


class Goal(NamedTuple):
    """What a plan shall reach: a sensor, what it shall read, and when.

    Parameters
    ----------
    sensor : Sensor
        ``JointPosition``, ``JointVelocity``, ``Position``, ``Velocity``, ``Pose``, ``Orientation``, ``Gyroscope``,
        ``CenterOfMass`` or ``Contact`` of ``kf.sensors``. Its covariance is the weight: deviations of its root cost ½
        each, so that (0.01)² is "to a centimetre"; 0 is exact.
    value : array, shape (size,), or (steps + 1, size) for "always"
        The reading.
    at : int or "always"
        The step, 0 … steps, negative from the end; "always" is every step after the start.

    Examples
    --------
    >>> import kfdyn as kf
    >>> Goal(kf.sensors.JointPosition(0.0), [1.0], at=50).at
    50
    """

    sensor: Any
    value: ArrayLike
    at: int | str = -1

    def readings(self, system: System, steps: int) -> Array:
        """The goal as readings (steps + 1, size), NaN where there is none."""
        if not isinstance(self.sensor, MotionSensor):
            raise ModelError(
                f"a goal needs a sensor of positions or velocities, got {getattr(self.sensor, 'name', self.sensor)!r}"
            )
        size = self.sensor.size(system)
        value = np.asarray(self.value, np.float64)
        out = np.full((steps + 1, size), np.nan)
        if not np.isfinite(value).all():
            raise ModelError(f"goal {self.sensor.name}: its value has entries that are not finite")
        if self.at == "always":
            if value.shape not in ((size,), (steps + 1, size)):
                raise ShapeError(f"goal {self.sensor.name}: its value must be ({size},) or ({steps + 1}, {size})")
            out[1:] = value if value.ndim == 1 else value[1:]
            return out
        if not isinstance(self.at, int | np.integer) or not -steps - 1 <= self.at <= steps:
            raise ShapeError(f"goal {self.sensor.name}: at must be 'always' or a step 0 to {steps}, got {self.at!r}")
        if value.shape != (size,):
            raise ShapeError(f"goal {self.sensor.name}: its value must be ({size},), got shape {value.shape}")
        k = int(self.at) % (steps + 1)
        if k == 0:
            raise ModelError(f"goal {self.sensor.name}: step 0 is the start, which is given; goals begin at step 1")
        out[k] = value
        return out


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """A plan of a robot's motion, with its feedback law.

    Attributes
    ----------
    post : MotionSmoothed
        The plan as a smoothed motion: torques are its disturbances.
    effort : ndarray, shape (nv, nv)
        The covariance of torques that weighs them.
    within : LinearPlan or None
        The last linear problem of a plan with limits.

    Examples
    --------
    A pendulum swings from rest to rest at the horizontal, exactly:

    >>> import kfdyn as kf
    >>> goals = [kf.Goal(kf.sensors.JointPosition(0.0), [1.5]), kf.Goal(kf.sensors.JointVelocity(0.0), [0.0])]
    >>> plan = kf.plan_motion(kf.models.pendulum(), 0.02, 50, [0.0], [0.0], goals, torque_cov=[4.0])
    >>> plan.converged, plan.q[-1].round(9), plan.tau.shape
    (True, array([1.5]), (50, 1))
    """

    post: MotionSmoothed = field(repr=False)
    effort: Array = field(repr=False)
    within: LinearPlan | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        steps, cost = len(self.tau), self.cost
        return f"{type(self).__name__}({self.system.name!r}, {steps} steps, cost {cost:.6g}, {self.message})"

    @property
    def system(self) -> System:
        """The robot."""
        return self.post.model.system

    @property
    def t(self) -> Array:
        """Times, (steps + 1,)."""
        return self.post.t

    @property
    def q(self) -> Array:
        """Configurations, (steps + 1, nq)."""
        return self.post.q

    @property
    def v(self) -> Array:
        """Velocities, (steps + 1, nv)."""
        return self.post.v

    @property
    def tau(self) -> Array:
        """Torques, (steps, nv); ``tau[k]`` leads from step k to k + 1."""
        return self.post.force

    @property
    def converged(self) -> bool:
        """Whether the plan is an optimum of its own linearisation, and meets its exact goals."""
        return bool(self.post.converged)

    @property
    def message(self) -> str:
        """How the search ended."""
        return self.post.message

    @property
    def cost(self) -> float:
        """½Σ τ*W⁻¹τ + ½Σ (goals missed)*cov⁻¹(goals missed)."""
        return float(self.post.cost[-1])

    @property
    def multipliers(self) -> Array:
        """Costates of (q, v) in tangents, (steps + 1, 2 nv): what a shift of the state would gain, with a minus."""
        return self.post.costate

    @cached_property
    def linear(self) -> LinearPlan:
        """The plan linearised along itself, as :func:`kfdyn.lqr` solves it: its optimum is to stay where it is."""
        if self.within is not None:
            return self.within
        model, x, w = self.post.model, self.post.x, self.post.noise
        steps, n = len(w), model.n
        k = np.arange(steps + 1)
        u = np.zeros_like(w)
        _, F, B = model.linear_step(x[:-1], w, u, k[:-1])
        h, H, _ = model.linear_read(x, np.zeros((steps + 1, model.p)), None, k)
        T = self.post.residuals
        if not model.readings.adds:
            y = model.readings.plus(h, np.nan_to_num(T))
            H = model.readings.minus_jacobian(y, h) @ H
        R, seen = model.R, ~np.isnan(T)
        exact = np.diag(R) == 0.0
        Q, goals = np.zeros((steps, n, n)), []
        for i in range(steps):
            rows = seen[i + 1] & ~exact
            part = H[i + 1][rows]
            Q[i] = part.T @ np.linalg.solve(R[np.ix_(rows, rows)], part) if rows.any() else 0.0
            held = seen[i + 1] & exact
            if held.any():
                goals.append((i, H[i + 1][held], np.zeros(int(held.sum()))))
        return lqr(F, B @ self._root, Q, np.eye(self._root.shape[1]), np.zeros(n), goals=goals)

    @cached_property
    def _root(self) -> Array:
        if self.within is not None:
            root = np.diag(np.sqrt(np.diag(self.effort)))
            return root[:, root.any(axis=0)]
        values, vectors = np.linalg.eigh(self.effort)
        keep = values > 1e-14 * values.max()
        return vectors[:, keep] * np.sqrt(values[keep])

    @cached_property
    def gains(self) -> Array:
        """Feedback gains (steps, nv, 2 nv): what τ(k) gains by a deviation of (q, v) at step k, in tangents."""
        return np.asarray(self._root @ self.linear.gains)

    def control(self, k: int, q: ArrayLike, v: ArrayLike) -> Array:
        """Torque of step k from where the robot is: τ(k) + gains(k) (q ⊖ q(k), v − v(k)).

        Parameters
        ----------
        k : int
            The step; steps beyond the last one get its torque.
        q, v : array, shape (nq,), (nv,)
            The state.

        Returns
        -------
        ndarray, shape (nv,)
        """
        k = min(int(k), len(self.tau) - 1)
        x = np.concatenate([np.asarray(q, np.float64), np.asarray(v, np.float64)])[None]
        gap = self.post.model.states.minus(x, self.post.x[k : k + 1])[0]
        return np.asarray(self.tau[k] + self.gains[k] @ gap)

    def plot(self, hinges: Any = None) -> Any:
        """Draw q, v and the torque of each hinge over time; returns the figure."""
        from kfdyn.motion.drawing import chosen, draw_columns

        model = self.post.model
        names = [name[2:-1] for name in model.state_names[: model.system.nv]]
        moved = model.states.minus(self.post.x, np.broadcast_to(self.post.x[0], self.post.x.shape))[
            :, : model.system.nv
        ]
        q, title = (self.q, "position") if self.system.nq == self.system.nv else (moved, "moved since the start")
        columns = [
            (title, self.t, q, None),
            ("velocity", self.t, self.v, None),
            ("torque", self.t[:-1], self.tau, None),
        ]
        return draw_columns(columns, names, chosen(names, hinges))


def plan_motion(
    system: System,
    dt: float,
    steps: int,
    q0: ArrayLike,
    v0: ArrayLike,
    goals: Sequence[Goal],
    torque_cov: ArrayLike,
    *,
    torque_limits: Any = None,
    velocity_limits: Any = None,
    position_limits: Any = None,
    start: ArrayLike | MotionPlan | None = None,
    search: str | None = "line",
    iterations: int = 100,
    tolerance: float = 1e-9,
    **options: Any,
) -> MotionPlan:
    """Plan a motion: the torques of least effort that reach the goals.

    ::

        min ½ Σ τ(k)*W⁻¹τ(k) + ½ Σ (goal ⊖ reading)*cov⁻¹(goal ⊖ reading),      by the step of kf.simulate

    Read as estimation: torques are noise of covariance W, goals are readings, and the plan is the most probable motion.
    A goal with covariance 0 is met exactly.

    Parameters
    ----------
    system : System
        The robot.
    dt : float
        Seconds a step.
    steps : int
        Number of steps; the plan has ``steps + 1`` states.
    q0, v0 : array, shape (nq,), (nv,)
        The start.
    goals : sequence of Goal
        What to reach and when.
    torque_cov : number, (nv,) or (nv, nv)
        W: variances of torques, the squares of what is "much"; 0 for a hinge without a motor.
    torque_limits, velocity_limits, position_limits : True, number, array (nv,), or pair (lower, upper), optional
        True: those of the system, from its file. A number or an array is a limit in both directions; inf for none. W
        must be diagonal then.
    start : array (steps + 1, nq + nv) or MotionPlan, optional
        States to linearise at first, which need not be a motion; the robot at rest at q0 if not given.
    search : {"line", "damped", None}
        As in :func:`kfdyn.iterated_kalman_smoother`; "damped" for far starts.
    iterations : int
        How many steps of Gauss–Newton at most.
    tolerance : float
        Converged when a step is below this many standard deviations.
    **options
        Of :class:`MotionModel`: ``method``, ``damping``, ``stiffness``, ``rest``, ``gravity``.

    Returns
    -------
    MotionPlan
        ``t, q, v, tau, gains, cost, multipliers, converged, message``, ``control(k, q, v)``, ``plot()``.

    Raises
    ------
    ModelError, ShapeError
        If a goal has another size than its sensor, or is set for the start.
    SingularError
        If exact goals say the same twice, or fewer controls lead to them than they have rows.

    Notes
    -----
    Gauss–Newton with multiple shooting: each step is one filter and one smoother in time, O(steps · nv³). Feedback
    gains are those of the linearised problem, exact goals included. Source: R86 section 6 and "control design".

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.models.puma560()
    >>> still = np.zeros(6)
    >>> goals = [kf.Goal(kf.sensors.JointPosition(0.0), still + 0.3), kf.Goal(kf.sensors.JointVelocity(0.0), still)]
    >>> plan = kf.plan_motion(arm, 0.02, 30, still, still, goals, torque_cov=np.full(6, 100.0))
    >>> plan.converged, bool(np.abs(plan.q[-1] - 0.3).max() < 1e-9)
    (True, True)
    """
    expect_system(system)
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ShapeError(f"steps must be a whole number of at least 1, got {steps!r}")
    listed = [goals] if isinstance(goals, Goal) else list(goals)
    for goal in listed:
        if not isinstance(goal, Goal):
            raise ModelError(f"goals must be kf.Goal(sensor, value, at=...), got {type(goal).__name__}")
    if not listed:
        raise ModelError("a plan needs at least one goal; without one the best plan is to do nothing")
    W = np.asarray(torque_cov, np.float64)
    effort = W * np.eye(system.nv) if W.ndim == 0 else W
    model = MotionModel(system, dt, [goal.sensor for goal in listed], effort, **options)
    readings = [goal.readings(system, int(steps)) for goal in listed]
    prior = (q0, v0, np.zeros(2 * system.nv))
    first: Any
    if isinstance(start, MotionPlan):
        first = (start.post.x, start.post.noise)
    elif start is None:
        first = np.tile(model.check_prior(prior).x0, (int(steps) + 1, 1))
        first[:, system.nq :] = 0.0
        first[0, system.nq :] = np.asarray(v0, np.float64)
    else:
        first = start
    Q = model.Q if model.Q.ndim == 2 else model.Q[0]
    bounds = Bounds.of(system, torque_limits, velocity_limits, position_limits)
    if bounds is not None:
        return _within(model, readings, prior, first, bounds, Q, iterations, tolerance)
    post: Any = iterated_kalman_smoother(
        model, readings, prior=prior, start=first, search=search, iterations=iterations, tolerance=tolerance,
        covariances=False,
    )  # fmt: skip
    return MotionPlan(post, Q)


def _within(
    model: MotionModel, readings: list[Array], prior: Any, first: Any, bounds: Bounds, W: Array, most: int, near: float
) -> MotionPlan:
    """Plan within limits."""
    if np.count_nonzero(W - np.diag(np.diag(W))):
        raise ModelError("limits beside a torque_cov that is not diagonal are not served; give variances")
    y = model.check_readings(readings)[0][0]
    w = np.zeros((len(y) - 1, model.p))
    if isinstance(first, tuple):
        first, w = first
    x = np.array(first, np.float64)
    x[0] = model.check_prior(prior).x0
    found = search_within(model, y, x, w, bounds, np.diag(np.sqrt(np.diag(W))), most, near)
    nothing: Any = None
    post = MotionSmoothed(
        model=model, x=found.x, cov=None, costate=found.costate, noise=found.w, noise_cov=None,
        readings=found.readings, residuals=found.residuals, weights=None, llf=float("nan"), converged=found.converged,
        message=found.message, iterations=found.iterations, cost=np.array(found.cost), filt=nothing, smooth=nothing,
        _base=found.x,
    )  # fmt: skip
    return MotionPlan(post, W, found.linear)


class Mpc:
    """A plan in a receding horizon: at each tick one linearisation about the last plan, moved on by a step.

    Parameters
    ----------
    system, dt, steps, torque_cov
        As in :func:`plan_motion`.
    goals : sequence of Goal
        Their steps count from now: ``at=steps`` is the end of the horizon.
    iterations : int
        Gauss–Newton steps a tick.
    **options
        Of :class:`MotionModel`.

    Attributes
    ----------
    plan : MotionPlan or None
        The last plan.

    Examples
    --------
    A pendulum is held at 1 rad against gravity:

    >>> import kfdyn as kf
    >>> goals = [kf.Goal(kf.sensors.JointPosition(1e-4), [1.0], at="always")]
    >>> hold = kf.Mpc(kf.models.pendulum(), 0.02, 25, goals, torque_cov=[100.0])
    >>> q, v = [0.9], [0.0]
    >>> for _ in range(100):
    ...     run = kf.simulate(kf.models.pendulum(), q, v, [0.0, 0.02], hold.step(q, v), method="euler")
    ...     q, v = run.q[-1], run.v[-1]
    >>> bool(abs(q[0] - 1.0) < 0.01)
    True
    """

    def __init__(
        self,
        system: System,
        dt: float,
        steps: int,
        goals: Sequence[Goal],
        torque_cov: ArrayLike,
        *,
        iterations: int = 1,
        **options: Any,
    ) -> None:
        self.system, self.dt, self.steps = system, dt, int(steps)
        self.goals, self.torque_cov, self.iterations, self.options = list(goals), torque_cov, int(iterations), options
        self.plan: MotionPlan | None = None

    def step(self, q: ArrayLike, v: ArrayLike, goals: Sequence[Goal] | None = None) -> Array:
        """Torque (nv,) to apply now, from the state (q, v); ``goals`` replace the old ones."""
        if goals is not None:
            self.goals = list(goals)
        first: Any = None
        if self.plan is not None:
            x, w = self.plan.post.x, self.plan.post.noise
            last = self.plan.post.model.advance(x[-1:], w[-1:], np.zeros((1, self.system.nv)), np.zeros(1, int))
            first = (np.concatenate([x[1:], last]), np.concatenate([w[1:], w[-1:]]))
        self.plan = plan_motion(
            self.system, self.dt, self.steps, q, v, self.goals, self.torque_cov, start=first,
            iterations=20 if first is None else self.iterations, search="line" if first is None else None,
            **self.options,
        )  # fmt: skip
        return np.array(self.plan.tau[0])


class Reached(NamedTuple):
    """A configuration that reaches goals.

    Attributes
    ----------
    q : ndarray, shape (nq,)
        The configuration.
    residuals : list of ndarray
        What each goal is missed by, in its tangent.
    cov : ndarray, shape (nv, nv)
        How far the goals leave q undetermined, given ``spread``.
    converged : bool
        Whether the search ended where it should.
    message : str
        How it ended.

    Examples
    --------
    >>> import kfdyn as kf
    >>> goal = kf.Goal(kf.sensors.JointPosition(0.0), [0.5])
    >>> kf.inverse_kinematics(kf.models.pendulum(), [goal], [0.0]).q.round(9)
    array([0.5])
    """

    q: Array
    residuals: list[Array]
    cov: Array
    converged: bool
    message: str


def inverse_kinematics(
    system: System,
    goals: Sequence[Goal],
    q0: ArrayLike,
    *,
    spread: float = 1e3,
    search: str | None = "damped",
    iterations: int = 200,
    tolerance: float = 1e-9,
) -> Reached:
    """Find a configuration that reaches goals: the most probable one, near q0 where goals leave a choice.

    Parameters
    ----------
    system : System
        The robot.
    goals : sequence of Goal
        Positions, poses, joints; ``at`` is ignored. Covariance 0 is exact.
    q0 : array, shape (nq,)
        Where to begin, and what is preferred.
    spread : float
        Deviation of q from q0, in rad and m, before the goals are known; a large one lets soft goals decide alone.
    search : {"damped", "line", None}
        As in :func:`kfdyn.iterated_kalman_smoother`.
    iterations : int
        How many steps at most.
    tolerance : float
        Converged when a step is below this many standard deviations.

    Returns
    -------
    Reached
        ``q, residuals, cov, converged, message``.

    Notes
    -----
    A smoothing of one step in time, Gauss–Newton on the manifold.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.models.puma560()
    >>> target = kf.frame_pose(arm, 0.5 * np.ones(6), "link_6").position
    >>> found = kf.inverse_kinematics(arm, [kf.Goal(kf.sensors.Position("link_6", 0.0), target)], 0.4 * np.ones(6))
    >>> found.converged, bool(np.abs(kf.frame_pose(arm, found.q, "link_6").position - target).max() < 1e-9)
    (True, True)
    """
    expect_system(system)
    nv = system.nv
    model = MotionModel(system, 1.0, [goal.sensor for goal in goals], np.ones(nv))
    readings = [np.asarray(goal.value, np.float64)[None] for goal in goals]
    P0 = np.concatenate([np.full(nv, float(spread) ** 2), np.zeros(nv)])
    post: Any = iterated_kalman_smoother(
        model, readings, prior=(q0, np.zeros(nv), P0), start="prior", search=search, iterations=iterations,
        tolerance=tolerance,
    )  # fmt: skip
    missed = [post.residual(i)[0] for i in range(len(readings))]
    return Reached(post.q[0], missed, np.asarray(post.cov)[0, :nv, :nv], bool(post.converged), post.message)
