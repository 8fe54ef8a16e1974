"""Bodies with a negative principal moment, accepted on request: an answer where 𝓜 ≻ 0, a refusal elsewhere."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from dense_dynamics import dense_bias, dense_mass_matrix, quick
from hypothesis import assume, given
from multibody_cases import close, forest, seeds, state

import kfdyn as kf
from kfdyn.dynamics import forward_dynamics, inverse_dynamics, mass_matrix, mass_matrix_inverse
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody import Body, Hinge, System
from kfdyn.spatial import IndefiniteInertiaWarning, inertia_parameters, spatial_inertia


def accepted(bodies, gravity=(0, 0, -9.81)):
    with pytest.warns(IndefiniteInertiaWarning):
        return System(bodies, gravity, indefinite_inertia="warn")


def indefinite_forest(seed, least, most):
    """A random forest; one of its bodies has a principal moment of −(least … most) times its largest."""
    system, rng = forest(seed)
    bodies = list(system.bodies)
    k = int(rng.integers(len(bodies)))
    mass, com, J_c = inertia_parameters(bodies[k].inertia)
    values, vectors = np.linalg.eigh(J_c)
    values[int(rng.integers(3))] = -rng.uniform(least, most) * values[2]
    bodies[k] = replace(bodies[k], inertia=spatial_inertia(mass, com, (vectors * values) @ vectors.T))
    return accepted(bodies, system.gravity), rng


@quick
@given(seeds)
def test_sums_of_inertias_take_it_as_it_is(seed):
    system, rng = indefinite_forest(seed, 0.01, 30.0)
    q, v = state(system, rng)
    a = rng.normal(size=system.nv)
    M = dense_mass_matrix(system, q)
    size = np.abs(M).max(initial=1.0)
    close(mass_matrix(system, q), M, size=size)
    close(inverse_dynamics(system, q, v, a), M @ a + dense_bias(system, q, v), size=size)
    close(kf.kinetic_energy(system, q, v), 0.5 * v @ M @ v, size=size)


@quick
@given(seeds)
def test_forward_dynamics_answers_where_the_mass_matrix_is_positive_definite(seed):
    """𝓜 = L D L*, so the filter's variances are all positive exactly then, whatever M(k) is."""
    system, rng = indefinite_forest(seed, 0.01, 1.0)
    q, v = state(system, rng)
    M, tau = dense_mass_matrix(system, q), rng.normal(size=system.nv)
    assume(system.nv > 0)
    values = np.linalg.eigvalsh(M)
    assume(values[0] > 1e-4 * values[-1])
    expected = np.linalg.solve(M, tau - dense_bias(system, q, v))
    for method in ("filter", "engine", "mass_matrix"):
        close(forward_dynamics(system, q, v, tau, method=method), expected)
    close(mass_matrix_inverse(system, q), np.linalg.inv(M))


@quick
@given(seeds)
def test_forward_dynamics_refuses_where_it_is_not(seed):
    system, rng = indefinite_forest(seed, 1.0, 1000.0)
    q, v = state(system, rng)
    values = np.linalg.eigvalsh(dense_mass_matrix(system, q))
    assume(values.size and values[0] < -1e-6 * np.abs(values).max())
    for method in ("filter", "engine"):
        with pytest.raises(SingularError, match=r"hinge '.*moves no positive inertia; body '.*', which it carries"):
            forward_dynamics(system, q, v, np.zeros(system.nv), method=method)
    with pytest.raises(SingularError):
        forward_dynamics(system, q, v, np.zeros(system.nv), method="mass_matrix")
    with pytest.raises(SingularError):
        mass_matrix_inverse(system, q)


@pytest.fixture(name="arm")
def fixture_arm():
    """Two links; the second is indefinite, about axes that its hinge does not turn: 𝓜 ≻ 0."""
    fine, odd = (spatial_inertia(1.0, [0, 0, -0.5], np.diag(J)) for J in ([0.1, 0.1, 0.1], [0.1, 0.1, -0.05]))
    return accepted(
        [
            Body("upper", fine, Hinge.revolute([0, 1, 0])),
            Body("lower", odd, Hinge.revolute([0, 1, 0]), "upper", position=[0, 0, -1.0]),
        ]
    )


def test_what_is_made_of_the_system_says_nothing_new(arm):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heavier = with_armature(arm, np.array([1.0, 2.0]))
        assert heavier.indefinite_inertia == "warn"
        np.testing.assert_allclose(
            mass_matrix(heavier, [0.1, 0.2]), mass_matrix(arm, [0.1, 0.2]) + np.diag([1.0, 2.0]), rtol=1e-14
        )
        out = kf.simulate(arm, [0.4, 0.2], [0.0, 0.0], np.linspace(0, 0.1, 5), damping=[0.1, 0.1])
    assert np.isfinite(out.q).all()


def test_nothing_is_drawn_from_a_covariance_that_is_none(arm):
    ss = kf.as_estimation(arm, [0.1, 0.2])
    said = r"Q of node 1 \('lower'\) is not positive semi-definite"
    with pytest.raises(ModelError, match=said):
        kf.draw(ss, np.random.default_rng(0))
    with pytest.raises(ModelError, match=said):
        kf.draw_posterior(kf.kalman_filter(ss, [0.0, 0.0]), np.random.default_rng(0))
    with pytest.raises(ModelError, match=said):
        kf.cross_check(arm, [0.1, 0.2], samples=1000)
    with pytest.raises(ModelError, match=said):
        kf.draw(pickle.loads(pickle.dumps(ss)), np.random.default_rng(0))
