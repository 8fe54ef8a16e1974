"""The gradient of log det 𝓜 in q, read off filter and smoother: the Fixman torque."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.solving.forest import States
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.multibody import System
from kfdyn.multibody.parts.hinge import Coordinates


def mass_matrix_logdet_gradient(system: System, q: ArrayLike) -> Array:
    """Gradient of log det 𝓜 in the configuration, in tangent coordinates, in O(N).

    ::

        ∂ log det 𝓜/∂q_i = 2 tr(X_i* Λ⁺P⁺) = 2 tr(X_i P Λ)        X = [[ω~, v~], [0, ω~]]

    for the column H_i* = [ω; v] of hinge k, which moves all that is outboard of it rigidly: a change of φ(p,k) by φX.
    A hinge of several screws is a chain of hinges of one dof.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.

    Returns
    -------
    (..., nv) array
        Derivatives along the axes of v, as :func:`integrate` moves q: a ball's are along its body-frame rotations.
        −½kT times it is the Fixman torque, which makes thermal motion with stiff constraints that of the limit of
        springs.

    Notes
    -----
    O(N) a configuration: one filter and the smoother's covariances, compiled. Source: THEORY section 10.

    Examples
    --------
    Two point masses: det 𝓜 = 1 + sin² q₂, so its logarithm has the derivative sin 2q₂ / (1 + sin² q₂).

    >>> import numpy as np, kfdyn as kf
    >>> kf.mass_matrix_logdet_gradient(kf.models.double_pendulum(), [0.3, 0.5]).round(6) + 0.0
    array([0.      , 0.684207])
    >>> round(np.sin(1.0) / (1 + np.sin(0.5) ** 2), 6)
    np.float64(0.684207)
    """
    answer: Array = LOGDET_GRADIENT.solve(system, q)
    return answer


def _by_blocks(states: States) -> dict[str, Array]:
    """The engine's own gradient, (size, nv).

    ::

        ∂ log det 𝓜/∂q_i = 2 tr(X_i* Λ⁺P⁺) + 2 Σ_j [(CH − G*Λ⁺)P]_j · H_j X_i

    with P⁺ behind whole hinges; the sum is over the screws j of the same hinge before i, which do not move along.
    """
    from kfdyn.estimation.inference.riccati import riccati

    system, out = states.system, np.empty((states.size, states.system.nv))
    owner = np.repeat(np.arange(system.n_bodies), np.diff(system.layout.v_start))
    inner = np.flatnonzero(np.asarray(system.parent) >= 0)
    earlier, later = _carried_pairs(system)

    def work(part: slice) -> None:
        B, ss = part.stop - part.start, states.forest(part).ss
        d_phi, d_H = riccati(ss).logdet_of_maps()
        H = ss.H.flat.reshape(B, system.nv, 6)
        phi, Y = (x.reshape(B, inner.size, 6, 6) for x in (ss.phi.flat, d_phi.flat))
        Z = -phi.swapaxes(-1, -2) @ Y  # Λ⁺P⁺ = φ*Λ(p)φP⁺
        turned = np.zeros((B, system.n_bodies, 6))  # tr(X*Z) = H_i · turned
        turned[:, inner, :3] = _axial(Z[..., :3, :3]) + _axial(Z[..., 3:, 3:])
        turned[:, inner, 3:] = _axial(Z[..., :3, 3:])
        gradient = np.einsum("bik,bik->bi", H, turned[:, owner])
        if earlier.size:
            held = -d_H.flat.reshape(B, system.nv, 6)[:, earlier]
            moved = _carried(H[:, later], H[:, earlier])
            for at, term in zip(later, np.einsum("bik,bik->bi", held, moved).T):  # at most 15 a hinge
                gradient[:, at] += term
        out[part] = 2.0 * gradient

    states.in_parts(work)
    return {"the gradient of the log-determinant": out}


def _axial(Z: Array) -> Array:
    """a with Σ ω~_ij Z_ij = ω·a."""
    return np.stack([Z[..., 2, 1] - Z[..., 1, 2], Z[..., 0, 2] - Z[..., 2, 0], Z[..., 1, 0] - Z[..., 0, 1]], axis=-1)


def _carried(by: Array, twist: Array) -> Array:
    """X* S = −[ω × ω_S; v × ω_S + ω × v_S]: how a twist that stays where it is moves as seen from what is carried."""
    omega, v = by[..., :3], by[..., 3:]
    angular, linear = twist[..., :3], twist[..., 3:]
    return -np.concatenate([np.cross(omega, angular), np.cross(v, angular) + np.cross(omega, linear)], axis=-1)


@lru_cache(maxsize=64)
def _carried_pairs(system: System) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Dofs (j, i) of one hinge where screw i is carried by screw j, so that j stays when i moves."""
    pairs = []
    for body, start in zip(system.bodies, system.layout.v_start):
        if body.hinge.coordinates is Coordinates.SCREWS:
            pairs += [(start + j, start + i) for i in range(body.hinge.nv) for j in range(i)]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


LOGDET_GRADIENT = Solver(
    "mass_matrix_logdet_gradient", "kfdyn.dynamics.recursions.logdet", "LOGDET_GRADIENT", explain=_by_blocks, rigid=True
)
