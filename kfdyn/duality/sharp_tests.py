"""The sharpest tests of a covariance that somebody claims: of a single entry, and of an error of low rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.maps import Given
from kfdyn.duality.outcomes import Outcome
from kfdyn.duality.quantities import Claim
from kfdyn.duality.roots import roots_test
from kfdyn.duality.stream import Sums
from kfdyn.estimation.consistency import largest_entry_test
from kfdyn.estimation.consistency.whitening import Whitening


def sharpest_tests(
    name: str, sums: Sums, claim: Claim, space: Whitening, n: int, names: Sequence[str]
) -> list[Outcome]:
    """The likelihood's own test of each entry of Σ, and of an error in few directions.

    The score of the entry (i, j) is the same entry of Σ⁻¹(S − Σ)Σ⁻¹: an entry of the sample covariance of Σ⁻¹x against
    Σ⁻¹. So what tests one entry of 𝓜⁻¹ most sharply is the torque that the claim makes of the acceleration.
    """
    whitened = space.inside.T @ (sums.scatter / n) @ space.inside
    smallest, largest, p = roots_test(whitened, n)
    detail = f"variance between {max(smallest, 0.0):.4g} and {largest:.4g} of the claimed one, direction by direction"
    tests = [Outcome("low rank", (name,), largest, space.rank, p, detail)]
    if space.rank == len(space.inside):
        deviation = np.sqrt(np.diag(claim.matrix))  # its units, as squares of the claim may leave double precision
        inside, scatter = space.inside * deviation[:, None], sums.scatter / deviation / deviation[:, None]
        inverse = inside @ inside.T
        outcome = largest_entry_test(inverse @ scatter @ inverse, inverse, n)
        i, j = outcome.index
        information, twice = inverse[i, i] * inverse[j, j] + inverse[i, j] ** 2, 2 if i == j else 1
        size = float(twice * deviation[i] * deviation[j])
        off = size * float((inverse @ (scatter / n) @ inverse - inverse)[i, j] / information)
        error = size / float(np.sqrt(n * information))
        detail = f"entry ({names[i]}, {names[j]}) should differ by {off:+.3g} ± {error:.1g}"
        # if the claim's numbers are too short, no single entry is to blame
        detail = _too_coarse(claim, inverse / deviation / deviation[:, None], n) or detail
        tests.append(Outcome("single entry", (name,), outcome.statistic, outcome.dof, outcome.p_value, detail))
    return tests


def _too_coarse(claim: Claim, inverse: Array, n: int) -> str:
    """Say so if n samples see what the claim's own numbers, shorter than ours, have rounded away; else nothing.

    Errors E of the entries have a likelihood ratio of noncentrality n/2 tr(Σ⁻¹EΣ⁻¹E). Independent ones of half the
    largest rounding error, ε/4 |Σ_ij|, give n/2 Σ_ij (ε/4 Σ_ij)² (Ω_ii Ω_jj + Ω_ij²), Ω = Σ⁻¹, on the average.
    """
    dtype = claim.covariance.dtype if isinstance(claim.covariance, Given) else "float64"
    if dtype == "float64":
        return ""
    eps, information = float(np.finfo(dtype).eps), np.outer(np.diag(inverse), np.diag(inverse)) + inverse**2
    if 0.5 * n * ((0.25 * eps * claim.matrix) ** 2 * information).sum() < 1:
        return ""
    condition = np.linalg.cond(claim.matrix / np.outer(claim.scale, claim.scale))
    return (
        f"{dtype} cannot hold this matrix: its rounding, {eps:.0e}, times the condition number, {condition:.0e}, "
        f"is {eps * condition:.1g}; claim it in float64"
    )
