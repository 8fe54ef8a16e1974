"""Random outward trees with mixed traits known very unequally, and the dense normal with its gradient in 250 digits."""

from __future__ import annotations

from types import SimpleNamespace

import mpmath as mp
import numpy as np
from outward_cases import Outward

DIGITS = 250
FLAT = mp.mpf(10) ** 50  # a prior variance that stands for an infinite one; its error is 1e-50


def mixed(seed, branches, noises):
    """A tree with variances down to 10^branches and 10^noises, turned by A, C, W or all, and data drawn from it."""
    rng = np.random.default_rng(seed)
    N, n = int(rng.integers(3, 8)), int(rng.integers(2, 4))
    parent = [*(int(rng.integers(k + 1, N)) for k in range(N - 1)), -1]
    by_A, by_C, by_W = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)][seed % 4]

    def covariance(size, low, turned):
        value = 10.0 ** rng.uniform(low, 0.5, size=size)
        q = np.linalg.qr(rng.normal(size=(size, size)))[0] if turned else np.eye(size)
        cov = (q * value) @ q.T
        return 0.5 * (cov + cov.T)

    A = [rng.normal(size=(n, n)) if by_A else np.eye(n) for _ in range(N)]
    W = [covariance(n, branches, by_W) for _ in range(N)]
    leaf = [k not in parent for k in range(N)]
    m = [int(rng.integers(1, n + 1)) if tip else int(rng.integers(0, n + 1)) * (rng.random() < 0.3) for tip in leaf]
    C = [rng.normal(size=(size, n)) if by_C else np.eye(n)[rng.permutation(n)[:size]] for size in m]
    R = [covariance(size, noises, by_C and rng.random() < 0.5) for size in m]
    enough = sum(size * tip for size, tip in zip(m, leaf)) >= n + 1
    root_cov = None if seed % 8 >= 4 and enough else covariance(n, -2, by_W)
    x, y = {-1: np.zeros(n)}, [np.zeros(0)] * N
    for k in range(N - 1, -1, -1):
        prior = W[k] if parent[k] >= 0 else np.eye(n) if root_cov is None else root_cov
        x[k] = A[k] @ x[parent[k]] + np.linalg.cholesky(prior) @ rng.normal(size=n)
    for k in range(N):
        y[k] = C[k] @ x[k]
        if m[k]:
            y[k] = y[k] + np.linalg.cholesky(R[k]) @ rng.normal(size=m[k])
    y = np.concatenate(y)
    y[rng.random(y.size) < 0.1] = np.nan
    return Outward(parent, A, W, C, R, np.zeros(N * n), np.zeros(n), root_cov, y)


def lift(array):
    """Floats as mpmath numbers, exactly."""
    array = np.asarray(array, dtype=float)
    out = np.empty(array.shape, dtype=object)
    for at in np.ndindex(*array.shape):
        out[at] = mp.mpf(float(array[at]))
    return out


def inverse_and_logdet(V):
    """By Gauss and Jordan with pivots."""
    size, logdet = len(V), mp.mpf(0)
    M = np.concatenate([V, lift(np.eye(size))], axis=1)
    for i in range(size):
        pivot = i + max(range(size - i), key=lambda j: abs(M[i + j, i]))
        M[[i, pivot]] = M[[pivot, i]]
        logdet += mp.log(abs(M[i, i]))
        M[i] = M[i] / M[i, i]
        for j in range(size):
            if j != i:
                M[j] = M[j] - M[j, i] * M[i]
    return M[:, size:], logdet


def exact_answer(case):
    """Mean, cov, llf and the score's u, W, A, C, R, by node; ``sizes`` of the terms that each is made of."""
    with mp.workdps(DIGITS):
        return _exact_answer(case)


def _exact_answer(case):
    n, m = ([c.shape[i] for c in case.C] for i in (1, 0))
    state, output = ([slice(sum(s[:k]), sum(s[: k + 1])) for k in range(len(n))] for s in (n, m))
    W, F, u = lift(np.zeros((sum(n), sum(n)))), lift(np.eye(sum(n))), lift(case.mean)
    C, R = lift(np.zeros((sum(m), sum(n)))), lift(np.zeros((sum(m), sum(m))))
    flat = 0
    for k in reversed(range(len(n))):  # these trees have parents after their children
        p, own = case.parent[k], state[k]
        C[output[k], own], R[output[k], output[k]] = lift(case.C[k]), lift(case.R[k])
        if p >= 0:
            W[own, own], F[own] = lift(case.W[k]), F[own] + lift(case.A[k]) @ F[state[p]]
            continue
        u[own] = lift(case.root_mean)
        W[own, own] = FLAT * lift(np.eye(n[k])) if case.root_cov is None else lift(case.root_cov)
        flat += n[k] if case.root_cov is None else 0
    seen = np.flatnonzero(~np.isnan(case.y))
    prior, cov, D = F @ u, F @ W @ F.T, C[seen]
    V_inverse, logdet = inverse_and_logdet(D @ cov @ D.T + R[np.ix_(seen, seen)])
    e = lift(case.y[seen]) - D @ prior
    v = V_inverse @ e
    llf = -(v @ e + logdet - flat * mp.log(FLAT) + len(seen) * mp.log(2 * mp.pi)) / 2
    gain = cov @ D.T @ V_inverse
    mean, posterior = prior + gain @ e, cov - gain @ D @ cov
    to_noise = F.T @ D.T
    s, N = to_noise @ v, to_noise @ V_inverse @ to_noise.T
    by_W, by_A = (s[:, None] * s - N) / 2, s[:, None] * mean - to_noise @ V_inverse @ D @ cov
    by_C, by_R, rho, noise = (lift(np.zeros(shape)) for shape in (C.shape, R.shape, sum(m), sum(m)))
    by_C[seen] = v[:, None] * mean - V_inverse @ D @ cov
    by_R[np.ix_(seen, seen)] = (v[:, None] * v - V_inverse) / 2
    rho[seen], noise[seen] = v, V_inverse.diagonal()
    deviation, x, force, row = (
        np.sqrt(np.abs(posterior.diagonal().astype(float))), np.abs(mean.astype(float)),
        np.abs(s.astype(float)) + np.sqrt(np.abs(N.diagonal().astype(float))),
        np.abs(rho.astype(float)) + np.sqrt(np.abs(noise.astype(float))),
    )  # fmt: skip

    def blocks(whole, rows, columns=None, of=None):
        at = range(len(n)) if of is None else of
        return [whole[rows[k]] if columns is None else whole[rows[k], columns[j]] for k, j in enumerate(at) if j >= 0]

    inner = [k for k, p in enumerate(case.parent) if p >= 0]
    parents = case.parent
    terms = {
        "u": force, "W": np.outer(force, force), "A": np.outer(force, x + deviation), "R": np.outer(row, row),
        "C": np.outer(row, x + deviation), "mean": x + deviation, "cov": np.outer(deviation, deviation),
    }  # fmt: skip
    values = {"u": s, "W": by_W, "A": by_A, "C": by_C, "R": by_R, "mean": mean, "cov": posterior}
    layout = {
        "u": (state,), "W": (state, state), "A": (state, state, parents), "C": (output, state), "R": (output, output),
        "mean": (state,), "cov": (state, state),
    }  # fmt: skip
    out = {name: blocks(values[name], *layout[name]) for name in values}
    sizes = {name: blocks(terms[name], *layout[name]) for name in terms}
    return SimpleNamespace(llf=llf, inner=inner, sizes=sizes, **out)


def errors(case, post):
    """The largest error of each quantity, beside its terms; of the score beside 1 where those are smaller."""
    want, n = exact_answer(case), [c.shape[1] for c in case.C]
    score, inner = post.score, want.inner
    known = range(len(n)) if case.root_cov is not None else inner
    start = np.concatenate([[0], np.cumsum(n)])
    u = [score.mean[start[k] : start[k + 1]] for k in range(len(n))]
    out = {"llf": abs(float(mp.mpf(post.llf) - want.llf)) / max(1.0, abs(float(want.llf)))}
    for name, got, nodes in (
        ("mean", post.mean, range(len(n))), ("cov", post.cov, range(len(n))), ("u", u, known), ("W", score.W, known),
        ("A", [score.A[k] for k in inner], range(len(inner))), ("C", score.C, range(len(n))),
        ("R", score.R, range(len(n))),
    ):  # fmt: skip
        floor = 0.0 if name in ("mean", "cov") else 1.0
        worst = 0.0
        for k in nodes:
            value, size = getattr(want, name)[k], np.maximum(want.sizes[name][k], floor)
            if value.size:
                error = np.abs((lift(got[k]) - value).astype(float))
                worst = max(worst, float((error / np.maximum(size, np.abs(value.astype(float)))).max()))
        out[name] = worst
    return out
