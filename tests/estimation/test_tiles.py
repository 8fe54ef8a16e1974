"""Large blocks by tiles: the kernels against NumPy, compiled and plain; and models of large blocks against the dense
oracle, with missing and exact outputs, singular process noise, and nodes of every size beside each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_models import close, random_covariance, random_matrix

import kfdyn as kf
from kfdyn.estimation import dense
from kfdyn.estimation.inference.filter_covariances import matrix_sizes
from kfdyn.estimation.recursions.linalg import tiles
from kfdyn.sweeps import if_else, sweep

WAYS = ["compiled", "plain"]
SHAPES = [
    (1, 1, 1),
    (3, 2, 5),
    (9, 9, 4),
    (13, 14, 7),
    (8, 24, 3),
    (36, 36, 18),
    (5, 17, 0),
    (12, 33, 40),
    (30, 49, 31),
]


def run(function, way, *args):
    return function(*args) if way == "compiled" else function.plain(*args)


@sweep(tags=0)
def product(out, base, based, sign, A, down, along, B, rows, cols, count, lower):
    tiles.product(
        out.part(0), base.part(0), cols, based, sign, A.part(0), down, along, B.part(0), cols, rows, cols, count, lower
    )


@sweep(tags=0)
def mirror(S, n):
    tiles.mirror(S.part(0), n)


@sweep(tags=0)
def turn(out, A, rows, cols):
    tiles.turn(out.part(0), A.part(0), rows, cols)


@sweep(tags=0)
def solve(L, m, X, n, back):
    for transposed in if_else(back != 0):
        (tiles.solve_transposed if transposed else tiles.solve)(L.part(0), m, X.part(0), n)


@sweep(tags=0)
def factorise(U, m, tol):
    return tiles.factorise(U.part(0), m, tol)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rows", "cols", "count"), SHAPES)
def test_products_are_numpys(rows, cols, count, way):
    rng = np.random.default_rng(rows)
    A, B, base = rng.normal(size=(rows, count)), rng.normal(size=(count, cols)), rng.normal(size=(rows, cols))
    out = np.full(rows * cols, np.nan)
    sizes = rows, cols, count
    run(product, way, out, out, 0, 1.0, A.ravel(), count, 1, B.ravel(), *sizes, 0)
    assert_allclose(out.reshape(rows, cols), A @ B, rtol=0, atol=1e-13 * (1 + count))
    run(product, way, out, base.ravel(), 1, -1.0, A.T.ravel(), 1, rows, B.ravel(), *sizes, 0)
    assert_allclose(out.reshape(rows, cols), base - A @ B, rtol=0, atol=1e-13 * (1 + count))
    own = base.ravel().copy()  # a result in the place of its base: a last vector that lies back adds nothing twice
    run(product, way, own, own, 1, -1.0, A.ravel(), count, 1, B.ravel(), *sizes, 0)
    assert (own == out).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 3, 7, 8, 9, 13, 24, 37, 51])
def test_what_is_symmetric_factorised_and_solved(n, way):
    rng = np.random.default_rng(n)
    B, other = rng.normal(size=(n + 2, n)), rng.normal(size=(n, 5 + n // 2))
    S = B.T @ B
    own = S.ravel().copy()
    run(product, way, own, own, 1, 1.0, B.ravel(), 1, n, B.ravel(), n, n, n + 2, 1)
    run(mirror, way, own, n)
    assert (own.reshape(n, n) == own.reshape(n, n).T).all()
    assert_allclose(own.reshape(n, n), 2 * S, rtol=0, atol=1e-13 * n * n)
    out = np.empty(other.size)
    run(turn, way, out, other.ravel(), *other.shape)
    assert (out.reshape(other.shape[::-1]) == other.T).all()

    S += np.eye(n)
    U = S.ravel().copy()
    assert run(factorise, way, U, n, 1e-14) == -1
    L = np.linalg.cholesky(S)
    assert_allclose(np.triu(U.reshape(n, n)), L.T, rtol=0, atol=1e-13 * n * n)
    for back, factor in ((0, L), (1, L.T)):
        X = other.ravel().copy()
        run(solve, way, L.ravel(), n, X, other.shape[1], back)
        assert_allclose(factor @ X.reshape(other.shape), other, rtol=0, atol=1e-12 * n)


@pytest.mark.parametrize(("n", "bad"), [(4, 0), (12, 9), (30, 17), (30, 29)])
def test_the_first_pivot_that_is_no_more_than_rounding_is_told(n, bad):
    B = np.tril(np.random.default_rng(n).normal(size=(n, n))) + 3 * np.eye(n)
    B[bad, bad] = 0.0
    assert factorise((B @ B.T).ravel(), n, 1e-10) == bad


def ragged(seed, noise, singular):
    """A tree of nodes of 1 to 41 states and 0 to 20 outputs."""
    rng = np.random.default_rng(seed)
    parent = [3, 2, 3, 6, 6, 6, -1]
    n, m = [13, 1, 20, 31, 9, 24, 41], [6, 1, 0, 17, 9, 1, 20]
    phi = [None if p < 0 else random_matrix(rng, n[p], n[k]) for k, p in enumerate(parent)]
    H = [random_matrix(rng, outputs, states) for outputs, states in zip(m, n)]
    Q = [
        random_covariance(rng, size, size // 2 if singular and k not in (0, 1, 4) else None) for k, size in enumerate(n)
    ]
    R = [noise * random_covariance(rng, size) for size in m]
    return kf.StateSpace(parent, phi, H, Q, R), rng.normal(size=sum(m))


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize(("noise", "singular"), [(1.0, False), (1e-4, True), (0.0, False), (1.0, True)])
def test_large_blocks_are_the_dense_oracles(noise, singular, method):
    ss, T = ragged(1, noise, singular)
    assert matrix_sizes(ss).tiled is not None
    T[[2, 7, 8, 30]] = np.nan
    filt = kf.kalman_filter(ss, T, method=method)
    smooth = kf.bryson_frazier(filt)
    want = dense.dense_posterior(ss, T)
    close(filt.llf, want.llf)
    close(smooth.x.flat, want.mean)
    close(smooth.a, want.a)
    starts = np.concatenate([[0], np.cumsum(ss.n)])
    for k in range(len(ss)):
        own = slice(starts[k], starts[k + 1])
        close(smooth.S[k], want.cov[own, own])
        close(smooth.Lambda[k], want.costate_cov[own, own])
        for name in ("P", "P_plus", "D"):
            block = getattr(filt, name)[k]
            assert (block == block.T).all()


@pytest.mark.parametrize(("noise", "rank"), [(1.0, 60), (0.0, 60), (1e-6, 20)])
def test_sixty_states_are_the_dense_oracles(noise, rank):
    """With exact outputs, and with process noise of low rank."""
    rng = np.random.default_rng(5)
    N, n, m = 4, 60, 20
    F, H = (np.array([random_matrix(rng, *shape) for _ in range(N)]) for shape in ((n, n), (m, n)))
    Q = np.array([random_covariance(rng, n, rank) for _ in range(N - 1)])
    R = noise * np.array([random_covariance(rng, m) for _ in range(N)])
    ss = kf.StateSpace.chain(F[:-1], H, Q, R, rng.normal(size=n), random_covariance(rng, n))
    T = rng.normal(size=N * m)
    smooth, want = kf.bryson_frazier(kf.kalman_filter(ss, T)), dense.dense_posterior(ss, T)
    close(smooth.filt.llf, want.llf)
    close(smooth.x.flat, want.mean)
    for k in range(N):
        close(smooth.S[k], want.cov[n * k : n * (k + 1), n * k : n * (k + 1)])


def test_a_large_model_has_the_same_score_as_differences():
    ss, T = ragged(2, 1.0, False)
    g = kf.score(ss, T)
    rng = np.random.default_rng(0)
    for name in ("phi", "H", "Q", "R"):
        ways = [rng.normal(size=block.shape) for block in getattr(ss, name)]
        if name in ("Q", "R"):
            ways = [w + w.T for w in ways]
        blocks, step = list(getattr(ss, name)), 1e-5
        llf = []
        for sign in (1, -1):
            moved = [b + sign * step * w for b, w in zip(blocks, ways)]
            if name == "phi":
                moved = [None if p < 0 else b for p, b in zip(ss.tree.parent, moved)]
            llf.append(kf.kalman_filter(ss.replace(**{name: moved}), T).llf)
        slope = sum((a * b).sum() for a, b in zip(getattr(g, name), ways))
        assert_allclose((llf[0] - llf[1]) / (2 * step), slope, rtol=1e-6)  # of central differences


def test_an_output_that_says_nothing_new_is_named_in_a_large_block():
    ss, T = ragged(3, 0.0, False)
    H = [h.copy() for h in ss.H]
    H[3][11] = H[3][4]
    with pytest.raises(kf.errors.SingularError, match=r"output 11 of .*3"):
        kf.kalman_filter(ss.replace(H=H), T)


def test_a_large_model_has_the_same_bits_alone_and_in_a_batch():
    ss, T = ragged(4, 1.0, False)
    rows = np.random.default_rng(0).normal(size=(37, T.size))
    many = kf.bryson_frazier(kf.kalman_filter(ss, rows))
    one = kf.bryson_frazier(kf.kalman_filter(ss, rows[5]))
    assert (one.x.flat == many.x.flat[5]).all()
    assert (one.a == many.a[5]).all()
