"""Gears, mimic joints and differentials between hinges of systems that bend: dense algebra and mass points."""

import mass_points
import numpy as np
import pytest
from flexible_cases import jointed_bodies, random_couplings, tree
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.spatial import spatial_inertia


def coupled(seed):
    """A random system some of whose hinges are coupled, what it was made of, and a state."""
    rng = np.random.default_rng(seed)
    bodies = jointed_bodies(seed)
    couplings = random_couplings(rng, bodies)
    system = kf.FlexibleSystem(bodies, couplings=couplings)
    return system, bodies, system.random_configuration(rng), rng.normal(size=system.nv)


def expansion(system):
    """X with rates without couplings = X v, from the couplings alone."""
    free = system.uncoupled
    X, names = np.zeros((free.nv, system.nv)), list(system.dof_names)
    inside = {name: (c, i) for c in system.couplings for i, name in enumerate(c.hinges)}
    for row, name in enumerate(free.dof_names):
        if name in inside:
            c, i = inside[name]
            for j, own in enumerate(c.named):
                X[row, names.index(own)] = c.X[i, j]
        else:
            X[row, names.index(name)] = 1.0
    return X


def agree(seed):
    system, bodies, q, v = coupled(seed)
    rng = np.random.default_rng(seed + 1)
    g, tau = rng.normal(size=3), rng.normal(size=system.nv)
    M, c = mass_points.equations(system, q, v, g, bodies)
    size = np.sqrt(np.outer(np.diag(M), np.diag(M)))
    np.testing.assert_allclose(kf.mass_matrix(system, q) / size, M / size, atol=1e-12)
    scale = np.abs(c) + np.sqrt(np.diag(M) * np.diag(M).max()) * (1 + v @ v + np.linalg.norm(g))
    np.testing.assert_allclose(kf.bias_forces(system, q, v, gravity=g) / scale, c / scale, atol=1e-9)
    X, free = expansion(system), system.uncoupled
    q_free = system._expansion.positions(q)
    whole = X.T @ kf.mass_matrix(free, q_free) @ X
    bias = X.T @ kf.bias_forces(free, q_free, X @ v, gravity=g)
    wanted = np.linalg.solve(whole, tau - bias)
    for method in ("filter", "engine", "embedding", "mass_matrix")[: 4 if system.couplings else 2]:
        a = kf.forward_dynamics(system, q, v, tau, gravity=g, method=method)
        np.testing.assert_allclose(a, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max())
    np.testing.assert_allclose(
        kf.inverse_dynamics(system, q, v, wanted, gravity=g),
        tau,
        atol=1e-10 * (np.abs(bias).max() + np.abs(tau).max() + 1),
    )
    inverse = np.linalg.inv(whole)
    np.testing.assert_allclose(kf.mass_matrix_inverse(system, q), inverse, atol=1e-10 * np.abs(inverse).max())
    np.testing.assert_allclose(kf.mass_matrix_logdet(system, q), np.linalg.slogdet(whole)[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kf.kinetic_energy(system, q, v), 0.5 * v @ M @ v, rtol=1e-11)
    np.testing.assert_allclose(kf.potential_energy(system, q), kf.potential_energy(free, q_free), rtol=1e-12)
    np.testing.assert_allclose(kf.difference(system, q, kf.integrate(system, q, 0.1 * v)), 0.1 * v, atol=1e-12)
    ss = kf.as_estimation(system, q, v, gravity=g)
    _, smooth = kf.dynamics_filter(system, q, v, tau, gravity=g)
    one = kf.minimal_coordinates(system, q, v, gravity=g)
    np.testing.assert_allclose(one.X @ smooth.a + one.drift, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max())
    assert ss.n_outputs == system.nv and sorted(one.names) == sorted(system.dof_names)


@pytest.mark.parametrize("seed", range(10))
def test_random_gears(seed):
    """𝓜, c, a, tau, 𝓜⁻¹, log det, energies, the engine's model: sums over points, and X of the couplings alone."""
    agree(seed)


@settings(max_examples=6, deadline=None)
@given(st.integers(100, 10**6))
def test_more_random_gears(seed):
    agree(seed)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_cross_check_and_hybrid(seed):
    system, _, q, v = coupled(seed)
    assert system.couplings
    assert kf.cross_check(system, q, v, samples=3000).passed
    rng = np.random.default_rng(seed)
    tau = rng.normal(size=system.nv)
    a = kf.forward_dynamics(system, q, v, tau)
    mask = np.arange(system.nv) % 2 == 0
    found = kf.hybrid_dynamics(system, q, v, np.where(mask, np.nan, tau), np.where(mask, a, np.nan), mask)
    np.testing.assert_allclose(found[0], tau, atol=1e-9 * (1 + abs(tau).max() + abs(a).max()))
    np.testing.assert_allclose(found[1], a, atol=1e-9 * (1 + abs(a).max()))


def geared_arm(**more):
    """A beam on a series-elastic shoulder; the forearm's hinge mimics the motor of the shoulder."""
    joint = kf.FlexibleJoint(stiffness=400.0, rotor_inertia=1e-4, ratio=60.0)
    rod = kf.beam("rod", 1.0, 1.0, bending=(0.0, 40.0), modes=2, hinge=kf.Hinge.revolute([0, 1, 0], flexible=joint),
                  hinge_name="shoulder")  # fmt: skip
    forearm = kf.Body("forearm", spatial_inertia(0.4, [0.2, 0, 0], 0.01 * np.eye(3)), kf.Hinge.revolute([0, 1, 0]),
                      "rod", position=[1.0, 0, 0], hinge_name="elbow", damping=0.1, stiffness=2.0)  # fmt: skip
    return kf.FlexibleSystem([rod, forearm], couplings=[kf.Coupling(["shoulder", "elbow"], [1.0, -2.0])], **more)


def test_a_mimic_joint_behind_a_spring_and_a_beam():
    arm = geared_arm()
    assert arm.dof_names == ("shoulder", "shoulder/spring", "rod/mode_1", "rod/mode_2")
    q, v = np.array([0.3, 0.02, 0.01, 0.0]), np.array([1.0, 0.5, 0.0, 0.0])
    swing = kf.simulate(arm, q, v, [0, 0.01], method="DOP853")
    assert swing.worst_energy_drift < 1e-8
    sprung = kf.simulate(arm, q, v, [0, 0.01], method="DOP853", stiffness=True, damping=True)
    assert sprung.worst_energy_drift < 1e-8 and sprung.work[-1] < 0
    np.testing.assert_allclose(sprung.potential[0] - swing.potential[0], 0.5 * 2.0 * 0.6**2, rtol=1e-9)
    rough = kf.simulate(arm, q, v, [0, 0.01], substeps=40, stiffness=True, damping=True)
    np.testing.assert_allclose(rough.q[-1], sprung.q[-1], atol=1e-6)  # steps of fourth order


def test_an_implicit_step_with_a_gear_is_that_of_dense_algebra():
    """(X*𝓜X + hC + h²K) a = −c − (C + hK) v − K (q − rest), C and K of hinges, springs and modes."""
    arm, h = geared_arm(), 0.01
    q, v = np.array([0.3, 0.02, 0.01, 0.0]), np.array([1.0, 0.5, 0.0, 0.0])
    free, own = arm.uncoupled, np.diag([4 * 2.0, 400.0, 0, 0])  # the elbow's spring acts on the shoulder, twice as far
    K = own.copy()
    K[2:, 2:] = free.flexible["rod"].stiffness
    C = np.diag([4 * 0.1, 0, 0, 0])
    c = kf.bias_forces(arm, q, v) + np.array([4 * 2.0 * 0.3, 0, 0, 0])  # springs of joints and modes are in it
    a = np.linalg.solve(kf.mass_matrix(arm, q) + h * C + h**2 * K, -c - (C + h * K) @ v)
    step = kf.simulate(arm, q, v, [0, h], method="implicit", stiffness=True, damping=True)
    np.testing.assert_allclose(step.v[-1], v + h * a, rtol=1e-10, atol=1e-10)
    long = kf.simulate(arm, q, v, np.linspace(0, 0.5, 26), method="implicit", stiffness=True, damping=True)
    assert abs(long.q).max() < 2.0  # the fastest mode would not let an explicit step take a tenth of it


def test_vibrations_with_a_gear():
    """By hand: 𝓜 and K of all coordinates, reduced by X."""
    from scipy.linalg import eigh

    arm = geared_arm(gravity=(0, 0, 0))
    free = arm.uncoupled
    X = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [-2, 0, 0, 0]])
    K = np.zeros((5, 5))
    K[1, 1], K[2:4, 2:4], K[4, 4] = 400.0, free.flexible["rod"].stiffness, 2.0
    M = kf.mass_matrix(free, free.neutral())
    wanted = np.sqrt(eigh(X.T @ K @ X, X.T @ M @ X, eigvals_only=True))
    np.testing.assert_allclose(kf.modes(arm).frequencies, wanted, rtol=1e-8)
    rigid = kf.System(
        [kf.Body("a", np.eye(6), kf.Hinge.revolute(), stiffness=3.0), kf.Body("b", np.eye(6), kf.Hinge.revolute())],
        couplings=[kf.Coupling(["a", "b"], [1.0, 2.0])],
    )
    np.testing.assert_allclose(kf.modes(rigid).frequencies, [np.sqrt(3.0 / 5.0)], rtol=1e-9)


def test_a_carried_rotor_joins_a_coupling_of_its_hinge():
    joint = kf.FlexibleJoint(stiffness=100.0, rotor_inertia=1e-3, ratio=20.0, gyroscopic=True)
    bodies = [kf.Body("a", np.eye(6), kf.Hinge.revolute([0, 0, 1], flexible=joint)),
              kf.Body("b", np.eye(6), kf.Hinge.revolute([0, 1, 0]), "a", position=[1.0, 0, 0])]  # fmt: skip
    system = kf.FlexibleSystem(bodies, couplings=[kf.Coupling(["b", "a"], [3.0, -1.5], [0.1, 0.2])])
    (gear,) = system.couplings
    assert gear.hinges == ("b", "a", "a/rotor")
    np.testing.assert_allclose(gear.X[:, 0], [3.0, -1.5, -30.0])
    np.testing.assert_allclose(gear.offset, [0.1, 0.2, 4.0])
    assert system.dof_names == ("a/spring", "b")  # a follows, its spring does not
    # s turns a by −1.5 about z and b with it, a metre away; a's rotor by −30; b by 3 about y
    wanted = 1.5**2 * (1.0 + 1.0 + 1.0) + 30.0**2 * 1e-3 + 3.0**2 * 1.0
    M = kf.mass_matrix(system, [0.0, 0.4])
    np.testing.assert_allclose(M, [[3.0, -1.5 * 3.0], [-1.5 * 3.0, wanted]], rtol=1e-12)


def test_rotors_of_gears_on_systems_that_bend():
    """``with_rotors``: the rotor of a beam's hinge counts with the square of its ratio, and is a gyro."""
    rod = kf.beam("rod", 1.0, 1.0, bending=(0.0, 40.0), modes=1, hinge=kf.Hinge.revolute([0, 1, 0]))
    plain = kf.FlexibleSystem([rod])
    geared = kf.with_rotors(plain, {"rod": kf.Rotor(1e-3, ratio=10.0)})
    assert geared.dof_names == plain.dof_names
    more = kf.mass_matrix(geared, [0.1, 0.02]) - kf.mass_matrix(plain, [0.1, 0.02])
    np.testing.assert_allclose(more, [[0.1, 0], [0, 0]], atol=1e-12)


def test_loops_beside_gears():
    """Cut joints, embedding and the proximal method, on one system with gears and bodies that bend."""
    base = tree(1)
    system = kf.FlexibleSystem(
        base.bodies, frames=dict(base.frames), couplings=[kf.Coupling(["base", "slider"], [1.0, 0.7])]
    )
    held = system.with_loops([kf.Loop(None, "tool", rows="point")])
    rng = np.random.default_rng(0)
    q, v, tau = system.random_configuration(rng), rng.normal(size=system.nv), rng.normal(size=system.nv)
    cut = kf.forward_dynamics(held, q, v, tau)
    for method in ("embedding", "proximal"):
        np.testing.assert_allclose(kf.forward_dynamics(held, q, v, tau, method=method), cut, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kf.frame_acceleration(held, q, v, cut, "tool")[3:], 0, atol=1e-11 * abs(cut).max())


def test_limits_and_names_of_coupled_hinges():
    bodies = [kf.Body("a", np.eye(6), kf.Hinge.revolute(), lower=-1.0, upper=1.0),
              kf.beam("b", 1.0, 1.0, bending=(0.0, 40.0), modes=1, hinge=kf.Hinge.revolute())]  # fmt: skip
    system = kf.FlexibleSystem(bodies, couplings=[kf.Coupling(["b", "a"], [1.0, 4.0])])
    assert system.dof_names == ("b", "b/mode_1")
    np.testing.assert_allclose(system.lower, [-0.25, -np.inf])
    assert all(abs(system.random_configuration(seed)[0]) <= 0.25 for seed in range(20))
    assert "1 coupling" in repr(system) and system.v_slice("b") == slice(0, 1)
    with pytest.raises(ModelError, match="hinge 'a' follows 'b' and has no place of its own in v"):
        system.v_slice("a")
    with pytest.raises(ModelError, match=r"armature is a full matrix.*system\.uncoupled\.armature"):
        system.armature  # noqa: B018
    more = kf.FlexibleSystem(bodies).with_couplings([kf.Coupling(["b", "a"], [1.0, 4.0])])
    assert more.dof_names == system.dof_names
    assert kf.FlexibleSystem(bodies).with_couplings([]).nv == 3


BODIES = (kf.Body("a", np.eye(6), kf.Hinge.revolute()), kf.Body("c", np.eye(6), kf.Hinge.ball()))
BAD = {
    "no hinge 'z'": [kf.Coupling(["a", "z"], [1.0, 1.0])],
    "a ball hinge has 3 dofs": [kf.Coupling(["a", "c"], [1.0, 1.0])],
    "hinge 'a' is in two couplings": [kf.Coupling(["a"], [2.0]), kf.Coupling(["a"], [1.0])],
    "couplings must be Couplings, got 3": [3],
}


@pytest.mark.parametrize("words", BAD)
def test_bad_couplings_are_refused_in_words(words):
    with pytest.raises(ModelError, match=words):
        kf.FlexibleSystem(BODIES, couplings=BAD[words])


def test_nothing_to_move_is_said_of_the_hinges():
    empty = [kf.Body(name, np.zeros((6, 6)), kf.Hinge.revolute()) for name in "ab"]
    system = kf.FlexibleSystem(empty, couplings=[kf.Coupling(["a", "b"], [1.0, 2.0])])
    with pytest.raises(kf.errors.SingularError, match="hinges 'a', 'b' move no inertia"):
        kf.forward_dynamics(system, [0.0], None, [1.0])
