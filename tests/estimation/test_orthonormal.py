"""Columns made orthonormal by panels; and no digit of a likelihood depends on the threads of a BLAS."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kfdyn.estimation.recursions.linalg.orthonormal import Room, orthonormalise

SCRIPT = """
import numpy as np, kfdyn as kf
y = np.sin(np.arange(600) / 52 * 2 * np.pi) + np.random.default_rng(0).normal(size=600)
model = kf.series.local_trend() + kf.series.seasonal(52)
llf, slope = model.likelihood(y)([0.5, 0.1, 0.01, 0.1])
print(llf.hex(), *(x.hex() for x in slope))
"""


def orthonormal(A, flat, way="compiled"):
    e, products = A.copy(), np.empty((flat, A.shape[1]))
    run = orthonormalise if way == "compiled" else orthonormalise.plain
    run(e.reshape(-1), len(A), flat, products.reshape(-1), np.empty(Room.size(*A.shape, flat)))
    return e, products


@pytest.mark.parametrize("way", ["compiled", "plain"])
@pytest.mark.parametrize(("rows", "own", "flat"), [(9, 1, 1), (30, 3, 7), (40, 1, 21), (60, 9, 24)])
def test_columns_of_any_size_are_a_product_of_orthonormal_ones_and_a_triangle(rows, own, flat, way):
    rng = np.random.default_rng(flat)
    A = rng.normal(size=(rows, own + flat))
    A[:, own:] *= 10.0 ** rng.uniform(-9, 9, flat)
    if flat > 5:
        A[:, own + 5] = 1e8 * A[:, own + 2] + A[:, own + 5]  # eight digits in common
    e, products = orthonormal(A, flat, way)
    columns, triangle, sizes = e[:, own:], np.triu(products[:, own:]), np.linalg.norm(A[:, own:], axis=0)
    assert_allclose(columns.T @ columns, np.eye(flat), rtol=0, atol=1e-14)
    assert_allclose(columns @ triangle / sizes, A[:, own:] / sizes, rtol=0, atol=1e-14)
    assert (np.diag(triangle) > 0).all()
    assert_allclose(products[:, :own], e[:, own:].T @ A[:, :own], rtol=0, atol=1e-13)
    assert_allclose(e[:, :own], A[:, :own] - e[:, own:] @ products[:, :own], rtol=0, atol=1e-13)


def test_a_dependent_column_has_no_number():
    A = np.random.default_rng(0).normal(size=(30, 13))
    A[:, 7] = A[:, 2] + A[:, 3]
    diagonal = np.diag(orthonormal(A, 12)[1][:, 1:])
    assert np.isnan(diagonal[6]) and np.isfinite(np.delete(diagonal, 6)).all()
    few = np.diag(orthonormal(A[:4], 12)[1][:, 1:])
    assert np.isfinite(few[:4]).all() and np.isnan(few[4:]).all()


def test_no_digit_of_a_likelihood_with_52_seasons_depends_on_threads():
    said = set()
    for threads in ("1", "2"):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=env)
        said.add(done.stdout)
    assert len(said) == 1 and "0x" in said.pop()
