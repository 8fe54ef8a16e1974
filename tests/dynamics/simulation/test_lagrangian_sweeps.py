"""The sweeps of Lagrange's side, compiled and as they stand, against 𝓜 v, differences and exponentials of matrices."""

import numpy as np
import pytest
from scipy.linalg import expm

import kfdyn as kf
from kfdyn.duality.recursions.scatter import node_scatter
from kfdyn.dynamics.recursions.steps import lagrangian as sweeps
from kfdyn.dynamics.simulation.symplectic import variational
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.sweeps.jit import Checks


@pytest.fixture(params=["compiled", "plain"])
def way(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(sweeps, "transport", sweeps.transport.plain)
        monkeypatch.setattr(Checks, "on", True)


def state(seed, n=8):
    system, rng = kf.models.random_tree(n, seed), np.random.default_rng(seed)
    return system, system.random_configuration(rng), rng.normal(size=system.nv), rng


@pytest.mark.parametrize("seed", range(8))
def test_momentum_and_force_of_the_lagrangian(way, seed):
    system, q, v, rng = state(seed)
    pull, gravity = rng.normal(size=(system.n_bodies, 6)), rng.normal(size=3)
    found = variational.lagrangian(system, q, v, pull, gravity)
    np.testing.assert_allclose(found.momentum, kf.mass_matrix(system, q) @ v, rtol=1e-10, atol=1e-10)
    still = variational.lagrangian(system, q, 0 * v, pull, gravity)
    static = -kf.inverse_dynamics(system, q, 0 * v, 0 * v, pull, gravity)
    np.testing.assert_allclose(still.force, static, rtol=1e-10, atol=1e-10)


def star(x):
    """ad* of a body-frame motion on momenta [n; f]."""
    w, u = (np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) for x, y, z in (x[:3], x[3:]))
    return -np.block([[w, u], [0 * w, w]])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("size", "atol"), [(1e-9, 1e-14), (1e-5, 1e-14), (1e-2, 1e-14), (0.5, 1e-12), (2.0, 1e-10)])
def test_transport_is_the_exponential(way, size, atol, seed):
    """As many terms of it as a step of that size asks for."""
    system, _, p, rng = state(seed)
    step = rng.uniform(-size, size, size=system.nv)
    mean, moved = variational.transport(system, step, p)
    for k, body in enumerate(system.bodies):
        own = slice(system.layout.v_start[k], system.layout.v_start[k + 1])
        width = own.stop - own.start
        if width != {Coordinates.SCREWS: -1, Coordinates.BALL: 3, Coordinates.POSE: 6}[body.hinge.coordinates]:
            np.testing.assert_array_equal(moved[own], p[own])
            np.testing.assert_array_equal(mean[own], p[own])
            continue
        x, y = np.zeros(6), np.zeros(6)
        x[:width], y[:width] = step[own], p[own]
        series = expm(np.block([[star(x), np.eye(6)], [np.zeros((6, 12))]]))  # exp, and beside it its mean on the way
        np.testing.assert_allclose(moved[own], (series[:6, :6] @ y)[:width], rtol=0, atol=atol)
        np.testing.assert_allclose(mean[own], (series[:6, 6:] @ y)[:width], rtol=0, atol=atol)


@pytest.mark.parametrize("scatter", [node_scatter, node_scatter.plain])
def test_scatter_of_nodes_and_edges(scatter):
    rng = np.random.default_rng(3)
    sizes, parent = np.array([2, 0, 3, 1]), np.array([2, 2, 3, -1])
    start = np.concatenate([[0], np.cumsum(sizes)])
    y = rng.normal(size=(6, 50))
    nodes, edges = np.ones((4, 3, 3)), np.zeros((4, 3, 3))
    scatter(y, start, parent, nodes.reshape(-1), edges.reshape(-1), 3)
    for k in range(4):
        a = y[start[k] : start[k + 1]]
        np.testing.assert_allclose(nodes[k, : sizes[k], : sizes[k]], 1.0 + a @ a.T, rtol=1e-13)
        if parent[k] >= 0:
            b = y[start[parent[k]] : start[parent[k] + 1]]
            np.testing.assert_allclose(edges[k, : len(a), : len(b)], a @ b.T, rtol=1e-13, atol=1e-13)
