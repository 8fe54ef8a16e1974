import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from spatial_cases import assert_close, fast, random_rotation, seeds

from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import (
    matrix_to_quaternion,
    matrix_to_rotation_vector,
    normalize_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_rate,
    quaternion_to_matrix,
)


def same_rotation(p, q, tolerance):
    p, q = np.asarray(p), np.asarray(q)
    sign = np.sign((p * q).sum(-1, keepdims=True))
    assert_close(sign * p, q, tolerance)


@fast
@given(seeds)
def test_matrices_and_products_are_scipys(seed):
    rng = np.random.default_rng(seed)
    p, q = (Rotation.random(9, random_state=rng) for _ in range(2))
    assert_close(quaternion_to_matrix(p.as_quat()), p.as_matrix(), 2e-15)
    same_rotation(matrix_to_quaternion(p.as_matrix()), p.as_quat(), 2e-15)
    assert (matrix_to_quaternion(p.as_matrix())[:, 3] >= 0).all()
    same_rotation(quaternion_multiply(p.as_quat(), q.as_quat()), (p * q).as_quat(), 2e-15)
    assert_close(quaternion_log(p.as_quat()), p.as_rotvec(), 2e-15)
    product = quaternion_to_matrix(quaternion_multiply(p.as_quat(), q.as_quat()))
    assert_close(product, p.as_matrix() @ q.as_matrix(), 5e-15)  # rounding of two products, a dozen operations each


@fast
@given(seeds, st.sampled_from([0.0, 1e-300, 1e-160, 1e-20, 1e-9, 1e-4, 1.0, 3.0]), st.booleans())
def test_exp_log_and_matrix_keep_all_digits_near_zero_and_half_a_turn(seed, small, from_pi):
    axis = np.random.default_rng(seed).normal(size=3)
    axis /= np.linalg.norm(axis)
    w = axis * (np.pi - small if from_pi else small)
    back = quaternion_log(quaternion_exp(w))
    # near 0 the relative error counts; near π the vector may come back as its twin on the other side
    assert np.linalg.norm(back - w) <= 4e-16 * np.linalg.norm(w) or (
        from_pi and small <= 1e-15 and np.linalg.norm(back + w) <= 1e-15 * np.pi
    )
    R = quaternion_to_matrix(quaternion_exp(w))
    through = matrix_to_rotation_vector(R)
    assert min(np.linalg.norm(through - w), np.linalg.norm(through + w) + (not from_pi)) <= 2e-15 * max(
        np.linalg.norm(w), 1.0 if from_pi else 0.0
    )


@pytest.mark.parametrize("angle", [1e-8, 0.1, 1.0, 3.0, 3.14159265, 6.2, 100.0])
def test_exp_agrees_with_fifty_digits(angle):
    axis = np.array([1.0, -2.0, 2.0]) / 3
    w = axis * angle
    with mp.workdps(50):
        exact = [mp.mpf(x) for x in w]
        theta = mp.sqrt(sum(x * x for x in exact))
        expected = [*(float(mp.sin(theta / 2) * x / theta) for x in exact), float(mp.cos(theta / 2))]
    # for a large angle the rounding of |w| itself, half an ulp of 100, is what remains
    assert_close(quaternion_exp(w), expected, 2e-16 * max(1.0, angle))


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), [1, 1, 0], [0, -1, 1], [1, 1, 1]])
def test_half_turns_survive_the_matrix(axis):
    axis = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    R = 2 * np.outer(axis, axis) - np.eye(3)
    q = matrix_to_quaternion(R)
    assert_close(np.outer(q[:3], q[:3]), np.outer(axis, axis), 1e-15)
    assert q[3] >= 0
    assert abs(np.linalg.norm(matrix_to_rotation_vector(R)) - np.pi) < 1e-15


@fast
@given(seeds)
def test_rate_is_the_derivative_of_the_exponential(seed):
    """q(t) = q exp(ωt) turns at constant body-frame ω; compared with the derivative of its cos and sin."""
    rng = np.random.default_rng(seed)
    q, omega = Rotation.random(random_state=rng).as_quat(), rng.normal(size=3)
    rate = quaternion_rate(q, omega)
    assert abs(rate @ q) < 1e-15
    # R' = R ω~, with R' from the chain rule on the quadratic form R(q), polarised: exact, no step size
    plus, minus = (quaternion_to_matrix(normalize_quaternion(q + s * rate)) for s in (1, -1))
    length = 1 + rate @ rate
    derivative = (plus - minus) * length / 2
    turn = np.array([[0, -omega[2], omega[1]], [omega[2], 0, -omega[0]], [-omega[1], omega[0], 0]])
    assert_close(derivative, Rotation.from_quat(q).as_matrix() @ turn, 1e-14)


def test_normalize_scales_without_over_or_underflow():
    q = np.array([1.0, -2.0, 3.0, 4.0])
    expected = q / np.sqrt(30)
    for scale in (1.0, 1e-300, 1e300):
        assert_close(normalize_quaternion(scale * q), expected, 1e-15)
    with pytest.raises(ModelError, match="identity"):
        normalize_quaternion(np.zeros((2, 4)))


def test_bad_input_is_named():
    with pytest.raises(ModelError, match=r"length 1\.1, not 1; pass it through normalize_quaternion"):
        quaternion_to_matrix([[0, 0, 0, 1], [0, 0, 0, 1.1]])
    with pytest.raises(ModelError, match="length inf, not 1"):
        quaternion_log([0, 0, 1e200, 1])
    with pytest.raises(ModelError, match="w is longer than 1e154"):
        quaternion_exp([0, 0, 1e200])
    with pytest.raises(ModelError, match="not orthonormal"):
        matrix_to_quaternion(np.eye(3) * 1.001)
    with pytest.raises(ModelError, match="reflection"):
        matrix_to_quaternion(np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ShapeError, match=r"leading axes do not broadcast: p \(2,\), q \(3,\)"):
        quaternion_multiply(np.tile([0, 0, 0, 1], (2, 1)), np.tile([0, 0, 0, 1], (3, 1)))


def test_leading_axes_broadcast():
    rng = np.random.default_rng(0)
    R = random_rotation(rng, 4, 1)
    assert matrix_to_quaternion(R).shape == (4, 1, 4)
    q = matrix_to_quaternion(R)
    assert quaternion_multiply(q, q[0]).shape == (4, 1, 4)
    assert quaternion_rate(q, rng.normal(size=(5, 3))).shape == (4, 5, 4)
    assert quaternion_exp(np.zeros((0, 3))).shape == (0, 4)
    assert matrix_to_quaternion(np.zeros((0, 3, 3))).shape == (0, 4)
