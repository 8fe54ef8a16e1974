"""Plans of a robot's motion: controls are noise, goals are readings, and an exact goal is a reading without noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.model.blocks import real_array
from kfdyn.estimation.nonlinear.arguments import covariance
from kfdyn.motion.model import MotionModel
from kfdyn.motion.planning.goal import Goal, listed
from kfdyn.motion.planning.limits import Bounds
from kfdyn.motion.planning.result import MotionPlan
from kfdyn.motion.planning.search import Search, merged
from kfdyn.motion.planning.shooting import Shooting
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system

#: Plans of a batch that are searched for side by side: more would be larger than caches.
TOGETHER = 16
#: What a plan passes on to its MotionModel.
OPTIONS = {"method", "damping", "stiffness", "friction", "friction_speed", "rest", "gravity"}


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
    newton: bool = True,
    iterations: int = 500,
    tolerance: float = 1e-6,
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
        The start; (plans, nq) and (plans, nv), or values of goals with such an axis, are a batch of plans.
    goals : sequence of Goal
        What to reach and when.
    torque_cov : number, (nv,) or (nv, nv)
        W: variances of torques, the squares of what is "much"; 0 for a hinge without a motor.
    torque_limits, velocity_limits, position_limits : True, number, array (nv,), or pair (lower, upper), optional
        True: those of the system, from its file. A number or an array is a limit in both directions; inf for none. W
        must be diagonal then.
    start : array (..., steps + 1, nq + nv) or MotionPlan, optional
        States to begin with, which need not be a motion; the robot held at rest at q0 if not given.
    newton : bool
        Whether to use second derivatives of the dynamics. Without them a step is cheaper, and there are more of them.
    iterations : int
        How many steps of the search at most.
    tolerance : float
        Converged when a step changes no torque by more than this many of its standard deviations. As Newton's steps
        square the error, the plan is then better than that.
    **options
        Of :class:`MotionModel`: ``method``, ``damping``, ``stiffness``, ``friction``, ``friction_speed``, ``rest``,
        ``gravity``.

    Returns
    -------
    MotionPlan
        ``t, q, v, tau, gains, cost, multipliers, converged, message``, ``control(k, q, v)``, ``plot()``. Of a batch all
        have an axis of plans before others, and ``plan[i]`` is one of them.

    Raises
    ------
    ModelError, ShapeError
        If a goal has another size than its sensor, or is set for the start.
    SingularError
        If exact goals say the same twice, or fewer controls lead to them than they have rows.

    Notes
    -----
    Newton's method: each step is a linear-quadratic problem, that is one filter and one smoother in time, O(steps ·
    nv³), and a rollout under its feedback law; the second derivatives of the dynamics are taken in as far as they leave
    the problem a minimum. A torque at its limit is a locked hinge. Feedback gains are those of the last problem, exact
    goals included. Sources: R86 section 6 and "control design"; Jacobson and Mayne (1970) on the rollout.

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
    if not (isinstance(iterations, int | np.integer) and iterations >= 0 and tolerance > 0.0):
        raise ModelError(f"iterations must be 0 or more, and tolerance positive, got {iterations!r} and {tolerance!r}")
    limits = torque_limits, velocity_limits, position_limits
    shooting = bind(system, dt, steps, q0, v0, goals, torque_cov, limits, options)
    x, s = first_guess(shooting, start)
    several = shooting.batched and not shooting.on_states and not shooting.exact.any()
    parts, each = [], TOGETHER if several else 1
    for first in range(0, shooting.plans, each):
        which = np.arange(first, min(first + each, shooting.plans))
        some = shooting.only(which) if shooting.batched else shooting
        try:
            some.bounds.expect_inside(some.x0, system)
            found = Search(some, iterations, tolerance, newton).run(some.point(x[which], s[which]))
        except (ModelError, SingularError) as error:
            if shooting.batched:
                error.args = (f"{_among(which)}: {error}", *error.args[1:])
            raise
        parts.append((which, found))
    return MotionPlan(shooting.model, merged(parts), shooting.root, shooting.batched)


def _among(which: NDArray[np.intp]) -> str:
    """Name the place in a batch from which an error comes."""
    return f"plan {which[0]}" if len(which) == 1 else f"a plan of {which[0]} to {which[-1]}"


def bind(
    system: System, dt: float, steps: int, q0: ArrayLike, v0: ArrayLike, goals: Sequence[Goal], torque_cov: ArrayLike,
    limits: tuple[Any, Any, Any], options: dict[str, Any],
) -> Shooting:  # fmt: skip
    """Check what :func:`plan_motion` is given; ``limits`` of torques, velocities and positions."""
    expect_system(system)
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ShapeError(f"steps must be a whole number of at least 1, got {steps!r}")
    asked = listed(goals)
    if not asked:
        raise ModelError("a plan needs at least one goal; without one the best plan is to do nothing")
    W = real_array(torque_cov, "torque_cov")
    effort = covariance(np.full(system.nv, W) if W.ndim == 0 else W, "torque_cov", system.nv)
    if effort.ndim != 2:
        raise ModelError("torque_cov must be one covariance for all steps")
    if not effort.any():
        raise ModelError(
            "torque_cov is 0 at every hinge, so that there is no motor at all and nothing moves the plan; give one a "
            'variance: 100 is "ten newton metres are much"'
        )
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        raise ModelError(f"there is no option {unknown[0]!r}; beside the limits there are {', '.join(sorted(OPTIONS))}")
    model = MotionModel(system, dt, [goal.sensor for goal in asked], effort, **options)
    y, batched = model.check_readings([goal.readings(system, int(steps)) for goal in asked])
    x0 = _starts(model, q0, v0)
    batched = batched or len(x0) > 1 or np.ndim(q0) > 1 or np.ndim(v0) > 1
    if len(y) != len(x0) and 1 not in (len(y), len(x0)):
        raise ShapeError(f"there are {len(x0)} starts, and goals for {len(y)} plans; give one of each to every plan")
    plans, bounds = max(len(y), len(x0)), Bounds.of(system, *limits)
    y, x0 = (np.broadcast_to(part, (plans, *part.shape[1:])) for part in (y, x0))
    return Shooting(model, y, x0, _root(effort, bounds), bounds, batched)


def _starts(model: MotionModel, q0: ArrayLike, v0: ArrayLike) -> Array:
    """States (plans, nx) to start from; each looked at as one is."""
    system = model.system
    q, v = real_array(q0, "q0"), real_array(v0, "v0")
    if v.shape[-1:] != (system.nv,) or not np.isfinite(v).all():
        raise ShapeError(f"v0 must be finite velocities, ({system.nv},), got shape {v.shape}")
    if q.ndim < 2 and v.ndim < 2:
        return model.check_prior((q, v, np.zeros(2 * system.nv))).x0[None]
    try:
        rows = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        rows = ()
    if len(rows) != 1 or not rows[0]:
        raise ShapeError(
            f"q0 and v0 of a batch must be (plans, {system.nq}) and (plans, {system.nv}), got {q.shape}, {v.shape}"
        )
    q, v = np.broadcast_to(q, (*rows, q.shape[-1])), np.broadcast_to(v, (*rows, v.shape[-1]))
    return np.stack([model.check_prior((one, speed, np.zeros(2 * system.nv))).x0 for one, speed in zip(q, v)])


def _root(W: Array, bounds: Bounds) -> Array:
    """L (nv, p) with L L* = W, a column for each direction in which there is torque at all."""
    if not np.count_nonzero(W - np.diag(np.diag(W))):
        root = np.diag(np.sqrt(np.diag(W)))
        return root[:, root.any(axis=0)]
    if bounds.on_torques:
        raise ModelError("torque_limits beside a torque_cov that is not diagonal are not served; give variances")
    values, vectors = np.linalg.eigh(W)
    keep = values > 1e-14 * values.max()
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))


def first_guess(shooting: Shooting, start: ArrayLike | MotionPlan | None) -> tuple[Array, Array]:
    """States and controls to begin with: held at rest, or the torques that given states take."""
    system = shooting.model.system
    shape = (shooting.steps + 1, shooting.nx)
    plans = shooting.plans
    if isinstance(start, MotionPlan):
        x, s = start.found.point.x, start.found.point.s
        if x.shape[1:] != shape or s.shape[1:] != (shooting.steps, shooting.p):
            raise ShapeError(f"start has {s.shape[1]} steps and the plan {shooting.steps}; plan the same steps")
        if len(x) not in (1, plans):
            raise ShapeError(f"start has {len(x)} plans, and there are {plans}; give one, or one for each")
        x, s = np.tile(x, (plans // len(x), 1, 1)), np.tile(s, (plans // len(s), 1, 1))
    else:
        if start is None:
            x = np.tile(shooting.x0[:, None], (1, shape[0], 1))
            x[:, 1:, system.nq :] = 0.0
        else:
            x = real_array(start, "start")
            if x.shape not in (shape, (plans, *shape)) or not np.isfinite(x).all():
                raise ShapeError(f"start must be finite states of shape {shape}, got shape {x.shape}")
            x = np.tile(x, (plans, 1, 1)) if x.ndim == 2 else x.copy()
        s = shooting.controls_along(x)
    x[:, 0] = shooting.x0
    return x, np.clip(s, shooting.low, shooting.high)
