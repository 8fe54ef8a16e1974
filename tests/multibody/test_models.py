"""Ready-made systems against what was published or can be written down."""

import numpy as np
import pytest
from multibody_cases import close, derivative

import kfdyn.multibody as mb
from kfdyn.errors import ModelError
from kfdyn.multibody import models
from kfdyn.multibody.models.random_bodies import KINDS


def mass_matrix(system, q):
    """Polarise the kinetic energy: M_ij = T(e_i + e_j) - T(e_i) - T(e_j)."""
    e = np.eye(system.nv)
    pairs = mb.kinetic_energy(system, q, e[:, None] + e[None])
    single = mb.kinetic_energy(system, q, e)
    return pairs - single[:, None] - single[None]


def gravity_torque(system, q):
    """The torque that holds the arm: the gradient of its potential energy."""
    e = np.eye(system.nv)
    return np.array([derivative(lambda t, d=d: mb.potential_energy(system, q + t * d)) for d in e])


# Constants of the explicit model of Armstrong, Khatib and Burdick (1986), appendix: kg m² and N m.
I4, I5, I6, I7, I8, I9 = 0.690, 0.372, 0.333, 0.298, -0.134, 0.0238
I10, I11, I12, I13, I14, I15, I16, I17 = -0.0213, -0.0142, -0.0110, -3.79e-3, 1.64e-3, 1.25e-3, 1.24e-3, 6.42e-4
I18, I19, I20, I21, I22, I23 = 4.31e-4, 3.00e-4, -2.02e-4, -1.00e-4, -5.8e-5, 4.00e-5
I2 = 1.75
MOTOR = 1.14, 4.71, 0.827, 0.200, 0.179, 0.193
G1, G2, G3, G4, G5 = -37.2, -8.44, 1.02, 0.249, -0.0282


def published_mass_matrix(q):
    """Elements of the explicit model; a11 without its constant and cos²(q2) terms, see the test."""
    (s2, s3, s4, s5), (c2, c3, c4, c5) = np.sin(q[1:5]), np.cos(q[1:5])
    s23, c23 = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    wrist = I20 * s4**2 * s5**2 + I21 * s4**2
    a11 = (
        I7 * s23**2
        + I10 * s23 * c23
        + I11 * s2 * c2
        + I20 * (s5**2 * (s23**2 * (1 + c4**2) - 1) - 2 * s23 * c23 * c4 * s5 * c5)
        + I21 * s23**2 * c4**2
        + 2 * (I5 * c2 * s23 + I12 * c2 * c23 + I15 * (s23**2 * c5 + s23 * c23 * c4 * s5))
        + 2 * (I16 * c2 * (s23 * c5 + c23 * c4 * s5) + I18 * s4 * s5 + I22 * (s23 * c23 * c5 + c23**2 * c4 * s5))
    )
    a13 = (
        I8 * c23
        + I13 * s23
        - I15 * c23 * s4 * s5
        + I18 * (s23 * c4 * s5 - c23 * c5)
        + I19 * s23 * s4 * c4
        + I20 * s4 * (s23 * c4 * c5**2 + c23 * s5 * c5)
        + I22 * s23 * s4 * s5
    )
    a12 = a13 + I4 * s2 + I9 * c2 + I16 * s2 * s4 * s5
    elbow = I5 * s3 + I12 * c3 + I16 * (s3 * c5 + c3 * c4 * s5)
    a33 = I6 + wrist + 2 * (I15 * c5 + I22 * c4 * s5)
    return {
        (0, 0): a11,
        (0, 1): a12,
        (0, 2): a13,
        (1, 1): MOTOR[1] + I2 + a33 + 2 * elbow,
        (1, 2): a33 + elbow,
        (2, 2): MOTOR[2] + a33,
        (3, 3): MOTOR[3] + I14 - I20 * s5**2,
        (4, 4): MOTOR[4] + I17,
        (5, 5): MOTOR[5] + I23,
        (3, 5): I23 * c5,
    }


def test_puma_mass_matrix_is_the_published_one():
    """The explicit model was derived by hand and computer algebra from the same tables.

    Its constants are printed with three digits: elements agree to the rounding of what they are summed from.
    Its constants I1 = 1.43 and I3 = 1.38 of a11 do not follow from its tables (which give 1.55 and 1.60), so
    a11 is compared by its variation with q3..q6 at equal q2, where they cancel.
    """
    arm = models.puma560()
    by_tables = mass_matrix(arm, [0, np.pi / 2, -np.pi / 2, 0, 0, 0])[0, 0] - MOTOR[0]
    assert by_tables == pytest.approx(1.554, abs=1e-3)  # I1
    by_tables = mass_matrix(arm, np.zeros(6))[0, 0] - MOTOR[0] - by_tables - 2 * I12
    assert by_tables == pytest.approx(1.602, abs=1e-3)  # I3
    rng = np.random.default_rng(0)
    for q in rng.uniform(-np.pi, np.pi, (20, 6)):
        M, published = mass_matrix(arm, q), published_mass_matrix(q)
        at_rest = q.copy()
        at_rest[2:] = 0
        varied = M[0, 0] - mass_matrix(arm, at_rest)[0, 0]
        assert varied == pytest.approx(published.pop((0, 0)) - published_mass_matrix(at_rest)[0, 0], abs=4e-3)
        for (i, j), value in published.items():
            assert M[i, j] == pytest.approx(value, abs=5e-3 if i < 3 else 1e-5), (i, j)


def test_puma_gravity_torques_are_the_published_ones():
    arm = models.puma560()
    rng = np.random.default_rng(1)
    for q in rng.uniform(-np.pi, np.pi, (20, 6)):
        (s2, _, s4, s5), (c2, _, c4, c5) = np.sin(q[1:5]), np.cos(q[1:5])
        s23, c23 = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
        g3 = G2 * s23 + G4 * c23 + G5 * (s23 * c5 + c23 * c4 * s5)
        expected = [0, g3 + G1 * c2 + G3 * s2, g3, -G5 * s23 * s4 * s5, G5 * (c23 * s5 + s23 * c4 * c5), 0]
        # three printed digits of 37.2, 8.44 and 1.02
        np.testing.assert_allclose(gravity_torque(arm, q), expected, rtol=0, atol=0.08)
        np.testing.assert_allclose(gravity_torque(arm, q)[3:], expected[3:], rtol=0, atol=1e-4)


def test_puma_reach():
    """Upper arm level, forearm up at q = 0: the wrist is d2 + d3 aside, a2 + a3 ahead, d4 above the shoulder."""
    arm = models.puma560()
    close(mb.frame_pose(arm, arm.neutral(), "link_6").position, [0.4318 - 0.0203, 0.2435 - 0.0934, 0.4331])
    close(arm.layout.armature, MOTOR)


def test_stanford_arm():
    arm = models.stanford_arm()
    assert [b.hinge.kind for b in arm.bodies].count("prismatic") == 1
    # at q = 0 all axes meet above the post, d2 aside; the boom slides up
    close(mb.frame_pose(arm, arm.neutral(), "link_6").position, [0, 0.154, 0.412])
    q = arm.neutral()
    q[2] = 0.5
    close(mb.frame_pose(arm, q, "hand").position, [0, 0.154, 0.412 + 0.5 + 0.263])
    q[1] = np.pi / 2  # the boom level
    close(mb.frame_pose(arm, q, "hand").position, [0.763, 0.154, 0.412])
    # published moments are about the link frames' origins, on the joint axes of links 3 to 6: they can be read off M
    M = mass_matrix(arm, arm.neutral())
    close(M[2, 2], 4.25 + 1.08 + 0.63 + 0.51 + 0.782)
    close(M[5, 5], 0.0003 + 0.020)
    close(M[4, 4], 0.003 + 0.013 + 0.097)  # the hand adds its moment across
    close(M[3, 3], 0.001 + 0.0004 + 0.0003 + 0.106)


def test_double_pendulum_is_the_textbook_one():
    (m1, m2), (l1, l2) = (1.3, 0.7), (0.9, 1.1)
    system = models.double_pendulum((m1, m2), (l1, l2))
    q, v = np.array([0.4, -1.1]), np.array([0.8, 0.3])
    c = np.cos(q[1])
    a = m2 * l2 * (l2 + l1 * c)
    M = np.array([[m1 * l1**2 + m2 * (l1**2 + l2**2 + 2 * l1 * l2 * c), a], [a, m2 * l2**2]])
    close(mass_matrix(system, q), M, 1e-13)
    close(mb.kinetic_energy(system, q, v), 0.5 * v @ M @ v, 1e-13)
    heights = -l1 * np.cos(q[0]), -l1 * np.cos(q[0]) - l2 * np.cos(q.sum())
    close(mb.potential_energy(system, q), 9.81 * (m1 * heights[0] + m2 * heights[1]), 1e-13)


def test_free_flyer_floats():
    system = models.free_flyer()
    assert (system.nv, system.n_bodies) == (20, 15)
    assert not system.gravity.any()
    assert system.mass == pytest.approx(400 + 2 * 22.5)
    q = system.neutral()
    left, right = (mb.frame_pose(system, q, f"{side}_grip").position for side in ("left", "right"))
    close(left * [1, -1, 1], right)


def test_humanoid_stands_on_two_feet():
    system = models.humanoid()
    assert 30 <= system.nv <= 50 and system.nv == 43
    com = mb.center_of_mass(system, system.neutral())
    left, right = (mb.frame_pose(system, system.neutral(), f"{s}_sole").position for s in ("left", "right"))
    close(left * [1, -1, 1], right)
    assert left[2] < com[2] and right[1] < com[1] < left[1]


def test_random_trees_deal_every_hinge_and_repeat_by_seed():
    system = models.random_tree(len(KINDS), seed=3)
    assert sorted(b.hinge.kind for b in system.bodies) == sorted(KINDS)
    again = models.random_tree(len(KINDS), seed=3)
    for x, y in zip(system.layout, again.layout):
        assert (x == y).all()
    assert (models.random_tree(12, seed=4).layout.mass != system.layout.mass).any()
    assert (models.random_tree(9, trees=3).parent < 0).sum() == 3
    assert (models.random_tree(9, branching=0.0).parent == np.arange(-1, 8)).all()
    assert not models.random_tree(9, armature=False).layout.armature.any()


def test_no_two_links_of_a_chain_are_alike_and_all_of_a_uniform_one_are():
    chain, uniform = models.chain(50), models.uniform_chain(50, length=0.5, mass=2.0)
    assert len(np.unique(chain.layout.mass)) == 50
    terms = mb.link_terms(uniform, uniform.neutral())
    assert np.ptp(terms.inertia, axis=0).max() == 0 == np.ptp(terms.H, axis=0).max()
    close(terms.l[1:], np.tile([0.5, 0, 0], (49, 1)))
    two = models.uniform_chain(5, hinge=mb.Hinge.universal([0, 1, 0], [0, 0, 1]))
    assert two.nv == 10


def test_bad_sizes_are_refused():
    for make in (models.chain, models.uniform_chain, models.random_tree):
        with pytest.raises(ModelError):
            make(0)
    with pytest.raises(ModelError, match="n = 3 bodies for trees = 5"):
        models.random_tree(3, trees=5)
    with pytest.raises(ModelError, match="no hinges"):
        models.random_tree(3, hinges=())
