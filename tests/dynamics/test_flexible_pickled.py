"""Systems that bend, pickled and copied: the same numbers to the bit, couplings, loops, noise and all."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from flexible_cases import jointed_bodies, random_couplings

import kfdyn as kf
from kfdyn.spatial import spatial_inertia

AXIS = [0.0, 1.0, 0.0]


def twins(system):
    return pickle.loads(pickle.dumps(system)), copy.copy(system), copy.deepcopy(system)


def expect_same(one, other, seed=0):
    rng = np.random.default_rng(seed)
    assert type(other) is kf.FlexibleSystem
    assert (repr(one), one.dof_names, one.body_names, one.hinge_names) == (
        repr(other), other.dof_names, other.body_names, other.hinge_names)  # fmt: skip
    assert len(one.couplings) == len(other.couplings) and [loop.name for loop in one.loops] == [
        loop.name for loop in other.loops
    ]
    for key in ("lower", "upper", "speed", "effort"):
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key))
    q, v, tau = one.random_configuration(seed), rng.normal(size=one.nv), rng.normal(size=one.nv)
    np.testing.assert_array_equal(other.random_configuration(seed), q)
    for call in (
        lambda s: kf.forward_dynamics(s, q, v, tau),
        lambda s: kf.mass_matrix(s.without_loops, q),
        lambda s: kf.kinetic_energy(s, q, v) + kf.potential_energy(s, q),
        lambda s: kf.frame_pose(s, q, s.body_names[-1]).position,
    ):
        np.testing.assert_array_equal(call(other), call(one))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gyroscopic", [False, True])
def test_random_trees_with_couplings(seed, gyroscopic):
    bodies = jointed_bodies(seed, gyroscopic)
    system = kf.FlexibleSystem(bodies, couplings=random_couplings(np.random.default_rng(seed), bodies), name="bent")
    for twin in twins(system):
        expect_same(system, twin, seed)


def beam_on_hinge():
    """A beam with a mass somewhere on its axis, where only the beam's own function knows the shapes, and a frame."""
    rod = kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=2, hinge=kf.Hinge.revolute(AXIS), stiffening=True)
    tip = kf.Body("tip", spatial_inertia(0.5, [0, 0, 0], 0.1 * np.eye(3)), kf.Hinge.revolute(AXIS), "rod",
                  position=[0.77, 0, 0])  # fmt: skip
    return kf.FlexibleSystem([rod, tip], (0.0, 0.5, -9.0), {"end": kf.Frame("tip", position=[0.3, 0, 0])})


def test_a_beam_with_a_frame_and_a_loop():
    system = beam_on_hinge()
    held = system.with_loops([kf.Loop("end", None, rows=(5,))])
    for one in (system, held):
        for twin in twins(one):
            expect_same(one, twin)
            np.testing.assert_array_equal(twin.gravity, [0.0, 0.5, -9.0])
            assert twin.frames["end"].body == "tip"


def test_what_a_step_or_a_push_makes_of_it():
    """With noise beside its rotors, and without forces of elasticity."""
    system = beam_on_hinge()
    noise = np.diag(np.arange(1.0, system.nv + 1))
    for one in (system.with_noise(noise), system.slack, system.with_noise(noise).slack):
        for twin in twins(one):
            expect_same(one, twin)
            assert twin.is_slack == one.is_slack and (twin.noise is None) == (one.noise is None)


def test_what_was_said_is_not_said_again():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        odd = kf.Body("odd", spatial_inertia(1.0, [0, 0, 0], np.diag([1.0, 1.0, 3.0])), kf.Hinge.revolute(AXIS))
    bodies = [odd, kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=1, parent="odd")]
    with pytest.warns(UserWarning, match="triangle"):
        system = kf.FlexibleSystem(bodies)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(system))
