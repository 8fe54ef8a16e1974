"""Couplings: everything against X*𝓜X of the open tree, dense, and the embedded model against it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.loops.aggregation import plan
from kfdyn.dynamics.loops.embedding import embedded_forest, output_rates
from kfdyn.errors import SingularError


def coupled_tree(seed):
    """A random ragged tree with up to three random couplings of one or two coordinates, offsets and zero ratios."""
    rng = np.random.default_rng(seed)
    tree = kf.models.random_tree(int(rng.integers(6, 22)), seed=int(seed))
    one = [b.hinge_name for b in tree.bodies if b.hinge.nv == 1 and b.hinge.kind != "custom"]
    rng.shuffle(one)
    couplings = []
    while len(one) > 1 and len(couplings) < 3:
        group, one = one[:3], one[3:]
        r = int(rng.integers(0 if len(couplings) else 1, len(group) + 1))
        X = rng.normal(size=(len(group), r))
        if r == 1 and len(group) == 3:
            X[:, 0] = [1.0, -2.5, 0.0]
        couplings.append(kf.Coupling(group, X, rng.normal(size=len(group))))
    return (kf.System(tree.bodies, couplings=couplings) if couplings else None), rng


def close(actual, expected, tolerance, condition=1.0):
    size = np.abs(expected).max(initial=0.0)
    assert np.abs(actual - expected).max(initial=0.0) <= max(tolerance, 8e-16 * condition) * max(size, 1e-300)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_against_the_dense_reduction(seed):
    s, rng = coupled_tree(seed)
    if s is None or not s.nv:
        return
    q, (v, a, tau) = s.random_configuration(rng), rng.normal(size=(3, s.nv))
    force, g = rng.normal(size=(s.n_bodies, 6)), rng.normal(size=3)
    tree, Q, X = s.open_tree, s.expand(q), s.expansion()
    M = X.T @ kf.mass_matrix(tree, Q, method="columns") @ X
    c = X.T @ kf.bias_forces(tree, Q, X @ v, force, g)
    condition = np.linalg.cond(M / np.sqrt(np.outer(np.diag(M), np.diag(M))))
    close(kf.mass_matrix(s, q), M, 1e-13)
    close(kf.bias_forces(s, q, v, force, g), c, 1e-13)
    close(kf.inverse_dynamics(s, q, v, a, force, g), M @ a + c, 1e-12)
    expected = np.linalg.solve(M, tau - c)
    for method in ("filter", "embedding", "mass_matrix"):
        close(kf.forward_dynamics(s, q, v, tau, force, g, method=method), expected, 1e-11, condition)
    close(kf.mass_matrix_inverse(s, q), np.linalg.inv(M), 1e-11, condition)
    assert np.isclose(kf.mass_matrix_logdet(s, q), np.linalg.slogdet(M)[1], atol=1e-10)
    assert np.isclose(kf.mass_matrix_trace(s, q), np.trace(M), rtol=1e-13)
    assert not M[~kf.mass_matrix_sparsity(s)].any()
    frame = s.body_names[-1]
    J = kf.jacobian(tree, Q, frame) @ X
    close(kf.operational_space_compliance(s, q, frame), J @ np.linalg.solve(M, J.T), 1e-10, condition)


def test_embedded_node_is_the_reduction():
    """SKO:geared, SKO:embedding: 𝓜'⁻¹ = (X*𝓜X)⁻¹; a gear is two sensors that report only their sum.

    In motion the smoother gives a of the dense reduction, and the co-states are the accelerations of the bodies.
    """
    for seed in (1, 5, 8):
        s, rng = coupled_tree(seed)
        q, (v, tau) = s.random_configuration(rng), rng.normal(size=(2, s.nv))
        ss, X, tree, Q = kf.as_estimation(s, q, v), output_rates(s, q), s.open_tree, s.expand(q)
        M = X.T @ kf.mass_matrix(tree, Q) @ X
        to_tree = s.expansion()
        here = to_tree.T @ kf.mass_matrix(tree, Q) @ to_tree
        a = np.linalg.solve(here, tau - to_tree.T @ kf.bias_forces(tree, Q, to_tree @ v))
        order = np.concatenate([node.own for node in plan(s).nodes])
        smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, tau[order]))
        close(smooth.a, a[order], 1e-9)
        gravity = np.r_[0, 0, 0, s.gravity]
        for k, node in enumerate(plan(s).nodes):
            names = [tree.body_names[i] for i in node.bodies]
            moved = [kf.frame_acceleration(tree, Q, to_tree @ v, to_tree @ a, name) - gravity for name in names]
            close(smooth.costate[k], np.concatenate(moved), 1e-9)
        F = kf.innovations_factor(ss)
        close(F.inverse(), np.linalg.inv(M), 1e-11, np.linalg.cond(M))
        assert np.isclose(F.logdet(), np.linalg.slogdet(M)[1], atol=1e-10)
        assert max(len(node.bodies) for node in plan(s).nodes) > 1
        assert sum(len(node.bodies) for node in plan(s).nodes) == s.n_bodies


def test_rotor_behind_a_gear_counts_with_the_square_of_its_ratio():
    (rod,) = kf.models.uniform_chain(1).bodies
    rotor = kf.Body("rotor", np.zeros((6, 6)), kf.Hinge.revolute(), armature=0.02)
    s = kf.System([rod, rotor], couplings=[kf.Coupling([rod.hinge_name, "rotor"], [1.0, -50.0])])
    assert np.isclose(kf.mass_matrix(s, [0.3])[0, 0], 1 / 3 + 2500 * 0.02, rtol=1e-14)
    assert np.isclose(kf.as_estimation(s, [0.3]).R[0][0, 0], 50.0, rtol=1e-14)
    assert np.isclose(kf.kinetic_energy(s, [0.3], [2.0]), 2 * (1 / 3 + 50), rtol=1e-14)


def test_differential():
    """Carrier and pinion of a differential: the wheels' sum and difference are the coordinates."""
    wheel = np.diag([0.1, 0.1, 0.2, 1, 1, 1])
    bodies = [kf.Body(side, wheel, kf.Hinge.revolute(), armature=r) for side, r in (("left", 0.3), ("right", 0.5))]
    s = kf.System(bodies, couplings=[kf.Coupling(["left", "right"], [[1, 1], [1, -1]])])
    assert np.allclose(kf.mass_matrix(s, [0, 0]), [[1.2, -0.2], [-0.2, 1.2]])
    assert np.allclose(
        kf.forward_dynamics(s, [0, 0], None, [1.0, 0.0]), np.linalg.solve([[1.2, -0.2], [-0.2, 1.2]], [1, 0])
    )


def test_batches_and_broadcasting():
    s, rng = coupled_tree(8)
    q = np.stack([s.random_configuration(rng) for _ in range(20)])
    v, tau = rng.normal(size=(2, 20, s.nv))
    one = np.array([kf.forward_dynamics(s, *x) for x in zip(q, v, tau)])
    for method in ("filter", "embedding"):
        close(kf.forward_dynamics(s, q, v, tau, method=method), one, 1e-9)
        shaped = kf.forward_dynamics(s, q.reshape(4, 5, -1), v.reshape(4, 5, -1), tau[0], method=method)
        assert shaped.shape == (4, 5, s.nv)
    assert embedded_forest(s, q).by_dof(embedded_forest(s, q).stack(tau)).shape == tau.shape


def test_cross_check_certifies_the_embedded_model():
    s, rng = coupled_tree(5)
    report = kf.cross_check(s, s.random_configuration(rng), samples=6000, seed=3)
    assert report.passed
    assert any("composite" in party.name for party in report.parties)


def test_cross_check_by_dask_sees_the_couplings():
    import pickle

    s, rng = coupled_tree(5)
    q = s.random_configuration(rng)
    again = pickle.loads(pickle.dumps(s))
    assert np.array_equal(kf.as_estimation(again, q).H.flat, kf.as_estimation(s, q).H.flat)


def test_coupled_hinges_without_inertia_are_named():
    (rod,) = kf.models.uniform_chain(1).bodies
    tips = [kf.Body(name, np.zeros((6, 6)), kf.Hinge.revolute(), rod.name) for name in ("a", "b")]
    s = kf.System([rod, *tips], couplings=[kf.Coupling(["a", "b"], [1.0, 2.0])])
    with pytest.raises(SingularError, match=r"hinges 'a', 'b'.*give"):
        kf.forward_dynamics(s, [0.0, 0.0], None, [1.0, 1.0])
    with pytest.raises(SingularError, match="armature"):
        kf.mass_matrix_inverse(s, [0.0, 0.0])


def test_dynamics_filter_takes_tau_of_the_coordinates():
    s, rng = coupled_tree(8)
    q, (v, tau) = s.random_configuration(rng), rng.normal(size=(2, s.nv))
    _, smooth = kf.dynamics_filter(s, q, v, tau)
    order = np.concatenate([node.own for node in plan(s).nodes])
    close(smooth.a, kf.forward_dynamics(s, q, v, tau)[order], 1e-9)
