"""Maximum likelihood of a robot's parameters from its logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.motion.identification.linear import Log
from kfdyn.motion.identification.parameters.built import Built
from kfdyn.motion.identification.parameters.by_name import Parameters
from kfdyn.motion.identification.results.result import Identified
from kfdyn.motion.identification.search import Search
from kfdyn.motion.model import MotionModel
from kfdyn.multibody.kinds import expect_tree


def identify(
    model: MotionModel | Sequence[MotionModel] | Callable[[Any], Any],
    readings: Any,
    tau: Any,
    parameters: Any,
    *,
    fixed: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None,
    priors: Mapping[str, Any] | None = None,
    prior: Any = None,
    max_iterations: int = 100,
    tolerance: float = 1e-9,
) -> Identified:
    """Find the parameters under which logs are most likely.

    For fixed parameters the motion is smoothed; the model linearised there has a log-likelihood, whose gradient, the
    motion held, is the engine's score on what the linearised model changes by::

        dℓ = Σ ⟨∂ℓ/∂φ, dF⟩ + ⟨∂ℓ/∂Q, dQ⟩ + ⟨∂ℓ/∂R, dR⟩ + ⟨∂ℓ/∂H, dH⟩ + λ·dξ − a·dT

    Smoothing and Newton steps alternate until the gradient vanishes.

    Parameters
    ----------
    model : MotionModel, or sequence of them, or callable
        The robot, its sensors and noise; its values are where the search begins. A tree without couplings. Several
        models of one robot are for several logs, each with its own rate and sensors; sensors of one name are one
        sensor. A function ``build(theta)`` returns a model, or one for each log.
    readings : sequence of arrays (N, size)
        One a sensor, as the smoother takes them: NaN is missing, None a silent sensor. Several logs of one length and
        model: (logs, N, size), under one prior that is not flat. For several models, a list of such lists.
    tau : (N−1, nv), or (N, nv) where sensors feel accelerations
        Torques that were ordered; for several models a list.
    parameters : sequence of str, or first values of theta
        ``"<body>/inertia"`` (ten numbers, always those of some positive mass), ``"<body>/com"`` (mass and mass centre),
        ``"<body>/mass"`` (the body's density scales), ``"<frame>/payload"`` (a mass in a point, and where),
        ``"<hinge>/damping"``, ``"<hinge>/friction"``, ``"<hinge>/stiffness"``, ``"<hinge>/armature"``, ``"gravity"``,
        ``"force_noise"``, ``"<sensor>/cov"``, ``"<sensor>/bias"`` (offsets of encoders), ``"<sensor>/scale"``;
        ``"*/damping"`` names all. What is not named stays. With ``build``, numbers or a mapping from names to them.
    fixed : sequence of str
        Of those, what stays all the same.
    bounds : mapping from a name to (low, high), optional
        Natural numbers; those of an inertia are mixed and take priors instead.
    priors : mapping from a name to (mean, spread), optional
        Normal priors of natural numbers: deviations or a covariance, such as those of a CAD model.
    prior : (q0, v0, P0), optional
        Of the states, in place of the model's; for several models a list.
    max_iterations : int
        Limit of steps.
    tolerance : float
        Converged when a step promises less than this: half the square of its length in standard errors.
        At the edge of positive mass, at which logarithms never arrive, 1e-4 is enough.

    Returns
    -------
    Identified
        ``params``, ``stderr``, ``llf``, ``converged``, ``message``, ``summary()``, ``system``, ``model``, ``motion``,
        and ``unidentified``, what the logs do not tell.

    Raises
    ------
    ModelError
        If a name is unknown, or a body's inertia is one that no positive mass has.

    Notes
    -----
    The gradient has a closed form: one filter, one smoother, and derivatives of inverse dynamics of ten point masses a
    body, all times in one call. With four stages (``method="rk4"``) and for ``build`` the change of the linearised
    model is found by central differences of *it*; never the likelihood's. The information that is reported is minus
    the derivative of that gradient, by differences of it; the search takes Gauss–Newton's until it is near. The maximum
    is where the gradient with the motion held vanishes at the motion that is smoothed with it. The first values are
    improved by regression of torques on a motion that is smoothed without dynamics. Directions that do not move the
    robot's equations keep their first values, and are never inverted. THEORY section 20.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> cart = kf.System([kf.Body("cart", np.diag([0, 0, 0, 2.0, 2.0, 2.0]), kf.Hinge.prismatic([1, 0, 0]))])
    >>> tau = np.sin(np.arange(199) / 9)[:, None]
    >>> run = kf.MotionModel(cart, 0.1, [kf.sensors.JointPosition(1e-4)], force_noise=[1e-2])
    >>> q = 0.1**2 * np.cumsum(np.cumsum(np.concatenate([[[0.0]], tau / 3.0])))[:, None]  # a mass of 3
    >>> kf.identify(run, [q], tau, ["cart/mass"]).converged
    True
    """
    if not isinstance(max_iterations, int | np.integer) or max_iterations < 1:
        raise ModelError(f"max_iterations must be a whole number, 1 or more, got {max_iterations!r}")
    if not isinstance(tolerance, float | int) or not tolerance > 0.0:
        raise ModelError(f"tolerance must be positive, got {tolerance!r}")
    own: Parameters | Built
    if callable(model) and not isinstance(model, MotionModel):
        if fixed or priors:
            raise ModelError("fixed and priors are of parameters by name; write them into build(theta)")
        own = Built(model, parameters, bounds)
        several = not isinstance(model(own.natural(own.start)), MotionModel)
    else:
        several = not isinstance(model, MotionModel)
        models = list(model) if isinstance(model, Sequence) else [model]
        _expect_models(models)
        own = Parameters(models, parameters, fixed, bounds, priors)
    if several:
        logs = _several(own.bases, readings, tau, prior)
    else:
        logs = [Log(own.bases[0], readings, tau, prior)]
    found = Search(own, logs, int(max_iterations), float(tolerance)).run()
    return Identified.of(own, logs, found)


def _expect_models(models: list[Any]) -> None:
    for model in models:
        if not isinstance(model, MotionModel):
            raise ModelError(f"identify takes a kf.MotionModel, not {type(model).__name__}")
        expect_tree(model.system, "identify", "parameters of couplings and loops are not identified")
        names = [sensor.name for sensor in model.seen.sensors]
        if len(set(names)) < len(names):
            twin = next(name for name in names if names.count(name) > 1)
            raise ModelError(f"two sensors are called {twin!r}: their parameters are not told apart; give each a name=")
    if not models:
        raise ModelError("there is no model; give one for each log")
    first = models[0].system
    for model in models[1:]:
        if model.system.body_names != first.body_names or model.system.hinge_names != first.hinge_names:
            raise ModelError("the models of several logs must be of one robot; their bodies or hinges differ")


def _several(models: list[MotionModel], readings: Any, tau: Any, prior: Any) -> list[Log]:
    count = len(models)
    parts = []
    for given, what in ((readings, "readings"), (tau, "tau"), (prior, "prior")):
        part = [None] * count if given is None else list(given)
        if len(part) != count:
            raise ModelError(f"there are {count} models but {len(part)} of {what}; give a list with one for each log")
        parts.append(part)
    return [Log(*one) for one in zip(models, *parts)]
