"""Poses that reach goals: a smoothing of one step in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.model.blocks import real_array
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
        How it ended, and which goal is missed by how much if it has not converged.

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
        Positions, poses, joints; ``at`` is ignored. Covariance 0 is exact: no such entry may say again what others
        say, or be one that no hinge moves.
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
    if not goals:
        raise ModelError("inverse kinematics needs at least one goal; without one q0 is as good as any")
    q0 = real_array(q0, "q0")
    if q0.ndim != 1:
        raise ShapeError(f"q0 must be one configuration, ({system.nq},), got shape {q0.shape}; call it for each")
    model = MotionModel(system, 1.0, [goal.sensor for goal in goals], np.ones(nv))
    readings = [goal._replace(at=-1).readings(system, 1)[..., 1:, :] for goal in goals]
    for i, reading in enumerate(readings):
        if reading.ndim > 2:
            raise ShapeError(
                f"goals[{i}] has values for {len(reading)} robots; a pose is found for one, call it for each"
            )
    P0 = np.concatenate([np.full(nv, float(spread) ** 2), np.zeros(nv)])
    try:
        post: Any = iterated_kalman_smoother(
            model, readings, prior=(q0, np.zeros(nv), P0), start="prior", search=search, iterations=iterations,
            tolerance=tolerance,
        )  # fmt: skip
    except SingularError as error:
        if error.output is None:
            raise
        raise SingularError(_undecided(model, goals, q0, int(error.output))) from None
    missed = [post.residual(i)[0] for i in range(len(readings))]
    told = post.message if post.converged else _told(goals, missed, int(post.iterations), iterations)
    return Reached(post.q[0], missed, np.asarray(post.cov)[0, :nv, :nv], bool(post.converged), told)


def _undecided(model: MotionModel, goals: list[Goal], q0: Array, row: int) -> str:
    """Words for an exact entry that nothing is left to meet with."""
    i = next(i for i, own in enumerate(model.seen.tangents_of) if own.start <= row < own.stop)
    name = f"goals[{i}] {goals[i].sensor.name}, entry {row - model.seen.tangents_of[i].start}"
    x = np.concatenate([q0, np.zeros(model.system.nv)])[None]
    _, H, _ = model.linear_read(x, np.zeros((1, model.p)), None, np.zeros(1, np.int64))
    why = "the exact entries before it decide it already" if H[0, row].any() else "no hinge moves it"
    return f"{name}, is exact, but {why}; give it a variance in the covariance of its sensor, or leave it out"


def _told(goals: list[Goal], missed: list[Array], taken: int, iterations: int) -> str:
    """Words for a search that has not converged: what it has left, of exact goals first."""
    exact = [i for i, goal in enumerate(goals) if not np.any(goal.sensor.cov)]
    worst = max(exact or range(len(goals)), key=lambda i: float(np.linalg.norm(missed[i])))
    stopped = taken >= iterations
    end = f"stopped after {taken} step{'s' * (taken != 1)}" if stopped else "no shorter step leads nearer"
    return (
        f"not converged: {end}; goals[{worst}] {goals[worst].sensor.name} is missed by "
        f"{np.linalg.norm(missed[worst]):.3g}: it is out of reach, alone or beside the others, or far from q0; begin "
        f"from another q0{', raise iterations,' * stopped} or give it a covariance"
    )
