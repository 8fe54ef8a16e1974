"""Plans of a robot's motion: controls are noise, goals are readings, and an exact goal is a reading without noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.nonlinear.arguments import covariance
from kfdyn.motion.model import MotionModel
from kfdyn.motion.planning.goal import Goal, listed
from kfdyn.motion.planning.limits import Bounds
from kfdyn.motion.planning.result import MotionPlan
from kfdyn.motion.planning.search import Search
from kfdyn.motion.planning.shooting import Shooting
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system


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
        The start.
    goals : sequence of Goal
        What to reach and when.
    torque_cov : number, (nv,) or (nv, nv)
        W: variances of torques, the squares of what is "much"; 0 for a hinge without a motor.
    torque_limits, velocity_limits, position_limits : True, number, array (nv,), or pair (lower, upper), optional
        True: those of the system, from its file. A number or an array is a limit in both directions; inf for none. W
        must be diagonal then.
    start : array (steps + 1, nq + nv) or MotionPlan, optional
        States to begin with, which need not be a motion; the robot held at rest at q0 if not given.
    newton : bool
        Whether to use second derivatives of the dynamics. Without them a step is cheaper, and there are more of them.
    iterations : int
        How many steps of the search at most.
    tolerance : float
        Converged when a step changes no torque by more than this many of its standard deviations. As Newton's steps
        square the error, the plan is then better than that.
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
    shooting.bounds.expect_inside(shooting.x0[0], system)
    point = shooting.point(*first_guess(shooting, start))
    return MotionPlan(shooting.model, Search(shooting, iterations, tolerance, newton).run(point), shooting.root)


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
    W = np.asarray(torque_cov, np.float64)
    effort = covariance(np.full(system.nv, W) if W.ndim == 0 else W, "torque_cov", system.nv)
    if effort.ndim != 2 or not effort.any():
        raise ModelError(
            "torque_cov must be one covariance for all steps, and not all 0: nothing would move the plan; 100 is "
            '"ten newton metres are much"'
        )
    model = MotionModel(system, dt, [goal.sensor for goal in asked], effort, **options)
    y = model.check_readings([goal.readings(system, int(steps)) for goal in asked])[0]
    x0 = model.check_prior((q0, v0, np.zeros(2 * system.nv))).x0[None]
    bounds = Bounds.of(system, *limits)
    return Shooting(model, y, x0, _root(effort, bounds), bounds)


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
    if isinstance(start, MotionPlan):
        x, s = start.found.point.x.copy(), start.found.point.s
        if x.shape[1:] != shape or s.shape[1:] != (shooting.steps, shooting.p):
            raise ShapeError(f"start has {len(start.tau)} steps and the plan {shooting.steps}; plan the same steps")
    else:
        if start is None:
            x = np.tile(shooting.x0[:, None], (1, shape[0], 1))
            x[:, 1:, system.nq :] = 0.0
        else:
            x = np.array(start, np.float64)[None]
            if x.shape[1:] != shape or not np.isfinite(x).all():
                raise ShapeError(f"start must be finite states of shape {shape}, got shape {x.shape[1:]}")
        s = shooting.controls_along(x)
    x[:, 0] = shooting.x0
    return x, np.clip(s, shooting.low, shooting.high)
