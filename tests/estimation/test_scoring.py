"""The score against differences in fifty digits, and against the dense gradient of a Gaussian's log-density."""

import mpmath as mp
import numpy as np
import pytest
from exact import DIGITS
from hypothesis import given
from random_models import cases, close, few, random_case

import kfdyn as kf
from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.dense import DenseModel
from kfdyn.estimation.flat.flat_score import score_of

NAMES = ("phi", "H", "Q", "R", "xi", "eta")


def _lifted(array):
    return np.vectorize(lambda x: mp.mpf(float(x)), otypes=[object])(array)


def exact_llf(ss, T, given):
    """Log-density of what is seen of T under N(Hφ(ξ + Qφ*η), HφQφ*H* + R), from dense matrices of fifty digits."""
    state, output = ss.arrays.state, ss.arrays.output
    zero = mp.mpf(0)
    J = np.full((ss.n_outputs, ss.n_states), zero)  # Hφ, node by node from the roots to the leaves
    reach = [None] * len(ss)
    for k in ss.tree.order[::-1]:
        p, own = ss.tree.parent[k], np.full((ss.n_outputs, ss.n[k]), zero)
        if p >= 0:
            own = own + reach[p] @ given["phi"][k]
        own[output[k] : output[k + 1]] = own[output[k] : output[k + 1]] + given["H"][k]
        reach[k] = J[:, state[k] : state[k + 1]] = own
    cov = np.full((ss.n_outputs, ss.n_outputs), zero)
    mean = np.full(ss.n_outputs, zero)
    lifted = [None] * len(ss)
    for k in ss.tree.order[::-1]:  # u = φ*η
        lifted[k] = given["eta"][state[k] : state[k + 1]]
        if ss.tree.parent[k] >= 0:
            lifted[k] = lifted[k] + given["phi"][k].T @ lifted[ss.tree.parent[k]]
    for k in range(len(ss)):
        cov = cov + reach[k] @ given["Q"][k] @ reach[k].T
        cov[output[k] : output[k + 1], output[k] : output[k + 1]] += given["R"][k]
        mean = mean + reach[k] @ (given["xi"][state[k] : state[k + 1]] + given["Q"][k] @ lifted[k])
    seen = np.flatnonzero(~np.isnan(T))
    if not seen.size:
        return zero
    part, e = mp.matrix(cov[np.ix_(seen, seen)].tolist()), mp.matrix((_lifted(T[seen]) - mean[seen]).tolist())
    quadratic = (e.T * mp.lu_solve(part, e))[0]
    return -(quadratic + mp.log(mp.det(part)) + seen.size * mp.log(2 * mp.pi)) / 2


def blocks_of(case):
    ss = case.ss
    given = {name: [_lifted(b) for b in getattr(ss, name)] for name in ("phi", "H", "Q", "R")}
    return given | {"xi": _lifted(case.xi), "eta": _lifted(case.eta)}


def worst_error(case, rng):
    """Largest error of a directional derivative, every entry of every block moved at random, over |gradient||step|."""
    g = kf.score(case.ss, case.T, case.xi, case.eta)
    worst = 0.0
    with mp.workdps(DIGITS):
        given, h = blocks_of(case), mp.mpf(10) ** -15
        for name in NAMES:
            mine = getattr(g, name)
            flat = name in ("xi", "eta")
            step = [rng.normal(size=b.shape) for b in ([mine] if flat else mine)]
            if name in ("Q", "R"):
                step = [0.5 * (d + d.T) for d in step]

            def at(sign, name=name, step=step, flat=flat):
                moved = [b + sign * h * _lifted(d) for b, d in zip([given[name]] if flat else given[name], step)]
                return exact_llf(case.ss, case.T, given | {name: moved[0] if flat else moved})

            slope = float((at(1) - at(-1)) / (2 * h))
            pairs = list(zip([mine] if flat else mine, step))
            found = sum(float((a * d).sum()) for a, d in pairs)
            size = np.sqrt(sum((a**2).sum() for a, _ in pairs) * sum((d**2).sum() for _, d in pairs))
            worst = max(worst, abs(found - slope) / max(size, 1.0))
    return worst


@given(cases(missing=True, max_nodes=5))
@few
def test_score_is_the_derivative_in_fifty_digits(case):
    """THEORY:score. Ragged forests, η ≠ 0, missing outputs, R and Q full, singular or zero from node to node."""
    assert worst_error(case, np.random.default_rng(0)) < 1e-9


@given(cases(noise=False, max_nodes=4))
@few
def test_score_of_exact_measurements(case):
    """THEORY:score with R = 0, as every robot without rotors has it."""
    assert worst_error(case, np.random.default_rng(1)) < 1e-9


@pytest.mark.slow
def test_score_of_two_hundred_forests():
    """THEORY:score on larger forests, half of them with R = 0, a quarter of the outputs missing."""
    worst = 0.0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        case = random_case(seed, 2 + seed % 9, noise=seed % 2 == 0)
        case.T[rng.random(case.T.size) < 0.25] = np.nan
        worst = max(worst, worst_error(case, rng))
    assert worst < 1e-9, worst


def dense_gradient(case, T):
    """∂ℓ/∂𝓜 = ½(aa* − 𝓜⁻¹) of what is seen, carried back through 𝓜 = HφQφ*H* + R; η = 0."""
    full = DenseModel.from_blocks(case.ss.tree.parent, case.ss.phi, case.ss.H, case.ss.Q, case.ss.R, case.xi, None)
    J = full.H @ full.phi
    seen = ~np.isnan(T)
    a, inverse = np.zeros(T.size), np.zeros((T.size, T.size))
    cov = J @ full.Q @ J.T + full.R
    inverse[np.ix_(seen, seen)] = np.linalg.inv(cov[np.ix_(seen, seen)])
    a[seen] = (inverse @ np.where(seen, T - J @ case.xi, 0.0))[seen]
    half = 0.5 * (np.outer(a, a) - inverse)
    return half, J.T @ half @ J, J.T @ a, inverse, J


@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_score_of_long_chains_whose_sizes_are_compiled_in(n):
    N = 80
    case = random_case(n, N, n=n, m=1, parent=[*range(1, N), -1])
    T = case.T.copy()
    T[::7] = np.nan
    g = kf.score(case.ss, T, case.xi)
    half, states, xi, inverse, J = dense_gradient(case, T)
    close(g.xi, xi)
    for k in range(0, N, 9):
        x, y = slice(k * n, (k + 1) * n), slice(k, k + 1)
        close(g.Q[k], states[x, x])
        close(g.R[k], half[y, y])
        close(g.logdet_Q[k], (J.T @ inverse @ J)[x, x])
        close(g.logdet_R[k], inverse[y, y])
    h, rng = 1e-6, np.random.default_rng(0)
    for name in ("phi", "H"):  # by differences, which see 1e-8 of it
        step = rng.normal(size=getattr(case.ss, name).flat.size)
        blocks = getattr(case.ss, name)

        def llf(s, name=name, blocks=blocks, step=step):
            moved = list(blocks.like(blocks.flat + s * step))
            if name == "phi":
                moved[-1] = None
            return kf.kalman_filter(case.ss.replace(**{name: moved}), T, case.xi).llf

        slope = (llf(h) - llf(-h)) / (2 * h)
        assert abs(getattr(g, name).flat @ step - slope) < 1e-7 * max(1.0, abs(slope))


def test_one_gradient_for_each_batch_entry():
    case = random_case(2, 11)
    rng = np.random.default_rng(0)
    T, eta = rng.normal(size=(3, 2, case.ss.n_outputs)), rng.normal(size=(2, case.ss.n_states))
    T[..., 1] = np.nan
    g = kf.score(case.ss, T, case.xi, eta)
    for b in np.ndindex(3, 2):
        one = kf.score(case.ss, T[b], case.xi, eta[b[1]])
        assert one.llf == pytest.approx(g.llf[b], rel=1e-13)
        for name in NAMES:
            mine, alone = getattr(g, name), getattr(one, name)
            if name in ("xi", "eta"):
                close(mine[b], alone)
                continue
            for k in range(len(case.ss)):
                assert mine[k].shape == (3, 2, *getattr(case.ss, name)[k].shape)
                close(mine[k][b], alone[k])


def test_either_method_and_a_smoother_that_has_run_already():
    case = random_case(7, 10)
    one, other = kf.score(case.ss, case.T), kf.score(case.ss, case.T, method="univariate")
    smooth = kf.bryson_frazier(case.ss, kf.kalman_filter(case.ss, case.T))
    for name in NAMES:
        for g in (other, score_of(smooth)):
            mine, theirs = getattr(one, name), getattr(g, name)
            close(getattr(theirs, "flat", theirs), getattr(mine, "flat", mine))


def test_the_known_inputs_of_the_model_count():
    case = random_case(8, 6)
    ss = case.ss.replace(xi=case.xi, eta=case.eta)
    for name in ("Q", "phi"):
        close(
            getattr(kf.score(ss, case.T), name).flat, getattr(kf.score(case.ss, case.T, case.xi, case.eta), name).flat
        )


def test_steps_that_nodes_share_have_a_gradient_each():
    one = np.ones((1, 1))
    ss = kf.StateSpace.chain(0.5 * one, one, one, one, [0.0], one, steps=4)
    apart = kf.StateSpace.chain(np.full((3, 1, 1), 0.5), one, one, one, [0.0], one)
    T = np.array([1.0, -2.0, 3.0, 0.5])
    g, h = kf.score(ss, T), kf.score(apart, T)
    assert g.phi.flat.shape == (3,)
    np.testing.assert_array_equal(g.phi.flat, h.phi.flat)


def test_what_has_no_score():
    ss = kf.StateSpace([-1], [None], [np.ones((1, 1))], [np.zeros((1, 1))])
    with pytest.raises(SingularError, match="node 0"):
        kf.score(ss, [1.0])
    with pytest.raises(ModelError, match="bryson_frazier"):
        score_of(ss)


@pytest.mark.parametrize(("outputs", "missing"), [(1, False), (1, True), (3, False), (3, True)])
def test_what_does_not_depend_on_T_whichever_is_asked_for_first(outputs, missing):
    """Λ, C and the derivatives in φ and H come from one scatter or from several."""
    case = random_case(5, 70, n=3, m=outputs)
    seen = np.ones(case.ss.n_outputs, dtype=bool)
    seen[:: 4 if missing else case.ss.n_outputs + 1] = False

    def found(*names):
        case.ss._cache.clear()
        cov = kf.riccati(case.ss, seen)
        ways = {
            "maps": lambda: np.concatenate([b.flat for b in cov.logdet_of_maps()]),
            "C": lambda: cov.inverse_blocks.flat,
            "Lambda": lambda: cov.Lambda.flat,
            "smoothed": lambda: cov.smoothed.Lambda.flat,
        }
        return {name: ways[name]() for name in names}

    first = found("maps", "C", "Lambda", "smoothed")
    for order in (("C", "maps", "Lambda"), ("smoothed", "Lambda", "C", "maps"), ("Lambda", "C")):
        for name, numbers in found(*order).items():
            close(numbers, first[name])
    T = np.where(seen, case.T, np.nan)
    *_, inverse, _ = dense_gradient(case, T)
    C = kf.estimation.Blocks(first["C"], case.ss.m, case.ss.m)
    for k in range(0, 70, 7):
        own = slice(outputs * k, outputs * (k + 1))
        close(C[k], inverse[own, own])
        assert (C[k] == C[k].T).all()
