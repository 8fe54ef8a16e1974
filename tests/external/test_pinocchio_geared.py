"""Everything that is read off a system with couplings, against Pinocchio's open tree and X by NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robot_agreement import example_robots, label

import kfdyn as kf
from kfdyn.multibody.models.random_bodies import KINDS

pin = pytest.importorskip("pinocchio")
from pinocchio_models import pinocchio_model  # noqa: E402

LWA = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
HINGES = tuple(kind for kind in KINDS if kind not in ("custom", "succession"))
ROBOTS = [file for file in example_robots() if file.stem in ("panda", "talos_full_v2")]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-11 * max(1.0, np.abs(expected).max()))


def angular_first(motion):
    return np.concatenate([motion.angular, motion.linear])


def by_numpy(system):
    """X of positions and of rates, and offsets, entry by entry from what the couplings say."""
    tree = system.open_tree
    of_q, of_v, offset = np.zeros((tree.nq, system.nq)), np.zeros((tree.nv, system.nv)), np.zeros(tree.nq)
    coupled = {name for c in system.couplings for name in c.hinges}
    for name in set(tree.hinge_names) - coupled:
        here, there = system.q_slice(name), tree.q_slice(name)
        of_q[there, here] = np.eye(here.stop - here.start)
        here, there = system.v_slice(name), tree.v_slice(name)
        of_v[there, here] = np.eye(here.stop - here.start)
    for c in system.couplings:
        for i, name in enumerate(c.hinges):
            offset[tree.q_slice(name)] = c.offset[i]
            for j, own in enumerate(c.hinges[: c.X.shape[1]]):
                of_q[tree.q_slice(name), system.q_slice(own)] = c.X[i, j]
                of_v[tree.v_slice(name), system.v_slice(own)] = c.X[i, j]
    return of_q, of_v, offset


def assert_same(system, rng, frames):
    """Ten states at once, two of them alone."""
    of_q, X, offset = by_numpy(system)
    oracle = pinocchio_model(system.open_tree)
    model, data, place = oracle.model, oracle.data, oracle.v_index
    q, q2 = (np.stack([system.random_configuration(rng) for _ in range(10)]) for _ in range(2))
    v, a = rng.normal(size=(2, 10, system.nv))

    def readings(q, v, a, q2):
        named = {}
        for name in frames:
            pose = kf.frame_pose(system, q, name)
            named[name] = (
                pose.rotation,
                pose.position,
                kf.frame_velocity(system, q, v, name),
                kf.frame_acceleration(system, q, v, a, name),
                kf.jacobian(system, q, name),
            )
        sums = (
            system.expand(q),
            kf.center_of_mass(system, q),
            kf.potential_energy(system, q),
            kf.kinetic_energy(system, q, v),
            kf.centroidal_momentum(system, q, v),
            kf.momentum(system, q, v),
            kf.integrate(system, q, v),
            kf.difference(system, q, q2),
        )
        return named, sums

    every = readings(q, v, a, q2)
    for b in (0, 9):
        whole = {name: [x[b] for x in of] for name, of in every[0].items()}, [x[b] for x in every[1]]
        for named, sums in (whole, readings(q[b], v[b], a[b], q2[b])):
            q_tree = of_q @ q[b] + offset
            qp, vp, ap = oracle.q(q_tree), oracle.v(X @ v[b]), oracle.v(X @ a[b])
            pin.forwardKinematics(model, data, qp, vp, ap)
            pin.updateFramePlacements(model, data)
            pin.computeJointJacobians(model, data, qp)
            for name, (rotation, position, V, A, J) in named.items():
                i = oracle.frame[name]
                close(rotation, data.oMf[i].rotation)
                close(position, data.oMf[i].translation)
                close(V, angular_first(pin.getFrameVelocity(model, data, i, LWA)))
                close(A, angular_first(pin.getFrameClassicalAcceleration(model, data, i, LWA)))
                close(J, pin.getFrameJacobian(model, data, i, LWA)[[3, 4, 5, 0, 1, 2]][:, place] @ X)
            expanded, com, potential, kinetic, centroidal, momentum, moved, apart = sums
            close(expanded, q_tree)
            close(com, pin.centerOfMass(model, data, qp))
            close(potential, pin.computePotentialEnergy(model, data, qp))
            M = np.triu(pin.crba(model, data, qp))  # with rotors, which Pinocchio's kinetic energy may leave out
            close(kinetic, 0.5 * vp @ (M + np.triu(M, 1).T) @ vp)
            h = angular_first(pin.computeCentroidalMomentum(model, data, qp, vp))
            close(centroidal, h)
            close(momentum, np.concatenate([h[:3] + np.cross(com, h[3:]), h[3:]]))
            left = pin.difference(model, oracle.q(of_q @ moved + offset), pin.integrate(model, qp, vp))
            np.testing.assert_allclose(left, 0, rtol=0, atol=1e-11)
            close(oracle.v(X @ apart), pin.difference(model, qp, oracle.q(of_q @ q2[b] + offset)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_random_couplings(seed):
    """Gears, differentials, offsets and zero ratios on ragged trees; a coordinate may have no hinge of its own."""
    rng = np.random.default_rng(seed)
    tree = kf.models.random_tree(int(rng.integers(4, 16)), seed=seed, hinges=HINGES)
    if any(not b.hinge.nv for b in tree.bodies if b.parent is None):
        return  # Pinocchio leaves bodies that are fixed to the world out of its sums
    one = [b.hinge_name for b in tree.bodies if b.hinge.nv == 1]
    rng.shuffle(one)
    couplings = []
    while len(one) > 1 and len(couplings) < 3:
        group, one = one[:3], one[3:]
        r = int(rng.integers(1, len(group) + 1))
        X = rng.normal(size=(len(group), r))
        if r == 1:
            X[-1] = 0.0
        couplings.append(kf.Coupling(group, X, rng.normal(size=len(group))))
    if couplings:
        assert_same(tree.with_couplings(couplings), rng, tree.body_names[::3])


@pytest.mark.parametrize("file", ROBOTS, ids=label)
def test_robots_with_mimic_joints(file):
    """As they are loaded; the second on a floating base."""
    system = kf.load(file, floating_base=file.stem != "panda")
    follower = next(c.hinges[-1] for c in system.couplings)
    frames = [system.body_names[system.hinge_index(follower)], *system.body_names[::9]]
    assert_same(system, np.random.default_rng(1), frames)


def assert_same_dynamics(system, rng, frames):
    """Hybrid dynamics, log-determinant, compliance and controllers of ten states at once, and of two of them alone."""
    of_q, X, offset = by_numpy(system)
    oracle = pinocchio_model(system.open_tree)
    model, data, place = oracle.model, oracle.data, oracle.v_index
    q = np.stack([system.random_configuration(rng) for _ in range(10)])
    v, tau, a = rng.normal(size=(3, 10, system.nv))
    q_d = kf.integrate(system, q, 0.3 * rng.normal(size=v.shape))
    held = rng.random(system.nv) < 0.5
    goal, gains, axes = kf.frame_pose(system, q[0], frames[0]), (30.0, 11.0), (3, 4, 5)

    def answers(q, v, tau, a, q_d):
        return (
            *kf.hybrid_dynamics(system, q, v, tau, a, held),
            kf.mass_matrix_logdet(system, q),
            kf.operational_space_compliance(system, q, frames),
            kf.computed_torque(system, q, v, q_d, v, a, *gains),
            kf.operational_space_control(system, q, v, frames[0], goal, *gains, posture=tau, axes=axes),
        )

    every = answers(q, v, tau, a, q_d)
    for b in (0, 9):
        qp, vp = oracle.q(of_q @ q[b] + offset), oracle.v(X @ v[b])
        M = np.triu(pin.crba(model, data, qp))
        M = X.T @ (M + np.triu(M, 1).T)[np.ix_(place, place)] @ X
        c = X.T @ pin.nonLinearEffects(model, data, qp, vp)[place]
        pin.forwardKinematics(model, data, qp, vp, 0 * vp)
        pin.updateFramePlacements(model, data)
        pin.computeJointJacobians(model, data, qp)
        J = np.concatenate(
            [pin.getFrameJacobian(model, data, oracle.frame[x], LWA)[[3, 4, 5, 0, 1, 2]][:, place] @ X for x in frames]
        )
        known = np.where(held, a[b], 0.0)
        known[~held] = np.linalg.solve(M[np.ix_(~held, ~held)], (tau[b] - c - M @ known)[~held])
        way = np.linalg.lstsq(X, pin.difference(model, qp, oracle.q(of_q @ q_d[b] + offset))[place], rcond=None)[0]
        first = oracle.frame[frames[0]]
        drift = pin.getFrameClassicalAcceleration(model, data, first, LWA).linear
        free = J[3:6] @ np.linalg.solve(M, tau[b] - c) + drift
        wanted = gains[0] * (goal.position - data.oMf[first].translation) - gains[1] * (J[3:6] @ v[b])
        f = np.linalg.solve(J[3:6] @ np.linalg.solve(M, J[3:6].T), wanted - free)
        expected = (
            np.where(held, M @ known + c, tau[b]),
            known,
            np.linalg.slogdet(M)[1],
            J @ np.linalg.solve(M, J.T),
            M @ (a[b] + gains[0] * way) + c,
            tau[b] + J[3:6].T @ f,
        )
        for found in ([x[b] for x in every], answers(q[b], v[b], tau[b], a[b], q_d[b])):
            for one, other in zip(found, expected):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("file", ROBOTS, ids=label)
def test_dynamics_of_robots_with_mimic_joints(file):
    system = kf.load(file, floating_base=file.stem != "panda")
    follower = next(c.hinges[-1] for c in system.couplings)
    assert_same_dynamics(system, np.random.default_rng(2), [system.body_names[system.hinge_index(follower)]])
