"""Poses, velocities, Jacobians, accelerations, energies and momenta against Pinocchio.

Asserts R86:5.1-5.3 (velocities), R86:5.4-5.5 and R86:5.6 (accelerations and their bias), R86:3.2 (kinetic
energy), SRB:quasi (angular velocity as generalised velocity).
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kfdyn.multibody as mb
from kfdyn.multibody.models.random_bodies import KINDS, random_rotation
from kfdyn.spatial import inertia_parameters

pin = pytest.importorskip("pinocchio")
from pinocchio_models import pin_inertia, pinocchio_model  # noqa: E402

LWA = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
HINGES = tuple(kind for kind in KINDS if kind not in ("custom", "succession"))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(expected).max()))


def angular_first(motion):
    return np.concatenate([motion.angular, motion.linear])


def framed(system, rng):
    """The same bodies in another order, with a frame on one of them."""
    bodies = [system.bodies[i] for i in rng.permutation(system.n_bodies)]
    tool = mb.Frame(bodies[0].name, random_rotation(rng, 1)[0], rng.normal(size=3))
    return mb.System(bodies, gravity=rng.normal(size=3), frames={"tool": tool})


def assert_same(system, rng, batch=2):
    oracle = pinocchio_model(system)
    model, data = oracle.model, oracle.data
    q = np.stack([system.random_configuration(rng) for _ in range(batch)])
    v, a = rng.normal(size=(2, batch, system.nv))
    ours = {
        name: (
            mb.frame_pose(system, q, name),
            mb.frame_velocity(system, q, v, name),
            mb.jacobian(system, q, name),
            mb.frame_bias_acceleration(system, q, v, name),
            mb.frame_acceleration(system, q, v, a, name),
        )
        for name in oracle.frame
    }
    for b in range(batch):
        qp, vp, ap = oracle.q(q[b]), oracle.v(v[b]), oracle.v(a[b])
        pin.forwardKinematics(model, data, qp, vp, ap)
        pin.updateFramePlacements(model, data)
        pin.computeJointJacobians(model, data, qp)
        for name, i in oracle.frame.items():
            pose, V, J, _, A = ours[name]
            close(pose.rotation[b], data.oMf[i].rotation)
            close(pose.position[b], data.oMf[i].translation)
            close(V[b], angular_first(pin.getFrameVelocity(model, data, i, LWA)))
            close(A[b], angular_first(pin.getFrameClassicalAcceleration(model, data, i, LWA)))
            J_pin = pin.getFrameJacobian(model, data, i, LWA).reshape(6, -1)[[3, 4, 5, 0, 1, 2]]
            close(J[b], J_pin[:, oracle.v_index])
        pin.forwardKinematics(model, data, qp, vp, 0 * vp)
        for name, i in oracle.frame.items():
            close(ours[name][3][b], angular_first(pin.getFrameClassicalAcceleration(model, data, i, LWA)))
        close(mb.center_of_mass(system, q[b]), pin.centerOfMass(model, data, qp))
        close(mb.potential_energy(system, q[b]), pin.computePotentialEnergy(model, data, qp))
        # Pinocchio 4's computeKineticEnergy leaves the armature of unaligned revolute joints out; its crba does not
        M = np.triu(pin.crba(model, data, qp))
        M = M + np.triu(M, 1).T
        close(mb.kinetic_energy(system, q[b], v[b]), 0.5 * vp @ M @ vp)
        close(
            mb.centroidal_momentum(system, q[b], v[b]),
            angular_first(pin.computeCentroidalMomentum(model, data, qp, vp)),
        )
        # q and -q are the same rotation: compare configurations by the motion between them
        moved = oracle.q(mb.integrate(system, q[b], v[b]))
        left = pin.difference(model, moved, pin.integrate(model, qp, vp))
        np.testing.assert_allclose(left, 0, rtol=0, atol=1e-12)
        q2 = system.random_configuration(rng)
        close(oracle.v(mb.difference(system, q[b], q2)), pin.difference(model, qp, oracle.q(q2)))


@pytest.mark.parametrize("kind", [kind for kind in HINGES if kind != "fixed"])
def test_each_hinge(kind):
    rng = np.random.default_rng(len(kind))
    assert_same(framed(mb.models.random_tree(4, seed=7, hinges=[kind]), rng), rng)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 15), st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 1.0]), st.integers(1, 2))
def test_random_forests(n, seed, branching, trees):
    system = mb.models.random_tree(n, seed, hinges=HINGES, branching=branching, trees=trees)
    # Pinocchio leaves bodies that are fixed to the world out of its sums
    assume(all(b.hinge.nv for b in system.bodies if b.parent is None))
    rng = np.random.default_rng(seed)
    assert_same(framed(system, rng), rng)


@pytest.mark.filterwarnings("ignore::kfdyn.spatial.TriangleInequalityWarning")  # the published PUMA 560
@pytest.mark.parametrize("make", ["puma560", "stanford_arm", "free_flyer", "humanoid"])
def test_ready_made_systems(make):
    rng = np.random.default_rng(1)
    assert_same(framed(getattr(mb.models, make)(), rng), rng)


def test_screws_off_the_origin():
    rng = np.random.default_rng(5)
    screws = [np.concatenate([a / np.linalg.norm(a), u]) for a, u in rng.normal(size=(3, 2, 3))]
    bodies = [
        mb.Body(f"b{k}", mb.models.chain(1, seed=k).bodies[0].inertia, mb.Hinge.succession(screws), parent)
        for k, parent in enumerate([None, "b0"])
    ]
    assert_same(framed(mb.System(bodies), rng), rng)


def test_floating_base():
    rng = np.random.default_rng(3)
    tree = mb.models.random_tree(10, seed=3, hinges=HINGES)
    root = mb.Body("root", tree.bodies[0].inertia, mb.Hinge.free())
    on_it = [b for b in tree.bodies if b.parent is not None]
    first = tree.bodies[0]
    on_it.append(mb.Body(first.name, first.inertia, first.hinge, "root", hinge_name=first.hinge_name))
    assert_same(framed(mb.System([*on_it, root]), rng), rng)


def native(joint):
    """One body on a joint that Pinocchio has as such."""
    rng = np.random.default_rng(0)
    body = mb.models.chain(1, seed=2).bodies[0]
    model = pin.Model()
    R, p = random_rotation(rng, 1)[0], rng.normal(size=3)
    j = model.addJoint(0, joint, pin.SE3(R, p), "joint")
    model.appendBodyToJoint(j, pin_inertia(body), pin.SE3.Identity())
    return model, model.createData(), body, R, p, j


@pytest.mark.parametrize(
    ("joint", "hinge"),
    [
        (pin.JointModelUniversal(np.eye(3)[0], np.eye(3)[2]), mb.Hinge.universal([1, 0, 0], [0, 0, 1])),
        (pin.JointModelSphericalZYX(), mb.Hinge.gimbal()),
    ],
)
def test_native_joints_of_successive_angles(joint, hinge):
    model, data, body, R, p, j = native(joint)
    system = mb.System([mb.Body("body", body.inertia, hinge, None, R, p)])
    rng = np.random.default_rng(1)
    q, v, a = rng.normal(size=(3, system.nv))
    pin.forwardKinematics(model, data, q, v, a)
    close(mb.frame_pose(system, q, "body").rotation, data.oMi[j].rotation)
    close(mb.frame_velocity(system, q, v, "body"), angular_first(pin.getVelocity(model, data, j, LWA)))
    close(
        mb.frame_acceleration(system, q, v, a, "body"),
        angular_first(pin.getClassicalAcceleration(model, data, j, LWA)),
    )


def test_native_planar_joint():
    """Pinocchio's planar velocity is in the body's frame, ours are the rates of (x, y, angle)."""
    model, data, body, R, p, j = native(pin.JointModelPlanar())
    system = mb.System([mb.Body("body", body.inertia, mb.Hinge.planar(), None, R, p)])
    q, v = np.array([0.3, -0.4, 1.1]), np.array([0.5, 0.7, -0.9])
    c, s = np.cos(q[2]), np.sin(q[2])
    rates_in_body = np.array([c * v[0] + s * v[1], -s * v[0] + c * v[1], v[2]])
    pin.forwardKinematics(model, data, np.array([q[0], q[1], c, s]), rates_in_body)
    close(mb.frame_pose(system, q, "body").rotation, data.oMi[j].rotation)
    close(mb.frame_pose(system, q, "body").position, data.oMi[j].translation)
    close(mb.frame_velocity(system, q, v, "body"), angular_first(pin.getVelocity(model, data, j, LWA)))


def test_link_terms_are_newton_euler():
    """R86:4.4 and R86:4.1-4.3: f = sum phi f(j) + M alpha + xi gives Pinocchio's inverse dynamics."""
    rng = np.random.default_rng(11)
    system = framed(mb.models.random_tree(14, seed=4, hinges=HINGES), rng)
    oracle = pinocchio_model(system)
    q, (v, a) = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    force = rng.normal(size=(system.n_bodies, 6))
    terms, layout = mb.link_terms(system, q, v, external_forces=force), system.layout
    alpha, f, tau = np.zeros((system.n_bodies, 6)), np.zeros((system.n_bodies, 6)), np.zeros(system.nv)

    def phi(k):
        x, y, z = terms.l[k]
        out = np.eye(6)
        out[:3, 3:] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
        return out

    for k in layout.order:
        own = slice(layout.v_start[k], layout.v_start[k + 1])
        above = phi(k).T @ alpha[system.parent[k]] if system.parent[k] >= 0 else np.zeros(6)
        alpha[k] = above + terms.H[own].T @ a[own] + terms.eta[k]
    for k in layout.order[::-1]:
        own = slice(layout.v_start[k], layout.v_start[k + 1])
        f[k] += terms.inertia[k] @ alpha[k] + terms.xi[k]
        tau[own] = terms.H[own] @ f[k] + layout.armature[own] * a[own]
        if system.parent[k] >= 0:
            f[system.parent[k]] += phi(k) @ f[k]
    qp = oracle.q(q)
    tau_pin = pin.rnea(oracle.model, oracle.data, qp, oracle.v(v), oracle.v(a))
    expected = tau_pin[oracle.v_index]
    for k, name in enumerate(system.body_names):
        J = mb.jacobian(system, q, name)
        expected = expected - J.T @ force[k]
    close(tau, expected)


def test_pinocchio_sees_the_same_inertia():
    system = mb.models.random_tree(3, seed=1)
    for body in system.bodies:
        mass, com, _ = inertia_parameters(body.inertia)
        built = pin_inertia(body)
        assert built.mass == pytest.approx(float(mass), rel=1e-15)
        close(built.lever, com)
        # Pinocchio keeps linear before angular
        swap = [3, 4, 5, 0, 1, 2]
        close(built.matrix()[np.ix_(swap, swap)], body.inertia)
