"""Derivatives of the dynamics by complex-free means: central differences extrapolated, every hinge, plain numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.recursions.derivatives import FORWARD_DERIVATIVES, INVERSE_DERIVATIVES
from kfdyn.errors import KfdynError, ModelError, SingularError
from kfdyn.multibody.prepared import model_of


def differences(function, nv, h=2e-4):
    """Columns of the derivative of ``function(d)`` at d = 0, error O(h⁶): Richardson twice."""

    if not nv:  # a hinge that is fixed
        return np.zeros((0, 0))

    def central(h):
        return np.stack([(function(h * e) - function(-h * e)) / (2 * h) for e in np.eye(nv)], axis=-1)

    first, second, third = central(h), central(2 * h), central(4 * h)
    a, b = (4 * first - second) / 3, (4 * second - third) / 3
    return (16 * a - b) / 15


def assert_derivative(got, expected):
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-9 * max(1.0, np.abs(expected).max(initial=0.0)))


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_every_hinge_against_differences(n, seed):
    """THEORY section 16 for all hinges, in tangent coordinates; 2e-9 is what differences can tell."""
    system, rng = kf.models.random_tree(n, seed), np.random.default_rng(seed)
    q, nv = system.random_configuration(rng), system.nv
    v, u = rng.normal(size=(2, nv))

    def check(derivatives, function):
        by_q, by_v, by_u = derivatives(system, q, v, u)
        assert_derivative(by_q, differences(lambda d: function(system, kf.integrate(system, q, d), v, u), nv))
        assert_derivative(by_v, differences(lambda d: function(system, q, v + d, u), nv))
        assert_derivative(by_u, differences(lambda d: function(system, q, v, u + d), nv))

    check(kf.inverse_dynamics_derivatives, kf.inverse_dynamics)
    check(kf.forward_dynamics_derivatives, kf.forward_dynamics)


def test_one_is_minus_the_inverse_times_the_other():
    """∂a = −𝓜⁻¹ ∂τ at the same a, to rounding; batches, rows of a batch, at rest, other gravity."""
    system, rng = kf.models.random_tree(9, 3), np.random.default_rng(0)
    q = np.stack([system.random_configuration(rng) for _ in range(11)])
    v, tau = rng.normal(size=(2, 11, system.nv))
    for g in (None, rng.normal(size=3), rng.normal(size=(11, 3))):
        forward = kf.forward_dynamics_derivatives(system, q, v, tau, g)
        a = kf.forward_dynamics(system, q, v, tau, gravity=g)
        inverse = kf.inverse_dynamics_derivatives(system, q, v, a, g)
        for one, other in zip(forward, inverse[:2]):
            expected = -np.linalg.solve(inverse.dtau_da, other)
            np.testing.assert_allclose(one, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    for b in (0, 10):
        alone = kf.forward_dynamics_derivatives(system, q[b], v[b], tau[b], g[b])
        for one, other in zip(alone, forward):
            np.testing.assert_array_equal(one, other[b])
    rest = kf.forward_dynamics_derivatives(system, q[0], None, tau)
    assert rest.da_dq.shape == (11, system.nv, system.nv) and not rest.da_dv.any()


def test_a_robot_far_away_loses_no_digits():
    """Nothing depends on where the world's origin is: 1e6 m away the derivatives are the same to rounding."""
    system, rng = kf.models.free_flyer(), np.random.default_rng(0)
    q, (v, u) = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    far = q.copy()
    far[system.q_slice(system.hinge_names[0])][:3] += [1e6, -2e6, 3e6]
    for derivatives in (kf.forward_dynamics_derivatives, kf.inverse_dynamics_derivatives):
        for here, there in zip(derivatives(system, q, v, u), derivatives(system, far, v, u)):
            np.testing.assert_allclose(there, here, rtol=0, atol=1e-12 * np.abs(here).max())


def test_plain_numbers_do_not_show():
    system, rng = kf.models.random_tree(5, 1), np.random.default_rng(0)
    q, (v, u), nv = system.random_configuration(rng), rng.normal(size=(2, system.nv)), system.nv
    got, want = np.empty((2, 3, nv, nv)), np.empty((2, nv))
    for entry, k in ((INVERSE_DERIVATIVES, 2), (FORWARD_DERIVATIVES, 3)):
        more = (want[0],) if k == 3 else ()
        assert entry(model_of(system), q, v, u, system.gravity, *got[0, :k], *more) == 1
        assert entry.plain(model_of(system), q, v, u, system.gravity, *got[1, :k], *more) == 1
        np.testing.assert_allclose(got[0, :k], got[1, :k], rtol=0, atol=1e-11 * np.abs(got[0, :k]).max())


def test_what_is_wrong_is_named():
    arm = kf.models.chain(6)
    z = np.zeros(6)
    with pytest.raises(KfdynError, match="q must have shape"):
        kf.forward_dynamics_derivatives(arm, z[:5], z, z)
    with pytest.raises(ModelError, match="v has entries that are not finite"):
        kf.inverse_dynamics_derivatives(arm, z, z + np.nan, z)
    with pytest.raises(ModelError, match="too large for a double"):
        kf.inverse_dynamics_derivatives(arm, z, z + 1e200, z)
    light = kf.System(
        [*arm.bodies, kf.Body("tool", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), arm.body_names[-1])]
    )
    with pytest.raises(SingularError, match="hinge 'tool'"):
        kf.forward_dynamics_derivatives(light, np.zeros(7), None, np.zeros(7))
