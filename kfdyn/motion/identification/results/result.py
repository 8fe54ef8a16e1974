"""Identified parameters, and how well they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.nonlinear.smoother import iterated_kalman_smoother
from kfdyn.motion.identification.directions import scaled, sparse, words
from kfdyn.motion.identification.linear import Log
from kfdyn.motion.identification.results.residuals import ResidualTest, residual_tests
from kfdyn.motion.identification.results.table import summary
from kfdyn.motion.identification.search import Curvature, Found, Search
from kfdyn.motion.model import MotionModel
from kfdyn.motion.result import MotionSmoothed

_UNKNOWN = 1e-7  # eigenvalue of the information, scaled to unit diagonal, below which a direction is not known
_MOVED = 1e-4  # part of a number that an unknown direction may move before the number is not known


class LikelihoodRatio(NamedTuple):
    """Twice the difference of two log-likelihoods, with its dof (degrees of freedom) and p_value.

    Attributes
    ----------
    statistic, dof, p_value
        Twice the gain, how many parameters more there are, and how likely so much is where the smaller model is right.

    Examples
    --------
    >>> LikelihoodRatio(9.2, 1, 0.0024).p_value
    0.0024
    """

    statistic: float
    dof: int
    p_value: float


class Ellipsoid(NamedTuple):
    """A confidence ellipsoid in natural units: its center (k,) and half axes as columns, axes (k, k).

    Examples
    --------
    >>> Ellipsoid(np.zeros(1), np.eye(1)).axes.shape
    (1, 1)
    """

    center: Array
    axes: Array


@dataclass(frozen=True, eq=False)
class Identified:
    """The parameters that logs tell of a robot, and how well.

    Attributes
    ----------
    names : tuple of str
        Names of the numbers.
    params : ndarray, shape (p,)
        Their values in natural units: kg, N m s, variances; of an inertia m, m c and I about the body's origin.
    llf : float
        Log-likelihood of the models linearised about their own smoothed motions, and of the priors of parameters;
        ratios of it compare models.
    converged : bool
        Whether it is a maximum.
    message : str
        How the search ended.
    iterations : int
        Steps taken.
    at_bound : ndarray of bool, shape (p,)
        Numbers whose best value is a bound, such as dampers of 0; they have no standard error.
    models : tuple of MotionModel
        The models with these values, one a log.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> cart = kf.System([kf.Body("cart", np.diag([0, 0, 0, 2.0, 2.0, 2.0]), kf.Hinge.prismatic([1, 0, 0]))])
    >>> tau = np.sin(np.arange(199) / 9)[:, None]
    >>> run = kf.MotionModel(cart, 0.1, [kf.sensors.JointPosition(1e-4)], force_noise=[1e-2])
    >>> q = 0.1**2 * np.cumsum(np.cumsum(np.concatenate([[[0.0]], tau / 3.0])))[:, None]  # a mass of 3
    >>> found = kf.identify(run, [q], tau, ["cart/mass"])
    >>> abs(found.params[0] - 3.0) < 0.01, found.names
    (np.True_, ('cart/mass',))
    """

    names: tuple[str, ...]
    params: Array
    llf: float
    converged: bool
    message: str
    iterations: int
    at_bound: NDArray[np.bool_]
    models: tuple[MotionModel, ...] = field(repr=False)
    _parameters: Any = field(repr=False)
    _logs: list[Log] = field(repr=False)
    _found: Found = field(repr=False)

    @classmethod
    def of(cls, parameters: Any, logs: list[Log], found: Found) -> Identified:
        """Read it off the end of a search."""
        z, J = found.place.z, parameters.slope(found.place.z)
        alone = (J != 0.0).sum(axis=1) == 1
        at_bound = np.array([bool(alone[i] and (found.at_bound & (J[i] != 0.0)).any()) for i in range(len(J))], bool)
        return cls(
            parameters.names, parameters.natural(z), found.place.llf, found.converged, found.message, found.iterations,
            at_bound, tuple(parameters.models(z)), parameters, logs, found,
        )  # fmt: skip

    # --- the robot and its motion

    @property
    def model(self) -> MotionModel:
        """The model with these values, of the first log."""
        return self.models[0]

    @property
    def system(self) -> Any:
        """The robot with these values, which ``save_urdf`` and every other function takes."""
        return self.model.system

    @cached_property
    def motions(self) -> tuple[MotionSmoothed, ...]:
        """The smoothed motions with their covariances, one a log."""
        out = []
        for model, log, motion in zip(self.models, self._logs, self._found.place.motions):
            out.append(
                iterated_kalman_smoother(
                    model, log.readings, tau=log.tau, prior=log.given_prior, start=motion, tolerance=1e-6
                )
            )
        return tuple(out)  # type: ignore[arg-type]

    @property
    def motion(self) -> MotionSmoothed:
        """The smoothed motion of the first log."""
        return self.motions[0]

    # --- how well

    @cached_property
    def _curvature(self) -> Curvature:
        return Search(self._parameters, self._logs, 1, 1.0).curvature(self._found)

    @cached_property
    def _slope(self) -> Array:
        return np.asarray(self._curvature.parameters.slope(self._curvature.z))

    @cached_property
    def _directions(self) -> tuple[Array, Array]:
        """Covariance in the free numbers of what is known, and a basis of what is not."""
        (seen, blind), own = self._curvature.seen, self._curvature
        free = np.flatnonzero(~own.at_bound)
        size = len(seen)
        V = np.linalg.qr(seen[free])[0] if blind.size else np.eye(size)[np.ix_(free, free)]
        cov, lost = np.zeros((size, size)), np.zeros((size, 0))
        if free.size:
            V = V[:, : min(V.shape)]
            values, vectors, scale = scaled(V.T @ own.information[np.ix_(free, free)] @ V)
            known = values > _UNKNOWN
            columns = V @ (vectors / scale[:, None])
            lost = np.zeros((size, int((~known).sum())))
            cov[np.ix_(free, free)] = (columns[:, known] / values[known]) @ columns[:, known].T
            lost[free] = columns[:, ~known] / np.linalg.norm(columns[:, ~known], axis=0)
        return cov, np.concatenate([blind, lost], axis=1)

    @cached_property
    def cov_params(self) -> Array:
        """Covariance of the natural numbers, the inverse of the observed information, (p, p).

        NaN for those at a bound and for those of which a direction is not known.
        """
        cov, lost = self._directions
        J = self._slope
        out = J @ cov @ J.T
        moved = np.abs(J @ lost) / (np.abs(J).max(axis=1, keepdims=True) + 1e-300)
        bad = self.at_bound | (moved.max(axis=1, initial=0.0) > _MOVED)
        out[bad] = np.nan
        out[:, bad] = np.nan
        return out

    @property
    def stderr(self) -> Array:
        """Standard errors, (p,); NaN where there is none."""
        return np.sqrt(np.diagonal(self.cov_params))

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Intervals of probability 1 − α, (p, 2): normal, about logarithms where a number is fitted by its own."""
        from scipy.stats import norm

        _expect_alpha(alpha)
        reach = norm.isf(alpha / 2.0)
        by_log = self._by_log
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            wide = np.where(by_log, np.exp(reach * self.stderr / self.params), reach * self.stderr)
        low = np.where(by_log, self.params / wide, self.params - wide)
        return np.stack([low, np.where(by_log, self.params * wide, self.params + wide)], axis=1)

    @property
    def _by_log(self) -> NDArray[np.bool_]:
        """Numbers that are fitted by their logarithms."""
        z = self._found.place.z
        J = self._parameters.slope(z)
        return np.array([np.isclose(row.sum(), n, rtol=1e-12, atol=0.0) and (row != 0).sum() == 1 and n > 0.0
                         and np.isclose(np.log(n), z[row != 0][0], rtol=1e-9, atol=1e-9)
                         for row, n in zip(J, self.params)], bool)  # fmt: skip

    def ellipsoid(self, names: Sequence[str], alpha: float = 0.05) -> Ellipsoid:
        """Confidence ellipsoid of some numbers together, of probability 1 − α."""
        from scipy.stats import chi2

        _expect_alpha(alpha)
        if isinstance(names, str):
            raise ShapeError(f"names must be a list; write [{names!r}]")
        places = [self._place(name) for name in names]
        C = self.cov_params[np.ix_(places, places)]
        if np.isnan(C).any():
            lost = [name for name, error in zip(names, np.sqrt(np.diagonal(C))) if np.isnan(error)]
            raise ModelError(f"{', '.join(lost)}: at a bound or not known, so there is no ellipsoid")
        values, vectors = np.linalg.eigh(C)
        return Ellipsoid(self.params[places], vectors * np.sqrt(chi2.isf(alpha, len(places)) * values.clip(0.0)))

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise ModelError(f"{name!r} was not identified; there are {', '.join(self.names)}")
        return self.names.index(name)

    @cached_property
    def unidentified(self) -> tuple[str, ...]:
        """Directions that the logs do not tell, in natural units and in words; empty if there is none."""
        lost = self._slope @ self._directions[1]
        return tuple(words(column, self.names) for column in sparse(lost).T)

    # --- comparisons

    def likelihood_ratio(self, smaller: Identified) -> LikelihoodRatio:
        """Test a model with fewer parameters, of the same logs: is there friction in joint 4?

        Twice the gain in log-likelihood is χ² of as many degrees of freedom as there are more parameters. Where each of
        these may not be below 0, and is 0 in the smaller model, half of a χ² is 0: p is halved for one such number, and
        is an upper bound for more. Both models must have the same readings and noise.
        """
        from scipy.stats import chi2

        if not isinstance(smaller, Identified):
            raise ModelError(f"likelihood_ratio takes what kf.identify returned, not {type(smaller).__name__}")
        more = len(self.names) - len(smaller.names)
        if not set(smaller.names) < set(self.names):
            raise ModelError("the smaller model must have some of the parameters of this one, and no others")
        if len(self._logs) != len(smaller._logs) or not all(map(Log.same, self._logs, smaller._logs)):
            raise ModelError("the two were identified from different logs, whose likelihoods do not compare")
        statistic = max(2.0 * (self.llf - smaller.llf), 0.0)
        p = float(chi2.sf(statistic, more))
        extra = [name for name in self.names if name not in smaller.names]
        if more == 1 and extra[0].endswith(("/damping", "/friction", "/stiffness", "/armature")):
            p = 0.5 * p if statistic > 0.0 else 1.0
        return LikelihoodRatio(statistic, more, p)

    def profile(self, name: str, values: ArrayLike) -> Array:
        """Log-likelihood with one number held at each of some values, all others fitted anew."""
        from kfdyn.motion.identification.results.profile import profile

        self._place(name)
        return profile(self._parameters, self._logs, self._found, name, np.atleast_1d(np.asarray(values, float)))

    def residual_tests(self, lags: int = 10) -> dict[str, ResidualTest]:
        """Test if what each sensor reads beyond the prediction is white, of the right size and without a mean."""
        return residual_tests(self._found.place.lines, lags)

    def summary(self, alpha: float = 0.05) -> str:
        """Table of the estimate, with tests of the residuals."""
        _expect_alpha(alpha)
        return summary(self, alpha)

    def __str__(self) -> str:
        return self.summary()


def _expect_alpha(alpha: float) -> None:
    if not isinstance(alpha, float | int) or not 0.0 < alpha < 1.0:
        raise ModelError(f"alpha must lie between 0 and 1, such as 0.05; got {alpha!r}")
