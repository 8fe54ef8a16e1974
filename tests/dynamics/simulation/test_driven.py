"""Hinges driven as a function of time, against equations of motion written by hand and inverse dynamics."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import kfdyn as kf
from kfdyn.errors import KfdynError, ModelError, ShapeError


def wave(amplitude, omega, shift=0.0):
    """A harmonic course."""
    return lambda t: (
        amplitude * np.cos(omega * t + shift),
        -amplitude * omega * np.sin(omega * t + shift),
        -amplitude * omega**2 * np.cos(omega * t + shift),
    )


def shaken_pendulum():
    """A mass on a rod of length 1 whose pivot slides up and down."""
    cart = kf.Body("cart", np.diag([1, 1, 1, 2.0, 2.0, 2.0]), kf.Hinge.prismatic([0, 0, 1]))
    bob = kf.spatial.spatial_inertia(1.0, [0, 0, -1.0], np.zeros((3, 3)))
    rod = kf.Body("rod", bob, kf.Hinge.revolute([0, 1, 0]), parent="cart", armature=[0.0])
    return kf.System([cart, rod])


def test_kapitzas_pendulum_stands_on_its_head():
    """θ̈ = −(g + z̈) sin θ, z = A cos ωt: shaken fast enough it swings about the upright, which falls over at rest."""
    system, A, omega = shaken_pendulum(), 0.1, 100.0
    t = np.linspace(0, 1.0, 1001)
    start = [0.0, np.pi - 0.1]
    ran = kf.simulate(system, start, [0, 0], t, courses={"cart": wave(A, omega)}, substeps=2)
    exact = solve_ivp(
        lambda s, x: [x[1], -(9.81 - A * omega**2 * np.cos(omega * s)) * np.sin(x[0])],
        (0, 1.0),
        [start[1], 0.0],
        t_eval=t,
        rtol=1e-11,
        atol=1e-12,
        method="DOP853",
    )
    np.testing.assert_allclose(ran.q[:, 1], exact.y[0], atol=1e-6)  # the order of rk4 at this step
    assert abs(ran.q[:, 1] - np.pi).max() < 0.4
    still = kf.simulate(system, start, [0, 0], t, courses={"cart": lambda s: (0.0, 0.0, 0.0)})
    assert abs(still.q[:, 1] - np.pi).max() > 1.0
    np.testing.assert_allclose(ran.q[:, 0], A * np.cos(omega * t), rtol=0, atol=1e-14)  # A ω times the rounding of t


def test_order_four():
    """Halving the step divides the error by sixteen."""
    system, t = shaken_pendulum(), np.linspace(0, 1.0, 41)

    def end(substeps):
        ran = kf.simulate(system, [0, 1.0], [0, 0.5], t, courses={"cart": wave(0.3, 5.0)}, substeps=substeps)
        return ran.q[-1, 1]

    exact = end(32)
    ratio = (end(1) - exact) / (end(2) - exact)
    assert 13 < ratio < 19


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_torques_are_those_of_inverse_dynamics(seed):
    """What the drives give, and zero where nothing drives; the energy's balance closes with their work."""
    rng = np.random.default_rng(seed)
    system = kf.models.random_tree(int(rng.integers(2, 7)), seed=seed)
    single = [n for n in system.hinge_names if system.q_slice(n).stop - system.q_slice(n).start == 1]
    if not single:
        return
    names = rng.choice(single, int(rng.integers(1, len(single) + 1)), replace=False)
    courses = {str(n): wave(*rng.uniform(0.1, 0.5, 2), rng.uniform(0, 6)) for n in names}
    q, v = system.random_configuration(rng), 0.1 * rng.normal(size=system.nv)
    t = np.linspace(0, 0.02, 11)
    ran = kf.simulate(system, q, v, t, courses=courses, gravity=[1.0, 2.0, 3.0], damping=0.1)
    driven = np.zeros(system.nv, dtype=bool)
    for name in courses:
        driven[system.v_slice(name)] = True
    known = np.zeros((len(t), system.nv))
    for name, course in courses.items():
        known[:, system.v_slice(name)] = [[course(s)[2]] for s in t]
    _, a = kf.hybrid_dynamics(system, ran.q, ran.v, -0.1 * ran.v, known, driven, gravity=[1.0, 2.0, 3.0])
    needed = kf.inverse_dynamics(system, ran.q, ran.v, a, gravity=[1.0, 2.0, 3.0]) + 0.1 * ran.v
    size = max(1.0, abs(needed).max())
    np.testing.assert_allclose(ran.tau, needed, atol=1e-9 * size)
    assert abs(ran.tau[:, ~driven]).max(initial=0.0) <= 1e-9 * size
    scale = abs(ran.kinetic).max() + abs(ran.potential - ran.potential[0]).max() + abs(ran.work).max() + 1e-9
    assert abs(ran.energy_drift).max() <= 1e-4 * scale  # what is left is the step's own error, O(h⁴)


def test_a_ball_hinge_is_driven_by_quaternions():
    """A body that turns steadily about z: position (x, y, z, w), rate and acceleration in the body's frame."""
    inertia = np.diag([1.0, 2.0, 3.0, 4.0, 4.0, 4.0])
    system = kf.System([kf.Body("top", inertia, kf.Hinge.ball())])
    rate = 0.7

    def turn(t):
        half = 0.5 * rate * t
        return np.array([0, 0, np.sin(half), np.cos(half)]), np.array([0, 0, rate]), np.zeros(3)

    ran = kf.simulate(system, system.neutral(), [0, 0, 0], np.linspace(0, 1, 11), courses={"top": turn})
    np.testing.assert_allclose(ran.tau, 0.0, atol=1e-12)
    np.testing.assert_allclose(ran.q[-1], turn(1.0)[0], atol=1e-15)


@pytest.mark.parametrize(
    ("courses", "error", "words"),
    [
        ({"nobody": wave(1, 1)}, KfdynError, "nobody"),
        ({"cart": 3.0}, ModelError, "must be a function of t"),
        ({"cart": lambda t: (t, 1.0)}, ModelError, r"\(position, rate, acceleration\)"),
        ({"cart": lambda t: (t, 2.0, 0.0)}, ModelError, "gives a rate of 2 near t = 0 s, where that of its position"),
        ({"cart": lambda t: (t, 1.0, 5.0)}, ModelError, "gives an acceleration of 5"),
        ({"cart": lambda t: (np.zeros(2), 0.0, 0.0)}, ShapeError, r"a position of shape \(2,\)"),
        ({"cart": lambda t: (np.nan, 0.0, 0.0)}, ModelError, "nan"),
    ],
)
def test_bad_courses_are_named(courses, error, words):
    with pytest.raises(error, match=words):
        kf.simulate(shaken_pendulum(), [0, 1.0], [0, 0], [0, 0.1], courses=courses)


def test_only_rk4_and_trees():
    with pytest.raises(ModelError, match="'rk4' alone"):
        kf.simulate(shaken_pendulum(), [0, 1.0], [0, 0], [0, 0.1], method="euler", courses={"cart": wave(1, 1)})
    arm = kf.absolute_angles(kf.models.double_pendulum())
    with pytest.raises(ModelError, match="1 coupling"):
        kf.simulate(arm, [0, 1.0], [0, 0], [0, 0.1], courses={"elbow": wave(1, 1)})
