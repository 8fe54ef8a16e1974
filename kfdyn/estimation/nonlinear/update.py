"""One measurement update for a batch of beliefs: from covariances, whatever gave them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.model.blocks import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))


class Update(NamedTuple):
    """An update.

    Tangent step d (B, n), P⁺, innovations ε (B, m), 0 where missing, ν = D⁻¹ε, D, log-likelihoods (B,), what was seen.
    """

    d: FloatArray
    P_plus: FloatArray
    eps: FloatArray
    nu: FloatArray
    D: FloatArray
    llf: FloatArray
    seen: NDArray[np.bool_]


def innovation(P: FloatArray, H: FloatArray, R: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P H* (B, n, m) and H P H* + R (B, m, m); R is (m, m) or (B, m, m)."""
    from kfdyn.estimation.nonlinear import recursions

    rows, m, n = H.shape
    C, D = np.empty((rows, n, m)), np.empty((rows, m, m))
    step = m * m if R.ndim == 3 else 0
    recursions.innovation(_flat(P), _flat(H), _flat(R), step, C.ravel(), D.ravel(), n, m, rows)
    return C, D


def predicted(F: FloatArray, P: FloatArray, B: FloatArray, Q: FloatArray) -> FloatArray:
    """F P F* + B Q B*, (B, n, n), exactly symmetric; Q is (p, p) or (B, p, p)."""
    from kfdyn.estimation.nonlinear import recursions

    rows, n, p = B.shape
    out, work = np.empty((rows, n, n)), np.empty(2 * n * max(n, p))
    step = p * p if Q.ndim == 3 else 0
    recursions.predicted(_flat(F), _flat(P), _flat(B), _flat(Q), step, out.ravel(), work, n, p, rows)
    return out


def update(P: FloatArray, C: FloatArray, D: FloatArray, T: FloatArray, k: int) -> Update:
    """Update by readings with residuals T (B, m), NaN where missing.

    ::

        L L* = D,   W = L⁻¹ C*,   d = C D⁻¹ T,   P⁺ = P − W* W

    Parameters
    ----------
    P : ndarray, shape (B, n, n)
        Covariance before.
    C : ndarray, shape (B, n, m)
        Covariance of state and reading, P H* in an extended filter.
    D : ndarray, shape (B, m, m)
        Covariance of the innovation, H P H* + R.
    T : ndarray, shape (B, m)
        Innovations.
    k : int
        The step, for error messages.
    """
    from kfdyn.estimation.nonlinear import recursions

    rows, n, m = C.shape
    seen = T == T
    found, L = np.empty((rows, n + 2 * m + 1)), np.empty((rows, m, m))
    P_plus, work = np.empty((rows, n, n)), np.empty(n * m)
    arrays = (_flat(P), _flat(C), _flat(D), _flat(T), seen.ravel(), found.ravel(), P_plus.ravel(), L.ravel())
    failed = recursions.corrected(*arrays, work, n, m, rows)
    if failed >= 0:
        raise _singular(D, seen, failed, k)
    pivots = L.reshape(rows, -1)[:, :: m + 1]
    logdet = 2.0 * np.log(pivots).sum(axis=1)
    llf = -0.5 * (seen.sum(axis=1) * _LOG_2PI + logdet + found[:, -1])
    return Update(found[:, :n], P_plus, found[:, n : n + m], found[:, n + m : -1], D, llf, seen)


def _flat(array: FloatArray) -> FloatArray:
    return np.ascontiguousarray(array).reshape(-1)


def _singular(D: FloatArray, seen: NDArray[np.bool_], failed: int, k: int) -> Exception:
    """Say which outputs of a reading have no variance left."""
    row, i = divmod(int(failed), D.shape[1])
    one = D[row][np.ix_(seen[row], seen[row])]
    if not np.isfinite(one).all():
        return ModelError(
            f"the covariance of the reading at step {k} is not finite: the filter has diverged before; check x0, P0 "
            "and the noise"
        )
    if not D[row, i, i] > 0.0:
        return SingularError(
            f"output {i} of the reading at step {k} is already known exactly (innovation variance {D[row, i, i]:.3g}); "
            "give it noise in R, or give the state noise in Q or P0",
            k,
            i,
        )
    diagonal = np.sqrt(np.clip(np.diag(one), 1e-300, None))
    vectors = np.linalg.eigh(one / np.outer(diagonal, diagonal))[1]
    parts = np.flatnonzero(seen[row])[np.abs(vectors[:, 0]) > 1e-3]
    return SingularError(
        f"outputs {parts.tolist()} of the reading at step {k} determine one another exactly; drop one of them, or "
        "give them noise in R",
        k,
        i,
    )


def symmetric(P: FloatArray) -> FloatArray:
    """½(P + P*)."""
    return 0.5 * (P + np.swapaxes(P, -1, -2))
