"""Check covariances, priors, readings and known inputs, and bring them to one shape."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray, real_array

_SYMMETRIC, _DEFINITE = 1e-10, 1e-10


class Prior(NamedTuple):
    """The prior of step 0: x0 ⊕ N(0, P0), and which components are flat (P0 is 0 in their rows and columns)."""

    x0: FloatArray
    P0: FloatArray
    flat: NDArray[np.bool_]


def expect_model(model: Any) -> None:
    """Refuse what is no model."""
    if not hasattr(model, "filter_halves"):
        raise ModelError(f"model must be a kf.NonlinearModel or a kf.MotionModel, got {type(model).__name__}")


def expect_points(points: Any) -> None:
    """Refuse what are no sigma points; None are the default ones."""
    if points is not None and not hasattr(points, "offsets"):
        raise ModelError(f"points must be kf.SigmaPoints(alpha, beta, kappa), got {type(points).__name__}")


def covariance(value: ArrayLike, name: str, size: int | None = None, stack: bool = True) -> FloatArray:
    """Return a covariance (d, d), or one for each step (N, d, d); a vector holds variances, a number is (1, 1)."""
    C = real_array(value, name)
    if C.ndim < 2:
        C = np.diag(np.atleast_1d(C))
    if C.ndim > (3 if stack else 2) or C.shape[-1] != C.shape[-2]:
        shapes = "a matrix, a vector of variances" + (", or one matrix a step (N, d, d)" if stack else "")
        raise ShapeError(f"{name} must be {shapes}; got shape {C.shape}")
    if size is not None and C.shape[-1] != size:
        raise ShapeError(f"{name} is of size {C.shape[-1]}, but it must be {size}: shape {(size, size)}")
    if not np.isfinite(C).all():
        raise ModelError(f"{name} has entries that are not finite")
    transposed = np.swapaxes(C, -1, -2)
    largest = np.abs(C).max(axis=(-2, -1), keepdims=True, initial=0.0)
    if (np.abs(C - transposed) > _SYMMETRIC * largest).any():
        raise ModelError(f"{name} is not symmetric; a covariance is")
    C = 0.5 * (C + transposed)
    if C.shape[-1]:
        lowest = np.linalg.eigvalsh(C)[..., 0]
        bad = np.flatnonzero(np.atleast_1d(lowest < -_DEFINITE * largest[..., 0, 0]))
        if bad.size:
            where = f"{name}[{bad[0]}]" if C.ndim == 3 else name
            raise ModelError(
                f"{where} is not positive semi-definite (lowest eigenvalue {np.atleast_1d(lowest)[bad[0]]:.3g})"
            )
    return C


def prior(x0: ArrayLike, P0: ArrayLike | None, n: int) -> Prior:
    """Check the prior of step 0; P0 None is flat, and so is a component with an infinite variance."""
    start = np.atleast_1d(real_array(x0, "x0"))
    if not np.isfinite(start).all():
        raise ModelError("x0 must be finite: where the prior is flat, it is the point to linearise at first")
    if P0 is None:
        return Prior(start, np.zeros((n, n)), np.ones(n, bool))
    P = real_array(P0, "P0")
    if P.ndim < 2:
        P = _diagonal(np.full(n, P) if P.ndim == 0 else P)
    if P.shape != (n, n):
        raise ShapeError(f"P0 has shape {P.shape}, but the tangent of x has size {n}: P0 must be {(n, n)}")
    flat = np.isposinf(np.diag(P))
    P = np.where(flat[:, None] | flat[None, :], 0.0, P)
    return Prior(start, covariance(P, "P0", n, stack=False), flat)


def _diagonal(variances: FloatArray) -> FloatArray:
    """A diagonal matrix; np.diag would do, but 0 · inf must not arise."""
    P = np.zeros((variances.size, variances.size))
    P[np.diag_indices(variances.size)] = variances
    return P


def readings(y: ArrayLike) -> FloatArray:
    """Readings as (batch, N, m): NaN is missing; (N,) is N readings of one number."""
    array = real_array(y, "y")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim in (2, 3) and array.shape[-2] == 0:
        raise ShapeError("y has no steps; a filter takes at least one reading, which may be NaN")
    if array.ndim not in (2, 3):
        raise ShapeError(f"y must be (N, m), a row for each step, or (batch, N, m); got shape {array.shape}")
    if np.isinf(array).any():
        at = np.argwhere(np.isinf(array))[0]
        raise ModelError(f"y{at.tolist()} is infinite; mark a missing reading by NaN")
    return array if array.ndim == 3 else array[None]


def inputs(u: ArrayLike | None, batch: int, steps: int, last: bool, wanted: bool, name: str = "u") -> FloatArray | None:
    """Known inputs as (batch, steps, ·), the last row zero if it is not needed and not given."""
    if u is None:
        if wanted:
            raise ModelError("the model takes known inputs u; give u=, one row for each step")
        return None
    if not wanted:
        raise ModelError("u is given, but neither step nor observe takes an argument u: step(x, u, k)")
    array = real_array(u, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim == 2:
        array = np.broadcast_to(array, (batch, *array.shape))
    lengths = (steps,) if last else (steps, steps - 1)
    if array.ndim != 3 or array.shape[0] != batch or array.shape[1] not in lengths:
        need = f"{steps} rows" if last else f"{steps} rows, or {steps - 1}, since the last step leads nowhere"
        raise ShapeError(f"{name} has shape {np.shape(u)}, but readings have {steps} steps: {name} must have {need}")
    if not np.isfinite(array).all():
        raise ModelError(f"{name} has entries that are not finite; a known input cannot be missing")
    if array.shape[1] < steps:
        array = np.concatenate([array, np.zeros((batch, 1, array.shape[2]))], axis=1)
    return array


def expect_steps(C: FloatArray, name: str, lengths: tuple[int, ...]) -> None:
    """Refuse a stack of covariances that has not one for each step or edge."""
    if C.ndim == 3 and len(C) not in lengths:
        need = " or ".join(str(n) for n in lengths)
        raise ShapeError(f"{name} has {len(C)} matrices, but y needs {need}")


def robust_groups(groups: Any, m: int) -> NDArray[np.intp]:
    """Labels (m,) of the outputs that are one reading to a robust loss; all of them if not given."""
    if groups is None:
        return np.zeros(m, np.intp)
    labels = np.asarray(groups)
    if labels.shape != (m,):
        raise ShapeError(f"reading_groups must label each of the {m} outputs; got shape {labels.shape}")
    return np.unique(labels, return_inverse=True)[1]
