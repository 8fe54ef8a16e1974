"""An estimate depends on its own state, and on no other that was asked about before."""

import numpy as np
import pytest
from multibody_cases import state
from sensor_cases import case, wrist

import kfdyn as kf
from kfdyn.dynamics.sensors.solver.order import general_position
from kfdyn.spatial import spatial_inertia

QUANTITIES = ("a", "tau", "body_accelerations", "hinge_forces", "external_forces")


def answer(system, q, v, sensors, readings):
    """All means and standard deviations of one state, or the words of the refusal."""
    try:
        est = kf.estimate_dynamics(system, q, v, sensors, readings)
        return np.concatenate([np.concatenate([getattr(est, key).ravel(), est.std(key).ravel()]) for key in QUANTITIES])
    except kf.errors.UnobservableError as error:
        return str(error)


def same(one, two):
    return refused(one) == refused(two) and (one == two if refused(one) else np.array_equal(one, two))


def refused(one):
    return isinstance(one, str)


def test_random_robots_with_random_sensors():
    """The very bits, of states asked first or after another one; with each way of the estimator among them."""
    outcomes = []
    for seed in range(60):
        answers = []
        for first in (True, False):
            system, q, v, sensors, readings = case(seed, 1 + seed % 5)
            if not sensors:
                break
            if not first:
                answer(system, *state(system, np.random.default_rng(seed)), sensors, readings)
            answers.append(answer(system, q, v, sensors, readings))
        if answers:
            assert same(*answers), seed
            outcomes.append(refused(answers[0]))
    assert 5 <= sum(outcomes) <= len(outcomes) - 30


@pytest.mark.parametrize("tilt", [0.0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 1e-2])
def test_near_a_lock(tilt):
    """Whether a wrist close to its lock has an answer was once a matter of the order in which states came."""
    sensors, readings = [kf.sensors.JointTorque(1.0)], [[1.0, 2.0, 3.0]]
    answers = []
    for before in ((), (1.0,), (1e-4,), (1.0, 1e-3, 1e-5)):
        system = wrist()
        for other in before:
            answer(system, np.array([0.3, other, 0.2]), np.zeros(3), sensors, readings)
        answers.append(answer(system, np.array([0.3, tilt, 0.2]), np.zeros(3), sensors, readings))
    assert all(same(answers[0], other) for other in answers)
    assert refused(answers[0]) if tilt == 0 else tilt < 1e-3 or not refused(answers[0])


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_general_position_is_in_the_robots_units(length):
    """About a radian, and about the robot's length: a slide of a metre would be far out of a robot of micrometres."""
    inertia = spatial_inertia(1.0, [0, 0, length], length**2 * np.eye(3))
    cart = kf.Body("cart", inertia, kf.Hinge.prismatic([1, 0, 0]))
    slide, turn = general_position(kf.System([cart, kf.Body("arm", inertia, kf.Hinge.revolute([0, 1, 0]), "cart")]))
    assert 0.5 < slide / length < 2
    assert 0.5 < turn < 1.2
