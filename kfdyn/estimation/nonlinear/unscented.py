"""The unscented Kalman filter: moments by sigma points, on the manifold where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.nonlinear.extended import Belief, Corrected, joint, moved, run, turned_reading
from kfdyn.estimation.nonlinear.functions import expect_finite_rows
from kfdyn.estimation.nonlinear.manifold import Manifold
from kfdyn.estimation.nonlinear.results import NonlinearFiltered
from kfdyn.estimation.nonlinear.update import symmetric, update

if TYPE_CHECKING:
    from kfdyn.estimation.nonlinear.model import NonlinearModel

_MEAN_STEPS, _MEAN_TOLERANCE = 30, 1e-13


class SigmaPoints:
    """Points x ⊕ {0, ±γ L_i} with weights, L the root of the covariance.

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
        self.alpha, self.beta, self.kappa = float(alpha), float(beta), float(kappa)

    def weights(self, d: int) -> tuple[FloatArray, FloatArray, float]:
        """Weights of means and of covariances, (2d + 1,), and γ."""
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
        gamma = self.weights(P.shape[-1])[2]
        columns = gamma * np.swapaxes(root(P), 1, 2)
        return np.concatenate([np.zeros_like(columns[:, :1]), columns, -columns], axis=1)


def root(P: FloatArray) -> FloatArray:
    """L with L L* = P, (B, d, d): Cholesky's, or by eigenvalues where P is singular."""
    try:
        return np.asarray(np.linalg.cholesky(P), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(P)
        lowest, largest = values[:, :1], np.abs(values).max(axis=1, keepdims=True, initial=0.0)
        if (lowest < -1e-9 * largest).any():
            raise ModelError(
                f"the covariance has the eigenvalue {float(lowest.min()):.3g}: sigma points with a negative weight "
                "made it indefinite; use the default weights, or alpha=1, beta=0, kappa=0"
            ) from None
        return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None))[:, None, :], np.float64)


def mean_of(points: FloatArray, weights: FloatArray, space: Manifold) -> tuple[FloatArray, FloatArray]:
    """Weighted mean of points (B, S, nx), and their tangents at it, (B, S, n); on a manifold by iteration."""
    batch, count = points.shape[:2]
    rows = points.reshape(batch * count, -1)
    mean = points[:, 0]
    for _ in range(_MEAN_STEPS):
        d = np.asarray(space.minus(rows, np.repeat(mean, count, axis=0))).reshape(batch, count, -1)
        step = weights @ d
        mean = np.asarray(space.plus(mean, step))
        if space.is_vector_space:
            return mean, d - step[:, None, :]
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
            P = joint(P, model.process_noise(np.full(batch, k)))
        mean_weights, cov_weights, _ = self.points.weights(P.shape[-1])
        offsets = self.points.offsets(P)
        rows, w, u_rows, ks = self._spread(model, x, np.zeros((batch, model.p)), offsets, n, u, k)
        h = model.read(rows, w, u_rows, ks)
        expect_finite_rows(h, "observe", rows, ks)
        predicted, d = mean_of(h.reshape(batch, -1, h.shape[1]), mean_weights, model.readings)
        T = model.residual(y, predicted, ks[:batch])
        weighted = cov_weights[:, None] * d
        C, D = np.swapaxes(offsets, 1, 2) @ weighted, symmetric(np.swapaxes(d, 1, 2) @ weighted)
        if not model.readings.adds:  # R is about the reading, and T = y ⊖ ŷ: into its tangent, as in Extended
            J = turned_reading(model, y, predicted, np.broadcast_to(np.eye(d.shape[2]), D.shape))
            C, D = C @ np.swapaxes(J, 1, 2), symmetric(J @ D @ np.swapaxes(J, 1, 2))
        return moved(model, x, update(P, C, D + model.reading_noise(ks[:batch]), T, k))

    def predict(self, model: NonlinearModel, now: Corrected, u: FloatArray | None, k: int) -> Belief:
        """From step k to k + 1."""
        x = now.belief.x
        batch, n = len(x), model.n
        ks = np.full(batch, k)
        Q = model.process_noise(ks)
        if model.carries_noise:
            P = now.joint
        elif model.noise_is_inside:
            P = joint(now.belief.P, Q)
        else:
            P = now.belief.P
        mean_weights, cov_weights, _ = self.points.weights(P.shape[-1])
        rows, w, u_rows, many = self._spread(model, x, now.w, self.points.offsets(P), n, u, k)
        f = model.advance(rows, w, u_rows, many)
        expect_finite_rows(f, "step", rows, many)
        mean, d = mean_of(f.reshape(batch, -1, f.shape[1]), mean_weights, model.states)
        P_next = np.swapaxes(d, 1, 2) @ (cov_weights[:, None] * d)
        if P.shape[-1] == n:
            B = model.noise_input(ks)
            P_next = P_next + B @ Q @ np.swapaxes(B, -1, -2)
        return Belief(mean, symmetric(P_next))

    def _spread(
        self, model: NonlinearModel, x: FloatArray, w: FloatArray, offsets: FloatArray, n: int,
        u: FloatArray | None, k: int,
    ) -> tuple[FloatArray, FloatArray, FloatArray | None, Any]:  # fmt: skip
        """The points as rows: states, noises, inputs and steps."""
        batch, count = offsets.shape[:2]
        tangents = offsets.reshape(batch * count, -1)
        rows = np.asarray(model.states.plus(np.repeat(x, count, axis=0), tangents[:, :n]))
        noise = np.repeat(w, count, axis=0)
        if tangents.shape[1] > n:
            noise = noise + tangents[:, n:]
        u_rows = None if u is None else np.repeat(u, count, axis=0)
        return rows, noise, u_rows, np.full(batch * count, k)


def unscented_kalman_filter(
    model: NonlinearModel,
    y: Any,
    u: Any = None,
    *,
    prior: Any = None,
    points: SigmaPoints | None = None,
    **inputs: Any,
) -> NonlinearFiltered:
    """Run the unscented Kalman filter: no Jacobians, and means and covariances right to second order.

    ::

        x^i = x ⊕ γL_i,   ŷ = Σ W_i h(x^i),   D = Σ Wᶜ_i δ_i δ_i* + R,   δ_i = h(x^i) ⊖ ŷ
        x⁺ = x ⊕ C D⁻¹ (y ⊖ ŷ),   P⁺ = J (P − C D⁻¹ C*) J*,   C = Σ Wᶜ_i (γL_i) δ_i*

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
    return run(model.filter_halves("unscented", points), model, y, u, prior, inputs)
