"""A robot's motion as found by filters and smoothers: the engine's results in the robot's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.estimation.nonlinear.results import NonlinearFiltered, NonlinearSmoothed
from kfdyn.multibody import jacobian


class _Moves:
    """Shared by both results: q, v, biases, wrenches, and their standard deviations."""

    model: Any
    x: Array

    @property
    def system(self) -> Any:
        """The robot."""
        return self.model.system

    @property
    def q(self) -> Array:
        """Configurations, (..., N, nq)."""
        return self.x[..., : self.model.system.nq]

    @property
    def v(self) -> Array:
        """Velocities, (..., N, nv)."""
        nq = self.model.system.nq
        return self.x[..., nq : nq + self.model.system.nv]

    @property
    def t(self) -> Array:
        """Times of the steps, from 0."""
        return np.asarray(self.model.dt * np.arange(self.x.shape[-2]))

    @property
    def biases(self) -> dict[str, Array]:
        """Drifting biases by the names of their sensors, (..., N, size)."""
        return {name: self.x[..., place] for name, place in self.model.bias_places.items()}

    @property
    def wrenches(self) -> dict[str, Array]:
        """External forces [moment; force] by the frames at which they act, world axes, (..., N, 6)."""
        return {name: self.x[..., place] for name, place in self.model.wrench_places.items()}

    def std(self, of: str | None = None) -> Array:
        """Standard deviations of "q", "v", a bias or a wrench by its name, or of all tangent components."""
        deviations = super().std()  # type: ignore[misc]
        if of is None:
            return np.asarray(deviations)
        return np.asarray(deviations[..., self.model.tangent_place(of)])

    def position_cov(self, frame: str) -> Array:
        """Covariances of the position of a body or frame, world axes, (..., N, 3, 3): J S J*."""
        if self.cov is None:  # type: ignore[attr-defined]
            raise ModelError("the covariances were switched off; call with covariances=True")
        nv, J = self.system.nv, jacobian(self.system, self.q, frame)[..., 3:, :]
        S = self.cov[..., :nv, :nv]  # type: ignore[attr-defined]
        return np.asarray(J @ S @ np.swapaxes(J, -1, -2))

    def _part(self, sensor: int | str, rows: Array) -> Array:
        """Return the part of all innovations or residuals that belongs to a sensor."""
        return rows[..., self.model.seen.tangents_of[self.model.sensor_index(sensor)]]

    def plot(self, hinges: Any = None) -> Any:
        """Draw q, v and, where it is known, the force of each hinge over time; bands are of two standard deviations."""
        from kfdyn.motion.drawing import draw_motion

        return draw_motion(self, hinges)


@dataclass(frozen=True, eq=False)
class MotionFiltered(_Moves, NonlinearFiltered):
    """The estimate of a robot's motion after each reading, by an extended or unscented filter.

    Attributes
    ----------
    model, x, cov, x_predicted, cov_predicted, eps, nu, D, observed, llf, kind
        As in :class:`NonlinearFiltered`; x is (q, v), then biases and wrenches.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> swing = kf.MotionModel(kf.models.pendulum(), 0.01, [kf.sensors.JointPosition(1e-4)], force_noise=[0.01])
    >>> kf.extended_kalman_filter(swing, [np.zeros((5, 1))], prior=([0.0], [0.0], [1.0, 1.0])).v.shape
    (5, 1)
    """

    model: Any = field(repr=False)

    def __repr__(self) -> str:
        return NonlinearFiltered.__repr__(self)

    def innovation(self, sensor: int | str) -> Array:
        """Innovations of one sensor in its tangent, NaN where it was silent, (..., N, m)."""
        return self._part(sensor, self.innovations)


@dataclass(frozen=True, eq=False)
class MotionSmoothed(_Moves, NonlinearSmoothed):
    """The most probable motion of a robot given all readings, and its covariances.

    Attributes
    ----------
    model, x, cov, costate, noise, noise_cov, readings, residuals, weights, llf, converged, message, iterations, cost
        As in :class:`NonlinearSmoothed`; x is (q, v), then biases and wrenches.
    filt, smooth
        The engine's results.

    Examples
    --------
    A pendulum whose encoder is read with an error of 0.01 rad, and which nobody drives:

    >>> import numpy as np, kfdyn as kf
    >>> swing = kf.MotionModel(kf.models.pendulum(), 0.01, [kf.sensors.JointPosition(1e-4)], force_noise=[0.01])
    >>> post = kf.iterated_kalman_smoother(swing, [0.3 * np.cos(0.04 * np.arange(50))[:, None]])
    >>> post.converged, post.q.shape, post.force.shape
    (True, (50, 1), (49, 1))
    """

    model: Any = field(repr=False)

    def __repr__(self) -> str:
        return NonlinearSmoothed.__repr__(self)

    @property
    def force(self) -> Array:
        """The generalised forces that nobody ordered, (..., N−1, nv), or N rows where sensors feel accelerations."""
        return self.noise[..., : self.model.system.nv]

    @property
    def force_cov(self) -> Array:
        """Their covariances, (..., N−1, nv, nv)."""
        if self.noise_cov is None:
            raise ModelError("the covariances were switched off; call with covariances=True")
        nv = self.model.system.nv
        return self.noise_cov[..., :nv, :nv]

    @property
    def a(self) -> Array:
        """Accelerations of each step, (v(k+1) − v(k))/dt, (..., N−1, nv)."""
        return np.asarray(np.diff(self.v, axis=-2) / self.model.dt)

    def std(self, of: str | None = None) -> Array:
        """Standard deviations of "q", "v", "a", "force", a bias or a wrench by name, or of all tangent components."""
        if of == "a":
            own, lagged, cov = self.model.tangent_place("v"), self.lagged_cov, self.cov
            both = np.diagonal(cov, axis1=-2, axis2=-1)[..., own]  # type: ignore[arg-type]
            between = np.diagonal(lagged, axis1=-2, axis2=-1)[..., own]
            square = both[..., 1:, :] + both[..., :-1, :] - 2.0 * between
            return np.asarray(np.sqrt(np.clip(square, 0.0, None)) / self.model.dt)
        if of == "force":
            return np.sqrt(np.clip(np.diagonal(self.force_cov, axis1=-2, axis2=-1), 0.0, None))
        return super().std(of)

    def reading(self, sensor: int | str) -> Array:
        """Predicted readings of one sensor, by place or name, (..., N, size)."""
        return self.readings[..., self.model.seen.points_of[self.model.sensor_index(sensor)]]

    def residual(self, sensor: int | str) -> Array:
        """Residuals of one sensor in its tangent, NaN where it was silent, (..., N, m)."""
        return self._part(sensor, self.residuals)
