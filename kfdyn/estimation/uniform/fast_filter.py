"""Filter and smooth a uniform chain with the fast gain, without forming P."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.inference import filter_sweep
from kfdyn.estimation.inference.filter_covariances import Riccati, common_sizes
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.overflow import finite_likelihood
from kfdyn.estimation.model.state_space import StateSpace, expect_model, expect_proper
from kfdyn.estimation.operators.model_operators import Operators
from kfdyn.estimation.uniform.fast_gain import SETTLED, FastGain, fast_gain


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
    """Filter and smooth a uniform chain with :func:`~.fast_gain.fast_gain`: neither stage needs P.

    Parameters
    ----------
    ss : StateSpace
        A chain whose φ, H and R are the same at every node, and Q at every node but the leaf. ξ and η may vary: η is
        carried into ξ first, ξ ← ξ + Qφ*η, which leaves a as it is.
    T : (Σm_k,)
        Measurements, none missing.
    tolerance : float
        As for :func:`~kfdyn.estimation.uniform.fast_gain.fast_gain`.

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
    """D and G of every node as the sweeps of vectors take them; there is no P."""
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
    """The nodes leaf first, and φ, H, Q, R and the leaf's Q of a uniform chain; anything else is refused."""
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
