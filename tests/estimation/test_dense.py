"""The dense oracle against parties that share none of its algebra: recursion, information form, filterpy."""

from types import SimpleNamespace

import numpy as np
import pytest
from filterpy.kalman import KalmanFilter
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from kfdyn.errors import ModelError, ShapeError, SingularError, TreeError
from kfdyn.estimation.dense import DenseModel, dense_filter, dense_model, dense_posterior

seeds = st.integers(0, 2**32 - 1)


def random_matrix(rng, rows, columns):
    """Singular values between ½ and 2, so that what is compared is the algebra and not its conditioning."""
    U, _, Vt = np.linalg.svd(rng.normal(size=(rows, columns)), full_matrices=False)
    return U * rng.uniform(0.5, 2, size=min(rows, columns)) @ Vt


def random_problem(seed, *, noise=True, inputs=True, batch=(), n_min=1, Q_full=False):
    """A ragged forest in random numbering, every block different; R = 0 unless noise."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 9))
    order = rng.permutation(N)  # order[i] is born i-th, its parent earlier: parents need not come later
    parent = np.full(N, -1)
    for i in range(1, N):
        if rng.random() > 0.15:
            parent[order[i]] = order[rng.integers(i)]
    n = rng.integers(n_min, 6, N)
    m = np.array([rng.integers(0, min(size, 3) + 1) for size in n])
    phi = [None if p < 0 else random_matrix(rng, n[p], k) for p, k in zip(parent, n)]
    H = [random_matrix(rng, a, b) for a, b in zip(m, n)]
    ranks = n if Q_full else np.maximum(m, rng.integers(1, n + 1))  # Q semi-definite, yet H sees enough of it
    Q = [B @ B.T for B in (random_matrix(rng, b, r) for b, r in zip(n, ranks))]
    R = [B @ B.T * noise for B in (random_matrix(rng, a, a) for a in m)]
    xi, eta = (rng.normal(size=(*batch, n.sum())) * inputs for _ in range(2))
    T = rng.normal(size=(*batch, m.sum()))
    return parent, phi, H, Q, R, xi, eta, T


def recursion(parent, phi, H, Q, R, xi, eta, T):
    """THEORY (2)–(4) node by node, as printed, with the η split of (3)."""
    N = len(parent)
    xs = np.cumsum([0, *(len(q) for q in Q)])
    ts = np.cumsum([0, *(len(h) for h in H)])

    def depth(k):
        return 0 if parent[k] < 0 else 1 + depth(parent[k])

    gather = sorted(range(N), key=depth, reverse=True)
    P, P_plus, z, z_plus, eps, D, G, a, costate, x = ([None] * N for _ in range(10))
    for k in gather:
        kids = [j for j in range(N) if parent[j] == k]
        P[k] = Q[k] + sum(phi[j] @ P_plus[j] @ phi[j].T for j in kids)
        z[k] = xi[xs[k] : xs[k + 1]] + sum(phi[j] @ z_plus[j] for j in kids)
        D[k] = H[k] @ P[k] @ H[k].T + R[k]
        G[k] = P[k] @ H[k].T @ np.linalg.inv(D[k])
        eps[k] = T[ts[k] : ts[k + 1]] - H[k] @ z[k]
        bar = np.eye(len(P[k])) - G[k] @ H[k]
        P_plus[k] = bar @ P[k] @ bar.T + G[k] @ R[k] @ G[k].T
        z_plus[k] = z[k] + G[k] @ eps[k] + P_plus[k] @ eta[xs[k] : xs[k + 1]]
    for k in reversed(gather):
        inward = phi[k].T @ costate[parent[k]] if parent[k] >= 0 else np.zeros(len(P[k]))
        push = inward + eta[xs[k] : xs[k + 1]]
        a[k] = np.linalg.solve(D[k], eps[k]) - G[k].T @ push
        costate[k] = push + H[k].T @ a[k]
        x[k] = z[k] + P[k] @ costate[k]
    return SimpleNamespace(P=P, P_plus=P_plus, z=z, z_plus=z_plus, eps=eps, D=D, G=G, a=a, costate=costate, x=x)


def close(actual, desired, rtol=1e-10):
    """Errors are measured against 1, the size of the problem's numbers, or the entry's if larger."""
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=rtol)


@given(seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_filter_and_smoother_recursions(seed, noise):
    *blocks, T = random_problem(seed, noise=noise)
    model = DenseModel.from_blocks(*blocks)
    assume(not len(T) or np.linalg.cond(model.output_cov) < 1e4)
    expected = recursion(*blocks, T)
    filt = dense_filter(model, T, split="costate")
    for name in ("P", "P_plus", "D", "G", "z", "z_plus", "eps"):
        for actual, desired in zip(getattr(filt, name), getattr(expected, name)):
            close(actual, desired)
    post = dense_posterior(model, T)
    close(post.a, np.concatenate(expected.a))
    close(post.costate, np.concatenate(expected.costate))
    close(post.mean, np.concatenate(expected.x))


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_information_form(seed):
    """With R > 0 and Q > 0 the posterior precision is Σx^-1 + H*R^-1H."""
    *blocks, T = random_problem(seed, Q_full=True)
    parent, phi, H, Q, R, xi, eta = blocks
    model = dense_model(SimpleNamespace(tree=SimpleNamespace(parent=parent), phi=phi, H=H, Q=Q, R=R, xi=xi, eta=eta))
    if max(np.linalg.cond(model.Q), np.linalg.cond(model.R) if len(T) else 1, np.linalg.cond(model.phi)) > 1e4:
        return
    back = np.eye(len(model.Q)) - model.E_phi
    R_inverse = np.linalg.inv(model.R)
    precision = back.T @ np.linalg.inv(model.Q) @ back + model.H.T @ R_inverse @ model.H
    drive = back.T @ np.linalg.inv(model.Q) @ model.xi + eta + model.H.T @ R_inverse @ T
    post = dense_posterior(model, T)
    close(post.cov, np.linalg.inv(precision))
    close(post.mean, np.linalg.solve(precision, drive))


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_likelihood_missing_and_batch(seed):
    *blocks, T = random_problem(seed, batch=(3, 2))
    model = DenseModel.from_blocks(*blocks)
    assume(not T.size or np.linalg.cond(model.output_cov) < 1e4)
    rng = np.random.default_rng(seed)
    missing = rng.random(T.shape[-1]) < 0.4
    T[..., missing] = np.nan
    o = np.flatnonzero(~missing)
    post = dense_posterior(model, T)
    assert post.llf.shape == (3, 2)
    assert (post.a[..., missing] == 0).all()
    filt = dense_filter(model, T)
    for i in np.ndindex(3, 2):
        # one batch entry, with the missing outputs removed from the model instead of marked
        few = [h[~missing[s]] for h, s in zip(blocks[2], model.outputs)]
        fewR = [r[np.ix_(~missing[s], ~missing[s])] for r, s in zip(blocks[4], model.outputs)]
        one = DenseModel.from_blocks(blocks[0], blocks[1], few, blocks[3], fewR, model.xi[i], model.eta[i])
        alone = dense_posterior(one, T[i][o])
        close(post.a[i][o], alone.a)
        close(post.mean[i], alone.mean)
        close(post.costate[i], alone.costate)
        close(post.cov, alone.cov)
        single = dense_filter(one, T[i][o])
        for k in range(len(single.z)):
            close(filt.z[k][i], single.z[k])
            close(filt.z_plus[k][i], single.z_plus[k])
            close(filt.P_plus[k], single.P_plus[k])
        if len(o):
            law = multivariate_normal(one.bias, one.output_cov)
            np.testing.assert_allclose(post.llf[i], law.logpdf(T[i][o]), rtol=1e-9)
        else:
            assert post.llf[i] == 0


def test_statistical_and_costate_split_agree_without_eta():
    *blocks, T = random_problem(5)
    model = DenseModel.from_blocks(*blocks[:5], xi=blocks[5])
    for name, other in zip(dense_filter(model, T), dense_filter(model, T, split="costate")):
        for A, B in zip(name, other):
            np.testing.assert_array_equal(A, B)


def test_innovations_are_white_in_the_statistical_split():
    """eps is linear in T: push the closed-form covariance of T through it and find block-diag(D)."""
    *blocks, T = random_problem(11, noise=False)
    model = DenseModel.from_blocks(*blocks)
    probe = np.vstack([model.bias, model.bias + np.eye(len(T))])
    eps = np.concatenate(dense_filter(model, probe).eps, axis=-1)
    np.testing.assert_allclose(eps[0], 0, atol=1e-10)
    A = (eps[1:] - eps[0]).T
    D = np.zeros_like(model.output_cov)
    for s, block in zip(model.outputs, dense_filter(model, T).D):
        D[s, s] = block
    np.testing.assert_allclose(A @ model.output_cov @ A.T, D, atol=1e-9 * np.abs(D).max())


def test_filterpy_on_a_chain():
    rng = np.random.default_rng(3)
    steps, n, m = 6, 3, 2
    F, H, Q, R = rng.normal(size=(steps, n, n)), rng.normal(size=(steps, m, n)), [], []
    for _ in range(steps):
        B, C = rng.normal(size=(n, n)), rng.normal(size=(m, m))
        Q.append(B @ B.T)
        R.append(C @ C.T)
    T = rng.normal(size=(steps, m))
    parent = [*range(1, steps), -1]
    filt = dense_filter(DenseModel.from_blocks(parent, F, H, Q, R), T.ravel())
    kf = KalmanFilter(dim_x=n, dim_z=m)
    kf.x, kf.P = np.zeros((n, 1)), Q[0]
    for k in range(steps):
        if k:
            kf.predict(F=F[k - 1], Q=Q[k])
        np.testing.assert_allclose(filt.z[k], kf.x[:, 0], rtol=1e-10)
        np.testing.assert_allclose(filt.P[k], kf.P, rtol=1e-10)
        kf.update(T[k][:, None], R=R[k], H=H[k])
        np.testing.assert_allclose(filt.eps[k], kf.y[:, 0], rtol=1e-10)
        np.testing.assert_allclose(filt.D[k], kf.S, rtol=1e-10)
        np.testing.assert_allclose(filt.G[k], kf.K, rtol=1e-9)
        np.testing.assert_allclose(filt.P_plus[k], kf.P, rtol=1e-8)


I = [[1.0]]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([1, 0], [I, I], [I, I], [I, I]), TreeError, "loop"),
        (([5], [None], [I], [I]), TreeError, "parent 5 does not exist"),
        (([], [], [], []), TreeError, "empty"),
        (([1, -1], [np.eye(2), None], [I, I], [I, I]), ShapeError, r"phi\[0\]"),
        (([-1], [None], [I], [[[-1.0]]]), ModelError, r"Q\[0\] has a negative eigenvalue"),
        (
            ([-1], [None], [np.ones((1, 2))], [[[1.0, 2.0], [0.0, 9.0]]]),
            ModelError,
            r"Q\[0\] is not symmetric",
        ),
        (([-1], [None], [I], [I], [[[np.nan]]]), ModelError, r"R\[0\].*finite"),
        (([-1], [None], [1.0], [I]), ShapeError, r"H\[0\]"),
        (([-1], [None], [I], [I], None, np.ones(2)), ShapeError, "xi has shape"),
    ],
)
def test_bad_models_are_refused_by_name(arguments, error, words):
    with pytest.raises(error, match=words):
        DenseModel.from_blocks(*arguments)


def test_bad_measurements_are_refused():
    model = DenseModel.from_blocks([1, -1], [I, None], [I, I], [I, I])
    with pytest.raises(ShapeError, match="2 outputs"):
        dense_posterior(model, [1.0])
    with pytest.raises(ModelError, match="pattern"):
        dense_posterior(model, [[1.0, np.nan], [np.nan, 1.0]])
    with pytest.raises(ModelError, match="infinite"):
        dense_posterior(model, [np.inf, 0.0])
    with pytest.raises(ModelError, match="split"):
        dense_filter(model, [1.0, 0.0], split="other")


def test_singular_outputs_name_the_node():
    model = DenseModel.from_blocks([1, -1], [I, None], [I, I], [I, [[0.0]]])
    with pytest.raises(SingularError, match=r"node [01].*R > 0"):
        dense_posterior(model, [1.0, 1.0])
