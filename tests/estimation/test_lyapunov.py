"""Forward and backward Lyapunov equations against dense products of operators."""

import numpy as np
import pytest
from hypothesis import given
from random_models import fast, forests, random_matrix, seeds

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError


def two_operators(parent, seed):
    """Blocks of two different operators A, B of different ragged sizes, and a block-diagonal X between them."""
    rng = np.random.default_rng(seed)
    N = len(parent)
    a, b = rng.integers(1, 5, N), rng.integers(1, 5, N)
    A = [None if p < 0 else random_matrix(rng, a[p], a[k]) for k, p in enumerate(parent)]
    B = [None if p < 0 else random_matrix(rng, b[p], b[k]) for k, p in enumerate(parent)]
    X = [rng.normal(size=(a[k], b[k])) for k in range(N)]
    return A, B, X, a, b


def resolvent(parent, steps, sizes):
    start = np.concatenate([[0], np.cumsum(sizes)])
    E = np.zeros((start[-1], start[-1]))
    for k, p in enumerate(parent):
        if p >= 0:
            E[start[p] : start[p + 1], start[k] : start[k + 1]] = steps[k]
    return np.linalg.inv(np.eye(start[-1]) - E), start


def block_diagonal(X, a, b):
    rows, cols = np.concatenate([[0], np.cumsum(a)]), np.concatenate([[0], np.cumsum(b)])
    out = np.zeros((rows[-1], cols[-1]))
    for k, x in enumerate(X):
        out[rows[k] : rows[k + 1], cols[k] : cols[k + 1]] = x
    return out


@fast
@given(forests(), seeds)
def test_forward_is_A_X_B_adjoint(parent, seed):
    """SKO:forward-lyapunov: A X B* = Y + ÃY + Y B̃*, for two operators A, B."""
    A, B, X, a, b = two_operators(parent, seed)
    solution = kf.forward_lyapunov(kf.Tree(parent), A, X, B)
    left, rows = resolvent(parent, A, a)
    right, cols = resolvent(parent, B, b)
    whole = left @ block_diagonal(X, a, b) @ right.T
    np.testing.assert_allclose(solution.dense(), whole, rtol=0, atol=1e-12 * max(1, np.abs(whole).max()))
    Y = solution.diagonal.dense()
    identities = Y + (left - np.eye(len(left))) @ Y + Y @ (right - np.eye(len(right))).T
    np.testing.assert_allclose(identities, whole, rtol=0, atol=1e-12 * max(1, np.abs(whole).max()))
    for i in range(len(parent)):
        for j in range(len(parent)):
            part = whole[rows[i] : rows[i + 1], cols[j] : cols[j + 1]]
            np.testing.assert_allclose(solution.block(i, j), part, rtol=0, atol=1e-12 * max(1, np.abs(whole).max()))


@fast
@given(forests(), seeds)
def test_backward_is_A_adjoint_X_B(parent, seed):
    """SKO:backward-lyapunov: A* X B = Y + Ã*Y + Y B̃ + ℛ_b, the last at nearest common ancestors only."""
    A, B, X, a, b = two_operators(parent, seed)
    tree = kf.Tree(parent)
    solution = kf.backward_lyapunov(tree, A, X, B)
    left, rows = resolvent(parent, A, a)
    right, cols = resolvent(parent, B, b)
    whole = left.T @ block_diagonal(X, a, b) @ right
    scale = 1e-12 * max(1, np.abs(whole).max())
    np.testing.assert_allclose(solution.dense(), whole, rtol=0, atol=scale)
    Y = solution.diagonal.dense()
    remainder = whole - (Y + (left - np.eye(len(left))).T @ Y + Y @ (right - np.eye(len(right))))
    for i in range(len(parent)):
        for j in range(len(parent)):
            block = np.s_[rows[i] : rows[i + 1], cols[j] : cols[j + 1]]
            np.testing.assert_allclose(solution.block(i, j), whole[block], rtol=0, atol=scale)
            if tree.nearest_common_ancestor(i, j) in (i, j, None):
                np.testing.assert_allclose(remainder[block], 0, atol=scale)
            else:
                np.testing.assert_allclose(solution.block(i, j), remainder[block], rtol=0, atol=scale)


def test_one_operator_needs_square_blocks():
    with pytest.raises(ShapeError, match=r"X of node 1 .* square when B is not given"):
        kf.forward_lyapunov(kf.Tree([1, -1]), [np.eye(2), None], [np.eye(2), np.ones((2, 3))])


def test_bad_blocks_are_named():
    with pytest.raises(ShapeError, match=r"A of node 0 has shape \(2, 3\)"):
        kf.backward_lyapunov(kf.Tree([1, -1]), [np.ones((2, 3)), None], [np.eye(2), np.eye(2)])
    with pytest.raises(ModelError, match=r"X of node 1 .* nan"):
        kf.backward_lyapunov(kf.Tree([1, -1]), [np.eye(2), None], [np.eye(2), np.full((2, 2), np.nan)])
