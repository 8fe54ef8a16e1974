"""Products with φ, ψ and their adjoints, full and strict, as gathers and scatters (SKO "gather", "scatter", "strict")."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.lanes import (
    add_product,
    add_transposed,
    load,
    store,
    subtract_product,
    subtract_transposed,
)
from kfdyn.estimation._kernels.sizes import OPTIONS, size


@njit(**OPTIONS)
def gather(tag, model, G, closed, strict, x, first, last, y):
    """Y = A x or Ã x, leaves to roots, for A = φ or (closed) A = ψ, whose step is φ τ̄ = φ(1 − G H).

    y(k) = Σ_j A(k,j) (y(j) + …): with s(k) = Σ_j A(k,j)(s(j) + x(j)), Ã x = s and A x = s + x.
    """
    state, output = model.state, model.output
    lanes = size(tag, 1)
    n_max, m_max = 1, 1
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    flow = np.empty((state[-1], lanes))
    own = np.empty((n_max, lanes))
    seen = np.empty((m_max, lanes))
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for i in range(state[-1]):
            for l in range(lanes):
                flow[i, l] = 0.0
        for k in model.order:
            n = state[k + 1] - state[k]
            m = output[k + 1] - output[k]
            s = flow[state[k] : state[k] + n]
            if strict:
                store(y, s, at, count, state[k], n)
            load(own, x, at, count, state[k], n, lanes)
            for i in range(n):
                for l in range(lanes):
                    own[i, l] += s[i, l]
            if not strict:
                store(y, own, at, count, state[k], n)
            p = model.parent[k]
            if p >= 0:
                if closed and m > 0:
                    for a in range(m):
                        for l in range(lanes):
                            seen[a, l] = 0.0
                    add_product(seen, model.H[model.H_at[k] : model.H_at[k] + m * n], own, m, n, lanes)
                    subtract_product(own, G[model.H_at[k] : model.H_at[k] + m * n], seen, n, m, lanes)
                r = state[p + 1] - state[p]
                phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
                add_product(flow[state[p] : state[p] + r], phi, own, r, n, lanes)


@njit(**OPTIONS)
def scatter(tag, model, G, closed, strict, x, first, last, y):
    """Y = A* x or Ã* x, roots to leaves: s(k) = A*(p,k) (s(p) + x(p)), Ã* x = s and A* x = s + x."""
    state, output = model.state, model.output
    lanes = size(tag, 1)
    n_max, m_max = 1, 1
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    flow = np.empty((state[-1], lanes))  # s + x
    own = np.empty((n_max, lanes))
    seen = np.empty((m_max, lanes))
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for step in range(model.order.size - 1, -1, -1):
            k = model.order[step]
            n = state[k + 1] - state[k]
            m = output[k + 1] - output[k]
            s = flow[state[k] : state[k] + n]
            for i in range(n):
                for l in range(lanes):
                    s[i, l] = 0.0
            p = model.parent[k]
            if p >= 0:
                r = state[p + 1] - state[p]
                phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
                add_transposed(s, phi, flow[state[p] : state[p] + r], r, n, lanes)
                if closed and m > 0:
                    for a in range(m):
                        for l in range(lanes):
                            seen[a, l] = 0.0
                    add_transposed(seen, G[model.H_at[k] : model.H_at[k] + m * n], s, n, m, lanes)
                    subtract_transposed(s, model.H[model.H_at[k] : model.H_at[k] + m * n], seen, m, n, lanes)
            if strict:
                store(y, s, at, count, state[k], n)
            load(own, x, at, count, state[k], n, lanes)
            for i in range(n):
                for l in range(lanes):
                    s[i, l] += own[i, l]
            if not strict:
                store(y, s, at, count, state[k], n)


@njit(**OPTIONS)
def step(tag, model, transposed, x, first, last, y):
    """Y += ℰ_φ x, y(p) += φ(p,k) x(k), or its adjoint y(k) += φ*(p,k) x(p): one edge, no recursion."""
    state = model.state
    lanes = size(tag, 1)
    n_max = 1
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
    given = np.empty((n_max, lanes))
    result = np.empty((n_max, lanes))
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for k in range(model.parent.size):
            p = model.parent[k]
            if p < 0:
                continue
            n, r = state[k + 1] - state[k], state[p + 1] - state[p]
            phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
            if transposed:
                load(given, x, at, count, state[p], r, lanes)
                load(result, y, at, count, state[k], n, lanes)
                add_transposed(result, phi, given, r, n, lanes)
                store(y, result, at, count, state[k], n)
            else:
                load(given, x, at, count, state[k], n, lanes)
                load(result, y, at, count, state[p], r, lanes)
                add_product(result, phi, given, r, n, lanes)
                store(y, result, at, count, state[p], r)


@njit(**OPTIONS)
def multiply_blocks(tag, blocks, blocks_at, rows, cols, transposed, x, first, last, y):
    """Y(k) += B(k) x(k), or B*(k) x(k), for rows first … last of x and y: a block-diagonal product."""
    lanes = size(tag, 1)
    n_max = 1
    for k in range(rows.size - 1):
        n_max = max(n_max, rows[k + 1] - rows[k], cols[k + 1] - cols[k])
    given = np.empty((n_max, lanes))
    result = np.empty((n_max, lanes))
    to, of = (cols, rows) if transposed else (rows, cols)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for k in range(rows.size - 1):
            r = rows[k + 1] - rows[k]
            n = cols[k + 1] - cols[k]
            block = blocks[blocks_at[k] : blocks_at[k] + r * n]
            load(given, x, at, count, of[k], of[k + 1] - of[k], lanes)
            load(result, y, at, count, to[k], to[k + 1] - to[k], lanes)
            if transposed:
                add_transposed(result, block, given, r, n, lanes)
            else:
                add_product(result, block, given, r, n, lanes)
            store(y, result, at, count, to[k], to[k + 1] - to[k])


@njit(**OPTIONS)
def node_products(A, A_at, B, B_at, rows, inner, cols, C, C_at):
    """C(k) = A(k) B(k) for every node."""
    for k in range(rows.size):
        r, n, c = rows[k], inner[k], cols[k]
        for i in range(r):
            for j in range(c):
                s = 0.0
                for l in range(n):
                    s += A[A_at[k] + i * n + l] * B[B_at[k] + l * c + j]
                C[C_at[k] + i * c + j] = s
