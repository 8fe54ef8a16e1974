"""Derivatives of the dynamics with loops, contacts and external forces, and of frames whose hinges follow functions."""

import numpy as np
import pytest
from test_coupled import coupled_tree
from test_curved import planar
from test_derivatives import differences

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody.loops.closure import constraint_jacobian

PAIRS = ((kf.forward_dynamics_derivatives, kf.forward_dynamics), (kf.inverse_dynamics_derivatives, kf.inverse_dynamics))
NEAR = 2e-8  # of differences, where rows of a loop are nearly dependent


def close(got, expected, bound=NEAR):
    np.testing.assert_allclose(got, expected, rtol=0, atol=bound * max(1.0, np.abs(expected).max(initial=0.0)))


def least_forces(system, q, v, a, pushed):
    """What inverse dynamics with loops means, for accelerations of all kinds: without the part along J*."""
    tau = kf.inverse_dynamics(system.without_loops, q, v, a, pushed)
    J = constraint_jacobian(system, q)
    return tau - np.linalg.pinv(J, rcond=1e-9) @ (J @ tau)


def assert_derivatives(system, q, v, tau, pushed, D):
    """Against differences; q and v change along the columns of D, as loops of dependent rows want it."""
    functions = (kf.forward_dynamics, lambda s, *x: least_forces(s, *x) if s.loops else kf.inverse_dynamics(s, *x))
    for (derivatives, _), function in zip(PAIRS, functions):
        u = tau if function is kf.forward_dynamics else kf.forward_dynamics(system, q, v, tau, pushed)
        got = derivatives(system, q, v, u, external_forces=pushed)

        def along(f, n):
            return differences(f, n) if n else np.zeros((system.nv, 0))

        n = D.shape[1]
        close(got[0] @ D, along(lambda d: function(system, kf.integrate(system, q, D @ d), v, u, pushed), n))  # noqa: B023
        close(got[1] @ D, along(lambda d: function(system, q, v + D @ d, u, pushed), n))  # noqa: B023
        close(got[2], along(lambda d: function(system, q, v, u + d, pushed), system.nv))  # noqa: B023


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "stewart_platform", "delta_robot", "peaucellier"])
def test_mechanisms(name):
    """Along rates that the loops allow: their rows are dependent."""
    system = getattr(kf.models, name)()
    rng, q = np.random.default_rng(3), system.random_configuration(3)
    X = kf.minimal_coordinates(system, q).X
    v, tau = X @ rng.normal(size=X.shape[1]), rng.normal(size=system.nv)
    assert_derivatives(system, q, v, tau, rng.normal(size=(system.n_bodies, 6)), X)


@pytest.mark.parametrize("rows", ["point", "axis", "pose", (0,), (0, 1), (3, 4), (2, 3, 5)])
@pytest.mark.parametrize("held", ["at an anchor", "rates alone"])
@pytest.mark.parametrize("ends", [(None, "link_6"), ("link_6", None)])
def test_contacts(rows, held, ends):
    """In all directions, on and off the contact, since its rows are independent."""
    arm, rng = kf.models.puma560(), np.random.default_rng(5)
    q, (v, tau) = arm.random_configuration(rng), rng.normal(size=(2, 6))
    there = kf.frame_pose(arm, q, "link_6")
    anchor = (there.rotation, there.position + np.array([0.03, -0.02, 0.05])) if held == "at an anchor" else None
    assert_derivatives(arm.with_loops([kf.Loop(*ends, rows=rows, anchor=anchor)]), q, v, tau, None, np.eye(6))


def test_a_standing_humanoid():
    """Two feet on the ground and a hand against a wall; the base floats. Batches and rows agree."""
    body, rng = kf.models.humanoid(), np.random.default_rng(0)
    q = kf.integrate(body, body.neutral(), 0.2 * rng.normal(size=body.nv))
    contacts = [kf.Loop(None, name, rows) for name, rows in
                (("left_foot", "pose"), ("right_foot", "pose"), ("right_hand", "point"))]  # fmt: skip
    system = body.with_loops(contacts)
    J = constraint_jacobian(system, q)
    v, tau = rng.normal(size=(2, system.nv))
    v = v - np.linalg.pinv(J) @ (J @ v)
    D = rng.normal(size=(system.nv, 4))
    assert_derivatives(system, q, v, 10 * tau, None, D)
    many = kf.forward_dynamics_derivatives(system, np.stack([q, q]), [v, 0 * v], tau)
    for k, rates in enumerate((v, None)):
        for one, every in zip(kf.forward_dynamics_derivatives(system, q, rates, tau), many):
            close(every[k], one, 1e-11)
    room = tuple(np.empty((2, system.nv, system.nv)) for _ in range(3))
    got = kf.forward_dynamics_derivatives(system, np.stack([q, q]), [v, 0 * v], tau, out=room)
    assert all(one is own for one, own in zip(got, room))
    np.testing.assert_array_equal(room[0], many[0])


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 6, 9])
def test_external_forces(seed):
    """On trees of all hinges, with gears, and batches; torques that a force is to the coordinates turn with q."""
    system, rng = (kf.models.random_tree(7, seed), np.random.default_rng(seed)) if seed < 4 else coupled_tree(seed)
    q, (v, tau) = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    pushed = rng.normal(size=(3, system.n_bodies, 6))
    pushed[:, ::2] = 0.0
    for derivatives, function in PAIRS:
        got = derivatives(system, q, v, tau, external_forces=pushed)
        for k, own in enumerate(pushed):
            one = [x[k] for x in got]
            close(one[0], differences(lambda d: function(system, kf.integrate(system, q, d), v, tau, own), system.nv))  # noqa: B023
            close(one[1], differences(lambda d: function(system, q, v + d, tau, own), system.nv))  # noqa: B023
        plain = derivatives(system, q, v, tau)
        for one, other in zip(derivatives(system, q, v, tau, external_forces=0 * pushed[0]), plain):
            np.testing.assert_array_equal(one, other)
        room = tuple(np.empty((3, system.nv, system.nv)) for _ in range(3))
        np.testing.assert_array_equal(derivatives(system, q, v, tau, external_forces=pushed, out=room)[0], got[0])
    with pytest.raises(ShapeError, match="external_forces must have shape"):
        kf.forward_dynamics_derivatives(system, q, v, tau, external_forces=np.zeros(6))


def test_frames_whose_hinges_follow_functions():
    """Of the planar knee: velocity, acceleration, and external forces."""
    knee, rng = planar(), np.random.default_rng(1)
    q, (v, a, tau) = np.array([0.4, -0.3]), rng.normal(size=(3, 2))
    V, A = kf.frame_velocity_derivatives(knee, q, v, "tip"), kf.frame_acceleration_derivatives(knee, q, v, a, "tip")
    close(V.dV_dq, differences(lambda d: kf.frame_velocity(knee, q + d, v, "tip"), 2), 1e-10)
    close(V.dV_dv, kf.jacobian(knee, q, "tip"), 1e-13)
    close(A.dA_dq, differences(lambda d: kf.frame_acceleration(knee, q + d, v, a, "tip"), 2), 1e-9)
    close(A.dA_dv, differences(lambda d: kf.frame_acceleration(knee, q, v + d, a, "tip"), 2), 1e-9)
    assert_derivatives(knee, q, v, tau, rng.normal(size=(knee.n_bodies, 6)), np.eye(2))
    held = knee.with_loops([kf.Loop(None, "tip", rows=(3,))])
    assert_derivatives(held, q, v, tau, None, np.eye(2))


def test_what_rolls_is_refused():
    system = kf.models.free_flyer()
    wheel, axle = system.body_names[1], system.body_names[0]
    rolling = system.with_loops([kf.Loop(None, axle, rows="point", rolling=wheel)])
    with pytest.raises(ModelError, match=r"rolls.*not implemented; take differences"):
        kf.forward_dynamics_derivatives(rolling, rolling.neutral(), None, np.zeros(rolling.nv))
