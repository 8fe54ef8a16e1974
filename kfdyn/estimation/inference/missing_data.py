"""Batches in which every entry may lack other measurements: grouped by what they lack, smoothed group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.flat.flat_score import score_of
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.filter_covariances import Method
from kfdyn.estimation.inference.filtered import Filtered
from kfdyn.estimation.inference.scored import Score
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.model.state_space import StateSpace, expect_model
from kfdyn.estimation.precision.cancellation import warn_of_the_worst


def patterns(T: FloatArray) -> list[IntArray]:
    """Entries of the flattened batch (..., Σm) that lack the same, group by group; one empty group for no entry.

    Examples
    --------
    >>> patterns(np.array([[1.0, np.nan], [2.0, 3.0], [0.0, np.nan]]))
    [array([0, 2]), array([1])]
    """
    found: dict[bytes, list[int]] = {}
    missing = np.isnan(T).reshape(int(np.prod(T.shape[:-1], dtype=int)), T.shape[-1])
    for i, row in enumerate(np.packbits(missing, axis=1)):
        found.setdefault(row.tobytes(), []).append(i)
    return [np.array(entries, dtype=np.int64) for entries in found.values() or [[]]]


def gathered(batch: tuple[int, ...], groups: Sequence[IntArray], parts: Sequence[FloatArray]) -> FloatArray:
    """Rows of all groups in the order of the batch, (*batch, size); a part may have one row for all its entries."""
    out = np.empty((int(np.prod(batch, dtype=int)), parts[0].shape[-1]))
    for entries, part in zip(groups, parts):
        out[entries] = part
    return out.reshape(*batch, out.shape[-1])


def named(entry: int, batch: tuple[int, ...], error: SingularError) -> SingularError:
    """The error of one group, with the first entry that it concerns."""
    at = ", ".join(str(i) for i in np.unravel_index(entry, batch))
    return SingularError(f"batch entry [{at}]: {error}", error.node)


@dataclass(frozen=True, eq=False)
class SmoothedBatch:
    """The smoother's results for a batch whose entries lack different measurements.

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
    groups: tuple[tuple[IntArray, Smoothed], ...] = field(repr=False)

    def _gathered(self, parts: list[FloatArray]) -> FloatArray:
        return gathered(self.batch, [entries for entries, _ in self.groups], parts)

    @cached_property
    def llf(self) -> FloatArray:
        """Log-likelihood of each entry, (...)."""
        return self._gathered([np.reshape(smooth.filt.llf, (-1, 1)) for _, smooth in self.groups])[..., 0]

    @cached_property
    def a(self) -> FloatArray:
        """Output co-state, (..., Σm_k); 0 where T is missing."""
        return self._gathered([smooth.a for _, smooth in self.groups])

    @cached_property
    def x(self) -> Blocks:
        """Smoothed states x̂(k), (..., n_k)."""
        return self.ss.state_blocks(self._gathered([s.x.flat for _, s in self.groups]))

    @cached_property
    def costate(self) -> Blocks:
        """Co-states λ(k), (..., n_k)."""
        return self.ss.state_blocks(self._gathered([s.costate.flat for _, s in self.groups]))

    def S(self, *entry: int) -> Blocks:
        """Covariances of the smoothed error of one entry of the batch; entries that lack the same share them."""
        at = int(np.ravel_multi_index(entry, self.batch)) if self.batch else 0
        return next(smooth.S for entries, smooth in self.groups if at in entries)

    @cached_property
    def score(self) -> ScoreBatch:
        """Gradient of the log-likelihood of each entry in every block of the model."""
        return ScoreBatch(self, tuple(score_of(smooth) for _, smooth in self.groups))


@dataclass(frozen=True, eq=False)
class ScoreBatch(Score):
    """Gradients of the log-likelihoods of a batch whose entries lack different measurements, one for each entry.

    The attributes are those of :class:`Score`, batch axes leading, in logdet_Q and logdet_R too.

    Attributes
    ----------
    smooth : SmoothedBatch
        What the gradients are read off.
    parts : tuple of Score
        The scores of its groups.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, x0=[0.0], P0=one, steps=2)
    >>> kf.score(ss, [[3.0, 0.0], [3.0, np.nan], [0.0, 3.0]]).R[0].round(6).ravel()
    array([1.666667, 0.875   , 0.166667])
    """

    smooth: SmoothedBatch = field(repr=False)  # type: ignore[assignment]
    parts: tuple[Score, ...] = field(repr=False)

    @property
    def filt(self) -> Filtered:
        """Refused: each group of entries has its own."""
        raise ModelError(
            "the entries of this batch lack different measurements, so each group of them has its own filter: "
            "score.parts[i].filt, for the entries score.smooth.groups[i][0]"
        )

    @property
    def llf(self) -> FloatArray:
        """The log-likelihood of each entry, (...)."""
        return self.smooth.llf

    def _blocks(self, read: Callable[[Score], Blocks]) -> Blocks:
        blocks = [read(part) for part in self.parts]
        return blocks[0].like(self.smooth._gathered([b.flat for b in blocks]))

    @cached_property
    def phi(self) -> Blocks:
        """∂ℓ/∂φ(p,k), (..., n_parent, n_k)."""
        return self._blocks(lambda score: score.phi)

    @cached_property
    def H(self) -> Blocks:
        """∂ℓ/∂H(k), (..., m_k, n_k); 0 where T is missing."""
        return self._blocks(lambda score: score.H)

    @cached_property
    def Q(self) -> Blocks:
        """∂ℓ/∂Q(k), (..., n_k, n_k)."""
        return self._blocks(lambda score: score.Q)

    @cached_property
    def R(self) -> Blocks:
        """∂ℓ/∂R(k), (..., m_k, m_k); 0 where T is missing."""
        return self._blocks(lambda score: score.R)

    @cached_property
    def xi(self) -> FloatArray:
        """∂ℓ/∂ξ, (..., Σn_k)."""
        return self.smooth._gathered([score.xi for score in self.parts])

    @cached_property
    def eta(self) -> FloatArray:
        """∂ℓ/∂η, (..., Σn_k)."""
        return self.smooth._gathered([score.eta for score in self.parts])

    @cached_property
    def logdet_Q(self) -> Blocks:
        """∂ log det 𝓜/∂Q(k), (..., n_k, n_k)."""
        return self._blocks(lambda score: score.logdet_Q)

    @cached_property
    def logdet_R(self) -> Blocks:
        """∂ log det 𝓜/∂R(k), (..., m_k, m_k)."""
        return self._blocks(lambda score: score.logdet_R)


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
        Log-likelihood, a, x̂, λ and score of all entries in the shape of the batch; covariances by entry.

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
    expect_model(ss)
    found = smooth_groups(ss, T, (xi, eta), method)
    if ss.flat is None and method != "square_root":
        warn_of_the_worst([smooth.filt.covariances for _, smooth in found.groups], level=2)
    return found


def smooth_groups(
    ss: StateSpace,
    T: ArrayLike,
    inputs: tuple[ArrayLike | None, ArrayLike | None],
    method: Method,
    unseen: StateSpace | None = None,
) -> SmoothedBatch:
    """Smooth for :func:`smooth_batch`; entries without any measurement are smoothed in ``unseen``, if given."""
    measured = ss.check_outputs(T, "T", allow_nan=True)
    known = [None if u is None else ss.check_states(u, name) for name, u in zip(("xi", "eta"), inputs)]
    batch = np.broadcast_shapes(measured.shape[:-1], *(u.shape[:-1] for u in known if u is not None))
    count = int(np.prod(batch, dtype=int))
    rows = np.broadcast_to(measured, (*batch, ss.n_outputs)).reshape(count, ss.n_outputs)
    each = [None if u is None else np.broadcast_to(u, (*batch, ss.n_states)).reshape(count, ss.n_states) for u in known]
    groups, found = [], patterns(rows)
    for entries in found:
        own = [None if u is None else u[entries] for u in each]
        model = unseen if unseen is not None and np.isnan(rows[entries]).all() else ss
        try:
            filt = kalman_filter(model, rows[entries], own[0], own[1], method=method)
        except SingularError as error:
            raise (named(int(entries[0]), batch, error) if len(found) > 1 else error) from None
        groups.append((entries, bryson_frazier(model, filt)))
    return SmoothedBatch(ss, batch, tuple(groups))
