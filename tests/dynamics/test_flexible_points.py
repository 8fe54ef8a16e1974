"""Random flexible trees against sums over mass points that share no code with the library."""

import mass_points
import numpy as np
import pytest
from flexible_cases import compiled, random_tree, state, tree
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.forward import FORWARD


def agree(system, q, v, g, seed=0):
    M, c = mass_points.equations(system, q, v, g)
    size = np.sqrt(np.outer(np.diag(M), np.diag(M)))
    np.testing.assert_allclose(kf.mass_matrix(system, q) / size, M / size, atol=1e-12)
    # c by a difference in time of complex steps: some 1e-10 of the largest acceleration
    scale = np.sqrt(np.diag(M)) * (np.linalg.norm(v) ** 2 + np.linalg.norm(g) + 1.0)
    scale = scale * np.sqrt(np.diag(M).max()) + np.abs(c)
    np.testing.assert_allclose(kf.bias_forces(system, q, v, gravity=g) / scale, c / scale, atol=1e-9)
    tau = np.random.default_rng(seed).normal(size=system.nv)
    a = compiled(
        FORWARD, system, q, v, tau, None, g
    )  # the sweep itself, and not the engine that answers where it has none
    np.testing.assert_array_equal(kf.forward_dynamics(system, q, v, tau, gravity=g), a)
    for found in (a, kf.forward_dynamics(system, q, v, tau, gravity=g, method="engine")):
        left = (M @ found + c - tau) / (np.abs(M) @ np.abs(found) + np.abs(c) + np.abs(tau) + scale)
        assert np.abs(left).max() < 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_ragged_trees(seed):
    """SKO:flexible. The sweep that measures modes before the hinge, and the engine on nodes of 6 + modes."""
    system = random_tree(seed)
    q, v = state(system, seed)
    agree(system, q, v, np.random.default_rng(seed).normal(size=3))


@settings(max_examples=15, deadline=None)
@given(st.integers(100, 10**6), st.sampled_from([0.0, 0.05, 0.5]), st.booleans())
def test_ragged_trees_bent_much_and_not_at_all(seed, bent, still):
    system = random_tree(seed)
    rng = np.random.default_rng(seed)
    q = system.random_configuration(rng, bent=bent)
    v = np.zeros(system.nv) if still else rng.normal(size=system.nv)
    agree(system, q, v, rng.normal(size=3), seed)


@pytest.mark.parametrize("angle", [0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi])
def test_right_angles_and_neutral(angle):
    system = tree(0)
    q = system.neutral()
    for name in ("base", "first", "tip"):
        q[system.q_slice(name)] = angle
    agree(system, q, np.ones(system.nv), (0, 0, -9.81))


def test_beams_with_everything():
    """Bending in two planes, torsion, stretch, stiffening, a child turned with the end."""
    rod = kf.beam(
        "rod", 1.0, 2.0, bending=(30.0, 50.0), torsion=4.0, stretch=900.0, gyration=0.05, modes=2, elements=4,
        stiffening=True, hinge=kf.Hinge.ball(), damping=0.03,
    )  # fmt: skip
    arm = kf.Body("arm", np.diag([0.1, 0.2, 0.15, 1, 1, 1]), kf.Hinge.universal(), "rod", position=[1.0, 0, 0])
    system = kf.FlexibleSystem([rod, arm])
    q, v = state(system, 4)
    agree(system, q, v, (0.0, 1.0, -9.81))


@pytest.mark.parametrize("stiff", [1e-9, 1e9])
def test_soft_and_stiff_extremes(stiff):
    rng = np.random.default_rng(0)
    from flexible_cases import random_flexible

    body = random_flexible(rng, "body", hinge=kf.Hinge.revolute([0, 1, 0]))
    body = kf.FlexibleBody(
        "body", body.mass, body.points, body.shapes, stiff * body.stiffness, 0.0, body.turns, hinge=body.rigid.hinge
    )
    system = kf.FlexibleSystem([body])
    q, v = state(system, 0)
    agree(system, q, v, (0.0, 0.0, -9.81))


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_units(unit):
    """Lengths in other units: 𝓜 and c against the points, entry by entry in the scale of their dofs."""
    rng = np.random.default_rng(3)
    from flexible_cases import random_flexible

    body = random_flexible(rng, "body", hinge=kf.Hinge.revolute([0, 1, 0]))
    scaled = kf.FlexibleBody(
        "body", body.mass, unit * body.points, unit * body.shapes, unit**2 * body.stiffness, 0.0, body.turns,
        unit * body.bends, hinge=body.rigid.hinge,
    )  # fmt: skip
    J = np.diag([unit] * 3 + [1.0] * 3)
    from flexible_cases import inertia

    tip = kf.Body("tip", J @ inertia(rng, 0.5) @ J, kf.Hinge.ball(), "body", position=scaled.points[2])
    system = kf.FlexibleSystem([scaled, tip])
    q, v = state(system, 3)
    M, c = mass_points.equations(system, q, v, (0, 0, -9.81 * unit))
    size = np.sqrt(np.outer(np.diag(M), np.diag(M)))
    np.testing.assert_allclose(kf.mass_matrix(system, q) / size, M / size, atol=1e-12)
    got = kf.bias_forces(system, q, v, gravity=(0, 0, -9.81 * unit))
    np.testing.assert_allclose(got, c, rtol=1e-8, atol=1e-9 * abs(c).max())
