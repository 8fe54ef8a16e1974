"""Refuse models that double precision cannot certify, before a sample is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kfdyn.duality.quantities import Claim
from kfdyn.duality.tolerance.rounding import EPS, ROUNDINGS, condition_by_node
from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation import StateSpace

_NO_DIGIT = 0.1  # part of 𝓜⁻¹ that rounding may move: beyond it not one digit can be confirmed

_SQUARED = 1e120  # covariances up to here can be squared, with room for levers and for numbers of samples


def expect_range(ss: StateSpace) -> None:
    """Refuse covariances whose squares leave double precision: the tests add up fourth powers of deviations."""
    for what, blocks in (("Q", ss.Q), ("R", ss.R)):
        for k, block in enumerate(blocks):
            largest = float(np.abs(block).max(initial=0.0))
            if largest and not 1 / _SQUARED < largest < _SQUARED:
                raise ModelError(
                    f"{what} of node {ss.tree.names[k] if ss.tree.names else k} has entries of {largest:.1e}, whose "
                    f"squares double precision cannot hold; choose units in which they are between {1 / _SQUARED:.0e} "
                    f"and {_SQUARED:.0e}"
                )


def expect_inverse(ss: StateSpace, bound: float) -> None:
    """Refuse a mass matrix without an inverse in double precision, by the node at fault.

    Parameters
    ----------
    bound : float
        What :func:`~kfdyn.duality.tolerance.rounding.rounding_bound` says of it.
    """
    if bound <= _NO_DIGIT:
        return
    raise no_inverse(ss, int(np.argmax(condition_by_node(ss))), f"rounding may move 𝓜⁻¹ by {100 * bound:.0f} %")


def no_inverse(ss: StateSpace, k: int, lost: str) -> SingularError:
    """Make the error of a mass matrix that node k leaves without an inverse."""
    who = f"hinge {ss.tree.names[k]!r}" if ss.tree.names else f"node {k}"
    return SingularError(
        f"{who}: in this configuration 𝓜 is singular to double precision ({lost}), so there is nothing to confirm: "
        "it moves next to no mass of its own. Give its body an inertia or it an armature, or try another configuration",
        k,
    )


def expect_deviations(claimed: Mapping[str, Claim], samples: int, names: Sequence[str]) -> None:
    """Refuse means so large that their rounding hides the deviations of the samples.

    ::

        √n 64 ε Σ_j √(𝓜⁻¹_jj) m_j > 1

    m_j is the size of the terms that the mean of T_j is a sum of, and 64 ε m_j may be wrong with any sample of it. What
    e does to T it does to every linear image of T, a = 𝓜⁻¹T and λ and ν and ε among them: no more than
    √(e*𝓜⁻¹e) ≤ Σ_j √(𝓜⁻¹_jj) |e_j| deviations in any direction, the same way in all samples. The mean of n samples
    has a deviation 1/√n; an error of that size would be taken for a wrong mean.
    """
    inverse = np.concatenate([np.zeros(0), *(np.diag(block) for block in claimed["a"].covariance.diagonal)])
    astray = ROUNDINGS * EPS * np.sqrt(inverse.clip(0)) * claimed["T"].units.means
    if np.sqrt(samples) * astray.sum() <= 1:
        return
    j = int(np.argmax(astray))
    raise ModelError(
        f"{names[j]}: the mean of its generalised force is made of terms {astray[j] / (ROUNDINGS * EPS):.0e} times as "
        f"large as what it varies by, so that in double precision {samples} samples cannot tell its rounding from an "
        "error; give a lower v or a weaker gravity (no covariance depends on them), or fewer samples"
    )
