"""The Bryson–Frazier smoother on a tree: one scatter from the roots to the leaves."""

from __future__ import annotations

from kfdyn.errors import ModelError
from kfdyn.estimation.flat.smoothing import flat_smoother
from kfdyn.estimation.inference.filtered import Filtered, expect_filtered
from kfdyn.estimation.inference.smoothed import Smoothed, smoothed
from kfdyn.estimation.model.state_space import StateSpace


def bryson_frazier(ss: StateSpace | Filtered, filt: Filtered | None = None, covariances: bool = True) -> Smoothed:
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
    ss : StateSpace
        The model that was filtered; it may be left out, as in ``bryson_frazier(filt)``.
    filt : Filtered
        Result of :func:`kalman_filter` on that model.
    covariances : bool
        Whether to compute Λ and S (about 7n³ flops a node, once for each model).

    Returns
    -------
    Smoothed
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
    if not isinstance(ss, StateSpace):
        expect_filtered(ss, "bryson_frazier")
        filt, ss, covariances = ss, ss.ss, covariances if filt is None else bool(filt)
    if filt is None:
        raise ModelError("bryson_frazier smooths what a filter has found: bryson_frazier(kalman_filter(ss, T))")
    expect_filtered(filt, "bryson_frazier")
    if filt.ss is not ss:
        raise ModelError("filt was computed from another model; pass the StateSpace that kalman_filter was given")
    if ss.flat is not None:
        return flat_smoother(filt, covariances)  # type: ignore[arg-type]
    return smoothed(filt, covariances)
