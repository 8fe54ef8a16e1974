"""The gather of the states: z, ε, ν, z⁺ from the leaves to the roots (THEORY (3)), many T at once."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.lanes import add_product, load, store, subtract_product
from kfdyn.estimation._kernels.sizes import OPTIONS, size


@njit(**OPTIONS)
def filter_states(tag, model, seen, L, G, P_plus, T, xi, eta, first, last, eps, nu, z, z_plus):
    """Run rows first … last of T through the filter; fills ε, ν, and z, z⁺ where these have rows.

    ::

        z(k)  = Σ_j φ(k,j) z⁺(j) + ξ(k)
        ε(k)  = T − H z,   ν = D⁻¹ ε
        z⁺(k) = z + G ε + P⁺ η(k)

    xi and eta have one row for all, or one for each T; eta without rows means zero. Cost per node and
    vector: 2n² + 4nm flops, and 2n² more with η.
    """
    state, output = model.state, model.output
    lanes = size(tag, 1)
    n_max, m_max = 1, 1
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    flow = np.empty((state[-1], lanes))  # Σ φ z⁺ of the children, then z
    ahead = np.empty((n_max, lanes))
    known = np.empty((n_max, lanes))
    e = np.empty((m_max, lanes))
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        load(flow, xi, at, count, 0, state[-1], lanes)
        for k in model.order:
            n = state[k + 1] - state[k]
            m = output[k + 1] - output[k]
            z_k = flow[state[k] : state[k] + n]
            for i in range(n):
                for l in range(lanes):
                    ahead[i, l] = z_k[i, l]
            if m > 0:
                load(e, T, at, count, output[k], m, lanes)
                subtract_product(e, model.H[model.H_at[k] : model.H_at[k] + m * n], z_k, m, n, lanes)
                for a in range(m):
                    if not seen[output[k] + a]:
                        for l in range(lanes):
                            e[a, l] = 0.0
                store(eps, e, at, count, output[k], m)
                add_product(ahead, G[model.H_at[k] : model.H_at[k] + m * n], e, n, m, lanes)
                solve(L[model.R_at[k] : model.R_at[k] + m * m], e, m, lanes)
                store(nu, e, at, count, output[k], m)
            if eta.shape[0] > 0:
                load(known, eta, at, count, state[k], n, lanes)
                add_product(ahead, P_plus[model.Q_at[k] : model.Q_at[k] + n * n], known, n, n, lanes)
            if z.shape[0] > 0:
                store(z, z_k, at, count, state[k], n)
                store(z_plus, ahead, at, count, state[k], n)
            p = model.parent[k]
            if p >= 0:
                r = state[p + 1] - state[p]
                phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
                add_product(flow[state[p] : state[p] + r], phi, ahead, r, n, lanes)


@njit(**OPTIONS)
def solve(L, x, m, lanes):
    """X ← (L L*)⁻¹ x in place."""
    for i in range(m):
        for j in range(i):
            f = L[i * m + j]
            for l in range(lanes):
                x[i, l] -= f * x[j, l]
        f = 1.0 / L[i * m + i]
        for l in range(lanes):
            x[i, l] *= f
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            f = L[j * m + i]
            for l in range(lanes):
                x[i, l] -= f * x[j, l]
        f = 1.0 / L[i * m + i]
        for l in range(lanes):
            x[i, l] *= f
