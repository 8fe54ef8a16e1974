"""The symplectic step where forces hold each other: at rest and near it, with dampers, on trees and on loops."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics.simulation.symplectic.implicit_equations import settle
from kfdyn.multibody.loops.closure import gaps


def held(system, q, kp, kd):
    """A law that holds a tree at q against its weight, as compiled code knows it and as a function of Python's."""
    law = kf.LinearFeedback(system, kp=kp, kd=kd, q=q, tau=kf.bias_forces(system, q))
    return {"law": law, "function": lambda t, q_now, v: law.references.tau[0] + kp * (q - q_now) - kd * v}


def symplectic(system, q, v, t, *law, **options):
    return kf.simulate(system, q, v, t, *law, method="symplectic", **options)


@pytest.mark.parametrize("kind", ["law", "function"])
def test_a_pendulum_comes_to_rest(kind):
    pendulum, at = kf.models.pendulum(), np.array([0.3])
    law = held(pendulum, at, 50.0, 10.0)[kind]
    motion = symplectic(pendulum, [0.5], [0.0], np.linspace(0, 12, 1201), law)
    close = kf.simulate(pendulum, [0.5], [0.0], motion.t[:301], law)
    assert np.abs(motion.q[:301] - close.q).max() < 1e-4
    assert np.abs(motion.q[-1] - at).max() < 1e-14
    assert np.abs(motion.v[-1]).max() < 1e-13


@pytest.mark.parametrize("kd", [0.0, 0.1, 10.0, 1000.0])
@pytest.mark.parametrize("kind", ["law", "function"])
def test_a_robot_held_where_it_is_stays(kind, kd):
    puma, at = kf.models.puma560(), np.array([0.1, -0.5, 0.7, 0.2, 0.3, 0.1])
    motion = symplectic(puma, at, np.zeros(6), np.linspace(0, 0.1, 21), held(puma, at, 100.0, kd)[kind], substeps=2)
    assert np.abs(motion.q - at).max() < 1e-13
    assert np.abs(motion.v).max() < 1e-12 * max(1.0, kd)  # the last kick is explicit: hD/2 times what rounding left


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9, 1e-12])
def test_near_rest_the_step_is_linear(size):
    """Motions about where forces hold each other are in proportion to what they begin with, to rounding of q."""
    puma, at = kf.models.puma560(), np.array([0.1, -0.5, 0.7, 0.2, 0.3, 0.1])
    law, t = held(puma, at, 100.0, 10.0)["law"], np.linspace(0, 0.2, 101)
    large, small = (symplectic(puma, at, v * np.ones(6), t, law) for v in (1e-3, size))
    assert np.abs(small.v / size - large.v / 1e-3).max() < 1e-3 + 1e-13 / size


def test_at_rest_beside_motion_in_a_batch():
    puma, at = kf.models.puma560(), np.array([0.1, -0.5, 0.7, 0.2, 0.3, 0.1])
    law, t = held(puma, at, 100.0, 10.0)["law"], np.linspace(0, 0.05, 51)
    q, v = np.array([at, at + 0.1, at]), np.array([np.zeros(6), np.zeros(6), np.full(6, 1e-9)])
    many = symplectic(puma, q, v, t, law)
    for b in range(3):
        one = symplectic(puma, q[b], v[b], t, law)
        assert np.abs(many.q[:, b] - one.q).max() < 1e-14
        assert np.abs(many.v[:, b] - one.v).max() < 1e-12


def test_weight_borne_from_outside():
    """Buoyancy as an external force: all that acts adds up to nothing, and nothing moves."""
    arm, q = kf.models.double_pendulum(), np.array([1.0, 0.4])
    lift = np.zeros((2, 6))
    for b, body in enumerate(arm.bodies):
        mass, moment = body.inertia[3, 3], body.inertia[:3, 3:]
        offset = np.array([moment[2, 1], moment[0, 2], moment[1, 0]]) / mass
        turn = kf.frame_pose(arm, q, body.name).rotation
        lift[b, 3:] = -mass * arm.gravity
        lift[b, :3] = np.cross(turn @ offset, lift[b, 3:])
    motion = symplectic(arm, q, np.zeros(2), np.linspace(0, 1, 101), damping=2.0, external_forces=lift)
    assert np.abs(motion.q - q).max() < 1e-13


@pytest.mark.parametrize("damping", [0.1, 30.0, 1e4])
def test_a_damper_is_solved_for_at_once(damping):
    """Without weight v ← (1 − x)/(1 + x) v with x = hB/2I, Cayley's for exp(−hB/I), however stiff the damper."""
    free = kf.models.pendulum(mass=2.0, length=0.5)
    h, inertia = 0.01, kf.mass_matrix(free, [0.0])[0, 0]
    x = h * damping / (2 * inertia)
    motion = symplectic(free, [0.2], [1.0], h * np.arange(6), damping=damping, gravity=[0, 0, 0])
    assert np.abs(motion.v[:, 0] - ((1 - x) / (1 + x)) ** np.arange(6)).max() < 1e-12


def test_a_very_stiff_damper_rings():
    """As docs/simulate.md says: the sign changes at every step and little is lost, where "implicit" stops at once."""
    free = kf.models.pendulum(mass=2.0, length=0.5)
    more = {"damping": 1e4, "gravity": [0, 0, 0]}
    ringing = symplectic(free, [0.0], [1.0], 0.01 * np.arange(21), **more).v[:, 0]
    assert (ringing[1:] * ringing[:-1] < 0).all()
    assert 0.6 < np.abs(ringing[-1]) < 1
    stopped = kf.simulate(free, [0.0], [1.0], 0.01 * np.arange(21), method="implicit", **more).v[:, 0]
    assert (stopped >= 0).all()
    assert stopped[3] < 1e-6
    short = symplectic(free, [0.0], [1.0], 1e-5 * np.arange(21), **more).v[:, 0]  # h B < 2 I
    assert (np.diff(short) < 0).all()
    assert (short >= 0).all()


@pytest.mark.parametrize("drive", [{"damping": 2.0}, {"kp": 50.0, "kd": 5.0}, {"kp": 50.0, "kd": 50.0}])
def test_a_loop_comes_to_rest(drive):
    linkage, q = kf.models.four_bar(), kf.models.four_bar_configuration(0.7)
    law = kf.LinearFeedback(linkage, q=q, **drive) if "kp" in drive else None
    motion = symplectic(
        linkage, q, np.zeros(linkage.nv), np.linspace(0, 20, 1001), law, damping=drive.get("damping", 0.0)
    )
    assert np.abs(gaps(linkage, motion.q)[0]).max() < 1e-12
    assert np.abs(motion.v[-1]).max() < 1e-4 * np.abs(motion.v).max()
    rest = kf.forward_dynamics(linkage, motion.q[-1], np.zeros(linkage.nv), motion.tau[-1])
    assert np.abs(rest).max() < 1e-3  # where it stands, forces hold each other


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-3])
@pytest.mark.parametrize("kd", [0.0, 1.0, 10.0])
def test_a_humanoid_on_two_feet(size, kd):
    humanoid, joints = kf.models.humanoid(), np.r_[np.zeros(6), np.ones(kf.models.humanoid().nv - 6)]
    standing = humanoid.with_loops([kf.Loop(None, f"{side}_sole") for side in ("left", "right")])
    q, rng = humanoid.neutral(), np.random.default_rng(0)
    v = kf.impact(standing, q, size * rng.normal(size=humanoid.nv)).v
    law = kf.LinearFeedback(humanoid, kp=30.0 * joints, kd=kd * joints, q=q)
    t = np.linspace(0, 0.05, 11)
    for gravity in ([0, 0, 0], None):
        motion = symplectic(standing, q, v, t, law, substeps=4, gravity=gravity)
        close = kf.simulate(standing, q, v, t, law, substeps=40, gravity=gravity)
        assert np.abs(motion.q - close.q).max() < 1e-3 * max(np.abs(close.q - q).max(), 1e-9)


def test_terms_that_add_up_to_nothing_are_what_rounding_is_a_part_of():
    """x = 1 − 1 − x/2 with noise of an ulp of 1: a root to that, where x alone would never be one."""
    noise = iter(np.resize([1e-16, -1e-16, 3e-16], 1000))
    update, length = lambda x, s: s * (next(noise) - 0.4 * x), lambda x: np.abs(x[..., 0])
    x = settle(update, length, np.array([[1e-18]]), np.array([[1.0]]))
    assert abs(x[0, 0]) < 1e-15
