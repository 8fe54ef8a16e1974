"""The mass matrix three ways, its trace, determinant and zeros, against kinetic energy written out."""

import numpy as np
import pytest
from dense_dynamics import dense_mass_matrix, over, quick
from hypothesis import given
from multibody_cases import close, forest, phi, seeds, state

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics import (
    as_estimation,
    composite_inertias,
    mass_matrix,
    mass_matrix_logdet,
    mass_matrix_sparsity,
    mass_matrix_trace,
)
from kfdyn.dynamics.mass_matrix import METHODS
from kfdyn.errors import KfdynError, ModelError, ShapeError, SingularError


@quick
@given(seeds)
@pytest.mark.parametrize("method", METHODS)
def test_four_ways(method, seed):
    """SKO:mass-algorithm, SKO:ne-columns, PART:1, R86:7.10-7.11. All give Σ J*MJ + R."""
    system, rng = forest(seed)
    q, _ = state(system, rng)
    close(mass_matrix(system, q, method=method), dense_mass_matrix(system, q))


@quick
@given(seeds)
def test_symmetric_positive_definite_and_sparse(seed):
    """SKO:mass-sparsity. Zero to the bit exactly where neither hinge carries the other."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    M = mass_matrix(system, q)
    np.testing.assert_array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min(initial=np.inf) > 0
    close(0.5 * v @ M @ v, mb.kinetic_energy(system, q, v))
    may = mass_matrix_sparsity(system)
    assert not M[~may].any()
    moves = np.array([mb.jacobian(system, q, name).any(axis=0) for name in system.body_names])
    np.testing.assert_array_equal(may, (moves[:, :, None] & moves[:, None, :]).any(axis=0))  # some body feels both


@quick
@given(seeds)
def test_decomposition(seed):
    """SKO:mass-decomp, SKO:trace, R86:7.9. 𝓜 = HℛH* + Hφ̃ℛH* + its transpose + R, parts that do not overlap."""
    system, rng = forest(seed)
    q, _ = state(system, rng)
    ss = as_estimation(system, q)
    op = kf.Operators(ss)
    H, R_c = op.H.dense(), composite_inertias(ss).dense()
    upper = H @ op.phi_strict.dense() @ R_c @ H.T
    diagonal = H @ R_c @ H.T + op.R.dense()
    close(mass_matrix(system, q), diagonal + upper + upper.T)
    assert not ((diagonal != 0) & (upper != 0)).any() and not ((upper != 0) & (upper.T != 0)).any()
    close(mass_matrix_trace(system, q), np.trace(dense_mass_matrix(system, q)))


@quick
@given(seeds)
def test_composite_inertia_is_one_body(seed):
    """R86:7.9. ℛ(k) is the inertia of all that k carries, as if frozen: mass and momentum of one rigid body."""
    system, rng = forest(seed)
    q, _ = state(system, rng)
    terms = mb.link_terms(system, q)
    blocks = composite_inertias(as_estimation(system, q))
    for k in range(system.n_bodies):
        carried = [j for j in range(system.n_bodies) if _carries(system, k, j)]
        shift = [phi(terms.position[j] - terms.position[k]) for j in carried]
        close(blocks[k], sum(S @ terms.inertia[j] @ S.T for S, j in zip(shift, carried)))
        close(blocks[k][3:, 3:], system.layout.mass[carried].sum() * np.eye(3))


def _carries(system, k, j):
    while j >= 0 and j != k:
        j = int(system.parent[j])
    return j == k


@quick
@given(seeds)
def test_determinant(seed):
    """SKO:determinant. Σ log det D(k)."""
    system, rng = forest(seed)
    q, _ = state(system, rng, (3,))
    sign, expected = np.linalg.slogdet(over((3,), lambda q: dense_mass_matrix(system, q), q))
    assert (sign == 1).all()
    close(mass_matrix_logdet(system, q), expected, size=system.nv)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("method", METHODS)
def test_batches(batch, method):
    system, rng = forest(11, n=8)
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, system.nq)
    M = mass_matrix(system, q, method=method)
    assert M.shape == (*batch, system.nv, system.nv)
    assert np.shape(mass_matrix_trace(system, q)) == np.shape(mass_matrix_logdet(system, q)) == batch
    if M.size:
        close(M, over(batch, lambda q: dense_mass_matrix(system, q), q))
        close(mass_matrix_trace(system, q), np.trace(M, axis1=-2, axis2=-1))


def test_more_configurations_than_one_part():
    system, rng = forest(5, n=7)
    q, _ = state(system, rng, (700,))
    M = mass_matrix(system, q)
    for b in (0, 584, 585, 699):
        np.testing.assert_array_equal(M[b], mass_matrix(system, q[b]))


def test_hinges_without_inertia():
    """The composite walk inverts nothing; the determinant does and names the hinge."""
    system = kf.models.double_pendulum(mass=(1.0, 0.0))
    np.testing.assert_allclose(mass_matrix(system, [0.3, 0.4]), [[1.0, 0.0], [0.0, 0.0]], atol=1e-15)
    with pytest.raises(SingularError, match="hinge 'elbow': nothing outboard of it has mass"):
        mass_matrix_logdet(system, [0.3, 0.4])


def test_refusals():
    system = kf.models.puma560()
    with pytest.raises(ShapeError, match="q must have shape"):
        mass_matrix(system, np.zeros(7))
    with pytest.raises(ModelError, match="not finite"):
        mass_matrix_trace(system, np.full(6, np.inf))
    with pytest.raises(KfdynError, match="mass_matrix: method must be 'composite', 'columns' or 'operator'"):
        mass_matrix(system, np.zeros(6), method="crba")


def test_composite_inertias_of_a_system_say_what_is_wanted():
    with pytest.raises(ModelError, match=r"takes a model, not a system: composite_inertias\(as_estimation"):
        kf.composite_inertias(kf.models.puma560())
