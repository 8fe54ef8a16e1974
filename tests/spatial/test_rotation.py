import mpmath as mp
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation
from spatial_cases import DIGITS, as_float, assert_close, exact, fast, rotation_mp, seeds

from kfdyn.errors import ModelError
from kfdyn.spatial import (
    matrix_to_rotation_vector,
    rotation_from_axis_angle,
    rotation_from_rpy,
    rotation_vector_to_matrix,
    rpy_rate_map,
)


@fast
@given(seeds)
def test_vectors_axes_and_rpy_are_scipys_and_pinocchios(seed):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(6, 3))
    assert_close(rotation_vector_to_matrix(w), Rotation.from_rotvec(w).as_matrix(), 2e-15)
    r = Rotation.random(6, random_state=rng)
    assert_close(matrix_to_rotation_vector(r.as_matrix()), r.as_rotvec(), 4e-15)
    axis, angle = rng.normal(size=3), rng.normal(size=6) * 5
    unit = axis / np.linalg.norm(axis)
    expected = Rotation.from_rotvec(angle[:, None] * unit).as_matrix()
    # angles up to 20 rad, rounded before their sine is taken: 20 eps
    assert_close(rotation_from_axis_angle(axis, angle), expected, 1e-14)
    for rpy in w:
        assert_close(rotation_from_rpy(rpy), pin.rpy.rpyToMatrix(rpy), 2e-15)
        assert_close(rotation_from_rpy(rpy), Rotation.from_euler("xyz", rpy).as_matrix(), 2e-15)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-9, 1e-5, 0.3, 3.14159, 7.0])
def test_exponential_agrees_with_its_series_in_sixty_digits(size):
    w = np.array([2.0, -1.0, 2.0]) / 3 * size
    with mp.workdps(DIGITS):
        expected = as_float(rotation_mp(exact(w)))
    R = rotation_vector_to_matrix(w)
    assert_close(R, expected, 1e-15)
    off = ~np.eye(3, dtype=bool)  # small rotations live off the diagonal: all digits there too
    np.testing.assert_allclose(R[off], expected[off], rtol=1e-14, atol=0)


@fast
@given(seeds)
def test_rpy_rates_give_the_angular_velocity(seed):
    """SRB:quasi. ω = B d(rpy)/dt, against Pinocchio's map; it is singular at gimbal lock only."""
    rpy = np.random.default_rng(seed).normal(size=(5, 3))
    B = rpy_rate_map(rpy)
    for angles, b in zip(rpy, B):
        assert_close(b, pin.rpy.computeRpyJacobian(angles, pin.LOCAL_WORLD_ALIGNED), 1e-15)
    assert_close(np.linalg.det(B), np.cos(rpy[:, 1]), 1e-15)


def test_bad_input_is_named():
    with pytest.raises(ModelError, match=r"w\[1\] is longer than 1e154"):
        rotation_vector_to_matrix([[0, 0, 1], [0, 0, 1e200]])
    with pytest.raises(ModelError, match="axis is zero"):
        rotation_from_axis_angle([0, 0, 0], 1.0)
    assert_close(rotation_from_axis_angle([0, 0, 1e-300], np.pi / 2) @ [1, 0, 0], [0, 1, 0], 1e-15)
    assert rotation_from_rpy(np.zeros((2, 0, 3))).shape == (2, 0, 3, 3)
