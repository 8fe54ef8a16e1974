"""Stiffness of a rigid robot against the second derivatives of its potential energy, by hand."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.spatial import spatial_inertia


def test_weight_of_a_double_pendulum():
    """V = −(m₁ + m₂) g l₁ cos q₁ − m₂ g l₂ cos(q₁ + q₂), to rounding, hanging or not, springs included."""
    mass, length, g = (1.5, 0.7), (0.8, 0.6), 9.81
    arm = kf.models.double_pendulum(mass=mass, length=length)
    for q in ([0.0, 0.0], [0.4, -1.3], [np.pi / 2, np.pi / 2], [np.pi, 0.0]):
        both = mass[1] * g * length[1] * np.cos(q[0] + q[1])
        K = np.array([[sum(mass) * g * length[0] * np.cos(q[0]) + both, both], [both, both]])
        found = kf.modes(arm, q)
        np.testing.assert_allclose(found.stiffness, K, rtol=0, atol=1e-13 * g * sum(mass))
        np.testing.assert_allclose(found.residual, kf.bias_forces(arm, q, np.zeros(2)), atol=1e-14)
        shapes = found.shapes
        np.testing.assert_allclose(shapes.T @ kf.mass_matrix(arm, q) @ shapes, np.eye(2), atol=1e-12)
        squares = np.sign(found.frequencies) * found.frequencies**2
        np.testing.assert_allclose(shapes.T @ K @ shapes, np.diag(squares), atol=1e-11 * abs(squares).max())


def test_a_system_in_which_nothing_moves_has_no_modes():
    post = kf.System([kf.Body("post", np.eye(6), None)])
    assert kf.modes(post).frequencies.shape == (0,)


def test_arguments_are_named():
    arm = kf.models.puma560()
    with pytest.raises(kf.errors.ShapeError, match="q must be an array of real numbers, got 'neutral'"):
        kf.modes(arm, "neutral")
    with pytest.raises(kf.errors.ShapeError, match=r"rest must have shape \(6,\), as q has, got \(1,\)"):
        kf.modes(arm, rest=[0.0])


def test_what_moves_no_mass_is_called_by_its_hinge():
    arm = kf.models.chain(2, seed=0)
    tool = kf.Body("tool", np.zeros((6, 6)), kf.Hinge.revolute([0, 1, 0]), arm.body_names[-1])
    with pytest.raises(kf.errors.SingularError, match="is singular, hinge 'tool' moves no mass"):
        kf.modes(kf.System([*arm.bodies, tool]), [0.1, 0.2, 0.3])
    gear = kf.Coupling(arm.hinge_names, [1.0, 2.0])
    with pytest.raises(kf.errors.SingularError, match="is singular, hinge 'tool' moves no mass"):
        kf.modes(kf.System([*arm.bodies, tool], couplings=[gear]), [0.1, 0.2])
    second = kf.Body("second", np.zeros((6, 6)), kf.Hinge.revolute([0, 1, 0]), arm.body_names[-1])
    with pytest.raises(kf.errors.SingularError, match="the coupling of hinges 'tool', 'second' moves no mass"):
        kf.modes(kf.System([*arm.bodies, tool, second], couplings=[kf.Coupling(["tool", "second"], [1.0, 2.0])]))


def _rod(length, mass, geared):
    """A rod that bends, with a hinged tip, in units of ``length`` and ``mass``."""
    pin = kf.Hinge.revolute([0, 1, 0])
    flexural = 60.0 * mass * length**3
    rod = kf.beam("rod", 1.5 * length, 0.8 * mass / length, bending=(0.0, flexural), modes=2, hinge=pin)
    inertia = spatial_inertia(0.5 * mass, [0.1 * length, 0, 0], 1e-3 * mass * length**2 * np.eye(3))
    tip = kf.Body("tip", inertia, pin, "rod", position=[1.5 * length, 0, 0])
    slide = kf.Body("slide", mass * np.eye(6), kf.Hinge.prismatic([0, 0, 1]), stiffness=40.0 * mass)
    gears = [kf.Coupling(["rod", "tip"], [1.0, -2.0])] if geared else []
    return kf.FlexibleSystem([slide, rod, tip], gravity=[0, 0, -9.81 * length], couplings=gears)


@pytest.mark.parametrize("geared", [False, True])
@pytest.mark.parametrize(("length", "mass"), [(1e-6, 1e-9), (1e-3, 1e-6), (1.0, 1e-6), (1e6, 1e6)])
def test_frequencies_know_no_units(length, mass, geared):
    """Light and small robots that bend had frequencies off by 0.4 %; the differences that are taken leave 1e-9."""
    q = np.array([0.0, 0.3, 0.0, 0.0] + ([] if geared else [0.2]))
    found = kf.modes(_rod(length, mass, geared), q).frequencies
    np.testing.assert_allclose(found, kf.modes(_rod(1.0, 1.0, geared), q).frequencies, rtol=1e-8)
