"""Operators against the matrices they stand for; adjoints, composition, batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import cases, close, fast, few, random_case
from scipy.linalg import block_diag
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg

import kfdyn as kf
from kfdyn.errors import ShapeError
from kfdyn.estimation.dense import dense_filter
from kfdyn.estimation.operators.operator import Operator, dottest

OPEN = ("E_phi", "phi", "phi_strict", "H", "Q", "R", "output_cov", "state_identity", "output_identity")
CLOSED = ("P", "P_plus", "D", "G", "proj", "proj_bar", "K", "E_psi", "psi", "psi_strict", "factor", "factor_inverse")
CANCELLING = ("proj_bar", "E_psi", "psi_strict", "factor_inverse")  # built on 1 − GH, which may be nothing but rounding
ALL = (*OPEN, *CLOSED, "output_cov_inverse")


def expected_matrices(case, seen=None):
    """Every operator as a matrix: φ an inverse, ψ an inverse, G from dense conditioning."""
    model = case.dense()
    N, m = len(model.phi), len(model.H)
    T = np.zeros(m) if seen is None else np.where(seen, 0.0, np.nan)
    filt = dense_filter(model, T)
    P, P_plus, D = (block_diag(*blocks) for blocks in (filt.P, filt.P_plus, filt.D))
    G = np.zeros((N, m))
    for x, t, block in zip(model.states, model.outputs, filt.G):
        G[x, t] = block
    I_n, I_m = np.eye(N), np.eye(m)
    E_psi = model.E_phi @ (I_n - G @ model.H)
    K = model.E_phi @ G
    psi = np.linalg.inv(I_n - E_psi)
    return {
        "E_phi": model.E_phi,
        "phi": model.phi,
        "phi_strict": model.phi - I_n,
        "H": model.H,
        "Q": model.Q,
        "R": model.R,
        "output_cov": model.output_cov,
        "state_identity": I_n,
        "output_identity": I_m,
        "P": P,
        "P_plus": P_plus,
        "D": D[:m, :m] if m else np.zeros((0, 0)),
        "G": G,
        "proj": G @ model.H,
        "proj_bar": I_n - G @ model.H,
        "K": K,
        "E_psi": E_psi,
        "psi": psi,
        "psi_strict": psi - I_n,
        "factor": I_m + model.H @ model.phi @ K,
        "factor_inverse": I_m - model.H @ psi @ K,
        "output_cov_inverse": np.linalg.inv(model.output_cov),
    }


@given(cases())
@fast
def test_every_operator_is_its_matrix(case):
    """SKO:gather, SKO:scatter, SKO:strict, ATBI:estimation-map. Products, adjoint products and dense()."""
    op, rng = kf.Operators(case.ss), np.random.default_rng(0)
    for name, matrix in expected_matrices(case).items():
        A = getattr(op, name)
        assert isinstance(A, LinearOperator)
        assert A.shape == matrix.shape
        close(A.dense(), matrix)
        close(A.H.dense(), matrix.T)
        x, y = rng.normal(size=matrix.shape[1]), rng.normal(size=matrix.shape[0])
        close(A @ x, matrix @ x)
        close(A.H @ y, matrix.T @ y)
        close(A.T @ y, matrix.T @ y)
        X, Y = rng.normal(size=(matrix.shape[1], 3)), rng.normal(size=(matrix.shape[0], 3))
        close(A @ X, matrix @ X)
        close(A.H @ Y, matrix.T @ Y)


@given(cases())
@fast
def test_every_adjoint(case):
    """⟨y, Ax⟩ = ⟨A*y, x⟩ to rounding of the result, or of |x||y| where 1 − GH is nothing but rounding."""
    op, rng = kf.Operators(case.ss), np.random.default_rng(0)
    for name in ALL:
        A = getattr(op, name)
        x, y = rng.normal(size=A.shape[1]), rng.normal(size=A.shape[0])
        Ax, Ay = A @ x, A.H @ y
        size = np.linalg.norm(y) * (np.linalg.norm(x) + np.linalg.norm(Ax))
        assert abs(y @ Ax - Ay @ x) <= 1e-13 * size, name
        if name not in CANCELLING:
            assert dottest(A, rng) < 1e-13, name


def test_the_adjoint_test_can_fail():
    A = np.random.default_rng(0).normal(size=(4, 4))
    wrong = Operator((4, 4), lambda x: x @ A.T, lambda x: x @ A.T)
    assert dottest(wrong) > 1e-3
    assert dottest(aslinearoperator(A)) < 1e-14
    assert dottest(Operator((2, 3), lambda x: 0 * x[..., :2], lambda x: np.zeros((*x.shape[:-1], 3)))) == 0.0


@given(cases(missing=True))
@few
def test_a_pattern_of_missing_outputs(case):
    """ψ, K and P of a Riccati solution with missing outputs."""
    seen = ~np.isnan(case.T)
    op, expected = kf.Operators(kf.riccati(case.ss, seen)), expected_matrices(case, seen)
    for name in (*OPEN, *CLOSED):
        close(getattr(op, name).dense(), expected[name])


@given(cases())
@fast
def test_composition(case):
    """@, .H, +, −, scalars: Operators again, equal to what the matrices give."""
    op, m = kf.Operators(case.ss), expected_matrices(case)
    pairs = [
        (op.H @ op.phi @ op.K, m["H"] @ m["phi"] @ m["K"]),
        ((op.H @ op.phi).H, (m["H"] @ m["phi"]).T),
        (op.phi + op.psi, m["phi"] + m["psi"]),
        (op.phi - op.psi, m["phi"] - m["psi"]),
        (-op.phi, -m["phi"]),
        (2 * op.phi, 2 * m["phi"]),
        (op.phi * 0.5, 0.5 * m["phi"]),
        (np.float64(3.0) * op.phi, 3.0 * m["phi"]),
        (2 * (op.phi @ op.Q @ op.phi.H - op.P).H, 2 * (m["phi"] @ m["Q"] @ m["phi"].T - m["P"]).T),
    ]
    for A, matrix in pairs:
        assert isinstance(A, Operator)
        close(A.dense(), matrix)
        close(A.H.dense(), matrix.T)
        x, y = np.ones(matrix.shape[1]), np.ones(matrix.shape[0])
        assert abs(y @ (A @ x) - (A.H @ y) @ x) <= 1e-12 * max(1.0, np.abs(matrix).sum())


def test_beside_other_linear_operators():
    """scipy's own operators join in, and scipy's solvers accept ours."""
    case = random_case(0, 8)
    op, matrix = kf.Operators(case.ss), case.dense().output_cov
    other = aslinearoperator(matrix)
    x = np.random.default_rng(0).normal(size=len(matrix))
    close((op.output_cov + other) @ x, 2 * matrix @ x)
    close((op.output_cov - other) @ x, 0 * x)
    close((op.output_cov @ other) @ x, matrix @ matrix @ x)
    close((other @ op.output_cov) @ x, matrix @ matrix @ x)
    solution, failed = cg(op.output_cov, x, M=op.output_cov_inverse, rtol=1e-13)
    assert failed == 0
    close(solution, np.linalg.solve(matrix, x))


def test_sizes_that_do_not_fit():
    op = kf.Operators(random_case(0, 8).ss)
    with pytest.raises(ShapeError, match=r"operators of shapes .* do not compose"):
        op.H @ op.H
    with pytest.raises(ShapeError, match=r"operators of shapes .* do not add"):
        op.H + op.phi
    with pytest.raises(ShapeError, match=r"operators of shapes .* do not add"):
        op.H - op.phi
    with pytest.raises(ValueError, match="dimension mismatch"):
        op.phi @ np.zeros(3)
    with pytest.raises(ShapeError, match="made of matrices, not of vectors"):
        op.block_diagonal(op.ss.state_blocks(np.zeros(op.ss.n_states)))


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 33])
def test_rows_in_lanes(rows):
    """Any number of vectors side by side is the matrix times each of them."""
    case = random_case(3, 9)
    op, expected = kf.Operators(case.ss), expected_matrices(case)
    rng = np.random.default_rng(rows)
    for name in ALL:
        matrix = expected[name]
        x, y = rng.normal(size=(rows, matrix.shape[1])), rng.normal(size=(rows, matrix.shape[0]))
        close(getattr(op, name).forward(x), x @ matrix.T)
        close(getattr(op, name).backward(y), y @ matrix)


@pytest.mark.parametrize("name", ALL)
def test_batch_axes_and_kinds_of_array(name):
    case = random_case(4, 6)
    A, matrix = getattr(kf.Operators(case.ss), name), expected_matrices(case)[name]
    x = np.random.default_rng(0).normal(size=(2, 3, matrix.shape[1]))
    close(A.forward(x), x @ matrix.T)
    assert A.forward(x[:, :0]).shape == (2, 0, matrix.shape[0])
    close(A @ x[0, 0].astype(np.float32), matrix @ x[0, 0].astype(np.float32), 12)
    close(A @ x[0, 0].tolist(), matrix @ x[0, 0])
    close(A @ np.asfortranarray(x[0].T), matrix @ x[0].T)
    before = x.copy()
    A.forward(x)
    A.H.forward(np.ones((2, matrix.shape[0])))
    np.testing.assert_array_equal(x, before)


@given(cases(), st.sampled_from(["block", "univariate"]))
@few
def test_method_does_not_matter(case, method):
    op, other = kf.Operators(case.ss), kf.Operators(kf.riccati(case.ss, method=method))
    assert other.covariances is kf.riccati(case.ss, method=method)
    for name in CLOSED:
        close(getattr(other, name).dense(), getattr(op, name).dense())


@pytest.mark.parametrize("name", ["phi", "psi_strict", "E_phi", "H", "output_cov", "state_identity"])
def test_products_refuse_vectors_of_another_length(name):
    """The compiled sweeps would read and write beyond a buffer that is too short."""
    op = getattr(kf.Operators(two_leaves()), name)
    for product, size in ((op.forward, op.shape[1]), (op.backward, op.shape[0])):
        with pytest.raises(ShapeError, match=rf"takes \(\.\.\., {size}\)"):
            product(np.ones(size - 1))
        with pytest.raises(ShapeError, match="complex"):
            product(1j * np.ones(size))
        assert product(np.ones((2, 0, size), int)).shape[:2] == (2, 0)
    with pytest.raises(ShapeError, match="complex"):
        op @ (1j * np.ones(op.shape[1]))


def test_products_take_lists_and_integers():
    op = kf.Operators(two_leaves())
    np.testing.assert_array_equal(op.phi.forward([1, 2, 3, 4, 5, 6]), op.phi.dense() @ np.arange(1.0, 7.0))


def two_leaves():
    return kf.StateSpace([2, 2, -1], [np.eye(2), np.eye(2), None], [np.ones((1, 2))] * 3, [np.eye(2)] * 3)
