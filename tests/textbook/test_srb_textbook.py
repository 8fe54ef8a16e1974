"""What SRB sets beside a hinge: five constraints, natural coordinates; and V_I, which asks for no point of the body."""

import numpy as np
import pytest
from r86_cases import close

import kfdyn as kf
from kfdyn.errors import ShapeError, SingularError
from kfdyn.spatial import rotation_vector_to_matrix, spatial_inertia
from kfdyn.textbook import srb
from kfdyn.textbook.srb import body_equations

SEEDS = range(4)


@pytest.mark.parametrize("kind", ["revolute", "universal", "cylindrical", "ball"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_pin_is_a_free_body_with_five_constraints(seed, kind):
    """SRB:pin-constraints. A free body and constraints that do no work have the accelerations of the hinge."""
    robot = kf.models.random_tree(1, seed, (kind,), armature=False)
    rng = np.random.default_rng(seed)
    q, (v, tau) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    ss = kf.as_estimation(robot, q, v)
    H, M, eta, b = (np.asarray(x) for x in (ss.H[0], ss.Q[0], ss.eta, ss.xi))
    assert len(srb.constraint_rows(H)) == 6 - robot.nv
    drive = H.T @ np.linalg.solve(H @ H.T, tau)  # a force whose part along the hinge is tau
    alpha, reaction = srb.hinge_as_constraints(M, b, H, eta, drive)
    theirs = kf.forward_dynamics(robot, q, v, tau)
    close(alpha, H.T @ theirs + eta)
    close(M @ alpha + b, drive + reaction)
    assert np.abs(H @ reaction).max() < 1e-12 * np.abs(reaction).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_natural_coordinates_of_a_pin(seed):
    """SRB:natural. Two points and a vector, 9 coordinates and 8 constraints: the angle's equation of motion."""
    rng = np.random.default_rng(seed)
    m, places = rng.uniform(0.5, 2, 5), rng.normal(size=(5, 3))
    p1, u, gravity, rate = *rng.normal(size=(3, 3)), rng.normal()
    u = u / np.linalg.norm(u)
    p2 = p1 + rng.normal(size=3)
    d = p2 - p1
    s = places @ np.array([d, u, np.cross(d, u)])  # from p1
    about = np.cross(u, s)
    theta_ddot = (m @ (about @ gravity)) / (m @ (about * about).sum(axis=1))
    q_ddot, found = srb.pin_in_natural_coordinates(m, places, p1, p2, u, rate, gravity)
    assert found == pytest.approx(theta_ddot, rel=1e-10)
    turned = np.cross(u, d)
    close(q_ddot, np.concatenate([np.zeros(3), theta_ddot * turned + rate**2 * np.cross(u, turned), np.zeros(3)]), 1e-9)
    # rates and energy of a free body, by the particles themselves
    M, G = srb.natural_coordinates(m, places, p1, p2, u)
    omega, v = rng.normal(size=(2, 3))
    q_dot = np.concatenate([v, v + np.cross(omega, d), np.cross(omega, u)])
    speeds = v + np.cross(omega, s)
    for place, speed in zip(places, speeds):
        close(srb.particle_rates(place, p1, p2, u) @ q_dot, speed)
    assert q_dot @ M @ q_dot == pytest.approx(m @ (speeds**2).sum(axis=1), rel=1e-11)
    assert np.abs(G @ q_dot).max() < 1e-12
    assert np.linalg.matrix_rank(G) == 3


def test_natural_coordinates_need_a_lever():
    x, y, z = np.eye(3)
    with pytest.raises(SingularError, match="body with its constraints"):
        srb.pin_in_natural_coordinates([1.0], [[1.0, 0, 0]], 0 * x, 0 * x, y, 0.0, z)
    with pytest.raises(ShapeError, match=r"places must have shape \(1, 3\)"):
        srb.natural_coordinates([1.0], [[1.0, 0]], 0 * x, x, y)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_inertially_referenced_velocity_is_the_same_for_all_points(seed):
    """SRB:V-inertial. V_I, M_I, b_I and h_I do not depend on the point of the body they are computed from."""
    rng = np.random.default_rng(seed)
    m, s = rng.uniform(0.2, 2, 6), rng.normal(size=(6, 3))
    R, (z, arm, omega, v) = rotation_vector_to_matrix(rng.normal(size=3)), rng.normal(size=(4, 3))

    def inertia(places):
        com = m @ places / m.sum()
        r = places - com
        return spatial_inertia(m.sum(), com, sum(mi * ((x @ x) * np.eye(3) - np.outer(x, x)) for mi, x in zip(m, r)))

    one = body_equations("inertial", inertia(s), R, z, np.concatenate([omega, v]))
    there = v + np.cross(omega, R @ arm)  # velocity of another point of the body
    other = body_equations("inertial", inertia(s - arm), R, z + R @ arm, np.concatenate([omega, there]))
    for name in ("velocity", "inertia", "bias", "momentum"):
        close(getattr(other, name), getattr(one, name), 1e-11)
    close(one.velocity, np.concatenate([omega, v - np.cross(omega, z)]))
    places = z + s @ R.T
    speeds = v + np.cross(omega, places - z)
    close(one.momentum, np.concatenate([m @ np.cross(places, speeds), m @ speeds]))
    apart = body_equations("body", inertia(s - arm), R, z + R @ arm, np.concatenate([omega, there])).velocity
    assert np.abs(apart - body_equations("body", inertia(s), R, z, np.concatenate([omega, v])).velocity).max() > 0.01
