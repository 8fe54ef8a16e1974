"""PART (7)-(25) in plain NumPy against the unpartitioned step by dense algebra; and its errata."""

import numpy as np
import pytest
from r86_cases import close

import kfdyn as kf
from kfdyn.errors import SingularError
from kfdyn.textbook import part

SEEDS = range(5)


def split(seed, n=6, m=2, m_prime=3):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    P = root @ root.T + np.eye(n)
    phi, H, H_prime = rng.normal(size=(n, n)), rng.normal(size=(m, n)), rng.normal(size=(m_prime, n))
    both = part.parts_8(P, phi, H, H_prime)
    H_whole = np.vstack([H, H_prime @ phi])
    D = H_whole @ P @ H_whole.T
    G = np.linalg.solve(D, H_whole @ P).T
    tau = G @ H_whole
    return rng, both, P, H_whole, D, G, tau, np.eye(n) - tau


@pytest.mark.parametrize("seed", SEEDS)
def test_D_and_gain_from_the_parts(seed):
    """PART:9, PART:10. D, its inverse and G of the whole hinge from those of its two parts."""
    _, both, P, H, D, G, _, _ = split(seed)
    close(both.H_whole, H)
    close(part.D_9(both), D)
    close(part.D_inverse_9(both), np.linalg.inv(D), 1e-9)
    close(part.G_10(both), G, 1e-9)
    close(part.update_7(P, H)[1], G, 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_partitioned_step_is_conditioning(seed):
    """PART:8. Body k, then the mass-less k′: what is left of P after H(k″)x is known, then H(k′)φx as well."""
    _, both, P, H, _, _, _, _ = split(seed)
    m = len(both.H)
    for rows, mine in (
        (H[:m], both.P_plus),
        (H, np.linalg.solve(both.phi, both.P_plus_prime) @ np.linalg.inv(both.phi).T),
    ):
        basis = np.linalg.svd(rows)[2][len(rows) :]  # states that are not seen: (N P⁻¹ N*)⁻¹ is their covariance
        close(mine, basis.T @ np.linalg.inv(basis @ np.linalg.inv(P) @ basis.T) @ basis, 1e-8)
    close(both.P, P)
    close(both.P_prime, both.phi @ both.P_plus @ both.phi.T)
    for rows, inertia, D, G, tau, tau_bar in (
        (both.H, P, both.D, both.G, both.tau, both.tau_bar),
        (both.H_prime, both.P_prime, both.D_prime, both.G_prime, both.tau_prime, both.tau_bar_prime),
    ):
        close(D, rows @ inertia @ rows.T)
        close(G @ D, inertia @ rows.T, 1e-9)
        close(tau, G @ rows)
        close(tau + tau_bar, np.eye(6))


@pytest.mark.parametrize("seed", SEEDS)
def test_projections_from_the_parts(seed):
    """PART:11. τ and τ̄ of the whole."""
    _, both, _, _, _, _, tau, tau_bar = split(seed)
    mine = part.tau_11(both)
    close(mine[0], tau, 1e-9)
    close(mine[1], tau_bar, 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_transported_quantities_from_the_parts(seed):
    """PART:14, PART:15, PART:16. φG, φτ, φτ̄ and H*D⁻¹H of the whole."""
    _, both, _, H, D, G, tau, tau_bar = split(seed)
    close(part.phi_G_14(both), both.phi @ G, 1e-9)
    mine = part.phi_tau_15(both)
    close(mine[0], both.phi @ tau, 1e-9)
    close(mine[1], both.phi @ tau_bar, 1e-9)
    close(part.information_16(both), H.T @ np.linalg.solve(D, H), 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_inertias_and_compliances_from_the_parts(seed):
    """PART:18, PART:23, PART:24-25. P⁺ of the whole, φP⁺φ* = P⁺(k′), and Υ through the mass-less body."""
    rng, both, P, H, D, _, _, tau_bar = split(seed)
    close(part.P_plus_18(both), tau_bar @ P, 1e-8)
    moved = both.phi @ tau_bar @ P @ both.phi.T
    close(part.transported_19(both), moved, 1e-8)
    close(both.P_plus_prime, moved, 1e-8)
    root, inner = rng.normal(size=(6, 6)), rng.normal(size=(6, 6))
    above = root @ root.T
    plus, _, own = part.upsilon_23(both, above, inner)
    whole_phi = inner @ both.phi
    whole_plus = whole_phi.T @ above @ whole_phi
    close(both.phi.T @ plus @ both.phi, whole_plus)
    close(own, tau_bar.T @ whole_plus @ tau_bar + H.T @ np.linalg.solve(D, H), 1e-9)


@pytest.mark.parametrize("kind", ["universal", "gimbal"])
@pytest.mark.parametrize("seed", SEEDS)
def test_joint_maps_of_parts_are_constant(kind, seed):
    """PART:2-constant. Constant axes of the pins give H of the whole hinge, which varies with the angles."""
    robot = kf.models.random_tree(1, seed, (kind,), armature=False)
    axes = robot.bodies[0].hinge.screws[:, :3]
    maps = []
    for q in np.random.default_rng(seed).normal(size=(3, robot.nv)):
        R = kf.frame_pose(robot, q, robot.body_names[0]).rotation
        H = np.asarray(kf.as_estimation(robot, q).H[0])[:, :3] @ R  # in the child's frame
        maps.append(part.joint_map_of_pins(axes, np.cos(q), np.sin(q)))
        close(maps[-1], H[::-1])
    assert np.abs(maps[1] - maps[0]).max() > 1e-2


@pytest.mark.parametrize("seed", SEEDS)
def test_unilateral_constraints_through_the_compliance(seed):
    """PART:4-unilateral. Contacts that push and do not pull: a quadratic programme's solution, and a robot's motion."""
    from scipy.optimize import nnls

    rng = np.random.default_rng(seed)
    for r in (1, 2, 5, 9):
        root, approach = rng.normal(size=(r, r)), rng.normal(size=r)
        Omega = root @ root.T + 0.1 * np.eye(r)
        f, w = part.unilateral(Omega, approach)
        L = np.linalg.cholesky(Omega)
        close(f, nnls(L.T, -np.linalg.solve(L, approach))[0], 1e-8)  # min ½f*Ωf + f*w₀ over f ≥ 0
        assert (f >= 0).all()
        assert (w >= 0).all()
        assert not (f * w).any()
    # three points of a robot: those that push are held, the others open
    robot = kf.models.random_tree(6, seed, ("free", "revolute"), branching=1.0)
    q = robot.random_configuration(rng)
    v, tau = np.zeros(robot.nv), 5 * rng.normal(size=robot.nv)
    frames = list(robot.body_names[-3:])
    normals = [6 * i + 5 for i in range(3)]  # along the world's z
    Omega = kf.operational_space_compliance(robot, q, frames)[np.ix_(normals, normals)]
    J = np.concatenate([kf.jacobian(robot, q, frame)[5:6] for frame in frames])
    free = kf.forward_dynamics(robot, q, v, tau)
    f, w = part.unilateral(Omega, J @ free)
    with_contacts = J @ kf.forward_dynamics(robot, q, v, tau + J.T @ f)
    assert np.abs(with_contacts - w).max() < 1e-9 * np.abs(J @ free).max()


def test_no_set_of_contacts_carries_the_load():
    with pytest.raises(SingularError, match="not positive definite"):
        part.unilateral(np.array([[-1.0]]), np.array([-1.0]))
