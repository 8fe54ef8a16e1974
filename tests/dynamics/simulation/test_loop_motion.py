"""Motion on couplings and loops: energy, closure, anchors, non-holonomic rows, hybrid dynamics."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.multibody.loops.closure import constraint_jacobian, gaps


def test_four_bar_keeps_energy_and_closure():
    s, q = kf.models.four_bar(), kf.models.four_bar_configuration(0.4)
    v = kf.minimal_coordinates(s, q).X @ [2.0]
    motion = kf.simulate(s, q, v, np.linspace(0, 0.5, 101))
    assert motion.worst_energy_drift < 5e-7  # of fourth order in the step of 5 ms
    assert max(np.abs(g).max() for g in gaps(s, motion.q)) < 1e-12
    assert np.abs(constraint_jacobian(s, motion.q) @ motion.v[..., None]).max() < 1e-11


@pytest.mark.slow
def test_four_bar_for_a_hundred_thousand_steps():
    s, q = kf.models.four_bar(), kf.models.four_bar_configuration(0.4)
    v = kf.minimal_coordinates(s, q).X @ [2.0]
    motion = kf.simulate(s, q, v, np.linspace(0, 200, 1001), substeps=100)
    assert motion.steps == 100_000
    assert max(np.abs(g).max() for g in gaps(s, motion.q)) < 1e-10
    assert motion.worst_energy_drift < 1e-5


def test_coupled_motion_is_that_of_the_reduced_equations():
    tree = kf.models.chain(4, seed=1)
    s = kf.System(tree.bodies, couplings=[kf.Coupling(tree.hinge_names[:2], [1.0, 2.0], [0.0, 0.3])])
    motion = kf.simulate(s, s.neutral(), np.ones(3), np.linspace(0, 0.4, 81))
    assert motion.worst_energy_drift < 1e-7
    damped = kf.simulate(s, s.neutral(), np.ones(3), np.linspace(0, 0.4, 41), damping=[0.5, 0.0, 0.1])
    implicit = kf.simulate(
        s, s.neutral(), np.ones(3), np.linspace(0, 0.4, 41), damping=[0.5, 0, 0.1], method="implicit", substeps=20
    )
    assert damped.worst_energy_drift < 1e-6  # the work of the dampers is counted
    assert np.abs(damped.q - implicit.q).max() < 3e-3  # of first order
    adaptive = kf.simulate(s, s.neutral(), np.ones(3), np.linspace(0, 0.4, 81), method="RK45", rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(adaptive.q, motion.q, atol=1e-7)
    held = s.with_loops([kf.Loop(None, s.body_names[-1], "point")])
    with pytest.raises(ModelError, match=r"RK45: system .* has 1 coupling and 1 loop.*take rk4, implicit or euler$"):
        kf.simulate(held, s.neutral(), np.zeros(3), [0, 1], method="RK45")
    kf.simulate(s, s.neutral(), np.ones(3), [0, 1e-3], method="symplectic")  # as advised


def test_a_contact_is_anchored_where_the_motion_begins():
    arm = kf.models.chain(7, seed=3)
    tip = arm.body_names[-1]
    s = arm.with_loops([kf.Loop(None, tip, "point")])
    q = np.stack([arm.random_configuration(i) for i in range(2)])
    motion = kf.simulate(s, q, np.zeros((2, 7)), np.linspace(0, 0.1, 11))
    place = kf.frame_pose(arm, motion.q, tip).position
    assert np.abs(place - place[0]).max() < 1e-12
    assert np.abs(motion.q[-1] - motion.q[0]).max() > 1e-3
    with pytest.raises(ModelError, match=r"open the loops at .* kf.impact"):
        kf.simulate(s, q[0], np.ones(7), [0, 0.1])
    far = arm.with_loops([kf.Loop(None, tip, "point", anchor=[9.0, 0, 0])])
    with pytest.raises(ModelError, match=r"is open by .* kf.assemble"):
        kf.simulate(far, q[0], np.zeros(7), [0, 0.1])


def test_a_skate_is_not_anchored():
    """A sled on a plane whose blade does not slip sideways: it runs on a circle, which no position row would allow."""
    body = kf.Body("sled", np.diag([1.0, 1, 0.5, 2, 2, 2]), kf.Hinge.planar())
    sled = kf.System([body], gravity=(0, 0, 0)).with_loops([kf.Loop("sled", None, rows=(4,))])
    speed, turn = 1.5, 0.8
    motion = kf.simulate(sled, [0.0, 0, 0], [speed, 0, turn], np.linspace(0, 2, 201))
    t = motion.t
    assert np.allclose(motion.q[:, 2], turn * t, atol=1e-9)
    assert np.allclose(motion.q[:, 0], speed / turn * np.sin(turn * t), atol=1e-7)
    assert np.allclose(motion.q[:, 1], speed / turn * (1 - np.cos(turn * t)), atol=1e-7)
    assert motion.worst_energy_drift < 1e-10


def test_hybrid_dynamics():
    rng = np.random.default_rng(0)
    tree = kf.models.chain(5, seed=1)
    s = kf.System(tree.bodies, couplings=[kf.Coupling(tree.hinge_names[:2], [1.0, 2.0])])
    q, (v, tau, a) = s.random_configuration(rng), rng.normal(size=(3, s.nv))
    mask = np.array([True, False, True, False])
    T, A = kf.hybrid_dynamics(s, q, v, np.where(mask, np.nan, tau), np.where(mask, a, np.nan), mask)
    assert np.array_equal(A[mask], a[mask])
    assert np.array_equal(T[~mask], tau[~mask])
    assert np.allclose(kf.inverse_dynamics(s, q, v, A), T, rtol=1e-11, atol=1e-11)
    four, q = kf.models.four_bar(), kf.models.four_bar_configuration(0.4)
    v = kf.minimal_coordinates(four, q).X @ [2.0]
    T, A = kf.hybrid_dynamics(four, q, v, np.zeros(3), np.ones(3), [True, False, False])
    assert A[0] == 1.0
    assert not T[1:].any()
    assert np.allclose(kf.forward_dynamics(four, q, v, T), A, atol=1e-11)
    with pytest.raises(ModelError, match="do not allow what is prescribed"):
        kf.hybrid_dynamics(four, q, v, np.zeros(3), np.ones(3), [True, True, False])
    with pytest.raises(ModelError, match="cannot cause"):
        kf.inverse_dynamics(four, q, v, A, actuated=np.zeros(3, dtype=bool))
    drive = kf.inverse_dynamics(four, q, v, A, actuated=np.array([True, False, False]))
    assert np.allclose(drive, T, atol=1e-10)
