"""Poses that reach goals: a smoothing of one step in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.estimation.nonlinear.smoother import iterated_kalman_smoother
from kfdyn.motion.model import MotionModel
from kfdyn.motion.planning.goal import Goal, listed
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system


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
    goals = listed(goals)
    model = MotionModel(system, 1.0, [goal.sensor for goal in goals], np.ones(nv))
    readings = [np.asarray(goal.value, np.float64)[None] for goal in goals]
    P0 = np.concatenate([np.full(nv, float(spread) ** 2), np.zeros(nv)])
    post: Any = iterated_kalman_smoother(
        model, readings, prior=(q0, np.zeros(nv), P0), start="prior", search=search, iterations=iterations,
        tolerance=tolerance,
    )  # fmt: skip
    missed = [post.residual(i)[0] for i in range(len(readings))]
    return Reached(post.q[0], missed, np.asarray(post.cov)[0, :nv, :nv], bool(post.converged), post.message)
