"""Rows in registers against dense algebra, for every size that has kernels of its own."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from kfdyn._kernels.sizes import static
from kfdyn.estimation._kernels import rows


@njit
def everything(n, A, S, B, x, y, out, vec):
    """Each operation once, its result in a slot of its own; ``out`` starts as copies of S, ``vec`` of x."""
    rows.multiply(n, out[0], A, B)
    rows.turn(n, out[1], A)
    rows.multiply(n, out[2], A, S)
    rows.add_symmetric(n, out[2], S, -2.0, out[2], None, out[1])  # S − 2 A S A*, out an operand
    rows.multiply(n, out[3], S, A)
    rows.add_symmetric(n, out[3], None, 1.0, A, True, out[3])  # A* S A
    rows.subtract_outer(n, out[4], out[4], x, y, None)
    rows.subtract_outer(n, out[5], S, x, x, True)
    rows.subtract_pair(n, out[6], out[6], x, y)
    rows.combine(n, vec[0], y, A)
    rows.add_scaled(n, vec[1], vec[1], 3.0, y)
    rows.add_scaled(n, vec[2], None, 3.0, y)
    rows.copy(n, vec[3], y)


@njit
def applied(r, n, C, x, y, out, back):
    rows.apply(r, n, out, -1.0, C, x)
    rows.apply_transposed(r, n, back, 2.0, C, y)


@pytest.mark.parametrize("n", range(1, 9))
def test_rows_in_registers_are_dense_algebra(n):
    rng = np.random.default_rng(n)
    A, S, B = rng.normal(size=(3, n, n))
    S = S + S.T
    x, y = rng.normal(size=(2, n))
    out, vec = np.tile(S, (7, 1, 1)), np.tile(x, (4, 1))
    everything(static(n), A, S, B, x, y, out, vec)
    pair = np.outer(x, y) + np.outer(y, x)
    dense = [A @ B, A.T, S - 2 * A @ S @ A.T, A.T @ S @ A, S - np.outer(x, y), S - np.outer(x, x), S - pair]
    for result, expected in zip(out, dense):
        assert_allclose(result, expected, rtol=0, atol=1e-13 * (1 + np.abs(expected).max()))
    for i in (2, 3, 5, 6):
        assert (out[i] == out[i].T).all()
    for result, expected in zip(vec, [y @ A, x + 3 * y, 3 * y, y]):
        assert_allclose(result, expected, rtol=0, atol=1e-13 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize(("r", "n"), [(1, 6), (6, 1), (6, 6), (3, 7), (8, 5), (2, 4), (1, 1)])
def test_products_of_any_shape(r, n):
    rng = np.random.default_rng(10 * r + n)
    C, x, y = rng.normal(size=(r, n)), rng.normal(size=n), rng.normal(size=r)
    out, back = rng.normal(size=r), rng.normal(size=n)
    expected = out - C @ x, back + 2 * C.T @ y
    applied(static(r), static(n), C, x, y, out, back)
    assert_allclose(out, expected[0], rtol=0, atol=1e-14 * n * 4)
    assert_allclose(back, expected[1], rtol=0, atol=1e-14 * r * 8)
