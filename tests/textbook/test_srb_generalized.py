"""Changing generalised velocities: power, and Lagrange's equations as the oracle for quasi-velocities."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from spatial_cases import DIGITS, as_float, assert_close, exact, fast, few, random_cloud, seeds

from kfdyn.errors import ShapeError
from kfdyn.spatial import momentum, rotation_from_rpy, rpy_rate_map, spatial_inertia
from kfdyn.textbook.srb import change_velocities, generalized_force, gyroscopic_about_body


@fast
@given(seeds)
def test_power_is_kept_and_changes_compose(seed):
    """SRB:power. T*β = f*V for V = Aβ; changing twice is changing by the product."""
    rng = np.random.default_rng(seed)
    A, C = rng.normal(size=(6, 6)), rng.normal(size=(6, 3))
    f, beta = rng.normal(size=6), rng.normal(size=3)
    V = A @ C @ beta
    T = generalized_force(C, generalized_force(A, f))
    assert_close(T @ beta, f @ V, 1e-12)
    assert_close(T, generalized_force(A @ C, f), 1e-13)
    M6 = spatial_inertia(*random_cloud(rng).parameters)
    b = gyroscopic_about_body(M6, V)
    twice, once = change_velocities(C, *change_velocities(A, M6, b)), change_velocities(A @ C, M6, b)
    assert_close(twice[0], once[0], 1e-12)
    assert_close(twice[1], once[1], 1e-12)
    assert_close(0.5 * beta @ twice[0] @ beta, 0.5 * V @ momentum(M6, V), 1e-12)


@few
@given(seeds)
def test_angular_velocity_as_quasi_velocity_agrees_with_lagrange(seed):
    """SRB:quasi, SRB:power. J dω/dt + ω~Jω = N, turned to angle rates, is Lagrange's equation in rpy.

    d/dt ∂K/∂θ̇ − ∂K/∂θ from the kinetic energy K(θ, θ̇) alone, differentiated to 60 digits.
    """
    rng = np.random.default_rng(seed)
    J_body = random_cloud(rng).parameters[2]
    theta, rate, accel = rng.normal(size=(3, 3)) * [[0.7], [1.0], [1.0]]
    h = mp.mpf(10) ** -12

    with mp.workdps(DIGITS):
        x, y, z = exact(np.eye(3))
        J = exact(J_body)

        def about(axis, angle):
            c, s = mp.cos(angle), mp.sin(angle)
            i, j = (axis + 1) % 3, (axis + 2) % 3
            R = exact(np.eye(3))
            R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
            return R

        def rotation(q):
            return about(2, q[2]).dot(about(1, q[1])).dot(about(0, q[0]))

        def energy(q, dq):
            R_dot = (rotation(q + h * dq) - rotation(q - h * dq)) / (2 * h)
            S = rotation(q).T.dot(R_dot)  # body-frame ω~
            w = np.array([S[2, 1], S[0, 2], S[1, 0]], dtype=object)
            return w.dot(J.dot(w)) / 2

        def gradient(f, at):
            step = exact(np.eye(3)) * h
            return np.array([(f(at + e) - f(at - e)) / (2 * h) for e in step], dtype=object)

        q, dq, ddq = exact(theta), exact(rate), exact(accel)

        def conjugate(t):
            return gradient(lambda u: energy(q + dq * t + ddq * t * t / 2, u), dq + ddq * t)

        k = mp.mpf(10) ** -9  # wider than h: the inner differences already carry an error of h²/k
        lagrange = (conjugate(k) - conjugate(-k)) / (2 * k) - gradient(lambda u: energy(u, dq), q)
        expected = as_float(lagrange)

        def map_mp(t):
            at = q + dq * t
            turned = about(2, at[2])
            return np.stack([turned.dot(about(1, at[1])).dot(x), turned.dot(y), z], axis=-1)

        drift = as_float((map_mp(h) - map_mp(-h)).dot(dq) / (2 * h))

    R, B = rotation_from_rpy(theta), rpy_rate_map(theta)
    J_now, omega = R @ J_body @ R.T, B @ rate
    inertia, bias = change_velocities(B, J_now, np.cross(omega, J_now @ omega), drift)
    assert_close(inertia @ accel + bias, expected, 1e-12)


def test_no_coordinates_have_angular_velocity_as_their_rate():
    """SRB:quasi. Were ω a rate, the rows of B would be gradients: ∂B_ij/∂θ_k = ∂B_ik/∂θ_j."""
    at, h = np.array([0.2, 0.4, -0.3]), 1e-5
    slopes = np.stack([(rpy_rate_map(at + h * e) - rpy_rate_map(at - h * e)) / (2 * h) for e in np.eye(3)], axis=-1)
    curl = np.abs(slopes - np.swapaxes(slopes, -1, -2)).max(axis=(-2, -1))
    assert (curl[:2] > 0.1).all()


def test_bad_input_is_named():
    with pytest.raises(ShapeError, match=r"A and f must have shapes \(n, m\) and \(n,\), got \(6, 6\) and \(3,\)"):
        generalized_force(np.eye(6), np.zeros(3))
