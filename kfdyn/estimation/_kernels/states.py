"""The gather of the states: z, ε, ν, z⁺ from the leaves to the roots (THEORY (3)), many T at once."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.lanes import copy, load, product, solve, store
from kfdyn.estimation._kernels.linalg import largest
from kfdyn.estimation._kernels.sizes import SWEEP, matrix, size, vector
from kfdyn.estimation._kernels.vectors import put, zero


@njit(**SWEEP)
def filter_states(tag, sizes, model, seen, L, G, P_plus, T, xi, eta, first, last, eps, nu, z, z_plus):
    """Run rows first … last of T through the filter; fills ε, ν, and z, z⁺ unless these are empty.

    ::

        z(k)  = Σ_j φ(k,j) z⁺(j) + ξ(k)
        ε(k)  = T − H z,   ν = D⁻¹ ε
        z⁺(k) = z + G ε + P⁺ η(k)

    All rows lie flat, one after the other. xi and eta have one row for all, or one for each T; eta None means
    zero. Cost per node and vector: 2n² + 4nm flops, and 2n² more with η.
    """
    state, output = model.state, model.output
    n_states, n_outputs = state[-1], output[-1]
    lanes = size(tag, 1)
    flow = np.empty(n_states * lanes)  # Σ φ z⁺ of the children plus ξ: z once they all have come
    innovation = np.empty(n_outputs * lanes)  # T, then ε
    residual = np.empty(n_outputs * lanes)
    ahead = np.empty(largest(state) * lanes)
    known = np.empty(largest(state) * lanes)
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        load(tag, None, flow, xi, n_states, at, count, 0, n_states)
        load(tag, None, innovation, T, n_outputs, at, count, 0, n_outputs)
        for k in model.order:
            n = size(sizes.n, state[k + 1] - state[k])
            m = size(sizes.m, output[k + 1] - output[k])
            z_k = vector(flow, state[k] * lanes, n * lanes)
            copy(tag, sizes.n, ahead, z_k, n)
            if m > 0:
                eps_k = vector(innovation, output[k] * lanes, m * lanes)
                nu_k = vector(residual, output[k] * lanes, m * lanes)
                product(tag, sizes.m, sizes.n, eps_k, -1.0, matrix(model.H, model.H_at[k], m, n), z_k)
                for i in range(m):
                    if not seen[output[k] + i]:
                        put(tag, eps_k, i, zero(tag))
                product(tag, sizes.n, sizes.m, ahead, 1.0, matrix(G, model.H_at[k], n, m), eps_k)
                copy(tag, sizes.m, nu_k, eps_k, m)
                solve(tag, matrix(L, model.R_at[k], m, m), nu_k)
            if eta is not None:
                load(tag, sizes.n, known, eta, n_states, at, count, state[k], n)
                product(tag, sizes.n, sizes.n, ahead, 1.0, matrix(P_plus, model.Q_at[k], n, n), known)
            if z.size > 0:
                store(tag, sizes.n, z, n_states, z_k, at, count, state[k], n)
                store(tag, sizes.n, z_plus, n_states, ahead, at, count, state[k], n)
            p = model.parent[k]
            if p >= 0:
                r = size(sizes.n, state[p + 1] - state[p])
                above = vector(flow, state[p] * lanes, r * lanes)
                product(tag, sizes.n, sizes.n, above, 1.0, matrix(model.phi, model.phi_at[k], r, n), ahead)
        store(tag, None, eps, n_outputs, innovation, at, count, 0, n_outputs)
        store(tag, None, nu, n_outputs, residual, at, count, 0, n_outputs)
