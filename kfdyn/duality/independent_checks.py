"""Compare with independent computations: dense algebra, filterpy, composite bodies, Pinocchio, MuJoCo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.duality.claimed_matrix import gap, read_matrix
from kfdyn.duality.noise_operators import Gram
from kfdyn.duality.peers import ask_peers, of_outputs
from kfdyn.duality.quantities import QUANTITIES, Claim
from kfdyn.duality.tolerance.natural_units import inverse as invert
from kfdyn.duality.tolerance.natural_units import natural_units
from kfdyn.duality.tolerance.rounding import EPS, ROUNDINGS
from kfdyn.dynamics import mass_matrix
from kfdyn.estimation import Filtered, Operators, StateSpace, kalman_filter
from kfdyn.estimation.dense import DenseModel, dense_filter
from kfdyn.estimation.model.blocks import Blocks
from kfdyn.multibody import System


@dataclass(frozen=True)
class Party:
    """Comparison of one quantity with an independent computation.

    Attributes
    ----------
    name, subject : str
        Who, and about what.
    gap : float
        Largest difference, in units of the standard deviations (of what is estimated).
    tolerance : float
        What rounding excuses, see :func:`~kfdyn.duality.tolerance.rounding.rounding_bound`.
    where : str
        The entry that differs most, and both its values; empty if it does not matter.
    """

    name: str
    subject: str
    gap: float
    tolerance: float
    where: str = ""

    @property
    def passed(self) -> bool:
        """Return True if both say the same."""
        return self.gap <= self.tolerance


def dense_party(ss: StateSpace, claimed: Mapping[str, Claim], tolerance: float) -> list[Party]:
    """Compare all nine covariances with dense algebra: linear maps of (w, r), φ a dense inverse, conditional means.

    O(N (Σm)³ + (Σn)³); shares no recursion with the filter.
    """
    units = natural_units(ss)  # dense algebra knows nothing of units
    natural = units.of(ss)
    model = DenseModel.from_blocks(ss.tree.parent, natural.phi, natural.H, natural.Q, natural.R)
    x, mass_matrix = model.state_cov, model.output_cov
    cross = x @ model.H.T
    inverse = invert(mass_matrix)
    filt = dense_filter(model, np.eye(len(mass_matrix)))  # of unit measurements: the linear maps T → z, ε
    z, eps = np.hstack(filt.z).T, np.hstack(filt.eps).T
    D = np.zeros_like(mass_matrix)
    for at, block in zip(model.outputs, filt.D):
        D[at, at] = block
    nu = np.linalg.solve(D, eps) if D.size else eps
    costate = model.phi.T @ model.H.T @ inverse
    direct = {
        "x": x,
        "T": mass_matrix,
        "z": z @ mass_matrix @ z.T,
        "filter_error": x - cross @ z.T - z @ cross.T + z @ mass_matrix @ z.T,
        "eps": eps @ mass_matrix @ eps.T,
        "nu": nu @ mass_matrix @ nu.T,
        "costate": costate @ mass_matrix @ costate.T,
        "a": inverse,
        "smoothed_error": x - cross @ inverse @ cross.T,
    }
    unit = {name: units.x if QUANTITIES[name].on_states else units.T for name in direct}
    unit.update({"costate": 1 / units.x, "nu": 1 / units.T, "a": 1 / units.T})
    return [
        _covariance_party("dense algebra", name, claimed[name], matrix * np.outer(unit[name], unit[name]), tolerance)
        for name, matrix in direct.items()
    ]


def closed_form_party(claimed: Mapping[str, Claim], tolerance: float) -> list[Party]:
    """Compare the closed forms of THEORY section 5 with A A* of the linear maps of white noise.

    Nothing is said of claims that are somebody else's. O((Σn)²) and the products A A*.
    """
    return [
        _covariance_party("closed forms", name, claim, claim.covariance.closed.dense(), tolerance)
        for name, claim in claimed.items()
        if isinstance(claim.covariance, Gram)
    ]


def _covariance_party(party: str, name: str, claim: Claim, matrix: Array, tolerance: float) -> Party:
    return Party(party, f"cov[{QUANTITIES[name].symbol}]", gap(claim.matrix, matrix, claim.units.terms), tolerance)


def filterpy_party(ss: StateSpace, T: Array, claimed: Mapping[str, Claim], tolerance: float) -> list[Party]:
    """Compare with filterpy's KalmanFilter, fed with (φ, H, M, R) along each path from a leaf to its root.

    Where other branches join the path, their prediction covariance φP⁺φ* and mean φz⁺ are added to M and ξ: to the
    path they are process noise. η enters through ξ + Mφ*η (THEORY section 3).

    Parameters
    ----------
    T : (Σm,)
        One measurement vector.
    claimed : mapping of Claim
        For the units of the state.
    tolerance : float
        What rounding excuses.
    """
    xi = np.zeros(ss.n_states) if ss.xi is None else ss.xi
    if ss.eta is not None:
        op = Operators(ss)
        xi = xi + op.Q @ (op.phi.H @ ss.eta)
    units = natural_units(ss)  # filterpy inverts S by LU, which knows nothing of units
    natural, xi, still = units.of(ss), xi / units.x, np.zeros(ss.n_states)
    filt = kalman_filter(natural, T / units.T, xi=xi, eta=still)
    terms = natural.state_blocks(claimed["x"].units.terms / units.x)
    means = natural.state_blocks(claimed["x"].units.means / units.x)
    worst = {"P": 0.0, "G": 0.0, "D": 0.0, "ε": 0.0}
    for leaf in ss.tree.leaves:
        for name, value in _path_gaps(natural, filt, terms, means, xi, leaf, ROUNDINGS * EPS / tolerance).items():
            worst[name] = max(worst[name], value)
    subjects = {"P": "prediction covariance P", "G": "gain G", "D": "innovations covariance D", "ε": "innovation ε"}
    return [Party("filterpy", subjects[name], value, tolerance) for name, value in worst.items()]


def _path_gaps(
    ss: StateSpace, filt: Filtered, terms: Blocks, means: Blocks, xi: Array, leaf: int, one: float
) -> dict[str, float]:
    """Return the largest differences along one path, in units of what each is computed from; ``one`` is 64 ε in these.

    P is known to ``terms`` u, before any measurement: an exact one may leave a variance that is all rounding. So PH* is
    known to u t*, t = |H|u, and not to u√D; divided by D, the gain is known to u √(D⁻¹_ii) τ, τ = Σ_j t_j √(D⁻¹_jj). An
    innovation T − Hz has the rounding of the terms that z is a sum of, those of its ``means`` too.

    filterpy's update, Joseph's P⁺ = APA*, A = 1 − GH, is itself known to |A||P||A*| ≤ (1 + τ)² uu*, since
    |G_xj| ≤ u √(D⁻¹_jj); what an error of G adds, δG D δG*, is less. So two hinges in a row with next to no mass of
    their own lose the digits of both. What is lost is 64 ε E at most, in the order of covariances, and is handed on:
    E⁺ = AEA* + (1 + τ)² diag(u)², E(p) = φE⁺φ* + diag(u)². Then δD ≤ HEH* and δG = AδPH*D⁻¹.
    """
    from filterpy.kalman import KalmanFilter

    mean, T, eps = ss.state_blocks(xi), ss.output_blocks(filt.T), ss.output_blocks(filt.eps)
    worst = {"P": 0.0, "G": 0.0, "D": 0.0, "ε": 0.0}
    x, P, E = mean[leaf][:, None], ss.Q[leaf], np.zeros_like(ss.Q[leaf])
    for k in [leaf, *ss.tree.ancestors(leaf)]:
        peer = KalmanFilter(dim_x=int(ss.n[k]), dim_z=max(int(ss.m[k]), 1))
        peer.x, peer.x_prior, peer.P = x, x, P
        unit, H = terms[k], ss.H[k]
        worst["P"] = max(worst["P"], gap(filt.P[k], peer.P, np.sqrt(unit**2 + one * np.diag(E))))
        if ss.m[k]:
            peer.update(T[k][:, None], R=ss.R[k], H=H)
            D_inv, A = invert(filt.D[k]), np.eye(len(unit)) - filt.G[k] @ H
            seen, kept, sharp = H @ E @ H.T, A @ E @ A.T, np.sqrt(np.diag(D_inv))
            worst["D"] = max(worst["D"], gap(filt.D[k], peer.S, np.sqrt(np.diag(filt.D[k] + one * seen))))
            tau = float(np.abs(H) @ unit @ sharp)
            of_gain = np.outer(unit, sharp) * max(1.0, tau)
            of_gain += one * np.sqrt(np.outer(np.diag(kept), np.diag(D_inv @ seen @ D_inv)))
            worst["G"] = max(worst["G"], float((np.abs(filt.G[k] - peer.K) / of_gain).max()))
            of_eps = np.abs(T[k]) + np.abs(H) @ (np.abs(peer.x_prior[:, 0]) + unit + means[k])
            worst["ε"] = max(worst["ε"], float((np.abs(eps[k] - peer.y[:, 0]) / of_eps).max()))
            E = kept + np.diag((unit * (1 + tau)) ** 2)
        parent = ss.tree.parent[k]
        if parent >= 0:
            others = [j for j in ss.tree.children(parent) if j != k]
            Q = sum((ss.phi[j] @ filt.P_plus[j] @ ss.phi[j].T for j in others), ss.Q[parent])
            u = sum((ss.phi[j] @ filt.z_plus[j] for j in others), mean[parent])
            peer.predict(u=u[:, None], B=np.eye(len(u)), F=ss.phi[k], Q=Q)
            x, P, E = peer.x, peer.P, ss.phi[k] @ E @ ss.phi[k].T + np.diag(terms[parent] ** 2)
    return worst


def mass_matrix_party(system: System, q: ArrayLike, claimed: Mapping[str, Claim], tolerance: float) -> list[Party]:
    """Compare with the mass matrix by composite inertias (CRBA), and its inverse by Cholesky, without any filter."""
    matrix = of_outputs(system, q, mass_matrix(system.uncoupled, system._expansion.positions(np.asarray(q, float))))
    return [
        Party("composite bodies", "𝓜", gap(claimed["T"].matrix, matrix, claimed["T"].scale), tolerance),
        inverse_party("composite bodies, inverted", invert(matrix), claimed, tolerance),
    ]


def peer_parties(
    system: System, q: ArrayLike, claimed: Mapping[str, Claim], tolerance: float, names: Sequence[str] = ()
) -> tuple[list[Party], list[str]]:
    """Ask Pinocchio or MuJoCo about the system's own file; also return why one was not asked."""
    answers, unasked = ask_peers(system, np.asarray(q, float))
    parties = [
        inverse_party(peer, inverse, claimed, tolerance, names, f" of {source}") for peer, source, inverse in answers
    ]
    return parties, unasked


def inverse_party(
    name: str,
    inverse: ArrayLike,
    claimed: Mapping[str, Claim],
    tolerance: float,
    names: Sequence[str] = (),
    source: str = "",
) -> Party:
    """Compare another 𝓜⁻¹, (nv, nv) in the order of our v, entry by entry in units √(𝓜⁻¹_ii 𝓜⁻¹_jj).

    A triangle is taken for the whole; numbers of float32 are allowed their rounding errors, 5e8 times ours.
    """
    ours, unit = claimed["a"].matrix, claimed["a"].scale
    theirs = read_matrix(inverse, name, len(ours), "the inverse mass matrix")
    allowed = tolerance * theirs.precision / EPS
    subject = f"𝓜⁻¹{source}" + f" ({theirs.note})" * bool(theirs.note)
    found = gap(ours, theirs.matrix, unit)
    if found <= allowed:
        return Party(name, subject, found, allowed)
    difference = np.abs(ours - theirs.matrix) / np.outer(unit, unit)
    i, j = divmod(int(np.argmax(difference)), len(ours))
    label = [str(k) for k in range(len(ours))] if len(names) != len(ours) else names
    where = f"at ({label[i]}, {label[j]}): theirs {theirs.matrix[i, j]:.6g}, ours {ours[i, j]:.6g}"
    mass_matrix = claimed["T"]
    if gap(mass_matrix.matrix, theirs.matrix, mass_matrix.scale) <= allowed:
        where += "; theirs is 𝓜, not its inverse"
    return Party(name, subject, found, allowed, where)
