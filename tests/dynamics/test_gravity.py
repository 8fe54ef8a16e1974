"""Gravity torques of every kind of system, beside the gradient of the potential energy and the bias at rest."""

import flexible_cases
import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

ARM, TREE = kf.models.puma560(), kf.models.random_tree(14, seed=3)
GEAR = kf.Coupling(ARM.hinge_names[1:3], [[1.0], [-0.5]], [0.0, 0.1])
NEGATIVE = [lambda s: -np.sin(s), lambda s: -np.cos(s)]
CAM = kf.Coupling.by_functions(ARM.hinge_names[1], {ARM.hinge_names[2]: [0.1, -0.5, 0.2]})
WAVE = kf.Coupling.by_functions(ARM.hinge_names[1], {ARM.hinge_names[2]: (np.sin, np.cos, *NEGATIVE)})
SYSTEMS = {
    "arm": ARM,
    "every hinge": TREE,
    "geared": ARM.with_couplings([GEAR]),
    "cam": ARM.with_couplings([CAM]),
    "wave": ARM.with_couplings([WAVE]),
    "specialised": kf.specialise(ARM),
    "flexible": flexible_cases.tree(0),
}
G = np.array([0.4, -1.0, -9.0])


@pytest.fixture(params=SYSTEMS)
def system(request):
    return SYSTEMS[request.param]


def configurations(system, size=5):
    rng = np.random.default_rng(1)
    return np.array([system.random_configuration(rng) for _ in range(size)])


def bias(system, q, gravity):
    """What is left of the bias at rest without springs, which gravity does not change."""
    none = np.zeros(3)
    return kf.bias_forces(system, q, gravity=gravity) - kf.bias_forces(system, q, gravity=none)


@pytest.mark.parametrize("gravity", [None, G], ids=["own", "given"])
def test_it_is_what_gravity_adds_to_the_bias(system, gravity):
    q = configurations(system)
    expected = bias(system, q, system.gravity if gravity is None else gravity)
    assert np.allclose(kf.gravity_torques(system, q, gravity), expected, rtol=1e-12, atol=1e-12 * abs(expected).max())


def test_it_is_the_gradient_of_the_potential_energy(system):
    q, step = configurations(system, 1)[0], 1e-5

    def energy(dv):
        here = kf.integrate(system, q, dv)
        return kf.potential_energy(system, here, G) - kf.potential_energy(system, here, np.zeros(3))

    slope = [(energy(step * e) - energy(-step * e)) / (2 * step) for e in np.eye(system.nv)]
    assert np.allclose(
        kf.gravity_torques(system, q, G), slope, atol=1e-8 * (1 + np.abs(slope).max())
    )  # step² and 1/step


def test_batches_lists_and_gravity_broadcast(system):
    q = configurations(system, 6)
    rows = kf.gravity_torques(system, q)
    assert rows.shape == (6, system.nv)
    assert np.array_equal(kf.gravity_torques(system, q.reshape(2, 3, -1)), rows.reshape(2, 3, -1))
    one = kf.gravity_torques(system, q[0])
    if system is not SYSTEMS["specialised"]:  # whose own code is for batches, and leaves out what is 0
        assert np.array_equal(one, rows[0])
    assert np.allclose(one, rows[0], rtol=1e-14, atol=1e-14)
    assert np.array_equal(kf.gravity_torques(system, q[0].tolist()), one)
    many = kf.gravity_torques(system, q[0], np.array([G, 2 * G]))
    assert np.allclose(many[1], 2 * many[0], rtol=1e-13, atol=1e-12)
    assert kf.gravity_torques(system, np.empty((0, system.nq))).shape == (0, system.nv)


def test_what_is_wrong_is_said(system):
    q = configurations(system, 1)[0]
    with pytest.raises(ModelError, match="not finite"):
        kf.gravity_torques(system, np.full_like(q, np.nan))
    with pytest.raises(ModelError, match=r"too large for a double.*gravity reaches"):
        kf.gravity_torques(system, q, [0.0, 0.0, -1e308])


def test_loops_need_a_choice_of_coordinates():
    bars = kf.models.four_bar()
    with pytest.raises(ModelError, match=r"gravity_torques: .*minimal_coordinates"):
        kf.gravity_torques(bars, kf.models.four_bar_configuration(0.7))
