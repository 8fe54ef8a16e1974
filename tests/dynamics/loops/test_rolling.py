"""Rolling without slipping: a ball on a slope, a coin's wobble, a car that steers, against closed forms."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.spatial import spatial_inertia

METHODS = ("cut", "embedding", "proximal")
NOTHING = np.zeros((6, 6))
SLIDES = [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]


def ball(mass=1.5, radius=0.2):
    """A ball on a carrier that slides and does not turn, and so knows where the ground is."""
    J = 0.4 * mass * radius**2 * np.eye(3)
    bodies = [
        kf.Body("carrier", NOTHING, kf.Hinge.succession(SLIDES)),
        kf.Body("ball", spatial_inertia(mass, [0, 0, 0], J), kf.Hinge.ball(), "carrier"),
    ]
    tree = kf.System(bodies, frames={"contact": kf.Frame("carrier", position=[0, 0, -radius])})
    return tree.with_loops([kf.Loop(None, "contact", rows="point", rolling="ball")])


def coin(mass=2.0, radius=0.3):
    """A disc that spins about y of a carrier which slides, turns about z and leans about x."""
    screws = [*SLIDES, [0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    A, C = 0.25 * mass * radius**2, 0.5 * mass * radius**2
    bodies = [
        kf.Body("carrier", NOTHING, kf.Hinge.succession(screws)),
        kf.Body("disc", spatial_inertia(mass, [0, 0, 0], np.diag([A, C, A])), kf.Hinge.revolute([0, 1, 0]), "carrier"),
    ]
    tree = kf.System(bodies, frames={"contact": kf.Frame("carrier", position=[0, 0, -radius])})
    return tree.with_loops([kf.Loop(None, "contact", rows="point", rolling="disc")])


@pytest.mark.parametrize("method", METHODS)
def test_a_ball_rolls_down_at_five_sevenths(method):
    s, slope = ball(), 0.3
    g = 9.81 * np.array([np.sin(slope), 0, -np.cos(slope)])
    a = kf.forward_dynamics(s, s.neutral(), None, np.zeros(6), gravity=g, method=method)
    assert np.abs(a[:3] - [5 / 7 * g[0], 0, 0]).max() < 1e-11
    assert np.abs(a[3:] - [0, 5 / 7 * g[0] / 0.2, 0]).max() < 1e-10
    force = kf.constraint_forces(s, s.neutral(), None, np.zeros(6), gravity=g)[0]
    assert np.abs(force - 1.5 * np.array([-2 / 7 * g[0], 0, -g[2]])).max() < 1e-11


def leaning(s, rng, radius=0.3):
    """A state of the coin on the ground, rolling."""
    q = np.r_[rng.normal(size=2), 0.0, rng.uniform(-3, 3), rng.uniform(-1, 1), rng.uniform(-3, 3)]
    q[2] = radius * np.cos(q[4])
    return q, kf.impact(s, q, rng.normal(size=6)).v


@pytest.mark.parametrize("seed", range(4))
def test_newton_and_euler_of_a_coin(seed):
    """Any lean and any motion: the point that touches stays at rest, and one force at it explains the motion."""
    s, rng = coin(), np.random.default_rng(seed)
    q, v = leaning(s, rng)
    tree, h, g = s.without_loops, 1e-5, np.array([0, 0, -9.81])
    a = kf.forward_dynamics(s, q, v, np.zeros(6))
    for method in METHODS[1:]:
        assert np.abs(kf.forward_dynamics(s, q, v, np.zeros(6), method=method) - a).max() < 1e-9 * np.abs(a).max()

    def slip(e):
        qe, ve = kf.integrate(tree, q, e * v + 0.5 * e**2 * a), v + e * a
        V = kf.frame_velocity(tree, qe, ve, "disc")
        arm = kf.frame_pose(tree, qe, "contact").position - kf.frame_pose(tree, qe, "disc").position
        return V[3:] + np.cross(V[:3], arm)

    assert np.abs(slip(0.0)).max() < 1e-12
    assert np.abs(slip(h) - slip(-h)).max() / (2 * h) < 1e-7 * np.abs(a).max()
    push = 2.0 * (kf.frame_acceleration(tree, q, v, a, "disc")[3:] - g)
    assert np.abs(push - kf.constraint_forces(s, q, v, np.zeros(6))[0]).max() < 1e-9 * np.abs(push).max()

    def spin(e):
        qe, ve = kf.integrate(tree, q, e * v + 0.5 * e**2 * a), v + e * a
        R = kf.frame_pose(tree, qe, "disc").rotation
        J = 2.0 * 0.09 * np.diag([0.25, 0.5, 0.25])
        return R @ J @ R.T @ kf.frame_velocity(tree, qe, ve, "disc")[:3]

    arm = kf.frame_pose(tree, q, "contact").position - kf.frame_pose(tree, q, "disc").position
    assert np.abs((spin(h) - spin(-h)) / (2 * h) - np.cross(arm, push)).max() < 1e-7 * np.abs(push).max()


@pytest.mark.parametrize("spin", [8.0, 12.0])
def test_wobble_of_an_upright_coin(spin):
    """λ² = [C(C + mR²)ω² − A m g R]/[A(A + mR²)]: 12/5 ω² − 4/5 g/R for a uniform disc."""
    s, radius, tilt = coin(), 0.3, 1e-5
    q = np.array([0, 0, radius * np.cos(tilt), 0, tilt, 0])
    v = kf.impact(s, q, [radius * spin, 0, 0, 0, 0, spin]).v
    motion = kf.simulate(s, q, v, np.linspace(0, 1, 501))
    rate = np.sqrt(2.4 * spin**2 - 0.8 * 9.81 / radius)
    middle = motion.q[:, 4].mean()  # a little lean stays, with a wide circle
    wave = np.c_[np.cos(rate * motion.t), np.sin(rate * motion.t), np.ones(501)]
    left = motion.q[:, 4] - wave @ np.linalg.lstsq(wave, motion.q[:, 4], rcond=None)[0]
    assert np.abs(left).max() < 1e-5 * tilt + 1e-3 * abs(middle)
    assert np.abs(left).max() < 1e-3 * tilt
    assert motion.worst_energy_drift < 1e-8


def test_a_coin_that_falls_keeps_its_energy():
    s, rng = coin(), np.random.default_rng(1)
    q, v = leaning(s, rng)
    v = kf.impact(s, q, [0.5, 0.2, 0, 0.4, 0.1, 9.0]).v
    motion = kf.simulate(s, q, v, np.linspace(0, 0.5, 1001))
    assert motion.worst_energy_drift < 1e-7
    assert np.ptp(motion.q[:, 4]) > 0.05


def test_a_car_steers_on_a_circle():
    """Two wheels that roll, front one steered: the rear axle's centre runs on a circle of radius L/tan δ."""
    L, r, steer = 1.2, 0.25, 0.35
    wheel = spatial_inertia(1.0, [0, 0, 0], np.diag([0.02, 0.03, 0.02]))
    chassis = spatial_inertia(20.0, [0.5, 0, 0], np.diag([1.0, 2.0, 2.5]))
    c, n = np.cos(steer), np.sin(steer)
    bodies = [
        kf.Body("chassis", chassis, kf.Hinge.planar()),
        kf.Body("rear", wheel, kf.Hinge.revolute([0, 1, 0]), "chassis"),
        kf.Body(
            "knuckle", 0.1 * np.eye(6), None, "chassis", position=[L, 0, 0], rotation=[[c, -n, 0], [n, c, 0], [0, 0, 1]]
        ),
        kf.Body("front", wheel, kf.Hinge.revolute([0, 1, 0]), "knuckle"),
    ]
    frames = {
        "under_rear": kf.Frame("chassis", position=[0, 0, -r]),
        "under_front": kf.Frame("knuckle", position=[0, 0, -r]),
    }
    car = kf.System(bodies, frames=frames).with_loops(
        [kf.Loop(f"under_{name}", None, rows=(3, 4), rolling=name) for name in ("rear", "front")]
    )
    turn = 0.9
    R = L / np.tan(steer)
    v = np.array([turn * R, 0, turn, turn * R / r, turn * np.hypot(L, R) / r])
    assert np.abs(kf.multibody.loops.closure.constraint_jacobian(car, np.zeros(5)) @ v).max() < 1e-12
    motion = kf.simulate(car, np.zeros(5), v, np.linspace(0, 2, 201))
    assert np.allclose(motion.q[:, 2], turn * motion.t, atol=1e-9)
    assert np.allclose(motion.q[:, :2], R * np.c_[np.sin(turn * motion.t), 1 - np.cos(turn * motion.t)], atol=1e-7)
    drive = kf.minimal_coordinates(car, np.zeros(5))
    assert len(drive.names) == 1  # four rows leave one freedom of five


def test_what_rolls_has_no_anchor():
    with pytest.raises(ModelError, match="give no anchor"):
        kf.Loop(None, "contact", rows="point", rolling="ball", anchor=[0, 0, 0])
    tree = ball().without_loops
    with pytest.raises(ModelError):
        tree.with_loops([kf.Loop(None, "contact", rows="point", rolling="bal")])
