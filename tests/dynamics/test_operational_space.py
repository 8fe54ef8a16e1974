"""The operational space compliance through Λ and nearest common ancestors, against J 𝓜⁻¹ J*."""

import numpy as np
import pytest
from dense_dynamics import dense_mass_matrix, over, quick
from hypothesis import given
from multibody_cases import close, forest, phi, seeds, state

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics import as_estimation, dynamics_filter, forward_dynamics, operational_space_compliance
from kfdyn.errors import ModelError, SingularError


def dense_compliance(system, q, frames):
    J = np.concatenate([mb.jacobian(system, q, name) for name in frames])
    return J @ np.linalg.inv(dense_mass_matrix(system, q)) @ J.T


def framed(seed):
    """A forest with two frames on one body and some on others, and a list of names with a repetition."""
    system, rng = forest(seed)
    frames = {
        f"tool_{i}": mb.Frame(
            system.body_names[0 if i < 2 else rng.integers(system.n_bodies)], position=rng.normal(size=3)
        )
        for i in range(4)
    }
    system = mb.System(system.bodies, system.gravity, frames)
    names = [*frames, *rng.choice(system.body_names, 3)]
    return system, [str(name) for name in rng.permutation(names)], rng


@quick
@given(seeds)
def test_any_frames(seed):
    """PART:20, PART:21, PART:22, SKO:backward-lyapunov. Ancestors, branches, one body twice, different trees."""
    system, frames, rng = framed(seed)
    q, _ = state(system, rng)
    Omega = operational_space_compliance(system, q, frames)
    close(Omega, dense_compliance(system, q, frames))
    np.testing.assert_array_equal(Omega, Omega.T)
    assert np.linalg.eigvalsh(Omega).min() >= -1e-10 * np.abs(Omega).max()


@quick
@given(seeds)
def test_covariance_of_the_costate(seed):
    """PART:20. At the bodies' own origins Ω is the covariance of λ that the engine gives."""
    system, rng = forest(seed)
    q, _ = state(system, rng)
    costate = kf.Covariances(as_estimation(system, q)).costate
    close(operational_space_compliance(system, q, system.body_names), costate.dense())
    one = operational_space_compliance(system, q, "tool")
    body, _, _ = system.locate("tool")
    shift = phi(mb.frame_pose(system, q, "tool").position - mb.frame_pose(system, q, system.body_names[body]).position)
    close(one, shift.T @ costate.block(body, body) @ shift)


@quick
@given(seeds)
def test_recursion_on_a_chain(seed):
    """PART:21, PART:22. Υ(k) = τ̄*Υ⁺τ̄ + H*D⁻¹H from base to tip, and Ω = Υ + ψ̃*Υ + Υψ̃ on a serial chain."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    system = mb.models.random_tree(n, seed, branching=0.0)
    q, _ = state(system, rng)
    filt, _ = dynamics_filter(system, q, None, np.zeros(system.nv))
    Upsilon, step = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))  # block diagonal; ψ one link inboard
    block = [slice(6 * k, 6 * k + 6) for k in range(n)]
    for k in range(n):  # body 0 is at the base
        H, G, D = filt.ss.H[k], filt.G[k], filt.D[k]
        proj_bar = np.eye(6) - G @ H
        own = H.T @ np.linalg.solve(D, H)
        if k > 0:
            step[block[k - 1], block[k]] = filt.ss.phi[k] @ proj_bar
            own = (
                own
                + step[block[k - 1], block[k]].T @ Upsilon[block[k - 1], block[k - 1]] @ step[block[k - 1], block[k]]
            )
        Upsilon[block[k], block[k]] = own
    psi_strict = np.linalg.inv(np.eye(6 * n) - step) - np.eye(6 * n)
    Omega = Upsilon + psi_strict.T @ Upsilon + Upsilon @ psi_strict
    close(operational_space_compliance(system, q, system.body_names), Omega)


@quick
@given(seeds)
def test_acceleration_caused_by_a_force(seed):
    """A force at one frame times Ω is what every frame's acceleration changes by."""
    system, frames, rng = framed(seed)
    q, v = state(system, rng)
    tau, push = rng.normal(size=system.nv), rng.normal(size=6)
    body, _, _ = system.locate(frames[0])
    origin = mb.frame_pose(system, q, system.body_names[body]).position
    force = np.zeros((system.n_bodies, 6))
    force[body] = phi(mb.frame_pose(system, q, frames[0]).position - origin) @ push
    before = forward_dynamics(system, q, v, tau)
    after = forward_dynamics(system, q, v, tau, force)
    Omega = operational_space_compliance(system, q, frames)
    for f, name in enumerate(frames):
        change = mb.frame_acceleration(system, q, v, after, name) - mb.frame_acceleration(system, q, v, before, name)
        size = np.abs(before).max(initial=1.0)  # the difference cancels what both have in common
        close(change, Omega[6 * f : 6 * f + 6, :6] @ push, size=size)


def test_different_trees_do_not_feel_each_other():
    system, rng = forest(2, n=9)
    roots = np.flatnonzero(system.parent < 0)
    names = [system.body_names[k] for k in roots]
    Omega = operational_space_compliance(system, state(system, rng)[0], names)
    for f in range(len(names)):
        Omega[6 * f : 6 * f + 6, 6 * f : 6 * f + 6] = 0.0
    assert len(names) > 1 and not Omega.any()


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
def test_batches(batch):
    system, rng = forest(11, n=8)
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, system.nq)
    frames = ["tool", system.body_names[3]]
    Omega = operational_space_compliance(system, q, frames)
    assert Omega.shape == (*batch, 12, 12)
    if Omega.size:
        close(Omega, over(batch, lambda q: dense_compliance(system, q, frames), q))


def test_no_frames():
    assert operational_space_compliance(kf.models.puma560(), np.zeros((2, 6)), []).shape == (2, 0, 0)


def test_refusals():
    system = kf.models.double_pendulum(mass=(1.0, 0.0))
    with pytest.raises(ModelError, match="no body or frame 'hand'"):
        operational_space_compliance(system, [0.0, 0.0], ["upper", "hand"])
    with pytest.raises(ModelError, match="frames must be names"):
        operational_space_compliance(system, [0.0, 0.0], [0, 1])
    with pytest.raises(SingularError, match="hinge 'elbow': nothing outboard"):
        operational_space_compliance(system, [0.1, 0.2], "upper")
