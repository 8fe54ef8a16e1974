"""Scale a model by powers of two to deviations near 1; invert a covariance by Cholesky."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.tolerance.unit_groups import group_norm, spread, unit_groups
from kfdyn.estimation import Covariances, StateSpace


class NaturalUnits(NamedTuple):
    """Units, powers of two, in which each output and each group of a state has a deviation near 1.

    ``states`` and ``outputs`` have one array for each node. A recursion keeps each number's own digits, so units do not
    touch it. Other people's algebra does not: an LU factor, a pivot, a norm set the rounding of moments of micrometres
    by forces. Powers of two round no number, so the model in these units is the same model.
    """

    states: list[Array]
    outputs: list[Array]

    @property
    def x(self) -> Array:
        """Units of the stacked state, (Σn,)."""
        return np.concatenate([np.zeros(0), *self.states])

    @property
    def T(self) -> Array:
        """Units of the stacked outputs, (Σm,)."""
        return np.concatenate([np.zeros(0), *self.outputs])

    def of(self, ss: StateSpace) -> StateSpace:
        """Return the same model in these units, without its known inputs.

        ::

            φ' = Δ(p)⁻¹ φ Δ(k)     H' = Δ_T⁻¹ H Δ     Q' = Δ⁻¹ Q Δ⁻¹     R' = Δ_T⁻¹ R Δ_T⁻¹
        """
        above = [self.states[p] if p >= 0 else np.ones(len(phi)) for p, phi in zip(ss.tree.parent.tolist(), ss.phi)]
        return StateSpace(
            ss.tree,
            [phi * unit / top[:, None] for phi, unit, top in zip(ss.phi, self.states, above)],
            [H * unit / own[:, None] for H, unit, own in zip(ss.H, self.states, self.outputs)],
            [Q / np.outer(unit, unit) for Q, unit in zip(ss.Q, self.states)],
            [R / np.outer(own, own) for R, own in zip(ss.R, self.outputs)],
            vectors=ss.vectors,
        )


def natural_units(ss: StateSpace) -> NaturalUnits:
    """Choose units by the prior deviations of the model.

    Notes
    -----
    O(N).
    """
    cov, groups = Covariances(ss), unit_groups(ss)
    states = [
        spread(_power_of_two(group_norm(np.sqrt(np.diag(block).clip(0)), start)), start, len(block))
        for block, start in zip(cov.x.diagonal, groups)
    ]
    return NaturalUnits(states, [_power_of_two(np.sqrt(np.diag(block).clip(0))) for block in cov.T.diagonal])


def in_natural_units(ss: StateSpace) -> StateSpace:
    """Return the model in units in which each output, and each group of a state, has a deviation near 1.

    An identity between operators holds in all units, but its residual is measured by the largest entry: moments of
    micrometres would drown in the rounding of forces.

    Notes
    -----
    O(N).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> small = kf.StateSpace([-1], [None], [[[1e-6]]], [[[1e-12]]])
    >>> bool(0.5 < in_natural_units(small).Q[0][0, 0] < 2)
    True
    """
    return natural_units(ss).of(ss)


def _power_of_two(deviation: Array) -> Array:
    largest = float(deviation.max(initial=0.0))
    positive = np.where(deviation > 0, deviation, largest if largest > 0 else 1.0)
    return np.asarray(np.exp2(np.round(np.log2(positive))))


def inverse(covariance: Array) -> Array:
    """Return Σ⁻¹ by Cholesky's factor, (d, d).

    The factor is that of Σ + E, |E_ij| ≤ c ε √(Σ_ii Σ_jj), whatever the units; so that Σ⁻¹EΣ⁻¹, what is wrong with
    the inverse, keeps to :func:`~kfdyn.duality.tolerance.rounding.rounding_bound`. The E of an LU factor with pivots,
    numpy's ``inv``, is c ε times the *largest* entry: the inertia of a hinge beside the mass of a slide is rounded
    away. What has no factor is no covariance; then LU has the word, and whoever compares sees it.

    Notes
    -----
    O(d³). Source: Demmel, On floating point errors in Cholesky (LAPACK working note 14).

    Examples
    --------
    >>> inverse(np.array([[4.0, 0.0], [0.0, 0.5]]))
    array([[0.25, 0.  ],
           [0.  , 2.  ]])
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    covariance = np.asarray(covariance, float)
    if not covariance.size:
        return covariance
    lower, flaw = dpotrf(covariance, lower=1)
    if flaw:
        return np.asarray(np.linalg.inv(covariance), float)
    found = np.tril(dpotri(lower, lower=1)[0])
    return np.asarray(found + np.tril(found, -1).T)
