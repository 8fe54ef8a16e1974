"""Entries of 𝓜⁻¹ and products with the Cholesky factors of D."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.lanes import (
    add_product,
    add_transposed,
    subtract_product,
    subtract_transposed,
)
from kfdyn.estimation._kernels.linalg import solve_lower, solve_lower_transposed, transposed_congruence
from kfdyn.estimation._kernels.sizes import OPTIONS
from kfdyn.estimation._kernels.states import solve


@njit(**OPTIONS)
def dense_inverse(model, seen, L, G, out):
    """Fill the symmetric 𝓜⁻¹, one block of columns i after the other.

    The filter answers a unit measurement at i only along the ancestors of i: ε(i) = 1, ε(k) = −H w(k) with
    w = ψ(k⁻, i⁺) G(i). The smoother then runs from the roots down to i in scatter order; what lies beyond is
    given by symmetry.
    """
    state, output, parent = model.state, model.output, model.parent
    n_nodes = parent.size
    n_max, m_max = 1, 1
    for k in range(n_nodes):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    flow = np.empty((state[-1], m_max))
    nu = np.zeros((output[-1], m_max))
    arriving = np.empty((n_max, m_max))
    leaving = np.empty((n_max, m_max))
    for here in range(n_nodes):
        i = model.order[here]
        c = output[i + 1] - output[i]
        if c == 0:
            continue
        k = i
        while k >= 0:  # gather along the ancestors
            n, m = state[k + 1] - state[k], output[k + 1] - output[k]
            e = nu[output[k] : output[k] + m]
            for a in range(m):
                for l in range(c):
                    e[a, l] = 1.0 if k == i and a == l and seen[output[i] + a] else 0.0
            G_k = G[model.H_at[k] : model.H_at[k] + m * n]
            if k == i:
                for j in range(n):
                    for l in range(c):
                        leaving[j, l] = 0.0
            else:
                for j in range(n):
                    for l in range(c):
                        leaving[j, l] = arriving[j, l]
                subtract_product(e, model.H[model.H_at[k] : model.H_at[k] + m * n], arriving, m, n, c)
                for a in range(m):
                    if not seen[output[k] + a]:
                        for l in range(c):
                            e[a, l] = 0.0
            add_product(leaving, G_k, e, n, m, c)
            solve(L[model.R_at[k] : model.R_at[k] + m * m], e, m, c)
            p = parent[k]
            if p >= 0:
                r = state[p + 1] - state[p]
                for j in range(r):
                    for l in range(c):
                        arriving[j, l] = 0.0
                add_product(arriving, model.phi[model.phi_at[k] : model.phi_at[k] + r * n], leaving, r, n, c)
            k = p
        for step in range(n_nodes - 1, here - 1, -1):  # scatter down to i
            k = model.order[step]
            n, m = state[k + 1] - state[k], output[k + 1] - output[k]
            own = flow[state[k] : state[k] + n]
            for j in range(n):
                for l in range(c):
                    own[j, l] = 0.0
            p = parent[k]
            if p >= 0:
                r = state[p + 1] - state[p]
                add_transposed(
                    own,
                    model.phi[model.phi_at[k] : model.phi_at[k] + r * n],
                    flow[state[p] : state[p] + r],
                    r,
                    n,
                    c,
                )
            e = nu[output[k] : output[k] + m]
            subtract_transposed(e, G[model.H_at[k] : model.H_at[k] + m * n], own, n, m, c)
            add_transposed(own, model.H[model.H_at[k] : model.H_at[k] + m * n], e, m, n, c)
            for a in range(m):
                for l in range(c):
                    if k != i or l <= a:
                        out[output[k] + a, output[i] + l] = e[a, l]
                        out[output[i] + l, output[k] + a] = e[a, l]
                    e[a, l] = 0.0


@njit(**OPTIONS)
def inverse_blocks(model, seen, L, G, Lambda, out):
    """c(k) = D⁻¹ + G* Λ⁺ G for every node, with Λ⁺ = φ* Λ(p) φ."""
    state, output = model.state, model.output
    n_max, m_max = 1, 1
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    above = np.empty(n_max * n_max)
    row = np.empty(max(n_max, m_max))
    for k in range(model.parent.size):
        n, m = state[k + 1] - state[k], output[k + 1] - output[k]
        block = out[model.R_at[k] : model.R_at[k] + m * m]
        p = model.parent[k]
        if p >= 0 and m > 0:
            r = state[p + 1] - state[p]
            phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
            transposed_congruence(above, phi, Lambda[model.Q_at[p] : model.Q_at[p] + r * r], row, r, n)
            transposed_congruence(block, G[model.H_at[k] : model.H_at[k] + m * n], above, row, n, m)
        else:
            for a in range(m * m):
                block[a] = 0.0
        for b in range(m):
            if seen[output[k] + b]:
                for a in range(m):
                    row[a] = 1.0 if a == b else 0.0
                solve_lower(L[model.R_at[k] : model.R_at[k] + m * m], row, m)
                solve_lower_transposed(L[model.R_at[k] : model.R_at[k] + m * m], row, m)
                for a in range(m):
                    block[a * m + b] += row[a]


@njit(**OPTIONS)
def apply_lower(model, L, inverse, transposed, x):
    """X ← L x, L* x, L⁻¹ x or L⁻* x in place for every row and node."""
    output = model.output
    for row in range(x.shape[0]):
        for k in range(model.parent.size):
            m = output[k + 1] - output[k]
            L_k = L[model.R_at[k] : model.R_at[k] + m * m]
            x_k = x[row, output[k] : output[k] + m]
            if inverse and transposed:
                solve_lower_transposed(L_k, x_k, m)
            elif inverse:
                solve_lower(L_k, x_k, m)
            elif transposed:
                for i in range(m):
                    s = 0.0
                    for j in range(i, m):
                        s += L_k[j * m + i] * x_k[j]
                    x_k[i] = s
            else:
                for i in range(m - 1, -1, -1):
                    s = 0.0
                    for j in range(i + 1):
                        s += L_k[i * m + j] * x_k[j]
                    x_k[i] = s
