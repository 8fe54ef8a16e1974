"""How many digits survive: the engine against the same recursions in fifty digits.

The yardstick is the problem, not a chosen tolerance. Rounding the *data* once (every entry of φ, H, Q, R, T by up to
2⁻⁵³ of itself) already moves the exact answer; no algorithm that starts from doubles can be asked for less. The engine
must stay within a small factor of that, here 32 (observed: 1 to 12), however ill-conditioned the model.
"""

import mpmath
import numpy as np
import pytest
from exact import exact_smoother, relative_error

import kfdyn as kf

FACTOR = 32.0
EPS = np.finfo(float).eps


def rotation(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def ill_conditioned(parent, n, m, noise, seed):
    """Process covariances of condition 1e12 in general directions; transitions are parts of rotations."""
    rng = np.random.default_rng(seed)
    phi = [None if p < 0 else rotation(rng, max(n[p], n[k]))[: n[p], : n[k]] for k, p in enumerate(parent)]
    H = [rng.normal(size=(outputs, states)) for outputs, states in zip(m, n)]
    Q = []
    for states in n:
        U = rotation(rng, states)
        Q.append(U * np.logspace(0, -12, states) @ U.T)
    ss = kf.StateSpace(parent, phi, H, [(q + q.T) / 2 for q in Q], [noise * np.eye(k) for k in m])
    return ss, rng.normal(size=ss.n_outputs)


def chain(N):
    return [*range(1, N), -1]


FORESTS = {
    "uniform chain, one output": (chain(64), [3] * 64, [1] * 64),  # sizes known to the compiler
    "uniform chain, two outputs": (chain(64), [3] * 64, [2] * 64),
    "ragged chain": (chain(24), [2, 3, 4] * 8, [1, 0, 2] * 8),
    "ragged tree": ([2, 2, 5, 5, 3, -1, 5], [3, 2, 4, 3, 5, 4, 2], [1, 1, 2, 1, 2, 1, 0]),
    "large blocks": ([1, 3, 3, -1], [13, 12, 14, 15], [6, 1, 0, 7]),  # by tiles
}


def results(ss, T, method):
    filt = kf.kalman_filter(ss, T, method=method)
    smooth = kf.bryson_frazier(ss, filt)
    blocks = {name: getattr(filt, name) for name in ("P", "P_plus", "D", "G", "z", "z_plus")}
    blocks |= {name: getattr(smooth, name) for name in ("x", "S", "Lambda", "costate")}
    return blocks | {"a": ss.output_blocks(smooth.a)}, filt.llf


def expect_as_good_as_the_data(ss, T, method, draws=2):
    mine, llf = results(ss, T, method)
    exact = exact_smoother(ss, T)
    moved = [exact_smoother(ss, T, np.random.default_rng(seed)) for seed in range(draws)]
    for name, blocks in mine.items():
        allowed = max(relative_error(getattr(other, name), getattr(exact, name)) for other in moved)
        assert relative_error(blocks, getattr(exact, name)) < FACTOR * max(allowed, EPS), name
    allowed = max(abs(float(other.llf - exact.llf)) for other in moved)
    assert abs(float(llf - exact.llf)) < FACTOR * max(allowed, EPS * abs(llf))


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("forest", FORESTS)
def test_process_covariances_of_condition_1e12(forest, noise, method):
    parent, n, m = FORESTS[forest]
    if method == "univariate" and max(m) == 1:
        pytest.skip("scalar outputs have one method")
    ss, T = ill_conditioned(parent, n, m, noise, seed=len(parent))
    assert any(kf.riccati(ss).sizes) == forest.startswith("uniform")
    assert max(np.linalg.cond(q) for q in ss.Q) > 1e11
    expect_as_good_as_the_data(ss, T, method)


def test_all_digits_where_the_problem_has_them():
    """With noise of the size of the states the same covariances cost nothing: thirteen digits in absolute terms."""
    for parent, n, m in FORESTS.values():
        ss, T = ill_conditioned(parent, n, m, 1.0, seed=len(parent))
        mine, llf = results(ss, T, "block")
        exact = exact_smoother(ss, T)
        for name in ("P", "P_plus", "D", "G", "S", "Lambda"):
            assert relative_error(mine[name], getattr(exact, name)) < 1e-14, name
        assert relative_error(mine["x"], exact.x) < 1e-13
        assert abs(float(llf - exact.llf)) < 1e-13 * abs(llf)


def test_a_long_chain_without_noise():
    """Rounding does not pile up over 512 exact measurements with P kept symmetric by construction."""
    rng = np.random.default_rng(0)
    N, angle = 512, 0.3
    F = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    ss = kf.StateSpace.chain(
        F, np.array([[1.0, 0.2]]), np.diag([1.0, 1e-3]), np.zeros((1, 1)), [0, 0], np.eye(2), steps=N
    )
    expect_as_good_as_the_data(ss, rng.normal(size=N).cumsum(), "block", draws=1)


@pytest.mark.parametrize("method", ["block", "univariate"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("delta", 10.0 ** -np.arange(4, 17, 2))
def test_small_variances_keep_their_covariances(delta, outputs, method):
    """After an exact H = [1, δ] the first state has variance δ², at rounding level for δ = 1e-8, but covariance −δ."""
    H = np.array([[1.0, delta, 0.0], [0.0, 0.0, 1.0]])[:outputs]
    ss = kf.StateSpace([1, -1], [np.eye(3), None], [H, np.ones((1, 3))], [np.eye(3)] * 2)
    T = np.arange(1.0, ss.n_outputs + 1)
    mine, _ = results(ss, T, method)
    exact = exact_smoother(ss, T)
    for name in ("P", "P_plus", "D", "S", "x", "z_plus"):
        assert relative_error(mine[name], getattr(exact, name)) < 8 * EPS, name


def diffuse(F, H, Q, N=40):
    F, H, Q = (np.array(A, float) for A in (F, H, Q))
    n = len(F)
    ss = kf.StateSpace.chain(F, H, Q, np.eye(1), np.zeros(n), 1e12 * np.eye(n), steps=N)
    return ss, np.random.default_rng(0).normal(size=N).cumsum()


def naive_S(filt, smooth):
    """The other form of THEORY (5), S = P − PΛP."""
    return [P - P @ Lambda @ P for P, Lambda in zip(filt.P, smooth.Lambda)]


def test_diffuse_level_keeps_every_digit():
    """A random walk with prior variance 1e12: P⁺ − P⁺Λ⁺P⁺ is right to rounding where P − PΛP keeps four digits."""
    ss, T = diffuse([[1.0]], [[1.0]], [[0.1]])
    filt = kf.kalman_filter(ss, T)
    smooth = kf.bryson_frazier(ss, filt)
    exact = exact_smoother(ss, T)
    assert relative_error(smooth.S, exact.S) < 8 * EPS
    assert relative_error(smooth.x, exact.x) < 1e-13
    assert relative_error(filt.P_plus, exact.P_plus) < 8 * EPS
    assert relative_error(naive_S(filt, smooth), exact.S) > 1e-5


MODELS = {
    "trend": ([[1, 1], [0, 1]], [[1, 0]], [[0.1, 0.02], [0.02, 0.05]]),
    "three states": ([[0.8, 0.6, 0.1], [-0.6, 0.8, 0.2], [0, 0.3, 0.9]], [[1, 0.3, 0.2]], np.diag([0.1, 0.2, 0.05])),
}


@pytest.mark.filterwarnings("ignore::kfdyn.errors.LostDigitsWarning")  # just that
@pytest.mark.parametrize("name", MODELS)
def test_diffuse_vector_state_loses_what_a_covariance_must(name):
    """With several diffuse states P(1) = FP⁺F* + Q adds Q to entries of size 1e12, so a filter that stores covariances
    keeps Q to ε·1e12 ≈ 2e-4 and no better. The smoothed covariance inherits just that; P − PΛP inherits its square.
    """
    ss, T = diffuse(*MODELS[name])
    filt = kf.kalman_filter(ss, T)
    smooth = kf.bryson_frazier(ss, filt)
    exact = exact_smoother(ss, T)
    allowed = 4 * EPS * 1e12
    scale = max(float(max(abs(entry) for entry in S.ravel())) for S in exact.S)
    assert relative_error(smooth.S, exact.S) < allowed
    assert relative_error(smooth.x, exact.x) < allowed
    assert relative_error(naive_S(filt, smooth), exact.S) > 1e6 * allowed
    assert scale < 10.0
    assert all(np.linalg.eigvalsh(S)[0] > 0 for S in smooth.S)


def test_a_diffuse_branch_among_many():
    """Scalar leaves x_j ~ N(0, q_j) of which only the sum is measured: S = q_k(Σ_{j≠k} q_j + R)/(Σq + R), by hand.

    For the diffuse leaf P⁺ − P⁺Λ⁺P⁺ has no digit left; its siblings are many, and each is visited.
    """
    N, R = 30_000, 0.7
    q = np.random.default_rng(0).uniform(0.5, 1.5, N)
    q[3] = 1e20
    parent = np.append(np.full(N, N), -1)
    ones = np.ones((N + 1, 1, 1))
    H = [np.zeros((0, 1))] * N + [ones[0]]
    ss = kf.StateSpace(parent, ones, H, np.append(q, 0.0).reshape(-1, 1, 1), [np.zeros((0, 0))] * N + [R * ones[0]])
    S = kf.riccati(ss).smoothed.S.flat
    others = np.array([q[np.arange(N) != k].sum() for k in (3, 5)])
    np.testing.assert_allclose(S[[3, 5]], q[[3, 5]] * (others + R) / (q.sum() + R), rtol=1e-11)


def test_residual_covariance_of_a_free_body_in_small_units():
    """D holds masses beside moments of 1e-12 their size: D⁻¹ row by row, no pivots."""
    rng, unit = np.random.default_rng(0), np.array([1e-6] * 3 + [1.0] * 3)
    for _ in range(20):
        root = rng.normal(size=(6, 6))
        D = root @ root.T * np.outer(unit, unit)
        ss = kf.StateSpace([-1], [None], [np.eye(6)], [0.5 * (D + D.T)])
        found = kf.Covariances(ss).nu.diagonal[0]
        with mpmath.workdps(50):
            exact = np.array((mpmath.matrix(ss.Q[0].tolist()) ** -1).tolist(), float)
        scale = np.sqrt(np.diag(exact))
        kappa = float((np.diag(exact) * np.diag(D)).sum())
        assert (np.abs(found - exact) / np.outer(scale, scale)).max() < 8 * EPS * kappa
