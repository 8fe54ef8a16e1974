"""Flexible systems: against sums over points, conservation laws, and inverse against forward."""

import numpy as np
import pytest
from flexible_cases import state, tree, velocity_map, weights

import kfdyn as kf


@pytest.mark.parametrize("seed", range(4))
def test_mass_matrix_is_the_sum_over_points(seed):
    system = tree(seed)
    q, _ = state(system, seed)
    J = velocity_map(system, q)
    dense = J.T @ weights(system) @ J + np.diag(system.armature)
    got = kf.mass_matrix(system, q)
    np.testing.assert_allclose(got, dense, rtol=1e-7, atol=1e-7 * abs(dense).max())  # differences of positions
    np.testing.assert_allclose(kf.mass_matrix_inverse(system, q) @ got, np.eye(system.nv), atol=1e-9)
    assert np.isclose(kf.mass_matrix_logdet(system, q), np.linalg.slogdet(got)[1])


@pytest.mark.parametrize("seed", range(4))
def test_kinetic_energy_is_half_v_M_v(seed):
    system = tree(seed)
    q, v = state(system, seed)
    assert np.isclose(kf.kinetic_energy(system, q, v), 0.5 * v @ kf.mass_matrix(system, q) @ v, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_inverse_undoes_forward(seed):
    system = tree(seed)
    rng = np.random.default_rng(seed)
    q, v = state(system, seed)
    tau, force = rng.normal(size=system.nv), rng.normal(size=(system.n_bodies, 6))
    a = kf.forward_dynamics(system, q, v, tau, external_forces=force)
    np.testing.assert_allclose(kf.inverse_dynamics(system, q, v, a, external_forces=force), tau, atol=1e-9)
    c = kf.bias_forces(system, q, v, external_forces=force)
    np.testing.assert_allclose(kf.mass_matrix(system, q) @ a + c, tau, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_lagrange(seed):
    """d/dt ∂T/∂v − ∂T/∂q + ∂V/∂q = tau, every term by differences of the energies of points."""
    rng = np.random.default_rng(seed)
    from flexible_cases import inertia, random_flexible

    first = random_flexible(rng, "first", hinge=kf.Hinge.revolute([0.2, 1, 0.3]))
    second = random_flexible(
        rng, "second", hinge=kf.Hinge.prismatic([1, 0.2, 0]), parent="first", position=first.points[3]
    )
    system = kf.FlexibleSystem(
        [
            first,
            second,
            kf.Body("tip", inertia(rng, 0.5), kf.Hinge.revolute([0, 0, 1]), "second", position=second.points[5]),
        ]
    )
    q, v = state(system, seed)

    def central(f, x, i, h=1e-4):
        e = np.zeros(len(x))
        e[i] = h
        return (f(x - 2 * e) - 8 * f(x - e) + 8 * f(x + e) - f(x + 2 * e)) / (12 * h)

    M_dot_v = sum(v[i] * central(lambda x: kf.mass_matrix(system, x), q, i) for i in range(system.nv)) @ v
    lagrange = M_dot_v - np.array(
        [
            central(lambda x: kf.kinetic_energy(system, x, v), q, i)
            - central(lambda x: kf.potential_energy(system, x), q, i)
            for i in range(system.nv)
        ]
    )
    c = kf.bias_forces(system, q, v)
    np.testing.assert_allclose(c, lagrange, rtol=1e-7, atol=1e-7 * abs(c).max())


def test_energy_and_momentum_are_conserved():
    """A free-flying body that bends, with an arm on it: nothing from outside."""
    rng = np.random.default_rng(5)
    from flexible_cases import inertia, random_flexible

    hull = random_flexible(rng, "hull", hinge=kf.Hinge.free())
    arm = kf.Body("arm", inertia(rng, 0.5), kf.Hinge.revolute([0, 0, 1]), "hull", position=hull.points[3])
    system = kf.FlexibleSystem([hull, arm], gravity=(0, 0, 0))
    q, v = state(system, 1)
    motion = kf.simulate(system, q, 0.5 * v, np.linspace(0, 0.5, 501))
    total = motion.kinetic + motion.potential
    assert motion.kinetic[0] > 0.1
    assert np.ptp(motion.potential) > 1e-2  # it bends
    assert abs(total - total[0]).max() < 1e-8 * motion.kinetic.max()
    assert abs(motion.momentum - motion.momentum[0]).max() < 1e-8 * abs(motion.momentum[0]).max()


@pytest.mark.parametrize("seed", range(3))
def test_hybrid(seed):
    system = tree(seed)
    rng = np.random.default_rng(seed)
    q, v = state(system, seed)
    tau, a = rng.normal(size=(2, system.nv))
    mask = ~system.elastic  # hinges prescribed, modes free
    full_tau, full_a = kf.hybrid_dynamics(system, q, v, tau, a, prescribed=mask)
    np.testing.assert_allclose(full_a[mask], a[mask])
    np.testing.assert_allclose(full_tau[~mask], tau[~mask])
    np.testing.assert_allclose(kf.inverse_dynamics(system, q, v, full_a), full_tau, atol=1e-9)


def test_batches_are_their_entries():
    system = tree(0)
    rng = np.random.default_rng(0)
    q = np.stack([system.random_configuration(rng) for _ in range(6)]).reshape(2, 3, -1)
    v, tau = rng.normal(size=(2, 2, 3, system.nv))
    a = kf.forward_dynamics(system, q, v, tau)
    M = kf.mass_matrix(system, q)
    assert a.shape == (2, 3, system.nv)
    for i in np.ndindex(2, 3):
        np.testing.assert_allclose(a[i], kf.forward_dynamics(system, q[i], v[i], tau[i]), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(M[i], kf.mass_matrix(system, q[i]), rtol=1e-12, atol=1e-12)


def test_frames_and_jacobians_move_with_the_body():
    system = tree(2)
    q, v = state(system, 2)
    h = 1e-6
    forth, back = (kf.frame_pose(system, kf.integrate(system, q, s * h * v), "tool").position for s in (1, -1))
    V = kf.frame_velocity(system, q, v, "tool")
    np.testing.assert_allclose(V[3:], (forth - back) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(kf.jacobian(system, q, "tool") @ v, V, atol=1e-12)
    Omega = kf.operational_space_compliance(system, q, ["tool"])
    J = kf.jacobian(system, q, "tool")
    np.testing.assert_allclose(Omega, J @ np.linalg.solve(kf.mass_matrix(system, q), J.T), atol=1e-9)


def test_as_estimation_and_the_cross_check():
    system = tree(1)
    q, v = state(system, 1)
    ss = kf.as_estimation(system, q, v)
    assert [int(n) for n in ss.n] == [6, 9, 9, 6, 6, 6]
    tau = np.ones(system.nv)
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, tau))
    np.testing.assert_allclose(smooth.a, kf.forward_dynamics(system, q, v, tau), atol=1e-10)
    assert kf.cross_check(ss, samples=5000, seed=0).passed


def test_a_rigid_flexible_system_is_the_rigid_one():
    """Stiff as a rock: hinge accelerations are those of the rigid bodies to the order of 1/K."""
    rod = kf.beam("rod", 1.0, 2.0, bending=1e9, modes=2, hinge=kf.Hinge.revolute([0, 1, 0]))
    tip = kf.Body("tip", np.diag([0.1, 0.1, 0.1, 1, 1, 1.0]), kf.Hinge.revolute([0, 1, 0]), "rod", position=[1.0, 0, 0])
    flexible, rigid = kf.FlexibleSystem([rod, tip]), kf.System([rod.rigid, tip])
    mask = ~flexible.elastic
    q, v = flexible.neutral(), np.zeros(flexible.nv)
    q[flexible.q_slice("rod")], v[mask] = 0.4, [1.0, -2.0]
    prescribed = flexible.elastic
    _, a = kf.hybrid_dynamics(flexible, q, v, np.zeros(flexible.nv), np.zeros(flexible.nv), prescribed=prescribed)
    np.testing.assert_allclose(a[mask], kf.forward_dynamics(rigid, [0.4, 0.0], [1.0, -2.0], [0.0, 0.0]), rtol=1e-9)


def test_implicit_steps_are_not_limited_by_stiff_modes():
    """Steps of 20 periods of the fastest mode: Runge–Kutta leaves the numbers, the implicit step does not."""
    rod = kf.beam("rod", 1.0, 1.0, bending=(0.0, 2000.0), modes=4, damping=0.02, hinge=kf.Hinge.revolute([0, 1, 0]))
    system = kf.FlexibleSystem([rod])
    h = 20 * 2 * np.pi / rod.frequencies[-1]
    t = np.arange(0, 0.5, h)
    start = system.neutral(), np.zeros(system.nv)
    with pytest.raises(kf.errors.KfdynError, match="implicit"):
        kf.simulate(system, *start, t)
    soft = kf.simulate(system, *start, t, method="implicit")
    rigid = kf.simulate(kf.System([rod.rigid]), [0.0], [0.0], t, method="euler")  # the same step without elasticity
    assert abs(soft.q[:, 0] - rigid.q[:, 0]).max() < 0.01
    fine = kf.simulate(system, *start, np.linspace(0, 0.02, 3), method="DOP853", rtol=1e-8, atol=1e-10)
    slow = kf.simulate(system, *start, np.linspace(0, 0.02, 3), method="implicit", substeps=2000)
    assert abs(fine.q - slow.q).max() < 1e-3 * abs(fine.q).max()


LENGTH, DENSITY, EI, TOP, RISE = 8.0, 0.20188, 566.7, 6.0, 15.0  # the beam of the spin-up manoeuvre of the literature


def spun(t):
    """Angle, rate and acceleration of the hinge: up to 6 rad/s in 15 s (Kane, Ryan and Banerjee 1987)."""
    s = min(t, RISE)
    w = 2 * np.pi / RISE
    turned = TOP / RISE * (s**2 / 2 + (np.cos(w * s) - 1) / w**2) + TOP * max(t - RISE, 0.0)
    return turned, TOP / RISE * (s - np.sin(w * s) / w), TOP / RISE * (1 - np.cos(w * s)) if t < RISE else 0.0


def spin_up(system, springs, times):
    """Free coordinates (n, times) while the first hinge is led; ``springs`` (nv,) pull back what is free."""
    from scipy.integrate import solve_ivp

    n = system.nv - 1
    mask = np.arange(system.nv) == 0

    def rate(t, y):
        turned, speed, push = spun(t)
        q, v = np.concatenate([[turned], y[:n]]), np.concatenate([[speed], y[n:]])
        a = np.zeros(system.nv)
        a[0] = push
        _, full = kf.hybrid_dynamics(system, q, v, -springs * q * ~mask, a, prescribed=mask)
        return np.concatenate([v[1:], full[1:]])

    return solve_ivp(rate, (0, times[-1]), np.zeros(2 * n), "LSODA", times, rtol=1e-5, atol=1e-7).y[:n]


def beam_on_hinge(stiffening, modes=3):
    rod = kf.beam(
        "rod", LENGTH, DENSITY, bending=(EI, 0.0), modes=modes, elements=12, stiffening=stiffening,
        hinge=kf.Hinge.revolute([0, 0, 1]),
    )  # fmt: skip
    return kf.FlexibleSystem([rod], gravity=(0, 0, 0)), rod.shape_of([LENGTH, 0, 0], "tip").shift[1]


def test_spin_up_lags_and_comes_back():
    times = np.linspace(0, 20, 41)
    system, tip = beam_on_hinge(stiffening=True)
    lag = tip @ spin_up(system, np.zeros(system.nv), times)
    assert -0.85 < lag.min() < -0.6  # less than the 0.856 m of the same load on a beam that does not stiffen
    assert 5 < times[lag.argmin()] < 9
    assert abs(lag[-8:]).max() < 0.02  # back on its line once the speed is reached


def test_spun_without_the_quadratic_term_it_bends_away():
    system, tip = beam_on_hinge(stiffening=False)
    times = np.linspace(0, 9, 10)
    assert (
        abs(tip @ spin_up(system, np.zeros(system.nv), times)).max() > 2.0
    )  # above its first frequency nothing holds it


@pytest.mark.slow
def test_spin_up_is_that_of_many_rigid_segments():
    """Twenty rods on springs, by rigid dynamics alone, against three modes of the beam."""
    n, times = 20, np.linspace(0, 9, 10)
    h = LENGTH / n
    rod = kf.spatial.spatial_inertia(DENSITY * h, [h / 2, 0, 0], DENSITY * h**3 / 12 * np.diag([1e-6, 1, 1]))
    weld = kf.Body("hub", np.diag([1e-6] * 3 + [1e-3] * 3), kf.Hinge.revolute([0, 0, 1]))
    bodies = [
        kf.Body(
            f"s{k}", rod, kf.Hinge.revolute([0, 0, 1]), "hub" if k == 0 else f"s{k - 1}", position=[h * (k > 0), 0, 0]
        )
        for k in range(n)
    ]
    chain = kf.System([weld, *bodies], gravity=(0, 0, 0), frames={"tip": kf.Frame(f"s{n - 1}", position=[h, 0, 0])})
    springs = np.concatenate([[0.0, 2 * EI / h], np.full(n - 1, EI / h)])
    bent = spin_up(chain, springs, times)
    angles = np.cumsum(bent, axis=0)
    lumped = h * np.sin(angles).sum(axis=0)
    system, tip = beam_on_hinge(stiffening=True)
    lag = tip @ spin_up(system, np.zeros(system.nv), times)
    assert abs(lumped).max() > 0.6
    np.testing.assert_allclose(lag, lumped, atol=0.04 * abs(lumped).max())
