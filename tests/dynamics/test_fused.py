"""The fused sweeps against the generic engine: every hinge, every lane count, odd batches, odd inputs."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.forward import FORWARD
from kfdyn.dynamics.inverse import INVERSE
from kfdyn.dynamics.mass_matrix import MASS_MATRIX
from kfdyn.dynamics.mass_matrix_inverse import MASS_MATRIX_INVERSE
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import SingularError
from kfdyn.spatial import spatial_inertia


def motion(system, rng, size):
    q = np.stack([system.random_configuration(rng) for _ in range(size)]) if size else np.zeros((0, system.nq))
    return q, *rng.normal(size=(3, size, system.nv)), rng.normal(size=(size, system.n_bodies, 6))


def swept(kernel, states):
    """What compiled code answers (size, ...), and which states it declines."""
    (answer,), declined = kernel.swept(states)
    return answer, declined


def engine(system, q, v, tau, force, gravity=None):
    """a by the generic filter and smoother on the assembled model, one state after the other."""
    out = np.empty(tau.shape)
    for b in range(len(q)):
        ss = kf.as_estimation(system, q[b], v[b], force[b], gravity)
        out[b] = kf.bryson_frazier(ss, kf.kalman_filter(ss, tau[b]), covariances=False).a
    return out


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-12 * max(1.0, np.abs(desired).max(initial=0.0)))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from([1, 2, 7, 8, 9, 17]))
def test_forward_is_the_engine(n, seed, size):
    """SKO:fd-gather-scatter on random trees of every hinge; the bound is 1e-12 of the largest acceleration."""
    system, rng = kf.models.random_tree(n, seed=seed), np.random.default_rng(seed)
    q, v, tau, _, force = motion(system, rng, size)
    states = States.of(system, q, v, force, tau=tau)
    a, flagged = swept(FORWARD, states)
    assert not flagged.any()
    # The engine's own rounding grows with the conditioning of 𝓜, so it is the residual that is held to 1e-12.
    residual = kf.mass_matrix(system, q) @ (a - engine(system, q, v, tau, force))[..., None]
    scale = np.abs(kf.mass_matrix(system, q)) @ np.abs(a)[..., None]
    np.testing.assert_array_less(np.abs(residual), 1e-12 * (scale.max(initial=0.0) + 1.0))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from([1, 2, 7, 8, 9, 17]))
def test_inverse_is_the_operators(n, seed, size):
    """R86:7-ID by the engine's φ* and φ: tau = H φ (M φ*(H*a + η) + ξ) + R a."""
    system, rng = kf.models.random_tree(n, seed=seed), np.random.default_rng(seed)
    q, v, _, a, force = motion(system, rng, size)
    tau, _ = swept(INVERSE, States.of(system, q, v, force, a=a))
    for b in range(size):
        ss = kf.as_estimation(system, q[b], v[b], force[b])
        op = kf.Operators(ss)
        alpha = op.phi.H @ (op.H.H @ a[b] + ss.eta)
        close(tau[b], op.H @ (op.phi @ (op.Q @ alpha + ss.xi)) + op.R @ a[b])


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from([1, 5, 8, 9]))
def test_mass_matrix_is_the_covariance_and_its_inverse_the_factors(n, seed, size):
    """ATBI:cov-T and SKO:mass-inverse, by the engine's operators on the assembled model."""
    system, rng = kf.models.random_tree(n, seed=seed), np.random.default_rng(seed)
    q = motion(system, rng, size)[0]
    states = States.of(system, q)
    M, _ = swept(MASS_MATRIX, states)
    inverse, flagged = swept(MASS_MATRIX_INVERSE, states)
    assert not flagged.any()
    np.testing.assert_array_equal(inverse, inverse.swapaxes(1, 2))
    for b in range(size):
        ss = kf.as_estimation(system, q[b])
        close(M[b], kf.Operators(ss).output_cov.dense())
        factor = kf.innovations_factor(ss)
        residual = np.abs(M[b] @ (inverse[b] - factor.inverse()))
        bound = 1e-12 * (np.abs(M[b]) @ np.abs(inverse[b])).max(initial=1.0)
        np.testing.assert_array_less(residual, bound)


@pytest.mark.parametrize("size", [0, 1, 7, 17, 4097])
def test_results_do_not_depend_on_batch_size_or_threads(size, monkeypatch):
    system, rng = kf.models.puma560(), np.random.default_rng(size)
    q, v, tau, _, _ = motion(system, rng, size)
    answers = []
    for workers in ("1", "2", "3"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", workers)
        answers.append(swept(FORWARD, States.of(system, q, v, tau=tau))[0])
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0], other)
    for b in range(0, size, 1000):
        alone = swept(FORWARD, States.of(system, q[b], v[b], tau=tau[b]))[0][0]
        np.testing.assert_array_equal(alone, answers[0][b])


def test_large_angles_are_reduced_exactly():
    system = kf.models.puma560()
    q = np.array([[1e3, -7e4, 3.3e5, 1e9, -2e12, 8.0], np.arange(6.0)])
    reduced = np.arctan2(np.sin(q), np.cos(q))
    tau = np.ones((2, 6))
    one = swept(FORWARD, States.of(system, q, tau=tau))[0]
    other = swept(FORWARD, States.of(system, reduced, tau=tau))[0]
    np.testing.assert_allclose(one, other, rtol=1e-9)  # the angles themselves carry 1e3·ε to 3e5·ε of rounding


def test_a_hinge_without_inertia_is_flagged_in_its_lane_only():
    """Two collinear hinges with nothing between them: singular at any angle, and flagged; with armature it is not."""
    heavy = spatial_inertia(1.0, [0.0, 0.2, 0.1], np.diag([0.3, 0.2, 0.4]))
    for armature, singular in ((0.0, True), (0.1, False)):
        bodies = [
            kf.Body("ring", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), armature=armature),
            kf.Body("arm", heavy, kf.Hinge.revolute([0, 0, 1]), parent="ring"),
        ]
        system = kf.System(bodies)
        q = np.random.default_rng(0).normal(size=(11, 2))
        _, flagged = swept(FORWARD, States.of(system, q, tau=np.ones((11, 2))))
        assert flagged.all() == singular
        if singular:
            with pytest.raises(SingularError, match="hinge 'ring'"):
                kf.forward_dynamics(system, q, None, np.ones((11, 2)))


@pytest.mark.parametrize("names", [("ring",), ("inner", "outer", "tool")])
def test_noise_left_by_earlier_hinges_is_no_inertia(names):
    """A rod that cannot be turned about itself, on a free hinge or on mass-less rings, at a general attitude."""
    rng = np.random.default_rng(4)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rod = np.zeros((6, 6))
    rod[:3, :3], rod[3:, 3:] = R @ np.diag([1.0, 1.0, 0.0]) @ R.T, 0.1 * np.eye(3)
    if len(names) == 1:
        system = kf.System([kf.Body("ring", rod, kf.Hinge.free())])
    else:
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        bodies = [
            kf.Body(name, rod if name == names[-1] else np.zeros((6, 6)), kf.Hinge.revolute(axis), parent=parent)
            for name, parent, axis in zip(names, (None, *names), axes)
        ]
        system = kf.System(bodies)
    q = np.stack([system.random_configuration(rng) for _ in range(20)])
    assert swept(FORWARD, States.of(system, q, tau=np.ones((20, system.nv))))[1].all()
    assert swept(MASS_MATRIX_INVERSE, States.of(system, q))[1].all()
    with pytest.raises(SingularError, match="hinge"):
        kf.forward_dynamics(system, q, None, np.ones((20, system.nv)))
    with pytest.raises(SingularError, match="hinge"):
        kf.mass_matrix_inverse(system, q)


@pytest.mark.parametrize("hinge", [kf.Hinge.fixed(), kf.Hinge.revolute([0, 0, 1])])
def test_noise_of_a_mass_that_slides_freely_is_no_inertia(hinge):
    """Three slides leave of a mass nothing but rounding, which an arm without mass then carries to the crank."""
    rng, nothing = np.random.default_rng(1), np.zeros((6, 6))
    for _ in range(20):
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        system = kf.System(
            [
                kf.Body("crank", nothing, kf.Hinge.revolute(rng.normal(size=3))),
                kf.Body("arm", nothing, hinge, parent="crank", position=[1.0, 10.0, 3.0], armature=np.ones(hinge.nv)),
                kf.Body("x", nothing, kf.Hinge.prismatic(axes[0]), parent="arm"),
                kf.Body("y", nothing, kf.Hinge.prismatic(axes[1]), parent="x"),
                kf.Body("z", 1e3 * np.diag([0, 0, 0, 1, 1, 1]), kf.Hinge.prismatic(axes[2]), parent="y"),
            ]
        )
        q = rng.normal(size=(4, system.nv)) * (np.arange(system.nv) <= hinge.nv)
        assert swept(FORWARD, States.of(system, q, tau=np.ones((4, system.nv))))[1].all()
        assert swept(MASS_MATRIX_INVERSE, States.of(system, q))[1].all()


@pytest.mark.slow
def test_a_very_long_chain_is_not_flagged():
    """The moment of inertia of all that is outboard grows with its number's cube; what moves along does not."""
    system, rng = kf.models.chain(60_000), np.random.default_rng(0)
    tau = rng.normal(size=system.nv)
    assert not swept(FORWARD, States.of(system, system.random_configuration(rng), tau=tau))[1].any()


@pytest.mark.slow
@pytest.mark.parametrize("axis", [[0, 1, 0], [0, 0, 1]])
def test_a_very_long_planar_chain_is_not_flagged(axis):
    """Out of its plane it moves as one body of 100,000 links, whose moment of inertia its hinges never feel."""
    link, n = spatial_inertia(1.0, [0.5, 0, 0], 0.1 * np.eye(3)), 100_000
    bodies = [
        kf.Body(f"{k}", link, kf.Hinge.revolute(axis), f"{k - 1}" if k else None, position=[1.0, 0, 0])
        for k in range(n)
    ]
    system, rng = kf.System(bodies), np.random.default_rng(0)
    q, v, tau = rng.uniform(-0.5, 0.5, n), rng.normal(size=n), rng.normal(size=n)
    a, singular = swept(FORWARD, States.of(system, q, v, tau=tau))
    assert not singular.any()
    expected = kf.forward_dynamics(system, q, v, tau, method="engine")
    assert np.abs(a[0] - expected).max() <= 1e-10 * np.abs(expected).max()


def test_noise_on_a_long_chain_is_no_inertia():
    """Beyond 1000 bodies the bound of rounding is summed up in the sweep: a ring on the next hinge's axis is found."""
    first, *rest = kf.models.chain(1500).bodies
    rng = np.random.default_rng(0)
    for armature, singular in ((0.0, True), (1.0, False)):
        ring = dataclasses.replace(first, name="ring", hinge_name="ring", inertia=np.zeros((6, 6)), armature=armature)
        second = dataclasses.replace(first, parent="ring", position=np.zeros(3), rotation=np.eye(3), armature=0.0)
        system = kf.System([ring, second, *rest])
        q = np.stack([system.random_configuration(rng) for _ in range(3)])
        a, flagged = swept(FORWARD, States.of(system, q, tau=np.ones((3, system.nv))))
        assert flagged.all() == singular and flagged.any() == singular
    expected = engine(system, q, np.zeros(a.shape), np.ones(a.shape), np.zeros((3, system.n_bodies, 6)))
    np.testing.assert_allclose(a, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
