"""The scatter of the co-states: λ⁺, a, λ from the roots to the leaves (THEORY (4)), many at once."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import njit, types

from kfdyn._kernels.sizes import SWEEP
from kfdyn.estimation._kernels.emit import down, emitted, size, when
from kfdyn.estimation._kernels.lanes import LINE, add, aligned, clear, load, passes, product, store, transposed_product
from kfdyn.estimation._kernels.model import Model
from kfdyn.estimation._kernels.values import matrix, vector


@njit(**SWEEP)
def smooth_costates(tag, sizes, model, G, P_plus, z_plus, nu, eta, first, last, a, costate_plus, costate, x, room):
    """Run rows first … last of ν through the smoother; fills a, and λ⁺, λ, x̂ unless these are empty.

    ::

        λ⁺(k) = φ*(p(k),k) λ(p(k))
        a(k)  = ν − G*(λ⁺ + η)
        λ(k)  = λ⁺ + η + H* a
        x̂(k)  = z⁺ + P⁺ λ⁺

    Rows lie flat, as in the filter. ``model`` is the address of a model; ``room`` is for :func:`room` numbers with as
    many lanes as the tag says. Cost per node and vector: 2n² + 4nm flops, and 2n² more for x̂.
    """
    _scatter(tag, sizes, model, G, P_plus, z_plus, nu, eta, first, last, a, costate_plus, costate, x, room)


def room(states, outputs, most):
    """Numbers that the scatter needs room for, with the given totals and at most so many states to a node."""
    return states + outputs + most + LINE


@emitted(types.none)
def _scatter(lanes, sizes, address, G, P_plus, z_plus, nu, eta, first, last, a, costate_plus, costate, x, room):
    model = Model(address)
    state, output = model.state, model.output
    n_states, n_outputs = state[model.nodes], output[model.nodes]
    flow = aligned(room)  # λ
    rate = vector(flow, n_states * lanes)  # ν, then a
    known = vector(rate, n_outputs * lanes)
    for at, count in passes(lanes, first, last):
        load(lanes, None, rate, nu, n_outputs, at, count, 0, n_outputs)
        for step in down(model.nodes):
            k = model.order[step]
            n = size(sizes.n, state[k + 1] - state[k])
            m = size(sizes.m, output[k + 1] - output[k])
            own = vector(flow, state[k] * lanes)
            clear(lanes, own, n)
            p = model.parent[k]
            with when(p >= 0):
                r = size(sizes.n, state[p + 1] - state[p])
                above = vector(flow, state[p] * lanes)
                transposed_product(lanes, sizes.n, sizes.n, own, 1.0, matrix(model.phi, model.phi_at[k], r, n), above)
            with when(costate.size > 0):
                store(lanes, sizes.n, costate_plus, n_states, own, at, count, state[k], n)
                load(lanes, sizes.n, known, z_plus, n_states, at, count, state[k], n)
                product(lanes, sizes.n, sizes.n, known, 1.0, matrix(P_plus, model.Q_at[k], n, n), own)
                store(lanes, sizes.n, x, n_states, known, at, count, state[k], n)
            if eta is not None:
                load(lanes, sizes.n, known, eta, n_states, at, count, state[k], n)
                add(lanes, own, known, n)
            a_k = vector(rate, output[k] * lanes)
            transposed_product(lanes, sizes.n, sizes.m, a_k, -1.0, matrix(G, model.H_at[k], n, m), own)
            transposed_product(lanes, sizes.m, sizes.n, own, 1.0, matrix(model.H, model.H_at[k], m, n), a_k)
            with when(costate.size > 0):
                store(lanes, sizes.n, costate, n_states, own, at, count, state[k], n)
        store(lanes, None, a, n_outputs, rate, at, count, 0, n_outputs)
