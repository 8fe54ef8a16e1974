"""The Riccati gather: P, D, G, P⁺ from the leaves to the roots (THEORY (2))."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from typing import Any, NamedTuple

from numba import njit, types

from kfdyn._kernels.sizes import SWEEP
from kfdyn.estimation._kernels.emit import both, either, emitted, loop, size, when
from kfdyn.estimation._kernels.linalg import add_congruence
from kfdyn.estimation._kernels.model import Model
from kfdyn.estimation._kernels.update import innovations, update_block, update_scalar, update_univariate
from kfdyn.estimation._kernels.values import choice, count, local, matrix, root, vector


@njit(**SWEEP)
def riccati(sizes, single, block, univariate, model, seen, P, P_plus, D, L, G, room):
    """Fill P, P⁺, D, its Cholesky factor L, and G; returns the (node, output) that failed, or (−1, −1).

    ::

        P(k)  = Σ_j φ(k,j) P⁺(j) φ*(k,j) + Q(k)
        D = H P H* + R,   G = P H* D⁻¹,   P⁺ = P − G D G*

    P arrives as a copy of Q and each node adds itself to its parent. ``sizes`` are the common sizes, if any; ``model``
    is the address of a model. ``single``, ``block`` and ``univariate`` say what the code is compiled with: scalar
    outputs on their own, and vector outputs in the one way or the other (which serve scalar ones too); None leaves
    that out. ``room`` is for :func:`room` numbers. Cost per node: 3n³ + O(n²m) flops.
    """
    return _gather(sizes, single, block, univariate, model, seen, P, P_plus, D, L, G, room)


def room(n, m):
    """Numbers that the gather needs room for, with at most n states and m outputs to a node."""
    return 2 * n * n + n + (n + m) * (n + 2 * m)


class _Node(NamedTuple):
    """What belongs to node k."""

    P: Any
    H: Any
    R: Any
    seen: Any
    D: Any
    L: Any
    G: Any
    P_plus: Any


@emitted(types.UniTuple(types.intp, 2))
def _gather(sizes, single, block, univariate, address, seen, P, P_plus, D, L, G, room):
    model = Model(address)
    state, output, most = model.state, model.output, model.most
    half, turned = room, vector(room, most * most)
    before, scratch = vector(room, 2 * most * most), vector(room, 2 * most * most + most)
    node, failed = local(-1), local(-1)
    for step in loop(model.nodes, until=failed):
        k = model.order[step]
        n = size(sizes.n, state[k + 1] - state[k])
        m = size(sizes.m, output[k + 1] - output[k])
        P_k, P_plus_k = matrix(P, model.Q_at[k], n, n), matrix(P_plus, model.Q_at[k], n, n)
        H_k, G_k = matrix(model.H, model.H_at[k], m, n), matrix(G, model.H_at[k], n, m)
        R_k, D_k, L_k = (matrix(flat, model.R_at[k], m, m) for flat in (model.R, D, L))
        own = _Node(P_k, H_k, R_k, vector(seen, output[k]), D_k, L_k, G_k, P_plus_k)
        node.set(k)
        if single is None:
            failed.set(_vector_output(sizes.n, block, univariate, own, before, scratch))
        else:
            with either(both(m == 1, _is_seen, own)) as (alone, together):
                with alone:
                    failed.set(_scalar_output(sizes.n, own, before, scratch))
                with together:
                    failed.set(_vector_output(sizes.n, block, univariate, own, before, scratch))
        p = model.parent[k]
        with when((p >= 0) & (failed < 0)):
            r = size(sizes.n, state[p + 1] - state[p])
            phi = matrix(model.phi, model.phi_at[k], r, n)
            add_congruence(sizes.n, matrix(P, model.Q_at[p], r, r), phi, P_plus_k, half, turned)
    return choice(failed < 0, failed, node), failed


def _is_seen(own):
    return own.seen[0]


def _scalar_output(tag, own, before, scratch):
    """Measure the only output; −1, or 0 if that failed."""
    n = own.P.shape[0]
    h, g = vector(own.H, 0, n), vector(own.G, 0, n)
    d = update_scalar(tag, own.P, h, own.R[0, 0], g, scratch, before, own.P_plus)
    own.D[0, 0], own.L[0, 0] = d, root(d)
    return count(~(d > 0.0)) - 1


def _vector_output(tag, block, univariate, own, before, scratch):
    """Measure all outputs; −1, or the one that failed."""
    P, H, R, seen, D, L, G, P_plus = own
    m, n = H.shape
    innovations(P, H, R, D, matrix(scratch, 0, n, m))
    if block is not None:
        return update_block(P, H, R, seen, D, L, G, before, scratch, P_plus)
    if univariate is not None:
        return update_univariate(tag, P, H, R, seen, L, G, before, scratch, P_plus)
    for i in loop(n):  # a scalar output that is missing, or none
        for j in loop(n):
            P_plus[i, j] = P[i, j]
        for a in loop(m):
            G[i, a] = 0.0
    for a in loop(m):
        L[a, a] = 1.0
    return -1
