"""Entries of 𝓜⁻¹ and products with the Cholesky factors of D."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import SWEEP, matrix, vector
from kfdyn.estimation._kernels.lanes import clear, product, solve, transposed_product
from kfdyn.estimation._kernels.linalg import largest, solve_lower, solve_lower_transposed


@njit(**SWEEP)
def dense_inverse(tag, model, seen, L, G, out):
    """Fill the symmetric 𝓜⁻¹, one column after the other; the tag says one lane.

    The filter answers a unit measurement at node i only along the ancestors of i: ε(i) = 1, ε(k) = −H w(k) with
    w = ψ(k⁻, i⁺) G(i). The smoother then runs from the roots down to i in scatter order; what lies beyond is
    given by symmetry.
    """
    state, output, parent = model.state, model.output, model.parent
    n_max = largest(state)
    flow = np.empty(state[-1])
    nu = np.zeros(output[-1])
    arriving = np.empty(n_max)
    for here in range(parent.size):
        i = model.order[here]
        for column in range(output[i], output[i + 1]):
            if not seen[column]:
                continue
            clear(tag, arriving, state[i + 1] - state[i])
            k = i
            while k >= 0:  # gather along the ancestors
                n, m = state[k + 1] - state[k], output[k + 1] - output[k]
                e = vector(nu, output[k], m)
                clear(tag, e, m)
                product(tag, None, None, e, -1.0, matrix(model.H, model.H_at[k], m, n), arriving)
                for a in range(m):
                    if output[k] + a == column:
                        e[a] += 1.0
                    if not seen[output[k] + a]:
                        e[a] = 0.0
                product(tag, None, None, arriving, 1.0, matrix(G, model.H_at[k], n, m), e)
                solve(tag, matrix(L, model.R_at[k], m, m), e)
                p = parent[k]
                if p >= 0:
                    r = state[p + 1] - state[p]
                    above = vector(flow, state[p], r)
                    clear(tag, above, r)
                    product(tag, None, None, above, 1.0, matrix(model.phi, model.phi_at[k], r, n), arriving)
                    for j in range(r):
                        arriving[j] = above[j]
                k = p
            for step in range(parent.size - 1, here - 1, -1):  # scatter down to i
                k = model.order[step]
                n, m = state[k + 1] - state[k], output[k + 1] - output[k]
                own = vector(flow, state[k], n)
                clear(tag, own, n)
                p = parent[k]
                if p >= 0:
                    r = state[p + 1] - state[p]
                    phi = matrix(model.phi, model.phi_at[k], r, n)
                    transposed_product(tag, None, None, own, 1.0, phi, vector(flow, state[p], r))
                e = vector(nu, output[k], m)
                transposed_product(tag, None, None, e, -1.0, matrix(G, model.H_at[k], n, m), own)
                transposed_product(tag, None, None, own, 1.0, matrix(model.H, model.H_at[k], m, n), e)
                for a in range(m):
                    if k != i or output[k] + a >= column:
                        out[output[k] + a, column] = e[a]
                        out[column, output[k] + a] = e[a]
                    e[a] = 0.0


@njit(**SWEEP)
def apply_lower(model, L, inverse, transposed, x):
    """x ← L x, L* x, L⁻¹ x or L⁻* x in place for every row and node."""
    output = model.output
    for row in range(x.size // output[-1]):
        for k in range(model.parent.size):
            m = output[k + 1] - output[k]
            L_k = matrix(L, model.R_at[k], m, m)
            x_k = vector(x, row * output[-1] + output[k], m)
            if inverse and transposed:
                solve_lower_transposed(L_k, x_k)
            elif inverse:
                solve_lower(L_k, x_k)
            elif transposed:
                for i in range(m):
                    s = 0.0
                    for j in range(i, m):
                        s += L_k[j, i] * x_k[j]
                    x_k[i] = s
            else:
                for i in range(m - 1, -1, -1):
                    s = 0.0
                    for j in range(i + 1):
                        s += L_k[i, j] * x_k[j]
                    x_k[i] = s
