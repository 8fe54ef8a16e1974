"""Forward and inverse dynamics, mass matrix, its inverse and compliance against Pinocchio, to 1e-10.

Asserts R86:7-ID (rnea), R86:8.2-8.9 and R86:8.10-8.13 (aba), SKO:mass-algorithm (crba), SKO:mass-inverse
(computeMinverse), PART:20 (compliance).
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kfdyn.multibody as mb
from kfdyn.dynamics import (
    bias_forces,
    forward_dynamics,
    inverse_dynamics,
    mass_matrix,
    mass_matrix_inverse,
    operational_space_compliance,
)
from kfdyn.multibody.models.random_bodies import KINDS

pin = pytest.importorskip("pinocchio")
from pinocchio_models import pinocchio_model  # noqa: E402

#: Pinocchio has no custom hinge, and its slides have unit scale, which a random succession's have not.
HINGES = tuple(kind for kind in KINDS if kind not in ("custom", "succession"))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(expected).max(initial=0.0)))


def random_system(seed, n, base, armature):
    """Bodies in random order, one root on a free hinge if the base floats, gravity in a random direction."""
    rng = np.random.default_rng(seed)
    trees = int(rng.integers(1, min(n, 2) + 1))
    made = mb.models.random_tree(n, seed, HINGES, trees, rng.uniform(), armature)
    bodies = list(made.bodies)
    if base == "floating":
        root = bodies[0]
        rotor = rng.uniform(0.02, 0.2, 6) if armature else 0.0
        bodies[0] = mb.Body(
            root.name, root.inertia, mb.Hinge.free(), None, root.rotation, root.position, armature=rotor
        )
    bodies = [bodies[i] for i in rng.permutation(n)]
    tool = mb.Frame(bodies[0].name, position=rng.normal(size=3))
    return mb.System(bodies, rng.normal(size=3), {"tool": tool}), rng


def in_joint_frames(oracle, system, q, forces):
    """External forces [moment; force] at the bodies' origins as Pinocchio wants them: per joint, in its frame."""
    model, data = oracle.model, oracle.data
    pin.framesForwardKinematics(model, data, q)
    out = [pin.Force.Zero() for _ in range(model.njoints)]
    for name, force in zip(system.body_names, forces):
        i = oracle.frame[name]
        joint = model.frames[i].parentJoint
        at_world = pin.SE3(np.eye(3), data.oMf[i].translation).act(pin.Force(force[3:], force[:3]))
        out[joint] += data.oMi[joint].actInv(at_world)
    return out


def symmetric(matrix):
    """Pinocchio fills the upper triangle."""
    return np.triu(matrix) + np.triu(matrix, 1).T


def configurations(system, rng, batch):
    return np.stack([system.random_configuration(rng) for _ in range(batch)])


def assert_same(system, q, rng):
    oracle = pinocchio_model(system)
    model, data, at = oracle.model, oracle.data, oracle.v_index
    batch = len(q)
    v, a, tau = rng.normal(size=(3, batch, system.nv))
    force = rng.normal(size=(batch, system.n_bodies, 6))
    frames = [*system.frames, *system.body_names[-3:]]
    ours = {
        "fd": forward_dynamics(system, q, v, tau, force),
        "id": inverse_dynamics(system, q, v, a, force),
        "bias": bias_forces(system, q, v),
        "M": mass_matrix(system, q),
        "inverse": mass_matrix_inverse(system, q),
        "compliance": operational_space_compliance(system, q, frames),
    }
    for b in range(batch):
        qp, vp = oracle.q(q[b]), oracle.v(v[b])
        external = in_joint_frames(oracle, system, qp, force[b])
        close(ours["fd"][b], pin.aba(model, data, qp, vp, oracle.v(tau[b]), external)[at])
        close(ours["id"][b], pin.rnea(model, data, qp, vp, oracle.v(a[b]), external)[at])
        close(ours["bias"][b], pin.nonLinearEffects(model, data, qp, vp)[at])
        close(ours["M"][b], symmetric(pin.crba(model, data, qp))[np.ix_(at, at)])
        inverse = symmetric(pin.computeMinverse(model, data, qp))
        close(ours["inverse"][b], inverse[np.ix_(at, at)])
        pin.computeJointJacobians(model, data, qp)
        pin.updateFramePlacements(model, data)
        J = [
            pin.getFrameJacobian(model, data, oracle.frame[f], pin.LOCAL_WORLD_ALIGNED)[[3, 4, 5, 0, 1, 2]]
            for f in frames
        ]
        J = np.concatenate(J)
        close(ours["compliance"][b], J @ inverse @ J.T)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 14), st.sampled_from(["fixed", "floating"]), st.booleans())
def test_random_trees(seed, n, base, armature):
    """Every hinge that Pinocchio has, fixed and floating base, with rotors and without, forces on every body."""
    system, rng = random_system(seed, n, base, armature)
    q = configurations(system, rng, 2)
    oracle = pinocchio_model(system)
    condition = [np.linalg.cond(symmetric(pin.crba(oracle.model, oracle.data, oracle.q(one)))) for one in q]
    assume(max(condition) < 1e6)  # a gimbal without rotors, all but locked, magnifies rounding in both
    assert_same(system, q, rng)


@pytest.mark.parametrize("make", ["puma560", "stanford_arm", "free_flyer", "humanoid"])
def test_ready_made(make):
    system, rng = getattr(mb.models, make)(), np.random.default_rng(0)
    assert_same(system, configurations(system, rng, 3), rng)
