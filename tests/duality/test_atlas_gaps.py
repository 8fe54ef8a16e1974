"""Results of the sources that no other room's tests name."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import TreeError


def arm_in_motion(seed):
    rng = np.random.default_rng(seed)
    system = kf.models.random_tree(9, seed=seed)
    q, v, a = system.random_configuration(rng), *rng.normal(size=(2, system.nv))
    return system, q, v, a, kf.as_estimation(system, q, v, gravity=(0, 0, 0))


@pytest.mark.parametrize("seed", range(5))
def test_velocities_go_outward(seed):
    """R86:5.1-5.3. V(k) = φ*V(p) + H*β from the base to the tips is J β of each body, and what frame_velocity says."""
    system, q, v, _, ss = arm_in_motion(seed)
    beta = ss.output_blocks(v)
    V = {}
    for k in system.layout.order:
        p = system.parent[k]
        V[k] = (ss.phi[k].T @ V[p] if p >= 0 else 0.0) + ss.H[k].T @ beta[k]
        name = system.body_names[k]
        np.testing.assert_allclose(kf.frame_velocity(system, q, v, name), V[k], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(kf.jacobian(system, q, name) @ v, V[k], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_accelerations_go_outward(seed):
    """R86:5.4-5.5. α(k) = φ*α(p) + H*β̇ + η is the derivative of the velocity, by differences."""
    system, q, v, a, ss = arm_in_motion(seed)
    eta, beta_dot = ss.state_blocks(ss.eta), ss.output_blocks(a)
    h = 1e-6
    alpha = {}
    for k in system.layout.order:
        p = system.parent[k]
        alpha[k] = (ss.phi[k].T @ alpha[p] if p >= 0 else 0.0) + ss.H[k].T @ beta_dot[k] + eta[k]
        name = system.body_names[k]
        np.testing.assert_allclose(kf.frame_acceleration(system, q, v, a, name), alpha[k], rtol=1e-9, atol=1e-9)
        ahead, behind = (
            kf.frame_velocity(system, kf.integrate(system, q, s * h * v), v + s * h * a, name) for s in (1, -1)
        )
        # central differences: h² of truncation and 1e-16/h of rounding, 1e-9 of the largest velocities
        np.testing.assert_allclose((ahead - behind) / (2 * h), alpha[k], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [10, 40, 160])
def test_recursions_keep_their_digits(n):
    """R86:12-NUM. The recursions lose no more than the conditioning of 𝓜: 𝓜𝓜⁻¹ = 1 as numpy's inverse has it."""
    system = kf.models.chain(n)
    q = np.linspace(-1, 1, system.nq)
    mass_matrix = kf.mass_matrix(system, q)
    by_filter, by_numpy = kf.mass_matrix_inverse(system, q), np.linalg.inv(mass_matrix)
    one = np.eye(system.nv)
    condition = np.linalg.cond(mass_matrix)
    assert np.abs(mass_matrix @ by_filter - one).max() < 1e-15 * condition
    assert np.abs(by_filter - by_numpy).max() < 1e-15 * condition * np.abs(by_numpy).max()
    assert (np.linalg.eigvalsh(by_filter) > 0).all()


def test_computed_torque_makes_the_arm_linear():
    """R86:12-CTRL. Forward dynamics under the computed torque is a_d + Kd(v_d − v) + Kp(q_d − q), whatever the arm."""
    rng = np.random.default_rng(0)
    system = kf.models.puma560()
    q, v, q_d, v_d, a_d = rng.normal(size=(5, 6))
    kp, kd = rng.uniform(10, 100, 6), rng.uniform(1, 20, 6)
    tau = kf.computed_torque(system, q, v, q_d, v_d, a_d, kp, kd)
    expected = a_d + kd * (v_d - v) + kp * (q_d - q)
    np.testing.assert_allclose(kf.forward_dynamics(system, q, v, tau), expected, rtol=1e-10)


def test_loops_are_refused():
    """SKO:loops. A closed loop has no SKO model: two parents, or a cycle of parents, are refused by name."""
    with pytest.raises(TreeError, match="closed loop must be cut"):
        kf.Tree.from_edges(4, [(1, 0), (2, 0), (3, 1), (3, 2)])
    with pytest.raises(TreeError, match="closed loop must be cut"):
        kf.Tree.from_edges(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    with pytest.raises(TreeError, match="closed loop must be cut"):  # node 0 is the one with two parents
        kf.Tree.from_edges(3, [(0, 1), (0, 2)])
    with pytest.raises(TreeError, match="closed loop must be cut"):  # and here a parent it already has is node 0
        kf.Tree.from_edges(3, [(2, 0), (2, 1)])
    with pytest.raises(TreeError, match="not one of 0 to 1"):
        kf.Tree.from_edges(2, [(2, 0)])
    with pytest.raises(TreeError, match=r"form a loop: .*cut one of these edges"):
        kf.Tree([1, 2, 0])


@pytest.mark.parametrize(("turn", "dofs"), [(0.0, 4), (0.7, 2)])
def test_when_the_covariance_of_a_uniform_chain_settles(turn, dofs):
    """theory.md, section 8: Hv ≠ 0 for all v with φv = v needs 4 dofs on a straight chain, 2 where φ turns as well."""
    rng, N = np.random.default_rng(0), 600
    R = kf.spatial.rotation_vector_to_matrix(turn * np.array([0.6, 0.0, 0.8]))
    phi = kf.spatial.rigid_transform([0.5, 0.1, 0.2]) @ np.kron(np.eye(2), R)
    unseen = 6 - np.linalg.matrix_rank(phi - np.eye(6), tol=1e-12)
    assert unseen == dofs
    M = kf.spatial.spatial_inertia(1.0, [0.25, 0, 0], np.diag([0.02, 0.1, 0.11]))
    for m in range(1, 6):
        H = np.linalg.qr(rng.normal(size=(6, 6)))[0][:m]
        ss = kf.StateSpace([*range(1, N), -1], np.stack([phi] * N), np.stack([H] * N), np.stack([M] * N))
        P = kf.riccati(ss).P
        grown = np.trace(P[N - 1]) / np.trace(P[N // 2])
        assert abs(grown - 1) < 1e-3 if m >= dofs else grown > 1.5, (m, grown)
