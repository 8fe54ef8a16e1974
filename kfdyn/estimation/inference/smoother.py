"""The Bryson–Frazier smoother on a tree: one scatter from the roots to the leaves."""

from __future__ import annotations

from typing import overload

from kfdyn.errors import ModelError
from kfdyn.estimation.batches.batch_results import FilteredModels, SmoothedModels, smooth_models
from kfdyn.estimation.batches.state_space_batch import StateSpaceBatch
from kfdyn.estimation.flat.smoothing import flat_smoother
from kfdyn.estimation.inference.filtered import Filtered, expect_filtered
from kfdyn.estimation.inference.smoothed import Smoothed, smoothed
from kfdyn.estimation.model.state_space import StateSpace

_ANOTHER = "filt was computed from another model; pass the StateSpace that kalman_filter was given"


@overload
def bryson_frazier(ss: StateSpaceBatch | FilteredModels, filt: FilteredModels | None = None) -> SmoothedModels: ...


@overload
def bryson_frazier(ss: StateSpace | Filtered, filt: Filtered | None = None, covariances: bool = True) -> Smoothed: ...


def bryson_frazier(
    ss: StateSpace | Filtered | StateSpaceBatch | FilteredModels,
    filt: Filtered | FilteredModels | None = None,
    covariances: bool = True,
) -> Smoothed | SmoothedModels:
    """Run the Bryson–Frazier smoother from the roots to the leaves of a tree.

    ::

        λ⁺(k) = φ*(p(k),k) λ(p(k))         (0 at a root)
        a(k)  = ν − G*(λ⁺ + η)
        λ(k)  = λ⁺ + η + H* a
        x̂(k)  = z⁺ + P⁺ λ⁺
        Λ(k)  = τ̄* Λ⁺ τ̄ + H* D⁻¹ H,   S(k) = P⁺ − P⁺ Λ⁺ P⁺

    No covariance is inverted, so P may be singular (R = 0, Q = 0), where the Rauch–Tung–Striebel smoother fails.

    Parameters
    ----------
    ss : StateSpace, or StateSpaceBatch
        The model that was filtered; it may be left out, as in ``bryson_frazier(filt)``.
    filt : Filtered
        Result of :func:`kalman_filter` on that model.
    covariances : bool
        Whether to compute Λ and S (about 7n³ flops a node, once for each model).

    Returns
    -------
    Smoothed, or SmoothedModels of many models
        Co-states λ, λ⁺, smoothed states x̂, output co-state a, Λ and S.

    Notes
    -----
    O(N). Stacked, a = 𝓜⁻¹(T − Hφ(ξ + Qφ*η)): forward dynamics is this smoother. Sources: R86 (8.10)–(8.13),
    (9.13)–(9.21).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> smooth = kf.bryson_frazier(kf.kalman_filter(ss, [1.0, 3.0]))
    >>> smooth.a, smooth.x[0]
    (array([-1.,  2.]), array([1.]))
    """
    if not isinstance(ss, StateSpace | StateSpaceBatch):
        if not isinstance(ss, FilteredModels):
            expect_filtered(ss, "bryson_frazier")
        filt, ss, covariances = ss, ss.ss, covariances if filt is None else bool(filt)
    if filt is None:
        raise ModelError("bryson_frazier smooths what a filter has found: bryson_frazier(kalman_filter(ss, T))")
    if not isinstance(filt, FilteredModels):
        expect_filtered(filt, "bryson_frazier")
    if filt.ss is not ss:
        raise ModelError(_ANOTHER)
    if isinstance(filt, FilteredModels):
        return smooth_models(filt)
    if filt.ss.flat is not None:
        return flat_smoother(filt, covariances)  # type: ignore[arg-type]
    return smoothed(filt, covariances)
