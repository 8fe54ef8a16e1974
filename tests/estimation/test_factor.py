"""The innovations factor against dense factorisations of 𝓜."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import cases, close, fast, random_case

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation import InnovationsFactor

methods = st.sampled_from(["block", "univariate"])
batches = st.sampled_from([(), (1,), (17,), (2, 3), (0,)])


@given(cases(), methods, batches)
@fast
def test_products_and_solutions(case, method, batch):
    """SKO:mass-inverse, SKO:innovations. solve, matvec, quadratic and logdet against dense linear algebra."""
    F, mass_matrix = kf.innovations_factor(case.ss, method=method), case.dense().output_cov
    x = np.random.default_rng(0).normal(size=(*batch, len(mass_matrix)))
    solution = np.linalg.solve(mass_matrix, x[..., None])[..., 0]
    close(F.matvec(x), x @ mass_matrix)
    close(F.solve(x), solution)
    close(F.solve(F.matvec(x)), x)
    close(F.quadratic(x), (x * solution).sum(-1))
    assert F.solve(x).shape == F.matvec(x).shape == x.shape
    assert np.shape(F.quadratic(x)) == batch
    close(F.logdet(), np.linalg.slogdet(mass_matrix)[1])


@given(cases(), methods, batches)
@fast
def test_whitening(case, method, batch):
    """C^-1 and C are each other's inverse, ‖C^-1T‖² = T*𝓜^-1T, and C C* = 𝓜 with C read off column by column."""
    F, mass_matrix = kf.innovations_factor(case.ss, method=method), case.dense().output_cov
    x = np.random.default_rng(0).normal(size=(*batch, len(mass_matrix)))
    close(F.whiten(F.unwhiten(x)), x)
    close(F.unwhiten(F.whiten(x)), x)
    close((F.whiten(x) ** 2).sum(-1), F.quadratic(x))
    C = F.unwhiten(np.eye(len(mass_matrix))).T
    close(C @ C.T, mass_matrix)
    C_inverse = F.whiten(np.eye(len(mass_matrix))).T
    close(C_inverse @ mass_matrix @ C_inverse.T, np.eye(len(mass_matrix)))
    # in gather order C is lower triangular: an innovation touches no earlier output
    rank = np.argsort(case.ss.tree.order)
    node = np.repeat(np.arange(len(case.ss)), case.ss.m)
    later = rank[node][:, None] < rank[node][None, :]
    assert not C[later].any()


class KnownNormals(np.random.Generator):
    """A generator whose standard normals are given: the samplers become linear maps that can be read off."""

    def __new__(cls, normals):
        return super().__new__(cls, np.random.PCG64(0))

    def __init__(self, normals):
        super().__init__(np.random.PCG64(0))
        self.normals = normals

    def standard_normal(self, size=None):
        assert self.normals.shape == (size if isinstance(size, tuple) else (size,))
        return self.normals.copy()


@given(cases(), methods)
@fast
def test_samplers_are_square_roots(case, method):
    """Exactly, not statistically: the linear maps of the samplers satisfy C C* = 𝓜 and C C* = 𝓜^-1."""
    F, mass_matrix = kf.innovations_factor(case.ss, method=method), case.dense().output_cov
    unit = np.eye(len(mass_matrix))
    C = F.sample(KnownNormals(unit), len(unit)).T
    close(C @ C.T, mass_matrix)
    B = F.sample_inverse(KnownNormals(unit), len(unit)).T
    close(B @ B.T, np.linalg.inv(mass_matrix))
    close(B.T @ C, unit)  # B = C^-*: the same innovations behind both
    if len(unit):
        close(F.sample(KnownNormals(unit[0])), C[:, 0])
        close(F.sample_inverse(KnownNormals(unit[0])), B[:, 0])


def test_shapes_of_samples():
    case = random_case(0, 5)
    F, m = kf.innovations_factor(case.ss), case.ss.n_outputs
    for draw in (F.sample, F.sample_inverse):
        assert draw(np.random.default_rng(0)).shape == (m,)
        assert draw(np.random.default_rng(0), 0).shape == (0, m)
        assert draw(np.random.default_rng(0), 7).shape == (7, m)
        np.testing.assert_array_equal(draw(np.random.default_rng(3), 7), draw(np.random.default_rng(3), 7))
        with pytest.raises(
            ModelError, match=r"rng must be a numpy Generator \(np.random.default_rng\(seed\)\), not int"
        ):
            draw(0)
        with pytest.raises(ShapeError, match=r"n must be a number of draws, .* got -1"):
            draw(np.random.default_rng(0), -1)


@given(cases(), methods)
@fast
def test_entries_of_the_inverse(case, method):
    """R86:10.1-10.3. The dense 𝓜^-1, its diagonal blocks c(k) = D^-1 + G*Λ⁺G, and its diagonal."""
    F, model = kf.innovations_factor(case.ss, method=method), case.dense()
    expected = np.linalg.inv(model.output_cov)
    inverse = F.inverse()
    close(inverse, expected)
    np.testing.assert_array_equal(inverse, inverse.T)
    close(F.inverse_diagonal(), np.diag(expected))
    for k, T in enumerate(model.outputs):
        close(F.inverse_blocks()[k], expected[T, T])


@given(cases(missing=True))
@fast
def test_a_pattern_of_missing_outputs(case):
    """A factor of a Riccati solution with missing outputs is that of the observed part of 𝓜, zero elsewhere."""
    seen = ~np.isnan(case.T)
    F = kf.InnovationsFactor(kf.riccati(case.ss, seen))
    observed = case.dense().output_cov[np.ix_(seen, seen)]
    expected = np.zeros((seen.size, seen.size))
    expected[np.ix_(seen, seen)] = np.linalg.inv(observed)
    close(F.inverse(), expected)
    close(F.inverse_diagonal(), np.diag(expected))
    T = np.where(seen, case.T, 0.0)
    close(F.solve(T), expected @ T)
    close(F.quadratic(T), T @ expected @ T)
    close(F.logdet(), np.linalg.slogdet(observed)[1])


@pytest.mark.parametrize("method", ["solve", "matvec", "whiten", "unwhiten", "quadratic"])
def test_bad_input_is_named(method):
    F = kf.innovations_factor(random_case(1, 4, n=2, m=1).ss)
    with pytest.raises(ShapeError, match=r"has shape \(3,\), but its last axis must stack the 4 outputs"):
        getattr(F, method)(np.zeros(3))
    with pytest.raises(ModelError, match=r"\[2\] \(node 2\) is nan, not a finite number"):
        getattr(F, method)([0.0, 1.0, np.nan, 2.0])


def test_no_outputs():
    ss = kf.StateSpace([-1], [None], [np.zeros((0, 2))], [np.eye(2)])
    F = kf.innovations_factor(ss)
    assert F.logdet() == 0.0
    assert F.inverse().shape == (0, 0)
    assert F.inverse_diagonal().shape == (0,)
    assert (
        F.solve(np.zeros((3, 0))).shape
        == F.whiten(np.zeros((3, 0))).shape
        == F.unwhiten(np.zeros((3, 0))).shape
        == (3, 0)
    )
    assert F.sample(np.random.default_rng(0), 5).shape == (5, 0)


def test_missing_outputs_are_left_out():
    """The factor of the observed outputs alone: against the dense covariance of those, zero elsewhere."""
    case = random_case(5, N=7)
    seen = np.arange(case.ss.n_outputs) % 3 != 1
    F = InnovationsFactor(kf.riccati(case.ss, seen))
    mass_matrix = np.where(np.outer(seen, seen), case.dense().output_cov, 0.0)
    eye = np.eye(seen.size)
    close(F.matvec(eye), mass_matrix)
    C = F.unwhiten(eye).T
    close(C @ C.T, mass_matrix)
    close(F.whiten(F.unwhiten(eye)), np.diag(seen.astype(float)))
    close(F.solve(F.matvec(eye)), np.diag(seen.astype(float)))
    draws = F.sample_inverse(np.random.default_rng(0), 3)
    e = np.random.default_rng(0).standard_normal(draws.shape)
    close(draws, np.linalg.solve(C[np.ix_(seen, seen)].T, e[:, seen].T).T @ eye[seen])
