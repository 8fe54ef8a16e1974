"""The joint-Gaussian oracle: the whole problem as one dense normal vector, conditioned by dense algebra.

No sweep, no recursion along the tree: φ is an inverse, an estimate is a conditional mean. It costs
O(N³) and more, and it is right by definition, also at R = 0; the engine is measured against it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.dense_model import DenseModel, StateSpaceLike, dense_model, symmetric

__all__ = ["DenseFilter", "DenseModel", "DensePosterior", "dense_filter", "dense_model", "dense_posterior"]


class DensePosterior(NamedTuple):
    """The posterior given all of T: x | T, and its co-state.

    ``mean`` (..., N) and ``cov`` (N, N) of x given the observed T; ``llf`` (...), their log-density;
    ``a`` (..., Σm) = 𝓜^-1(T − bias), 0 where T is missing; ``costate`` (..., N) = φ*(H*a + η) and its
    covariance ``costate_cov`` (N, N), the Ω of THEORY section 4; ``observed`` (Σm,).

    Examples
    --------
    Forward dynamics as plain conditioning of a joint normal, in cubic time:

    >>> import numpy as np, kfdyn as kf
    >>> arm, q, tau = kf.models.chain(3), np.ones(3), np.arange(3.0)
    >>> known = dense_posterior(kf.as_estimation(arm, q), tau)
    >>> bool(np.allclose(known.a, kf.forward_dynamics(arm, q, None, tau)))
    True
    """

    mean: Array
    cov: Array
    llf: Array
    a: Array
    costate: Array
    costate_cov: Array
    observed: NDArray[np.bool_]


class DenseFilter(NamedTuple):
    """The estimates of each node's state from the outputs outboard of it; lists over the nodes k.

    ``z`` (..., n_k), ``P`` (n_k, n_k): given T of the strict descendants of k. ``z_plus``, ``P_plus``:
    given T(k) too. ``eps`` (..., m_k) = T(k) − H z, NaN where T is missing. ``D`` (m_k, m_k) = HPH* + R.
    ``G`` (n_k, m_k) = PH*D^-1 on the observed outputs of k, 0 in the columns of missing ones.

    Examples
    --------
    Articulated inertias by conditioning, against those of the recursion:

    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.as_estimation(kf.models.chain(3), np.ones(3))
    >>> known = dense_filter(ss, np.zeros(3))
    >>> bool(np.allclose(known.P[0], kf.riccati(ss).P[0]))
    True
    """

    z: list[Array]
    P: list[Array]
    z_plus: list[Array]
    P_plus: list[Array]
    eps: list[Array]
    D: list[Array]
    G: list[Array]


def dense_posterior(ss: StateSpaceLike | DenseModel, T: ArrayLike) -> DensePosterior:
    """Condition the joint normal of (x, T) on every observed entry of T, in covariance form.

    x̂ = E[x] + C𝓜^-1(T − bias),  S = cov[x] − C𝓜^-1C*,  C = cov[x]H*  (THEORY section 5); valid at R = 0.

    Parameters
    ----------
    ss : StateSpaceLike or DenseModel
        The model.
    T : (..., Σm)
        Outputs node by node; NaN is missing, in one pattern for all leading axes.

    Returns
    -------
    DensePosterior
        ``mean``, ``cov``, ``llf``, ``a``, ``costate``, ``costate_cov``, ``observed``.

    Notes
    -----
    O((Σn + Σm)³).

    Examples
    --------
    A random walk seen without noise at its second step: its first is halfway, on the mean.

    >>> I = [[1.0]]
    >>> model = DenseModel.from_blocks([1, -1], [I, None], [np.zeros((0, 1)), I], [I, I])
    >>> dense_posterior(model, [3.0]).mean
    array([1.5, 3. ])
    """
    model = _as_model(ss)
    T, observed = _measurements(model, T)
    mean, cov, whitened, L = _condition(model, slice(None), observed, T)

    a_observed = np.linalg.solve(L.T, whitened[..., None])[..., 0]
    a = np.zeros(np.broadcast_shapes(T.shape, model.bias.shape))
    a[..., observed] = a_observed
    J = np.linalg.solve(L, model.H[observed] @ model.phi)
    logdet = 2 * np.log(np.diag(L)).sum()
    llf = -0.5 * ((whitened**2).sum(-1) + logdet + len(L) * np.log(2 * np.pi))
    costate = (a @ model.H + model.eta) @ model.phi
    return DensePosterior(mean, cov, np.asarray(llf), a, costate, J.T @ J, observed)


def dense_filter(
    ss: StateSpaceLike | DenseModel,
    T: ArrayLike,
    split: Literal["statistical", "costate"] = "statistical",
) -> DenseFilter:
    """Condition each node's state on the outputs outboard of it: the oracle of the filter (2)–(3).

    z(k) = E[x(k) | T of the strict descendants of k],  P(k) its covariance;  z⁺, P⁺ with T(k) as well.

    Parameters
    ----------
    ss : StateSpaceLike or DenseModel
        The model.
    T : (..., Σm)
        Outputs; NaN is missing, in one pattern for all leading axes.
    split : {"statistical", "costate"}
        They differ only when η ≠ 0. "statistical": conditional means as above, w ~ N(ξ + Qφ*η, Q); eps has
        mean 0 and covariance D. "costate": the z, z⁺, ε of THEORY (3), in which η waits for the smoother:
        z − Pφ*η, z⁺ − P⁺φ̃*η and ε + HPφ*η (THEORY section 3).

    Returns
    -------
    DenseFilter
        Lists over the nodes.

    Notes
    -----
    O(N⁴): one dense conditioning per node.

    Examples
    --------
    A random walk whose second value was not measured:

    >>> import numpy as np, kfdyn as kf
    >>> one = np.ones((1, 1))
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=3)
    >>> known = dense_filter(walk, [1.0, np.nan, 2.0])
    >>> [round(P.item(), 6) for P in known.P]
    [1.0, 1.5, 2.5]
    """
    if split not in ("statistical", "costate"):
        raise ModelError(f"split is {split!r}; say 'statistical' or 'costate'")
    model = _as_model(ss)
    T, observed = _measurements(model, T)
    costate = (model.eta if split == "costate" else np.zeros_like(model.eta)) @ model.phi  # φ*η
    costate_plus = costate - (model.eta if split == "costate" else 0.0)  # φ̃*η
    result = DenseFilter([], [], [], [], [], [], [])
    for k, (x_k, T_k) in enumerate(zip(model.states, model.outputs)):
        before = model.outboard(k) & observed
        own = np.zeros_like(observed)
        own[T_k] = observed[T_k]
        z, P, _, _ = _condition(model, x_k, before, T)
        z_plus, P_plus, _, _ = _condition(model, x_k, before | own, T)
        z = z - costate[..., x_k] @ P
        H = model.H[T_k, x_k]
        D = symmetric(H @ P @ H.T) + model.R[T_k, T_k]
        G = np.zeros((len(P), len(D)))
        seen = observed[T_k]
        G[:, seen] = np.linalg.solve(D[np.ix_(seen, seen)], H[seen] @ P).T
        result.z.append(z)
        result.P.append(P)
        result.z_plus.append(z_plus - costate_plus[..., x_k] @ P_plus)
        result.P_plus.append(P_plus)
        result.eps.append(T[..., T_k] - z @ H.T)
        result.D.append(D)
        result.G.append(G)
    return result


def _condition(model: DenseModel, part: slice, given: NDArray[np.bool_], T: Array) -> tuple[Array, Array, Array, Array]:
    """Mean and covariance of x[part] given T[given]; the whitened T[given] and the factor that whitens it."""
    L = _cholesky(model, given)
    C = np.linalg.solve(L, model.H[given] @ model.state_cov[:, part])  # whitened cross-covariance
    whitened = np.asarray(np.linalg.solve(L, (T - model.bias)[..., given, None])[..., 0], float)
    mean = model.state_mean[..., part] + whitened @ C
    return mean, symmetric(model.state_cov[part, part] - C.T @ C), whitened, L


def _cholesky(model: DenseModel, given: NDArray[np.bool_]) -> Array:
    """Cholesky factor of 𝓜 on the given outputs; refuses a 𝓜 that is singular to working precision."""
    mass_matrix = model.output_cov[np.ix_(given, given)]
    scale = np.sqrt(np.diag(mass_matrix))
    # Unit diagonal first, so that the verdict does not depend on the units of the outputs.
    unit = mass_matrix / np.outer(*(np.where(scale > 0, scale, 1.0),) * 2)
    eigenvalue, vector = np.linalg.eigh(unit)
    if len(unit) and eigenvalue[0] <= len(unit) * np.finfo(float).eps:
        entry = np.flatnonzero(given)[np.argmax(np.abs(vector[:, 0]))]
        node = next(k for k, s in enumerate(model.outputs) if s.start <= entry < s.stop)
        raise SingularError(
            f"node {node}: its output is determined by the others, so the covariance of T is singular; "
            "give the node process noise Q that H sees, or measurement noise R > 0"
        )
    return scale[:, None] * np.linalg.cholesky(unit)


def _as_model(ss: StateSpaceLike | DenseModel) -> DenseModel:
    return ss if isinstance(ss, DenseModel) else dense_model(ss)


def _measurements(model: DenseModel, T: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    T = np.asarray(T, float)
    if T.ndim == 0 or T.shape[-1] != len(model.H):
        raise ShapeError(f"T has shape {T.shape}; its last axis must hold the {len(model.H)} outputs of all nodes")
    if np.isinf(T).any():
        raise ModelError("T has infinite entries; mark a missing measurement by NaN")
    missing = np.isnan(T)
    batch = tuple(range(T.ndim - 1))
    observed = ~missing.any(axis=batch)
    if (missing != ~observed).any():
        raise ModelError("NaN marks different entries in different rows of T; call once per pattern")
    return T, observed
