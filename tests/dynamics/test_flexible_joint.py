"""Flexible joints as an option of hinges: against mass points, two inertias and a spring, MuJoCo, and conservation."""

import mass_points
import numpy as np
import pytest
from flexible_cases import inertia, jointed_bodies, random_flexible
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, TreeError
from kfdyn.spatial import spatial_inertia

DRIVE = kf.FlexibleJoint(stiffness=300.0, rotor_inertia=2e-4, damping=0.4, ratio=50.0)
AXIS = [0.0, 1.0, 0.0]


def links(joint=DRIVE):
    """A link of one kilogram on a joint that gives way, a forearm on a plain hinge."""
    upper = kf.Body("upper", spatial_inertia(1.0, [0, 0, -0.3], 0.05 * np.eye(3)),
                    kf.Hinge.revolute(AXIS, flexible=joint), hinge_name="shoulder")  # fmt: skip
    lower = kf.Body("lower", spatial_inertia(0.5, [0, 0, -0.2], 0.02 * np.eye(3)), kf.Hinge.revolute(AXIS), "upper",
                    position=[0, 0, -0.6], hinge_name="elbow")  # fmt: skip
    return [upper, lower]


def arm(joint=DRIVE, **more):
    return kf.FlexibleSystem(links(joint), **more)


def test_the_coordinates_are_named_and_found():
    """θ bears the hinge's name, δ is behind it; the link is fixed to the far end of the spring."""
    robot = arm()
    assert robot.dof_names == ("shoulder", "shoulder/spring", "elbow")
    assert robot.body_names == ("upper/motor", "upper", "lower")
    assert robot.hinge_names == ("shoulder", "shoulder/link", "elbow")
    assert robot.v_slice("shoulder") == slice(0, 1)
    assert robot.q_slice("shoulder/spring") == robot.v_slice("shoulder/spring") == slice(1, 2)
    assert "shoulder (spring)" in repr(robot)
    q = np.array([0.3, 0.2, 0.0])
    pose = kf.frame_pose(robot, q, "upper")
    np.testing.assert_allclose(pose.rotation[0], [np.cos(0.5), 0, np.sin(0.5)], atol=1e-15)


def agree(system, bodies, seed, digits=1e-9):
    rng = np.random.default_rng(seed)
    q, v, g = system.random_configuration(rng, bent=0.5), rng.normal(size=system.nv), rng.normal(size=3)
    M, c = mass_points.equations(system, q, v, g, bodies)
    size = np.sqrt(np.outer(np.diag(M), np.diag(M)))
    np.testing.assert_allclose(kf.mass_matrix(system, q) / size, M / size, atol=1e-12)
    scale = np.abs(c) + np.sqrt(np.diag(M) * np.diag(M).max()) * (1 + v @ v + np.linalg.norm(g))
    np.testing.assert_allclose(kf.bias_forces(system, q, v, gravity=g) / scale, c / scale, atol=digits)
    tau = rng.normal(size=system.nv)
    for method in ("filter", "engine"):
        a = kf.forward_dynamics(system, q, v, tau, gravity=g, method=method)
        left = (M @ a + c - tau) / (np.abs(M) @ np.abs(a) + scale + np.abs(tau))
        assert np.abs(left).max() < digits
    np.testing.assert_allclose(
        kf.mass_matrix_inverse(system, q) @ kf.mass_matrix(system, q), np.eye(system.nv), atol=1e-9
    )
    np.testing.assert_allclose(kf.kinetic_energy(system, q, v), 0.5 * v @ M @ v, rtol=1e-11)
    springs = [(b, mass_points.spring_of(b)) for b in bodies]
    stored = sum(
        0.5 * (b.rigid if isinstance(b, kf.FlexibleBody) else b).hinge.flexible.stiffness * q[system.q_slice(s)][0] ** 2
        for b, s in springs
        if s is not None
    )
    for b in bodies:
        if isinstance(b, kf.FlexibleBody):
            eta = q[system.mode_slice(b.name)]
            stored += 0.5 * eta @ b.stiffness @ eta
    np.testing.assert_allclose(kf.potential_energy(system, q, gravity=(0, 0, 0)), stored, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_against_mass_points(seed):
    """𝓜, c, a, energies of what was given: links at θ + δ, rotors ratio² J, springs kδ + dδ̇ (complex steps)."""
    bodies = jointed_bodies(seed)
    agree(kf.FlexibleSystem(bodies), bodies, seed)


@settings(max_examples=6, deadline=None)
@given(st.integers(100, 10**6))
def test_more_random_trees(seed):
    bodies = jointed_bodies(seed)
    agree(kf.FlexibleSystem(bodies), bodies, seed)


@pytest.mark.parametrize("seed", range(6))
def test_rotors_that_are_carried_against_mass_points(seed):
    """Discs on the inboard bodies that turn by ratio · θ beside the links: reaction and gyroscopic moments."""
    bodies = jointed_bodies(seed, gyroscopic=True)
    system = kf.FlexibleSystem(bodies)
    discs = []
    for b in bodies:
        rigid = b.rigid if isinstance(b, kf.FlexibleBody) else b
        if rigid.hinge.flexible is not None:
            axis, J = rigid.hinge.screws[0, :3], rigid.hinge.flexible.rotor_inertia
            M = np.zeros((6, 6))
            M[:3, :3] = 0.5 * J * (np.eye(3) + np.outer(axis, axis))
            discs.append(kf.Body(f"{b.name} disc", M, kf.Hinge.revolute(axis), rigid.parent, rigid.rotation,
                                 rigid.position, f"{rigid.hinge_name}/rotor"))  # fmt: skip
            (gear,) = [c for c in system.couplings if rigid.hinge_name in c.hinges]
            assert gear.X[:, 0].tolist() == [1.0, rigid.hinge.flexible.ratio]
    agree(system, [*bodies, *discs], seed)


def test_two_inertias_and_a_spring():
    """ω² = k (1/R + 1/J) with the motor free, k/J with it held; damped by ζ = dω/2k."""
    link = kf.Body("link", np.diag([0.2, 0.2, 0.4, 1, 1, 1]), kf.Hinge.revolute([0, 0, 1], flexible=DRIVE))
    system = kf.FlexibleSystem([link], gravity=(0, 0, 0))
    R = 50.0**2 * 2e-4
    free, held = np.sqrt(300.0 * (1 / R + 1 / 0.4)), np.sqrt(300.0 / 0.4)
    found = kf.modes(system)
    np.testing.assert_allclose(found.frequencies[-1], free, rtol=1e-9)
    assert abs(found.frequencies[0]) < 1e-3
    np.testing.assert_allclose(found.stiffness, np.diag([0.0, 300.0]), atol=1e-7)
    tau, a = kf.hybrid_dynamics(system, [0.0, 0.01], None, [0.0, 0.0], [0.0, 0.0], [True, False])
    np.testing.assert_allclose(a[1], -(held**2) * 0.01, rtol=1e-12)
    np.testing.assert_allclose(tau[0], -300.0 * 0.01, rtol=1e-12)  # what holds the motor: the spring's own torque
    t, undamped = np.linspace(0, 0.2, 21), kf.FlexibleJoint(stiffness=300.0, rotor_inertia=2e-4, ratio=50.0)
    bare = kf.FlexibleSystem([kf.Body("link", link.inertia, kf.Hinge.revolute([0, 0, 1], flexible=undamped))])
    swing = kf.simulate(bare, [0.0, 0.1], [0.0, 0.0], t, gravity=(0, 0, 0), substeps=40)
    np.testing.assert_allclose(swing.q[:, 1], 0.1 * np.cos(free * t), atol=2e-8)
    assert swing.worst_energy_drift < 1e-8
    np.testing.assert_allclose(swing.potential[0], 0.5 * 300.0 * 0.1**2)
    zeta = 0.4 * free / (2 * 300.0)
    ring = kf.simulate(system, [0.0, 0.1], [0.0, 0.0], t, gravity=(0, 0, 0), method="DOP853")
    w = free * np.sqrt(1 - zeta**2)
    wanted = 0.1 * np.exp(-zeta * free * t) * (np.cos(w * t) + zeta * free / w * np.sin(w * t))
    np.testing.assert_allclose(ring.q[:, 1], wanted, atol=1e-8)
    assert ring.work[-1] < -0.4
    assert ring.worst_energy_drift < 1e-8  # what the damper took


@pytest.mark.parametrize("method", ["rk4", "euler", "implicit"])
def test_the_same_motion_as_of_two_rigid_hinges(method):
    """``split`` in a rigid system, springs asked for: another sweep, another class, one motion."""
    robot, t = arm(), np.linspace(0, 0.3, 31)
    upper, lower = (
        kf.Body(
            "upper",
            spatial_inertia(1.0, [0, 0, -0.3], 0.05 * np.eye(3)),
            kf.Hinge.revolute(AXIS),
            hinge_name="shoulder",
        ),
        robot.bodies[2],
    )
    pair = kf.System([*DRIVE.split(upper), lower])
    assert pair.hinge_names == ("shoulder", "shoulder/spring", "elbow")
    q, v = np.array([0.4, 0.1, -0.7]), np.array([1.0, -2.0, 3.0])
    law = np.array([0.5, 0.0, -0.1])
    mine = kf.simulate(robot, q, v, t, torque=law, method=method, substeps=3)
    other = kf.simulate(pair, q, v, t, torque=law, method=method, substeps=3, stiffness=True, damping=True)
    np.testing.assert_allclose(mine.q, other.q, atol=1e-11)
    np.testing.assert_allclose(mine.v, other.v, atol=1e-10)
    for key in ("kinetic", "potential", "work"):
        np.testing.assert_allclose(getattr(mine, key), getattr(other, key), atol=1e-10)


def test_an_implicit_step_is_not_limited_by_the_spring():
    """R = h²K + hC: a joint a million times as stiff is stepped over, and the link moves as on a rigid hinge."""
    stiff = kf.FlexibleJoint(stiffness=3e8, rotor_inertia=2e-4, damping=10.0, ratio=50.0)
    robot, t = arm(stiff), np.linspace(0, 0.5, 11)
    q, v = np.array([0.4, 0.0, -0.7]), np.zeros(3)
    fall = kf.simulate(robot, q, v, t, method="implicit", substeps=100)
    rigid = kf.System(
        [kf.Body("upper", robot.bodies[1].inertia, kf.Hinge.revolute(AXIS), armature=stiff.reflected), robot.bodies[2]]
    )
    there = kf.simulate(rigid, q[[0, 2]], v[[0, 2]], t, method="implicit", substeps=100)
    np.testing.assert_allclose(fall.q[:, [0, 2]], there.q, atol=1e-5)
    assert abs(fall.q[:, 1]).max() < 1e-6
    with pytest.raises(kf.errors.KfdynError, match=r"unstable with steps of 0\.0005 s; .*'implicit'"):
        kf.simulate(robot, q, v, t, method="rk4", substeps=100)


def test_mujoco_has_the_same_accelerations():
    """Two hinges in one MuJoCo body, one with the rotor as armature, one with the spring; its own passive forces."""
    mujoco = pytest.importorskip("mujoco")
    xml = """<mujoco><option gravity="0 0 -9.81"/><compiler autolimits="true"/><worldbody><body name="upper">
      <inertial mass="1" pos="0 0 -0.3" diaginertia="0.05 0.05 0.05"/>
      <joint name="theta" axis="0 1 0" armature="0.5"/>
      <joint name="delta" axis="0 1 0" stiffness="300" damping="0.4"/>
      <body name="lower" pos="0 0 -0.6"><inertial mass="0.5" pos="0 0 -0.2" diaginertia="0.02 0.02 0.02"/>
      <joint name="elbow" axis="0 1 0"/></body></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data, rng, robot = mujoco.MjData(model), np.random.default_rng(0), arm()
    for _ in range(5):
        q, v, tau = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(kf.forward_dynamics(robot, q, v, tau), data.qacc, rtol=1e-9, atol=1e-9)


def test_mujoco_has_the_same_carried_rotor():
    """A rotor that is a body, tied to the motor's hinge by an equality: MuJoCo's 𝓜 and c of all hinges, reduced."""
    mujoco = pytest.importorskip("mujoco")
    xml = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="base"><joint name="yaw" axis="0 0.6 0.8"/>
      <inertial mass="2" pos="0.1 0 0.2" diaginertia="0.1 0.12 0.15"/>
      <body name="upper" pos="0.3 0 0.1"><inertial mass="1" pos="0 0 -0.3" diaginertia="0.05 0.05 0.05"/>
      <joint name="theta" axis="0 1 0"/><joint name="delta" axis="0 1 0" stiffness="300" damping="0.4"/></body>
      <body name="rotor" pos="0.3 0 0.1"><inertial mass="1e-12" pos="0 0 0" diaginertia="0.01 0.02 0.01"/>
      <joint name="rotor" axis="0 1 0"/></body></body></worldbody>
      <equality><joint joint1="rotor" joint2="theta" polycoef="0 -7 0 0 0"/></equality></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    joint = kf.FlexibleJoint(stiffness=300.0, damping=0.4, rotor_inertia=0.02, ratio=-7.0, gyroscopic=True)
    heavy = spatial_inertia(2.0, [0.1, 0, 0.2], np.diag([0.1, 0.12, 0.15]))
    robot = kf.FlexibleSystem([
        kf.Body("base", heavy, kf.Hinge.revolute([0, 0.6, 0.8])),
        kf.Body("upper", spatial_inertia(1.0, [0, 0, -0.3], 0.05 * np.eye(3)), kf.Hinge.revolute(AXIS, flexible=joint),
                "base", position=[0.3, 0, 0.1]),
    ])  # fmt: skip
    assert robot.dof_names == ("base", "upper", "upper/spring")
    X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, -7.0, 0]])
    for _ in range(5):
        q, v, tau = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
        data.qpos[:], data.qvel[:] = X @ q, X @ v
        mujoco.mj_forward(model, data)
        M = np.zeros((4, 4))
        mujoco.mj_fullM(model, data, M) if mujoco.__version__ >= "4" else mujoco.mj_fullM(model, M, data.qM)
        wanted = np.linalg.solve(X.T @ M @ X, tau + X.T @ (data.qfrc_passive - data.qfrc_bias))
        for method in ("filter", "engine", "mass_matrix"):
            np.testing.assert_allclose(
                kf.forward_dynamics(robot, q, v, tau, method=method), wanted, rtol=1e-9, atol=1e-9
            )


def test_a_carried_rotor_keeps_momentum_and_energy():
    """In free flight: the base turns back when the motor speeds up its rotor, as no armature would let it."""
    joint = kf.FlexibleJoint(stiffness=50.0, rotor_inertia=0.05, ratio=3.0, gyroscopic=True)
    rng = np.random.default_rng(4)
    hull = kf.Body("hull", inertia(rng, 2.0), kf.Hinge.free())
    link = kf.Body(
        "link", inertia(rng, 1.0), kf.Hinge.revolute([0.3, 0.5, 0.8], flexible=joint), "hull", position=[0.2, 0, 0.1]
    )
    ship = kf.FlexibleSystem([hull, link], gravity=(0, 0, 0))
    q, v = ship.random_configuration(1), rng.normal(size=ship.nv)
    drift = kf.simulate(ship, q, v, np.linspace(0, 0.5, 6), substeps=100)
    assert abs(drift.momentum - drift.momentum[0]).max() < 1e-9 * abs(drift.momentum[0]).max()
    assert drift.worst_energy_drift < 1e-9
    push = np.eye(ship.nv)[ship.v_slice("link").start]
    turned = kf.forward_dynamics(ship, ship.neutral(), None, push)
    plain = kf.FlexibleJoint(stiffness=50.0, rotor_inertia=0.05, ratio=3.0)
    hinge = kf.Hinge.revolute([0.3, 0.5, 0.8], flexible=plain)
    other = kf.Body("link", link.inertia, hinge, "hull", position=[0.2, 0, 0.1])
    spong = kf.FlexibleSystem([hull, other], gravity=(0, 0, 0))
    assert abs(turned - kf.forward_dynamics(spong, spong.neutral(), None, push)).max() > 0.1


def test_a_beam_on_a_flexible_joint():
    """Both kinds of springs, and the child of the beam; the engine's model of it, whole and split."""
    rng = np.random.default_rng(2)
    rod = random_flexible(rng, "rod", hinge=kf.Hinge.revolute(AXIS, flexible=DRIVE), hinge_name="drive")
    tip = kf.Body("tip", inertia(rng, 0.5), kf.Hinge.ball(), "rod", position=rod.points[3])
    system = kf.FlexibleSystem([rod, tip])
    assert system.dof_names[:3] == ("drive", "drive/spring", "rod/mode_1")
    agree(system, [rod, tip], 3)
    q = system.random_configuration(5)
    ss = kf.as_estimation(system, q)
    assert list(ss.n) == [7, 9, 6] and list(ss.m) == [2, 3, 3]
    assert kf.cross_check(system, q, np.ones(system.nv), samples=4000).passed
    from kfdyn.dynamics import behind_modes, partition_hinges, succession

    split = partition_hinges(ss, succession(system), transitions=behind_modes(system))
    np.testing.assert_allclose(kf.innovations_factor(split.ss).logdet(), kf.mass_matrix_logdet(system, q), rtol=1e-10)


def test_batches_are_bit_for_bit_the_same():
    robot, rng = arm(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 19, 3))
    whole = kf.forward_dynamics(robot, q, v, tau)
    for i in (0, 7, 18):
        np.testing.assert_array_equal(kf.forward_dynamics(robot, q[i], v[i], tau[i]), whole[i])


LINK = np.diag([0.2, 0.2, 0.4, 1, 1, 1])
BAD = {
    "stiffness must be positive, got -3": lambda: kf.FlexibleJoint(-3.0, 1e-4),
    "stiffness must be positive, got 0": lambda: kf.FlexibleJoint(0.0, 1e-4),
    "stiffness must be a finite number": lambda: kf.FlexibleJoint(np.inf, 1e-4),
    "stiffness must be a finite number, got 'much'": lambda: kf.FlexibleJoint("much", 1e-4),
    "rotor_inertia must be positive, got 0.*stiffness": lambda: kf.FlexibleJoint(1e9, 0.0),
    "rotor_inertia must be positive, got -1": lambda: kf.FlexibleJoint(1.0, -1.0),
    "damping must not be negative": lambda: kf.FlexibleJoint(1.0, 1.0, damping=-0.1),
    "ratio must not be 0": lambda: kf.FlexibleJoint(1.0, 1.0, ratio=0.0),
    "ratio must be a finite number": lambda: kf.FlexibleJoint(1.0, 1.0, ratio=np.nan),
    "no inertia that doubles can hold": lambda: kf.FlexibleJoint(1.0, 1e-300, ratio=1e-100),
    "must be a FlexibleJoint, got 3": lambda: kf.Hinge.revolute(AXIS, flexible=3),
    "it has 3 dofs": lambda: kf.Hinge("ball", 1, np.eye(6)[:3], DRIVE),
    "hinge 'knee' has armature": lambda: kf.FlexibleSystem(
        [kf.Body("b", LINK, kf.Hinge.revolute(AXIS, flexible=DRIVE), hinge_name="knee", armature=0.1)]
    ),
    "hinge 'knee' has stiffness": lambda: kf.FlexibleSystem(
        [kf.Body("b", LINK, kf.Hinge.revolute(AXIS, flexible=DRIVE), hinge_name="knee", stiffness=0.1)]
    ),
    "hinge 'b' is a flexible joint.*kf.FlexibleSystem.*split": lambda: kf.System(
        [kf.Body("b", LINK, kf.Hinge.revolute(AXIS, flexible=DRIVE))]
    ),
    "gyroscopic rotors are for revolute hinges, and it is prismatic": lambda: kf.FlexibleSystem(
        [kf.Body("b", LINK, kf.Hinge.prismatic(AXIS, flexible=kf.FlexibleJoint(1.0, 1.0, gyroscopic=True)))]
    ),
    "with_rotors": lambda: kf.FlexibleJoint(1.0, 1.0, gyroscopic=True).split(kf.Body("b", LINK, kf.Hinge.revolute())),
    "hinge 'b' has 0 dofs": lambda: DRIVE.split(kf.Body("b", LINK)),
    "no hinge 'wrist'": lambda: arm().v_slice("wrist"),
}  # fmt: skip


@pytest.mark.parametrize("words", BAD)
def test_bad_joints_are_refused_in_words(words):
    with pytest.raises(ModelError, match=words):
        BAD[words]()


def test_the_hinge_without_inertia_is_named():
    """A link without inertia about its axis: the spring has nothing to move."""
    robot = kf.FlexibleSystem([kf.Body("b", np.zeros((6, 6)), kf.Hinge.revolute(AXIS, flexible=DRIVE))])
    with pytest.raises(kf.errors.SingularError, match="b"):
        kf.forward_dynamics(robot, [0.0, 0.0], None, [1.0, 0.0])


def test_one_number_of_stiffness_or_damping_is_that_of_the_hinges():
    """Springs of joints and modes have their own: in every method, and an entry for one of them is refused."""
    link = kf.Body("a", spatial_inertia(1.0, [0.3, 0, 0], 0.02 * np.eye(3)), kf.Hinge.revolute(
        [0, 1, 0], flexible=kf.FlexibleJoint(80.0, 0.02, ratio=2.0)))  # fmt: skip
    system, t = kf.FlexibleSystem([link]), [0.0, 0.1]
    for method in ("implicit", "rk4"):
        for what in ("stiffness", "damping"):
            one, each = (
                kf.simulate(system, [0.1, 0.05], [0.5, 1.0], t, method=method, substeps=20, **{what: value}).q[-1]
                for value in (5.0, [5.0, 0.0])
            )
            assert np.array_equal(one, each)
    with pytest.raises(ModelError, match=r"'a/spring'.*has its stiffness from its body or joint"):
        kf.simulate(system, [0.1, 0.05], [0.5, 1.0], t, stiffness=[0.0, 1e4])


def test_what_is_no_number_of_a_flexible_system():
    joint = kf.FlexibleJoint(80.0, 0.02)
    link = kf.Body(
        "a", spatial_inertia(1.0, [0.3, 0, 0], 0.02 * np.eye(3)), kf.Hinge.revolute([0, 1, 0], flexible=joint)
    )
    system = kf.FlexibleSystem([link])
    for q in (np.zeros(2) + 1j, "ab"):
        with pytest.raises(ShapeError, match="q must be an array of real numbers"):
            kf.forward_dynamics(system, q, None, [0.0, 0.0])
    with pytest.raises(ModelError, match="no inertia that doubles can hold"):
        kf.FlexibleJoint(1.0, 1.0, ratio=1e200)
    with pytest.raises(ModelError, match="stiffness must be a finite number"):
        kf.FlexibleJoint(np.complex128(1 + 2j), 1.0)


@pytest.mark.parametrize(
    ("taken", "whose"),
    [("shoulder/spring", "the spring of hinge 'shoulder'"), ("rod/mode_2", "mode 2 of body 'rod'")],
)
def test_a_hinge_is_not_named_as_a_spring_or_a_mode_is(taken, whose):
    upper, lower = (
        kf.Body("upper", LINK, kf.Hinge.revolute(AXIS, flexible=DRIVE), hinge_name="shoulder"),
        kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=2, parent="upper"),
    )
    wrist = kf.Body("hand", LINK, kf.Hinge.revolute(AXIS), "rod", position=[1.0, 0, 0], hinge_name=taken)
    with pytest.raises(TreeError, match=f"hinge '{taken}' bears the name of {whose}; give it another"):
        kf.FlexibleSystem([upper, lower, wrist])


def test_a_carried_rotor_joins_the_couplings_of_its_hinge_whenever_they_are_made():
    """As the constructor does it: one coupling, of whose hinges the rotor is the last; its gear alone is no more."""
    joint = kf.FlexibleJoint(stiffness=300.0, rotor_inertia=2e-4, ratio=50.0, gyroscopic=True)
    belt = kf.Coupling(["elbow", "shoulder"], [1.0, -0.5], [0.0, 0.2])
    at_once, later = arm(joint, couplings=[belt]), arm(joint).with_couplings([belt])
    assert [c.hinges for c in later.couplings] == [("elbow", "shoulder", "shoulder/rotor")]
    assert later.dof_names == at_once.dof_names == ("shoulder/spring", "elbow")
    rng = np.random.default_rng(0)
    q, v, tau = (rng.normal(size=2) for _ in range(3))
    np.testing.assert_array_equal(
        kf.forward_dynamics(later, q, v, tau, method="engine"), kf.forward_dynamics(at_once, q, v, tau, method="engine")
    )
    np.testing.assert_array_equal(kf.mass_matrix(later, q), kf.mass_matrix(at_once, q))
    with pytest.raises(ModelError, match="hinge 'shoulder' is in two couplings; join them to one"):
        later.with_couplings([kf.Coupling(["shoulder", "shoulder/link"], [1.0, 1.0])])


def test_a_rotor_whose_hinge_is_in_no_new_coupling_keeps_its_gear():
    joint = kf.FlexibleJoint(stiffness=300.0, rotor_inertia=2e-4, ratio=50.0, gyroscopic=True)
    hand = kf.Body("hand", LINK, kf.Hinge.revolute(AXIS), "lower", hinge_name="wrist")
    robot = kf.FlexibleSystem([*links(joint), hand]).with_couplings([kf.Coupling(["elbow", "wrist"], [1, 2.0])])
    assert [c.hinges for c in robot.couplings] == [("shoulder", "shoulder/rotor"), ("elbow", "wrist")]
