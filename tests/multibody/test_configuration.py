"""integrate and difference: exact inverses, exponentials, tangents to the velocity (SRB:quasi)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multibody_cases import close, derivative, forest, seeds, skew, state
from scipy.linalg import expm

import kfdyn.multibody as mb
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import Body, Hinge, System
from kfdyn.multibody.models.random_bodies import random_inertia


def on_world(hinge):
    return System([Body("body", random_inertia(np.random.default_rng(0), 1)[0], hinge, hinge_name="hip")])


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from([1e-12, 1e-8, 1e-4, 0.05, 0.3, 1.0]))
def test_difference_undoes_integrate(seed, size):
    system, rng = forest(seed)
    q, v = state(system, rng, (3,))
    dv = size * v
    for hinge, name in zip((b.hinge for b in system.bodies), system.hinge_names):
        if hinge.nq != hinge.nv:  # keep rotations below half a turn, where they are the shorter way
            own = system.v_slice(name)
            angle = np.linalg.norm(dv[:, own] @ hinge.screws[:, :3], axis=1, keepdims=True)
            dv[:, own] *= np.minimum(1, 3 / angle)
    back = mb.difference(system, q, mb.integrate(system, q, dv))
    # absolute: positions of order 1 are rounded to 1e-16
    np.testing.assert_allclose(back, dv, rtol=1e-12, atol=2e-14)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_integrate_undoes_difference(seed):
    rng = np.random.default_rng(seed)
    hinges = ("ball", "free", "revolute", "gimbal")
    system = mb.models.random_tree(4, seed, hinges=hinges)
    q, q2 = system.random_configuration(rng), system.random_configuration(rng)
    there = mb.integrate(system, q, mb.difference(system, q, q2))
    for name in system.body_names:
        for x, y in zip(mb.frame_pose(system, there, name), mb.frame_pose(system, q2, name)):
            close(x, y, 1e-11)  # log near a half turn loses a digit or two


def test_half_turns():
    """The log at rotations up to and beyond pi."""
    system = on_world(Hinge.ball())
    axis = np.array([1.0, -2.0, 2.0]) / 3
    q = system.neutral()
    for angle in (np.pi - 1e-3, np.pi - 1e-9):
        close(mb.difference(system, q, mb.integrate(system, q, angle * axis)), angle * axis, 1e-13)
    far = mb.integrate(system, q, (np.pi + 0.1) * axis)
    close(mb.difference(system, q, far), (0.1 - np.pi) * axis, 1e-13)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_poses_move_by_the_matrix_exponential(seed):
    rng = np.random.default_rng(seed)
    hinge = Hinge.free() if seed % 2 else Hinge.custom(rng.normal(size=(3, 6)))
    system = on_world(hinge)
    q, dv = system.random_configuration(rng), rng.normal(size=hinge.nv)
    twist = hinge.screws.T @ dv
    generator = np.zeros((4, 4))
    generator[:3, :3], generator[:3, 3] = skew(twist[:3]), twist[3:]
    before, step = mb.frame_pose(system, q, "body"), expm(generator)
    after = mb.frame_pose(system, mb.integrate(system, q, dv), "body")
    close(after.rotation, before.rotation @ step[:3, :3], 1e-12)
    close(after.position, before.position + before.rotation @ step[:3, 3], 1e-12)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_velocity_is_the_tangent_of_integrate(seed):
    system, rng = forest(seed)
    q, v = state(system, rng)

    def pose(t):
        R, p = mb.frame_pose(system, mb.integrate(system, q, t * v), "tool")
        return np.concatenate([R, p[:, None]], axis=1)

    V = mb.frame_velocity(system, q, v, "tool")
    rate = derivative(pose)
    close(rate[:, :3], skew(V[:3]) @ pose(0)[:, :3])
    close(rate[:, 3], V[3:])


def test_quaternions_stay_normalised():
    system = mb.models.humanoid()
    rng = np.random.default_rng(0)
    q = system.random_configuration(rng)
    for _ in range(500):
        q = mb.integrate(system, q, rng.normal(size=system.nv))
    hips = q[system.q_slice("left_thigh")]
    assert abs(np.linalg.norm(hips) - 1) < 1e-15


def test_a_quaternion_that_is_not_a_unit_is_refused_by_name():
    system = on_world(Hinge.ball())
    for call in (
        lambda q: mb.frame_pose(system, q, "body"),
        lambda q: mb.integrate(system, q, np.zeros(3)),
        lambda q: mb.kinetic_energy(system, q, np.zeros(3)),
        lambda q: mb.difference(system, system.neutral(), q),
    ):
        with pytest.raises(ModelError, match=r"hinge 'hip'.*length 2.*normalise"):
            call([0, 0, 0, 2.0])
        with pytest.raises(ModelError, match="length 0"):
            call(np.zeros((5, 4)))
    # one that rounding has touched is normalised
    close(mb.frame_pose(system, [0, 0, 0, 1 + 1e-9], "body").rotation, np.eye(3), 1e-15)


def test_a_motion_that_a_custom_hinge_forbids_is_refused():
    blade = on_world(Hinge.custom([[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]]))
    q = blade.neutral()
    close(mb.difference(blade, q, [2, 0, 0, 0, 0, 0, 1]), [0, 2])
    with pytest.raises(ModelError, match=r"hinge 'hip'.*does not allow"):
        mb.difference(blade, q, [0, 2, 0, 0, 0, 0, 1])
    # yet it parallel-parks: turn, go, turn back
    for step in ([np.pi / 2, 0], [0, 2], [-np.pi / 2, 0]):
        q = mb.integrate(blade, q, step)
    close(q, [0, 2, 0, 0, 0, 0, 1])


def test_batches_and_bad_shapes():
    system, rng = forest(3)
    q, v = state(system, rng, (2, 3))
    assert mb.integrate(system, q, v[0, 0]).shape == (2, 3, system.nq)
    assert mb.integrate(system, q[0, 0], v).shape == (2, 3, system.nq)
    assert mb.difference(system, q, q).shape == (2, 3, system.nv)
    assert mb.integrate(system, np.empty((0, system.nq)), v[0, 0]).shape == (0, system.nq)
    with pytest.raises(ShapeError, match="dv must have shape"):
        mb.integrate(system, q, np.zeros(system.nv + 1))
    with pytest.raises(ModelError, match="dv has entries that are not finite"):
        mb.integrate(system, q, np.full(system.nv, np.nan))
    with pytest.raises(ShapeError, match="broadcast"):
        mb.integrate(system, q, np.zeros((4, system.nv)))
