"""Random outward trees, every block different, and the dense normal they are compared with, in 120 digits."""

from __future__ import annotations

from typing import NamedTuple

import mpmath as mp
import numpy as np
from random_models import random_covariance, random_matrix

import kfdyn as kf

FLAT = mp.mpf(10) ** 30  # a prior variance that stands for an infinite one; its error is 1e-30


class Outward(NamedTuple):
    """The arguments of an OutwardTree, its data, and a direction in which to differentiate."""

    parent: list
    A: list
    W: list
    C: list
    R: list
    mean: np.ndarray
    root_mean: np.ndarray
    root_cov: np.ndarray | None
    y: np.ndarray

    def model(self) -> kf.OutwardTree:
        return kf.OutwardTree(
            self.parent, self.A, self.W, self.C, self.R, self.root_mean, self.root_cov, mean=self.mean
        )  # fmt: skip


def random_outward(seed, flat, kinds_W=("full", "singular", "zero"), kinds_R=("full", "singular", "zero"), most=8):
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, most))
    order = rng.permutation(N)
    parent = [-1] * N
    for i in range(1, N):
        parent[order[i]] = int(order[rng.integers(0, i)])
    n0 = int(rng.integers(1, 4))
    n = [n0 if p < 0 else int(rng.integers(1, 4)) for p in parent]
    leaf = [k not in parent for k in range(N)]

    def covariance(size, kind):
        return random_covariance(rng, size, {"full": None, "singular": size // 2, "zero": 0}[kind])

    A = [None if p < 0 else random_matrix(rng, n[k], n[p]) for k, p in enumerate(parent)]
    # an inner branch of no variance that passes exact data on has its own test
    W = [covariance(n[k], rng.choice(kinds_W if leaf[k] else [w for w in kinds_W if w != "zero"])) for k in range(N)]
    m = [int(rng.integers(0 if not leaf[k] else 1, n[k] + 1)) for k in range(N)]
    C = [random_matrix(rng, m[k], n[k]) for k in range(N)]
    R = [covariance(m[k], rng.choice(kinds_R)) for k in range(N)]
    y = rng.normal(size=sum(m))
    y[rng.random(y.size) < 0.15] = np.nan
    mean, root_mean = rng.normal(size=sum(n)), rng.normal(size=n0)
    return Outward(parent, A, W, C, R, mean, root_mean, None if flat else random_covariance(rng, n0), y)


def digits(array):
    if isinstance(array, mp.matrix):
        return array
    return mp.matrix(np.asarray(array).tolist()) if np.size(array) else mp.zeros(*np.shape(array))


class Dense(NamedTuple):
    """Mean and covariance of all states given y, and the log-likelihood: by definition, nothing recursive."""

    mean: np.ndarray
    cov: np.ndarray
    llf: mp.mpf
    condition: float


def dense(case: Outward, posterior=True) -> Dense:
    """Blocks may hold mpmath numbers."""
    with mp.workdps(120):
        n = [c.cols if isinstance(c, mp.matrix) else c.shape[1] for c in case.C]
        m = [c.rows if isinstance(c, mp.matrix) else c.shape[0] for c in case.C]
        at, out = np.concatenate([[0], np.cumsum(n)]).tolist(), np.concatenate([[0], np.cumsum(m)]).tolist()
        step, W, mu = mp.eye(at[-1]), mp.zeros(at[-1]), digits(case.mean)
        C, R, d = mp.zeros(out[-1], at[-1]), mp.zeros(out[-1]), 0
        for k, p in enumerate(case.parent):
            if p < 0:
                d += n[k] if case.root_cov is None else 0
                prior = FLAT * mp.eye(n[k]) if case.root_cov is None else digits(case.root_cov)
                for i in range(n[k]):
                    mu[at[k] + i] = case.root_mean[i]
            else:
                prior = case.W[k]
                put(step, at[k], at[p], -1 * digits(case.A[k]))
            put(W, at[k], at[k], digits(prior))
            put(C, out[k], at[k], digits(case.C[k]))
            put(R, out[k], out[k], digits(case.R[k]))
        inverse = mp.inverse(step)
        cov, mu = inverse * W * inverse.T, inverse * mu
        seen = [i for i in range(out[-1]) if not np.isnan(float(case.y[i]))]
        if not seen:
            return Dense(array(mu).ravel(), array(cov), mp.mpf(0), 1.0)
        C, R = pick(C, seen, range(at[-1])), pick(R, seen, seen)
        V, e = C * cov * C.T + R, mp.matrix([case.y[i] for i in seen]) - C * mu
        L = mp.cholesky(V)
        white = mp.lu_solve(L, e)
        llf = -(mp.fdot(white, white) + 2 * mp.fsum(mp.log(L[i, i]) for i in range(len(seen)))) / 2
        llf += d * mp.log(FLAT) / 2 - len(seen) * mp.log(2 * mp.pi) / 2
        small = min(mp.eigsy(V, eigvals_only=True)) if posterior else 1
        if not posterior:
            return Dense(np.zeros(0), np.zeros(0), llf, 1.0)
        gain = cov * C.T * mp.inverse(V)
        return Dense(array(mu + gain * e).ravel(), array(cov - gain * C * cov), llf, float(1 / small))


def put(into, row, column, block):
    for i in range(block.rows):
        for j in range(block.cols):
            into[row + i, column + j] = block[i, j]


def pick(matrix, rows, columns):
    out = mp.zeros(len(rows), len(columns))
    for i, r in enumerate(rows):
        for j, c in enumerate(columns):
            out[i, j] = matrix[r, c]
    return out


def array(matrix):
    return np.array(matrix.tolist(), dtype=float).reshape(matrix.rows, matrix.cols)
