"""Frames, velocities, Jacobians, accelerations: R86:5.1-5.3, R86:5.4-5.5, R86:5.6."""

import numpy as np
import pytest
from hypothesis import given, settings
from multibody_cases import close, derivative, forest, phi, seeds, state

import kfdyn.multibody as mb
from kfdyn.errors import KfdynError, ModelError, ShapeError


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_jacobian_times_v_is_the_velocity(seed):
    system, rng = forest(seed)
    q, v = state(system, rng, (2,))
    for name in (*system.body_names, "tool"):
        J = mb.jacobian(system, q, name)
        close(np.einsum("bij,bj->bi", J, v), mb.frame_velocity(system, q, v, name), 1e-12)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_velocities_and_accelerations_obey_the_outward_recursions(seed):
    """V = phi* V(p) + H* beta and alpha = phi* alpha(p) + H* beta-dot + eta, link by link."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    a = rng.normal(size=system.nv)
    terms, start = mb.link_terms(system, q, v, gravity=(0, 0, 0)), system.layout.v_start
    for k, name in enumerate(system.body_names):
        own, p = slice(start[k], start[k + 1]), int(system.parent[k])
        V, A = mb.frame_velocity(system, q, v, name), mb.frame_acceleration(system, q, v, a, name)
        close(terms.velocity[k], V, 1e-13)
        V_p = A_p = np.zeros(6)
        if p >= 0:
            above = system.body_names[p]
            V_p = mb.frame_velocity(system, q, v, above)
            A_p = mb.frame_acceleration(system, q, v, a, above)
        H, shift = terms.H[own], phi(terms.l[k]).T
        close(V, shift @ V_p + H.T @ v[own], 1e-12)
        close(A, shift @ A_p + H.T @ a[own] + terms.eta[k], 1e-12)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_bias_acceleration_is_the_derivative_of_the_velocity(seed):
    """R86:5.6 for every hinge, custom ones too: d/dt V along a motion of constant v is J-dot v."""
    system, rng = forest(seed)
    q, v = state(system, rng)

    def velocity(t):
        return mb.frame_velocity(system, mb.integrate(system, q, t * v), v, "tool")

    bias = mb.frame_bias_acceleration(system, q, v, "tool")
    close(derivative(velocity), bias)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_bias_acceleration_is_quadratic_and_acceleration_affine(seed):
    system, rng = forest(seed)
    q, v = state(system, rng)
    a = rng.normal(size=system.nv)
    bias = mb.frame_bias_acceleration(system, q, v, "tool")
    close(mb.frame_bias_acceleration(system, q, -3 * v, "tool"), 9 * bias, 1e-12)
    total = mb.frame_acceleration(system, q, v, a, "tool")
    close(total - bias, mb.jacobian(system, q, "tool") @ a, 1e-11)


def test_centripetal_acceleration():
    """A frame at distance r on a wheel that spins at w is accelerated by w^2 r towards the axle."""
    wheel = mb.models.pendulum(length=1.0).bodies[0]
    system = mb.System([wheel], frames={"rim": mb.Frame("bob", position=[2.0, 0, 0])})
    close(mb.frame_bias_acceleration(system, [0.0], [3.0], "rim"), [0, 0, 0, -18, 0, 0])
    close(mb.frame_acceleration(system, [0.0], [0.0], [5.0], "rim"), [0, 5, 0, 0, 0, -10])


def test_a_frame_is_where_it_was_put():
    system, rng = forest(8)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.sign(np.linalg.det(R))
    r, name = rng.normal(size=3), system.body_names[0]
    system = mb.System(system.bodies, frames={"f": mb.Frame(name, R, r)})
    q, v = state(system, rng)
    (Rb, pb), (Rf, pf) = mb.frame_pose(system, q, name), mb.frame_pose(system, q, "f")
    close(Rf, Rb @ R, 1e-13)
    close(pf, pb + Rb @ r, 1e-13)
    shift = phi(Rb @ r).T
    close(mb.frame_velocity(system, q, v, "f"), shift @ mb.frame_velocity(system, q, v, name), 1e-13)
    close(mb.jacobian(system, q, "f"), shift @ mb.jacobian(system, q, name), 1e-13)


def test_leading_axes_broadcast():
    system, rng = forest(12)
    q, v = state(system, rng, (4, 3))
    name = system.body_names[-1]
    whole = mb.frame_velocity(system, q, v, name)
    assert whole.shape == (4, 3, 6)
    assert mb.frame_pose(system, q, name).rotation.shape == (4, 3, 3, 3)
    assert mb.jacobian(system, q, name).shape == (4, 3, 6, system.nv)
    assert mb.jacobian(system, q[0, 0], name).shape == (6, system.nv)
    assert mb.frame_velocity(system, q[:0], v[:0], name).shape == (0, 3, 6)
    close(whole[2, 1], mb.frame_velocity(system, q[2, 1], v[2, 1], name), 1e-15)
    close(mb.frame_velocity(system, q[0, 0], v, name)[1, 2], mb.frame_velocity(system, q[0, 0], v[1, 2], name), 0)
    # arrays that are not contiguous, integers, lists
    close(mb.frame_velocity(system, q[::2, ::-1], v[::2, ::-1], name), whole[::2, ::-1], 1e-15)
    pendulum = mb.models.pendulum()
    assert mb.frame_velocity(pendulum, [0], [1], "bob").dtype == float


def test_rows_of_a_large_batch():
    system = mb.models.chain(20)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 1000, 20))
    J, V = mb.jacobian(system, q, "link_19"), mb.frame_velocity(system, q, v, "link_19")
    E = mb.kinetic_energy(system, q, v)
    for b in (0, 408, 409, 410, 999):
        close(J[b], mb.jacobian(system, q[b], "link_19"), 0)
        close(V[b], mb.frame_velocity(system, q[b], v[b], "link_19"), 0)
        close(E[b], mb.kinetic_energy(system, q[b], v[b]), 0)


def test_rotations_stay_rotations_along_a_deep_chain():
    """Rounding adds up along the path; it must not be amplified by every hinge."""
    for system in (mb.models.chain(3000), mb.models.random_tree(600, seed=1, branching=0.0)):
        rng = np.random.default_rng(0)
        R = mb.link_terms(system, *state(system, rng)).rotation
        assert np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max() < 1e-15 * system.n_bodies


def test_fixed_bodies_move_with_what_they_are_fixed_to():
    pendulum = mb.models.pendulum().bodies[0]
    pad = mb.Body("pad", np.zeros((6, 6)), mb.Hinge.fixed(), "bob", position=[1, 0, 0])
    post = mb.Body("post", pendulum.inertia, mb.Hinge.fixed())
    system = mb.System([pendulum, pad, post])
    assert (system.nv, system.n_bodies) == (1, 3)
    close(mb.frame_velocity(system, [0.0], [2.0], "pad"), [0, 2, 0, 0, 0, -2])
    close(mb.jacobian(system, [0.0], "post"), np.zeros((6, 1)))
    assert mb.jacobian(mb.System([post]), [], "post").shape == (6, 0)


@pytest.mark.parametrize(
    ("q", "v", "kind", "message"),
    [
        (np.zeros(7), np.zeros(6), ShapeError, r"q must have shape \(\.\.\., 6\) for system 'PUMA 560', got \(7,\)"),
        (np.zeros(6), np.zeros((2, 5)), ShapeError, r"v must have shape \(\.\.\., 6\).*got \(2, 5\)"),
        (np.zeros(()), np.zeros(6), ShapeError, "q must have shape"),
        ([[0.0], [1.0, 2.0]], np.zeros(6), ShapeError, "q must be an array of real numbers"),
        (np.zeros(6), ["fast"] * 6, ShapeError, "v must be an array of real numbers"),
        (np.zeros(6), np.zeros(6) + 1j, ShapeError, "v must be an array of real numbers, got one of dtype complex128$"),
        (np.zeros(6, object), np.zeros(6), ShapeError, r"numbers, got one of dtype object; astype\(float\) gives one"),
        (np.full(6, np.nan), np.zeros(6), ModelError, "q has entries that are not finite"),
        (np.zeros(6), np.full(6, np.inf), ModelError, "v has entries that are not finite"),
        (np.zeros((2, 6)), np.zeros((3, 6)), ShapeError, r"broadcast together: q \(2,\), v \(3,\)"),
    ],
)
def test_bad_arguments_are_refused_by_name(q, v, kind, message):
    system = mb.models.puma560()
    with pytest.raises(kind, match=message):
        mb.frame_velocity(system, q, v, "link_6")
    with pytest.raises(KfdynError):
        mb.kinetic_energy(system, q, v)
    with pytest.raises(KfdynError):
        mb.link_terms(system, q, v)
