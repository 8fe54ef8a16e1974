"""Trajectory: what its drift is measured against, and motions of a batch by indexing."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ShapeError
from kfdyn.multibody.loops.closure import gaps

T = np.linspace(0, 0.5, 51)


@pytest.mark.parametrize("method", ["rk4", "symplectic", "euler"])
@pytest.mark.parametrize("size", [0.0, 1e-15, 1e-9])
def test_rounding_is_no_drift(method, size):
    """A robot that is held where it is, or nearly: the energies have digits, and no more is said."""
    for robot, at in (
        (kf.models.puma560(), np.array([0.1, -0.5, 0.7, 0.2, 0.3, 0.1])),
        (kf.models.pendulum(), np.array([np.pi / 2])),  # as high as where heights are counted from
    ):
        law = kf.LinearFeedback(robot, kp=100.0, kd=10.0, q=at, tau=kf.bias_forces(robot, at))
        held = kf.simulate(robot, at, size * np.ones(robot.nv), T, law, method=method)
        assert held.worst_energy_drift == 0.0
        assert "energy drift    none beyond rounding" in held.report()


def test_a_drift_that_is_one_is_told():
    """Of the kinetic energy where that is what is exchanged; of the work where a motor lifts slowly."""
    arm = kf.models.double_pendulum()
    fall = kf.simulate(arm, [2.0, 1.0], [0.0, 0.0], T, method="euler")
    worst = np.abs(fall.energy - fall.energy[0]).max()
    sizes = [fall.kinetic.max(), np.ptp(fall.potential)]
    assert worst > 1e-3 and worst / max(sizes) == pytest.approx(fall.worst_energy_drift, rel=1e-12)
    assert f"{worst / max(sizes):.1e} of the largest energy exchanged" in fall.report()

    pendulum, up = kf.models.pendulum(), np.linspace(0.1, 1.5, 2)[:, None]
    lift = kf.LinearFeedback(pendulum, kp=400.0, kd=40.0, q=up, v=np.full((2, 1), 0.14), t=[0.0, 10.0])
    lifted = kf.simulate(pendulum, [0.1], [0.14], np.linspace(0, 10, 1001), lift)
    assert lifted.work[-1] > 100 * lifted.kinetic.max()
    expected = np.abs(lifted.energy_drift).max() / np.abs(lifted.potential - lifted.potential[0]).max()
    assert lifted.worst_energy_drift == pytest.approx(expected, rel=0.1)


def test_drift_without_weight():
    """No potential energy, no rounding of it: drifts of a motion as slow as this are told all the same."""
    flyer = kf.models.free_flyer()
    v = 1e-6 * np.random.default_rng(0).normal(size=flyer.nv)
    slow = kf.simulate(flyer, flyer.neutral(), v, [0.0, 1e5, 2e5], method="euler", substeps=10, gravity=[0, 0, 0])
    fast = kf.simulate(flyer, flyer.neutral(), 1e6 * v, [0.0, 0.1, 0.2], method="euler", substeps=10, gravity=[0, 0, 0])
    assert slow.worst_energy_drift > 1e-6
    assert slow.worst_energy_drift == pytest.approx(fast.worst_energy_drift, rel=1e-6)


def test_drift_without_mass():
    """A rotor on a spring has potential energy, and no mass centre."""
    rotor = kf.System([kf.Body("rotor", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), armature=0.1)])
    motion = kf.simulate(rotor, [1.0], [0.0], np.linspace(0, 1, 101), stiffness=[2.0])
    assert 0 < motion.worst_energy_drift < 1e-7 and "energy drift" in repr(motion)


def test_motions_of_a_batch_by_indexing():
    arm, rng = kf.models.double_pendulum(), np.random.default_rng(0)
    q, v = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4, 2))
    grid = kf.simulate(arm, q, v, T)
    for which in ((1, 2), (-1, -1)):
        one = kf.simulate(arm, q[which], v[which], T)
        for name in ("q", "v", "tau", "kinetic", "potential", "work", "momentum", "energy", "energy_drift", "t"):
            assert np.array_equal(getattr(grid[which], name), getattr(one, name))
        assert grid[which].report() == one.report()
    assert grid[1].q.shape == (51, 4, 2) and grid[1][2].q.shape == (51, 2)
    assert grid[:, 1:3].momentum.shape == (51, 3, 2, 6) and grid[np.int64(0)].work.shape == (51, 4)
    assert len([row.q for row in grid]) == 3
    with pytest.raises(IndexError):
        grid[3]
    for wrong in ((0, 0, 0), "q", 1.0, True, ([0, 1],)):
        with pytest.raises(ShapeError, match=r"is of motions \(3, 4\)"):
            grid[wrong]
    with pytest.raises(ShapeError, match=r"is of one motion.*take trajectory\.q\[i\]"):
        grid[0, 0][5]


def test_a_motion_of_a_batch_keeps_its_own_contacts():
    arm = kf.models.chain(7, seed=3)
    held = arm.with_loops([kf.Loop(None, arm.body_names[-1], "point")])
    q = np.stack([arm.random_configuration(i) for i in range(4)]).reshape(2, 2, 7)
    motion = kf.simulate(held, q, np.zeros(7), np.linspace(0, 0.05, 6))
    for which in ((0, 1), (1, 0)):
        one = motion[which]
        assert np.abs(gaps(one.system, one.q)[0]).max() < 1e-11
    assert np.abs(gaps(motion[1].system, motion[1].q[-1])[0]).max() < 1e-11
