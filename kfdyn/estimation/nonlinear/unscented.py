"""The unscented Kalman filter (UKF): moments by sigma points, on the manifold where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import FloatArray, real_array
from kfdyn.estimation.nonlinear.extended import Belief, Corrected, joint, moved, run, steps
from kfdyn.estimation.nonlinear.functions import expect_finite_rows
from kfdyn.estimation.nonlinear.manifold import Manifold
from kfdyn.estimation.nonlinear.recursions import sigma_points
from kfdyn.estimation.nonlinear.results import NonlinearFiltered
from kfdyn.estimation.nonlinear.update import cancelled, factor, left, symmetric, update

if TYPE_CHECKING:
    from kfdyn.estimation.nonlinear.model import NonlinearModel

_MEAN_STEPS, _MEAN_TOLERANCE = 30, 1e-13


class SigmaPoints:
    """Points x ⊕ {0, ±γ L_i} with weights, L a factor of the covariance.

    ::

        λ = α²(d + κ) − d,   γ = √(d + λ),   W₀ = λ/(d + λ),   W_i = 1/(2(d + λ)),   W₀ᶜ = W₀ + 1 − α² + β

    Parameters
    ----------
    alpha, beta, kappa : float
        Merwe's scaled points. The default has positive weights in any dimension, so that no covariance can become
        indefinite. α = 1, β = 0, κ = 0 are the cubature points: W₀ is 0 and the centre is not used.

    Examples
    --------
    >>> points = SigmaPoints(alpha=1.0, beta=0.0, kappa=1.0)
    >>> points.weights(2)[0]
    array([0.33333333, 0.16666667, 0.16666667, 0.16666667, 0.16666667])
    """

    def __init__(self, alpha: float = 1.0, beta: float = 0.0, kappa: float = 1.0) -> None:
        given = real_array([alpha, beta, kappa], "alpha, beta and kappa of sigma points")
        self.alpha, self.beta, self.kappa = given.tolist()
        self._weights: dict[int, tuple[FloatArray, FloatArray, float]] = {}

    def weights(self, d: int) -> tuple[FloatArray, FloatArray, float]:
        """Weights of means and of covariances, (2d + 1,), and γ."""
        known = self._weights.get(d)
        if known is None:
            known = self._weights[d] = self._weights_of(d)
        return known

    def _weights_of(self, d: int) -> tuple[FloatArray, FloatArray, float]:
        spread = self.alpha**2 * (d + self.kappa)
        if not spread > 0.0:
            raise ModelError(
                f"sigma points need α²(d + κ) > 0, got α = {self.alpha}, κ = {self.kappa} in dimension d = {d}; "
                "κ = 0 serves always"
            )
        mean = np.full(2 * d + 1, 0.5 / spread)
        mean[0] = (spread - d) / spread
        cov = mean.copy()
        cov[0] += 1.0 - self.alpha**2 + self.beta
        return mean, cov, float(np.sqrt(spread))

    def offsets(self, P: FloatArray) -> FloatArray:
        """Tangents of the points, (B, 2d + 1, d)."""
        rows, d = P.shape[:2]
        gamma, out = self.weights(d)[2], np.empty((rows, 2 * d + 1, d))
        if sigma_points.spread(P.ravel(), gamma, out.reshape(-1), np.empty(d * d), d, rows) < 0:
            return out
        columns = gamma * np.swapaxes(factor(P, bool((self.weights(d)[1] < 0.0).any())), 1, 2)
        return np.concatenate([np.zeros_like(columns[:, :1]), columns, -columns], axis=1)


def gathered(
    points: FloatArray, weights: tuple[FloatArray, FloatArray, float], space: Manifold, base: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted mean of points (B, S, nx), their tangents at it (B, S, n), and base + Σ W δδ*, (B, n, n)."""
    batch, count, n = points.shape
    mean_weights, cov_weights, _ = weights
    if space.is_vector_space:
        mean, d, cov = np.empty((batch, n)), np.empty((batch, count, n)), np.empty((batch, n, n))
        step = n * n if base.ndim == 3 else 0
        given = (points.ravel(), mean_weights, cov_weights, base.ravel(), step)
        sigma_points.moments(*given, mean.reshape(-1), d.reshape(-1), cov.reshape(-1), count, n, batch)
        return mean, d, cov
    mean, d = mean_of(points, mean_weights, space)
    return mean, d, symmetric(np.swapaxes(d, 1, 2) @ (cov_weights[:, None] * d)) + base


def mean_of(points: FloatArray, weights: FloatArray, space: Manifold) -> tuple[FloatArray, FloatArray]:
    """Weighted mean of points (B, S, nx) on a manifold, by iteration, and their tangents at it, (B, S, n)."""
    batch, count = points.shape[:2]
    rows = points.reshape(batch * count, -1)
    mean = points[:, 0]
    for _ in range(_MEAN_STEPS):
        d = np.asarray(space.minus(rows, np.repeat(mean, count, axis=0))).reshape(batch, count, -1)
        step = weights @ d
        mean = np.asarray(space.plus(mean, step))
        if np.abs(step).max(initial=0.0) <= _MEAN_TOLERANCE * (1.0 + np.abs(d).max(initial=0.0)):
            break
    d = np.asarray(space.minus(rows, np.repeat(mean, count, axis=0))).reshape(batch, count, -1)
    return mean, d


class Unscented:
    """The two halves of an unscented filter's step."""

    name = "unscented"

    def __init__(self, points: SigmaPoints) -> None:
        self.points = points

    def correct(self, model: NonlinearModel, prior: Belief, y: FloatArray, u: FloatArray | None, k: int) -> Corrected:
        """Take the reading y (B, my) of step k."""
        x, P = prior
        batch, n = len(x), model.n
        if model.carries_noise:
            P = joint(P, model.process_noise(steps(k, batch)))
        weights, adds = self.points.weights(P.shape[-1]), model.readings.adds
        offsets = self.points.offsets(P)
        rows, w, u_rows, ks = self._spread(model, x, np.zeros((batch, model.p)), offsets, n, u, k)
        h = model.read(rows, w, u_rows, ks)
        expect_finite_rows(h, "observe", rows, ks)
        R = model.reading_noise(ks[:batch])
        predicted, d, D = gathered(
            h.reshape(batch, -1, h.shape[1]), weights, model.readings, R if adds else np.zeros_like(R)
        )
        T = model.residual(y, predicted, ks[:batch])
        if not adds:  # R is about the reading, and T = y ⊖ ŷ: into its tangent, as in Extended
            J = model.readings.turn(y, predicted, np.broadcast_to(np.eye(d.shape[2]), D.shape))
            d, D = d @ np.swapaxes(J, 1, 2), symmetric(J @ D @ np.swapaxes(J, 1, 2)) + R
        C = np.swapaxes(d, 1, 2) @ (weights[1][:, None] * offsets)
        step = update(P, C, D, T, k)
        if cancelled(P, step.P_plus):
            step.P_plus = left(P, offsets, d, step, C, R, weights[1])
        return moved(model, x, step)

    def predict(self, model: NonlinearModel, now: Corrected, u: FloatArray | None, k: int) -> Belief:
        """From step k to k + 1."""
        x = now.belief.x
        batch, n = len(x), model.n
        ks = steps(k, batch)
        Q, base = model.process_noise(ks), np.zeros((n, n))
        if model.carries_noise:
            P = now.joint
        elif model.noise_is_inside:
            P = joint(now.belief.P, Q)
        else:
            P, B = now.belief.P, model.noise_input(ks)
            base = B @ Q @ np.swapaxes(B, -1, -2)
        weights = self.points.weights(P.shape[-1])
        rows, w, u_rows, many = self._spread(model, x, now.w, self.points.offsets(P), n, u, k)
        f = model.advance(rows, w, u_rows, many)
        expect_finite_rows(f, "step", rows, many)
        mean, _, P_next = gathered(f.reshape(batch, -1, f.shape[1]), weights, model.states, base)
        return Belief(mean, P_next)

    def _spread(
        self, model: NonlinearModel, x: FloatArray, w: FloatArray, offsets: FloatArray, n: int,
        u: FloatArray | None, k: int,
    ) -> tuple[FloatArray, FloatArray, FloatArray | None, Any]:  # fmt: skip
        """The points as rows: states, noises, inputs and steps."""
        batch, count = offsets.shape[:2]
        tangents = offsets.reshape(batch * count, -1)
        rows = np.asarray(model.states.plus(x.repeat(count, axis=0), tangents[:, :n]))
        noise = w.repeat(count, axis=0)
        if tangents.shape[1] > n:
            noise += tangents[:, n:]
        u_rows = None if u is None else u.repeat(count, axis=0)
        return rows, noise, u_rows, steps(k, batch * count)


def unscented_kalman_filter(
    model: NonlinearModel,
    y: Any,
    u: Any = None,
    *,
    prior: Any = None,
    points: SigmaPoints | None = None,
    **inputs: Any,
) -> NonlinearFiltered:
    """Run the unscented Kalman filter (UKF): no Jacobians, moments right to second order.

    ::

        x^i = x ⊕ γL_i,   ŷ = Σ W_i h(x^i),   D = Σ Wᶜ_i δ_i δ_i* + R,   δ_i = h(x^i) ⊖ ŷ
        x⁺ = x ⊕ K (y ⊖ ŷ),   K = C D⁻¹,   C = Σ Wᶜ_i (γL_i) δ_i*
    P⁺ = J (P − K D K*) J* = J (Σ Wᶜ_i ε_i ε_i* + K R K*) J*,   ε_i = γL_i − K δ_i

    Parameters
    ----------
    model, y, u, prior
        As in :func:`extended_kalman_filter`.
    points : SigmaPoints, optional
        Weights; the default is positive ones. ``SigmaPoints(1, 0, 0)`` makes it the cubature filter.
    **inputs
        Other names for known inputs: ``tau`` of a :class:`kfdyn.MotionModel`.

    Returns
    -------
    NonlinearFiltered
        Updated and predicted means and covariances, innovations, log-likelihood.

    Notes
    -----
    2d + 1 calls of step and observe a step, all in one; d = n, or n + p where the noise is inside the functions. New
    points are drawn before each reading. On a manifold the mean is the point with Σ W_i (x^i ⊖ mean) = 0.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> model = kf.NonlinearModel(lambda x, k: np.sin(x), lambda x, k: x**2, 0.1, 0.1, 1.0, 1.0)
    >>> kf.unscented_kalman_filter(model, [1.1, 0.9, np.nan, 0.5]).x.ravel().round(3)
    array([0.647, 0.767, 0.666, 0.569])
    """
    return run("unscented", model, y, u, prior, inputs, points)
