"""The algebra of dense blocks against NumPy: rows in registers and plain loops, compiled and run as they stand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kfdyn.estimation.recursions.linalg import matrices, small_blocks, triangular
from kfdyn.estimation.recursions.linalg.lanes import Batch
from kfdyn.estimation.recursions.linalg.matrices import Block, Column
from kfdyn.sweeps import Tag, loop, size, sweep

WAYS = ["compiled", "plain"]


def run(function, way, *args):
    return function(*args) if way == "compiled" else function.plain(*args)


@sweep
def in_registers(n, A, S, B, x, y, out, vec):
    """Each operation once, its result in a slot of its own; ``out`` starts as copies of S, ``vec`` of x."""
    a, s, b = (Block(flat, 0, n, n, True) for flat in (A, S, B))
    results = [Block(out, i * n * n, n, n, True) for i in range(7)]
    columns = [Column(vec, i * n, n, True) for i in range(4)]
    left, right = Column(x, 0, n, True), Column(y, 0, n, True)
    small_blocks.multiply(results[0], a, b)
    small_blocks.turn(results[1], a)
    small_blocks.multiply(results[2], a, s)
    small_blocks.multiply(results[2], results[2], results[1], s, -2.0, True)  # S − 2 A S A*, out an operand
    small_blocks.multiply(results[3], s, a)
    small_blocks.multiply(results[3], matrices.Turned(a), results[3], symmetric=True)  # A* S A
    matrices.outer_sum(results[4], None, results[4], -1.0, left, right)
    matrices.subtract_outer(results[5], s, left, left)
    matrices.subtract_pair(results[6], left, right)
    matrices.combine(columns[0], right, a)
    matrices.add_scaled(columns[1], columns[1], 3.0, right)
    matrices.add_scaled(columns[2], None, 3.0, right)
    columns[3][0] = matrices.dot(left, right)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", range(1, 9))
def test_rows_in_registers_are_dense_algebra(n, way):
    rng = np.random.default_rng(n)
    A, S, B = rng.normal(size=(3, n, n))
    S = S + S.T
    x, y = rng.normal(size=(2, n))
    out, vec = np.tile(S, (7, 1, 1)), np.tile(x, (4, 1))
    run(in_registers, way, Tag(n), *(M.ravel() for M in (A, S, B)), x, y, out.reshape(-1), vec.reshape(-1))
    pair = np.outer(x, y) + np.outer(y, x)
    expected = [A @ B, A.T, S - 2 * A @ S @ A.T, A.T @ S @ A, S - np.outer(x, y), S - np.outer(x, x), S - pair]
    for result, right in zip(out, expected):
        assert_allclose(result, right, rtol=0, atol=1e-13 * (1 + np.abs(right).max()))
    for i in (2, 3, 5, 6):
        assert (out[i] == out[i].T).all()
    for result, right in zip(vec, [y @ A, x + 3 * y, 3 * y]):
        assert_allclose(result, right, rtol=0, atol=1e-13 * (1 + np.abs(right).max()))
    assert_allclose(vec[3, 0], x @ y, rtol=0, atol=1e-13 * (1 + np.abs(x) @ np.abs(y)))


@sweep
def congruences(known, r, n, A, S, T, P, out, work):
    """out: S + A T A*, A* S A, P − P T P, −S A P, each in a slot; S (r, r), P and T (n, n)."""
    k = known is not None
    r, n = (known, known) if k else (r, n)
    a, s, t, p = Block(A, 0, r, n, k), Block(S, 0, r, r, k), Block(T, 0, n, n, k), Block(P, 0, n, n, k)
    first, second, third = (Block(out, i * 64, size, size, k) for i, size in enumerate((r, n, n)))
    fourth = Block(out, 3 * 64, r, n, k)
    for i in loop(r):
        for j in loop(r):
            first[i, j] = s[i, j]
    matrices.add_congruence(first, a, t, work)
    half = matrices.transposed_congruence(second, a, s, work)
    matrices.negative_product(fourth, half, p, work.part(r * n))
    matrices.subtract_congruence(third, p, t, work)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("r", "n", "known"), [(3, 3, True), (6, 6, True), (6, 6, False), (2, 7, False), (8, 1, False)])
def test_congruences(r, n, known, way):
    rng = np.random.default_rng(10 * r + n)
    A, S, T, P = rng.normal(size=(r, n)), *(M @ M.T for M in (rng.normal(size=(k, k)) for k in (r, n, n)))
    out, work = np.zeros((4, 8, 8)), np.empty(2 * 64 + 8)
    flat = (M.ravel() for M in (A, S, T, P))
    run(congruences, way, Tag(n) if known else None, r, n, *flat, out.reshape(-1), work)
    for i, right in enumerate((S + A @ T @ A.T, A.T @ S @ A, P - P @ T @ P, -S @ A @ P)):
        got = out[i].reshape(-1)[: right.size].reshape(right.shape)
        assert_allclose(got, right, rtol=0, atol=1e-13 * (1 + np.abs(right).max()))
        assert i == 3 or (got == got.T).all()


@sweep
def vectors(known, A, S, x, y, out, vec):
    """The operations on vectors, and the two outer products, in loops or in small_blocks."""
    k, n = known is not None, size(known, S.shape[0])
    a, s = Block(A.part(0), 0, n, n, k), Block(S.part(0), 0, n, n, k)
    left, right = Column(x, 0, n, k), Column(y, 0, n, k)
    first, second = (Block(out, i * n * n, n, n, k) for i in range(2))
    columns = [Column(vec, i * n, n, k) for i in range(3)]
    matrices.combine(columns[0], left, a)
    matrices.add_scaled(columns[1], left, -2.0, right)
    columns[2][0] = matrices.dot(left, right)
    matrices.outer_sum(first, 2.0, s, -1.0, left, right)
    matrices.subtract_outer(second, s, left, left)
    matrices.subtract_pair(second, left, right)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "known"), [(5, True), (5, False), (1, False), (11, False)])
def test_vectors_and_outer_products(n, known, way):
    rng = np.random.default_rng(n)
    A, S, x, y = rng.normal(size=(n, n)), rng.normal(size=(n, n)), *rng.normal(size=(2, n))
    S = S + S.T
    out, vec = np.zeros((2, n, n)), np.zeros((3, n))
    run(vectors, way, Tag(n) if known else None, A, S, x, y, out.reshape(-1), vec.reshape(-1))
    second = S - np.outer(x, x) - np.outer(x, y) - np.outer(y, x)
    for got, right in zip((*vec[:2], *out), (A.T @ x, x - 2 * y, 2 * S - np.outer(x, y), second)):
        assert_allclose(got, right, rtol=0, atol=1e-13 * (1 + np.abs(right).max()))
    assert_allclose(vec[2, 0], x @ y, rtol=0, atol=1e-12)
    assert (out[1] == out[1].T).all()


@sweep
def factored(D, L, seen, x, tol):
    """Cholesky's factor, then D⁻¹ x."""
    m = D.shape[0]
    block, factor, column = Block(D.part(0), 0, m, m), Block(L.part(0), 0, m, m), Column(x, 0, m)
    failed = triangular.cholesky(block, factor, seen, tol)
    triangular.solve_lower(factor, column)
    triangular.solve_lower_transposed(factor, column)
    return failed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("m", [1, 2, 5])
def test_factors_of_what_is_seen(m, way):
    rng = np.random.default_rng(m)
    M, x = rng.normal(size=(m, m)), rng.normal(size=m)
    D, L, seen = M @ M.T + np.eye(m), np.full((m, m), np.nan), np.arange(m) % 2 == 0
    expected = np.where(seen, x, 0.0)
    got = np.where(seen, x, 0.0)
    assert run(factored, way, D, L, seen, got, 1e-14) == -1
    expected[seen] = np.linalg.solve(D[np.ix_(seen, seen)], expected[seen])
    assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    assert_allclose((L @ L.T)[np.ix_(seen, seen)], D[np.ix_(seen, seen)], rtol=1e-13)
    assert (L[~seen][:, ~seen] == np.eye(m - seen.sum())).all()
    assert run(factored, way, np.ones((3, 3)), np.empty((3, 3)), np.ones(3, bool), np.ones(3), 1e-14) == 1


class Vectors(Batch):
    """Room for three of them."""

    @staticmethod
    def layout(r, n):
        return {"given": n, "result": r, "back": n}


@sweep
def in_lanes(lanes, known, C, x, y, L, out, work):
    """y − C x, back + 2 C* y and D⁻¹ y of every lane."""
    r, n = (known, known) if known is not None else C.shape
    batch, k = Vectors(lanes, work, r, n), known is not None
    given, result, back = batch.given.part(0, n, k), batch.result.part(0, r, k), batch.back.part(0, n, k)
    block, factor = Block(C.part(0), 0, r, n, k), Block(L.part(0), 0, r, r)
    batch.rows = (0, lanes)
    given.load(x, n)
    result.load(y, r)
    back.copy(given)
    back.multiply_turned(block, result, base=back)
    back.add(back)
    back.store(out, r + n)
    result.multiply(block, given, base=result, sign=-1.0)
    result.solve(factor)
    result.store(out, r + n, n)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n", range(1, 9))
def test_a_vector_gets_the_same_bits_however_many_go_with_it(n, known):
    rng = np.random.default_rng(n)
    C, x, y = rng.normal(size=(n, n)), rng.normal(size=(16, n)), rng.normal(size=(16, n))
    L = np.tril(rng.normal(size=(n, n))) + 3.0 * np.eye(n)
    tag = Tag(n) if known else None
    many, one, plain = np.empty((16, 2 * n)), np.empty((16, 2 * n)), np.empty((16, 2 * n))
    in_lanes(Tag(16), tag, C, x.reshape(-1), y.reshape(-1), L, many.reshape(-1), np.empty(16 * Vectors.size(n, n)))
    for i in range(16):
        for answer, call in ((one, in_lanes), (plain, in_lanes.plain)):
            call(Tag(1), tag, C, x[i], y[i], L, answer[i], np.empty(Vectors.size(n, n)))
    np.testing.assert_array_equal(one, many)
    right = np.hstack([2 * (x + y @ C), np.linalg.solve(L @ L.T, (y - x @ C.T).T).T])
    for got in (many, plain):
        assert_allclose(got, right, rtol=1e-10, atol=1e-12)


def test_an_index_outside_a_block_is_an_error():
    with pytest.raises(IndexError):
        congruences.plain(None, 3, 3, np.ones(8), np.ones(9), np.ones(9), np.ones(9), np.zeros(192), np.zeros(128))
