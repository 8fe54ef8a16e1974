"""A plan in a receding horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import real_array
from kfdyn.motion.planning.goal import Goal, listed
from kfdyn.motion.planning.plan import bind, first_guess
from kfdyn.motion.planning.quadratic import Step
from kfdyn.motion.planning.result import MotionPlan
from kfdyn.motion.planning.search import Found, Search
from kfdyn.motion.planning.shooting import Point
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system

#: Steps of the search for the first plan.
FIRST = 20


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
    torque_limits, velocity_limits, position_limits : optional
        As in :func:`plan_motion`.
    **options
        Of :class:`MotionModel`.

    Attributes
    ----------
    goals : list of Goal
        Those of the last tick.

    Notes
    -----
    A tick is one linearisation and one linear-quadratic problem, the "real-time iteration": it takes a whole step and
    does not ask whether that was wise. Give goals at every step ("always"), of velocities, too: what is asked for at
    the end of the horizon alone is put off for ever. The first state must be within position limits. A later one that
    is not, by noise or a push, is led back in one step by whatever torque that takes: give torque_limits, too.

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
        torque_limits: Any = None,
        velocity_limits: Any = None,
        position_limits: Any = None,
        **options: Any,
    ) -> None:
        expect_system(system)
        if not isinstance(iterations, int | np.integer) or iterations < 1:
            raise ModelError(f"iterations must be a whole number of at least 1, got {iterations!r}")
        self.system, self.dt, self.steps, self.iterations = system, dt, steps, int(iterations)
        limits = torque_limits, velocity_limits, position_limits
        self._given = torque_cov, limits, options
        self._point: Point | None = None
        self._step: Step | None = None
        self._aim(goals)

    def _aim(self, goals: Sequence[Goal]) -> None:
        """Take goals; what does not depend on where the robot is, is done once."""
        self.goals = listed(goals)
        system, (torque_cov, limits, options) = self.system, self._given
        still = np.zeros(system.nv)
        shooting = bind(system, self.dt, self.steps, system.neutral(), still, self.goals, torque_cov, limits, options)
        if shooting.batched:
            raise ModelError("Mpc plans for one robot: its goals must not have an axis of plans")
        self._search = Search(shooting, FIRST, 1e-6, newton=False)
        self._search.elsewhere = "or plan more steps ahead"

    def step(self, q: ArrayLike, v: ArrayLike, goals: Sequence[Goal] | None = None) -> Array:
        """Torque (nv,) to apply now, from the state (q, v); ``goals`` replace the old ones."""
        if goals is not None:
            self._aim(goals)
        search, shooting = self._search, self._search.of
        q, v = real_array(q, "q"), real_array(v, "v")
        if q.shape != (self.system.nq,) or v.shape != (self.system.nv,) or not np.isfinite([*q, *v]).all():
            raise ShapeError(
                f"q and v must be finite, ({self.system.nq},) and ({self.system.nv},), got shapes {q.shape}, {v.shape}"
            )
        shooting.x0 = np.concatenate([q, v])[None]
        if self._point is None:
            shooting.bounds.expect_inside(shooting.x0, self.system)
            found = search.run(shooting.point(*first_guess(shooting, None)))
            assert found.step is not None
            self._point, self._step = found.point, found.step
            search.active = found.step.active
            return np.asarray(self._point.s[0, 0] @ shooting.root.T)
        x, s = self._moved_on()
        x[:, 0] = shooting.x0
        for _ in range(self.iterations):
            T = shooting.residuals(x)
            point = Point(x, s, np.full(1, np.nan), np.zeros((1, shooting.steps, shooting.n)), T)
            linear = shooting.linear(point)
            point = point._replace(gaps=shooting.gaps(x, linear.ahead))
            step = search.step(point, linear)
            x, s = shooting.moved(point, step.x, step.u)
            search.active = step.active
        self._point, self._step = Point(x, s, *point[2:]), step
        return np.asarray(s[0, 0] @ shooting.root.T)

    def _moved_on(self) -> tuple[Array, Array]:
        """The last plan from its second step on, with one more of its last torque; so do its limits that press."""
        assert self._point is not None
        x, s = self._point.x, self._point.s
        last = self._search.of.advance(x[:, -1], s[:, -1])
        active = self._search.active
        self._search.active = np.concatenate([active[:, 1:], active[:, -1:]], axis=1)
        self._search.warm = self._warm_moved_on(self._search.warm)
        return np.concatenate([x[:, 1:], last[:, None]], axis=1), np.concatenate([s[:, 1:], s[:, -1:]], axis=1)

    def _warm_moved_on(self, warm: tuple[Array, Array] | None) -> tuple[Array, Array] | None:
        """Slacks and multipliers a step further; a limit that presses near the end of the horizon stays there, too."""
        if warm is None:
            return None
        of = self._search.of
        states = 2 * of.n * of.steps  # of states come first, then those of controls

        def moved(part: Array) -> Array:
            rows = [some.reshape(of.steps, -1) for some in np.split(part, [states])]
            return np.concatenate([np.concatenate([each[1:], each[-1:]]).ravel() for each in rows])

        slack, multipliers = warm
        return np.minimum(slack, moved(slack)), np.maximum(multipliers, moved(multipliers))

    @property
    def plan(self) -> MotionPlan | None:
        """The last plan, as far as its tick has found it."""
        if self._point is None or self._step is None:
            return None
        shooting, step = self._search.of, self._step
        point = shooting.point(self._point.x, self._point.s)
        told = [f"{self.iterations} iteration{'s' * (self.iterations > 1)} a tick"]
        taken = np.full(1, self.iterations)
        found = Found(point, step.costate, step.multipliers, step.gains, np.zeros(1, bool), told, taken, step)
        return MotionPlan(shooting.model, found, shooting.root)
