"""The scatter of the co-states: λ⁺, a, λ, x̂ from the roots to the leaves (THEORY (4)), many at once."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.lanes import add_transposed, load, store, subtract_transposed
from kfdyn.estimation._kernels.sizes import OPTIONS, size


@njit(**OPTIONS)
def smooth_costates(tag, model, G, nu, eta, first, last, a, costate_plus, costate):
    """Run rows first … last of ν through the smoother; fills a, and λ⁺, λ where these have rows.

    ::

        λ⁺(k) = φ*(p(k),k) λ(p(k))
        a(k)  = ν − G*(λ⁺ + η)
        λ(k)  = λ⁺ + η + H* a

    Cost per node and vector: 2n² + 4nm flops.
    """
    state, output = model.state, model.output
    lanes = size(tag, 1)
    m_max = 1
    n_max = 1
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    flow = np.empty((state[-1], lanes))
    known = np.empty((n_max, lanes))
    rate = np.empty((m_max, lanes))
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        for step in range(model.order.size - 1, -1, -1):
            k = model.order[step]
            n = state[k + 1] - state[k]
            m = output[k + 1] - output[k]
            own = flow[state[k] : state[k] + n]
            for i in range(n):
                for l in range(lanes):
                    own[i, l] = 0.0
            p = model.parent[k]
            if p >= 0:
                r = state[p + 1] - state[p]
                phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
                add_transposed(own, phi, flow[state[p] : state[p] + r], r, n, lanes)
            if costate.shape[0] > 0:
                store(costate_plus, own, at, count, state[k], n)
            if eta.shape[0] > 0:
                load(known, eta, at, count, state[k], n, lanes)
                for i in range(n):
                    for l in range(lanes):
                        own[i, l] += known[i, l]
            if m > 0:
                load(rate, nu, at, count, output[k], m, lanes)
                subtract_transposed(rate, G[model.H_at[k] : model.H_at[k] + m * n], own, n, m, lanes)
                store(a, rate, at, count, output[k], m)
                add_transposed(own, model.H[model.H_at[k] : model.H_at[k] + m * n], rate, m, n, lanes)
            if costate.shape[0] > 0:
                store(costate, own, at, count, state[k], n)
