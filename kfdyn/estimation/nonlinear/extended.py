"""The extended Kalman filter (EKF): linearise at the mean, update, move the mean, carry its covariance along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import FloatArray, IntArray
from kfdyn.estimation.nonlinear.arguments import expect_model, expect_points
from kfdyn.estimation.nonlinear.functions import expect_finite_rows
from kfdyn.estimation.nonlinear.results import NonlinearFiltered
from kfdyn.estimation.nonlinear.update import Update, cancelled, factor, left, linear_update, predicted, symmetric

if TYPE_CHECKING:
    from kfdyn.estimation.nonlinear.model import NonlinearModel


class Belief(NamedTuple):
    """A batch of normal beliefs of x(k): means (B, nx), and covariances (B, n, n) in their tangents."""

    x: FloatArray
    P: FloatArray


class Corrected(NamedTuple):
    """A belief after a reading, with what it says of w(k) where readings see it: mean w (B, p) and joint covariance."""

    belief: Belief
    w: FloatArray
    joint: FloatArray
    step: Update


class Extended:
    """The two halves of an extended filter's step."""

    name = "extended"

    def correct(self, model: NonlinearModel, prior: Belief, y: FloatArray, u: FloatArray | None, k: int) -> Corrected:
        """Take the reading y (B, my) of step k."""
        x, P = prior
        ks, w = steps(k, len(x)), np.zeros((len(x), model.p))
        h, H, in_w = model.linear_read(x, w, u, ks)
        T = model.residual(y, h, ks)
        H = model.readings.turn(y, h, H)
        if in_w is not None:
            H = np.concatenate([H, model.readings.turn(y, h, in_w)], axis=2)
            P = joint(P, model.process_noise(ks))
        R = model.reading_noise(ks)
        step = linear_update(P, H, R, T, k)
        if cancelled(P, step.P_plus):
            offsets = np.swapaxes(factor(P), 1, 2)
            step.P_plus = left(P, offsets, offsets @ np.swapaxes(H, 1, 2), step, H @ P, R, np.ones(offsets.shape[1]))
        return moved(model, x, step)

    def predict(self, model: NonlinearModel, now: Corrected, u: FloatArray | None, k: int) -> Belief:
        """From step k to k + 1."""
        x, ks = now.belief.x, steps(k, len(now.belief.x))
        f, F, B = model.linear_step(x, now.w, u, ks)
        expect_finite_rows(f, "step", x, ks)
        if model.carries_noise:
            FB = np.concatenate([F, B], axis=2)
            return Belief(f, symmetric(FB @ now.joint @ np.swapaxes(FB, 1, 2)))
        return Belief(f, predicted(F, now.belief.P, B, model.process_noise(ks)))


def steps(k: int, rows: int) -> IntArray:
    """The number of a step, once a row."""
    out = np.empty(rows, np.intp)
    out.fill(k)
    return out


def joint(P: FloatArray, Q: FloatArray) -> FloatArray:
    """Covariance of (x, w) before w is seen, (B, n + p, n + p)."""
    n, p = P.shape[-1], Q.shape[-1]
    out = np.zeros((len(P), n + p, n + p))
    out[:, :n, :n], out[:, n:, n:] = P, Q
    return out


def moved(model: NonlinearModel, x: FloatArray, step: Update) -> Corrected:
    """Move the mean by the update, and turn the covariance into the new tangent (reset)."""
    n = model.n
    d, P_plus = step.d[:, :n], step.P_plus
    if not model.states.adds:
        J = np.zeros_like(P_plus)
        J[:, range(P_plus.shape[1]), range(P_plus.shape[1])] = 1.0
        J[:, :n, :n] = model.states.plus_jacobian(x, d)
        P_plus = symmetric(J @ P_plus @ np.swapaxes(J, 1, 2))
    if model.carries_noise:
        return Corrected(Belief(model.states.plus(x, d), P_plus[:, :n, :n]), step.d[:, n:], P_plus, step)
    return Corrected(Belief(model.states.plus(x, d), P_plus), np.zeros((len(x), model.p)), P_plus, step)


def extended_kalman_filter(
    model: NonlinearModel, y: Any, u: Any = None, *, prior: Any = None, **inputs: Any
) -> NonlinearFiltered:
    """Run the extended Kalman filter (EKF).

    ::

        D = H P H* + R,   x⁺ = x ⊕ P H* D⁻¹ (y ⊖ h(x)),   P⁺ = J (P − P H* D⁻¹ H P) J*
        x(k+1) = step(x⁺),   P(k+1) = F P⁺ F* + B Q B*

    Parameters
    ----------
    model : NonlinearModel
        The model.
    y : array (N, m) or (batch, N, m)
        Readings; NaN is missing, in whole or part, anywhere in a batch.
    u : array (N, ·) or (N−1, ·), optional
        Known inputs: u[k] acts from step k to k+1, and readings of step k may see it.
    prior : (x0, P0), optional
        In place of the model's.
    **inputs
        Other names for known inputs: ``tau`` of a :class:`kfdyn.MotionModel`.

    Returns
    -------
    NonlinearFiltered
        Updated and predicted means and covariances, innovations, log-likelihood.

    Notes
    -----
    J is the Jacobian of ⊕ at the step taken, 1 where coordinates add. A linear model gives the Kalman filter.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> model = kf.NonlinearModel(lambda x, k: np.sin(x), lambda x, k: x**2, 0.1, 0.1, 1.0, 1.0)
    >>> kf.extended_kalman_filter(model, [1.1, 0.9, np.nan, 0.5]).x.ravel().round(3)
    array([1.049, 0.932, 0.803, 0.71 ])
    """
    return run("extended", model, y, u, prior, inputs)


def run(
    kind: str, model: NonlinearModel, y: Any, u: Any, prior: Any, inputs: dict[str, Any], points: Any = None
) -> NonlinearFiltered:
    """Run a filter, extended or unscented, over all steps of a batch."""
    expect_model(model)
    expect_points(points)
    method = model.filter_halves(kind, points)
    rows, batched = model.check_readings(y)
    batch, N = rows.shape[:2]
    known = model.check_inputs(u, batch, N, **inputs)
    belief = first(model, model.check_prior(prior), batch)
    before: list[Belief] = []
    after: list[Corrected] = []
    for k in range(N):
        u_k = None if known is None else known[:, k]
        now = method.correct(model, belief, rows[:, k], u_k, k)
        before.append(belief)
        after.append(now)
        if k + 1 < N:
            belief = method.predict(model, now, u_k, k)
    pick = (lambda a: a) if batched else (lambda a: a[0])

    def stacked(parts: list[FloatArray]) -> Any:
        return pick(np.stack(parts, axis=1))

    def flat(parts: list[Any]) -> Any:
        return pick(np.stack(parts, axis=1).reshape(batch, -1))

    llf = pick(np.sum([now.step.llf for now in after], axis=0))
    return model.filtered_type(
        model,
        stacked([now.belief.x for now in after]),
        stacked([now.belief.P for now in after]),
        stacked([one.x for one in before]),
        stacked([one.P for one in before]),
        flat([now.step.eps for now in after]),
        flat([now.step.nu for now in after]),
        stacked([now.step.D for now in after]),
        flat([now.step.seen for now in after]),
        llf if batched else float(llf),
        method.name,
    )


def first(model: NonlinearModel, prior: Any, batch: int) -> Belief:
    """The prior as a batch of beliefs."""
    if prior.flat.any():
        names = [name for name, flat in zip(model.state_names, prior.flat) if flat]
        raise ModelError(
            f"the prior is flat in {', '.join(names)}, and a filter has nowhere to linearise there; give a finite P0, "
            "or use iterated_kalman_smoother, which takes flat priors"
        )
    return Belief(np.tile(prior.x0, (batch, 1)), np.tile(prior.P0, (batch, 1, 1)))
