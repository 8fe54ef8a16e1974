"""The square-root form: the same answers, and right ones where the covariance form has lost its digits."""

from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from exact import DIGITS, _lift, exact_smoother, relative_error
from hypothesis import given
from random_models import cases, close, few, random_case

import kfdyn as kf
from kfdyn.errors import LostDigitsWarning, ModelError, ShapeError, SingularError
from kfdyn.estimation.inference import square_root
from kfdyn.sweeps import Checks, Tag

one = np.ones((1, 1))


class Twin(SimpleNamespace):
    def __len__(self):
        return len(self.tree)


def exact_of(ss, Q, R, T):
    names = ("tree", "n", "m", "phi", "H", "xi", "n_states", "output_blocks", "state_blocks")
    return exact_smoother(Twin(**{name: getattr(ss, name) for name in names}, Q=Q, R=R), T)


def squares(factors):
    with mp.workdps(DIGITS):
        return [_lift(f) @ _lift(f).T for f in factors]


@given(cases(missing=True))
@few
def test_same_answers_as_the_covariance_form(case):
    both = [kf.kalman_filter(case.ss, case.T, case.xi, case.eta, method=m) for m in ("block", "square_root")]
    smooth = [kf.bryson_frazier(case.ss, filt) for filt in both]
    for name in ("P", "P_plus", "D", "G", "z", "z_plus"):
        close(getattr(both[1], name).flat, getattr(both[0], name).flat)
    close(both[1].llf, both[0].llf)
    for name in ("x", "S", "Lambda", "costate"):
        close(getattr(smooth[1], name).flat, getattr(smooth[0], name).flat)
    close(smooth[1].a, smooth[0].a)


def test_the_factor_and_the_covariances_go_by_roots_too():
    case = random_case(3, 14, noise=False)
    root, block = (kf.riccati(case.ss, method=m) for m in ("square_root", "block"))
    T = case.T
    solved = [kf.estimation.inference.factor.InnovationsFactor(c) for c in (root, block)]
    close(solved[0].solve(T), solved[1].solve(T))
    close(solved[0].inverse(), solved[1].inverse())
    assert np.isclose(solved[0].logdet(), solved[1].logdet(), rtol=1e-12)
    close(kf.innovations_factor(case.ss, method="square_root").solve(T), solved[1].solve(T))
    for name in ("filter_error", "a", "smoothed_error"):
        close(getattr(kf.Covariances(root), name).dense(), getattr(kf.Covariances(block), name).dense())
    for name in ("P_root", "P_plus_root"):
        for C, P in zip(getattr(root, name), getattr(block, name[: -len("_root")])):
            close(C @ C.T, P)


def weak_noise(seed=0, steps=60):
    """Four states, 60 steps, R = 0, a rank-one Q^½ of 1e-6, P₀ = 1e8: "outputs already determine it", they said."""
    rng = np.random.default_rng(seed)
    n, N = 4, steps
    F = np.linalg.qr(rng.normal(size=(n, n)))[0]
    H, b = rng.normal(size=(1, n)), 1e-6 * rng.normal(size=(n, 1))
    factors = [1e4 * np.eye(n)] + [b] * (N - 1)
    ss = kf.StateSpace(kf.Tree.chain(N), np.broadcast_to(F, (N, n, n)), np.broadcast_to(H, (N, 1, n)), Q_factor=factors)
    return ss, factors, rng.normal(size=N)


def test_where_the_covariance_form_gives_up_the_roots_have_all_digits_of_D():
    ss, factors, T = weak_noise()
    with pytest.raises(SingularError, match=r"lost all its digits.*method='square_root'"):
        kf.kalman_filter(ss, T)
    filt = kf.kalman_filter(ss, T, method="square_root")
    want = exact_of(ss, squares(factors), list(ss.R), T)
    assert relative_error(filt.D, want.D) < 1e-10
    assert abs(filt.covariances.logdet - float(sum(mp.log(d[0, 0]) for d in want.D))) < 1e-9


def wide_prior(P0=1e12):
    """A track of position and velocity, known to nobody beforehand, resolved by ten measurements."""
    rng = np.random.default_rng(1)
    F, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    Q = 1e-4 * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])
    ss = kf.StateSpace.chain(F, H, Q, 1e-2 * one, [0.0, 0.0], P0 * np.eye(2), steps=10)
    return ss, 3.0 * np.arange(10.0) + 0.1 * rng.normal(size=10)


def deviations(smooth, want):
    """How many standard deviations x̂ is off, and the relative error of S, at most."""
    off = worst = 0.0
    for k in range(len(want.x)):
        for i in range(len(want.x[k])):
            sigma = mp.sqrt(want.S[k][i, i])
            off = max(off, float(abs(mp.mpf(smooth.x[k][i]) - want.x[k][i]) / sigma))
        worst = max(worst, relative_error([smooth.S[k]], [want.S[k]]))
    return off, worst


def test_a_very_wide_prior_costs_no_digit_of_the_smoothed_state():
    ss, T = wide_prior()
    want = exact_smoother(ss, T)
    off, worst = deviations(kf.bryson_frazier(ss, kf.kalman_filter(ss, T, method="square_root")), want)
    assert off < 1e-8 and worst < 1e-8
    with pytest.warns(LostDigitsWarning, match="square_root"):
        filt = kf.kalman_filter(ss, T)
    plain, _ = deviations(kf.bryson_frazier(ss, filt), want)
    assert plain > 1e-4  # what it is for


def test_a_parent_with_many_children_is_smoothed_child_by_child():
    """Siblings of very different variance: each is one more column, and the rest goes on to the next."""
    rng = np.random.default_rng(2)
    sizes = [2, 3, 1, 2, 2]
    phi = [rng.normal(size=(2, n)) for n in sizes[:-1]] + [None]
    H = [rng.normal(size=(1, n)) for n in sizes]
    factors = [s * rng.normal(size=(n, n)) for n, s in zip(sizes, (1e6, 1.0, 1e-4, 1e3, 1e-2))]
    ss = kf.StateSpace([4, 4, 4, 4, -1], phi, H, Q_factor=factors, R_factor=[1e-3 * one] * 5)
    T = rng.normal(size=5)
    want = exact_of(ss, squares(factors), squares([1e-3 * one] * 5), T)
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, T, method="square_root"))
    assert relative_error(smooth.x, want.x) < 1e-10
    assert relative_error(smooth.S, want.S) < 1e-9


def test_singular_is_still_singular():
    """Two exact measurements of the same thing: no form has an answer, and none says that digits are missing."""
    ss = kf.StateSpace.chain(one, one, 0 * one, 0 * one, [0.0], one, steps=2)
    for method in ("block", "univariate", "square_root"):
        with pytest.raises(SingularError, match="already determine it"):
            kf.kalman_filter(ss, [1.0, 1.0], method=method)


def test_factors_stand_for_their_squares():
    rng = np.random.default_rng(4)
    case = random_case(4, 7)
    ss = case.ss
    Q, R = ([rng.normal(size=(len(b), w)) for b in blocks] for blocks, w in ((ss.Q, 7), (ss.R, 1)))
    R = [r + 0.0 for r in R]
    given = kf.StateSpace(ss.tree, ss.phi, ss.H, Q_factor=Q, R_factor=[np.hstack([r, np.eye(len(r))]) for r in R])
    squared = kf.StateSpace(ss.tree, ss.phi, ss.H, [q @ q.T for q in Q], [r @ r.T + np.eye(len(r)) for r in R])
    for method in ("block", "square_root"):
        assert np.isclose(
            kf.kalman_filter(given, case.T, method=method).llf, kf.kalman_filter(squared, case.T).llf, rtol=1e-11
        )
    other = given.replace(Q=list(squared.Q))
    assert other.factors.Q is None and other.factors.R is given.factors.R
    with pytest.raises(ModelError, match="both given"):
        kf.StateSpace([-1], [None], [one], [one], Q_factor=[one])
    with pytest.raises(ShapeError, match="give Q"):
        kf.StateSpace([-1], [None], [one])
    with pytest.raises(ModelError, match="method must be"):
        kf.riccati(squared, method="roots")


def test_every_index_of_the_sweeps_is_in_its_array(monkeypatch):
    """The sweeps as Python, every index checked."""
    monkeypatch.setattr(Checks, "on", True)
    case = random_case(5, 6)
    T = np.where(np.arange(case.T.size) % 3 == 0, np.nan, case.T)
    filt = kf.kalman_filter(case.ss, T, case.xi, case.eta, method="square_root")
    smooth = kf.bryson_frazier(case.ss, filt)
    want = kf.bryson_frazier(case.ss, kf.kalman_filter(case.ss, T, case.xi, case.eta))
    close(smooth.x.flat, want.x.flat)
    close(smooth.S.flat, want.S.flat)


def even_model(parent, n, m, seed=0):
    """Nodes of one size, every matrix different."""
    rng, N = np.random.default_rng(seed), len(parent)
    B = rng.normal(size=(N, n, n))
    phi = rng.normal(size=(N, n, n)) / (2 * np.sqrt(n))
    return kf.StateSpace(
        parent, phi, rng.normal(size=(N, m, n)), B @ B.transpose(0, 2, 1), np.broadcast_to(np.eye(m), (N, m, m))
    )


def tree_parent(N, seed=0):
    rng = np.random.default_rng(seed)
    return [-1, *(int(rng.integers(0, k)) for k in range(1, N))]


@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 1), (3, 1), (6, 2), (8, 1), (12, 1), (17, 2)])
def test_every_size_that_code_is_written_for(n, m):
    """Sizes known while code is written, and not; nodes side by side, and alone; some outputs missing."""
    ss = even_model(tree_parent(70), n, m)
    T = np.random.default_rng(1).normal(size=ss.n_outputs)
    T[::7] = np.nan
    both = [kf.kalman_filter(ss, T, method=method) for method in ("block", "square_root")]
    smooth = [kf.bryson_frazier(ss, filt) for filt in both]
    for name in ("P", "P_plus", "D", "G", "z_plus"):
        close(getattr(both[1], name).flat, getattr(both[0], name).flat)
    for name in ("x", "S", "Lambda"):
        close(getattr(smooth[1], name).flat, getattr(smooth[0], name).flat)
    for blocks in (both[1].P, both[1].P_plus, both[1].D, smooth[1].S):
        assert all((block == block.T).all() for block in blocks)
    roots = both[1].covariances
    for C, P in zip(roots.P_root, both[0].P):
        close(C @ C.T, P)
        assert not np.triu(C, 1).any() and (C.diagonal() >= 0.0).all()
    for C, P in zip(roots.P_plus_root, both[0].P_plus):
        close(C @ C.T, P)


@pytest.mark.parametrize("n", [2, 6, 12])
def test_a_row_gets_the_same_bits_in_any_batch(n):
    ss = even_model(tree_parent(70), n, 1)
    T = np.random.default_rng(1).normal(size=(37, ss.n_outputs))

    def states(some):
        return kf.bryson_frazier(ss, kf.kalman_filter(ss, some, method="square_root")).x.flat

    together = states(T)
    for row in (0, 7, 36):
        assert (states(T[row]) == together[row]).all()
    assert (states(T[3:9]) == together[3:9]).all()


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_nodes_get_the_same_bits_however_many_go_side_by_side(monkeypatch, lanes):
    """One at a time, rows are summed in another order: there, to rounding."""
    if Checks.on and lanes > 1:
        pytest.skip("Python's own numbers have one lane")
    case = random_case(6, 60, noise=True)
    want = kf.bryson_frazier(case.ss, kf.kalman_filter(case.ss, case.T, method="square_root"))
    case.ss._cache.clear()
    monkeypatch.setattr(square_root, "_lanes", lambda ss: Tag(lanes))
    found = kf.bryson_frazier(case.ss, kf.kalman_filter(case.ss, case.T, method="square_root"))
    if lanes > 1:
        assert (found.x.flat == want.x.flat).all() and (found.S.flat == want.S.flat).all()
    close(found.x.flat, want.x.flat)
    close(found.S.flat, want.S.flat)


def test_columns_are_exchanged_where_they_are_graded():
    """Small columns beside large ones: without the exchange the variances of the weak noise have lost their digits."""
    for steps in (60, 80):  # in memory, and in registers
        ss, factors, T = weak_noise(steps=steps)
        filt = kf.kalman_filter(ss, T, method="square_root")
        assert (filt.covariances.sizes.n is not None) == (steps >= 64)
        want = exact_of(ss, squares(factors), list(ss.R), T)
        assert relative_error(filt.D, want.D) < 1e-12


def test_the_order_of_the_columns_of_a_factor_does_not_matter():
    """Columns of 1e-11 and 3e3: the variance that is left is that of the small one, whichever comes first."""
    F = np.array([[[1e-11, 3000.0], [2e-11, 5000.0]]])
    for factor in (F, F[:, :, ::-1]):
        ss = kf.StateSpace([-1], [None], [[[1.0, 0.0]]], Q_factor=factor, R_factor=[[[1e-15]]])
        S = kf.bryson_frazier(ss, kf.kalman_filter(ss, [0.0], method="square_root")).S[0]
        assert abs(S[1, 1] / 1.11111138889e-23 - 1) < 1e-9  # by sixty digits
