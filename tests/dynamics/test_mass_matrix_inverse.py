"""The inverse mass matrix against dense inversion."""

import numpy as np
import pytest
from dense_dynamics import dense_mass_matrix, over, quick
from hypothesis import given
from multibody_cases import close, forest, seeds, state

import kfdyn as kf
from kfdyn.dynamics import mass_matrix_inverse
from kfdyn.dynamics.mass_matrix_inverse import METHODS
from kfdyn.errors import KfdynError, SingularError


@quick
@given(seeds)
@pytest.mark.parametrize("method", METHODS)
def test_three_ways(method, seed):
    """SKO:mass-inverse, SKO:innovations-inverse. Both invert Σ J*MJ + R."""
    system, rng = forest(seed)
    q, _ = state(system, rng)
    close(mass_matrix_inverse(system, q, method=method), np.linalg.inv(dense_mass_matrix(system, q)))


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("method", METHODS)
def test_batches(batch, method):
    system, rng = forest(11, n=8)
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, system.nq)
    inverse = mass_matrix_inverse(system, q, method=method)
    assert inverse.shape == (*batch, system.nv, system.nv)
    if inverse.size:
        close(inverse, np.linalg.inv(over(batch, lambda q: dense_mass_matrix(system, q), q)))


def test_symmetric_to_the_bit_and_zero_between_trees():
    system, rng = forest(2, n=9)
    assert (system.parent < 0).sum() > 1
    q, _ = state(system, rng, (200,))
    inverse = mass_matrix_inverse(system, q)
    np.testing.assert_array_equal(inverse, inverse.swapaxes(-1, -2))
    root = np.arange(system.n_bodies)
    while (system.parent[root] >= 0).any():
        root = np.where(system.parent[root] >= 0, system.parent[root], root)
    owner = np.repeat(root, np.diff(system.layout.v_start))
    assert not inverse[:, owner[:, None] != owner].any()


def test_refusals():
    system = kf.models.double_pendulum(mass=(1.0, 0.0))
    for method in METHODS:
        with pytest.raises(SingularError, match="hinge 'elbow': nothing outboard of it has mass"):
            mass_matrix_inverse(system, [0.3, 0.4], method=method)
    with pytest.raises(KfdynError, match="method must be 'innovations' or 'engine', not 'lapack'"):
        mass_matrix_inverse(system, [0.3, 0.4], method="lapack")
