"""The Kalman filter on a tree: one gather from the leaves to the roots."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ShapeError
from kfdyn.estimation.batches.batch_results import FilteredModels, filter_models
from kfdyn.estimation.batches.state_space_batch import StateSpaceBatch
from kfdyn.estimation.flat.filtering import flat_filter
from kfdyn.estimation.inference.filter_covariances import BoolArray, Method
from kfdyn.estimation.inference.filtered import Filtered, filtered
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.model.state_space import StateSpace, expect_model
from kfdyn.estimation.precision.cancellation import TOLERABLE, warn_of_lost_digits


@overload
def kalman_filter(ss: StateSpaceBatch, T: ArrayLike) -> FilteredModels: ...


@overload
def kalman_filter(
    ss: StateSpace,
    T: ArrayLike,
    xi: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    *,
    method: Method = "block",
) -> Filtered: ...


def kalman_filter(
    ss: StateSpace | StateSpaceBatch,
    T: ArrayLike,
    xi: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    *,
    method: Method = "block",
) -> Filtered | FilteredModels:
    """Run the Kalman filter from the leaves to the roots of a tree.

    ::

        z(k)  = Σ_j φ(k,j) z⁺(j) + ξ(k)
        ε(k)  = T − H z,     ν = D⁻¹ ε
        z⁺(k) = z + G ε + P⁺ η(k)

    Parameters
    ----------
    ss : StateSpace, or StateSpaceBatch
        The model; or many, then T is one series for all of them, or (B, Σm_k), one for each.
    T : array, shape (..., Σm_k)
        Measurements, stacked node by node in node order, or (..., N, m) where all N nodes have m outputs; NaN marks a
        missing one (the same ones in every batch entry).
    xi, eta : array, shape (..., Σn_k), optional
        Known inputs; these replace the model's own. Batch axes broadcast against those of T.
    method : {"block", "univariate", "square_root"}
        How a vector measurement is processed; same answers. "square_root" keeps its digits where variances differ by
        more than 1e10.

    Returns
    -------
    Filtered
        P, P⁺, D, G, K, z, z⁺, ε, ν and the log-likelihood. Of a model with flat states a FlatFiltered, in which finite
        and infinite parts of a covariance are kept apart; of many models a FilteredModels.

    Raises
    ------
    SingularError
        If some D(k) is not positive definite.
    ShapeError, ModelError
        If an input has the wrong shape or is not finite.

    Notes
    -----
    Covariances are computed once for each model (and pattern of missing measurements): 3n³ + O(n²m) flops a node;
    each vector then costs 2n² + O(nm) a node. Sources: R86 (8.2)–(8.9), (9.4)–(9.12); ATBI "predict-update".

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> filt = kf.kalman_filter(ss, [1.0, 3.0])
    >>> filt.eps
    array([1., 2.])
    >>> filt.z_plus[1]
    array([3.])
    """
    if isinstance(ss, StateSpaceBatch):
        return filter_models(ss, T, (xi, eta, None if method == "block" else method))
    expect_model(ss)
    measured, finite = ss.checked_outputs(T, "T", allow_nan=True)
    measured = _owned(T, measured)
    seen = None if finite else _pattern(ss, measured)
    known = (
        _nonzero(ss.xi if xi is None else _owned(xi, ss.check_states(xi, "xi"))),
        _nonzero(ss.eta if eta is None else _owned(eta, ss.check_states(eta, "eta"))),
    )
    if ss.flat is not None:
        return flat_filter(ss, seen, measured, known[0], known[1], method)  # type: ignore[return-value]
    covariances = riccati(ss, seen, method)
    if method != "square_root":
        loss = covariances.__dict__.get("loss")  # None where nobody has looked yet
        if loss is None or loss.error > TOLERABLE:
            warn_of_lost_digits(covariances, level=2)
    return filtered(covariances, measured, known[0], known[1])


def _owned(given: ArrayLike, array: FloatArray) -> FloatArray:
    """The array, copied if it is the caller's memory: he may reuse it before a later sweep reads it."""
    if given is array:
        return array.copy()
    fresh = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and not np.may_share_memory(given, array))
    return array if fresh else array.copy()


def _nonzero(u: FloatArray | None) -> FloatArray | None:
    """A known input, or None for zeros; but zeros may carry batch axes."""
    return None if u is None or (u.ndim == 1 and not np.count_nonzero(u)) else u


def _pattern(ss: StateSpace, T: FloatArray) -> BoolArray | None:
    """Return the mask of measured outputs, None for all; raise if batch entries differ."""
    missing = np.isnan(T)
    if not missing.any():
        return None
    missing = missing.reshape(-1, T.shape[-1])
    if not (missing == missing[0]).all():
        at = int(np.flatnonzero((missing != missing[0]).any(axis=0))[0])
        node = int(np.searchsorted(ss.arrays.output, at, side="right")) - 1
        raise ShapeError(
            f"output {at} ({ss.tree.label(node)}) is missing in some batch entries of T and present in others; "
            "one call takes one pattern of missing measurements: smooth_batch and score group the entries by pattern"
        )
    return ~missing[0]
