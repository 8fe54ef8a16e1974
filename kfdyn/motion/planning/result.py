"""A plan of a motion as it was found, with its feedback law."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.control.solution import LinearPlan
from kfdyn.estimation.model.blocks import real_array
from kfdyn.motion.model import MotionModel
from kfdyn.motion.planning.search import Found
from kfdyn.multibody import System


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """A plan of a robot's motion, with its feedback law.

    Attributes
    ----------
    model : MotionModel
        The robot and its step.
    found : Found
        How the search ended.
    root : ndarray, shape (nv, p)
        L with L L* = W, the covariance of torques that weighs them.
    batched : bool
        Whether arrays have an axis of plans before all others; ``plan[i]`` is one of them.

    Examples
    --------
    A pendulum swings from rest to rest at the horizontal, exactly:

    >>> import kfdyn as kf
    >>> goals = [kf.Goal(kf.sensors.JointPosition(0.0), [1.5]), kf.Goal(kf.sensors.JointVelocity(0.0), [0.0])]
    >>> plan = kf.plan_motion(kf.models.pendulum(), 0.02, 50, [0.0], [0.0], goals, torque_cov=[4.0])
    >>> plan.converged, plan.q[-1].round(9), plan.tau.shape
    (True, array([1.5]), (50, 1))
    """

    model: MotionModel = field(repr=False)
    found: Found = field(repr=False)
    root: Array = field(repr=False)
    batched: bool = field(default=False, repr=False)

    def __repr__(self) -> str:
        name, steps = f"{type(self).__name__}({self.system.name!r}", f"{self.tau.shape[-2]} steps"
        if self.batched:
            return f"{name}, {len(self)} plans of {steps}, {self.converged.sum()} converged)"
        return f"{name}, {steps}, cost {self.cost:.6g}, {self.message})"

    def __len__(self) -> int:
        """Return the number of plans."""
        if not self.batched:
            raise TypeError("this is one plan, not a batch; plan.tau has a row for each of its steps")
        return len(self.found.message)

    def __getitem__(self, i: int) -> MotionPlan:
        """Plan i of a batch."""
        plans = len(self)
        if not isinstance(i, int | np.integer) or not -plans <= i < plans:
            raise IndexError(f"there is no plan {i!r}; the batch has plans 0 to {plans - 1}")
        i = int(i) % plans
        return MotionPlan(self.model, self.found.only(slice(i, i + 1)), self.root)

    def _told(self, value: Any) -> Any:
        """With an axis of plans where there is a batch."""
        return value if self.batched else value[0]

    @property
    def system(self) -> System:
        """The robot."""
        return self.model.system

    @cached_property
    def t(self) -> Array:
        """Times, (steps + 1,)."""
        return np.asarray(self.model.dt * np.arange(self.x.shape[-2]))

    @property
    def x(self) -> Array:
        """States (q, v), (..., steps + 1, nq + nv)."""
        return np.asarray(self._told(self.found.point.x))

    @property
    def q(self) -> Array:
        """Configurations, (..., steps + 1, nq)."""
        return self.x[..., : self.system.nq]

    @property
    def v(self) -> Array:
        """Velocities, (..., steps + 1, nv)."""
        return self.x[..., self.system.nq :]

    @cached_property
    def tau(self) -> Array:
        """Torques, (..., steps, nv); ``tau[k]`` leads from step k to k + 1."""
        return np.asarray(self._told(self.found.point.s) @ self.root.T)

    @property
    def converged(self) -> Any:
        """True if the plan is an optimum, keeps its limits and meets its exact goals."""
        return self.found.converged if self.batched else bool(self.found.converged[0])

    @property
    def message(self) -> Any:
        """The end of the search in words; a list for a batch."""
        return self._told(self.found.message)

    @property
    def iterations(self) -> Any:
        """Steps of the search."""
        return self.found.iterations if self.batched else int(self.found.iterations[0])

    @property
    def cost(self) -> Any:
        """½Σ τ*W⁻¹τ + ½Σ (goals missed)*cov⁻¹(goals missed)."""
        return self.found.point.cost if self.batched else float(self.found.point.cost[0])

    @property
    def multipliers(self) -> Array:
        """Costates of (q, v) in tangents, (..., steps, 2 nv): what a shift of state k + 1 would add to the cost."""
        return np.asarray(self._told(self.found.costate))

    @property
    def linear(self) -> LinearPlan:
        """The last linear-quadratic problem of the search, in deviations from the plan: its optimum is to stay."""
        return self.found.linear

    @cached_property
    def gains(self) -> Array:
        """Feedback gains (..., steps, nv, 2 nv): what τ(k) gains by a deviation of (q, v) at step k, in tangents."""
        return np.asarray(self.root @ self._told(self.found.gains))

    def control(self, k: int, q: ArrayLike, v: ArrayLike) -> Array:
        """Torque of step k from where the robot is: τ(k) + gains(k) (q ⊖ q(k), v − v(k)).

        Parameters
        ----------
        k : int
            The step; steps beyond the last one get its torque.
        q, v : array, shape (..., nq), (..., nv)
            The state, of a batch a row for each plan.

        Returns
        -------
        ndarray, shape (..., nv)
        """
        if not isinstance(k, int | np.integer) or k < 0:
            raise ShapeError(f"k must be a step, a whole number from 0 on, got {k!r}; of a time t it is int(t / dt)")
        k = min(int(k), self.tau.shape[-2] - 1)
        x = np.concatenate([real_array(q, "q"), real_array(v, "v")], axis=-1)
        planned, n = self.x[..., k, :], self.model.n
        if x.shape != planned.shape:
            raise ShapeError(f"q and v together have shape {x.shape}, but a state of the plan has {planned.shape}")
        if not np.isfinite(x).all():
            raise ModelError(f"q or v has entries that are not finite at step {k}: the motion has left the plan")
        away = self.model.states.minus(x.reshape(-1, x.shape[-1]), planned.reshape(-1, x.shape[-1]))
        return np.asarray(self.tau[..., k, :] + (self.gains[..., k, :, :] @ away.reshape(*x.shape[:-1], n, 1))[..., 0])

    def plot(self, hinges: Any = None) -> Any:
        """Draw q, v and the torque of each hinge over time; returns the figure."""
        from kfdyn.motion.drawing import chosen, draw_columns

        if self.batched:
            raise ModelError("this is a batch; draw one of its plans, plans[i].plot()")
        model = self.model
        names = [name[2:-1] for name in model.state_names[: model.system.nv]]
        moved = model.states.minus(self.x, np.broadcast_to(self.x[0], self.x.shape))[:, : model.system.nv]
        q, title = (self.q, "position") if self.system.nq == self.system.nv else (moved, "moved since the start")
        columns = [
            (title, self.t, q, None),
            ("velocity", self.t, self.v, None),
            ("torque", self.t[:-1], self.tau, None),
        ]
        return draw_columns(columns, names, chosen(names, hinges))
