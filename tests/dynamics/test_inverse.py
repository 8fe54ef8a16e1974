"""Inverse dynamics and bias forces: sweeps against sums written out, and against work and energy."""

import numpy as np
import pytest
from dense_dynamics import dense_bias, dense_mass_matrix, over, quick
from hypothesis import given
from multibody_cases import close, derivative, forest, newton_euler, phi, seeds, state

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics import bias_forces, inverse_dynamics
from kfdyn.errors import KfdynError, ModelError, ShapeError


@quick
@given(seeds)
@pytest.mark.parametrize("method", ["newton_euler", "operators"])
def test_equation_of_motion(method, seed):
    """R86:7-ID, R86:7.1, SKO:eom, SKO:ne-id, PART:1. tau = 𝓜 a + c, body by body and by operators."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    a, force, g = rng.normal(size=system.nv), rng.normal(size=(system.n_bodies, 6)), rng.normal(size=3)
    expected = dense_mass_matrix(system, q) @ a + dense_bias(system, q, v, force, g)
    tau = inverse_dynamics(system, q, v, a, force, g, method=method)
    close(tau, expected)
    close(tau, newton_euler(system, mb.link_terms(system, q, v, force, g), a))
    close(bias_forces(system, q, v, force, g), dense_bias(system, q, v, force, g))


@quick
@given(seeds)
def test_sums_of_section_7(seed):
    """R86:7.2, R86:7.3, R86:7.6-7.8, R86:7.10-7.11. The sums of the report, transition matrix by transition matrix."""
    system, rng = forest(seed, n=int(seed % 6) + 1)
    q, v = state(system, rng)
    a = rng.normal(size=system.nv)
    terms = mb.link_terms(system, q, v)
    n, own = system.n_bodies, [system.v_slice(name) for name in system.hinge_names]
    above = []  # above[k]: k and its ancestors
    for k in range(n):
        path = [k]
        while (p := int(system.parent[path[-1]])) >= 0:
            path.append(p)
        above.append(path)

    def Phi(i, j):  # from j to its ancestor i, by the semigroup property
        return phi(terms.position[j] - terms.position[i])

    H = [terms.H[own[k]] for k in range(n)]
    push = [H[k].T @ a[own[k]] + terms.eta[k] for k in range(n)]
    costate = [sum(Phi(i, j).T @ push[i] for i in above[j]) for j in range(n)]  # (7.2)
    below = [[j for j in range(n) if k in above[j]] for k in range(n)]
    x = [sum(Phi(k, j) @ (terms.inertia[j] @ costate[j] + terms.xi[j]) for j in below[k]) for k in range(n)]  # (7.3)

    def r(k, i):  # (7.7): over the bodies that both carry
        both = [j for j in below[k] if j in below[i]]
        return sum((Phi(k, j) @ terms.inertia[j] @ Phi(i, j).T for j in both), np.zeros((6, 6)))

    tau, bias = inverse_dynamics(system, q, v, a), bias_forces(system, q, v)
    M = kf.dynamics.mass_matrix(system, q)
    for k in range(n):
        same = sum(r(k, i) @ push[i] for i in range(n)) + sum(Phi(k, j) @ terms.xi[j] for j in below[k])
        close(x[k], same)  # (7.6)
        close(H[k] @ x[k] + system.armature[own[k]] * a[own[k]], tau[own[k]])
        V = sum(H[k] @ r(k, i) @ terms.eta[i] for i in range(n)) + sum(H[k] @ Phi(k, j) @ terms.xi[j] for j in below[k])
        close(V, bias[own[k]])  # (7.11)
        for i in range(n):
            rotor = np.diag(system.armature[own[k]]) if i == k else 0.0
            close(H[k] @ r(k, i) @ H[i].T + rotor, M[own[k], own[i]])  # (7.11)
            if i in above[k]:
                close(r(k, i), r(k, k) @ Phi(i, k).T)  # (7.8)


@quick
@given(seeds)
def test_external_forces_act_through_jacobians(seed):
    system, rng = forest(seed)
    q, v = state(system, rng)
    force = rng.normal(size=(system.n_bodies, 6))
    share = sum(mb.jacobian(system, q, name).T @ force[k] for k, name in enumerate(system.body_names))
    close(bias_forces(system, q, v) - bias_forces(system, q, v, force), share)


@quick
@given(seeds)
def test_gravity_is_the_gradient_of_potential_energy(seed):
    system, rng = forest(seed)
    q, _ = state(system, rng)
    for i in range(system.nv):
        step = np.eye(system.nv)[i]
        slope = derivative(lambda h, d=step: mb.potential_energy(system, mb.integrate(system, q, h * d)))
        close(bias_forces(system, q)[i], slope, tol=1e-9, size=system.mass)  # a derivative keeps nine digits


@quick
@given(seeds)
def test_power_is_the_rate_of_energy(seed):
    """v·tau is what kinetic and potential energy gain along the motion that tau causes."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    a = rng.normal(size=system.nv)

    def energy(h):
        moved = mb.integrate(system, q, h * v + 0.5 * h**2 * a)  # q(t) to second order, enough for a first derivative
        return mb.kinetic_energy(system, moved, v + h * a) + mb.potential_energy(system, moved)

    scale = mb.kinetic_energy(system, q, v) + system.mass
    close(v @ inverse_dynamics(system, q, v, a), derivative(energy), tol=1e-8, size=scale)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("method", ["newton_euler", "operators"])
def test_batches(batch, method):
    system, rng = forest(11, n=8)
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, system.nq)
    v, a = rng.normal(size=(2, *batch, system.nv))
    tau = inverse_dynamics(system, q, v, a, method=method)
    assert tau.shape == bias_forces(system, q, v).shape == (*batch, system.nv)
    if tau.size:
        close(tau, over(batch, lambda *one: inverse_dynamics(system, *one, method=method), q, v, a), tol=1e-13)


def test_hinges_without_inertia_are_allowed():
    system = kf.models.double_pendulum(mass=(1.0, 0.0))
    close(inverse_dynamics(system, [0.3, 0.4], None, [1.0, 1.0]), [1.0 + 9.81 * np.sin(0.3), 0.0])


def test_refusals():
    system = kf.models.puma560()
    with pytest.raises(ShapeError, match=r"^a must have shape \(\.\.\., 6\)"):
        inverse_dynamics(system, np.zeros(6), None, np.zeros(5))
    with pytest.raises(ModelError, match=r"^gravity has entries that are not finite"):
        bias_forces(system, np.zeros(6), gravity=[0, 0, np.inf])
    with pytest.raises(KfdynError, match="inverse_dynamics: method must be 'newton_euler' or 'operators'"):
        inverse_dynamics(system, np.zeros(6), None, np.zeros(6), method="rnea")
