"""Random systems and a derivative accurate enough to test to ten digits."""

import numpy as np
from hypothesis import strategies as st

import kfdyn.multibody as mb

seeds = st.integers(0, 10**6)


def forest(seed, n=None):
    """A random forest with every kind of hinge, bodies in random order, gravity in a random direction."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14)) if n is None else n
    system = mb.models.random_tree(n, seed, trees=int(rng.integers(1, min(n, 3) + 1)), branching=rng.uniform())
    bodies = [system.bodies[i] for i in rng.permutation(n)]
    frame = mb.Frame(bodies[0].name, position=rng.normal(size=3))
    return mb.System(bodies, gravity=rng.normal(size=3), frames={"tool": frame}), rng


def state(system, rng, batch=()):
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(batch)))])
    q = q.reshape((*batch, system.nq)) if batch else system.random_configuration(rng)
    return q, rng.normal(size=(*batch, system.nv))


def derivative(f, h=1e-3):
    """f'(0) by a six-point stencil: truncation O(h^6), rounding 1e-16/h, together some 1e-12 of f."""
    return (45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (60 * h)


def close(actual, expected, tol=1e-10, size=1.0):
    """Equal to tol times the largest of the entries and ``size``, the size of what was summed or cancelled."""
    expected = np.asarray(expected)
    scale = max(size, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol * scale)


def skew(l):
    x, y, z = l
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def phi(l):
    """The transition matrix of R86 (3.5), written out."""
    out = np.eye(6)
    out[:3, 3:] = skew(l)
    return out


def newton_euler(system, terms, a):
    """Inverse dynamics, densely and in Python: tau from the two sweeps of THEORY section 6."""
    n, layout = system.n_bodies, system.layout
    alpha, f, tau = np.zeros((n, 6)), np.zeros((n, 6)), np.zeros(system.nv)
    for k in layout.order:
        own = slice(layout.v_start[k], layout.v_start[k + 1])
        p = system.parent[k]
        above = phi(terms.l[k]).T @ alpha[p] if p >= 0 else np.zeros(6)
        alpha[k] = above + terms.H[own].T @ a[own] + terms.eta[k]
    for k in layout.order[::-1]:
        own = slice(layout.v_start[k], layout.v_start[k + 1])
        f[k] += terms.inertia[k] @ alpha[k] + terms.xi[k]
        tau[own] = terms.H[own] @ f[k] + layout.armature[own] * a[own]
        if system.parent[k] >= 0:
            f[system.parent[k]] += phi(terms.l[k]) @ f[k]
    return tau
