"""The filter's covariances and gains, which depend on no measurement, for one pattern of missing outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.overflow import expect_finite_blocks, sum_is_finite
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.precision.cancellation import Loss, lost_digits

Method = Literal["block", "univariate", "square_root"]
BoolArray = NDArray[np.bool_]

_WORTH_COMPILING = 64  # nodes
_LEAST_TILED, _LEAST_TILED_SCALAR = 8, 12  # states of the largest block from which tiles pay; with one output a node
_LARGEST_STATIC = 8  # states; larger blocks gain nothing from constant sizes
_NONE, _NOWHERE = np.empty(0), np.empty(0, np.int64)  # where a sweep has nothing to fill


class SmoothedCovariances(NamedTuple):
    """Covariances that the smoother leaves at each node.

    Attributes
    ----------
    Lambda : Blocks of (n_k, n_k)
        Λ, the covariance of the co-state.
    S : Blocks of (n_k, n_k)
        The covariance of x given all measurements: P − P Λ P.
    """

    Lambda: Blocks
    S: Blocks


@dataclass(frozen=True, eq=False)
class Riccati:
    """Covariances of the filter for one model and one pattern of missing measurements.

    ::

        P(k)  = Σ_j φ(k,j) P⁺(j) φ*(k,j) + Q(k)       D = H P H* + R
        G(k)  = P H* D⁻¹                              P⁺ = P − G D G*

    Attributes
    ----------
    ss : StateSpace
        The model.
    observed : ndarray of bool, shape (Σm_k,)
        Which outputs are measured.
    P, P_plus : Blocks of (n_k, n_k)
        Error covariance before and after the measurement of node k; exactly symmetric.
    D : Blocks of (m_k, m_k)
        Innovations covariance, missing outputs included (it is their predictive covariance).
    D_factor : Blocks of (m_k, m_k)
        Lower L with L L* = D on the observed outputs, the identity on the others.
    G : Blocks of (n_k, m_k)
        Kalman gain, zero columns at missing outputs.
    sizes
        Block sizes as the compiled sweeps know them; None where they vary.

    Examples
    --------
    A random walk, measured with as much noise as it makes: its variance settles at the golden ratio.

    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=50)
    >>> round(kf.riccati(walk).P[49].item(), 9)
    1.618033989
    """

    ss: StateSpace
    observed: BoolArray
    P: Blocks
    P_plus: Blocks
    D: Blocks
    D_factor: Blocks
    G: Blocks
    sizes: Any = field(repr=False, default=None)
    by_roots: ClassVar[bool] = False

    @cached_property
    def flats(self) -> Any:
        """All of it as flat arrays, for the sweeps."""
        from kfdyn.estimation.recursions.state_space import Covariances

        blocks = (self.P, self.P_plus, self.D, self.D_factor, self.G)
        return Covariances(self.observed, *(one.flat for one in blocks))

    @cached_property
    def loss(self) -> Loss:
        """The digits lost to cancellation, by :func:`kfdyn.estimation.precision.cancellation.lost_digits`."""
        return lost_digits(self)

    @cached_property
    def K(self) -> Blocks:
        """Gain on the parent, K(k) = φ(p(k),k) G(k), (n_parent, m_k); no rows at a root."""
        from kfdyn.estimation.recursions.linalg import products

        ss = self.ss
        K = Blocks(np.zeros(int((ss.phi.rows * ss.m).sum())), ss.phi.rows, ss.m)
        products.node_products(ss.phi.ragged, self.G.ragged, K.ragged)
        return K

    @cached_property
    def logdet(self) -> float:
        """Sum of log det D(k) over the observed outputs: log det 𝓜 (SKO "determinant")."""
        factor = self.D_factor.flat if self.ss.common.m == 1 else self.D_factor.diagonals()
        return 2.0 * float(np.add.reduce(np.log(factor)))

    @cached_property
    def smoothed(self) -> SmoothedCovariances:
        """Λ(k) and S(k), the scatter of THEORY (5), done when first asked for."""
        from kfdyn.estimation.recursions.costate_covariances import SMOOTHED

        ss = self.ss
        Lambda, S = np.empty_like(ss.Q.flat), np.empty_like(ss.Q.flat)
        if self._scatter(SMOOTHED, Lambda, S=S):
            from kfdyn.estimation.recursions.rts import ByParent, restore_cancelled

            work = np.empty(ByParent.size(ss.common.most_states))
            restore_cancelled(ss.address, self.flats, Lambda, S, np.zeros(ss.n_states), work)
        result = SmoothedCovariances(ss.Q.like(frozen(Lambda)), ss.Q.like(frozen(S)))
        for name, blocks in (("Λ", result.Lambda), ("S", result.S)):
            expect_finite_blocks(ss.tree, name, blocks, ss.tree.order[::-1])
        return result

    def logdet_of_maps(self) -> tuple[Blocks, Blocks]:
        """−½ ∂ log det 𝓜 in φ and H: −Λ(p)φP⁺ and −(CH − G*Λ⁺)P, in one scatter with Λ and C; new arrays each time."""
        from kfdyn.estimation.recursions.costate_covariances import SCORED

        ss = self.ss
        steps = Blocks(_NONE, ss.phi.rows, ss.n)  # each stored for itself, though the model's may be shared
        Lambda, C, H = (np.empty_like(blocks.flat) for blocks in (ss.Q, ss.R, ss.H))
        phi = np.empty(int(steps.offsets[-1]))
        self._scatter(SCORED, Lambda, C=C, phi=phi, phi_at=steps.offsets, H=H)
        if "_weighed" not in self.__dict__:
            self.__dict__["_weighed"] = self._checked(Lambda), ss.R.like(frozen(C))
        return steps.like(phi), ss.H.like(H)

    @cached_property
    def _weighed(self) -> tuple[Blocks, Blocks]:
        """Λ and C."""
        from kfdyn.estimation.recursions.costate_covariances import INVERSE

        Lambda, C = np.empty_like(self.ss.Q.flat), np.empty_like(self.ss.R.flat)
        self._scatter(INVERSE, Lambda, C=C)
        return self._checked(Lambda), self.ss.R.like(frozen(C))

    @property
    def Lambda(self) -> Blocks:
        """Λ(k) alone: half of the scatter, if the smoother has not done it."""
        return self.smoothed.Lambda if "smoothed" in self.__dict__ else self._weighed[0]

    @property
    def inverse_blocks(self) -> Blocks:
        """C(k) = D⁻¹ + G*Λ⁺G, the diagonal blocks of 𝓜⁻¹; 0 where nothing is measured (R86 (10.3), (10.29))."""
        return self._weighed[1]

    def _checked(self, Lambda: FloatArray) -> Blocks:
        blocks = self.ss.Q.like(frozen(Lambda))
        expect_finite_blocks(self.ss.tree, "Λ", blocks, self.ss.tree.order[::-1])
        return blocks

    def _scatter(self, wanted: int, Lambda: FloatArray, **found: Any) -> int:
        """Fill Λ and what is wanted beside it; returns how many S have lost digits."""
        from kfdyn.estimation.recursions.costate_covariances import Scatter, Scattered, scatter_covariances
        from kfdyn.sweeps import Tag

        ss = self.ss
        arrays = dict.fromkeys(("S", "C", "phi", "H"), _NONE) | {"phi_at": _NOWHERE} | found
        tags = matrix_sizes(ss), None if ss.common.most_outputs <= 1 else Tag(1), Tag(wanted)
        work = np.empty(Scatter.size(ss.common.most_states, ss.common.most_outputs))
        return scatter_covariances(*tags, ss.address, self.flats, Scattered(Lambda, **arrays), work)


def covariances_to_fill(ss: StateSpace, seen: BoolArray) -> tuple[FloatArray, Any]:
    """Empty arrays for a gather; P, P⁺, D and G in one buffer, so that one look tells whether all is finite."""
    states, outputs = ss.Q.flat.size, ss.R.flat.size
    found = np.empty(2 * states + outputs + ss.H.flat.size)
    P, P_plus = found[:states], found[states : 2 * states]
    D, G = found[2 * states : 2 * states + outputs], found[2 * states + outputs :]
    return found, gather_kernels().covariances(seen, P, P_plus, D, np.empty(outputs), G)


def finished(kind: type[Riccati], ss: StateSpace, found: FloatArray, flats: Any, *more: Any) -> Any:
    """The result of a gather, whose arrays are read-only from now on, if all that was found is finite."""
    seen, P, P_plus, D, L, G = map(frozen, flats)
    gains = Blocks(G, ss.n, ss.m, ss.H.offsets)
    result = kind(ss, seen, ss.Q.like(P), ss.Q.like(P_plus), ss.R.like(D), ss.R.like(L), gains, *more)
    result.__dict__["flats"] = flats
    if not sum_is_finite(found):
        for name, blocks in (("P", result.P), ("D", result.D), ("P⁺", result.P_plus), ("G", result.G)):
            expect_finite_blocks(ss.tree, name, blocks, ss.tree.order, None if name == "P" else result.D)
    return result


@cache
def gather_kernels() -> Any:
    """Return the kernels of the gather: an import at each call would take longer than a filter of a few nodes."""
    from types import SimpleNamespace

    from kfdyn.estimation.recursions.riccati.riccati import BLOCK, NONE, TILED, UNIVARIATE, Gather, gather_covariances
    from kfdyn.estimation.recursions.state_space import Covariances
    from kfdyn.sweeps import Tag

    ways = {"scalar": Tag(NONE), "block": Tag(BLOCK), "univariate": Tag(UNIVARIATE), "tiled": Tag(TILED)}
    return SimpleNamespace(run=gather_covariances, covariances=Covariances, size=Gather.size, ways=ways)


def common_sizes(ss: StateSpace) -> Any:
    """Sizes that all nodes share, which then are constants of the compiled sweeps, where compiling pays; else None."""
    n, m = ss.common.n, ss.common.m
    few = len(ss) < _WORTH_COMPILING and not ss.in_parts
    if few or n is None or not 0 < n <= _LARGEST_STATIC:
        return _sizes(None, None)
    return _sizes(n, 1 if m == 1 else None)


def matrix_sizes(ss: StateSpace) -> Any:
    """The same for sweeps of covariances, which go by tiles where blocks are large."""
    least = _LEAST_TILED if ss.common.most_outputs > 1 else _LEAST_TILED_SCALAR
    return common_sizes(ss) if ss.common.most_states < least else _tiled_sizes()


@cache
def _tiled_sizes() -> Any:
    from kfdyn.estimation.recursions.state_space import Sizes
    from kfdyn.sweeps import Tag

    return Sizes(None, None, Tag(1))


@cache
def _sizes(n: int | None, m: int | None) -> Any:
    from kfdyn.estimation.recursions.state_space import Sizes
    from kfdyn.sweeps import Tag

    return Sizes(*(None if size is None else Tag(size) for size in (n, m)))


def frozen(array: Any) -> Any:
    """The array, read-only from now on."""
    array.flags.writeable = False
    return array
