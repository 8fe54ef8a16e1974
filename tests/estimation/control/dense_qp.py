"""The problem of kf.lqr as one dense KKT system: an oracle that shares no code with the engine."""

import numpy as np


def random_problem(seed, cross=False, sizes=(2, 5), nodes=12):
    """A scenario tree with ragged sizes; every matrix differs."""
    rng = np.random.default_rng(seed)
    parent = np.array([-1] + [int(rng.integers(0, k)) for k in range(1, nodes)])
    n, m = rng.integers(*sizes, nodes), rng.integers(1, 3, nodes)
    above = [3 if p < 0 else n[p] for p in parent]

    def weight(size, rank):
        factor = rng.normal(size=(size, rank))
        return factor @ factor.T

    A = [0.6 * rng.normal(size=(n[k], above[k])) for k in range(nodes)]
    B = [rng.normal(size=(n[k], m[k])) for k in range(nodes)]
    N = [0.2 * rng.normal(size=(m[k], above[k])) for k in range(nodes)] if cross else None
    Q, R = [weight(s, s - 1) for s in n], [weight(s, s) + 0.1 * np.eye(s) for s in m]  # singular weights of states
    for k, p in enumerate(parent if cross else ()):  # the joint weight must be semi-definite
        if p >= 0:
            Q[p] = Q[p] + N[k].T @ np.linalg.solve(R[k], N[k])
    c, q, r = rng.normal(size=n.sum()), rng.normal(size=n.sum()), rng.normal(size=m.sum())
    return {"A": A, "B": B, "Q": Q, "R": R, "x0": rng.normal(size=3), "parent": parent, "c": c, "q": q, "r": r, "N": N}


def solve(A, B, Q, R, x0, parent, c, q, r, N=None, goals=()):
    """x, u, the cost, and the Hessian in the controls alone."""
    n, m = [a.shape[0] for a in A], [b.shape[1] for b in B]
    at = np.concatenate([[0], np.cumsum(n)])
    un = np.concatenate([[0], np.cumsum(m)])
    size, states = at[-1] + un[-1], at[-1]
    W, g = np.zeros((size, size)), np.concatenate([q, r])
    rows, right = [], []
    for k, p in enumerate(parent):
        sx, su = slice(at[k], at[k + 1]), slice(states + un[k], states + un[k + 1])
        W[sx, sx] += Q[k]
        W[su, su] += R[k]
        row, known = np.zeros((n[k], size)), c[sx].copy()
        row[:, sx], row[:, su] = np.eye(n[k]), -B[k]
        if p < 0:
            known += A[k] @ x0
            if N is not None:
                g[su] += N[k] @ x0
        else:
            sp = slice(at[p], at[p + 1])
            row[:, sp] -= A[k]
            if N is not None:
                W[su, sp] += N[k]
                W[sp, su] += N[k].T
        rows.append(row)
        right.append(known)
    for k, matrix, value in goals:
        row = np.zeros((len(matrix), size))
        row[:, at[k] : at[k + 1]] = matrix
        rows.append(row)
        right.append(value)
    E, e = np.vstack(rows), np.concatenate(right)
    kkt = np.block([[W, E.T], [E, np.zeros((len(E), len(E)))]])
    w = np.linalg.solve(kkt, np.concatenate([-g, e]))[:size]
    dynamics = E[:states]
    to_x = -np.linalg.solve(dynamics[:, :states], dynamics[:, states:])  # x = to_x u + …
    map_ = np.vstack([to_x, np.eye(un[-1])])
    return w[:states], w[states:], 0.5 * w @ W @ w + g @ w, map_.T @ W @ map_
