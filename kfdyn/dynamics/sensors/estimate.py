"""The door: accelerations, forces and external forces from noisy sensors, in one gather and one scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.result import DynamicsEstimate
from kfdyn.dynamics.sensors.sensor import Sensor
from kfdyn.dynamics.sensors.solver.problem import make_problem
from kfdyn.dynamics.sensors.solver.straight import at_once, remember
from kfdyn.dynamics.sensors.torques_alone import expect_inertia
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system


def estimate_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    sensors: Sequence[Sensor],
    readings: Sequence[ArrayLike | None],
    *,
    gravity: ArrayLike | None = None,
) -> DynamicsEstimate:
    """Estimate accelerations and forces from noisy readings: dynamics with imperfect measurements.

    ::

        α(k) = φ*α(p) + H*q̈ + η          f(k) = Σφf(j) + Mα + ξ − f_ext
        y = S f + Kα + e q̈ + r,           r ~ N(0, R), R = 0 allowed

    q̈ is flat unless a :class:`~kfdyn.sensors.JointPrior` says otherwise, and external forces are zero unless an
    :class:`~kfdyn.sensors.ExternalForce` does. Exact torques are forward dynamics, exact accelerations inverse
    dynamics.

    Parameters
    ----------
    system : System or FlexibleSystem
        The robot. Torques and accelerations are those of its coordinates, modes among them. With couplings and loops,
        too, unless bodies bend: a loop is a flat force between its ends and an exact reading that they do not
        accelerate against each other; of rows that follow from the others no force is assumed.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest. Both count as known.
    sensors : sequence of kf.sensors
        One layout for all states. Readings of different sensors are independent.
    readings : sequence of (..., size) or None
        One entry a sensor, NaN where missing (any pattern), None for a prior of mean zero.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    DynamicsEstimate
        Means, likelihood, residuals; covariances, draws and gradients on request.

    Raises
    ------
    UnobservableError
        If the sensors leave something undetermined, or exact readings say the same twice; it names what and the cure.
        What rounding decides may be answered with a large standard deviation: look at ``std``. Of torques alone it is
        refused, as by :func:`forward_dynamics`, where a dof has no inertia left in double precision.

    Notes
    -----
    O(N) for each state. The recursion passes messages f | α ~ N(Aα + b, C) with information (J, h) on α inward, and
    eliminates at each hinge q̈ and the multipliers of its rows through a quasi-definite matrix. What a hinge cannot
    decide (a flat force before the sensor that sees it, an exact accelerometer before the hinges that explain it) is
    carried inward. Source: THEORY section 11.

    Examples
    --------
    A torque and an acceleration that do not quite agree, each trusted as far as its covariance says:

    >>> import kfdyn as kf
    >>> arm = kf.models.pendulum()
    >>> sensors = [kf.sensors.JointTorque(1.0), kf.sensors.JointAcceleration(3.0)]
    >>> est = estimate_dynamics(arm, [0.0], [0.0], sensors, [[0.0], [4.0]])
    >>> est.a, est.std("a").round(3), float(est.nis)
    (array([1.]), array([0.866]), 4.0)
    """
    expect_system(system)
    known = at_once(system, q, v, sensors, readings, gravity)
    if known is not None:
        program, q, v, five = known
        expect_inertia(system, q, sensors)
        one = np.ndim(five[0]) == 1
        made = DynamicsEstimate(
            lambda: make_problem(system, q[0] if one else q, v[0] if one else v, sensors, readings, None), five
        )
        made._straight = system, program, q
        return made
    problem = make_problem(system, q, v, sensors, readings, gravity)
    out = DynamicsEstimate.of(problem)
    expect_inertia(system, problem.q.reshape(*problem.lead, system.nq), sensors)
    remember(problem)
    return out
