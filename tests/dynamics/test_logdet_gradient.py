"""The gradient of log det 𝓜 against differences of it, Richardson-extrapolated to 1e-10, for every kind of hinge."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ShapeError
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
