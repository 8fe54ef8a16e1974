"""The filter against dense conditioning: z, z⁺, ε, ν, log-likelihood; batches, missing outputs, kinds of input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import Case, cases, close, fast, few, random_case
from scipy.stats import multivariate_normal

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.dense import dense_filter, dense_posterior
from kfdyn.estimation.inference import filtered

methods = st.sampled_from(["block", "univariate"])


def run(case, T=None, method="block"):
    return kf.kalman_filter(case.ss, case.T if T is None else T, case.xi, case.eta, method=method)


@given(cases(missing=True), methods)
@fast
def test_states_and_innovations(case, method):
    """R86:8.2-8.9, R86:9.10-9.12, ATBI:gather-z, ATBI:predict-update. With ξ and η; ε and ν are 0 at missing T."""
    filt, dense = run(case, method=method), dense_filter(case.dense(), case.T, split="costate")
    for k in range(len(case.ss)):
        close(filt.z[k], dense.z[k])
        close(filt.z_plus[k], dense.z_plus[k])
    eps = np.nan_to_num(np.concatenate([np.zeros(0), *dense.eps]))
    close(filt.eps, eps)
    assert (filt.observed == ~np.isnan(case.T)).all()
    assert not filt.eps[~filt.observed].any()
    assert not filt.nu[~filt.observed].any()
    for k, (e, v) in enumerate(zip(case.ss.output_blocks(filt.eps), case.ss.output_blocks(filt.nu))):
        seen = case.ss.output_blocks(filt.observed)[k]
        D = dense.D[k][np.ix_(seen, seen)]
        close(v[seen], np.linalg.solve(D, e[seen]))


@given(cases(missing=True), methods)
@fast
def test_statistical_innovations_and_likelihood(case, method):
    """R86:9.4, R86:9.5,9.7. With η ≠ 0 the centred innovations are those of the conditional mean; the
    log-likelihood is scipy's density of T under N(bias, 𝓜)."""
    filt, model = run(case, method=method), case.dense()
    dense = dense_filter(model, case.T, split="statistical")
    close(filt.eps_centered, np.nan_to_num(np.concatenate([np.zeros(0), *dense.eps])))
    seen = filt.observed
    if seen.any():
        normal = multivariate_normal(model.bias[seen], model.output_cov[np.ix_(seen, seen)])
        close(filt.llf, normal.logpdf(case.T[seen]))
        close(
            filt.eps_centered @ filt.nu_centered,
            -2 * filt.llf - seen.sum() * np.log(2 * np.pi) - filt.covariances.logdet,
        )
    else:
        assert filt.llf == 0.0
    assert isinstance(filt.llf, float)


@given(cases(noise=False))
@fast
def test_conditional_mean_without_noise(case):
    """R86:9.1-9.3, R86:9.4 at R = 0: z is the mean given the outboard outputs, z⁺ meets the own output exactly."""
    filt = kf.kalman_filter(case.ss, case.T, xi=case.xi)
    dense = dense_filter(case.dense(eta=np.zeros_like(case.eta)), case.T)
    for k in range(len(case.ss)):
        close(filt.z[k], dense.z[k])
        close(case.ss.H[k] @ filt.z_plus[k], case.ss.output_blocks(case.T)[k])


@given(cases(missing=True), methods)
@fast
def test_eta_is_a_mean_of_w(case, method):
    """THEORY section 3: (ξ, η) and (ξ + Qφ*η, 0) have one likelihood and one set of centred innovations."""
    op = kf.Operators(case.ss)
    moved = kf.kalman_filter(case.ss, case.T, case.xi + op.Q @ (op.phi.H @ case.eta), 0 * case.eta, method=method)
    filt = run(case, method=method)
    close(filt.llf, moved.llf)
    close(filt.eps_centered, moved.eps)
    close(filt.nu_centered, moved.nu)


@given(
    cases(missing=True),
    st.sampled_from([(1,), (2,), (15,), (16,), (17,), (33,), (3, 2), (2, 1, 3)]),
    methods,
    st.data(),
)
@few
def test_batches_are_single_vectors(case, batch, method, data):
    """Every lane count, several axes, and ξ, η with their own axes: each entry is its own call, to the last digits."""
    rng = np.random.default_rng(0)
    T = case.T + rng.normal(size=(*batch, case.T.size))
    known = []
    for base in (case.xi, case.eta):
        axes = data.draw(st.sampled_from([None, (), batch, (1,) * len(batch), batch[-1:]]))
        known.append(None if axes is None else base + rng.normal(size=(*axes, base.size)))
    filt = kf.kalman_filter(case.ss, T, *known, method=method)
    smooth = kf.bryson_frazier(case.ss, filt)
    assert filt.eps.shape == filt.nu.shape == smooth.a.shape == T.shape
    llf = np.broadcast_to(filt.llf, batch)
    for at in np.ndindex(*batch):
        alone = [None if u is None else np.broadcast_to(u, (*batch, u.shape[-1]))[at] for u in known]
        one = kf.kalman_filter(case.ss, T[at], *alone, method=method)
        own = kf.bryson_frazier(case.ss, one)
        close(filt.eps[at], one.eps, 13)
        close(filt.nu[at], one.nu, 12)
        close(filt.z.flat[at], one.z.flat, 13)
        close(filt.z_plus.flat[at], one.z_plus.flat, 13)
        close(smooth.a[at], own.a, 12)
        close(smooth.costate.flat[at], own.costate.flat, 12)
        close(smooth.costate_plus.flat[at], own.costate_plus.flat, 12)
        close(smooth.x.flat[at], own.x.flat, 12)
        close(llf[at], one.llf, 12)


@pytest.mark.parametrize("which", ["T", "xi", "eta"])
@pytest.mark.parametrize("zero", [True, False])
def test_the_batch_may_come_from_any_input(which, zero):
    """Shapes depend on shapes, never on values: an input of zeros broadcasts like any other."""
    case = random_case(1, 5)
    given = {"T": case.T, "xi": case.xi, "eta": case.eta}
    given[which] = np.zeros((4, given[which].size)) if zero else np.tile(given[which], (4, 1))
    filt = kf.kalman_filter(case.ss, **given)
    smooth = kf.bryson_frazier(case.ss, filt)
    assert filt.eps.shape == filt.nu.shape == smooth.a.shape == (4, case.ss.n_outputs)
    assert filt.z.flat.shape == smooth.x.flat.shape == (4, case.ss.n_states)
    assert filt.eps_centered.shape == (4, case.ss.n_outputs)
    assert np.shape(filt.llf) == (4,)


def test_an_empty_batch():
    case = random_case(2, 4)
    filt = kf.kalman_filter(case.ss, np.zeros((0, case.ss.n_outputs)), eta=case.eta)
    smooth = kf.bryson_frazier(case.ss, filt)
    assert filt.eps.shape == (0, case.ss.n_outputs)
    assert filt.z.flat.shape == smooth.x.flat.shape == (0, case.ss.n_states)
    assert np.shape(filt.llf) == (0,)


def test_threads_change_nothing(monkeypatch):
    """Rows are disjoint, so 1, 2 and 5 threads agree to the bit; 10,250 rows make threads worth while."""
    case = random_case(3, 4)
    T = np.random.default_rng(0).normal(size=(10_250, case.ss.n_outputs))
    results = []
    for count in ("1", "2", "5"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", count)
        filt = kf.kalman_filter(case.ss, T, case.xi, case.eta)
        smooth = kf.bryson_frazier(case.ss, filt)
        results.append((filt.eps, filt.nu, filt.z.flat, filt.z_plus.flat, smooth.a, smooth.costate.flat, smooth.x.flat))
    for other in results[1:]:
        for one, two in zip(results[0], other):
            np.testing.assert_array_equal(one, two)


@given(cases(missing=True), st.sampled_from([(), (17,)]))
@few
def test_large_results_are_swept_when_asked_for(case, batch):
    """Above the limit nothing is stored on the way; what is computed later is the same to the bit."""
    T = case.T + np.random.default_rng(0).normal(size=(*batch, case.T.size))
    stored = run(case, T)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filtered, "STORED_NUMBERS", 0)
        later = run(case, T)
    assert "_states" in stored.__dict__
    assert "_states" not in later.__dict__
    for name in ("eps", "nu"):
        np.testing.assert_array_equal(getattr(later, name), getattr(stored, name))
    for name in ("z", "z_plus"):
        np.testing.assert_array_equal(getattr(later, name).flat, getattr(stored, name).flat)
    assert later.z is later.z


@pytest.mark.parametrize("stored", [0, filtered.STORED_NUMBERS])
def test_results_do_not_change_with_the_callers_arrays(stored, monkeypatch):
    """What is computed later is computed from what was given, whatever became of the caller's arrays."""
    monkeypatch.setattr(filtered, "STORED_NUMBERS", stored)
    case = random_case(4, 4)
    T, xi, eta = case.T.copy(), case.xi.copy(), case.eta.copy()
    filt = kf.kalman_filter(case.ss, T, xi, eta)
    for array in (T, xi, eta):
        array[:] = 7.0
    expected = run(case)
    np.testing.assert_array_equal(filt.z_plus.flat, expected.z_plus.flat)
    np.testing.assert_array_equal(kf.bryson_frazier(case.ss, filt).x.flat, kf.bryson_frazier(case.ss, expected).x.flat)
    assert filt.llf == expected.llf


def variants(array):
    """The same numbers as another kind of array."""
    padded = np.zeros((*array.shape[:-1], 2 * array.shape[-1]))
    padded[..., ::2] = array
    frozen = array.copy()
    frozen.flags.writeable = False
    return {
        "list": array.tolist(),
        "strided": padded[..., ::2],
        "fortran": np.asfortranarray(array),
        "reversed": array[..., ::-1].copy()[..., ::-1],
        "read-only": frozen,
        "big-endian": array.astype(">f8"),
        "long double": array.astype(np.longdouble),
    }


@pytest.mark.parametrize("kind", variants(np.zeros((1, 1))))
def test_kinds_of_array(kind):
    case = random_case(5, 6)
    T = np.random.default_rng(0).normal(size=(3, case.ss.n_outputs))
    T[:, 1] = np.nan
    expected = run(case, T)
    filt = kf.kalman_filter(case.ss, variants(T)[kind], variants(case.xi)[kind], variants(case.eta)[kind])
    np.testing.assert_array_equal(filt.eps, expected.eps)
    np.testing.assert_array_equal(filt.z_plus.flat, expected.z_plus.flat)
    np.testing.assert_array_equal(filt.llf, expected.llf)


def test_single_precision_and_integers_are_widened():
    case = random_case(6, 6)
    for dtype in (np.float32, np.int64):
        given = [(3 * v).astype(dtype) for v in (case.T, case.xi, case.eta)]
        expected = kf.kalman_filter(case.ss, *(v.astype(float) for v in given))
        filt = kf.kalman_filter(case.ss, *given)
        assert filt.eps.dtype == np.float64
        np.testing.assert_array_equal(filt.eps, expected.eps)


def test_inputs_are_left_alone():
    case = random_case(7, 6)
    given = [case.T.copy(), case.xi.copy(), case.eta.copy()]
    smooth = kf.bryson_frazier(case.ss, kf.kalman_filter(case.ss, *given))
    assert np.isfinite(smooth.x.flat).all()
    for after, before in zip(given, (case.T, case.xi, case.eta)):
        np.testing.assert_array_equal(after, before)


def test_inputs_of_the_model_and_of_the_call():
    """The call's ξ and η replace the model's; they do not add."""
    case = random_case(8, 5)
    ss = case.ss
    phi = [b if p >= 0 else None for p, b in zip(ss.tree.parent, ss.phi)]
    owner = kf.StateSpace(ss.tree, phi, ss.H, ss.Q, ss.R, xi=case.xi, eta=case.eta)
    np.testing.assert_array_equal(kf.kalman_filter(owner, case.T).eps, run(case).eps)
    other = kf.kalman_filter(owner, case.T, xi=2 * case.xi, eta=np.zeros(ss.n_states))
    np.testing.assert_array_equal(other.eps, kf.kalman_filter(ss, case.T, xi=2 * case.xi).eps)


def test_no_output_at_all():
    """Nothing to measure is no error: the prior stands, the likelihood is one."""
    ss = kf.StateSpace([1, -1], np.ones((2, 2, 2)), np.zeros((2, 0, 2)), np.stack([np.eye(2)] * 2))
    for batch in ((), (3,)):
        filt = kf.kalman_filter(ss, np.zeros((*batch, 0)), xi=np.arange(4.0))
        np.testing.assert_array_equal(np.broadcast_to(filt.llf, batch), np.zeros(batch))
        np.testing.assert_array_equal(filt.z[1], np.broadcast_to([3.0, 4.0], (*batch, 2)))
        assert kf.bryson_frazier(ss, filt).x[1].shape == (*batch, 2)


@pytest.mark.parametrize("N", [1, 2, 3])
@pytest.mark.parametrize("noise", [True, False])
def test_the_smallest_models(N, noise):
    for seed in range(5):
        case = random_case(seed, N, noise=noise)
        filt = run(case)
        smooth = kf.bryson_frazier(case.ss, filt)
        posterior = dense_posterior(case.dense(), case.T)
        close(smooth.x.flat, posterior.mean)
        close(smooth.a, posterior.a)
        close(filt.llf, posterior.llf)


def test_words_and_repr():
    case: Case = random_case(9, 4)
    filt = run(case)
    words = {
        "predicted_state": filt.z,
        "predicted_state_cov": filt.P,
        "filtered_state": filt.z_plus,
        "filtered_state_cov": filt.P_plus,
        "kalman_gain": filt.G,
        "innovations": filt.eps,
        "innovations_cov": filt.D,
    }
    for word, value in words.items():
        assert getattr(filt, word) is value
    assert filt.K is filt.covariances.K
    assert repr(filt).startswith("Filtered(4 nodes")
    with pytest.raises(AttributeError):
        filt.eps = filt.nu


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"T": np.zeros(2)},
            ShapeError,
            r"T has shape \(2,\), but its last axis must stack the \d+ outputs of the 5 nodes",
        ),
        ({"T": 1.0}, ShapeError, r"T has shape \(\)"),
        ({"T": "many"}, ShapeError, r"T must be an array of real numbers"),
        ({"xi": np.zeros(2)}, ShapeError, r"xi has shape \(2,\).*\d+ states of the 5 nodes"),
        ({"eta": np.zeros((3, 2))}, ShapeError, r"eta has shape \(3, 2\)"),
    ],
)
def test_bad_shapes_are_named(change, error, message):
    case = random_case(10, 5)
    given = {"T": case.T, "xi": case.xi, "eta": case.eta} | change
    with pytest.raises(error, match=message):
        kf.kalman_filter(case.ss, **given)


def test_bad_numbers_are_named():
    case = random_case(10, 5, n=3, m=2)
    for name, bad, message in (
        ("T", np.inf, r"T\[5\] \(node 2\) is inf, not a finite number; mark a missing measurement by NaN"),
        ("xi", np.nan, r"xi\[5\] \(node 1\) is nan, not a finite number"),
        ("eta", -np.inf, r"eta\[5\] \(node 1\) is -inf, not a finite number"),
    ):
        given = {"T": case.T.copy(), "xi": case.xi.copy(), "eta": case.eta.copy()}
        given[name][5] = bad
        with pytest.raises(ModelError, match=message):
            kf.kalman_filter(case.ss, **given)


def test_one_pattern_for_one_call():
    case = random_case(10, 5, n=3, m=2)
    T = np.zeros((2, 10))
    T[1, 7] = np.nan
    with pytest.raises(
        ShapeError, match=r"output 7 \(node 3\) is missing in some batch entries .* group the entries by pattern"
    ):
        kf.kalman_filter(case.ss, T)
    with pytest.raises(ShapeError, match=r"do not broadcast: T \(2, 10\), xi \(3, 15\)"):
        kf.kalman_filter(case.ss, np.zeros((2, 10)), xi=np.ones((3, 15)))
    with pytest.raises(ModelError, match="method must be"):
        kf.kalman_filter(case.ss, case.T, method="scan")


def test_complex_numbers_are_refused():
    """Dropping an imaginary part would be a wrong number."""
    case = random_case(10, 5)
    with pytest.raises(ShapeError, match="T must be an array of real numbers: it is complex"):
        kf.kalman_filter(case.ss, case.T + 1j)


def test_a_senseless_thread_count_is_named(monkeypatch):
    monkeypatch.setenv("KFDYN_NUM_THREADS", "many")
    case = random_case(10, 5)
    with pytest.raises(ValueError, match=r"KFDYN_NUM_THREADS.*many"):
        kf.kalman_filter(case.ss, np.zeros((5000, case.ss.n_outputs)))


def test_masked_entries_are_missing():
    """The numbers under a mask are not measurements."""
    ss = random_walk(4)
    T = np.ma.masked_array([1.0, 50.0, 2.0, -60.0], [0, 1, 0, 1])
    expected = kf.kalman_filter(ss, [1.0, np.nan, 2.0, np.nan])
    np.testing.assert_array_equal(kf.kalman_filter(ss, T).eps, expected.eps)
    with pytest.raises(ModelError, match="is nan"):
        kf.kalman_filter(ss, T, xi=T)


def random_walk(N):
    one = np.ones((1, 1))
    return kf.StateSpace.chain(one, one, one, one, [0.0], one, steps=N)


def test_measurements_behind_another_type_are_copied_too():
    """An object that lends its memory, as a data frame does; z is swept again later from what was given."""

    class Series:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return self.values

    T = np.array([1.0, 2.0, 3.0])
    filt = kf.kalman_filter(random_walk(3), Series(T))
    T[:] = 100.0
    np.testing.assert_array_equal(filt.T, [1.0, 2.0, 3.0])
