"""A model split over mass-less nodes, and the way back: quantities of whole hinges from those of their parts (PART)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.estimation import Blocks, StateSpace
from kfdyn.estimation.inference.filter_covariances import Riccati
from kfdyn.estimation.inference.riccati import riccati

Index = NDArray[np.int64]


class MergedCovariances(NamedTuple):
    """Quantities of whole hinges put together from those of their parts; lists over the nodes of the whole."""

    P: list[Array]
    P_plus: list[Array]
    D: list[Array]
    D_inverse: list[Array]
    G: list[Array]


@dataclass(frozen=True, eq=False)
class Partition:
    """A model whose outputs are split over mass-less nodes, and the way back.

    Attributes
    ----------
    whole, ss : StateSpace
        The model as given, and the split one.
    body, base : ndarray of int, shape (N,)
        Node of ``ss`` that is node k of ``whole`` (outermost, with its Q), and the innermost of its mass-less nodes
        (k itself if it has none), which hangs on ``body`` of the parent.
    owner : ndarray of int, shape (len(ss),)
        Node of ``whole`` that each node of ``ss`` is a part of.
    mix : list of (m_k, m_k) arrays
        W(k): the parts' outputs are W(k) T(k), a permutation or, where a full R was decorrelated, a triangular mix.

    Examples
    --------
    A ball joint as three pins; the parts know which body they belong to, and merge to the whole:

    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.System([kf.Body("arm", np.diag([1.0, 2.0, 3.0, 4.0, 4.0, 4.0]), kf.Hinge.ball())])
    >>> split = kf.partition_hinges(kf.as_estimation(arm, arm.neutral()))
    >>> split.owner, split.merge().D[0].diagonal()
    (array([0, 0, 0]), array([1., 2., 3.]))
    """

    whole: StateSpace
    ss: StateSpace
    body: Index = field(repr=False)
    base: Index = field(repr=False)
    owner: Index = field(repr=False)
    mix: list[Array] = field(repr=False)

    def split_outputs(self, T: ArrayLike) -> Array:
        """Measurements of the parts, (..., Σm_k) to (..., Σm_k): W T, node by node; NaN stays where it belongs."""
        given = self.whole.check_outputs(T, "T", allow_nan=True)
        out = np.empty_like(given)
        for k, (at, W) in enumerate(zip(pairwise(self.whole.arrays.output), self.mix)):
            own = given[..., slice(*at)]
            missing = np.isnan(own)
            if missing.any() and not missing.all() and np.count_nonzero(W) > len(W):
                raise ModelError(
                    f"{self.whole.tree.label(k)} has a part of its outputs missing, but they were mixed to decorrelate "
                    'R; partition with correlated="block" to keep them together'
                )
            told = np.where(missing, 0.0, own) @ W.T
            told[(missing[..., None, :] & (W != 0)).any(axis=-1)] = np.nan
            out[..., slice(*at)] = told
        return out

    def merge_outputs(self, a: ArrayLike) -> Array:
        """Accelerations of the whole from those of the parts, (..., Σm_k): W* a, node by node."""
        given = self.ss.check_outputs(a, "a")
        parts = [given[..., slice(*at)] @ W for at, W in zip(pairwise(self.whole.arrays.output), self.mix)]
        return np.concatenate(parts, axis=-1)

    def merge_states(self, parts: Blocks) -> list[Array]:
        """Quantities of the whole's nodes: x, λ, z, P, Λ and S are those of the nodes that carry the bodies."""
        return [parts[k] for k in self.body]

    def merge(self, covariances: Riccati | None = None) -> MergedCovariances:
        """P, P⁺, D, D⁻¹ and G of the whole from the Riccati solution of the parts.

        ::

            D̲⁻¹ = [[D⁻¹, 0], [0, 0]] + [−G*H_C*; 1] D⁻¹(k′) [−H_C G, 1]            PART (9)
            G̲   = [G, 0] + P⁺ H_C* D⁻¹(k′) [−H_C G, 1]                             PART (10)
            P̲⁺  = P⁺ − P⁺ H_C* D⁻¹(k′) H_C P⁺                                      PART (18)

        with H_C = H(k′) φ(k′,k), one part after the other. Hold for any R that has no blocks between the parts.

        Parameters
        ----------
        covariances : Riccati, optional
            Of ``ss``; computed if not given.
        """
        cov = riccati(self.ss) if covariances is None else covariances
        if cov.ss is not self.ss or not cov.observed.all():
            raise ModelError(
                "merge needs the Riccati solution of the split model, Partition.ss, with every output seen"
            )
        out = MergedCovariances([], [], [], [], [])
        for k, W in enumerate(self.mix):
            body = int(self.body[k])
            P_plus, D, G = cov.P_plus[body], cov.D[body], cov.G[body]
            D_inverse, carried = np.linalg.inv(D), np.eye(len(P_plus))
            for part in range(body + 1, int(self.base[k]) + 1):
                carried = self.ss.phi[part - 1] @ carried  # φ(k′,k)
                H_C, D_part = self.ss.H[part] @ carried, cov.D[part]
                reach = np.hstack([-H_C @ G, np.eye(len(H_C))])
                cross = D @ G.T @ H_C.T
                D = np.block([[D, cross], [cross.T, H_C @ G @ cross + D_part]])
                D_inverse = _bordered(D_inverse, reach, D_part)
                gain = np.linalg.solve(D_part, H_C @ P_plus).T
                G = np.hstack([G, np.zeros((len(G), len(H_C)))]) + gain @ reach
                P_plus = P_plus - gain @ H_C @ P_plus
            unmix = np.linalg.inv(W)
            parts = (cov.P[body], P_plus, unmix @ D @ unmix.T, W.T @ D_inverse @ W, G @ W)
            for own, value in zip(out, parts):
                own.append(value)
        return out


def _bordered(inverse: Array, reach: Array, D_part: Array) -> Array:
    """PART (9): the inverse of D grown by one part."""
    m = len(inverse)
    out = reach.T @ np.linalg.solve(D_part, reach)
    out[:m, :m] += inverse
    return out
