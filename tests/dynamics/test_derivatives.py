"""Derivatives of the dynamics by complex-free means: central differences extrapolated, every hinge, plain numbers."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.recursions.slopes.derivatives_forward import FORWARD_DERIVATIVES
from kfdyn.dynamics.recursions.slopes.derivatives_inverse import INVERSE_DERIVATIVES
from kfdyn.errors import KfdynError, ModelError, ShapeError, SingularError
from kfdyn.multibody.calls.packed_model import model_of


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
    for entry, k in ((INVERSE_DERIVATIVES, 3), (FORWARD_DERIVATIVES, 3)):
        more = (want[0],) if entry is FORWARD_DERIVATIVES else ()
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


CALLS = pytest.mark.parametrize("call", [kf.forward_dynamics_derivatives, kf.inverse_dynamics_derivatives])


def some_states(system, lead, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(lead)))]).reshape((*lead, system.nq))
    return q, *rng.normal(size=(2, *lead, system.nv))


@CALLS
@pytest.mark.parametrize("lead", [(), (5,), (3, 7)])
def test_out_holds_the_answer(call, lead, monkeypatch):
    """Plain arrays are written to straight away, others by way of new ones; an earlier answer will do."""
    system = kf.models.random_tree(7, 2)
    state = some_states(system, lead)
    expected, earlier = call(system, *state), call(system, *some_states(system, lead, 1))
    for out in (
        [np.zeros((*lead, system.nv, 2 * system.nv))[..., ::2] for _ in range(3)],
        np.empty((3, *lead, system.nv, system.nv)),
        earlier,
    ):
        got = call(system, *state, out=out)
        assert type(got) is type(expected)
        for one, where, other in zip(got, out, expected):
            assert np.shares_memory(one, where)
            np.testing.assert_array_equal(where, other)
    monkeypatch.setattr(np, "copyto", None)
    call(system, *state, out=earlier)


@CALLS
def test_out_that_overlaps(call):
    """Arguments may be overwritten, since they are read first; matrices may not lie in each other."""
    system = kf.models.chain(4)
    q, v, u = some_states(system, (4,))
    expected = call(system, q, v, u)
    room = np.zeros((3, 4, 4, 4))
    room[1, 0] = u
    for got, other in zip(call(system, q, v, room[1, 0], out=room), expected):
        np.testing.assert_array_equal(got, other)
    with pytest.raises(ModelError, match="the three arrays must not overlap"):
        call(system, q, v, u, out=[room[0], room[1], room[0]])
    for wrong in (room[:2], 3):
        with pytest.raises(ShapeError, match="out must be three arrays"):
            call(system, q, v, u, out=wrong)
    with pytest.raises(ShapeError, match="out must have the shape of the answer"):
        call(system, q, v, u, out=[room[0], room[1], room[2, :3]])


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 14), st.integers(0, 10**6))
def test_matrices_among_the_answers(n, seed):
    """𝓜 and 𝓜⁻¹ are symmetric to the bit and those of the functions that give nothing else; several trees, too."""
    system = kf.models.random_tree(n, seed, trees=min(n, 1 + seed % 3))
    q, v, u = some_states(system, (9,), seed)
    by_a = kf.inverse_dynamics_derivatives(system, q, v, u).dtau_da
    np.testing.assert_array_equal(by_a, by_a.mT)
    M = kf.mass_matrix(system, q)
    np.testing.assert_allclose(by_a, M, rtol=0, atol=1e-12 * np.abs(M).max(initial=1.0))
    np.testing.assert_array_equal(by_a == 0, M == 0)
    forward = kf.forward_dynamics_derivatives(system, q, v, u)
    np.testing.assert_array_equal(forward.da_dtau, forward.da_dtau.mT)
    np.testing.assert_array_equal(forward.da_dtau, kf.mass_matrix_inverse(system, q))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 30), st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
@example(1, 23754, 1e-6)  # one hinge, whose ∂a/∂v is 0
def test_forward_from_inverse_on_ragged_trees(n, seed, mass):
    """∂a/∂q = −𝓜⁻¹ ∂τ/∂q, by dense algebra, whatever the tree and the unit of mass; alone as in a batch, to the bit."""
    system = kf.models.random_tree(n, seed, trees=min(n, 1 + seed % 2))
    heavy = [dataclasses.replace(b, inertia=mass * b.inertia, armature=mass * b.armature) for b in system.bodies]
    system = kf.System(heavy, system.gravity)
    q, v, a = some_states(system, (9,), seed)
    tau = kf.inverse_dynamics(system, q, v, a)
    inverse, forward = (
        kf.inverse_dynamics_derivatives(system, q, v, a),
        kf.forward_dynamics_derivatives(system, q, v, tau),
    )
    M = inverse.dtau_da
    # Two different eliminations differ by up to eps times the condition number.
    bound = max(1e-10, 4 * np.finfo(float).eps * np.linalg.cond(M).max()) if system.nv else 0.0
    # Where all terms cancel, as those of one hinge do in ∂a/∂v, what is left is rounding of terms as large as a, v.
    rate = np.abs(v).max(initial=0.0)
    for one, other, term in zip(forward, inverse[:2], (max(np.abs(a).max(initial=0.0), rate**2), rate)):
        expected = -np.linalg.solve(M, other)
        np.testing.assert_allclose(one, expected, rtol=0, atol=bound * np.abs(expected).max(initial=term))
    for derivatives, batch, u in (
        (kf.forward_dynamics_derivatives, forward, tau),
        (kf.inverse_dynamics_derivatives, inverse, a),
    ):
        for one, other in zip(derivatives(system, q[4], v[4], u[4]), batch):
            np.testing.assert_array_equal(one, other[4])


@pytest.mark.parametrize("offset", [0, 1, 6])
@pytest.mark.parametrize("derivatives", [kf.forward_dynamics_derivatives, kf.inverse_dynamics_derivatives])
def test_batches_larger_than_caches_have_the_bits_of_small_ones(derivatives, offset, monkeypatch):
    system, rng = kf.models.random_tree(36, seed=5), np.random.default_rng(offset)
    size = 2**22 // (3 * system.nv**2)  # 32 MB of results
    q = np.stack([system.random_configuration(rng) for _ in range(size)])
    v, u = rng.normal(size=(2, size, system.nv))
    length = size * system.nv**2
    room = np.full((3, length + 16), -7.0)
    out = [x[offset : offset + length].reshape(size, system.nv, system.nv) for x in room]
    small = [np.concatenate(x) for x in zip(*(derivatives(system, q[i : i + 50], v[i : i + 50], u[i : i + 50])
                                              for i in range(0, size, 50)))]  # fmt: skip
    for threads in ("1", "2"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", threads)
        room[:] = -7.0
        derivatives(system, q, v, u, out=out)
        for one, other, around in zip(out, small, room):
            np.testing.assert_array_equal(one, other)
            assert (around[:offset] == -7.0).all() and (around[offset + length :] == -7.0).all()
    for b in (0, size // 2, size - 1):
        for one, other in zip(derivatives(system, q[b], v[b], u[b]), out):
            np.testing.assert_array_equal(one, other[b])
