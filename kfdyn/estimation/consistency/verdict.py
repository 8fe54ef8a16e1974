"""Results of a statistical test, and Holm's rule for several of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError

__all__ = ["Verdict", "holm"]


@dataclass(frozen=True)
class Verdict:
    """Outcome of one test of one hypothesis.

    Attributes
    ----------
    statistic : float
        The test statistic; its meaning is the test's.
    dof : int
        Degrees of freedom of its χ² limit, or the number of entries looked at.
    p_value : float
        Uniform on (0, 1) if the hypothesis holds; 0 if samples leave the range of a singular covariance.
    outside : float
        Largest standardised variance found outside that range, 0 if there is no outside.
    n : int
        Number of samples the statistic was made of.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.estimation.consistency import covariance_test
    >>> samples = np.random.default_rng(0).normal(size=(1000, 3))
    >>> verdict = covariance_test(samples, np.eye(3))
    >>> verdict.dof, verdict.n, verdict.p_value > 0.01
    (6, 1000, True)
    """

    statistic: float
    dof: int
    p_value: float
    outside: float = 0.0
    n: int = 1


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values read together by Holm's step-down rule: p_(i) → max_{j≤i} min(1, (m − j + 1) p_(j)).

    Rejecting where the adjusted value is below α keeps the probability of any false rejection below α,
    whatever the dependence between the tests.

    Parameters
    ----------
    p_values : (m,)
        One p-value per test.

    Returns
    -------
    adjusted : (m,)
        In the order given.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.5])
    array([0.08, 0.03, 0.5 ])
    """
    p = np.atleast_1d(np.asarray(p_values, float))
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ModelError("p-values must be one flat list of numbers between 0 and 1")
    order = np.argsort(p)
    scaled = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(scaled)
    return adjusted
