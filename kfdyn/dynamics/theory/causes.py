"""Accelerations by cause, and single elements of 𝓜⁻¹ without forming it (R86 section 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.mass_matrix import VARIANCES
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import ShapeError
from kfdyn.estimation import StateSpace
from kfdyn.estimation.inference.filter_covariances import Riccati
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.state_space import expect_model
from kfdyn.multibody import System
from kfdyn.multibody.kinds import expect_tree


class AccelerationCauses(NamedTuple):
    """Accelerations (..., Σm_k) by what causes them, R86 (10.1); their sum is forward dynamics.

    ``moments`` α¹ is due to the generalised forces T, ``bias_forces`` α² to ξ (gyroscopic and external forces),
    ``bias_accelerations`` α³ to η (Coriolis accelerations and gravity).

    Examples
    --------
    A pendulum at rest, held out to the side: half of what gravity does is undone by the motor.

    >>> import numpy as np, kfdyn as kf
    >>> causes = kf.acceleration_causes(kf.models.pendulum(), [0.5 * np.pi], [0.0], [0.5 * 9.81])
    >>> causes.moments.round(3), causes.bias_accelerations.round(3), causes.total.round(3)
    (array([4.905]), array([-9.81]), array([-4.905]))
    """

    moments: Array
    bias_forces: Array
    bias_accelerations: Array

    @property
    def total(self) -> Array:
        """α¹ + α² + α³, (..., Σm_k)."""
        return self.moments + self.bias_forces + self.bias_accelerations


def acceleration_causes(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> AccelerationCauses:
    """Joint accelerations due to joint forces, to bias forces and to bias accelerations.

    ::

        α¹ = 𝓜⁻¹ tau,   α² = −𝓜⁻¹ Hφ ξ,   α³ = −𝓜⁻¹ HφMφ* η

    Parameters
    ----------
    system, q, v, tau
        As for :func:`kfdyn.forward_dynamics`.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin; they are part of ξ.
    gravity : (..., 3), optional
        ``system.gravity`` if not given; it is part of η. Its own share is the difference to gravity (0, 0, 0).

    Returns
    -------
    AccelerationCauses
        Three arrays (..., nv) whose sum is :func:`kfdyn.forward_dynamics`.

    Raises
    ------
    SingularError
        If a hinge has no inertia to move; names the hinge.

    Notes
    -----
    O(N): the covariances are swept once, the three causes ride along as three measurements. Source: R86 (10.1).

    Examples
    --------
    >>> import kfdyn as kf
    >>> from kfdyn.dynamics.theory.causes import acceleration_causes
    >>> causes = acceleration_causes(kf.models.pendulum(length=1.0, mass=2.0), [0.5 * np.pi], [3.0], [4.0])
    >>> causes.moments, causes.bias_accelerations
    (array([2.]), array([-9.81]))
    """
    expect_tree(system, "acceleration_causes")
    states = States.of(system, q, v, external_forces, gravity, tau=tau)
    parts = np.empty((3, states.size, system.nv))

    def solve(part: slice) -> None:
        forest = states.forest(part)
        for own, cause in zip(parts, causes_of_outputs(forest.ss, forest.stack(states["tau"][part]))):
            own[part] = forest.by_dof(cause)

    states.in_parts(solve)
    declined = VARIANCES.swept(states)[1]
    states.only(np.flatnonzero(declined)).expect_invertible()
    return AccelerationCauses(*parts.reshape((3, *states.lead, system.nv)))


def causes_of_outputs(ss: StateSpace, T: ArrayLike) -> AccelerationCauses:
    """The output co-state a of any model by cause: :func:`acceleration_causes` for what is no robot.

    Parameters
    ----------
    ss : StateSpace
        The model, with its ξ and η.
    T : (..., Σm_k)
        Measurements; NaN where missing, and there every part is 0.

    Returns
    -------
    AccelerationCauses
        ``moments``, ``bias_forces``, ``bias_accelerations``, each (..., Σm_k).

    Examples
    --------
    >>> import kfdyn as kf
    >>> ss = kf.StateSpace([-1], [None], [[[2.0]]], [[[1.0]]], xi=[1.0])
    >>> causes_of_outputs(ss, [6.0])
    AccelerationCauses(moments=array([1.5]), bias_forces=array([-0.5]), bias_accelerations=array([0.]))
    """
    from kfdyn.estimation import bryson_frazier, kalman_filter

    measured = ss.check_outputs(T, "T", allow_nan=True)
    known = [np.zeros(ss.n_states) if u is None else u for u in (ss.xi, ss.eta)]
    lead = np.broadcast_shapes(measured.shape[:-1], *(u.shape[:-1] for u in known))
    T3, xi3, eta3 = (np.zeros((3, *lead, size)) for size in (ss.n_outputs, ss.n_states, ss.n_states))
    T3[0], xi3[1], eta3[2] = measured, known[0], known[1]
    T3[1:] = np.where(np.isnan(measured), np.nan, 0.0)  # one pattern for all three
    return AccelerationCauses(
        *bryson_frazier(ss, kalman_filter(ss, T3, xi3, eta3), covariances=False).a  # one batch of three
    )


@dataclass(frozen=True, eq=False)
class Responses:
    """The effect of one input at one node on the acceleration of another: R86 (10.2)-(10.3) element by element.

    With k⁻ the outboard side of hinge k, k⁺ its inboard side, and i outboard of k::

        c(k) = D⁻¹ + G*Λ⁺G,     d(k) = G*Λ⁺ − c H                               (10.3)
        ∂a(k)/∂T(k) = c(k)                       ∂a(k)/∂T(i) = d(k) ψ(k⁻,i⁺) G(i)
        ∂a(k)/∂ξ(k) = d(k)                       ∂a(k)/∂ξ(i) = d(k) ψ(k⁻,i⁻)
        ∂a(k)/∂η(k) = G*(k) (Λ⁺P⁺ − 1)           ∂a(k)/∂η(i) = d(k) ψ(k⁻,i⁺) P⁺(i)

    For i inboard of k the last factors are d*(i), Λ(i) and Λ⁺P⁺ − 1 at i behind G*(k)ψ*(i,k⁺); between branches,
    which R86 has not, both walks end at the common ancestor c: G*(k) ψ*(c⁻,k⁺) Λ(c) ψ(c⁻,i⁺) G(i).

    Parameters
    ----------
    covariances : Riccati
        Of the model, ``kfdyn.riccati(ss)``; its O(N) sweeps are done once, then each response costs O(depth).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> responses = Responses(kf.riccati(ss))
    >>> responses.to_moment(1, 0), responses.to_bias_force(1, 0)
    (array([[-1.]]), array([[0.]]))
    """

    covariances: Riccati

    def c(self, k: int) -> Array:
        """c(k) = D⁻¹ + G*Λ⁺G, (m_k, m_k): the diagonal block of 𝓜⁻¹."""
        G = self.covariances.G[k]
        return self._D_inverse(k) + G.T @ self.Lambda_plus(k) @ G

    def d(self, k: int) -> Array:
        """d(k) = G*Λ⁺ − c H, (m_k, n_k): minus the response to a force that arrives at k."""
        return self.covariances.G[k].T @ self.Lambda_plus(k) - self.c(k) @ self.covariances.ss.H[k]

    def Lambda_plus(self, k: int) -> Array:
        """Λ⁺(k) = φ*Λ(p)φ, (n_k, n_k), R86 (10.30); 0 at a root."""
        ss, p = self.covariances.ss, int(self.covariances.ss.tree.parent[k])
        if p < 0:
            return np.zeros((ss.n[k], ss.n[k]))
        return ss.phi[k].T @ self.covariances.smoothed.Lambda[p] @ ss.phi[k]

    def psi(self, k: int, i: int, start: Array) -> Array:
        """ψ(k⁻,i⁺) @ start (n_i, ...), from the inboard side of i to the outboard side of its ancestor k. (10.6)."""
        ss, G = self.covariances.ss, self.covariances.G
        *below, _ = ss.tree.path(k, i)
        carried = start
        for j in below:
            if j != i:
                carried = carried - G[j] @ (ss.H[j] @ carried)  # τ̄(j)
            carried = ss.phi[j] @ carried
        return carried

    def to_moment(self, k: int, i: int) -> Array:
        """∂a(k)/∂T(i) = 𝓜⁻¹(k,i), (m_k, m_i)."""
        if k == i:
            return self.c(k)
        if k in self.covariances.ss.tree.ancestors(i):
            return self.d(k) @ self.psi(k, i, self.covariances.G[i])
        return self._inward(k, i, lambda: self.d(i).T, self.covariances.G[i])

    def to_bias_force(self, k: int, i: int) -> Array:
        """∂a(k)/∂ξ(i), (m_k, n_i): the response to a bias force."""
        if k == i:
            return self.d(k)
        leaving = self._closed(i)
        if k in self.covariances.ss.tree.ancestors(i):
            return self.d(k) @ self.psi(k, i, leaving)
        return self._inward(k, i, lambda: self.covariances.smoothed.Lambda[i], leaving)

    def to_bias_acceleration(self, k: int, i: int) -> Array:
        """∂a(k)/∂η(i), (m_k, n_i): the response to a bias acceleration."""
        P_plus, G = self.covariances.P_plus[i], self.covariances.G
        mismatch = self.Lambda_plus(i) @ P_plus - np.eye(len(P_plus))
        if k == i:
            return G[k].T @ mismatch
        if k in self.covariances.ss.tree.ancestors(i):
            return self.d(k) @ self.psi(k, i, P_plus)
        return self._inward(k, i, lambda: self._closed(i).T @ mismatch, P_plus)

    def _inward(self, k: int, i: int, above: Callable[[], Array], leaving: Array) -> Array:
        """Response of k to an ancestor i, or to a node i of another branch, through their common ancestor."""
        cov = self.covariances
        c = cov.ss.tree.nearest_common_ancestor(k, i)
        if c is None:
            return np.zeros((cov.G[k].shape[1], leaving.shape[1]))
        here = self.psi(c, k, cov.G[k]).T
        return here @ above() if c == i else here @ cov.smoothed.Lambda[c] @ self.psi(c, i, leaving)

    def _closed(self, k: int) -> Array:
        """τ̄(k) = 1 − G H."""
        return np.eye(self.covariances.ss.n[k]) - self.covariances.G[k] @ self.covariances.ss.H[k]

    def _D_inverse(self, k: int) -> Array:
        """D⁻¹ from its factor, 0 in the rows and columns of missing outputs."""
        cov = self.covariances
        seen = cov.observed[slice(*cov.ss.arrays.output[k : k + 2])]
        half = np.linalg.solve(cov.D_factor[k], np.diag(seen.astype(float)))
        return half.T @ half


def inverse_element(model: StateSpace | Riccati, i: int, j: int) -> float:
    """One element of 𝓜⁻¹, by the closed form and not by an inverse.

    Parameters
    ----------
    model : StateSpace or Riccati
        The model; of a robot, ``as_estimation(system, q)``.
    i, j : int
        Which outputs, counted as T is stacked: of a robot, its degrees of freedom.

    Returns
    -------
    float
        𝓜⁻¹[i, j]: the acceleration of dof i that a unit force at dof j causes.

    Notes
    -----
    O(N) for the first element of a model, O(depth) for each more. Source: R86 (10.2)-(10.3); between branches,
    THEORY section 4.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.dynamics import as_estimation
    >>> arm = kf.models.puma560()
    >>> ss = as_estimation(arm, np.full(6, 0.3))
    >>> bool(np.isclose(inverse_element(ss, 1, 4), kf.innovations_factor(ss).inverse()[1, 4]))
    True
    """
    if not isinstance(model, Riccati):
        expect_model(model, "model")
    covariances = model if isinstance(model, Riccati) else riccati(model)
    start, size = covariances.ss.arrays.output, covariances.ss.n_outputs
    for index in (i, j):
        if not isinstance(index, int | np.integer):
            raise ShapeError(f"an output is asked for by its number, a whole one, got {index!r:.60}")
        if not 0 <= index < size:
            raise ShapeError(f"there is no output {index}; the model has outputs 0 to {size - 1}")
    k, l = (int(np.searchsorted(start, index, side="right")) - 1 for index in (i, j))
    return float(Responses(covariances).to_moment(k, l)[i - start[k], j - start[l]])
