"""The score of a model: the gradient of its log-likelihood."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.estimation.batches.batch_results import ScoredModels, score_series
from kfdyn.estimation.batches.state_space_batch import StateSpaceBatch
from kfdyn.estimation.flat.flat_score import score_of
from kfdyn.estimation.flat.prior import finite_model
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.filter_covariances import Method
from kfdyn.estimation.inference.missing_data import patterns, smooth_groups
from kfdyn.estimation.inference.scored import Score
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.state_space import StateSpace, expect_model
from kfdyn.estimation.precision.cancellation import warn_of_lost_digits, warn_of_the_worst


@overload
def score(ss: StateSpaceBatch, T: ArrayLike) -> ScoredModels: ...


@overload
def score(
    ss: StateSpace,
    T: ArrayLike,
    xi: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    *,
    method: Method = "block",
) -> Score: ...


def score(
    ss: StateSpace | StateSpaceBatch,
    T: ArrayLike,
    xi: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    *,
    method: Method = "block",
) -> Score | ScoredModels:
    """Differentiate the log-likelihood of T in every block of a model: one filter, one smoother.

    ::

        ∂ℓ/∂ξ(k) = λ            ∂ℓ/∂Q(k) = ½(λλ* − Λ)          ∂ℓ/∂R(k) = ½(aa* − C)
        ∂ℓ/∂φ(p,k) = λ(p) x̂*(k) − Λ(p) φ P⁺(k)                 ∂ℓ/∂H(k) = a x̂* − (C H − G*Λ⁺) P

    with C = D⁻¹ + G*Λ⁺G; where η ≠ 0 there are terms in u = φ*η (see :class:`Score`). Nothing is inverted but D, so it
    holds where the smoother does: R = 0, singular Q, missing measurements. A series without any measurement has the
    likelihood 1 and a gradient of 0, under a flat prior too, which it leaves as it was.

    Parameters
    ----------
    ss : StateSpace, or StateSpaceBatch
        The model; or many, then T is one series for all of them, or (B, Σm_k), one for each.
    T : array, shape (..., Σm_k)
        Measurements, NaN where missing; each batch entry may lack others.
    xi, eta : array, shape (..., Σn_k), optional
        Known inputs; these replace the model's own.
    method : {"block", "univariate", "square_root"}
        How a vector measurement is processed; same answers. "square_root" keeps the digits of Q, R, ξ and η where
        variances differ by more than 1e10; those of φ and H it loses as the others do.

    Returns
    -------
    Score; ScoreBatch where batch entries lack different measurements; ScoredModels of many models
        ``phi[k]``, ``H[k]``, ``Q[k]``, ``R[k]`` with the shapes of the blocks and ``xi``, ``eta`` flat, batch axes
        leading: one gradient for each batch entry, in order; ``llf``; ``logdet_Q[k]``, ``logdet_R[k]``.

    Raises
    ------
    SingularError
        If some D(k) is not positive definite.

    Warns
    -----
    LostDigitsWarning
        Where :func:`kalman_filter` warns: fewer than five digits are left.

    Notes
    -----
    O(N): the filter, half of the smoother's covariances, and 2n³ + O(n²m) flops a node for φ and H, in the same
    scatter; 1.2 to 1.5 times the smoother with covariances where nodes have four states or six (``kfdyn bench forms``).
    Covariances are swept once for each pattern of missing measurements that occurs in the batch.
    Source: THEORY section 10.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> g = kf.score(ss, [1.0, 3.0])
    >>> g.Q[0], g.phi[0], g.H[1]
    (array([[0.]]), array([[2.]]), array([[5.]]))
    """
    if isinstance(ss, StateSpaceBatch):
        return score_series(ss, T, (xi, eta, None if method == "block" else method))
    expect_model(ss)
    if np.ndim(T) > 1:
        measured, finite = ss.checked_outputs(T, "T", allow_nan=True)
        if not finite and len(patterns(measured)) > 1:
            found = smooth_groups(ss, T, (xi, eta), method, _unseen(ss))
            if ss.flat is None:
                warn_of_the_worst([smooth.filt.covariances for _, smooth in found.groups], level=2)
            return found.score
    if ss.flat is not None:
        measured, finite = ss.checked_outputs(T, "T", allow_nan=True)
        ss = _unseen(ss) if not finite and np.isnan(measured).all() else ss
    filt = kalman_filter(ss, T, xi, eta, method=method)
    if ss.flat is None:
        warn_of_lost_digits(filt.covariances, level=2)
    return score_of(bryson_frazier(ss, filt, covariances=False))


def _unseen(ss: StateSpace) -> StateSpace:
    """A proper model for series without any measurement, whose likelihood is 1 in every model."""
    if ss.flat is None:
        return ss
    return finite_model(ss)[0]
