"""Terms of the equations of motion: R86:3.1, R86:3.5, R86:4.1-4.3, R86:4.4, R86:5.6."""

import numpy as np
import pytest
from hypothesis import given, settings
from multibody_cases import close, derivative, forest, newton_euler, seeds, skew, state

import kfdyn.multibody as mb
from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import inertia_parameters, spatial_inertia


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_inertia_in_world_orientation(seed):
    """R86:3.1: M = [[J, m p~], [-m p~, m 1]], symmetric to the bit, equal to the body's turned by R."""
    system, rng = forest(seed)
    q, _ = state(system, rng)
    terms = mb.link_terms(system, q)
    for k, body in enumerate(system.bodies):
        M, R = terms.inertia[k], terms.rotation[k]
        assert (M == M.T).all()
        m, com, J_com = inertia_parameters(body.inertia)
        close(M, spatial_inertia(m, R @ com, R @ J_com @ R.T), 1e-13)
        pose = mb.frame_pose(system, q, body.name)
        close(R, pose.rotation, 1e-14)
        close(terms.position[k], pose.position, 1e-14)
        p = system.parent[k]
        close(terms.l[k], terms.position[k] - (terms.position[p] if p >= 0 else 0), 1e-14)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_bias_force_is_what_changes_the_momentum(seed):
    """R86:4.4: along v = const, d/dt of a body's momentum about a fixed point is M alpha + xi there."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    force = rng.normal(size=(system.n_bodies, 6))
    here = mb.link_terms(system, q, v, external_forces=force)

    def momentum(t):
        terms = mb.link_terms(system, mb.integrate(system, q, t * v), v)
        h = np.einsum("kij,kj->ki", terms.inertia, terms.velocity)
        h[:, :3] += np.cross(terms.position - here.position, h[:, 3:])
        return h

    rate = derivative(momentum)
    for k, name in enumerate(system.body_names):
        alpha = mb.frame_bias_acceleration(system, q, v, name)
        expected = here.inertia[k] @ alpha + here.xi[k] + force[k]
        close(rate[k], expected)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_power_is_the_rate_of_energy(seed):
    """tau of Newton-Euler (R86:4.1-4.3) times v is d/dt (KE + PE), for every hinge, custom ones too."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    a, force = rng.normal(size=system.nv), rng.normal(size=(system.n_bodies, 6))
    tau = newton_euler(system, mb.link_terms(system, q, v, external_forces=force), a)

    def energy(t):
        there = mb.integrate(system, q, t * v + 0.5 * t * t * a)
        return mb.kinetic_energy(system, there, v + t * a) + mb.potential_energy(system, there)

    pushed = sum(mb.frame_velocity(system, q, v, b) @ f for b, f in zip(system.body_names, force))
    close(tau @ v + pushed, derivative(energy), size=np.abs(tau * v).sum() + energy(0))


def test_gravity_enters_at_the_roots():
    system, rng = forest(21, n=9)
    q, v = state(system, rng)
    g = rng.normal(size=3)
    still, pulled = (mb.link_terms(system, q, v, gravity=x) for x in ((0, 0, 0), g))
    for k, p in enumerate(system.parent):
        close(pulled.eta[k] - still.eta[k], np.r_[0, 0, 0, -g] if p < 0 else np.zeros(6), 1e-13)
    close(mb.link_terms(system, q, v).eta, mb.link_terms(system, q, v, gravity=system.gravity).eta, 0)


def test_at_rest_nothing_but_gravity_is_left():
    system, rng = forest(22)
    q, _ = state(system, rng)
    terms = mb.link_terms(system, q, gravity=(0, 0, 0))
    for x in (terms.velocity, terms.xi, terms.eta):
        assert not x.any()


def test_xi_of_a_spinning_body():
    """The gyroscopic torque w x J w and the centrifugal force m w x (w x p), by hand."""
    J, p, m = np.diag([1.0, 2.0, 2.5]), np.array([0.3, 0, 0]), 2.0
    body = mb.Body("b", spatial_inertia(m, p, J), mb.Hinge.ball())
    system = mb.System([body])
    w = np.array([1.0, 2.0, 3.0])
    about_point = J - m * skew(p) @ skew(p)
    xi = mb.link_terms(system, system.neutral(), w).xi[0]
    close(xi, np.r_[np.cross(w, about_point @ w), m * np.cross(w, np.cross(w, p))], 1e-14)


def test_batches_and_bad_shapes():
    system, rng = forest(6, n=7)
    q, v = state(system, rng, (3, 2))
    force = rng.normal(size=(2, 7, 6))
    terms = mb.link_terms(system, q, v, force)
    assert terms.H.shape == (3, 2, system.nv, 6)
    assert terms.xi.shape == terms.eta.shape == terms.velocity.shape == (3, 2, 7, 6)
    assert terms.inertia.shape == (3, 2, 7, 6, 6)
    one = mb.link_terms(system, q[2, 1], v[2, 1], force[1])
    for whole, single in zip(terms, one):
        close(whole[2, 1], single, 1e-15)
    assert mb.link_terms(system, q[0, 0], gravity=np.zeros((4, 3))).eta.shape == (4, 7, 6)
    with pytest.raises(ShapeError, match=r"external_forces must have shape \(\.\.\., 7, 6\)"):
        mb.link_terms(system, q, v, np.zeros((6, 6)))
    with pytest.raises(ModelError, match="external_forces has entries"):
        mb.link_terms(system, q, v, np.full((7, 6), np.nan))
    with pytest.raises(ShapeError, match="gravity"):
        mb.link_terms(system, q, v, gravity=(0, 1))
