"""The gain propagated directly is the Riccati recursion's, for 10⁴ steps; what it cannot do is refused."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError


def system(seed, n, m, radius=0.97, noise=1.0):
    """A random stable system with its stationary covariance."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, n))
    F *= radius / np.abs(np.linalg.eigvals(F)).max()
    B = rng.normal(size=(n, n)) / np.sqrt(n)
    Q = noise * B @ B.T
    P = solve_discrete_lyapunov(F, Q)
    return F, rng.normal(size=(m, n)), Q, np.eye(m), (P + P.T) / 2


def reference(F, H, Q, R, P, steps):
    """D and G by the Riccati recursion in plain NumPy, symmetrised."""
    out_D, out_G = [], []
    for _ in range(steps):
        U = P @ H.T
        out_D.append(H @ U + R)
        out_G.append(np.linalg.solve(out_D[-1], U.T).T)
        P = F @ (P - out_G[-1] @ U.T) @ F.T + Q
        P = (P + P.T) / 2
    return np.array(out_D), np.array(out_G)


def largest_error(fast, D, G):
    every = range(len(D))
    return max(
        max(np.abs(fast.innovation(k) - D[k]).max() / np.abs(D[k]).max() for k in every),
        max(np.abs(fast.gain(k) - G[k]).max() / np.abs(G[k]).max() for k in every),
    )


@pytest.mark.parametrize("prior", ["stationary", "tip", "wide"])
@pytest.mark.parametrize(("n", "m"), [(4, 1), (7, 3)])
def test_ten_thousand_steps(n, m, prior):
    """R86:12-FAST. Equal to 1e-10 for 10⁴ steps, from a stationary prior (rank m), from Q and from a wide one."""
    F, H, Q, R, P = system(n, n, m)
    start = {"stationary": P, "tip": Q, "wide": 100 * np.eye(n)}[prior]
    fast = kf.fast_gain(F, H, Q, R, start, 10_000)
    assert fast.rank == m if prior == "stationary" else fast.rank >= m
    assert largest_error(fast, *reference(F, H, Q, R, start, 10_000)) < 1e-10
    assert 0 < fast.settled < 1000
    assert kf.fast_gain(F, H, Q, R, start, 1).flops == 8 * n**3  # no more than the first increment
    limit = solve_discrete_are(F.T, H.T, Q, R)
    settled = limit @ H.T @ np.linalg.inv(H @ limit @ H.T + R)
    np.testing.assert_allclose(fast.gain(9_999), settled, rtol=1e-8, atol=1e-10)  # scipy's solver has ten digits


def test_a_gain_that_does_not_settle():
    """R86:12-FAST. Slow modes: 10⁴ steps of increments without an end, still 1e-10."""
    F, H, Q, R, P = system(1, 5, 1, radius=0.9997, noise=1e-2)
    fast = kf.fast_gain(F, H, Q, R, P, 10_000, tolerance=0.0)
    slow = F * 0.0 + np.diag([0.9999, 0.9995, 0.999, 0.99, 0.9])
    start = np.diag(np.diag(Q)) / (1 - np.diag(slow) ** 2)
    never = kf.fast_gain(slow, H, np.diag(np.diag(Q)), 1e4 * R, start, 10_000)
    assert never.settled is None
    assert largest_error(never, *reference(slow, H, np.diag(np.diag(Q)), 1e4 * R, start, 10_000)) < 1e-10
    assert largest_error(fast, *reference(F, H, Q, R, P, 10_000)) < 1e-10


def test_a_gain_that_falls_keeps_the_digits_of_its_start():
    """The limit of the method: gains are sums of increments, so their errors are relative to the largest on the way."""
    F, H, Q, R, _ = system(1, 5, 1, radius=0.99999, noise=1e-9)
    start = np.eye(5)
    fast = kf.fast_gain(F, H, Q, R, start, 10_000)
    _, G = reference(F, H, Q, R, start, 10_000)
    assert np.abs(G[-1]).max() < 1e-3 * np.abs(G[0]).max()
    error = max(np.abs(fast.gain(k) - G[k]).max() for k in range(10_000))
    assert error < 1e-10 * np.abs(G[0]).max()
    assert np.abs(fast.gain(9_999) - G[-1]).max() > 1e-10 * np.abs(G[-1]).max()  # so the docstring warns


def test_an_output_that_waits():
    """A delay line: the increments stay unseen for some steps, and must not be taken for settled."""
    n = 6
    F, H = np.diag(np.ones(n - 1), -1), np.eye(n)[-1:]
    Q, R, P = np.zeros((n, n)), np.eye(1), np.eye(n)
    Q[0, 0] = 3.0
    fast = kf.fast_gain(F, H, Q, R, P, 40)
    assert largest_error(fast, *reference(F, H, Q, R, P, 40)) < 1e-12
    assert fast.innovation(0) == pytest.approx(2.0) and fast.innovation(39) == pytest.approx(4.0)


@pytest.mark.parametrize(
    "hinge", [kf.Hinge.revolute([0, 1, 0]), kf.Hinge.universal([0, 1, 0], [0, 0, 1])], ids=["1 dof", "2 dofs"]
)
def test_uniform_robots(hinge):
    """R86:12-FAST. Chains of rods at rest: accelerations with the fast gain, gravity included."""
    rods = kf.models.uniform_chain(200, hinge=hinge)
    rng = np.random.default_rng(0)
    q, tau = np.zeros(rods.nq), rng.normal(size=rods.nv)
    fast = kf.fast_filter(kf.as_estimation(rods, q), tau)
    theirs = kf.forward_dynamics(rods, q, np.zeros(rods.nv), tau)
    assert np.abs(fast.a - theirs).max() < 1e-10 * np.abs(theirs).max()
    assert fast.gains.settled is not None
    np.testing.assert_allclose(fast.gains.logdet, kf.mass_matrix_logdet(rods, q), rtol=1e-12)


@pytest.mark.parametrize("backwards", [False, True])
def test_filter_and_smoother(backwards):
    """z, ε, ν, λ, a and the likelihood are those of the engine, whichever end the chain is numbered from."""
    rng = np.random.default_rng(3)
    F, H, Q, R, P = system(3, 4, 2)
    N = 60
    parent = [k - 1 for k in range(N)] if backwards else [*range(1, N), -1]
    leaf = N - 1 if backwards else 0
    blocks = [P if k == leaf else Q for k in range(N)]
    phi = [None if p < 0 else F for p in parent]
    ss = kf.StateSpace(parent, phi, [H] * N, blocks, [R] * N, xi=rng.normal(size=4 * N))
    T = rng.normal(size=2 * N)
    fast, filt = kf.fast_filter(ss, T), kf.kalman_filter(ss, T)
    smooth = kf.bryson_frazier(ss, filt)
    for mine, theirs in (
        (fast.eps, filt.eps),
        (fast.nu, filt.nu),
        (fast.a, smooth.a),
        (fast.z.flat, filt.z.flat),
        (fast.costate.flat, smooth.costate.flat),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)
    assert fast.llf == pytest.approx(filt.llf, rel=1e-12)
    known = ss.replace(eta=rng.normal(size=4 * N))
    theirs = kf.kalman_filter(known, T)
    np.testing.assert_allclose(kf.fast_filter(known, T).a, kf.bryson_frazier(known, theirs).a, rtol=1e-9, atol=1e-9)
    assert kf.fast_filter(known, T).llf == pytest.approx(theirs.llf, rel=1e-10)


def test_it_never_sees_P_and_saves_operations():
    """Few outputs, many states, stationary: 2n²r operations a step against 4n³."""
    F, H, Q, R, P = system(5, 50, 2)
    fast = kf.fast_gain(F, H, Q, R, P, 300, tolerance=0.0)
    assert fast.rank <= 3  # the Lyapunov equation is solved to rounding, which may cost a column
    assert fast.flops < (4 * 50**3) * 300 / 10
    assert largest_error(fast, *reference(F, H, Q, R, P, 300)) < 1e-10


def test_refusals_name_the_culprit():
    one = np.eye(1)
    with pytest.raises(ShapeError, match="Q must have shape"):
        kf.fast_gain(one, one, np.eye(2), one, one, 3)
    with pytest.raises(ShapeError, match="steps must be a whole number"):
        kf.fast_gain(one, one, one, one, one, 0)
    with pytest.raises(ModelError, match="P0 has entries"):
        kf.fast_gain(one, one, one, one, [[np.nan]], 3)
    with pytest.raises(SingularError, match="D of step 0"):
        kf.fast_gain(one, one, one, 0 * one, 0 * one, 3)
    tree = kf.StateSpace([2, 2, -1], np.ones((3, 1, 1)), np.ones((3, 1, 1)), np.ones((3, 1, 1)))
    with pytest.raises(ModelError, match="branches"):
        kf.fast_filter(tree, np.zeros(3))
    uneven = kf.StateSpace([1, 2, -1], np.ones((3, 1, 1)), [[[1.0]], [[1.0]], [[2.0]]], np.ones((3, 1, 1)))
    with pytest.raises(ModelError, match="same H everywhere"):
        kf.fast_filter(uneven, np.zeros(3))
    even = kf.StateSpace([1, 2, -1], np.ones((3, 1, 1)), np.ones((3, 1, 1)), np.ones((3, 1, 1)))
    with pytest.raises(ModelError, match="T"):
        kf.fast_filter(even, [0.0, np.nan, 0.0])
    with pytest.raises(ShapeError, match="one series"):
        kf.fast_filter(even, np.zeros((2, 3)))


@pytest.mark.parametrize("units", [(1, 1, 1e-7), (1, 1e-4, 1e4), (1e-9, 1, 1e9)])
def test_units_do_not_matter(units):
    """A state measured in other units has the same rank, gain and likelihood."""
    V, Vi = np.diag(units), np.diag(1 / np.array(units))
    F, H = np.array([[1, 1, 0.5], [0, 1, 1], [0, 0, 1]]), np.array([[1.0, 0, 0]])
    T = np.random.default_rng(0).normal(size=60).cumsum()
    ss = kf.StateSpace.chain(V @ F @ Vi, H @ Vi, 0.1 * V @ V, [[1.0]], np.zeros(3), V @ V, steps=60)
    found = kf.fast_filter(ss, T)
    assert found.gains.rank == 3
    np.testing.assert_allclose(found.llf, kf.kalman_filter(ss, T).llf, rtol=1e-12)
    plain = kf.fast_gain(F, H, 0.1 * np.eye(3), [[1.0]], np.eye(3), 60)
    np.testing.assert_allclose(Vi @ found.gains.gain(59), plain.gain(59), rtol=1e-10)


def test_bad_input_is_named():
    eye, one = np.eye(2), np.eye(1)
    with pytest.raises(ModelError, match="flat prior"):
        kf.fast_filter(kf.StateSpace.chain(one, one, one, one, steps=5), np.arange(5.0))
    with pytest.raises(SingularError, match="D of step 1"):
        kf.fast_gain(eye, [[1.0, 0]], np.zeros((2, 2)), [[0.0]], eye, 10)
    with pytest.raises(ShapeError, match="H has no rows"):
        kf.fast_gain(eye, np.zeros((0, 2)), eye, np.zeros((0, 0)), eye, 10)
    with pytest.raises(ShapeError, match="whole number"):
        kf.fast_gain(one, one, one, one, one, 5.5)
    with pytest.raises(ModelError, match=r"Q .* not symmetric"):
        kf.fast_gain(eye, [[1.0, 0]], [[1, 0.5], [0, 1]], one, eye, 10)
    with pytest.raises(ModelError, match=r"P0 .* not positive semi-definite"):
        kf.fast_gain(one, one, one, one, -one, 5)
    three = kf.fast_gain(one, one, one, one, one, 3)
    assert three.gain(-1) == three.gain(2)
    with pytest.raises(IndexError, match="step 7"):
        three.gain(7)
