"""The dense normal with a prior variance of 1e40, in 140 digits: what a flat prior is the limit of."""

from typing import NamedTuple

import mpmath as mp
import numpy as np

KAPPA = mp.mpf(10) ** 40
DIGITS = 140


class Limit(NamedTuple):
    mean: np.ndarray
    cov: np.ndarray
    a: np.ndarray
    costate: np.ndarray
    costate_cov: np.ndarray
    llf: mp.mpf


def full(blocks, rows, columns):
    out = mp.zeros(int(sum(rows)), int(sum(columns)))
    r = c = 0
    for block, height, width in zip(blocks, rows, columns):
        for i in range(int(height)):
            for j in range(int(width)):
                out[r + i, c + j] = mp.mpf(block[i, j])
        r, c = r + int(height), c + int(width)
    return out


def limit(ss, T, xi, eta, moved=None):
    """Everything about a model with flat states, by dense algebra; ``moved`` adds to blocks in full digits."""
    with mp.workdps(DIGITS):
        n, m, state = ss.n, ss.m, ss.arrays.state
        size = int(n.sum())
        step = mp.eye(size)
        for k, p in enumerate(ss.tree.parent):
            if p >= 0:
                for i in range(int(n[p])):
                    for j in range(int(n[k])):
                        extra = moved["phi"][k][i, j] if moved and "phi" in moved else 0
                        step[int(state[p]) + i, int(state[k]) + j] -= mp.mpf(ss.phi[k][i, j]) + extra
        H, Q, R = (
            full(getattr(ss, name), *size) + full((moved or {}).get(name, [0 * b for b in getattr(ss, name)]), *size)
            for name, size in (("H", (m, n)), ("Q", (n, n)), ("R", (m, m)))
        )
        phi = mp.inverse(step)
        u = phi.T * mp.matrix(eta.tolist())
        w = mp.matrix(xi.tolist()) + Q * u  # what is added to infinity has no mean of its own
        for i in ss.flat:
            Q[int(i), int(i)] += KAPPA
        seen = [i for i in range(int(m.sum())) if not np.isnan(T[i])]
        Hs = mp.matrix(len(seen), size)
        Rs = mp.matrix(len(seen), len(seen))
        for a, i in enumerate(seen):
            for j in range(size):
                Hs[a, j] = H[i, j]
            for b, j in enumerate(seen):
                Rs[a, b] = R[i, j]
        cov, mean = phi * Q * phi.T, phi * w
        V = Hs * cov * Hs.T + Rs
        e = mp.matrix([mp.mpf(T[i]) for i in seen]) - Hs * mean
        inverse = mp.inverse(V)
        a, L = inverse * e, mp.cholesky(V)
        llf = -(mp.fdot(a, e) + 2 * mp.fsum(mp.log(L[i, i]) for i in range(len(seen)))) / 2
        llf += (len(ss.flat) * mp.log(KAPPA) - len(seen) * mp.log(2 * mp.pi)) / 2
        back = cov * Hs.T
        lam = Hs * phi
        return Limit(
            floats(mean + back * a).ravel(), floats(cov - back * inverse * back.T), floats(a).ravel(),
            floats(lam.T * a + u).ravel(), floats(lam.T * inverse * lam), llf,
        )  # fmt: skip


def floats(matrix):
    return np.array(matrix.tolist(), dtype=float).reshape(matrix.rows, matrix.cols)
