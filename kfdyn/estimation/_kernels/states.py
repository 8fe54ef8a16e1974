"""The gather of the states: z, ε, ν, z⁺ from the leaves to the roots (THEORY (3)), many T at once."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import njit, types

from kfdyn._kernels.sizes import SWEEP
from kfdyn.estimation._kernels.emit import emitted, loop, size, when
from kfdyn.estimation._kernels.lanes import LINE, aligned, copy, load, passes, product, put, solve, store, zero
from kfdyn.estimation._kernels.model import Model
from kfdyn.estimation._kernels.values import matrix, vector


@njit(**SWEEP)
def filter_states(tag, sizes, model, seen, L, G, P_plus, T, xi, eta, first, last, eps, nu, z, z_plus, room):
    """Run rows first … last of T through the filter; fills ε, ν, and z, z⁺ unless these are empty.

    ::

        z(k)  = Σ_j φ(k,j) z⁺(j) + ξ(k)
        ε(k)  = T − H z,   ν = D⁻¹ ε
        z⁺(k) = z + G ε + P⁺ η(k)

    All rows lie flat, one after the other. xi and eta have one row for all, or one for each T; eta None means
    zero. ``model`` is the address of a model; ``room`` is for :func:`room` numbers with as many lanes as the tag says.
    Cost per node and vector: 2n² + 4nm flops, and 2n² more with η.
    """
    _gather(tag, sizes, model, seen, L, G, P_plus, T, xi, eta, first, last, eps, nu, z, z_plus, room)


def room(states, outputs, most):
    """Numbers that the gather needs room for, with the given totals and at most so many states to a node."""
    return states + 2 * outputs + 2 * most + LINE


@emitted(types.none)
def _gather(lanes, sizes, address, seen, L, G, P_plus, T, xi, eta, first, last, eps, nu, z, z_plus, room):
    model = Model(address)
    state, output = model.state, model.output
    n_states, n_outputs = state[model.nodes], output[model.nodes]
    flow = aligned(room)  # Σ φ z⁺ of the children plus ξ: z once they all have come
    innovation = vector(flow, n_states * lanes)  # T, then ε
    residual = vector(innovation, n_outputs * lanes)
    known = vector(residual, n_outputs * lanes)
    ahead = vector(known, model.most * lanes)
    for at, count in passes(lanes, first, last):
        load(lanes, None, flow, xi, n_states, at, count, 0, n_states)
        load(lanes, None, innovation, T, n_outputs, at, count, 0, n_outputs)
        for step in loop(model.nodes):
            k = model.order[step]
            n = size(sizes.n, state[k + 1] - state[k])
            m = size(sizes.m, output[k + 1] - output[k])
            z_k = vector(flow, state[k] * lanes)
            copy(lanes, sizes.n, ahead, z_k, n)
            eps_k, nu_k = vector(innovation, output[k] * lanes), vector(residual, output[k] * lanes)
            product(lanes, sizes.m, sizes.n, eps_k, -1.0, matrix(model.H, model.H_at[k], m, n), z_k)
            for i in loop(m):
                with when(~seen[output[k] + i]):
                    put(lanes, eps_k, i, zero(lanes))
            product(lanes, sizes.n, sizes.m, ahead, 1.0, matrix(G, model.H_at[k], n, m), eps_k)
            copy(lanes, sizes.m, nu_k, eps_k, m)
            solve(lanes, matrix(L, model.R_at[k], m, m), nu_k)
            if eta is not None:
                load(lanes, sizes.n, known, eta, n_states, at, count, state[k], n)
                product(lanes, sizes.n, sizes.n, ahead, 1.0, matrix(P_plus, model.Q_at[k], n, n), known)
            with when(z.size > 0):
                store(lanes, sizes.n, z, n_states, z_k, at, count, state[k], n)
                store(lanes, sizes.n, z_plus, n_states, ahead, at, count, state[k], n)
            p = model.parent[k]
            with when(p >= 0):
                r = size(sizes.n, state[p + 1] - state[p])
                above = vector(flow, state[p] * lanes)
                product(lanes, sizes.n, sizes.n, above, 1.0, matrix(model.phi, model.phi_at[k], r, n), ahead)
        store(lanes, None, eps, n_outputs, innovation, at, count, 0, n_outputs)
        store(lanes, None, nu, n_outputs, residual, at, count, 0, n_outputs)
