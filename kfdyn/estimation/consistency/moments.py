"""Test sample means and covariances against claimed ones, from a mean or a scatter matrix alone.

The scatter Σ x x* of any number of samples takes O(d²) memory, so 10⁸ samples are a matter of time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.consistency.null_distributions import LikelihoodRatioNull, entry_score
from kfdyn.estimation.consistency.verdict import Verdict
from kfdyn.estimation.consistency.whitening import Whitening, deviations, whitening

__all__ = ["EntryVerdict", "covariance_test", "largest_entry_test", "mean_test", "scatter"]


_FEW = 128  # dimensions whose eigenvalues cost nothing


@dataclass(frozen=True)
class EntryVerdict(Verdict):
    """Outcome of `largest_entry_test`: ``index`` of the worst entry, ``scores`` (d, d) of all of them.

    Examples
    --------
    One variance of three is claimed a tenth too small; the verdict points at it:

    >>> samples = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> verdict = largest_entry_test(samples, np.diag([1.0, 0.9, 1.0]))
    >>> verdict.index, verdict.p_value < 1e-6
    ((1, 1), True)
    """

    index: tuple[int, int] = (0, 0)
    scores: Array | None = None


def scatter(samples: ArrayLike, mean_known: bool = True) -> Array:
    """Return Σ x x* over all leading axes of samples (..., d), about their own mean unless the mean is known, 0.

    Parameters
    ----------
    samples : (..., d)
        One sample a row.
    mean_known : bool
        Whether the mean is known to be 0.

    Returns
    -------
    (d, d) array
        Σ x x*.

    Examples
    --------
    >>> scatter([[1.0, 2.0], [3.0, 4.0]])
    array([[10., 14.],
           [14., 20.]])
    """
    x = np.asarray(samples, float)
    if x.ndim < 2:
        raise ShapeError(f"samples have shape {x.shape}; give them as (n, d), one sample a row")
    x = x.reshape(-1, x.shape[-1])
    if not np.isfinite(x).all():
        raise ModelError("samples hold NaN or infinite entries; drop the missing outputs first")
    if not mean_known:
        x = x - x.mean(0)
    return x.T @ x


def covariance_test(
    samples_or_scatter: ArrayLike,
    Sigma: ArrayLike,
    n: int | None = None,
    mean_known: bool = True,
    *,
    rank: int | None = None,
) -> Verdict:
    """Test Cov = Σ by the likelihood ratio n(tr SΣ^-1 − log det SΣ^-1 − d), on the range of Σ.

    Parameters
    ----------
    samples_or_scatter : (..., d) or (d, d)
        Normal samples, or, when n is given, their scatter matrix Σ x x*.
    Sigma : (d, d)
        The covariance claimed, of any rank. Samples that leave its range get p = 0.
    n : int, optional
        Number of samples behind the scatter matrix.
    mean_known : bool
        True: the mean is 0 and known. False: it was estimated, so samples are centred here (a scatter matrix
        must already be about the sample mean) and n − 1 takes the place of n.
    rank : int, optional
        Rank of Σ, if theory knows it, see `whitening`.

    Returns
    -------
    Verdict
        Upper tail; ``dof`` = r(r + 1)/2 with r the rank of Σ.

    Notes
    -----
    The statistic is the same for samples x and Ax with Σ and AΣA*. O(d³), whatever n. Its null distribution is exact
    for every n ≥ d, by inversion of its cumulant generating function; Bartlett's corrected χ² needs n ≫ d².

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> covariance_test(x, np.eye(3)).p_value > 0.01, covariance_test(x, 1.3 * np.eye(3)).p_value < 1e-6
    (True, True)
    """
    W, n, dof_n = counted_scatter(samples_or_scatter, n, mean_known)
    space = whitening(_fit(Sigma, W), rank)
    return whitened_covariance_test(W, space, n, dof_n)


def whitened_covariance_test(W: Array, space: Whitening, n: int, dof_n: int) -> Verdict:
    """Test a scatter matrix W (d, d) as `covariance_test` does, on a known range."""
    null = LikelihoodRatioNull.covariance(space.rank, dof_n)
    statistic = dof_n * stein_loss(space.inside.T @ W @ space.inside / dof_n)
    if statistic == np.inf:  # S singular: n ≥ r distinct normal samples never do that
        return Verdict(np.inf, null.dof, 0.0, 0.0, n)
    outside = float(((space.outside.T @ W) * space.outside.T).sum(1).max(initial=0.0) / dof_n)
    p_value = float(null.sf(statistic)) if outside <= space.tolerance else 0.0
    return Verdict(statistic, null.dof, p_value, outside, n)


def whitened_mean_test(m: Array, space: Whitening, n: int) -> Verdict:
    """Test a mean m (d,) as `mean_test` does, on a known range."""
    from scipy.stats import chi2

    statistic = float(n * ((m @ space.inside) ** 2).sum())
    outside = float(((m @ space.outside) ** 2).max(initial=0.0))
    p_value = float(chi2.sf(statistic, space.rank)) if space.rank else 1.0
    return Verdict(statistic, space.rank, p_value if outside <= space.tolerance else 0.0, outside, n)


def stein_loss(S: Array) -> float:
    """Return Stein's loss tr S − log det S − d ≥ 0, infinite if S is singular.

    By eigenvalues 1 + e as Σ e − log(1 + e), which does not cancel; for many dimensions by the Cholesky factor, whose
    rounding, dε, is then nothing beside the loss, d²/2n or more.
    """
    d = len(S)
    if d <= _FEW:
        excess = np.linalg.eigvalsh(S - np.eye(d))
        return float((excess - np.log1p(excess)).sum()) if (excess > -1).all() else np.inf
    try:
        pivots = np.diag(np.linalg.cholesky(S))
    except np.linalg.LinAlgError:
        return np.inf
    return float((np.diag(S) - 1).sum() - 2 * np.log(pivots).sum())


def mean_test(mean: ArrayLike, Sigma: ArrayLike, n: int) -> Verdict:
    """Test E[x] = 0 by n m*Σ^+m ~ χ²(rank Σ), m the mean of n samples.

    Parameters
    ----------
    mean : (d,)
        Sample mean, minus the mean claimed.
    Sigma : (d, d)
        Covariance of one sample, of any rank. A mean outside its range gets p = 0.
    n : int
        Number of samples.

    Returns
    -------
    Verdict
        The statistic, its p-value.

    Examples
    --------
    >>> mean_test([0.3, 0.0], np.eye(2), 100).statistic
    9.0
    """
    m = np.asarray(mean, float)
    if m.ndim != 1:
        raise ShapeError(f"the mean has shape {m.shape}; give one flat vector")
    if not (np.isfinite(m).all() and n >= 1):
        raise ModelError("the mean has entries that are not finite, or n < 1")
    return whitened_mean_test(m, whitening(_fit(Sigma, m)), n)


def largest_entry_test(
    samples_or_scatter: ArrayLike,
    Sigma: ArrayLike,
    n: int | None = None,
    mean_known: bool = True,
    *,
    rtol: float = 1e-11,
    scale: ArrayLike | None = None,
) -> EntryVerdict:
    """Test Cov = Σ entry by entry: the largest of the normal scores of all S_ij, i ≤ j.

    Unlike the likelihood ratio it depends on the coordinates, so x and Ax are two tests. Each score is
    N(0, 1) to saddlepoint accuracy, skewness included (`entry_score`). They are combined by
    p = 1 − (1 − p_min)^m, which is exact for independent entries and, by Šidák's inequality for normal
    vectors, conservative for dependent ones as n grows.

    Parameters
    ----------
    samples_or_scatter, Sigma, n, mean_known
        As in `covariance_test`; rank plays no part.
    rtol, scale
        Which components have no variance, and what rounding excuses in them, see `whitening`.

    Returns
    -------
    EntryVerdict
        ``statistic`` = max |score|, two-sided; ``index`` its (i, j); ``scores`` (d, d); ``dof`` the number m
        of entries whose two components vary.

    Notes
    -----
    O(d²).

    Examples
    --------
    >>> samples = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> largest_entry_test(samples, np.eye(3)).p_value > 0.01
    True
    """
    from scipy.stats import norm

    W, n, dof_n = counted_scatter(samples_or_scatter, n, mean_known)
    Sigma = _fit(Sigma, W)
    units, alive = deviations(np.diag(Sigma), scale, rtol)
    own = np.where(alive, np.sqrt(np.diag(Sigma)), units)
    y, rho = (A / np.outer(own, own) for A in (W / dof_n, Sigma))
    pairs = np.outer(alive, alive)
    scores = np.zeros_like(y)
    scores[pairs] = entry_score(y[pairs], np.clip(rho[pairs], -1, 1), dof_n)
    i, j = np.unravel_index(int(np.argmax(np.abs(np.triu(scores)))), scores.shape)
    statistic = float(abs(scores[i, j]))
    m = int(alive.sum() * (alive.sum() + 1) // 2)
    p_value = float(-np.expm1(m * np.log1p(-2 * norm.sf(statistic)))) if statistic > 0 else 1.0
    outside = float(np.diag(y)[~alive].max(initial=0.0))
    p_value = p_value if outside <= 10 * rtol else 0.0
    return EntryVerdict(statistic, m, p_value, outside, n, (int(i), int(j)), scores)


def counted_scatter(samples_or_scatter: ArrayLike, n: int | None, mean_known: bool) -> tuple[Array, int, int]:
    """Return scatter matrix, number of samples and degrees of freedom, from samples or a scatter."""
    if n is None:
        x = np.asarray(samples_or_scatter, float)
        W, n = scatter(x, mean_known), int(np.prod(x.shape[:-1]))
    else:
        W = np.asarray(samples_or_scatter, float)
        if W.ndim != 2 or W.shape[0] != W.shape[1]:
            raise ShapeError(f"n is given, so a square scatter matrix is expected, not shape {W.shape}")
        if not np.isfinite(W).all():
            raise ModelError("the scatter matrix has entries that are not finite")
    dof_n = n if mean_known else n - 1
    if dof_n < 1:
        raise ModelError(f"{n} samples are too few; give more")
    return W, n, dof_n


def _fit(Sigma: ArrayLike, sample: Array) -> Array:
    Sigma = np.asarray(Sigma, float)
    if Sigma.shape != (len(sample), len(sample)):
        raise ShapeError(f"the covariance has shape {Sigma.shape}, but the samples have {len(sample)} dimensions")
    return Sigma
