"""Propagate D and G of a uniform chain directly, without P (Chandrasekhar, Morf and Kailath).

Where φ, H, Q and R are the same at every node, P changes by increments of low rank, P(k+1) − P(k) = L M L*, whose
factors obey a recursion of their own. R86 section 12 asks for it: "fast" filtering, "which involves direct
propagation of the filter gain as opposed to indirect methods requiring covariance propagation".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.model.blocks import FloatArray, real_array
from kfdyn.estimation.model.packing import Packed
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.model.validation import expect_covariance

#: Increments below this share of D and of the gain are rounding: the gain has settled.
SETTLED = 4 * np.finfo(float).eps
#: Directions of the first increment below n times this share of P are rounding: a stationary prior is solved for.
ROUNDING = 32 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class FastGain:
    """Innovations covariances and gains of a uniform chain, leaf first.

    Attributes
    ----------
    D : ndarray, shape (s, m, m)
        D(k) up to the step at which it settled, s ≤ N; from there on it is the last.
    G : ndarray, shape (s, n, m)
        Kalman gains, likewise.
    steps : int
        N.
    rank : int
        Columns of L: the rank of the first increment, at most n.
    settled : int or None
        Step from which D and G do not change any more; None if they do to the end.
    flops : int
        Floating-point operations of the recursion, counted from the shapes of its products.

    Examples
    --------
    A level that drifts, seen through noise; the gain settles at the golden ratio's inverse:

    >>> import kfdyn as kf
    >>> found = kf.fast_gain([[1.0]], [[1.0]], [[1.0]], [[1.0]], [[5.0]], steps=1000)
    >>> found.gain(999).round(9), found.rank, found.settled
    (array([[0.61803399]]), 1, 19)
    """

    D: FloatArray = field(repr=False)
    G: FloatArray = field(repr=False)
    steps: int
    rank: int
    settled: int | None
    flops: int

    def gain(self, k: int) -> FloatArray:
        """G(k), (n, m), k = 0 at the leaf; negative ones count from the end."""
        return self.G[self._stored(k)]

    def innovation(self, k: int) -> FloatArray:
        """D(k), (m, m)."""
        return self.D[self._stored(k)]

    def _stored(self, k: int) -> int:
        if not -self.steps <= k < self.steps:
            raise IndexError(f"step {k} is out of range for {self.steps} steps")
        return min(int(k) % self.steps, len(self.D) - 1)

    @property
    def logdet(self) -> float:
        """Σ log det D(k): log det 𝓜 of the chain."""
        each = np.linalg.slogdet(self.D)[1]
        return float(each.sum() + (self.steps - len(each)) * each[-1])


def fast_gain(
    F: ArrayLike,
    H: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    P0: ArrayLike,
    steps: int,
    *,
    tolerance: float = SETTLED,
) -> FastGain:
    """D and G of a uniform chain by increments of low rank, without P.

    ::

        P(2) − P(1) = L Σ L*,   U = P H*
        D⁺ = D + HL Σ (HL)*,    U⁺ = U + L Σ (HL)*,    G⁺ = U⁺ D⁺⁻¹
        Σ⁺ = Σ + Σ (HL)* D⁻¹ HL Σ,                     L⁺ = F (L − G⁺ HL)

    Parameters
    ----------
    F, H, Q, R : (n, n), (m, n), (n, n), (m, m)
        The same at every step; of a robot φ(p,k), the hinge map, the inertia of a link and its rotor.
    P0 : (n, n)
        Prediction covariance of the first step; of a robot's tip Q itself. The closer it is to a stationary one, the
        lower the rank: m for a stationary prior, n − m at a tip with R = 0.
    steps : int
        N.
    tolerance : float
        Where n successive increments change D and PH* by less than this share of them, the gain has settled: by
        the theorem of Cayley and Hamilton the rest of the increment is unobservable. 0 stops only where they are zero.

    Returns
    -------
    FastGain
        D(k) and G(k).

    Raises
    ------
    SingularError
        If some D(k) is not positive definite.
    ShapeError, ModelError
        If shapes do not fit, there is no output, or Q, R or P0 is no covariance.

    Notes
    -----
    2n²r operations a step for rank r against 4n³ of the Riccati recursion. It pays where few outputs see many states
    and the prior is near stationary. It loses for a robot's chain (n = 6, r = 4 or 5), for a prior whose increment has
    full rank, where nodes differ, and where only the limit is wanted: that is a matrix equation. Gains are sums of
    increments, so their errors are relative to the largest gain on the way: one that falls from 1 to 1e-4 keeps four
    digits fewer than the Riccati recursion's. Source: R86 section 12; Morf, Sidhu and Kailath (1974).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> rng = np.random.default_rng(0)
    >>> F, H = 0.9 * np.linalg.qr(rng.normal(size=(5, 5)))[0], rng.normal(size=(1, 5))
    >>> P0 = np.eye(5) / (1 - 0.81)  # stationary: F P0 F* + 1 = P0
    >>> fast = kf.fast_gain(F, H, np.eye(5), [[1.0]], P0, steps=50)
    >>> ss = kf.StateSpace.chain(F, H, np.eye(5), [[1.0]], np.zeros(5), P0, steps=50)
    >>> fast.rank, bool(np.allclose(fast.gain(30), kf.riccati(ss).G[30], rtol=1e-12))
    (1, True)
    """
    F, H, Q, R, P = (
        np.atleast_2d(real_array(x, name)) for x, name in zip((F, H, Q, R, P0), ("F", "H", "Q", "R", "P0"))
    )
    n, m = F.shape[0], H.shape[0]
    for name, block, shape in (
        ("F", F, (n, n)),
        ("H", H, (m, n)),
        ("Q", Q, (n, n)),
        ("R", R, (m, m)),
        ("P0", P, (n, n)),
    ):
        if block.shape != shape:
            raise ShapeError(f"{name} must have shape {shape} beside F {F.shape} and H {H.shape}, got {block.shape}")
        if not np.isfinite(block).all():
            raise ModelError(f"{name} has entries that are not finite")
    if not m:
        raise ShapeError("H has no rows; where nothing is measured there is no gain")
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ShapeError(f"steps must be a whole number, 1 or more, got {steps!r}")
    Q, R, P = (_covariance(name, block) for name, block in (("Q", Q), ("R", R), ("P0", P)))
    U = P @ H.T
    D = H @ U + R
    _expect_definite(D[None])
    over = np.linalg.inv(D)
    G = U @ over
    # the first increment once, by the Riccati recursion; its eigenvectors are L, its eigenvalues M
    increment = F @ (P - G @ U.T) @ F.T + Q - P
    unit = _deviations(F, Q, P)  # rounding is a share of these, whatever units the states have
    values, vectors = np.linalg.eigh((increment + increment.T) / (2 * np.outer(unit, unit)))
    keep = np.abs(values) > ROUNDING * n * max(1.0, np.abs(values).max())
    L, M = unit[:, None] * vectors[:, keep], np.diag(values[keep])
    rank, calm, settled = L.shape[1], 0, None
    all_D, all_G = [D], [G]
    for k in range(1, steps):
        if rank == 0:
            settled = 0
            break
        seen = H @ L
        weighted = M @ seen.T
        dD, dU = seen @ weighted, L @ weighted
        M = M + weighted @ over @ weighted.T
        D, U = D + dD, U + dU
        over, out = _inverse(D, all_D), np.sqrt(np.diagonal(D))
        G = U @ over
        L = F @ (L - G @ seen)
        all_D.append(D)
        all_G.append(G)
        small = _share(dU, U, unit, out) <= tolerance and _share(dD, D, out, out) <= tolerance
        calm = calm + 1 if small else 0
        if calm >= n:
            settled = k - n + 1
            break
    D_all = np.array(all_D)
    _expect_definite(D_all)
    return FastGain(D_all, np.array(all_G), steps, rank, settled, _flops(n, m, rank, len(all_D) - 1))


def _flops(n: int, m: int, rank: int, steps: int) -> int:
    """Operations of the products: F times L, what the outputs see, the updates; and once the first increment."""
    return (2 * n * n * rank + 6 * n * rank * m + 4 * rank * rank * m + 2 * n * m * m) * steps + 8 * n**3


def _covariance(name: str, block: FloatArray) -> FloatArray:
    """A covariance, symmetric to the last bit, by the check that every model goes through."""
    size = np.array([len(block)])
    packed = Packed(block.reshape(-1).copy(), size, size)
    expect_covariance(Tree([-1], ("the uniform chain",)), name, packed)
    return packed.flat.reshape(block.shape)


def _deviations(F: FloatArray, Q: FloatArray, P: FloatArray) -> FloatArray:
    """The largest deviation of each state that goes into the first increment; 1 where there is none."""
    before = np.sqrt(np.maximum(np.diagonal(P), 0.0))
    unit = np.maximum(np.maximum(before, np.sqrt(np.maximum(np.diagonal(Q), 0.0))), np.abs(F) @ before)
    return np.where(unit > 0.0, unit, 1.0)


def _share(change: FloatArray, total: FloatArray, rows: FloatArray, cols: FloatArray) -> float:
    """A change as a share of the largest entry, with rows and columns in their own units."""
    units = np.outer(rows, cols)
    most = np.abs(total / units).max()
    return float(np.abs(change / units).max() / most) if most else 0.0


def _inverse(D: FloatArray, before: list[FloatArray]) -> FloatArray:
    """D⁻¹, or words for why there is none."""
    if not (np.diagonal(D) > 0.0).all():
        _expect_definite(np.array([*before, D]))
    try:
        return np.asarray(np.linalg.inv(D), dtype=np.float64)
    except np.linalg.LinAlgError:
        _expect_definite(np.array([*before, D]))
        raise


def _expect_definite(D: FloatArray) -> None:
    """Refuse a stack of D(k) of which one is not positive definite, and name it.

    D(k) is a sum of increments, so it is rounding below a share of the largest on the way.
    """
    good = np.array([np.isfinite(block).all() for block in D])
    most = np.sqrt(np.maximum.accumulate(np.abs(np.diagonal(D[good], axis1=1, axis2=2)), axis=0))
    most[most == 0.0] = 1.0
    scaled = D[good] / (most[:, :, None] * most[:, None, :])
    good[good] = np.linalg.eigvalsh((scaled + scaled.swapaxes(1, 2)) / 2).min(axis=1) > np.finfo(float).eps
    if not good.all():
        k = int(np.argmin(good))
        raise SingularError(
            f"D of step {k} is not positive definite: "
            + ("its outputs are determined already" if k == 0 else "the increments have lost their digits")
            + "; use kalman_filter, which says more",
            k,
        )
