"""Products with φ, ψ and their adjoints, full and strict, as gathers and scatters.

Sources: SKO "gather", "scatter", "strict".
"""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import SWEEP, matrix, size, vector
from kfdyn.estimation._kernels.lanes import add, clear, load, product, store, transposed_product
from kfdyn.estimation._kernels.linalg import largest


@njit(**SWEEP)
def gather(tag, model, G, closed, strict, x, first, last, y):
    """y = A x or Ã x, leaves to roots, for A = φ or (closed) A = ψ, whose step is φ τ̄ = φ(1 − G H).

    With s(k) = Σ_j A(k,j)(s(j) + x(j)), Ã x = s and A x = s + x.
    """
    state, output = model.state, model.output
    n_states = state[-1]
    lanes = size(tag, 1)
    flow = np.empty(n_states * lanes)  # s, then s + x
    known = np.empty(largest(state) * lanes)
    seen = np.empty(largest(output) * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        clear(tag, flow, n_states)
        for k in model.order:
            n = state[k + 1] - state[k]
            m = output[k + 1] - output[k]
            own = vector(flow, state[k] * lanes, n * lanes)
            if strict:
                store(tag, None, y, n_states, own, at, count, state[k], n)
            load(tag, None, known, x, n_states, at, count, state[k], n)
            add(tag, own, known, n)
            if not strict:
                store(tag, None, y, n_states, own, at, count, state[k], n)
            p = model.parent[k]
            if p >= 0:
                if closed and m > 0:
                    clear(tag, seen, m)
                    product(tag, None, None, seen, 1.0, matrix(model.H, model.H_at[k], m, n), own)
                    product(tag, None, None, own, -1.0, matrix(G, model.H_at[k], n, m), seen)
                r = state[p + 1] - state[p]
                above = vector(flow, state[p] * lanes, r * lanes)
                product(tag, None, None, above, 1.0, matrix(model.phi, model.phi_at[k], r, n), own)


@njit(**SWEEP)
def scatter(tag, model, G, closed, strict, x, first, last, y):
    """y = A* x or Ã* x, roots to leaves: s(k) = A*(p,k) (s(p) + x(p)), Ã* x = s and A* x = s + x."""
    state, output = model.state, model.output
    n_states = state[-1]
    lanes = size(tag, 1)
    flow = np.empty(n_states * lanes)  # s, then s + x
    known = np.empty(largest(state) * lanes)
    seen = np.empty(largest(output) * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for step in range(model.order.size):
            k = model.order[model.order.size - 1 - step]
            n = state[k + 1] - state[k]
            m = output[k + 1] - output[k]
            own = vector(flow, state[k] * lanes, n * lanes)
            clear(tag, own, n)
            p = model.parent[k]
            if p >= 0:
                r = state[p + 1] - state[p]
                above = vector(flow, state[p] * lanes, r * lanes)
                transposed_product(tag, None, None, own, 1.0, matrix(model.phi, model.phi_at[k], r, n), above)
                if closed and m > 0:
                    clear(tag, seen, m)
                    transposed_product(tag, None, None, seen, 1.0, matrix(G, model.H_at[k], n, m), own)
                    transposed_product(tag, None, None, own, -1.0, matrix(model.H, model.H_at[k], m, n), seen)
            if strict:
                store(tag, None, y, n_states, own, at, count, state[k], n)
            load(tag, None, known, x, n_states, at, count, state[k], n)
            add(tag, own, known, n)
            if not strict:
                store(tag, None, y, n_states, own, at, count, state[k], n)


@njit(**SWEEP)
def step(tag, model, transposed, x, first, last, y):
    """y += ℰ_φ x, y(p) += φ(p,k) x(k), or its adjoint y(k) += φ*(p,k) x(p): one edge, no recursion."""
    state = model.state
    n_states = state[-1]
    lanes = size(tag, 1)
    given = np.empty(largest(state) * lanes)
    result = np.empty(largest(state) * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for k in range(model.parent.size):
            p = model.parent[k]
            if p < 0:
                continue
            n, r = state[k + 1] - state[k], state[p + 1] - state[p]
            phi = matrix(model.phi, model.phi_at[k], r, n)
            if transposed:
                load(tag, None, given, x, n_states, at, count, state[p], r)
                load(tag, None, result, y, n_states, at, count, state[k], n)
                transposed_product(tag, None, None, result, 1.0, phi, given)
                store(tag, None, y, n_states, result, at, count, state[k], n)
            else:
                load(tag, None, given, x, n_states, at, count, state[k], n)
                load(tag, None, result, y, n_states, at, count, state[p], r)
                product(tag, None, None, result, 1.0, phi, given)
                store(tag, None, y, n_states, result, at, count, state[p], r)


@njit(**SWEEP)
def multiply_blocks(tag, blocks, blocks_at, rows, cols, transposed, x, first, last, y):
    """y(k) += B(k) x(k), or B*(k) x(k), for rows first … last of x and y: a block-diagonal product."""
    lanes = size(tag, 1)
    most = max(largest(rows), largest(cols))
    given = np.empty(most * lanes)
    result = np.empty(most * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for k in range(rows.size - 1):
            r, n = rows[k + 1] - rows[k], cols[k + 1] - cols[k]
            block = matrix(blocks, blocks_at[k], r, n)
            if transposed:
                load(tag, None, given, x, rows[-1], at, count, rows[k], r)
                load(tag, None, result, y, cols[-1], at, count, cols[k], n)
                transposed_product(tag, None, None, result, 1.0, block, given)
                store(tag, None, y, cols[-1], result, at, count, cols[k], n)
            else:
                load(tag, None, given, x, cols[-1], at, count, cols[k], n)
                load(tag, None, result, y, rows[-1], at, count, rows[k], r)
                product(tag, None, None, result, 1.0, block, given)
                store(tag, None, y, rows[-1], result, at, count, rows[k], r)


@njit(**SWEEP)
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
