"""Filter and smooth a uniform chain by its gain alone, without P (Chandrasekhar, Morf and Kailath).

Where φ, H, Q and R are the same at every node, P changes by increments of low rank, P(k+1) − P(k) = L M L*, whose
factors obey a recursion of their own. R86 section 12 asks for it: "fast" filtering, "which involves direct
propagation of the filter gain as opposed to indirect methods requiring covariance propagation".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.inference import filter_sweep
from kfdyn.estimation.inference.filter_covariances import Riccati, common_sizes
from kfdyn.estimation.model.blocks import Blocks, FloatArray, real_array
from kfdyn.estimation.model.overflow import finite_likelihood
from kfdyn.estimation.model.packing import Packed
from kfdyn.estimation.model.state_space import StateSpace, expect_model, expect_proper
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.model.validation import expect_covariance
from kfdyn.estimation.operators.model_operators import Operators

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
        """Return G(k), (n, m), k = 0 at the leaf; negative ones count from the end."""
        return self.G[self._stored(k)]

    def innovation(self, k: int) -> FloatArray:
        """Return D(k), (m, m)."""
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
    """Propagate D and G of a uniform chain by increments of low rank (Chandrasekhar), without P.

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
    """Count the operations of the products: F times L, what the outputs see, the updates; and the first increment."""
    return (2 * n * n * rank + 6 * n * rank * m + 4 * rank * rank * m + 2 * n * m * m) * steps + 8 * n**3


def _covariance(name: str, block: FloatArray) -> FloatArray:
    """Return a covariance, symmetric to the last bit, by the check that every model goes through."""
    size = np.array([len(block)])
    packed = Packed(block.reshape(-1).copy(), size, size)
    expect_covariance(Tree([-1], ("the uniform chain",)), name, packed)
    return packed.flat.reshape(block.shape)


def _deviations(F: FloatArray, Q: FloatArray, P: FloatArray) -> FloatArray:
    """Return the largest deviation of each state that goes into the first increment; 1 where there is none."""
    before = np.sqrt(np.maximum(np.diagonal(P), 0.0))
    unit = np.maximum(np.maximum(before, np.sqrt(np.maximum(np.diagonal(Q), 0.0))), np.abs(F) @ before)
    return np.where(unit > 0.0, unit, 1.0)


def _share(change: FloatArray, total: FloatArray, rows: FloatArray, cols: FloatArray) -> float:
    """Return a change as a share of the largest entry, with rows and columns in their own units."""
    units = np.outer(rows, cols)
    most = np.abs(total / units).max()
    return float(np.abs(change / units).max() / most) if most else 0.0


def _inverse(D: FloatArray, before: list[FloatArray]) -> FloatArray:
    """Return D⁻¹, or refuse with the reason why there is none."""
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


@dataclass(frozen=True, eq=False)
class FastFiltered:
    """Estimates of a uniform chain with the fast gain; arrays are stacked node by node as T is.

    Attributes
    ----------
    gains : FastGain
        D and G, leaf first.
    z : Blocks
        Predicted states, as ``Filtered.z``.
    eps, nu : ndarray, shape (Σm_k,)
        Innovations and residuals.
    costate : Blocks
        λ of the smoother.
    a : ndarray, shape (Σm_k,)
        𝓜⁻¹(T − bias): the joint accelerations of a uniform robot.
    llf : float
        Log-likelihood of T.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=[[5.0]], steps=100)
    >>> T = np.sin(np.arange(100.0))
    >>> bool(np.isclose(kf.fast_filter(ss, T).llf, kf.kalman_filter(ss, T).llf))
    True
    """

    gains: FastGain
    z: Blocks = field(repr=False)
    eps: FloatArray = field(repr=False)
    nu: FloatArray = field(repr=False)
    costate: Blocks = field(repr=False)
    a: FloatArray = field(repr=False)
    llf: float


def fast_filter(ss: StateSpace, T: ArrayLike, *, tolerance: float = SETTLED) -> FastFiltered:
    """Filter and smooth a uniform chain with the fast gain: neither stage needs P.

    Parameters
    ----------
    ss : StateSpace
        A chain whose φ, H and R are the same at every node, and Q at every node but the leaf. ξ and η may vary: η is
        carried into ξ first, ξ ← ξ + Qφ*η, which leaves a as it is.
    T : (Σm_k,)
        Measurements, none missing.
    tolerance : float
        As for :func:`~kfdyn.estimation.uniform_chain.fast_gain`.

    Returns
    -------
    FastFiltered
        z, ε, ν, λ, a and the log-likelihood.

    Notes
    -----
    With η ≠ 0, z, ε and λ are those of the equivalent problem with ξ alone; a and the log-likelihood are the same.
    Source: R86 section 12.

    Examples
    --------
    A straight chain of fifty rods, driven at random:

    >>> import numpy as np, kfdyn as kf
    >>> rods = kf.models.uniform_chain(50, hinge=kf.Hinge.revolute([0, 1, 0]))
    >>> tau = np.random.default_rng(0).normal(size=50)
    >>> fast = kf.fast_filter(kf.as_estimation(rods, np.zeros(50)), tau)
    >>> bool(np.allclose(fast.a, kf.forward_dynamics(rods, np.zeros(50), np.zeros(50), tau), rtol=1e-10))
    True
    """
    expect_model(ss)
    expect_proper(ss, "the first gain")
    order, F, H, Q, R, P0 = _uniform(ss)
    given = ss.check_outputs(T, "T")
    if given.ndim != 1:
        raise ShapeError(f"fast_filter takes one series, T of shape ({ss.n_outputs},), got {given.shape}")
    gains, op = fast_gain(F, H, Q, R, P0, len(order), tolerance=tolerance), Operators(ss)
    xi = np.zeros(ss.n_states) if ss.xi is None else ss.xi
    if ss.eta is not None:
        xi = xi + op.Q.forward(op.phi.backward(ss.eta))
    known = _known(ss, gains, order)
    eps, nu, z, _ = filter_sweep.sweep(known, given, xi, None, states=True)
    a = filter_sweep.sweep_back(known, nu, None, None)[0]
    costate = op.phi.backward(op.H.backward(a))  # λ = φ*H*a
    with np.errstate(over="ignore"):  # the error below names it
        llf = finite_likelihood(np.float64(-0.5 * ((eps * nu).sum() + gains.logdet + ss.n_outputs * np.log(2 * np.pi))))
    return FastFiltered(gains, ss.state_blocks(z), eps, nu, ss.state_blocks(costate), a, float(llf))


def _known(ss: StateSpace, gains: FastGain, order: np.ndarray) -> Riccati:
    """Return D and G of every node as the sweeps of vectors take them, without P."""
    step = np.empty(len(order), dtype=np.int64)
    step[order] = np.minimum(np.arange(len(order)), len(gains.D) - 1)
    try:
        factor: FloatArray = np.linalg.cholesky(gains.D).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        raise SingularError("some D is positive by no more than rounding; use kalman_filter, which says more") from None
    D, L, G = (x[step].reshape(-1) for x in (gains.D, factor, gains.G))
    none = Blocks(np.empty(0), np.zeros_like(ss.n), np.zeros_like(ss.n))
    seen = np.ones(ss.n_outputs, dtype=bool)
    blocks = ss.R.like(D), ss.R.like(L), Blocks(G, ss.n, ss.m, ss.H.offsets)
    return Riccati(ss, seen, none, none, *blocks, common_sizes(ss))


def _uniform(ss: StateSpace) -> tuple[np.ndarray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the nodes leaf first, and φ, H, Q, R and the leaf's Q; refuse a chain that is not uniform."""
    if not ss.tree.is_chain:
        raise ModelError("the fast gain needs a chain; this tree branches: use kalman_filter")
    order = np.asarray(ss.tree.order)
    order = order if ss.tree.parent[order[-1]] < 0 else order[::-1]
    first = order[0] if len(order) == 1 else order[1]
    F = ss.phi[order[0]] if len(order) > 1 else np.eye(int(ss.n[order[0]]))
    for name, blocks, nodes in (
        ("phi", ss.phi, order[:-1]),
        ("H", ss.H, order),
        ("R", ss.R, order),
        ("Q", ss.Q, order[1:]),
    ):
        if len(nodes) and not blocks.shares and not all(np.array_equal(blocks[k], blocks[nodes[0]]) for k in nodes):
            odd = next(k for k in nodes if not np.array_equal(blocks[k], blocks[nodes[0]]))
            raise ModelError(
                f"the fast gain needs the same {name} everywhere; {ss.tree.label(odd)} has another: use kalman_filter"
            )
        if blocks.shares and len({int(blocks.offsets[k]) for k in nodes}) > 1:
            raise ModelError(
                f"the fast gain needs the same {name} everywhere, and it changes along this chain: use kalman_filter"
            )
    return order, F, ss.H[order[0]], ss.Q[first], ss.R[order[0]], ss.Q[order[0]]
