"""The certificate in time: a robot's log tested against its model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.consistency import holm
from kfdyn.motion.identification.identify import identify
from kfdyn.motion.identification.linear import Log
from kfdyn.motion.identification.parameters.by_name import Parameters
from kfdyn.motion.identification.results.residuals import ResidualTest, residual_tests
from kfdyn.motion.identification.search import Search
from kfdyn.motion.model import MotionModel

_NOTICED = 1.96 + 1.645  # standard errors: found at a level of 5 % in 95 of 100 logs


class Suspect(NamedTuple):
    """A number of the robot on trial, all others held.

    Attributes
    ----------
    name : str
        Of the number.
    value : float
        In the model.
    limit : float
        How wrong it must be to be noticed in 95 of 100 such logs, at a level of 5 %.
    wanted : float
        The change to first order that the log asks for; in units of ``limit`` it is small where the model is right.
    p_value : float
        Of the value in the model: the score test.

    Examples
    --------
    >>> Suspect("tool/mass", 2.0, 0.05, 0.01, 0.47).limit
    0.05
    """

    name: str
    value: float
    limit: float
    wanted: float
    p_value: float


@dataclass(frozen=True, eq=False)
class LogReport:
    """What a log says about a robot's model.

    Attributes
    ----------
    residuals : dict of str to ResidualTest
        Tests of each sensor.
    suspects : tuple of Suspect
        Masses and dampers, each on trial alone.
    noise_fitted : bool
        Whether noise levels are those that fit best: sizes of residuals say nothing then.
    level : float
        At which the verdict rejects.
    model : MotionModel
        With the noise levels that were used.

    Examples
    --------
    >>> LogReport({}, (), True, 0.01, None).passed
    True
    """

    residuals: dict[str, ResidualTest]
    suspects: tuple[Suspect, ...]
    noise_fitted: bool
    level: float
    model: Any = field(repr=False)

    @property
    def p_values(self) -> dict[str, float]:
        """All p-values after Holm, by what they are of."""
        raw: dict[str, float] = {}
        for name, test in self.residuals.items():
            raw |= {f"{name}: whiteness": test.whiteness, f"{name}: mean": test.mean}
            if not self.noise_fitted:
                raw[f"{name}: size"] = test.size
        raw |= {one.name: one.p_value for one in self.suspects}
        return dict(zip(raw, np.asarray(holm(list(raw.values()))).tolist())) if raw else {}

    @property
    def passed(self) -> bool:
        """Whether no p-value is below the level."""
        return min(self.p_values.values(), default=1.0) >= self.level

    def table(self) -> str:
        """The report as text."""
        lines = [f"{'sensor':<28}{'readings':>9}{'whiteness':>11}{'size':>9}{'mean':>9}{'correlation':>13}"]
        for name, test in self.residuals.items():
            size = "fitted" if self.noise_fitted else f"{test.size:.3g}"
            row = f"{name:<28}{test.readings:>9}{test.whiteness:>11.3g}{size:>9}{test.mean:>9.3g}"
            lines.append(row + f"{test.correlation:>13.3f}")
        lines.append(f"{'number':<28}{'value':>11}{'noticed if off by':>19}{'log asks for':>14}{'p':>10}")
        for one in self.suspects:
            lines.append(f"{one.name:<28}{one.value:>11.4g}{one.limit:>19.3g}{one.wanted:>+14.3g}{one.p_value:>10.3g}")
        p_values = self.p_values
        if self.passed:
            lines.append(f"PASSED at level {self.level:g}, {len(p_values)} p-values (Holm)")
        else:
            worst = sorted((p, name) for name, p in p_values.items() if p < self.level)
            lines.append(f"REJECTED: {', '.join(f'{name} (p {p:.2g})' for p, name in worst)}, p-values after Holm")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


def check_log(
    model: MotionModel, readings: Any, tau: Any, *, fit_noise: bool = True, prior: Any = None, level: float = 0.01,
    lags: int = 10,
) -> LogReport:  # fmt: skip
    """Test a robot's log against its model: are the residuals noise, and is any mass or damper asked to be another?

    ::

        z_i = g_i / √I_ii,     change asked for ≈ g_i / I_ii,     noticed if off by 3.6 / √I_ii

    with g the score of the log at the model's values and I the information of the means (THEORY section 20).

    Parameters
    ----------
    model : MotionModel
        The robot, its sensors and noise. A tree without couplings.
    readings, tau, prior
        As :func:`kfdyn.identify` takes them.
    fit_noise : bool
        Whether to take the noise levels that fit best, since few logs come with theirs. A wrong model then looks like
        noise that is larger, but not like white noise.
    level : float
        Of the verdict.
    lags : int
        Of the test of whiteness.

    Returns
    -------
    LogReport
        ``passed``, ``table()``, ``residuals``, ``suspects`` with detection limits.

    Notes
    -----
    One smoothing, one score and one filter with a right-hand side for each mass and damper, beside the fit of noise
    levels. Each number is tried alone: which of two is wrong may be open where a motion moves them together.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> cart = kf.System([kf.Body("cart", np.diag([0, 0, 0, 2.0, 2.0, 2.0]), kf.Hinge.prismatic([1, 0, 0]))])
    >>> rng, force = np.random.default_rng(0), np.sin(np.arange(299) / 9)
    >>> run = kf.MotionModel(cart, 0.1, [kf.sensors.JointPosition(1e-4)], force_noise=[1e-2])
    >>> a = (force + rng.normal(scale=0.1, size=299)) / 3.0  # a mass of 3, not of 2
    >>> q = 0.1**2 * np.cumsum(np.cumsum([0.0, *a])) + rng.normal(scale=0.01, size=300)
    >>> report = kf.motion.check_log(run, [q], force[:, None])
    >>> report.passed, report.suspects[0].wanted > 0
    (False, True)
    """
    if not isinstance(model, MotionModel):
        raise ModelError(f"check_log takes a kf.MotionModel, not {type(model).__name__}")
    if not isinstance(level, float | int) or not 0.0 < level < 1.0:
        raise ModelError(f"level must lie between 0 and 1, such as 0.01; got {level!r}")
    if fit_noise:
        names = ["force_noise", *(f"{sensor.name}/cov" for sensor in model.seen.sensors if sensor.cov.any())]
        model = identify(model, readings, tau, names, prior=prior, tolerance=1e-5).model
    names = [f"{body.name}/mass" for body in model.system.bodies if body.inertia[3, 3] > 0.0]
    names += list(Parameters([model], ["*/damping"]).names)
    parameters = Parameters([model], names)
    search = Search(parameters, [Log(model, readings, tau, prior)], 1, 1.0)
    place = search.begin(regress=False)
    g = place.held.gradient_of(place.z, place.lines)
    information = np.diag(place.held.responses(place.z, place.lines)[0])
    return LogReport(
        residual_tests(place.lines, lags), _suspects(parameters, place.z, g, information), fit_noise, level, model
    )


def _suspects(parameters: Parameters, z: Any, g: Any, information: Any) -> tuple[Suspect, ...]:
    from scipy.stats import norm

    slope, values, out = np.diag(parameters.slope(z)), parameters.natural(z), []
    most = information.max(initial=0.0)
    for name, value, of, own, known in zip(parameters.names, values, slope, g, information):
        if known <= 1e-12 * most:  # the log cannot tell
            out.append(Suspect(name, float(value), np.inf, 0.0, 1.0))
            continue
        error = of / np.sqrt(known)
        p = 2.0 * norm.sf(abs(own) / np.sqrt(known))
        out.append(Suspect(name, float(value), float(_NOTICED * error), float(own / known * of), float(p)))
    return tuple(out)
