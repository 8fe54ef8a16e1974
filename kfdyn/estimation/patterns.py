"""Batches in which every entry may lack other measurements: grouped by what they lack, smoothed group by group."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.estimation.blocks import Blocks, FloatArray
from kfdyn.estimation.filtering import kalman_filter
from kfdyn.estimation.riccati import Method
from kfdyn.estimation.smoothing import Smoothed, bryson_frazier
from kfdyn.estimation.state_space import StateSpace


@dataclass(frozen=True, eq=False)
class SmoothedBatch:
    """What the smoother knows of a batch whose entries lack different measurements.

    Attributes
    ----------
    ss : StateSpace
        The model.
    batch : tuple of int
        Leading axes of T.
    groups : tuple of (ndarray of int, Smoothed)
        Entries, counted in the flattened batch, that lack the same measurements, and their smoother.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, x0=[0.0], P0=[[2.0]], steps=2)
    >>> found = kf.smooth_batch(ss, [[3.0, np.nan], [np.nan, 3.0], [3.0, 4.0]])
    >>> found.x[0].round(6).tolist(), found.S(2)[0].round(6)
    ([[2.0], [2.0], [2.8]], array([[0.4]]))
    """

    ss: StateSpace
    batch: tuple[int, ...]
    groups: tuple[tuple[NDArray[np.int64], Smoothed], ...] = field(repr=False)

    def _gathered(self, parts: list[FloatArray], size: int) -> FloatArray:
        out = np.empty((int(np.prod(self.batch, dtype=int)), size))
        for (entries, _), part in zip(self.groups, parts):
            out[entries] = part.reshape(len(entries), size)
        return out.reshape(*self.batch, size)

    @cached_property
    def llf(self) -> FloatArray:
        """Log-likelihood of each entry, (...)."""
        parts = [np.atleast_1d(np.asarray(smooth.filt.llf)) for _, smooth in self.groups]
        return self._gathered(parts, 1)[..., 0]

    @cached_property
    def a(self) -> FloatArray:
        """Output co-state, (..., Σm_k); 0 where T is missing."""
        return self._gathered([smooth.a for _, smooth in self.groups], self.ss.n_outputs)

    @cached_property
    def x(self) -> Blocks:
        """Smoothed states x̂(k), (..., n_k)."""
        return self.ss.state_blocks(self._gathered([s.x.flat for _, s in self.groups], self.ss.n_states))

    @cached_property
    def costate(self) -> Blocks:
        """Co-states λ(k), (..., n_k)."""
        return self.ss.state_blocks(self._gathered([s.costate.flat for _, s in self.groups], self.ss.n_states))

    def S(self, *entry: int) -> Blocks:
        """Covariances of the smoothed error of one entry of the batch; entries that lack the same share them."""
        at = int(np.ravel_multi_index(entry, self.batch)) if self.batch else 0
        return next(smooth.S for entries, smooth in self.groups if at in entries)


def smooth_batch(
    ss: StateSpace,
    T: ArrayLike,
    xi: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    *,
    method: Method = "block",
) -> SmoothedBatch:
    """Filter and smooth a batch in which each entry may lack other measurements.

    Parameters
    ----------
    ss : StateSpace
        The model.
    T : array, shape (..., Σm_k)
        Measurements, NaN where missing.
    xi, eta : array, shape (..., Σn_k), optional
        Known inputs; batch axes broadcast against those of T.
    method : {"block", "univariate", "square_root"}
        As for :func:`kalman_filter`.

    Returns
    -------
    SmoothedBatch
        Log-likelihood, a, x̂ and λ of all entries in the shape of the batch; covariances by entry.

    Notes
    -----
    The covariances are swept once for each pattern that occurs, the vectors once for each entry.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=3)
    >>> T = np.array([[1.0, np.nan, 2.0], [np.nan, 0.5, 1.0]])
    >>> kf.smooth_batch(ss, T).llf.round(4)
    array([-3.3823, -3.0026])
    """
    measured = ss.check_outputs(T, "T", allow_nan=True)
    known = [None if u is None else ss.check_states(u, name) for name, u in (("xi", xi), ("eta", eta))]
    batch = np.broadcast_shapes(measured.shape[:-1], *(u.shape[:-1] for u in known if u is not None))
    rows = np.broadcast_to(measured, (*batch, ss.n_outputs)).reshape(-1, ss.n_outputs)
    inputs = [None if u is None else np.broadcast_to(u, (*batch, ss.n_states)).reshape(-1, ss.n_states) for u in known]
    missing = np.isnan(rows)
    _, group = np.unique(missing, axis=0, return_inverse=True)
    group = group.reshape(-1)
    groups = []
    for g in range(int(group.max(initial=-1)) + 1):
        entries = np.flatnonzero(group == g)
        own = [None if u is None else u[entries] for u in inputs]
        filt = kalman_filter(ss, rows[entries], own[0], own[1], method=method)
        groups.append((entries, bryson_frazier(ss, filt)))
    return SmoothedBatch(ss, batch, tuple(groups))
