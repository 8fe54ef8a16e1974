"""A plan in a receding horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.motion.planning.goal import Goal
from kfdyn.motion.planning.plan import plan_motion
from kfdyn.motion.planning.result import MotionPlan
from kfdyn.multibody import System


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
            first = self.plan.moved_on()
        self.plan = plan_motion(
            self.system, self.dt, self.steps, q, v, self.goals, self.torque_cov, start=first,
            iterations=20 if first is None else self.iterations, newton=first is None, **self.options,
        )  # fmt: skip
        return np.array(self.plan.tau[0])
