"""Random models on ragged forests, every block different, well-conditioned by construction.

Numbers are compared to 1e-10, so the models must not amplify rounding by more than about 1e5. Transitions and output
maps have singular values between ½ and 1½ (or zero, where they are to be singular), and the innovations covariances
D(k) of a plain textbook recursion are kept above ``D_MIN``: a node that falls below gets a full R, or a full Q
where R must stay zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.estimation.dense import DenseModel

D_MIN = 0.05

seeds = st.integers(0, 2**32 - 1)
fast = settings(max_examples=min(40, settings.default.max_examples), deadline=None)  # fewer where a profile wants fewer
few = settings(max_examples=min(12, settings.default.max_examples), deadline=None)


class Case(NamedTuple):
    """A model, one measurement vector (NaN where missing) and both known inputs."""

    ss: kf.StateSpace
    T: np.ndarray
    xi: np.ndarray
    eta: np.ndarray

    def dense(self, T=None, xi=None, eta=None) -> DenseModel:
        """The same problem for the dense oracle, with the inputs inside."""
        ss = self.ss
        return DenseModel.from_blocks(
            ss.tree.parent,
            ss.phi,
            ss.H,
            ss.Q,
            ss.R,
            self.xi if xi is None else xi,
            self.eta if eta is None else eta,
        )


def close(actual, desired, digits=10):
    """Equal to 1e-10 of the largest number compared, or of 1 if that is larger (the size of the models' numbers)."""
    desired = np.asarray(desired)
    scale = max(1.0, np.abs(desired).max(initial=0.0))
    np.testing.assert_allclose(actual, desired, rtol=0, atol=10.0**-digits * scale)


def random_matrix(rng, rows, columns, rank=None):
    """Singular values between ½ and 1½, all but ``rank`` of them zero."""
    U, s, Vt = np.linalg.svd(rng.normal(size=(rows, columns)), full_matrices=False)
    values = rng.uniform(0.5, 1.5, size=s.size)
    if rank is not None:
        values[rank:] = 0.0
    return U * values @ Vt


def random_covariance(rng, size, rank=None):
    B = random_matrix(rng, size, size, rank)
    return B @ B.T


def random_parent(rng, N, roots=0.1):
    """A forest in random numbering."""
    order = rng.permutation(N)
    parent = np.full(N, -1)
    for i in range(1, N):
        if rng.random() > roots:
            parent[order[i]] = order[rng.integers(max(0, i - 4), i)]
    return parent


@st.composite
def forests(draw, min_nodes=1, max_nodes=9):
    """Parent lists of forests in any numbering; shrinks towards one root."""
    order = draw(st.integers(min_nodes, max_nodes).flatmap(lambda N: st.permutations(range(N))))
    parent = [-1] * len(order)
    for i in range(1, len(order)):
        above = draw(st.integers(-1, i - 1))
        parent[order[i]] = -1 if above < 0 else order[above]
    return parent


@st.composite
def cases(draw, noise=True, missing=False, min_nodes=1, max_nodes=9, full_Q=False, invertible=False):
    """A :class:`Case` on a ragged random forest.

    ``noise=False`` makes R = 0 everywhere; else R is full, singular or zero from node to node. Q is full, singular or
    zero unless ``full_Q``. φ is ragged, and singular at some nodes, unless ``invertible`` makes all states
    one size.
    """
    parent = draw(forests(min_nodes, max_nodes))
    N = len(parent)
    sizes = st.just(draw(st.integers(1, 4))) if invertible else st.integers(1, 5)
    n = [draw(sizes) for _ in range(N)]
    m = [draw(st.integers(0, 3 if noise else min(3, size))) for size in n]
    kinds = st.sampled_from(["full", "singular", "zero"])
    kind_Q = ["full" if full_Q else draw(kinds) for _ in range(N)]
    kind_R = [draw(kinds) if noise else "zero" for _ in range(N)]
    kind_phi = ["full" if invertible else draw(st.sampled_from(["full", "full", "singular"])) for _ in range(N)]
    rng = np.random.default_rng(draw(seeds))
    ss = build(rng, parent, n, m, kind_phi, kind_Q, kind_R, noise)
    T, xi, eta = (rng.normal(size=size) for size in (ss.n_outputs, ss.n_states, ss.n_states))
    if missing:
        T[[draw(st.booleans()) for _ in range(ss.n_outputs)]] = np.nan
    return Case(ss, T, xi, eta)


def random_case(seed, N, n=None, m=None, noise=True, parent=None):
    """A Case of a given number of nodes; ``n`` and ``m`` fix the sizes, which makes all blocks stackable."""
    rng = np.random.default_rng(seed)
    parent = random_parent(rng, N) if parent is None else parent
    sizes = np.full(N, n) if n else rng.integers(1, 6, N)
    outputs = np.full(N, m) if m is not None else np.array([rng.integers(0, min(3, s) + 1) for s in sizes])
    ss = build(rng, parent, sizes, outputs, ["full"] * N, ["full"] * N, ["full" if noise else "zero"] * N, noise)
    T, xi, eta = (rng.normal(size=size) for size in (ss.n_outputs, ss.n_states, ss.n_states))
    return Case(ss, T, xi, eta)


def _rank(kind, size):
    return {"full": None, "singular": size // 2, "zero": 0}[kind]


def build(rng, parent, n, m, kind_phi, kind_Q, kind_R, noise):
    N = len(parent)
    children = [[j for j in range(N) if parent[j] == k] for k in range(N)]
    # divided among the children, so that the states of a wide or deep tree stay of order one
    phi = [
        None
        if p < 0
        else random_matrix(rng, n[p], n[k], _rank(kind_phi[k], min(n[p], n[k]))) / np.sqrt(len(children[p]))
        for k, p in enumerate(parent)
    ]
    H = [random_matrix(rng, m[k], n[k]) for k in range(N)]
    Q = [random_covariance(rng, n[k], _rank(kind_Q[k], n[k])) for k in range(N)]
    R = [random_covariance(rng, m[k], _rank(kind_R[k], m[k])) for k in range(N)]
    P_plus: dict[int, np.ndarray] = {}
    waiting = [k for k in range(N) if parent[k] < 0]
    order = []
    while waiting:
        order.append(waiting.pop())
        waiting += children[order[-1]]
    for k in reversed(order):
        P = Q[k] + sum(phi[j] @ P_plus[j] @ phi[j].T for j in children[k])
        D = H[k] @ P @ H[k].T + R[k]
        if m[k] and np.linalg.eigvalsh(D)[0] < D_MIN:
            repair = random_covariance(rng, n[k] if not noise else m[k])
            if noise:
                R[k] = repair
            else:
                Q[k], P = Q[k] + repair, P + repair
            D = H[k] @ P @ H[k].T + R[k]
        G = np.linalg.solve(D, H[k] @ P).T
        P_plus[k] = P - G @ D @ G.T
    return kf.StateSpace(list(parent), phi, H, Q, R)
