"""The gradient of log det 𝓜 against differences of it, Richardson-extrapolated to 1e-10, for every kind of hinge."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.logdet_gradient import LOGDET_GRADIENT
from kfdyn.dynamics.logdet_gradient import _by_blocks as by_blocks
from kfdyn.dynamics.mass_matrix import VARIANCES
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import ShapeError, SingularError
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.spatial import spatial_inertia


def differences(system, q, h=2e-3):
    """Sixth-order central differences of log det of the dense mass matrix, along the axes of v: error h⁶ ≈ 1e-16."""

    def logdet(step):
        return np.linalg.slogdet(kf.mass_matrix(system, kf.integrate(system, q, step)))[1]

    out = np.empty(system.nv)
    for i, axis in enumerate(np.eye(system.nv)):
        values = [logdet(s * h * axis) - logdet(-s * h * axis) for s in (1, 2, 3)]
        out[i] = (45 * values[0] - 9 * values[1] + values[2]) / (60 * h)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_of_all_hinges(seed):
    """THEORY:fixman."""
    system = kf.models.random_tree(7, seed=seed)
    q = system.random_configuration(np.random.default_rng(seed))
    expected = differences(system, q)
    np.testing.assert_allclose(
        kf.mass_matrix_logdet_gradient(system, q), expected, atol=1e-9 * max(1, abs(expected).max())
    )


@pytest.mark.parametrize(
    "hinge",
    [
        kf.Hinge.universal([1, 0, 0], [0, 1, 0]),
        kf.Hinge.gimbal(),
        kf.Hinge.planar(),
        kf.Hinge.cylindrical([0, 1, 0]),
        kf.Hinge.helical([0, 0, 1], 0.3),
        kf.Hinge.prismatic([1, 0, 0]),
        kf.Hinge.ball(),
        kf.Hinge.free(),
    ],
    ids=lambda hinge: hinge.kind,
)
@pytest.mark.parametrize("where", ["at the base", "in the middle"])
def test_each_hinge_alone(hinge, where):
    """Several screws in one hinge do not all move along; that counts at the base too."""
    rng = np.random.default_rng(3)
    kinds = [hinge, kf.Hinge.revolute([1, 0, 0])] if where == "at the base" else [kf.Hinge.revolute([0, 1, 0]), hinge]
    system = chain_of([*kinds, kf.Hinge.revolute([0, 0.6, 0.8])], rng)
    q = system.random_configuration(rng)
    expected = differences(system, q)
    np.testing.assert_allclose(
        kf.mass_matrix_logdet_gradient(system, q), expected, atol=1e-9 * max(1, abs(expected).max())
    )


def chain_of(hinges, rng):
    bodies = []
    for k, hinge in enumerate(hinges):
        A = rng.normal(size=(3, 3))
        inertia = spatial_inertia(rng.uniform(0.5, 2), rng.normal(size=3), 0.1 * A @ A.T + 3 * np.eye(3))
        parent = f"link{k - 1}" if k else None
        bodies.append(kf.Body(f"link{k}", inertia, hinge, parent, position=rng.normal(size=3)))
    return kf.System(bodies)


def test_batches_and_the_first_joint():
    arm = kf.models.puma560()
    q = np.random.default_rng(0).uniform(-2, 2, size=(3, 4, 6))
    g = kf.mass_matrix_logdet_gradient(arm, q)
    assert g.shape == q.shape
    np.testing.assert_allclose(g[1, 2], kf.mass_matrix_logdet_gradient(arm, q[1, 2]), atol=1e-12)
    np.testing.assert_allclose(g[..., 0], 0, atol=1e-12)  # turning the whole arm changes nothing
    with pytest.raises(ShapeError):
        kf.mass_matrix_logdet_gradient(arm, np.zeros(5))


def scaled(seed, mass):
    system = kf.models.random_tree(9, seed)
    heavy = [dataclasses.replace(b, inertia=mass * b.inertia, armature=mass * b.armature) for b in system.bodies]
    return kf.System(heavy, system.gravity)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_dof_by_dof_as_hinge_by_hinge(seed, mass):
    """Compiled, screws of one hinge are a chain on mass-less bodies; the engine takes the hinge as a whole."""
    system = scaled(seed, mass)
    rng = np.random.default_rng(seed)
    q = np.stack([system.random_configuration(rng) for _ in range(9)])
    got, (expected,) = kf.mass_matrix_logdet_gradient(system, q), by_blocks(States.of(system, q)).values()
    bound = 1e-11 * max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=bound)
    M = kf.mass_matrix(system, q)
    np.testing.assert_allclose(kf.mass_matrix_logdet(system, q), np.linalg.slogdet(M)[1], rtol=0, atol=1e-10)
    plain = np.empty((2, *got.shape))
    for entry, out in zip((LOGDET_GRADIENT.entry, VARIANCES.entry), plain):
        assert entry.plain(model_of(system), q, out) == 1
    np.testing.assert_allclose(plain[0], got, rtol=0, atol=bound)
    np.testing.assert_allclose(np.log(plain[1]).sum(axis=-1), kf.mass_matrix_logdet(system, q), rtol=0, atol=1e-10)
    for i in (0, 8):  # alone as in a batch, to the bit
        np.testing.assert_array_equal(kf.mass_matrix_logdet_gradient(system, q[i]), got[i])
        np.testing.assert_array_equal(kf.mass_matrix_logdet(system, q[i]), kf.mass_matrix_logdet(system, q)[i])


@pytest.mark.parametrize("f", [kf.mass_matrix_logdet, kf.mass_matrix_logdet_gradient])
def test_a_hinge_that_moves_nothing_is_named(f):
    hinge = kf.Hinge.revolute([0, 0, 1])
    system = kf.System([kf.Body("arm", np.eye(6), hinge), kf.Body("tool", np.zeros((6, 6)), hinge, "arm")])
    for q in (np.zeros(2), np.zeros((3, 2))):
        with pytest.raises(SingularError, match="tool"):
            f(system, q)
    with pytest.raises(kf.errors.KfdynError, match="q"):
        f(system, np.array([np.nan, 0.0]))
