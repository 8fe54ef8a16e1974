"""Derivatives of forward and inverse dynamics against Pinocchio's analytical ones, to 1e-10, every hinge it has."""

import numpy as np
import pytest

import kfdyn as kf
import kfdyn.multibody as mb

pin = pytest.importorskip("pinocchio")
from pinocchio_models import pinocchio_model  # noqa: E402
from robot_agreement import INDEFINITE, bullet_robots, example_robots, label  # noqa: E402

from kfdyn.errors import SingularError  # noqa: E402

#: Its composite joints (gimbal, universal, cylindrical as here) have no derivatives; differences serve those elsewhere.
HINGES = ("revolute", "prismatic", "ball", "free", "fixed")


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max(initial=0.0)))


def assert_same(system, q, rng):
    oracle = pinocchio_model(system)
    model, data, at = oracle.model, oracle.data, oracle.v_index
    v, u = rng.normal(size=(2, len(q), system.nv))
    ours = kf.forward_dynamics_derivatives(system, q, v, u), kf.inverse_dynamics_derivatives(system, q, v, u)
    for b in range(len(q)):
        x, y, z = oracle.q(q[b]), np.zeros(model.nv), np.zeros(model.nv)
        y[at], z[at] = v[b], u[b]
        theirs = [np.array(m) for m in pin.computeABADerivatives(model, data, x, y, z)]
        theirs[2] = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
        for one, other in zip(ours[0], theirs):
            close(one[b], other[np.ix_(at, at)])
        theirs = [np.array(m) for m in pin.computeRNEADerivatives(model, data, x, y, z)]
        theirs[2] = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
        for one, other in zip(ours[1], theirs):
            close(one[b], other[np.ix_(at, at)])


@pytest.mark.parametrize("seed", range(6))
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    system = mb.models.random_tree(9, seed, HINGES, 1 + seed % 2, rng.uniform(), armature=seed % 2 == 1)
    system = mb.System(system.bodies, rng.normal(size=3))
    assert_same(system, np.stack([system.random_configuration(rng) for _ in range(3)]), rng)


@pytest.mark.parametrize("make", [kf.models.puma560, kf.models.stanford_arm, kf.models.humanoid, kf.models.free_flyer])
def test_robots_at_random_and_at_rest(make):
    system, rng = make(), np.random.default_rng(0)
    assert_same(system, np.stack([system.neutral(), system.random_configuration(rng)]), rng)


@pytest.mark.parametrize("tips", [["right_foot"], ["right_foot", "left_foot", "right_hand"]])
def test_contacts_of_a_humanoid(tips):
    """Feet and a hand that are held, against Pinocchio's derivatives of constrained dynamics."""
    body, rng = kf.models.humanoid(), np.random.default_rng(len(tips))
    q = kf.integrate(body, body.neutral(), 0.3 * rng.normal(size=body.nv))
    system = body.with_loops([kf.Loop(tip, None) for tip in tips])
    v, tau = rng.normal(size=(2, body.nv))
    J = np.concatenate([kf.jacobian(body, q, tip) for tip in tips])
    v = v - np.linalg.pinv(J) @ (J @ v)
    oracle = pinocchio_model(body)
    model, at = oracle.model, oracle.v_index
    joints = [max(k for k, name in enumerate(model.names) if name.startswith(tip + ":")) for tip in tips]
    held = pin.StdVec_RigidConstraintModel()
    for joint in joints:
        held.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, joint, pin.SE3.Identity(), pin.LOCAL))
    data, own = model.createData(), pin.StdVec_RigidConstraintData()
    for one in held:
        own.append(one.createData())
    pin.initConstraintDynamics(model, data, held, own)
    x, y, z = oracle.q(q), np.zeros(model.nv), np.zeros(model.nv)
    y[at], z[at] = v, tau
    a = pin.constraintDynamics(model, data, x, y, z, held, own, pin.ProximalSettings(1e-14, 0.0, 1))
    close(kf.forward_dynamics(system, q, v, tau), a[at])
    pin.computeConstraintDynamicsDerivatives(model, data, held, own)
    ours = kf.forward_dynamics_derivatives(system, q, v, tau)
    for one, other in zip(ours, (data.ddq_dq, data.ddq_dv, data.ddq_dtau)):
        close(one, np.array(other)[np.ix_(at, at)])


def poses(system, rng):
    """Neutral, right angles on every hinge of one dof, and two random ones."""
    neutral = system.neutral()
    turned = kf.integrate(system, neutral, np.where(single_dofs(system), np.pi / 2, 0.0))
    return np.stack([neutral, turned, *(system.random_configuration(rng) for _ in range(2))])


def single_dofs(system):
    return np.repeat(np.diff(system.layout.v_start) == 1, np.diff(system.layout.v_start))


def check_public_robot(file, floating_base):
    """Both derivatives in our tangent coordinates: Pinocchio's v is X v, so τ = X*τ', a = X⁻¹a'."""
    try:
        model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floating_base else []))
    except (ValueError, RuntimeError):
        return False
    if model.nv == 0:
        return False
    indefinite = "warn" if file.stem in INDEFINITE else "refuse"
    system = kf.read(file, floating_base=floating_base, indefinite_inertia=indefinite, mimic="free").system
    data, rng = model.createData(), np.random.default_rng(3)
    q = poses(system, rng)
    v, u = rng.normal(size=(2, len(q), system.nv))
    there = kf.to_pinocchio(system, model, q, v, u, u)
    tau = kf.inverse_dynamics_derivatives(system, q, v, u)
    for b in range(len(q)):
        X = kf.to_pinocchio(system, model, np.tile(q[b], (system.nv, 1)), np.eye(system.nv)).v.T
        theirs = pin.computeRNEADerivatives(model, data, there.q[b], there.v[b], there.a[b])
        M = X.T @ symmetric(theirs[2]) @ X
        for ours, other in zip(tau, (X.T @ theirs[0] @ X, X.T @ theirs[1] @ X, M)):
            assert_close(ours[b], other, 1e-10)
        try:
            a = kf.forward_dynamics_derivatives(system, q[b], v[b], u[b])
        except SingularError:  # mass-less grippers and plates, gimbals at a right angle: nobody has an answer
            assert np.linalg.cond(M) > 1e12
        else:
            theirs = pin.computeABADerivatives(model, data, there.q[b], there.v[b], there.tau[b])
            back = np.linalg.inv(X)
            expected = (back @ theirs[0] @ X, back @ theirs[1] @ X, back @ symmetric(theirs[2]) @ back.T)
            # Two different eliminations differ by up to eps times the condition number of the mass matrix.
            bound = max(1e-10, 4 * np.finfo(float).eps * np.linalg.cond(M))
            for ours, other in zip(a, expected):
                assert_close(ours, other, bound)
    return True


def symmetric(upper):
    return np.triu(upper) + np.triu(upper, 1).T


def assert_close(ours, theirs, bound):
    assert np.abs(ours - theirs).max() < bound * max(np.abs(theirs).max(), 1.0)


PUBLIC = [*example_robots(), *bullet_robots()]
SAMPLE = {"ur5_robot", "panda", "solo12", "double_pendulum", "kinova"}
BASES = pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])


@BASES
@pytest.mark.parametrize("file", [file for file in PUBLIC if file.stem in SAMPLE], ids=label)
def test_some_public_robots(file, floating_base):
    assert check_public_robot(file, floating_base)


@pytest.mark.slow
@BASES
def test_every_public_robot(floating_base):
    """All of example-robot-data's, and pybullet's, that Pinocchio loads."""
    assert sum(check_public_robot(file, floating_base) for file in PUBLIC) > 100
