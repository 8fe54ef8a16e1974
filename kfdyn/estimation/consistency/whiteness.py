"""Test the whiteness of innovations over a tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.consistency.moments import counted_scatter, stein_loss
from kfdyn.estimation.consistency.null_distributions import LikelihoodRatioNull
from kfdyn.estimation.consistency.verdict import Verdict

__all__ = ["tree_portmanteau", "whiteness"]


def whiteness(
    samples_or_scatter: ArrayLike,
    sizes: Sequence[int],
    n: int | None = None,
    mean_known: bool = True,
) -> Verdict:
    """Test that node blocks are uncorrelated, whatever they are within: many draws of one model.

    LR = −n log(det S / Π_k det S_kk), Wilks' statistic, with the null distribution of `LikelihoodRatioNull`.

    Parameters
    ----------
    samples_or_scatter : (..., Σm) or (Σm, Σm)
        Innovations, node by node, or their scatter matrix when n is given.
    sizes : sequence of int
        Output size m_k of each node; 0 is allowed.
    n, mean_known
        As in `covariance_test`; more samples than dimensions are needed.

    Returns
    -------
    Verdict
        Upper tail; ``dof`` = number of entries in the cross-node blocks above the diagonal.

    Notes
    -----
    Unaffected by a wrong D(k): it says whether the filter took out everything outboard, and only that.
    O((Σm)³).

    Examples
    --------
    >>> eps = np.random.default_rng(1).normal(size=(200, 4))
    >>> whiteness(eps, [1, 2, 0, 1]).p_value > 0.01
    True
    >>> eps[:, 3] += 0.5 * eps[:, 0]
    >>> whiteness(eps, [1, 2, 0, 1]).p_value < 1e-6
    True
    """
    W, n, dof_n = counted_scatter(samples_or_scatter, n, mean_known)
    sizes = [int(m) for m in sizes]
    if sum(sizes) != len(W) or min(sizes, default=0) < 0:
        raise ShapeError(f"the sizes of the nodes sum to {sum(sizes)}, but the innovations have {len(W)} entries")
    null = LikelihoodRatioNull.independence(sizes, dof_n)
    whitener = np.zeros_like(W)
    stop = 0
    for m in sizes:
        block = slice(stop, stop := stop + m)
        try:
            whitener[block, block] = np.linalg.inv(np.linalg.cholesky(W[block, block]))
        except np.linalg.LinAlgError:
            raise ModelError(
                f"innovations {block.start} to {block.stop - 1} have a singular sample covariance; drop the "
                "outputs that are missing or constant"
            ) from None
    unit = whitener @ W @ whitener.T
    np.fill_diagonal(unit, 1.0)  # its own blocks are identities, so that tr − d = 0
    statistic = dof_n * stein_loss(unit)
    if statistic == np.inf:
        return Verdict(np.inf, null.dof, 0.0, 0.0, n)
    return Verdict(statistic, null.dof, float(null.sf(statistic)), 0.0, n)


def tree_portmanteau(
    e: ArrayLike,
    parent: Sequence[int],
    sizes: Sequence[int],
    lags: int = 5,
    *,
    draws: int = 999,
    seed: int = 0,
) -> Verdict:
    """Test whiteness of one run: products of standardised innovations with those of ancestors, lags 1 … L.

    Q = Σ_{l,i,j} [Σ_k e_i(k) e_j(p^l(k))]² / count(l, i, j), Box and Pierce's statistic with ancestors for
    the past and the variance known. On a chain Q tends to χ²; on a bushy tree it does not (all children
    share one parent), so the p-value is Monte Carlo's: the rank of Q among ``draws`` values on normal white
    noise on the same tree. That is exact for every tree and every size, in steps of 1/(draws + 1).

    Parameters
    ----------
    e : (..., Σm)
        Standardised innovations D^-½ε, N(0, I) if the filter is right; leading axes are independent runs.
        Entries that are NaN (missing) are left out, in one pattern for all runs.
    parent : sequence of int
        Parent of each node, −1 at a root.
    sizes : sequence of int
        Output size of each node.
    lags : int
        How many ancestors to look at.
    draws, seed
        Number and seed of the white-noise runs.

    Returns
    -------
    Verdict
        Upper tail; ``dof`` = number of (l, i, j).

    Notes
    -----
    O(draws · N · lags · m²).

    Examples
    --------
    White noise on a tree of 127 nodes passes; noise in which each node follows its parent does not:

    >>> parent = (np.arange(127) - 1) // 2
    >>> e = np.random.default_rng(0).normal(size=127)
    >>> tree_portmanteau(e, parent, np.ones(127, int)).p_value > 0.05
    True
    >>> follows = e + e[parent]
    >>> tree_portmanteau(follows, parent, np.ones(127, int)).p_value
    0.001
    """
    e = np.asarray(e, float)
    m = np.asarray(sizes, int)
    if e.ndim == 0 or e.shape[-1] != m.sum():
        raise ShapeError(f"e has shape {e.shape}; its last axis must hold the {m.sum()} outputs of all nodes")
    if len(parent) != len(m) or lags < 1:
        raise ShapeError(f"{len(parent)} parents for {len(m)} nodes and {lags} lags; one parent a node, lags ≥ 1")
    e = e.reshape(-1, e.shape[-1])
    seen = ~np.isnan(e).any(0)
    if not np.isfinite(e[:, seen]).all() or (np.isnan(e) == seen).any():
        raise ModelError("e is infinite somewhere, or NaN in another pattern from run to run")
    left, right, entry = _pairs(np.asarray(parent, int), m, seen, lags)
    if not len(entry):
        return Verdict(0.0, 0, 1.0, 0.0, len(e))
    starts = np.flatnonzero(np.diff(entry, prepend=-1))
    count = np.diff(starts, append=len(entry)) * len(e)

    def portmanteau(noise: Array) -> float:
        total = np.add.reduceat(np.einsum("bi,bi->i", noise[:, left], noise[:, right]), starts)
        return float((total**2 / count).sum())

    rng = np.random.default_rng(seed)
    statistic = portmanteau(e)
    exceed = sum(portmanteau(rng.normal(size=e.shape)) >= statistic for _ in range(draws))
    return Verdict(statistic, len(starts), (1 + exceed) / (1 + draws), 0.0, len(e))


def _pairs(
    parent: NDArray[np.int_], m: NDArray[np.int_], seen: NDArray[np.bool_], lags: int
) -> tuple[NDArray[np.int_], NDArray[np.int_], NDArray[np.int_]]:
    """Return index pairs (own output, ancestor's output), sorted by the entry (lag, i, j) they are summed in."""
    node = np.repeat(np.arange(len(m)), m)
    start = np.cumsum(m) - m
    within = np.arange(len(node)) - start[node]
    widest = int(m.max(initial=1))
    left: list[NDArray[np.int_]] = []
    right: list[NDArray[np.int_]] = []
    entry: list[NDArray[np.int_]] = []
    ancestor = node
    for lag in range(lags):
        ancestor = np.where(ancestor >= 0, parent[ancestor], -1)
        for j in range(widest):
            own = np.flatnonzero((ancestor >= 0) & (m[ancestor] > j) & seen)
            other = start[ancestor[own]] + j
            both = seen[other]
            left.append(own[both])
            right.append(other[both])
            entry.append((lag * widest + j) * widest + within[own[both]])
    order = np.argsort(np.concatenate(entry), kind="stable")
    return np.concatenate(left)[order], np.concatenate(right)[order], np.concatenate(entry)[order]
