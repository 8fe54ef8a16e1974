"""One measurement update for a batch of beliefs: from covariances, whatever gave them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.blocks import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))
_DETERMINED = 1e-13  # of an innovation's variance: what is left is rounding


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
    m = T.shape[1]
    seen = T == T
    full = bool(seen.all())
    eps, D_used = T, D
    if not full:  # a missing output is one with no covariance with anything, variance 1 and innovation 0
        eps = np.where(seen, T, 0.0)
        C = np.where(seen[:, None, :], C, 0.0)
        both = seen[:, :, None] & seen[:, None, :]
        D_used = np.where(both, D, np.eye(m))
    if not np.isfinite(D_used).all():
        raise ModelError(
            f"the covariance of the reading at step {k} is not finite: the filter has diverged before; check x0, P0 "
            "and the noise"
        )
    try:
        L = np.linalg.cholesky(D_used)
    except np.linalg.LinAlgError:
        raise _singular(D_used, k) from None
    pivots = np.diagonal(L, axis1=1, axis2=2)
    if (pivots * pivots <= _DETERMINED * np.diagonal(D_used, axis1=1, axis2=2)).any():
        raise _singular(D_used, k)
    WE = np.linalg.solve(L, np.concatenate([np.swapaxes(C, 1, 2), eps[:, :, None]], axis=2))
    W, e = WE[:, :, :-1], WE[:, :, -1:]
    W_t = np.swapaxes(W, 1, 2)
    count = m if full else seen.sum(axis=1)
    llf = -0.5 * (count * _LOG_2PI + 2.0 * np.log(pivots).sum(axis=1) + (e * e).sum(axis=(1, 2)))
    nu = np.linalg.solve(np.swapaxes(L, 1, 2), e)[:, :, 0]
    return Update((W_t @ e)[:, :, 0], P - W_t @ W, eps, nu, D, llf, seen)


def _singular(D: FloatArray, k: int) -> SingularError:
    for one in D:
        diagonal = np.sqrt(np.clip(np.diag(one), 0.0, None))
        if (diagonal == 0.0).any():
            i = int(np.flatnonzero(diagonal == 0.0)[0])
            return SingularError(
                f"output {i} of the reading at step {k} is already known exactly (innovation variance 0); give it "
                "noise in R, or give the state noise in Q or P0",
                k,
                i,
            )
        lowest, vectors = np.linalg.eigh(one / np.outer(diagonal, diagonal))
        if lowest[0] <= 10 * _DETERMINED:
            parts = np.flatnonzero(np.abs(vectors[:, 0]) > 1e-3)
            return SingularError(
                f"outputs {parts.tolist()} of the reading at step {k} determine one another exactly; drop one of "
                "them, or give them noise in R",
                k,
                int(parts[0]),
            )
    return SingularError(f"the innovation covariance at step {k} is not positive definite; check Q, R and P0", k)


def symmetric(P: FloatArray) -> FloatArray:
    """½(P + P*)."""
    return 0.5 * (P + np.swapaxes(P, -1, -2))
