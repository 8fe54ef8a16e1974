"""Results of a cross-check by test, by group and by quantity."""

from __future__ import annotations

from dataclasses import dataclass

from kfdyn.arrays import Array


@dataclass(frozen=True)
class Outcome:
    """One calibrated test.

    Attributes
    ----------
    kind : str
        "covariance", "entries", "mean", "mean entries", "whiteness", "NIS", "NIS distribution" or "NEES"; of what
        somebody claims also "single entry" and "low rank".
    quantities : tuple of str
        What it is about; several where one statistic serves a whole group.
    statistic, dof, p_value
        Its outcome; p is uniform if the claim is true (or larger, for tests on largest entries).
    detail : str
        Where the largest deviation is, or why p = 0.
    """

    kind: str
    quantities: tuple[str, ...]
    statistic: float
    dof: int
    p_value: float
    detail: str = ""


@dataclass(frozen=True)
class Group:
    """Quantities that are linear images of each other: one likelihood ratio on the same draws.

    Attributes
    ----------
    quantities : tuple of str
    spread : float
        Largest relative difference of their statistics.
    tolerance : float
        What rounding excuses. LR is n(tr S − log det S − d) of the whitened sample covariance S, eigenvalues s. An
        error E in the formula moves it by n tr((S − 1)E), one in S by n tr((1 − S⁻¹)E): together by no more than
        n δ√d (‖S − 1‖ + ‖1 − S⁻¹‖), errors up to δ in each of d directions. δ is the bound of the model, or
        64 ε tr Σ⁻¹ in units of the terms. What is added to the samples, up to μ, moves LR by 2n μ √Σ(s − 1)²/s: the
        rounding of the mean, 64 ε times the length of its terms in units of the deviations; and what the square root
        of a singular Q leaves outside the range, the root of a rounding error. Twice the sum for two of them.
        With many samples the first is 4δ√(2nd/LR) of LR, as √LR is √(n/2) ‖S − 1‖.
    """

    quantities: tuple[str, ...]
    spread: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Return True if the statistics agree."""
        return self.spread <= self.tolerance


@dataclass(frozen=True, eq=False)
class Finding:
    """One quantity: what was claimed, what was found.

    Attributes
    ----------
    name : str
    dimension, rank : int
        Size of the vector; rank of its covariance, as theory has it.
    tested_rank : int
        Number of directions tested: the rank, less if some variances drown in rounding, or the size of a sketch.
    sketched : bool
        Whether the covariance was seen in random directions and node by node only.
    covariance, sampled : (d, d) or None
        Claimed and sampled; None if sketched.
    scores : (d, d) or None
        Normal score of each entry of the sampled covariance; None too if what is claimed is no covariance.
    error, expected_error : float
        Relative Frobenius error of the sampled covariance in units of the standard deviations, and its root mean
        square under the claim, O(1/√n).
    """

    name: str
    dimension: int
    rank: int
    tested_rank: int
    sketched: bool
    covariance: Array | None
    sampled: Array | None
    scores: Array | None
    error: float
    expected_error: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """All tests, the groups whose equality was asserted, and what was found for each quantity."""

    tests: tuple[Outcome, ...]
    groups: tuple[Group, ...]
    findings: dict[str, Finding]
