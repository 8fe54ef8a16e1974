"""Motion of flexible systems: solvers of all kinds, springs of hinges, loops closed on bodies that bend."""

import numpy as np
import pytest
from flexible_cases import inertia, random_flexible, state, tree

import kfdyn as kf
from kfdyn.multibody.loops.closure import gaps
from kfdyn.spatial import spatial_inertia


def test_adaptive_solvers_take_ball_and_free_hinges():
    """Two unlike integrators, one motion: what bends flies freely and carries an arm on a ball."""
    rng = np.random.default_rng(5)
    hull = random_flexible(rng, "hull", hinge=kf.Hinge.free())
    arm = kf.Body("arm", inertia(rng, 0.5), kf.Hinge.ball(), "hull", position=hull.points[3])
    system = kf.FlexibleSystem([hull, arm], gravity=(0, 0, 0))
    q, v = state(system, 1)
    t = np.linspace(0, 0.3, 4)
    fine = kf.simulate(system, q, 0.5 * v, t, method="DOP853", rtol=1e-10, atol=1e-12)
    march = kf.simulate(system, q, 0.5 * v, t, substeps=100)
    np.testing.assert_allclose(fine.q, march.q, atol=1e-7)
    np.testing.assert_allclose(fine.v, march.v, atol=1e-7 * abs(march.v).max())
    assert abs(fine.momentum - fine.momentum[0]).max() < 1e-8 * abs(fine.momentum[0]).max()
    assert fine.worst_energy_drift < 1e-8


def test_damped_modes_lose_what_the_work_says():
    rod = kf.beam("rod", 1.0, 1.0, bending=(0.0, 20.0), modes=2, damping=0.05, hinge=kf.Hinge.revolute([0, 1, 0]))
    system = kf.FlexibleSystem([rod])
    motion = kf.simulate(system, [0.0, 0.02, 0.0], np.zeros(3), np.linspace(0, 0.5, 26), substeps=40)
    assert motion.work[-1] < -1e-3
    assert motion.worst_energy_drift < 1e-6


def springy_arm():
    """A hinge with a spring that drives a beam, behind a motor: springs of both kinds in one system."""
    rod = kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=2, parent="drive")
    drive = kf.Body("drive", spatial_inertia(0.3, [0, 0, 0], 0.01 * np.eye(3)), kf.Hinge.revolute([0, 1, 0]))
    joint = kf.FlexibleJoint(rotor_inertia=1e-4, ratio=50.0, stiffness=300.0, damping=0.2)
    return kf.FlexibleSystem([*joint.split(drive), rod], gravity=(0, 0, 0))


def test_springs_of_hinges_count_beside_those_of_bodies():
    system = springy_arm()
    assert system.stiffness.tolist() == [0.0, 300.0, 0.0, 0.0]
    found = kf.modes(system)
    # the same linear system by hand: 𝓜 of the neutral pose, springs and modes on the diagonal
    from scipy.linalg import eigh

    K = np.diag([0.0, 300.0, *np.diag(system.flexible["rod"].stiffness)])
    wanted = np.sqrt(np.abs(eigh(K, kf.mass_matrix(system, system.neutral()), eigvals_only=True)))
    np.testing.assert_allclose(found.frequencies[1:], wanted[1:], rtol=1e-7)
    q = np.array([0.0, 0.05, 0.01, 0.0])
    swing = kf.simulate(system, q, np.zeros(4), np.linspace(0, 0.2, 11), substeps=150, stiffness=True)
    assert swing.potential[0] > 0.5 * 300.0 * 0.05**2
    assert swing.worst_energy_drift < 1e-7
    loose = kf.simulate(system, q, np.zeros(4), np.linspace(0, 0.2, 11), substeps=50)
    assert abs(loose.q - swing.q).max() > 0.01


def test_implicit_steps_with_springs_and_modes_converge_to_the_motion():
    system = springy_arm()
    q, t = np.array([0.0, 0.05, 0.01, 0.0]), np.linspace(0, 0.05, 3)
    fine = kf.simulate(system, q, np.zeros(4), t, method="DOP853", stiffness=True, damping=True)
    errors = [
        abs(
            kf.simulate(
                system, q, np.zeros(4), t, method="implicit", substeps=n, stiffness=True, damping=True
            ).q
            - fine.q
        ).max()
        for n in (400, 800, 1600)
    ]  # fmt: skip
    assert 1.8 < errors[0] / errors[1] < 2.2
    assert 1.8 < errors[1] / errors[2] < 2.2


def four_bar(bending):
    """Crank, flexible coupler, rocker: the coupler's far end is closed to the rocker's."""
    joint = kf.Hinge.revolute([0, 1, 0])
    crank = kf.Body("crank", spatial_inertia(1.0, [0.1, 0, 0], 0.01 * np.eye(3)), joint)
    coupler = kf.beam("coupler", 0.8, 1.5, bending=(0.0, bending), modes=2, hinge=joint, parent="crank",
                      position=[0.2, 0, 0], elements=8)  # fmt: skip
    rocker = kf.Body("rocker", spatial_inertia(0.8, [0.25, 0, 0], 0.02 * np.eye(3)), joint, position=[0.7, 0, 0])
    frames = {"end": kf.Frame("coupler", position=[0.8, 0, 0]), "pin": kf.Frame("rocker", position=[0.5, 0, 0])}
    bodies = [crank, coupler, rocker]
    loop = kf.Loop("pin", "end", rows=(3, 5))
    bent = kf.FlexibleSystem(bodies, frames=frames).with_loops([loop])
    stiff = kf.System([b.rigid if isinstance(b, kf.FlexibleBody) else b for b in bodies], frames=frames)
    return bent, stiff.with_loops([loop])


def test_a_four_bar_with_a_flexible_coupler_solves_the_constrained_equations():
    """𝓜a + c = τ + J*f with Ja + J̇v = 0, dense, J by differences of the gap."""
    system, _ = four_bar(30.0)
    rng = np.random.default_rng(0)
    q = kf.assemble(system, [-1.0, 1.2, 0.003, -0.001, -1.7])
    v = kf.impact(system, q, rng.normal(size=system.nv)).v
    tau = rng.normal(size=system.nv)

    def gap(q):
        return np.concatenate(gaps(system, q))

    h = 1e-4
    eye = np.eye(system.nv)
    J = np.stack([(gap(q - 2 * h * e) - 8 * gap(q - h * e) + 8 * gap(q + h * e) - gap(q + 2 * h * e)) / (12 * h)
                  for e in eye], axis=1)  # fmt: skip
    assert abs(gap(q)).max() < 1e-12
    assert abs(J @ v).max() < 1e-9
    forth, back = gap(q + 1e-3 * v), gap(q - 1e-3 * v)
    drift = (-gap(q + 2e-3 * v) + 16 * forth - 30 * gap(q) + 16 * back - gap(q - 2e-3 * v)) / (12 * 1e-6)
    open_system = system.without_loops
    M, c = kf.mass_matrix(open_system, q), kf.bias_forces(open_system, q, v)
    dense = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
    wanted = np.linalg.solve(dense, np.concatenate([tau - c, -drift]))
    a = kf.forward_dynamics(system, q, v, tau)
    np.testing.assert_allclose(a, wanted[: system.nv], rtol=1e-6, atol=1e-6 * abs(a).max())  # differences, twice
    np.testing.assert_allclose(kf.constraint_forces(system, q, v, tau)[0], wanted[system.nv :], rtol=1e-6)
    back_again = kf.inverse_dynamics(system, q, v, a)
    np.testing.assert_allclose(kf.forward_dynamics(system, q, v, back_again), a, rtol=1e-8, atol=1e-8 * abs(a).max())
    proximal = kf.forward_dynamics(system, q, v, tau, method="proximal")
    np.testing.assert_allclose(proximal, a, rtol=1e-7, atol=1e-7 * abs(a).max())
    led = np.zeros(system.nv, dtype=bool)
    led[0] = True
    _, all_a = kf.hybrid_dynamics(system, q, v, tau, a, prescribed=led)
    np.testing.assert_allclose(all_a, a, rtol=1e-7, atol=1e-7 * abs(a).max())
    embedded = kf.forward_dynamics(system, q, v, tau, method="embedding")
    np.testing.assert_allclose(embedded, a, rtol=1e-10, atol=1e-10 * abs(a).max())


def test_minimal_coordinates_of_a_four_bar_with_a_flexible_coupler():
    """v = X u with JX = 0, J by differences of the gap; M u̇ + c = X*τ gives the accelerations of the cut loop."""
    system, _ = four_bar(30.0)
    rng = np.random.default_rng(1)
    q = kf.assemble(system, [-1.0, 1.2, 0.003, -0.001, -1.7])
    v = kf.impact(system, q, rng.normal(size=system.nv)).v
    one = kf.minimal_coordinates(system, q, v)
    assert one.X.shape == (5, 3) and len(set(one.names)) == 3 and set(one.names) <= set(system.dof_names)
    np.testing.assert_allclose(one.X[one.independent], np.eye(3), atol=1e-12)
    h = 1e-4
    J = np.stack([np.concatenate(gaps(system, q + h * e)) - np.concatenate(gaps(system, q - h * e))
                  for e in np.eye(5)], axis=1) / (2 * h)  # fmt: skip
    assert abs(J @ one.X).max() < 1e-6
    np.testing.assert_allclose(one.X @ v[one.independent], v, atol=1e-10 * abs(v).max())
    M = kf.mass_matrix(system.without_loops, q)
    np.testing.assert_allclose(one.mass_matrix, one.X.T @ M @ one.X, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one.ss.n, [24 - 4])  # three bodies are one node, the coupler's two modes in it
    cov = kf.innovations_factor(one.ss).inverse()
    np.testing.assert_allclose(cov @ one.mass_matrix, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(one.logdet, np.linalg.slogdet(one.mass_matrix)[1], rtol=1e-10)
    tau = rng.normal(size=5)
    du = np.linalg.solve(one.mass_matrix, one.X.T @ tau - one.bias)
    a = kf.forward_dynamics(system, q, v, tau, method="cut")
    np.testing.assert_allclose(one.X @ du + one.drift, a, rtol=1e-9, atol=1e-9 * abs(a).max())
    _, smooth = kf.dynamics_filter(system, q, v, tau)
    np.testing.assert_allclose(smooth.a, du, rtol=1e-9, atol=1e-9 * abs(du).max())
    np.testing.assert_allclose(
        kf.mass_matrix_inverse(system, q), one.X @ np.linalg.solve(one.mass_matrix, one.X.T), rtol=1e-8, atol=1e-9
    )
    assert kf.cross_check(system, q, v, samples=3000).passed


def test_random_configurations_of_loops_on_bodies_that_bend_are_closed():
    system, _ = four_bar(30.0)
    assert max(abs(np.concatenate(gaps(system, system.random_configuration(seed)))).max() for seed in range(3)) < 1e-10


def test_a_four_bar_that_is_stiff_moves_as_the_rigid_one():
    system, rigid = four_bar(1e7)
    q = kf.assemble(rigid, [-1.0, 1.2, -1.7])
    start = np.array([q[0], q[1], 0.0, 0.0, q[2]])
    v = kf.impact(rigid, q, [3.0, 0.0, 0.0]).v
    t = np.linspace(0, 0.2, 5)
    bent = kf.simulate(system, start, [v[0], v[1], 0.0, 0.0, v[2]], t, method="implicit", substeps=20)
    hard = kf.simulate(rigid, q, v, t, method="euler", substeps=20)
    assert abs(hard.q[-1] - q).max() > 0.1
    np.testing.assert_allclose(bent.q[:, [0, 1, 4]], hard.q, atol=1e-5)


@pytest.mark.slow
def test_a_swinging_four_bar_keeps_its_energy_and_its_loop():
    system, _ = four_bar(30.0)
    q = kf.assemble(system, [-1.0, 1.2, 0.0, 0.0, -1.7])
    v = kf.impact(system, q, [3.0, 0.0, 0.0, 0.0, 0.0]).v
    t = np.linspace(0, 0.04, 3)
    coarse, fine = (kf.simulate(system, q, v, t, substeps=n) for n in (40, 80))
    assert np.ptp(fine.kinetic) > 0.05
    assert abs(fine.q[:, 2]).max() > 1e-3
    assert fine.worst_energy_drift < 1e-6
    assert coarse.worst_energy_drift > 10 * fine.worst_energy_drift  # of fourth order
    assert max(abs(np.concatenate(gaps(system, x))).max() for x in fine.q) < 1e-11


def test_loads_act_where_children_are_attached():
    """A force at a frame on a bent body is J*f, by the attachment's row of external forces."""
    system = tree(3)
    q, v = state(system, 3)
    rng = np.random.default_rng(3)
    f, tau = rng.normal(size=6), rng.normal(size=system.nv)
    force = np.zeros((system.tree.n_bodies, 6))
    force[list(system.tree.body_names).index("second@tool")] = f
    by_row = kf.forward_dynamics(system, q, v, tau, external_forces=force)
    by_torque = kf.forward_dynamics(system, q, v, tau + kf.jacobian(system, q, "tool").T @ f)
    np.testing.assert_allclose(by_row, by_torque, rtol=1e-10, atol=1e-10 * abs(by_torque).max())


def test_a_series_elastic_joint_of_two_rigid_hinges_takes_gears():
    """Motor, spring, link, and a second link geared to the first: X*𝓜X of the open tree."""
    links = [kf.Body("upper", spatial_inertia(1.0, [0, 0, -0.3], 0.05 * np.eye(3)), kf.Hinge.revolute([0, 1, 0])),
             kf.Body("lower", spatial_inertia(0.5, [0, 0, -0.2], 0.02 * np.eye(3)), kf.Hinge.revolute([0, 1, 0]),
                     "upper", position=[0, 0, -0.6])]  # fmt: skip
    motor, upper = kf.FlexibleJoint(rotor_inertia=1e-4, ratio=50.0, stiffness=300.0).split(links[0])
    geared = kf.System([motor, upper, links[1]], couplings=[kf.Coupling(["upper", "lower"], [[1.0], [-2.0]])])
    q, v, tau = np.array([0.3, 0.05]), np.array([1.0, -0.5]), np.array([0.7, 0.2])
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-2.0, 0.0]])
    np.testing.assert_allclose(geared.expansion(q), X)
    free = geared.open_tree
    M, c = kf.mass_matrix(free, X @ q), kf.bias_forces(free, X @ q, X @ v)
    wanted = np.linalg.solve(X.T @ M @ X, tau - X.T @ c)
    np.testing.assert_allclose(kf.forward_dynamics(geared, q, v, tau), wanted, rtol=1e-10)
    swing = kf.simulate(geared, q, v, np.linspace(0, 0.1, 6), substeps=40, stiffness=True)
    assert swing.worst_energy_drift < 1e-8
