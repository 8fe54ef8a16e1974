"""A mass matrix that is singular in double precision is refused, though every hinge seems to feel something."""

import dataclasses

import numpy as np
import pytest
from robot_agreement import example_robots

import kfdyn as kf
from kfdyn.errors import SingularError, UnobservableError
from kfdyn.spatial import spatial_inertia


def neck(off):
    """Three axes through one point, and a mass without extent ``off`` metres beside the second axis."""
    point = spatial_inertia(1.3, [0.11, off, 0.0], np.zeros((3, 3)))
    axes = {"pitch": [0, 1, 0], "roll": [1, 0, 0], "yaw": [0, 0, 1]}
    bodies, parent = [], None
    for name, axis in axes.items():
        inertia = point if name == "yaw" else np.zeros((6, 6))
        bodies.append(kf.Body(f"{name}_link", inertia, kf.Hinge.revolute(axis), parent, hinge_name=name))
        parent = f"{name}_link"
    return kf.System(bodies)


def answers(system, q):
    zero, one = np.zeros((*q.shape[:-1], system.nv)), np.ones((*q.shape[:-1], system.nv))
    yield lambda: kf.forward_dynamics(system, q, zero, one)
    yield lambda: kf.forward_dynamics(system, q, zero, one, method="engine")
    yield lambda: kf.forward_dynamics(system, q, zero, one, method="mass_matrix")
    yield lambda: kf.acceleration_causes(system, q, zero, one)
    yield lambda: kf.mass_matrix_inverse(system, q)
    yield lambda: kf.mass_matrix_logdet(system, q)
    yield lambda: kf.mass_matrix_logdet_gradient(system, q)
    yield lambda: kf.operational_space_compliance(system, q, system.body_names[-1])
    yield lambda: kf.forward_dynamics_derivatives(system, q, zero, one)
    yield lambda: kf.hybrid_dynamics(system, q, zero, one, one, prescribed=np.zeros(system.nv, bool))


@pytest.mark.parametrize("off", [0.0, 1e-9, 4e-7, 1e-4, 1e-2, 0.1])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_three_axes_through_a_mass_without_extent(off, lead):
    """The point cannot move along its own lever, so 𝓜 (3, 3) has rank 2, wherever it is."""
    system = neck(off)
    for call in answers(system, np.zeros((*lead, 3))):
        with pytest.raises(SingularError, match=r"roll|pitch"):
            call()


def test_a_rotor_is_the_cure_that_is_named():
    system = neck(4e-7)
    cured = kf.System([*system.bodies[:1], dataclasses.replace(system.bodies[1], armature=1e-4), *system.bodies[2:]])
    M = kf.mass_matrix(cured, np.zeros(3))
    a = kf.forward_dynamics(cured, np.zeros(3), None, np.ones(3), gravity=np.zeros(3))
    np.testing.assert_allclose(M @ a, np.ones(3), rtol=1e-8)


def unit(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def on_a_line(kind, rng):
    """Point masses on one line through the point where three axes meet: 𝓜 has rank 2 of 3 at every pose."""
    far = rng.normal(size=3) * 10.0 ** rng.uniform(-1, 1)
    at = far * rng.uniform(-1, 1, size=(1 + rng.integers(2), 1))
    mass = 10.0 ** rng.uniform(-3, 3, size=len(at))
    points = sum(spatial_inertia(m, c, np.zeros((3, 3))) for m, c in zip(mass, at))
    nothing, revolute = np.zeros((6, 6)), kf.Hinge.revolute
    hinges = {
        "ball": [kf.Hinge.ball()],
        "gimbal": [kf.Hinge.gimbal()],
        "three axes": [revolute(unit(rng)) for _ in range(3)],
        "an axis and a universal": [revolute(unit(rng)), kf.Hinge.universal()],
        "a ball on an arm": [revolute(unit(rng)), kf.Hinge.ball()],
    }[kind]
    bodies = []
    for k, hinge in enumerate(hinges):
        inertia, away = points if k == len(hinges) - 1 else nothing, np.zeros(3)
        if kind == "a ball on an arm" and k == 0:
            inertia = spatial_inertia(1.0, rng.normal(size=3), np.eye(3))
        if kind == "a ball on an arm" and k == 1:
            away = rng.normal(size=3)
        parent = f"link_{k - 1}" if k else None
        bodies.append(kf.Body(f"link_{k}", inertia, hinge, parent, position=away, hinge_name=f"hinge_{k}"))
    return kf.System(bodies)


def geared(system, rng):
    """The same beside two hinges on one gear."""
    own = spatial_inertia(1.0, rng.normal(size=3), np.eye(3))
    pair = [kf.Body(name, own, kf.Hinge.revolute(unit(rng)), hinge_name=name) for name in ("drive", "driven")]
    return kf.System([*pair, *system.bodies], couplings=[kf.Coupling(["drive", "driven"], [[1.0], [0.5]])])


def one_by_one(system, q, tau):
    """What is asked for one pose, and has no answer at any."""
    yield from answers(system, q)
    yield lambda: kf.dynamics_filter(system, q, None, tau)
    yield lambda: kf.simulate(system, q, np.zeros(system.nv), [0.0, 1e-9], torque=lambda t, q, v: tau)


def of_gears(system, q, tau):
    for method in ("filter", "mass_matrix", "embedding"):
        yield lambda method=method: kf.forward_dynamics(system, q, None, tau, method=method)
    yield lambda: kf.mass_matrix_inverse(system, q)
    yield lambda: kf.mass_matrix_logdet(system, q)
    yield lambda: kf.operational_space_compliance(system, q, system.body_names[-1])
    yield lambda: kf.hybrid_dynamics(system, q, None, tau, tau, prescribed=np.zeros(system.nv, bool))
    yield lambda: kf.forward_dynamics_derivatives(system, q, None, tau)
    yield lambda: kf.dynamics_filter(system, q, None, tau)


@pytest.mark.parametrize("poses", [40, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["ball", "gimbal", "three axes", "an axis and a universal", "a ball on an arm"])
def test_point_masses_on_a_line_have_no_answer_wherever_rounding_falls(kind, poses):
    """Robots and poses at random: of a ball some in a hundred were answered, by the mass matrix one in ten."""
    rng = np.random.default_rng(poses)
    for _ in range(poses):
        system = on_a_line(kind, rng)
        q, tau = system.random_configuration(rng), rng.normal(size=system.nv)
        for call in one_by_one(system, q, tau):
            with pytest.raises(SingularError):
                call()
        system = geared(system, rng)
        q, tau = system.random_configuration(rng), rng.normal(size=system.nv)
        for call in of_gears(system, q, tau):
            with pytest.raises(SingularError):
                call()


@pytest.mark.parametrize(("kind", "pose"), [("ball", 579), ("gimbal", 628)])
def test_what_rounds_beside_gears_is_what_an_axis_carries(kind, pose):
    """An axis that feels little of a mass: its diagonal entry is a difference, and says too little of its rounding."""
    rng = np.random.default_rng(2000)
    for _ in range(pose + 1):
        system = on_a_line(kind, rng)
        system.random_configuration(rng), rng.normal(size=system.nv)
        system = geared(system, rng)
        q, tau = system.random_configuration(rng), rng.normal(size=system.nv)
    for lead in ((), (3,)):
        for call in list(of_gears(system, np.broadcast_to(q, (*lead, len(q))), tau))[: -1 if lead else None]:
            with pytest.raises(SingularError):
                call()


def test_what_is_prescribed_beside_gears_needs_no_inertia():
    """The ball of a point mass has no answer, but where its motion is given the gear beside it has one."""
    rng = np.random.default_rng(4)
    system = geared(on_a_line("ball", rng), rng)
    q, tau, a = system.random_configuration(rng), rng.normal(size=4), rng.normal(size=4)
    held = np.array([False, True, True, True])
    forces, found = kf.hybrid_dynamics(system, q, None, tau, a, prescribed=held)
    np.testing.assert_array_equal(found[held], a[held])
    np.testing.assert_allclose(forces[~held], tau[~held])
    np.testing.assert_allclose(kf.inverse_dynamics(system, q, None, found), forces, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["three axes", "an axis and a universal", "a ball on an arm"])
def test_torques_alone_do_not_tell_what_has_no_inertia(kind):
    """Of 600 such robots 14 were answered, by rounding."""
    rng = np.random.default_rng(1)
    for cov in (0.0, 0.1):
        for _ in range(60):
            system = on_a_line(kind, rng)
            q, tau = system.random_configuration(rng), rng.normal(size=system.nv)
            with pytest.raises(UnobservableError):
                kf.estimate_dynamics(system, q, None, [kf.sensors.JointTorque(cov)], [tau])


@pytest.mark.parametrize("cov", [0.0, 0.1])
def test_torques_alone_do_not_tell_what_gears_leave_without_inertia(cov):
    """Four axes through one point, two of them on a gear, carry a point mass: of 50 robots 4 were answered."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        point = spatial_inertia(10.0 ** rng.uniform(-3, 3), rng.normal(size=3), np.zeros((3, 3)))
        inertias = [np.zeros((6, 6))] * 3 + [point]
        names = [f"hinge_{k}" for k in range(4)]
        bodies = [
            kf.Body(
                f"link_{k}", inertia, kf.Hinge.revolute(unit(rng)), f"link_{k - 1}" if k else None, hinge_name=names[k]
            )
            for k, inertia in enumerate(inertias)
        ]
        system = kf.System(bodies, couplings=[kf.Coupling(["hinge_1", "hinge_3"], [1.0, rng.normal()])])
        q, tau = system.random_configuration(rng), rng.normal(size=3)
        with pytest.raises(UnobservableError, match="hinge_"):
            kf.estimate_dynamics(system, q, None, [kf.sensors.JointTorque(cov)], [tau])


def test_what_a_hinge_feels_little_of_is_answered_all_the_same():
    """A rod a thousandth as thick as long, on a ball: large gains, and digits enough; alone and in a batch."""
    rng = np.random.default_rng(0)
    rod = spatial_inertia(2.0, [0.0, 0.0, 0.5], np.diag([1 / 6, 1 / 6, 1e-7]))
    system = kf.System([kf.Body("rod", rod, kf.Hinge.ball())])
    q = np.stack([system.random_configuration(rng) for _ in range(50)])
    turned = [kf.System([dataclasses.replace(system.bodies[0], rotation=rotation(rng))]) for _ in range(20)]
    for own in (system, *turned):
        M, tau = kf.mass_matrix(own, q), rng.normal(size=(50, 3))
        for method in ("filter", "engine", "mass_matrix"):
            a = kf.forward_dynamics(own, q, None, tau, gravity=np.zeros(3), method=method)
            rounding = 1e-14 * np.abs(M).max() * np.abs(a).max()  # a is up to 1e7 rad/s²
            np.testing.assert_allclose((M @ a[..., None])[..., 0], tau, rtol=0, atol=rounding)


def rotation(rng):
    made, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return made * np.linalg.det(made)


@pytest.mark.filterwarnings("ignore::kfdyn.io.load_result.LoadWarning")
@pytest.mark.parametrize("file", [f for f in example_robots() if f.stem == "icub"], ids=lambda f: f.stem)
def test_the_neck_of_icub(file):
    """Its head is a point mass, 4e-7 m beside an axis: forward dynamics said 2e17 rad/s²."""
    system = kf.load(file)
    for call in answers(system, system.neutral()):
        with pytest.raises(SingularError, match="neck_"):
            call()
