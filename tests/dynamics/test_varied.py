"""Batches over robots that differ: to the bit what each robot gives as a system of its own, and Pinocchio's answers."""

import pickle

import numpy as np
import pytest
from varied_cases import one_by_one, same, varied

import kfdyn as kf
from kfdyn.dynamics.forward import FORWARD
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.multibody.calls.packed_model import model_of

pytestmark = pytest.mark.filterwarnings("ignore::kfdyn.spatial.TriangleInequalityWarning")


def geared():
    arm = kf.models.puma560()
    return kf.System(arm.bodies, couplings=[kf.Coupling(list(arm.hinge_names[1:3]), [[1.0], [0.5]])])


def cam():
    arm = kf.models.puma560()
    following = kf.Coupling.by_functions("joint_2", {"joint_3": [0.1, 0.5, 0.2]})
    return kf.System(arm.bodies, couplings=[following])


TREES = {
    "arm": kf.models.puma560, "humanoid": kf.models.humanoid, "pendulum": kf.models.pendulum,
    "tree": lambda: kf.models.random_tree(12, 3), "forest": lambda: kf.models.random_tree(9, 5, trees=3),
}  # fmt: skip
ROBOTS = TREES | {"geared": geared}


def states(batch, rng):
    q, nv = batch.random_configuration(rng), batch.nv
    return q, *rng.normal(size=(3, batch.size, nv)), rng.normal(size=(batch.size, batch.n_bodies, 6))


def hybrid(system, q, v, tau, a):
    return np.stack(kf.hybrid_dynamics(system, q, v, tau, a, np.arange(system.nv) % 3 == 0), axis=-2)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("size", [1, 5, 19])
def test_dynamics_to_the_bit(name, size):
    rng = np.random.default_rng(size)
    batch = varied(ROBOTS[name](), size, rng)
    q, v, a, tau, push = states(batch, rng)
    for function, arguments in (
        (kf.forward_dynamics, (q, v, tau, push)), (kf.inverse_dynamics, (q, v, a, push)), (kf.bias_forces, (q, v)),
        (hybrid, (q, v, a, a)), (kf.mass_matrix, (q,)), (kf.mass_matrix_inverse, (q,)), (kf.mass_matrix_logdet, (q,)),
        (kf.gravity_torques, (q,)), (kf.forward_dynamics_derivatives, (q, v, tau)),
        (kf.inverse_dynamics_derivatives, (q, v, a)), (kf.kinetic_energy, (q, v)), (kf.potential_energy, (q,)),
        (kf.center_of_mass, (q,)), (kf.momentum, (q, v)), (kf.centroidal_momentum, (q, v)),
    ):  # fmt: skip
        same(function(batch, *arguments), one_by_one(function, batch, *arguments))


@pytest.mark.parametrize("name", TREES)
def test_kinematics_and_the_rest_to_the_bit(name):
    rng = np.random.default_rng(7)
    batch = varied(TREES[name](), 11, rng)
    q, v, a, _, _ = states(batch, rng)
    tip = batch.body_names[-1]
    for function, arguments in (
        (kf.frame_pose, (q, tip)), (kf.frame_velocity, (q, v, tip)), (kf.frame_acceleration, (q, v, a, tip)),
        (kf.jacobian, (q, tip)), (kf.operational_space_compliance, (q, [tip])),
        (kf.frame_velocity_derivatives, (q, v, tip)), (kf.mass_matrix_logdet_gradient, (q,)),
        (kf.integrate, (q, v)), (kf.computed_torque, (q, v, q, v, a, 2.0, 1.0)), (kf.torque_regressor, (q, v, a)),
    ):  # fmt: skip
        same(function(batch, *arguments), one_by_one(function, batch, *arguments))


def test_hinges_that_follow_polynomials():
    rng = np.random.default_rng(2)
    batch = varied(cam(), 9, rng)
    q, v, a, tau, push = states(batch, rng)
    same(kf.forward_dynamics(batch, q, v, tau, push), one_by_one(kf.forward_dynamics, batch, q, v, tau, push))
    same(kf.inverse_dynamics(batch, q, v, a), one_by_one(kf.inverse_dynamics, batch, q, v, a))


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("method", ["euler", "rk4", "implicit"])
def test_motions_to_the_bit(name, method):
    rng = np.random.default_rng(4)
    batch = varied(ROBOTS[name](), 9, rng)
    q, v, tau = batch.random_configuration(rng), *(0.1 * rng.normal(size=(2, batch.size, batch.nv)))
    t = np.linspace(0, 0.05, 6)

    def drag(t, q, v):
        return -0.1 * v

    for torque, damping, stiffness in ((tau, True, True), (drag, True, False), (None, 0.2, False)):
        own = {"method": method, "damping": damping, "stiffness": stiffness, "substeps": 2}
        found = kf.simulate(batch, q, v, t, torque, **own)
        for i, system in enumerate(batch):
            alone = kf.simulate(system, q[i], v[i], t, torque[i] if torque is tau else torque, **own)
            for what in ("q", "v", "tau", "kinetic", "potential", "work", "momentum"):
                np.testing.assert_array_equal(getattr(found, what)[:, i], getattr(alone, what), what)
        assert found[3].report() == alone.report() or found[batch.size - 1].report() == alone.report()


def test_leading_axes():
    """The last one is that of the robots; a q without any is that of all."""
    rng = np.random.default_rng(0)
    batch = varied(kf.models.puma560(), 5, rng)
    q, v, tau = rng.normal(size=(3, 4, 3, 5, 6))
    a = kf.forward_dynamics(batch, q, v, tau)
    assert a.shape == (4, 3, 5, 6)
    for i, system in enumerate(batch):
        same(a[:, :, i], (kf.forward_dynamics(system, q[:, :, i], v[:, :, i], tau[:, :, i]),))
    one = kf.mass_matrix(batch, q[0, 0, 0])
    same(one, (np.array([kf.mass_matrix(system, q[0, 0, 0]) for system in batch]),))
    same(kf.mass_matrix(batch, q[:, :1, :1]), (kf.mass_matrix(batch, np.repeat(q[:, :1, :1], 5, axis=2)),))
    with pytest.raises(ShapeError, match=r"robots \(5,\)"):
        kf.mass_matrix(batch, q[0, 0, :4])
    alone = varied(kf.models.puma560(), 1, rng)
    with pytest.raises(ShapeError, match="that of the 1 robots"):
        kf.mass_matrix(alone, q[0, 0])


def test_what_is_given_and_what_stays():
    arm = kf.models.puma560()
    batch = kf.with_parameters(arm, masses={"link_2": [10.0, 20.0]}, damping={"joint_1": [1.0, 2.0]})
    for i, (mass, damping) in enumerate(((10.0, 1.0), (20.0, 2.0))):
        system = batch[i]
        assert system.bodies[1].inertia[3, 3] == mass and system.damping[0] == damping
        was, now = (kf.spatial.inertia_parameters(x.bodies[1].inertia) for x in (arm, system))
        np.testing.assert_allclose(now.com, was.com, rtol=1e-14)
        np.testing.assert_allclose(now.inertia_com, was.inertia_com, rtol=1e-12, atol=1e-15)
        for k in (0, 2, 3, 4, 5):
            assert np.array_equal(system.bodies[k].inertia, arm.bodies[k].inertia)
    plain = kf.with_parameters(arm)
    assert plain.size == 1 and np.array_equal(
        kf.mass_matrix(plain, arm.neutral())[0], kf.mass_matrix(arm, arm.neutral())
    )
    again = pickle.loads(pickle.dumps(batch))
    same(kf.mass_matrix(again, arm.neutral()), (kf.mass_matrix(batch, arm.neutral()),))


def test_plainly():
    """The recursion as it stands, on Python's floats, every index checked."""
    rng = np.random.default_rng(1)
    batch = varied(kf.models.random_tree(5, 2), 3, rng)
    q, v, _, tau, _ = states(batch, rng)
    a = np.empty((3, batch.nv))
    entry = FORWARD.variants["varied tree"].entry
    assert entry.plain(model_of(batch), q, v, tau, None, batch.gravity, a) == 1
    np.testing.assert_allclose(a, kf.forward_dynamics(batch, q, v, tau), rtol=1e-9, atol=1e-9)


def test_rows_without_an_answer_are_told_by_robot():
    bob = kf.models.pendulum()
    batch = kf.with_parameters(
        bob, masses={"bob": [1.0, 0.0, 2.0]}, coms={"bob": [[0, 0, -1.0], [0, 0, 0], [0, 0, -1.0]]}
    )
    with pytest.raises(SingularError, match="robot 1: hinge 'pivot': nothing outboard of it has mass"):
        kf.forward_dynamics(batch, [0.5], None, [0.0])
    light = kf.with_parameters(bob, masses={"bob": np.array([1e-300, 1.0])})  # far below what the filter takes for sure
    same(kf.mass_matrix_inverse(light, [0.5]), one_by_one(kf.mass_matrix_inverse, light, [0.5]))


def test_exploded_motions_are_told_of():
    batch = kf.with_parameters(kf.models.double_pendulum(), damping={"shoulder": [0.0, 1e9]})
    with pytest.raises(kf.errors.KfdynError, match=r"motion \[1\]"):
        kf.simulate(batch, [0.1, 0.2], [1.0, 0.0], np.linspace(0, 10, 11), method="euler", damping=True)


def test_what_takes_one_robot_says_so():
    batch = kf.with_parameters(kf.models.puma560(), masses={"link_2": [10.0, 20.0]})
    q, reading = np.zeros(6), kf.sensors.JointPosition(1.0)
    for call in (
        lambda: kf.as_estimation(batch, q), lambda: kf.modes(batch, q), lambda: kf.with_parameters(batch),
        lambda: kf.forward_dynamics(batch, q, q, q, method="engine"), lambda: kf.mass_matrix_sparsity(batch),
        lambda: kf.simulate(batch, q, q, [0, 1.0], method="symplectic"),
        lambda: kf.simulate(batch, q, q, [0, 1.0], friction=True), lambda: kf.acceleration_causes(batch, q, q, q),
        lambda: kf.MotionModel(batch, 0.1, [reading], force_noise=np.ones(6)),
        lambda: kf.multibody.link_terms(batch, q),
        lambda: kf.estimate_dynamics(batch, q, q, [kf.sensors.JointTorque(1.0)], [q]),
    ):  # fmt: skip
        with pytest.raises(ModelError, match="takes one robot"):
            call()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"masses": np.ones((3, 5))}, ShapeError, r"masses must have shape \(B, 6\), got \(3, 5\)"),
        ({"masses": {"elbow": [1.0]}}, ModelError, "masses of 'elbow'.*it has link_1"),
        ({"masses": {"link_2": [1.0, -1.0]}}, ModelError, r"'link_2'\[1\]: mass -1 is negative"),
        ({"masses": {"link_2": [1.0, np.nan]}}, ModelError, "not finite"),
        ({"masses": {"link_2": [1.0, 2.0]}, "damping": np.ones((3, 6))}, ShapeError, "masses 2, damping 3"),
        ({"armature": {"joint_1": [1.0, -2.0]}}, ModelError, "armature of dof 'joint_1' of robot 1 is negative"),
        ({"coms": {"link_2": [[1.0, 2.0]]}}, ShapeError, r"coms\['link_2'\] must have shape"),
    ],
)
def test_bad_parameters(given, error, words):
    with pytest.raises(error, match=words):
        kf.with_parameters(kf.models.puma560(), **given)


def test_systems_that_are_not_served():
    loop = kf.models.four_bar()
    with pytest.raises(ModelError, match="loops are not served"):
        kf.with_parameters(loop)
