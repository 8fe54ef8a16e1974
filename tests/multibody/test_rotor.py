"""Rotors behind gears: ratio², and the gyroscopic part that an armature does not have."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.spatial import spatial_inertia

J, RATIO = 2e-3, -30.0


def platform(armature=0.0, ball=False):
    """An arm about x on a platform that turns about z and then y, or freely."""
    M = spatial_inertia(2.0, [0.1, 0, 0.05], np.diag([0.2, 0.3, 0.25]))
    hinge = kf.Hinge.ball() if ball else kf.Hinge.succession([[0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]])
    arm = spatial_inertia(1.0, [0, 0, 0.3], 0.05 * np.eye(3))
    bodies = [
        kf.Body("platform", M, hinge),
        kf.Body("arm", arm, kf.Hinge.revolute([1, 0, 0]), "platform", position=[0.2, 0.1, 0], armature=armature),
    ]
    return kf.System(bodies, gravity=(0, 0, 0))


def geared(ball=False):
    return kf.with_rotors(platform(ball=ball), {"arm": kf.Rotor(J, RATIO)})


def test_the_gyroscopic_torque():
    """T has J n q̇ ω_x, ω_x = −ż sin y: turning about z at rate ż asks for J n q̇ ż about y, at y = 0."""
    v = np.array([1.3, 0.0, 4.0])
    q = np.array([0.4, 0.0, 0.7])
    more = kf.inverse_dynamics(geared(), q, v, np.zeros(3)) - kf.inverse_dynamics(
        platform(armature=J * RATIO**2), q, v, np.zeros(3)
    )
    assert np.abs(more - [0, J * RATIO * v[2] * v[0], 0]).max() < 1e-13
    M, bare = kf.mass_matrix(geared(), q), kf.mass_matrix(platform(armature=J * RATIO**2), q)
    assert np.abs(M[2, 2] - bare[2, 2]) < 1e-13  # ratio² · J; the platform carries the rotor's J about x and across


def test_against_an_explicit_rotor():
    rng = np.random.default_rng(0)
    M = np.zeros((6, 6))
    M[:3, :3] = np.diag([J, J / 2, J / 2])
    rotor = kf.Body("wheel", M, kf.Hinge.revolute([1, 0, 0]), "platform", position=[0.2, 0.1, 0])
    tree = kf.System([*platform().bodies, rotor], gravity=(0, 0, 0))
    by_hand = tree.with_loops([])
    s = geared()
    q, v, tau = rng.normal(size=(3, 3))
    X = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, RATIO]])
    M = X.T @ kf.mass_matrix(by_hand, X @ q) @ X
    c = X.T @ kf.bias_forces(by_hand, X @ q, X @ v)
    assert np.abs(kf.forward_dynamics(s, q, v, tau) - np.linalg.solve(M, tau - c)).max() < 1e-11


def test_angular_momentum_of_a_free_platform():
    """Nothing turns it from outside: its angular momentum about the pivot, rotor included, stays."""
    s = geared(ball=True)
    q = np.r_[0, 0, 0, 1.0, 0.3]
    motion = kf.simulate(s, q, [0.5, -0.2, 0.8, 3.0], np.linspace(0, 1, 401))
    L = motion.momentum[:, :3]
    assert np.abs(L - L[0]).max() < 1e-8 * np.abs(L).max()
    assert motion.worst_energy_drift < 1e-9


def test_what_is_refused():
    slide = kf.System([kf.Body("cart", np.eye(6), kf.Hinge.prismatic([1, 0, 0]))])
    with pytest.raises(ModelError, match="revolute"):
        kf.with_rotors(slide, {"cart": kf.Rotor(1.0, 2.0)})
    with pytest.raises(ModelError, match="not 0"):
        kf.with_rotors(platform(), {"arm": kf.Rotor(1.0, 0.0)})
    with pytest.raises(ModelError, match="coupled already"):
        kf.with_rotors(geared(), {"arm": kf.Rotor(1.0, 2.0)})
