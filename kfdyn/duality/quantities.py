"""The nine random vectors of filter and smoother that are tested, with claimed means and covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.noise_operators import Given, Gram, noise_maps
from kfdyn.duality.tolerance.rounding import Units, units
from kfdyn.errors import ShapeError
from kfdyn.estimation import Covariances, Operators, StateSpace, bryson_frazier, draw, kalman_filter
from kfdyn.estimation.inference.factor import solve_D


@dataclass(frozen=True)
class Quantity:
    """One row of THEORY section 5.

    Attributes
    ----------
    name : str
        As in :class:`kfdyn.Covariances`.
    symbol, covariance : str
        Letters of THEORY for the vector and for its covariance.
    estimation, dynamics : str
        What the vector is called in the two readings.
    on_states : bool
        Stacked like states (Σn_k), or like outputs (Σm_k).

    Examples
    --------
    >>> from kfdyn.duality import QUANTITIES
    >>> a = QUANTITIES["a"]
    >>> a.symbol, a.covariance, a.dynamics
    ('a', '𝓜⁻¹', 'joint acceleration')
    """

    name: str
    symbol: str
    covariance: str
    estimation: str
    dynamics: str
    on_states: bool


QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity("x", "x", "φQφ*", "state", "force between bodies", True),
        Quantity("T", "T", "𝓜", "output", "generalised force", False),
        Quantity("z", "z", "φKDK*φ*", "filter estimate", "force explained outboard", True),
        Quantity("filter_error", "x − z", "ψ(Q + KRK*)ψ*", "filter error", "force from acceleration", True),
        Quantity("eps", "ε", "D", "innovation", "unexplained hinge force", False),
        Quantity("nu", "ν", "D⁻¹", "residual", "free hinge acceleration", False),
        Quantity("costate", "λ", "Ω", "co-state", "body acceleration", True),
        Quantity("a", "a", "𝓜⁻¹", "output co-state", "joint acceleration", False),
        Quantity("smoothed_error", "x − x̂", "S", "smoothed error", "force not seen at hinges", True),
    )
}


@dataclass(frozen=True, eq=False)
class Claim:
    """Claimed mean and covariance of one quantity.

    Attributes
    ----------
    mean : (d,)
        Its mean.
    covariance : Gram or Given
        Its covariance: ``dense()``, ``diagonal``, ``block(i, j)``, ``seen_in(directions)``.
    units : Units
        In which rounding is small: ``scale`` for samples, ``terms`` for closed forms.
    rank : int
        Rank of the covariance.

    Examples
    --------
    What theory claims of the accelerations of a double pendulum: no mean, and 𝓜⁻¹ for covariance.

    >>> import numpy as np, kfdyn as kf
    >>> arm, q = kf.models.double_pendulum(), [0.3, 0.4]
    >>> claim = claims(kf.as_estimation(arm, q))["a"]
    >>> claim.rank, bool(np.allclose(claim.matrix, np.linalg.inv(kf.mass_matrix(arm, q))))
    (2, True)
    """

    mean: Array
    covariance: Gram | Given
    units: Units
    rank: int

    @property
    def scale(self) -> Array:
        """Standard deviations before any conditioning, (d,)."""
        return self.units.scale

    @cached_property
    def matrix(self) -> Array:
        """The dense covariance, (d, d)."""
        return self.covariance.dense()


def claims(ss: StateSpace) -> dict[str, Claim]:
    """Return means and covariances of the nine quantities in closed form, for the model's own w and r.

    ::

        E[x] = φ(ξ + Mφ*η)    E[T] = H E[x]       E[z] = E[x] − Pφ*η     E[λ] = φ*η
        E[x − z] = Pφ*η       E[ε] = HPφ*η        E[ν] = D⁻¹HPφ*η        E[a] = 0,  E[x − x̂] = 0

    The means of z, ε and ν are those of the filter of THEORY (3), in which η waits for the smoother.

    Returns
    -------
    dict of Claim
        By name, in the order of ``QUANTITIES``.

    Notes
    -----
    O(N) without the dense matrices. Covariances are tested in the form A A* of :func:`noise_maps`, which rounding
    cannot make indefinite, and the closed forms are held against it. Source: THEORY sections 3 and 5; ATBI "key
    covariance quantities".

    Examples
    --------
    >>> import kfdyn as kf
    >>> ", ".join(claims(kf.as_estimation(kf.models.pendulum(), [0.3])))
    'x, T, z, filter_error, eps, nu, costate, a, smoothed_error'
    """
    for name, value in (("xi", ss.xi), ("eta", ss.eta)):
        if value is not None and value.ndim != 1:
            raise ShapeError(f"{name} has shape {value.shape}; one model with one {name} is checked at a time")
    cov, op = Covariances(ss), Operators(ss)
    still = np.zeros(ss.n_states)
    costate = still if ss.eta is None else op.phi.H @ ss.eta
    x = op.phi @ ((still if ss.xi is None else ss.xi) + op.Q @ costate)
    waiting = op.P @ costate
    eps = op.H @ waiting
    means = {
        "x": x,
        "T": op.H @ x,
        "z": x - waiting,
        "filter_error": waiting,
        "eps": eps,
        "nu": solve_D(op.covariances, eps),
        "costate": costate,
        "a": np.zeros(ss.n_outputs),
        "smoothed_error": still,
    }
    maps, in_units = noise_maps(ss), units(ss, cov, means)
    ranks = _ranks(ss, cov, in_units["z"].terms)
    return {
        name: Claim(means[name], Gram(maps[name], getattr(cov, name)), in_units[name], ranks[name])
        for name in QUANTITIES
    }


def _ranks(ss: StateSpace, cov: Covariances, terms: Array) -> dict[str, int]:
    """Return the rank of each covariance; that of x − x̂ is Guttman's, rank cov[x, T] − rank 𝓜."""
    K, R, D, tree = cov.riccati.K, ss.R, cov.riccati.D, ss.tree
    states, noise, outputs = sum(map(_rank, ss.Q)), sum(map(_rank, R)), ss.n_outputs
    arriving = error = 0
    for k, Q in enumerate(ss.Q):
        below = tree.children(k)
        unit = terms[ss.arrays.state[k] : ss.arrays.state[k + 1]]  # a gain may be all rounding; the state is not
        known = sum((K[j] @ D[j] @ K[j].T for j in below), np.zeros_like(Q))  # z gains Kε on the way from its children
        noisy = sum((K[j] @ R[j] @ K[j].T for j in below), Q)  # x − z = ψ(w − Kr)
        arriving += _rank(known / np.outer(unit, unit), 1e-11)
        error += _rank(noisy / np.outer(unit, unit), 1e-11)
    if not noise:  # x − z = ψw, and ψ is regular, however light a body is beside what it carries
        error = states
    return {
        "x": states,
        "T": outputs,
        "z": arriving,
        "filter_error": error,
        "eps": outputs,
        "nu": outputs,
        "costate": sum(map(_rank, ss.H)),
        "a": outputs,
        "smoothed_error": states + noise - outputs,
    }


def _rank(block: Array, tol: float | None = None) -> int:
    return int(np.linalg.matrix_rank(block, tol=tol)) if block.size else 0


def component_names(ss: StateSpace, on_states: bool = False, outputs: Sequence[str] = ()) -> tuple[str, ...]:
    """Name each component of a stacked vector by its node, and by its place there if there are several.

    Parameters
    ----------
    on_states : bool
        Stacked like states, or like outputs.
    outputs : sequence of str, optional
        Better names of the outputs.

    Examples
    --------
    >>> import kfdyn as kf
    >>> component_names(kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4]), on_states=True)[:2]
    ('shoulder:0', 'shoulder:1')
    """
    if not on_states and len(outputs) == ss.n_outputs:
        return tuple(outputs)
    names = ss.tree.names or [str(k) for k in range(len(ss))]
    sizes = ss.n if on_states else ss.m
    return tuple(name if size == 1 else f"{name}:{i}" for name, size in zip(names, sizes) for i in range(size))


def sample(ss: StateSpace, truth: StateSpace, rng: np.random.Generator, n: int) -> dict[str, Array]:
    """Draw n times (w, r) from ``truth``, filter and smooth T by ``ss``: the nine vectors, (n, d) each.

    O(n N).
    """
    drawn = draw(truth, rng, n)
    filt = kalman_filter(ss, drawn.T)
    smooth = bryson_frazier(ss, filt, covariances=False)
    z = filt.z.flat
    return {
        "x": drawn.x,
        "T": drawn.T,
        "z": z,
        "filter_error": drawn.x - z,
        "eps": filt.eps,
        "nu": filt.nu,
        "costate": smooth.costate.flat,
        "a": smooth.a,
        "smoothed_error": drawn.x - smooth.x.flat,
    }
