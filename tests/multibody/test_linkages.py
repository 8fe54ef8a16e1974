"""Linkages and parallel robots against plane and space geometry: positions, rates, whole motions."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.multibody.loops.closure import gaps
from kfdyn.spatial import rotation_from_rpy


def closed(s, q, tolerance=1e-12):
    return max(np.abs(g).max() for g in gaps(s, q)) < tolerance


@pytest.mark.parametrize("crossed", [False, True])
def test_four_bar_follows_freudenstein(crossed):
    s = kf.models.four_bar()
    for angle in np.linspace(0, 2 * np.pi, 7):
        q = kf.models.four_bar_configuration(angle, crossed=crossed)
        assert closed(s, q)
        h = 1e-5
        rate = (
            kf.models.four_bar_configuration(angle + h, crossed=crossed)
            - kf.models.four_bar_configuration(angle - h, crossed=crossed)
        ) / (2 * h)
        X = kf.minimal_coordinates(s, q).X[:, 0]
        assert np.allclose(X / X[0], rate, atol=1e-7)


def test_slider_crank_moves_as_its_formula():
    """x = r cos θ + √(l² − r² sin² θ), also for accelerations: the crank is prescribed."""
    s, r, l = kf.models.slider_crank(), 1.0, 2.5
    rng = np.random.default_rng(0)
    for theta, rate, turn in rng.normal(size=(4, 3)):

        def x(t, theta=theta, rate=rate, turn=turn):
            angle = theta + rate * t + 0.5 * turn * t**2
            return r * np.cos(angle) + np.sqrt(l**2 - r**2 * np.sin(angle) ** 2)

        along = -np.arcsin(r * np.sin(theta) / l)
        q = np.array([theta, along - theta, along, x(0.0)])
        assert closed(s, q)
        X = kf.minimal_coordinates(s, q).X[:, 0]
        v = X / X[0] * rate
        _, a = kf.hybrid_dynamics(s, q, v, np.zeros(4), [turn, 0, 0, 0], [True, False, False, False])
        h = 1e-4
        assert np.isclose(v[3], (x(h) - x(-h)) / (2 * h), atol=1e-6)
        assert np.isclose(a[3], (x(h) - 2 * x(0) + x(-h)) / h**2, atol=1e-5)


def test_peaucellier_draws_a_straight_line():
    s, line = kf.models.peaucellier(), (3.0**2 - 1.2**2) / 2.2
    for angle in (-0.9, 0.0, 0.6):
        q = kf.models.peaucellier_configuration(angle)
        assert closed(s, q)
        assert np.isclose(kf.frame_pose(s, q, "pen").position[0], line, rtol=1e-14)
    q = kf.models.peaucellier_configuration(0.5)
    motion = kf.simulate(s, q, np.zeros(7), np.linspace(0, 0.4, 41))
    pen = kf.frame_pose(s, motion.q, "pen").position
    assert np.abs(pen[:, 0] - line).max() < 1e-11
    assert np.ptp(pen[:, 2]) > 0.1
    assert motion.worst_energy_drift < 1e-6


def test_stewart_platform():
    s = kf.models.stewart_platform()
    rng = np.random.default_rng(1)
    for _ in range(3):
        R, p = rotation_from_rpy(0.2 * rng.normal(size=3)), np.array([0, 0, 1.2]) + 0.1 * rng.normal(size=3)
        q = kf.models.stewart_configuration(p, R)
        assert closed(s, q)
        one = kf.minimal_coordinates(s, q)
        assert one.X.shape == (24, 6)
        # forward kinematics: the legs' lengths alone, held, give the pose back from a guess nearby
        held = [
            kf.Coupling([f"piston_{i}"], np.zeros((1, 0)), q[3 * i + 2]) for i in range(6)
        ]  # fmt: skip
        rigid = kf.System(s.bodies, frames=dict(s.frames), couplings=held, loops=s.loops)
        guess = kf.integrate(s.open_tree, q, 0.03 * rng.normal(size=24))
        found = kf.assemble(rigid, np.delete(guess, range(2, 18, 3)))
        assert np.abs(rigid.expand(found) - q).max() < 1e-9
        # leg forces by virtual work: the rates of the legs' lengths are J of the platform's twist
        v = one.X @ rng.normal(size=6)
        twist = kf.frame_velocity(s, q, v, "platform")
        for i in range(6):
            corner, foot = kf.frame_pose(s, q, f"corner_{i}").position, kf.frame_pose(s, q, f"cylinder_{i}").position
            u = (corner - foot) / np.linalg.norm(corner - foot)
            assert np.isclose(v[3 * i + 2], u @ (twist[3:] + np.cross(twist[:3], corner - p)), atol=1e-12)
        a = [kf.forward_dynamics(s, q, v, np.ones(24), method=m) for m in ("cut", "embedding", "proximal")]
        assert np.abs(a[1] - a[0]).max() < 1e-9 * np.abs(a[0]).max()
        assert np.abs(a[2] - a[0]).max() < 1e-9 * np.abs(a[0]).max()


def test_delta_robot():
    s = kf.models.delta_robot()
    rng = np.random.default_rng(2)
    for _ in range(3):
        p = np.array([0, 0, -0.7]) + 0.08 * rng.normal(size=3)
        q = kf.models.delta_configuration(p)
        assert closed(s, q)
        # forward kinematics: the platform is where three spheres about the elbows, moved in by the wrists, meet
        elbows = [kf.frame_pose(s, q, f"forearm_{i}").position for i in range(3)]
        wrists = [kf.frame_pose(s, q, f"wrist_{i}").position - p for i in range(3)]
        for elbow, wrist in zip(elbows, wrists):
            assert np.isclose(np.linalg.norm(p + wrist - elbow), 0.8, rtol=1e-13)
        one = kf.minimal_coordinates(s, q)
        assert one.X.shape == (12, 3)
        v, tau = one.X @ rng.normal(size=3), rng.normal(size=12)
        a = [kf.forward_dynamics(s, q, v, tau, method=m) for m in ("cut", "embedding", "proximal")]
        assert np.abs(a[1] - a[0]).max() < 1e-9 * np.abs(a[0]).max()
        assert np.abs(a[2] - a[0]).max() < 1e-9 * np.abs(a[0]).max()
        # statics: hold it with the three motors alone
        still = kf.inverse_dynamics(s, q, None, np.zeros(12), actuated=np.isin(np.arange(12), [0, 3, 6]))
        assert np.abs(kf.forward_dynamics(s, q, None, still)).max() < 1e-10
        # virtual work: the motors' torques balance the weights
        power = one.X.T @ still
        h, base = 1e-6, s.without_loops
        slope = [
            (
                kf.potential_energy(s, kf.assemble(s, kf.integrate(base, q, h * x)))
                - kf.potential_energy(s, kf.assemble(s, kf.integrate(base, q, -h * x)))
            )
            / (2 * h)
            for x in one.X.T
        ]
        assert np.allclose(power, slope, atol=1e-6)
