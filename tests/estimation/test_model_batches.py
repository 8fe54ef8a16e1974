"""Models side by side: each is what it is alone, whatever goes with it."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from random_models import build, few, random_covariance, random_matrix, random_parent, seeds

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation import dense
from kfdyn.sweeps import Checks

KINDS = ["full", "singular", "zero"]


def case(seed, B=11, N=9, most=4, vectors=True, exact=False, flat=False):
    """B models of one ragged forest, and a series for each of them that lacks some measurements."""
    rng = np.random.default_rng(seed)
    parent = np.append(np.arange(1, N), -1) if flat else random_parent(rng, N)
    n = rng.integers(1, most + 1, N)
    m = np.array([rng.integers(0, min(2 if vectors else 1, size) + 1) for size in n])
    phi, Q, R = ([rng.choice(kinds) for _ in range(N)] for kinds in (["full", "singular"], KINDS, KINDS))

    def model(b):
        rng = np.random.default_rng([seed, b])
        ss = build(rng, parent, n, m, phi, Q, ["zero"] * N if exact else R, not exact)
        return kf.StateSpace(
            parent, ss.phi, ss.H, ss.Q, ss.R, xi=rng.normal(size=n.sum()),
            flat={0: [True] + [False] * (n[0] - 1)} if flat else None,
        )  # fmt: skip

    models = [model(b) for b in range(B)]
    T = rng.normal(size=(B, m.sum()))
    if T.shape[1] > 4:
        T[:, rng.random(T.shape[1]) < 0.2] = np.nan
    return models, T


def agree(found, wanted, rel=1e-10):
    wanted = np.asarray(wanted)
    assert_allclose(found, wanted, rtol=0, atol=rel * max(1.0, np.abs(wanted).max(initial=0.0)))


@few
@given(seeds)
@pytest.mark.parametrize(("vectors", "exact"), [(True, False), (False, False), (True, True)])
def test_each_model_is_what_it_is_alone(vectors, exact, seed):
    models, T = case(seed, vectors=vectors, exact=exact)
    many = kf.StateSpaceBatch.of(models)
    filt = kf.kalman_filter(many, T)
    alone = [kf.kalman_filter(*each) for each in zip(models, T)]
    agree(filt.llf, [f.llf for f in alone])
    agree(filt.eps, [f.eps for f in alone])
    for name in ("P", "P_plus", "D", "G", "z", "z_plus"):
        agree(getattr(filt, name).flat, [getattr(f, name).flat for f in alone])
    smooth, own = kf.bryson_frazier(many, filt), [kf.bryson_frazier(f) for f in alone]
    agree(smooth.a, [s.a for s in own])
    for name in ("x", "costate", "S", "Lambda"):
        agree(getattr(smooth, name).flat, [getattr(s, name).flat for s in own])
    g, each = kf.score(many, T), [kf.score(*each) for each in zip(models, T)]
    agree(g.llf, [f.llf for f in alone])
    agree(g.xi, [h.xi for h in each])
    for name in ("phi", "H", "Q", "R"):
        agree(getattr(g, name).flat, [getattr(h, name).packed().flat for h in each], 1e-9)


def test_against_the_dense_normal():
    models, T = case(3)
    T = np.nan_to_num(T)
    filt = kf.kalman_filter(kf.StateSpaceBatch.of(models), T)
    x = kf.bryson_frazier(filt).x.flat
    for model, series, llf, mean in zip(models, T, filt.llf, x):
        found = dense.dense_posterior(model, series)
        assert llf == pytest.approx(found.llf, rel=1e-10)
        agree(mean, found.mean)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_flat_priors_have_likelihoods_and_scores(seed):
    models, T = case(seed, flat=True)
    many = kf.StateSpaceBatch.of(models)
    agree(kf.kalman_filter(many, T).llf, [kf.kalman_filter(*each).llf for each in zip(models, T)])
    g, alone = kf.score(many, T), [kf.score(*each) for each in zip(models, T)]
    for name in ("phi", "H", "R"):
        agree(getattr(g, name).flat, [getattr(h, name).packed().flat for h in alone], 1e-8)
    with pytest.raises(ModelError, match="one of them alone"):
        _ = kf.kalman_filter(many, T).P
    with pytest.raises(ModelError, match="one by one"):
        kf.bryson_frazier(kf.kalman_filter(many, T))


def test_the_same_bits_in_any_company_and_on_any_number_of_threads(monkeypatch):
    models, T = case(2, B=37)

    def ask(count):
        many = kf.StateSpaceBatch.of(models[:count])
        filt = kf.kalman_filter(many, T[:count])
        g, smooth = kf.score(many, T[:count]), kf.bryson_frazier(filt)
        return filt.llf, filt.P.flat, smooth.x.flat, smooth.S.flat, g.Q.flat, g.phi.flat, g.xi

    whole = ask(37)
    monkeypatch.setenv("KFDYN_NUM_THREADS", "2")
    for count in (1, 7, 8, 9, 37):
        for some, all_ in zip(ask(count), whole):
            assert (some == all_[:count]).all()


@pytest.mark.parametrize("flat", [False, True])
def test_the_sweeps_run_as_they_stand(flat, monkeypatch):
    models, T = case(4, B=2, N=4, flat=flat)
    many = kf.StateSpaceBatch.of(models)

    def ask():
        g, filt = kf.score(many, T), kf.kalman_filter(many, T)
        if flat:
            return g.llf, g.phi.flat, g.H.flat
        smooth = kf.bryson_frazier(filt)
        return g.llf, g.phi.flat, g.H.flat, filt.P.flat, smooth.x.flat, smooth.S.flat

    compiled = ask()
    monkeypatch.setattr(Checks, "on", True)
    for plain, right in zip(ask(), compiled):
        assert_allclose(plain, right, rtol=1e-10, atol=1e-11)


def test_what_differs_may_be_given_as_arrays_and_the_rest_is_shared():
    rng = np.random.default_rng(0)
    B, N, n, m = 6, 5, 3, 2
    F, H, Q, R = (
        random_matrix(rng, n, n),
        random_matrix(rng, m, n),
        random_covariance(rng, n),
        random_covariance(rng, m),
    )
    like = kf.StateSpace.chain(F, H, Q, R, x0=np.ones(n), P0=np.eye(n), steps=N)
    T = rng.normal(size=(N, m))
    phi = 0.9 * rng.normal(size=(B, N, n, n))
    noise = np.array([[random_covariance(rng, m) for _ in range(N)] for _ in range(B)])
    many = kf.StateSpaceBatch(like, phi=phi, R=noise)
    assert len(many.Q.flat) == 1 and len(many) == B and len(list(many)) == B
    agree(
        kf.kalman_filter(many, T).llf, [kf.kalman_filter(like.replace(phi=p, R=r), T).llf for p, r in zip(phi, noise)]
    )
    agree(kf.kalman_filter(many[4], T).llf, kf.kalman_filter(many, T).llf[4])
    one = kf.StateSpaceBatch(like, R=noise[:, :1], xi=rng.normal(size=(B, N * n)))
    assert one[2].R[3].tolist() == noise[2, 0].tolist()
    assert (kf.StateSpaceBatch(like, R=[list(r) for r in noise]).R.flat == many.R.flat).all()


@pytest.mark.parametrize("constant", [True, False])
def test_chains_side_by_side(constant):
    rng = np.random.default_rng(1)
    B, N, n, m = 4, 6, 2, 1
    edges, steps = (1, 1) if constant else (N - 1, N)
    F, H = rng.normal(size=(B, edges, n, n)), rng.normal(size=(B, steps, m, n))
    Q = np.array([[random_covariance(rng, n) for _ in range(edges)] for _ in range(B)])
    R, x0, P0 = rng.uniform(0.5, 2.0, (B, steps, m, m)), rng.normal(size=(B, n)), np.array([np.eye(n)] * B)
    u, T = rng.normal(size=(B, N - 1, n)), rng.normal(size=(B, N))
    many = kf.StateSpaceBatch.chain(F, H, Q, R, x0, P0, inputs=u, steps=N)
    squeezed = [[x[b, 0] if constant else x[b] for x in (F, H, Q, R)] for b in range(B)]
    alone = [kf.StateSpace.chain(*squeezed[b], x0[b], P0[b], inputs=u[b], steps=N) for b in range(B)]
    agree(kf.kalman_filter(many, T).llf, [kf.kalman_filter(s, t).llf for s, t in zip(alone, T)])
    for b, s in enumerate(alone):
        for name in ("phi", "H", "Q", "R"):
            assert (getattr(many[b], name).packed().flat == getattr(s, name).packed().flat).all()
    flat = kf.StateSpaceBatch.chain(F, H, Q, R, steps=N)
    assert flat.like.flat is not None
    shared = kf.StateSpaceBatch.chain(squeezed[0][0], H, squeezed[0][2], squeezed[0][3], x0[0], P0[0], steps=N)
    assert len(shared.phi.flat) == len(shared.Q.flat) == 1


def test_a_model_without_an_answer_gets_the_error_that_it_gets_alone():
    one = np.ones((1, 1))
    like = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=3)
    R = np.ones((10, 3, 1, 1))
    Q = np.ones((10, 3, 1, 1))
    R[7], Q[7] = 0.0, 0.0
    with pytest.raises(SingularError, match="model 7: node 0: its innovation variance is 0"):
        _ = kf.kalman_filter(kf.StateSpaceBatch(like, Q=Q, R=R), np.zeros(3)).llf
    for ask in (
        kf.score,
        lambda ss, T: kf.bryson_frazier(kf.kalman_filter(ss, T)),
        lambda s, T: kf.kalman_filter(s, T).P,
    ):
        with pytest.raises(SingularError, match="model 7: node 0"):
            ask(kf.StateSpaceBatch(like, Q=Q, R=R), np.zeros(3))


def test_smoothed_covariances_that_cancel_keep_their_digits():
    one = np.ones((1, 1))
    P0 = np.array([1.0, 1e13, 1e14]).reshape(3, 1, 1)
    many = kf.StateSpaceBatch.chain(one, one, one, one, [0.0], P0, steps=5)
    with np.errstate(all="raise"):
        S = kf.bryson_frazier(kf.kalman_filter(many, np.zeros(5))).S.flat
    alone = [kf.bryson_frazier(kf.kalman_filter(model, np.zeros(5))).S.flat for model in many]
    assert_allclose(S, alone, rtol=1e-12)


def test_errors_say_what_to_do():
    one = np.ones((1, 1))
    like = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=3)
    two = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=2)
    flat = kf.StateSpace.chain(one, one, one, one, steps=3)
    R = np.ones((4, 3, 1, 1))
    with pytest.raises(ShapeError, match="give what differs"):
        kf.StateSpaceBatch(like)
    with pytest.raises(ShapeError, match=r"xi has 2 entries .* there are 4 models"):
        kf.StateSpaceBatch(like, R=R, xi=np.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"R as one array must have shape \(B, N"):
        kf.StateSpaceBatch(like, R=R[0])
    R[2, 1] = -1.0
    with pytest.raises(ModelError, match="model 2: R of node 1 is not positive semi-definite"):
        kf.StateSpaceBatch(like, R=R)
    with pytest.raises(ModelError, match=r"model 1: Q\[0\] is not positive semi-definite"):
        kf.StateSpaceBatch.chain(one, one, np.array([1.0, -1.0]).reshape(2, 1, 1, 1), one, [0.0], one, steps=3)
    with pytest.raises(ShapeError, match="leading axis of one length; here: none"):
        kf.StateSpaceBatch.chain(one, one, one, one, steps=3)
    with pytest.raises(ShapeError, match="at least one model"):
        kf.StateSpaceBatch.of([])
    with pytest.raises(ShapeError, match="model 1 differs"):
        kf.StateSpaceBatch.of([like, two])
    with pytest.raises(ModelError, match="flat priors at the same states"):
        kf.StateSpaceBatch.of([like, flat])
    with pytest.raises(ModelError, match="no eta"):
        kf.StateSpaceBatch(like.replace(eta=np.ones(3)), xi=np.zeros((2, 3)))
    many = kf.StateSpaceBatch(like, xi=np.zeros((4, 3)))
    for wrong in (np.zeros((2, 3)), np.zeros((4, 1, 3))):
        with pytest.raises(ShapeError, match="one series for all 4 models"):
            kf.kalman_filter(many, wrong)
    T = np.zeros((4, 3))
    T[1, 1] = np.nan
    with pytest.raises(ShapeError, match="one pattern"):
        kf.kalman_filter(many, T)
    with pytest.raises(ModelError, match="their own xi"):
        kf.kalman_filter(many, T[0], np.zeros(3))
    with pytest.raises(ModelError, match="another model"):
        kf.bryson_frazier(kf.StateSpaceBatch(like, xi=np.ones((4, 3))), kf.kalman_filter(many, T[0]))
    with pytest.raises(AttributeError, match="immutable"):
        many.R = None
    with pytest.raises(IndexError):
        _ = many[4]
