"""R86 sections 2-9 executed, against particles, dense algebra, Pinocchio and the compiled code, which share nothing."""

import numpy as np
import pytest
from pinocchio_models import pinocchio_model
from r86_cases import arm_case, close

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.textbook import r86

SEEDS = range(4)


def particles(rng, count=6):
    """A link made of point masses, and those points: masses (count,), places (count, 3)."""
    m, s = rng.uniform(0.5, 2, count), rng.normal(size=(count, 3))
    p = m @ s / m.sum()
    I = sum(mi * (si @ si * np.eye(3) - np.outer(si, si)) for mi, si in zip(m, s))
    h = rng.normal(size=3)
    return r86.Link(m.sum(), I, p, rng.normal(size=3), h / np.linalg.norm(h), np.eye(3)), m, s


@pytest.mark.parametrize("seed", SEEDS)
def test_inertia_and_energy_are_those_of_particles(seed):
    """R86 (3.1)-(3.4): momentum M V and energy ½V*MV of a link are sums over its particles."""
    rng = np.random.default_rng(seed)
    link, m, s = particles(rng)
    V = rng.normal(size=6)
    speeds = V[3:] + np.cross(V[:3], s)
    momentum = np.concatenate([m @ np.cross(s, speeds), m @ speeds])
    close(r86.spatial_inertia_3_1(link) @ V, momentum)
    energy = 0.5 * m @ (speeds**2).sum(axis=1)
    assert r86.kinetic_energy_3_2(link, V) == pytest.approx(energy, rel=1e-12)
    assert r86.kinetic_energy_3_3(link, V) == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_transition_moves_forces_to_the_inner_joint(seed):
    """R86 (3.5): a force at joint m has moment L_{k,m} × f about joint k, L from k to m: the text has the reverse."""
    rng = np.random.default_rng(seed)
    L, T, f = rng.normal(size=(3, 3))
    x = np.concatenate([T, f])
    close(r86.transition_3_5(L) @ x, np.concatenate([T + np.cross(L, f), f]))
    as_printed = r86.transition_3_5(-L) @ x  # from m to k
    assert np.abs(as_printed[:3] - T - np.cross(L, f)).max() > 0.1
    K = rng.normal(size=3)
    close(r86.transition_3_5(L) @ r86.transition_3_5(K), r86.transition_3_5(L + K))


@pytest.mark.parametrize("seed", SEEDS)
def test_bias_force_is_that_of_particles(seed):
    """R86:4.4. Mλ⁻ + ξ is what the accelerations of a link's particles need, v̇ + ω × v in the link's own frame."""
    rng = np.random.default_rng(seed)
    link, m, s = particles(rng)
    V, lam, T, f = rng.normal(size=6), rng.normal(size=6), rng.normal(size=3), rng.normal(size=3)
    omega, omega_dot = V[:3], lam[:3]
    joint = lam[3:] + np.cross(omega, V[3:])
    accel = joint + np.cross(omega_dot, s) + np.cross(omega, np.cross(omega, s))
    p = np.asarray(link.p)
    needed = np.concatenate([m @ np.cross(s, accel) - T - np.cross(p, f), m @ accel - f])
    M = r86.spatial_inertia_3_1(link)
    close(M @ lam + r86.bias_force_4_4(link, V, T, f), needed)
    printed = M @ lam + r86.bias_force_4_4_as_printed(link, V, T, f)
    assert np.abs(printed - needed).max() > 1e-2 * np.abs(needed).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_bias_acceleration_is_the_derivative_seen_from_the_link(seed):
    """R86:5.6. λ = [ω̇|v̇] with (5.6) is the derivative of (5.1)-(5.3) in the links' own frames."""
    case = arm_case(seed)
    rng = np.random.default_rng(seed)
    a, h = rng.normal(size=case.chain.N), 1e-5
    u, u_dot = case.q[::-1], case.v[::-1]

    def velocity(t):
        chain = r86.chain_of(case.arm, u + u_dot * t + a * t**2 / 2, u_dot + a * t)
        return np.array(r86.velocities_5_1_to_5_3(chain.N, chain.phi, chain.H, u_dot + a * t)[0][1:])

    lam, _ = r86.accelerations_5_4_5_5(case.chain, a)
    # central differences of a smooth function: h² of truncation, 1e-16/h of rounding
    close((velocity(h) - velocity(-h)) / (2 * h), lam[1:], 1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_velocities_are_the_packages(seed):
    case = arm_case(seed)
    minus, _ = r86.velocities_5_1_to_5_3(case.chain.N, case.chain.phi, case.chain.H, case.v[::-1])
    for k, name in enumerate(reversed(case.system.body_names), start=1):
        V = kf.frame_velocity(case.system, case.q, case.v, name)
        R = kf.frame_pose(case.system, case.q, name).rotation
        close(minus[k], np.concatenate([R.T @ V[:3], R.T @ V[3:]]))


@pytest.mark.parametrize("seed", SEEDS)
def test_boundary_value_problem_is_solved(seed):
    """R86:6.1-6.6. Solved whole; filter and smoother give the same, and every equation is satisfied."""
    case = arm_case(seed)
    tau = case.tau[::-1]
    whole = r86.boundary_value_6(case.chain, tau)
    filtered = r86.filter_8(case.chain, tau)
    smoothed = r86.smoother_8(case.chain, filtered)
    close(smoothed.u_ddot, whole.u_ddot)
    x = [None] + [r86.smoothed_9_14(filtered, smoothed.lam_minus, k) for k in range(1, case.chain.N + 1)]
    close(x[1:], whole.x[1:])  # (8.1)
    scale = np.abs(whole.x[1:]).max()
    for solution in (whole, r86.Solution(x, smoothed.lam_minus, smoothed.u_ddot)):
        for equation, left in r86.residuals_6_1_to_6_6(case.chain, tau, solution).items():
            assert np.abs(left).max() < 1e-10 * scale, equation


def test_residuals_notice_a_wrong_solution():
    case = arm_case(0)
    whole = r86.boundary_value_6(case.chain, case.tau)
    wrong = whole._replace(u_ddot=whole.u_ddot + 1e-3)
    assert np.abs(r86.residuals_6_1_to_6_6(case.chain, case.tau, wrong)["6.4"]).max() > 1e-4
    wrong = whole._replace(x=[None, *(x + 1e-3 for x in whole.x[1:])])
    left = r86.residuals_6_1_to_6_6(case.chain, case.tau, wrong)
    assert np.abs(left["6.1"]).max() > 1e-5
    assert np.abs(left["6.5"]).max() > 1e-5


def test_table_of_equivalence():
    """R86:T6.1. All seven rows: the package's estimation problem holds what the arm of the report is made of."""
    case = arm_case(1)
    smoothed = r86.smoother_8(case.chain, r86.filter_8(case.chain, case.tau[::-1]))
    forces = r86.forces_4_1_to_4_3(case.chain, smoothed.lam_minus)
    ss = kf.as_estimation(case.system, case.q, case.v)
    filt = kf.kalman_filter(ss, case.tau)
    smooth = kf.bryson_frazier(ss, filt)
    turn = []
    for name in case.system.body_names[::-1]:
        R = kf.frame_pose(case.system, case.q, name).rotation
        turn.append(np.kron(np.eye(2), R))
    assert [row[1] for row in r86.TABLE_6_1] == ["x", "lam", "tau", "phi", "M", "xi", "H"]
    N = case.chain.N
    for k in range(1, N + 1):
        X, node = turn[k - 1], N - k  # link frame to world; the package's number of link k
        close(X @ forces[k], smooth.x[node])  # states: spatial forces
        # the report's v̇ and η are seen from the link, the package's from the world, and its gravity is a force
        joint = kf.frame_acceleration(case.system, case.q, case.v, smoothed.u_ddot[::-1], case.system.body_names[node])
        V = kf.frame_velocity(case.system, case.q, case.v, case.system.body_names[node])
        seen = np.concatenate([joint[:3], joint[3:] - np.cross(V[:3], V[3:])])
        close(X @ smoothed.lam_minus[k], seen)  # co-states: spatial accelerations
        lifted = joint - np.r_[0, 0, 0, case.system.gravity]
        close(smooth.costate[node], lifted)
        close(case.chain.H[k][0] @ forces[k], case.tau[node])  # measurements: active moments
        if k > 1:
            close(X @ case.chain.phi[k] @ turn[k - 2].T, ss.phi[node + 1])  # transition matrix
        close(X @ case.chain.M[k] @ X.T, ss.Q[node])  # process covariance: spatial inertia
        close(case.chain.H[k] @ X.T, ss.H[node])  # state to output map
        # known input: M α + ξ is one force, however it is split
        mine = X @ (case.chain.M[k] @ smoothed.lam_minus[k] + case.chain.xi[k])
        close(mine, ss.Q[node] @ smooth.costate[node] + ss.state_blocks(ss.xi)[node])


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_is_pinocchios(seed):
    """R86:7-ID, R86:7.1, R86:7.10-7.11. Outward and inward sweeps, and M ü + V, are Pinocchio's rnea."""
    import pinocchio as pin

    case = arm_case(seed)
    a = np.random.default_rng(seed).normal(size=case.chain.N)
    peer = pinocchio_model(case.system)
    theirs = pin.rnea(peer.model, peer.data, peer.q(case.q), peer.v(case.v), peer.v(a))[peer.v_index]
    close(r86.inverse_dynamics_7(case.chain, a[::-1])[::-1], theirs)
    close(r86.equation_of_motion_7_1(case.chain, a[::-1])[::-1], theirs)
    M = pin.crba(peer.model, peer.data, peer.q(case.q))
    M = np.triu(M) + np.triu(M, 1).T
    close(r86.inertia_matrix_7_11(case.chain)[::-1, ::-1], M[np.ix_(peer.v_index, peer.v_index)])
    close(r86.bias_moments_7_11(case.chain)[::-1], kf.bias_forces(case.system, case.q, case.v))


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_of_section_7(seed):
    """R86:7.2, R86:7.3, R86:7.6-7.8. λ and x through the transition matrix, the kernel r, its table and its sum."""
    case = arm_case(seed)
    chain, a = case.chain, np.random.default_rng(seed).normal(size=case.chain.N)
    lam, _ = r86.accelerations_5_4_5_5(chain, a)
    x = r86.forces_4_1_to_4_3(chain, lam)
    composites = r86.composites_7_9(chain)
    theirs = kf.composite_inertias(kf.as_estimation(case.system, case.q))
    for k in range(1, chain.N + 1):
        close(r86.co_state_7_2(chain, a, k), lam[k])
        close(r86.state_7_3(chain, lam, k), x[k])
        close(r86.state_7_4(chain, a, k), x[k])
        close(r86.state_7_6(chain, a, k), x[k])
        close(r86.composite_7_8(chain, k), composites[k])
        X = np.kron(np.eye(2), kf.frame_pose(case.system, case.q, case.system.body_names[chain.N - k]).rotation)
        close(X @ composites[k] @ X.T, theirs[chain.N - k])
        for i in range(1, chain.N + 1):
            close(r86.kernel_table(chain, k, i), r86.kernel_7_7(chain, k, i))


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_is_the_packages(seed):
    """R86 (8.2)-(8.13) against the compiled sweeps, with frames that change at every joint."""
    case = arm_case(seed)
    theirs = kf.forward_dynamics(case.system, case.q, case.v, case.tau)
    close(r86.forward_dynamics_8(case.chain, case.tau[::-1])[::-1], theirs)
    filtered = r86.filter_8(case.chain, case.tau[::-1])
    smoothed = r86.smoother_8(case.chain, filtered)
    cov = kf.riccati(kf.as_estimation(case.system, case.q))
    for k in range(1, case.chain.N + 1):
        node = case.chain.N - k
        close(filtered.D[k], cov.D[node])
        X = np.kron(np.eye(2), kf.frame_pose(case.system, case.q, case.system.body_names[node]).rotation)
        close(X @ filtered.P_minus[k] @ X.T, cov.P[node])
        for form in r86.inertia_updates_8_25(filtered.P_minus[k], filtered.G[k], case.chain.H[k]):
            close(X @ form @ X.T, cov.P_plus[node])
        close(r86.co_state_update_8_13(case.chain, filtered, smoothed, k), smoothed.lam_minus[k])


def test_what_the_slip_in_4_4_does():
    """Erratum: with (4.4) as printed the accelerations of this arm are 0.8 % off; the corrected form is exact."""
    case = arm_case(2)
    printed = r86.chain_of(case.arm, case.q[::-1], case.v[::-1], as_printed=True)
    theirs = kf.forward_dynamics(case.system, case.q, case.v, case.tau)
    wrong = r86.forward_dynamics_8(printed, case.tau[::-1])[::-1]
    assert np.abs(wrong - theirs).max() > 5e-3 * np.abs(theirs).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_filter_is_conditioning(seed):
    """R86:9.4, 9.5-9.12: z⁻, z⁺, P⁻, P⁺, e⁻ and D of section 8 are conditional means and covariances, η = 0."""
    case = arm_case(seed, n=4)
    chain = case.chain._replace(eta=[None] + [np.zeros(6)] * 4)
    filtered = r86.filter_8(chain, case.tau)
    for k in range(1, 5):
        for given, z, P in ((k - 1, filtered.z_minus, filtered.P_minus), (k, filtered.z_plus, filtered.P_plus)):
            mean, cov = r86.conditional(chain, case.tau, k, given)
            close(z[k], mean, 1e-9)  # the dense covariance of the outputs has a condition number of 1e3
            close(P[k], cov, 1e-9)
        close(filtered.e_minus[k], r86.innovation_9_5(chain, case.tau, k), 1e-9)
        close(filtered.D[k], r86.innovation_covariance_9_7(chain, k), 1e-9)
        close(filtered.P_plus[k], r86.update_9_9(filtered.P_minus[k], chain.H[k], filtered.D[k]))


@pytest.mark.parametrize("seed", SEEDS)
def test_smoother_is_conditioning(seed):
    """R86 (9.13)-(9.21): x̂ and S from co-states and their covariance are the conditional mean and covariance."""
    case = arm_case(seed, n=4)
    chain = case.chain._replace(eta=[None] + [np.zeros(6)] * 4)
    filtered = r86.filter_8(chain, case.tau)
    lam = r86.co_states_9_15_9_16(chain, filtered)
    Lambda, _ = r86.co_state_covariances_9_20_9_21(chain, filtered)
    for k in range(1, 5):
        mean, cov = r86.conditional(chain, case.tau, k, 4)
        close(r86.smoothed_9_14(filtered, lam, k), mean, 1e-9)
        close(r86.smoothed_covariance_9_18(filtered.P_minus[k], Lambda[k]), cov, 1e-8)


def test_draws_have_the_covariance_of_the_process():
    """R86 (9.1)-(9.3): second moments of 4,000 draws, within five standard errors."""
    case = arm_case(3, n=3)
    rng, n = np.random.default_rng(0), 4000
    tau = np.array([r86.draw_9_1_to_9_3(case.chain, rng)[1] for _ in range(n)])
    mean, cov, H = r86.mean_and_covariance(case.chain)
    M = H @ cov @ H.T
    close(M, r86.inertia_matrix_7_11(case.chain))
    spread = np.sqrt(np.diag(M))
    assert (np.abs(tau.mean(axis=0) - H @ mean) < 5 * spread / np.sqrt(n)).all()
    error = np.sqrt((np.outer(np.diag(M), np.diag(M)) + M**2) / n)
    assert (np.abs(np.cov(tau.T) - M) < 5 * error).all()


def test_refusals_name_the_culprit():
    with pytest.raises(ModelError, match="branches"):
        r86.arm_of(kf.models.humanoid())
    arm = kf.models.stanford_arm()
    bare = kf.System([kf.Body(b.name, b.inertia, b.hinge, b.parent) for b in arm.bodies])
    with pytest.raises(ModelError, match="prismatic"):
        r86.arm_of(bare)
    with pytest.raises(ModelError, match="has a rotor"):
        r86.arm_of(kf.models.puma560())
    with pytest.raises(ShapeError, match="no link 0"):
        arm_case(0).arm.link(0)
    with pytest.raises(ShapeError, match="5 entries"):
        r86.chain_of(arm_case(0).arm, [0.0], [0.0])
