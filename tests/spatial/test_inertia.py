import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from spatial_cases import SWAP, assert_close, fast, random_cloud, random_rotation, seeds

from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import (
    combine_inertia,
    inertia_parameters,
    kinetic_energy,
    momentum,
    rigid_transform,
    rotate_inertia,
    shift_inertia,
    spatial_inertia,
    transform_inertia,
    transform_velocity,
)


@fast
@given(seeds)
def test_momentum_and_energy_are_those_of_the_points(seed):
    """R86:3.1, R86:3.2. Σ r × m(v + ω × r), Σ m(v + ω × r) and Σ ½m|v + ω × r|² of point masses."""
    rng = np.random.default_rng(seed)
    cloud, V = random_cloud(rng), rng.normal(size=6)
    M6 = spatial_inertia(*cloud.parameters)
    speed = V[3:] + np.cross(V[:3], cloud.s)
    linear = cloud.m @ speed
    angular = (cloud.m[:, None] * np.cross(cloud.s, speed)).sum(0)
    assert_close(momentum(M6, V), np.concatenate([angular, linear]), 1e-13)
    assert_close(kinetic_energy(M6, V), 0.5 * cloud.m @ (speed**2).sum(1), 1e-13)


@fast
@given(seeds)
def test_matrix_is_pinocchios(seed):
    """R86:3.1 against pin.Inertia, and the way back."""
    mass, com, inertia_com = random_cloud(np.random.default_rng(seed)).parameters
    M6 = spatial_inertia(mass, com, inertia_com)
    assert_close(M6, SWAP @ pin.Inertia(mass, com, inertia_com).matrix() @ SWAP, 1e-15)
    back = inertia_parameters(M6)
    assert_close(back.mass, mass, 1e-15)
    assert_close(back.com, com, 1e-15)
    assert_close(back.inertia_com, inertia_com, 1e-14)


@fast
@given(seeds)
def test_parallel_axes(seed):
    """SRB:parallel-axis. Shifting the matrix is moving the points: J_x = J_c + m(|d|² 1 − d d*)."""
    rng = np.random.default_rng(seed)
    cloud, l = random_cloud(rng), rng.normal(size=3)
    mass, com, J_c = cloud.parameters
    moved = shift_inertia(spatial_inertia(mass, com, J_c), l)
    d = com + l
    assert_close(moved[:3, :3], J_c + mass * (d @ d * np.eye(3) - np.outer(d, d)), 1e-13)
    assert_close(moved, spatial_inertia(*cloud._replace(s=cloud.s + l).parameters), 1e-13)
    R = random_rotation(rng)
    turned = spatial_inertia(*cloud._replace(s=cloud.s @ R.T).parameters)
    assert_close(rotate_inertia(spatial_inertia(mass, com, J_c), R), turned, 1e-13)


@fast
@given(seeds)
def test_kinetic_energy_is_the_same_about_every_point(seed):
    """SRB:ke-invariant, R86:3.2. V(x)*M(x)V(x) = V(y)*M(y)V(y), points and axes both different."""
    rng = np.random.default_rng(seed)
    M6 = spatial_inertia(*random_cloud(rng).parameters)
    phi = rigid_transform(rng.normal(size=(8, 3)), random_rotation(rng, 8))
    V = rng.normal(size=6)  # at x; M6 is about y
    energies = kinetic_energy(M6, transform_velocity(phi, V))
    there = transform_velocity(phi, V)
    assert_close(energies, 0.5 * np.einsum("bi,ij,bj->b", there, M6, there), 1e-13)
    assert_close(kinetic_energy(transform_inertia(phi, M6), V), energies, 1e-13)


@fast
@given(seeds)
def test_joined_bodies_add(seed):
    rng = np.random.default_rng(seed)
    one, other = random_cloud(rng), random_cloud(rng, 4)
    both = type(one)(np.concatenate([one.m, other.m]), np.concatenate([one.s, other.s]))
    stacked = np.stack([spatial_inertia(*one.parameters), spatial_inertia(*other.parameters)])
    assert_close(combine_inertia(stacked), spatial_inertia(*both.parameters), 1e-13)
    assert_close(combine_inertia(stacked[None], axis=1)[0], combine_inertia(stacked), 1e-16)


def test_massless_bodies_and_leading_axes():
    rotor = spatial_inertia(0.0, [1.0, 2.0, 3.0], np.diag([0.0, 0.0, 1e-3]))
    mass, com, inertia_com = inertia_parameters(rotor)
    assert mass == 0
    assert np.array_equal(com, np.zeros(3))
    assert np.array_equal(inertia_com, np.diag([0.0, 0.0, 1e-3]))
    many = spatial_inertia(np.ones((4, 1)), np.zeros((5, 3)), np.eye(3))
    assert many.shape == (4, 5, 6, 6)
    assert inertia_parameters(many).com.shape == (4, 5, 3)
    assert kinetic_energy(many, np.ones(6)).shape == (4, 5)


def test_bad_input_is_named():
    with pytest.raises(ModelError, match="inertia_com is not symmetric"):
        spatial_inertia(1.0, np.zeros(3), np.triu(np.ones((3, 3))))
    with pytest.raises(ModelError, match=r"mass times the square of com\[1\] is beyond 1e308"):
        spatial_inertia([1.0, 1e200], [1e100, 0, 0], np.eye(3))
    with pytest.raises(ModelError, match="mass is not finite"):
        spatial_inertia(np.inf, np.zeros(3), np.eye(3))
    with pytest.raises(ShapeError, match=r"mass \(2,\), com \(3,\)"):
        spatial_inertia(np.ones(2), np.zeros((3, 3)), np.eye(3))
    articulated = np.diag([1.0, 1.0, 1.0, 1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match=r"M6\[1\] is not a spatial inertia"):
        inertia_parameters(np.stack([np.eye(6), articulated]))
    with pytest.raises(ModelError, match="axis 1 is not one of the 1 leading axes"):
        combine_inertia(np.zeros((2, 6, 6)), axis=1)
    with pytest.raises(ModelError, match="axis 0 is not one of the 0 leading axes"):
        combine_inertia(np.zeros((6, 6)))
