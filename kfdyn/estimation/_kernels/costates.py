"""The scatter of the co-states: λ⁺, a, λ from the roots to the leaves (THEORY (4)), many at once."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.lanes import add, clear, load, product, store, transposed_product
from kfdyn.estimation._kernels.linalg import largest
from kfdyn.estimation._kernels.sizes import SWEEP, matrix, size, vector


@njit(**SWEEP)
def smooth_costates(tag, sizes, model, G, P_plus, z_plus, nu, eta, first, last, a, costate_plus, costate, x):
    """Run rows first … last of ν through the smoother; fills a, and λ⁺, λ, x̂ unless these are empty.

    ::

        λ⁺(k) = φ*(p(k),k) λ(p(k))
        a(k)  = ν − G*(λ⁺ + η)
        λ(k)  = λ⁺ + η + H* a
        x̂(k)  = z⁺ + P⁺ λ⁺

    Rows lie flat, as in the filter. Cost per node and vector: 2n² + 4nm flops, and 2n² more for x̂.
    """
    state, output = model.state, model.output
    n_states, n_outputs = state[-1], output[-1]
    lanes = size(tag, 1)
    flow = np.empty(n_states * lanes)
    known = np.empty(largest(state) * lanes)
    rate = np.empty(n_outputs * lanes)  # ν, then a
    for at in range(first, last, lanes):
        count = min(lanes, last - at)
        load(tag, None, rate, nu, n_outputs, at, count, 0, n_outputs)
        for step in range(model.order.size):
            k = model.order[model.order.size - 1 - step]
            n = size(sizes.n, state[k + 1] - state[k])
            m = size(sizes.m, output[k + 1] - output[k])
            own = vector(flow, state[k] * lanes, n * lanes)
            clear(tag, own, n)
            p = model.parent[k]
            if p >= 0:
                r = size(sizes.n, state[p + 1] - state[p])
                above = vector(flow, state[p] * lanes, r * lanes)
                transposed_product(tag, sizes.n, sizes.n, own, 1.0, matrix(model.phi, model.phi_at[k], r, n), above)
            if costate.size > 0:
                store(tag, sizes.n, costate_plus, n_states, own, at, count, state[k], n)
                load(tag, sizes.n, known, z_plus, n_states, at, count, state[k], n)
                product(tag, sizes.n, sizes.n, known, 1.0, matrix(P_plus, model.Q_at[k], n, n), own)
                store(tag, sizes.n, x, n_states, known, at, count, state[k], n)
            if eta is not None:
                load(tag, sizes.n, known, eta, n_states, at, count, state[k], n)
                add(tag, own, known, n)
            if m > 0:
                a_k = vector(rate, output[k] * lanes, m * lanes)
                transposed_product(tag, sizes.n, sizes.m, a_k, -1.0, matrix(G, model.H_at[k], n, m), own)
                transposed_product(tag, sizes.m, sizes.n, own, 1.0, matrix(model.H, model.H_at[k], m, n), a_k)
            if costate.size > 0:
                store(tag, sizes.n, costate, n_states, own, at, count, state[k], n)
        store(tag, None, a, n_outputs, rate, at, count, 0, n_outputs)
