"""The Riccati gather: P, D, G, P⁺ from the leaves to the roots (THEORY (2))."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.linalg import add_congruence, largest
from kfdyn.estimation._kernels.sizes import SWEEP, matrix, size, vector
from kfdyn.estimation._kernels.update import innovations, update_block, update_scalar, update_univariate


@njit(**SWEEP)
def riccati(sizes, single, block, univariate, model, seen, P, P_plus, D, L, G):
    """Fill P, P⁺, D, its Cholesky factor L, and G; returns the (node, output) that failed, or (−1, −1).

    ::

        P(k)  = Σ_j φ(k,j) P⁺(j) φ*(k,j) + Q(k)
        D = H P H* + R,   G = P H* D⁻¹,   P⁺ = P − G D G*

    P arrives as a copy of Q and each node adds itself to its parent. ``sizes`` are the common sizes, if any.
    ``single``, ``block`` and ``univariate`` say what the code is compiled with: scalar outputs on their own, and vector
    outputs in the one way or the other (which serve scalar ones too); None leaves that out. Cost per node: 3n³ +
    O(n²m) flops.
    """
    state, output = model.state, model.output
    n_max, m_max = largest(state), largest(output)
    row, before = np.empty(n_max), np.empty(n_max)
    half, turned = np.empty(n_max * n_max), np.empty(n_max * n_max)
    scratch = np.empty((n_max + m_max) * (n_max + 2 * m_max))
    for k in model.order:
        n = size(sizes.n, state[k + 1] - state[k])
        m = size(sizes.m, output[k + 1] - output[k])
        P_k, P_plus_k = matrix(P, model.Q_at[k], n, n), matrix(P_plus, model.Q_at[k], n, n)
        H_k, G_k = matrix(model.H, model.H_at[k], m, n), matrix(G, model.H_at[k], n, m)
        done = False
        if single is not None:
            done = m == 1 and seen[output[k]]
            if done:
                at = model.R_at[k]
                h, g = vector(model.H, model.H_at[k], n), vector(G, model.H_at[k], n)
                d = update_scalar(sizes.n, P_k, h, model.R[at], g, row, before, P_plus_k)
                if not d > 0.0:
                    return k, 0
                D[at], L[at] = d, np.sqrt(d)
        if not done:
            R_k, D_k = matrix(model.R, model.R_at[k], m, m), matrix(D, model.R_at[k], m, m)
            L_k = matrix(L, model.R_at[k], m, m)
            seen_k = vector(seen, output[k], m)
            innovations(P_k, H_k, R_k, D_k, matrix(scratch, 0, n, m))
            failed = -1
            if block is not None:
                failed = update_block(P_k, H_k, R_k, seen_k, D_k, L_k, G_k, before, scratch, P_plus_k)
            elif univariate is not None:
                failed = update_univariate(sizes.n, P_k, H_k, R_k, seen_k, L_k, G_k, before, scratch, P_plus_k)
            else:  # a scalar output that is missing, or none
                for i in range(n):
                    for j in range(n):
                        P_plus_k[i, j] = P_k[i, j]
                    for a in range(m):
                        G_k[i, a] = 0.0
                for a in range(m):
                    L_k[a, a] = 1.0
            if failed >= 0:
                return k, failed
        p = model.parent[k]
        if p >= 0:
            r = size(sizes.n, state[p + 1] - state[p])
            phi = matrix(model.phi, model.phi_at[k], r, n)
            add_congruence(sizes.n, matrix(P, model.Q_at[p], r, r), phi, P_plus_k, half, turned)
    return -1, -1
