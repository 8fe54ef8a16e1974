"""ẋ = g(x, u) is the derivative of the package's own motion, for every kind of hinge."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError


def test_it_is_the_derivative_of_the_motion():
    """SRB: q̇ by central differences of integrate, v̇ is forward dynamics."""
    rng = np.random.default_rng(0)
    system = kf.models.random_tree(9, seed=2)
    q = np.stack([system.random_configuration(rng) for _ in range(3)])
    v, tau = rng.normal(size=(2, 3, system.nv))
    found = kf.state_derivative(system, np.concatenate([q, v], axis=-1), tau)
    h = 1e-6
    ahead, behind = (kf.integrate(system, q, s * h * v) for s in (1, -1))
    # central differences: h² of truncation and 1e-16/h of rounding
    np.testing.assert_allclose(found[:, : system.nq], (ahead - behind) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(found[:, system.nq :], kf.forward_dynamics(system, q, v, tau), rtol=1e-12)


def test_a_quaternion_may_drift():
    """Scaled quaternions mean the same rotation, and keep their length."""
    flyer = kf.System([kf.Body("b", np.diag([1.0, 2, 3, 4, 4, 4]), kf.Hinge.free())])
    q, v = flyer.random_configuration(1), np.arange(6.0)
    x = np.concatenate([q, v])
    long = x.copy()
    long[3:7] *= 1.1
    one, other = kf.state_derivative(flyer, x), kf.state_derivative(flyer, long)
    np.testing.assert_allclose(other[7:], one[7:], rtol=1e-12, atol=1e-13)
    assert abs(other[3:7] @ long[3:7]) < 1e-12


def test_errors_name_the_culprit():
    arm = kf.models.double_pendulum()
    with pytest.raises(ShapeError, match=r"shape \(..., 4\)"):
        kf.state_derivative(arm, [0.0, 0.0])
    with pytest.raises(ModelError, match=r"is for trees.* has 1 loop; take system\.open_tree"):
        kf.state_derivative(kf.models.four_bar(), np.zeros(6))
