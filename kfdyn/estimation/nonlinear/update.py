"""One measurement update for a batch of beliefs: from covariances, whatever gave them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.nonlinear.recursions import halves

_CANCELLED = 1e-8  # of a variance: a reading that leaves less has cancelled half of the digits of P − W* W
_EXACT = 1e-13  # of a standard deviation: what a reading leaves below that part of it is rounding


class Update:
    """An update of B beliefs: P⁺ (B, n, n), D (B, m, m), what was seen (B, m).

    ``found`` (B, n + 2m + 2) is what the compiled half leaves: d, ε, ν, ε*D⁻¹ε and the log-likelihood.
    """

    __slots__ = ("D", "P_plus", "found", "seen")

    def __init__(self, found: FloatArray, P_plus: FloatArray, D: FloatArray, seen: NDArray[np.bool_]) -> None:
        self.found, self.P_plus, self.D, self.seen = found, P_plus, D, seen

    @property
    def d(self) -> FloatArray:
        """The tangents by which means move, (B, n)."""
        return self.found[:, : self.P_plus.shape[1]]

    @property
    def eps(self) -> FloatArray:
        """Innovations (B, m), 0 where missing."""
        n, m = self.P_plus.shape[1], self.D.shape[1]
        return self.found[:, n : n + m]

    @property
    def nu(self) -> FloatArray:
        """D⁻¹ε (B, m)."""
        n, m = self.P_plus.shape[1], self.D.shape[1]
        return self.found[:, n + m : n + 2 * m]

    @property
    def nis(self) -> FloatArray:
        """ε*D⁻¹ε (B,)."""
        return self.found[:, -2]

    @property
    def llf(self) -> FloatArray:
        """Log-likelihoods (B,)."""
        return self.found[:, -1]


def predicted(F: FloatArray, P: FloatArray, B: FloatArray, Q: FloatArray) -> FloatArray:
    """F P F* + B Q B*, (B, n, n), exactly symmetric; Q is (p, p) or (B, p, p)."""
    rows, n, p = B.shape
    out, work = np.empty((rows, n, n)), np.empty(2 * n * max(n, p))
    step = p * p if Q.ndim == 3 else 0
    given = (F.ravel(), P.ravel(), B.ravel(), Q.ravel(), step)
    halves.predicted(*given, out.ravel(), work, n, p, rows)
    return out


def linear_update(P: FloatArray, H: FloatArray, R: FloatArray, T: FloatArray, k: int) -> Update:
    """Update by readings T that are linear in the state, as :func:`update`: C = H P, D = H P H* + R.

    R is (m, m), or (B, m, m).
    """
    rows, m, n = H.shape
    C, D = np.empty((rows, m, n)), np.empty((rows, m, m))
    linear = (H.ravel(), R.ravel(), m * m if R.ndim == 3 else 0)
    return _updated(P, C, D, T, k, linear)


def update(P: FloatArray, C: FloatArray, D: FloatArray, T: FloatArray, k: int) -> Update:
    """Update by readings with residuals T (B, m), NaN where missing.

    ::

        L L* = D,   W = L⁻¹ C,   d = C* D⁻¹ T,   P⁺ = P − W* W

    Parameters
    ----------
    P : ndarray, shape (B, n, n)
        Covariance before.
    C : ndarray, shape (B, m, n)
        Covariance of reading and state, H P in an extended filter.
    D : ndarray, shape (B, m, m)
        Covariance of the innovation, H P H* + R.
    T : ndarray, shape (B, m)
        Innovations.
    k : int
        The step, for error messages.
    """
    return _updated(P, C, D, T, k, None)


def _updated(P: FloatArray, C: FloatArray, D: FloatArray, T: FloatArray, k: int, linear: Any) -> Update:
    rows, m, n = C.shape
    seen = T == T
    found, L = np.empty((rows, n + 2 * m + 2)), np.empty(rows * m * m)
    P_plus, work = np.empty((rows, n, n)), np.empty(n * m)
    before, after = (
        (P.ravel(),),
        (C.ravel(), D.ravel(), T.ravel(), seen.ravel(), found.ravel(), P_plus.ravel(), L, work),
    )
    if linear is None:
        failed = halves.corrected(*before, *after, n, m, rows)
    else:
        failed = halves.linearly_corrected(*before, *linear, *after, n, m, rows)
    if failed >= 0:
        raise singular(D, seen, failed, k)
    return Update(found, P_plus, D, seen)


def cancelled(P: FloatArray, P_plus: FloatArray) -> bool:
    """Tell whether a reading, exact or nearly so, left too few digits of a variance in P⁺ = P − W* W."""
    return bool((P_plus - _CANCELLED * P).diagonal(0, 1, 2).min(initial=np.inf) <= 0.0)


def left(
    P: FloatArray, offsets: FloatArray, d: FloatArray, step: Update, C: FloatArray, R: FloatArray, weights: FloatArray
) -> FloatArray:
    """P⁺ = Σ W εε* + K R K*, ε = δx − K δh: what a reading leaves of P, as a sum of squares, which cannot cancel.

    With δx the columns of a factor of P it is Joseph's form.
    """
    both = step.seen[:, :, None] & step.seen[:, None, :]
    D = np.where(both, step.D, np.eye(step.D.shape[1]))
    K = np.swapaxes(np.linalg.solve(D, np.where(step.seen[:, :, None], C, 0.0)), 1, 2)
    rest = offsets - d @ np.swapaxes(K, 1, 2)
    out = symmetric(np.swapaxes(rest, 1, 2) @ (weights[:, None] * rest) + K @ R @ np.swapaxes(K, 1, 2))
    variance = np.diagonal(out, axis1=1, axis2=2)
    known = np.abs(variance) <= _EXACT**2 * np.diagonal(P, axis1=1, axis2=2)
    out[known[:, :, None] | known[:, None, :]] = 0.0
    return out


def factor(P: FloatArray, may_be_indefinite: bool = False) -> FloatArray:
    """L with L L* = P, (B, d, d): Cholesky's, or by eigenvalues where P is singular.

    Only a negative weight makes P indefinite; without one, an eigenvalue below 0 is rounding.
    """
    try:
        return np.asarray(np.linalg.cholesky(P), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(P)
        lowest, largest = values[:, :1], np.abs(values).max(axis=1, keepdims=True, initial=0.0)
        if may_be_indefinite and (lowest < -1e-9 * largest).any():
            raise ModelError(
                f"the covariance has the eigenvalue {float(lowest.min()):.3g}: sigma points with a negative weight "
                "made it indefinite; use the default weights, or alpha=1, beta=0, kappa=0"
            ) from None
        return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None))[:, None, :], np.float64)


def singular(D: FloatArray, seen: NDArray[np.bool_], failed: int, k: int) -> Exception:
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
