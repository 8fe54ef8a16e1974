"""Hybrid dynamics: prescribed hinges as missing measurements, against a dense partitioned solve."""

import numpy as np
import pytest
from dense_dynamics import dense_bias, dense_mass_matrix, over, quick
from hypothesis import given
from multibody_cases import close, forest, seeds, state

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics import as_estimation, forward_dynamics, hybrid_dynamics, inverse_dynamics
from kfdyn.errors import ModelError, ShapeError, SingularError


def dense_hybrid(system, q, v, tau, a, mask, force=None, gravity=None):
    M, c = dense_mass_matrix(system, q), dense_bias(system, q, v, force, gravity)
    a = np.where(mask, a, 0.0)
    free = ~mask
    a[free] = np.linalg.solve(M[np.ix_(free, free)], tau[free] - c[free] - M[np.ix_(free, mask)] @ a[mask])
    return np.where(mask, M @ a + c, tau), a


@quick
@given(seeds)
def test_partitioned_solve(seed):
    """SKO:hybrid, ATBI:locked. Any dofs prescribed, parts of a hinge too; rotors, forces and gravity included."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    tau, a = rng.normal(size=(2, system.nv))
    force, g = rng.normal(size=(system.n_bodies, 6)), rng.normal(size=3)
    mask = rng.random(system.nv) < rng.uniform()
    expected = dense_hybrid(system, q, v, tau, a, mask, force, g)
    unknown = np.where(mask, np.nan, tau), np.where(mask, a, np.nan)  # what is not known is not read
    tau_out, a_out = hybrid_dynamics(system, q, v, *unknown, mask, force, g)
    close(tau_out, expected[0])
    close(a_out, expected[1])
    np.testing.assert_array_equal(tau_out[~mask], tau[~mask])
    np.testing.assert_array_equal(a_out[mask], a[mask])


@quick
@given(seeds)
def test_none_and_all(seed):
    system, rng = forest(seed)
    q, v = state(system, rng, (2,))
    tau, a = rng.normal(size=(2, 2, system.nv))
    none = np.zeros(system.nv, dtype=bool)
    close(hybrid_dynamics(system, q, v, tau, a, none)[1], forward_dynamics(system, q, v, tau), tol=1e-13)
    close(hybrid_dynamics(system, q, v, tau, a, ~none)[0], inverse_dynamics(system, q, v, a))


@quick
@given(seeds)
def test_locked_hinge_is_a_weld(seed):
    """ATBI:locked. Locking a hinge at rest is the same as a system in which it is fixed: P⁺ = P, no acceleration."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    k = int(rng.integers(system.n_bodies))
    own = system.v_slice(system.hinge_names[k])
    v[own] = 0.0
    tau = rng.normal(size=system.nv)
    mask = np.zeros(system.nv, dtype=bool)
    mask[own] = True
    _, a = hybrid_dynamics(system, q, v, tau, np.zeros(system.nv), mask)
    assert not a[mask].any()

    ss = as_estimation(system, q, v)
    filt = kf.kalman_filter(ss, np.where(mask, np.nan, tau))
    np.testing.assert_array_equal(filt.P_plus[k], filt.P[k])
    close(filt.z_plus[k], filt.z[k] + filt.P[k] @ ss.eta[6 * k : 6 * k + 6])

    welded, of_welded = weld(system, q, k)
    close(a[~mask], forward_dynamics(welded, of_welded(q), v[~mask], tau[~mask]))
    M, c = kf.mass_matrix(welded, of_welded(q)), kf.bias_forces(welded, of_welded(q), v[~mask])
    close(a[~mask], np.linalg.solve(M, tau[~mask] - c))  # the same filter stands on both sides above


def weld(system, q, k):
    """The system with hinge k frozen where it is, and the map of q to its own q."""
    body, rest = system.bodies[k], np.ones(system.nq, dtype=bool)
    rest[system.q_slice(body.hinge_name)] = False
    here = mb.frame_pose(system, q, body.name)
    p = int(system.parent[k])
    above = mb.frame_pose(system, q, system.body_names[p]) if p >= 0 else mb.Pose(np.eye(3), np.zeros(3))
    rotation, position = above.rotation.T @ here.rotation, above.rotation.T @ (here.position - above.position)
    fixed = mb.Body(body.name, body.inertia, mb.Hinge.fixed(), body.parent, rotation, position, body.hinge_name)
    bodies = [fixed if j == k else other for j, other in enumerate(system.bodies)]
    return mb.System(bodies, system.gravity), lambda q: q[rest]


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
def test_batches(batch):
    system, rng = forest(11, n=8)
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, system.nq)
    v, tau, a = rng.normal(size=(3, *batch, system.nv))
    mask = np.arange(system.nv) % 3 == 1
    got = hybrid_dynamics(system, q, v, tau, a, mask)
    assert [x.shape for x in got] == [(*batch, system.nv)] * 2
    if got[0].size:
        expected = over(batch, lambda *one: dense_hybrid(system, *one, mask), q, v, tau, a)
        close(got[0], expected[..., 0, :])
        close(got[1], expected[..., 1, :])


def test_prescribed_hinge_needs_no_inertia():
    system = kf.models.double_pendulum(mass=(1.0, 0.0))
    tau, a = hybrid_dynamics(system, [0.3, 0.4], None, [0, 0], [0, 2.0], prescribed=[False, True])
    close(a, [-9.81 * np.sin(0.3), 2.0])
    close(tau, [0.0, 0.0])
    with pytest.raises(SingularError, match="hinge 'elbow': nothing outboard"):
        hybrid_dynamics(system, [0.3, 0.4], None, [0, 0], [0, 0], prescribed=[True, False])


def test_refusals():
    system, six = kf.models.puma560(), np.zeros(6)
    mask = np.arange(6) < 2
    with pytest.raises(ShapeError, match=r"prescribed must have shape \(6,\).*v_slice"):
        hybrid_dynamics(system, six, None, six, six, prescribed=mask[:4])
    with pytest.raises(ModelError, match="mask of booleans, got int64"):
        hybrid_dynamics(system, six, None, six, six, prescribed=np.arange(6))
    with pytest.raises(ShapeError, match="prescribed must be a mask"):
        hybrid_dynamics(system, six, None, six, six, prescribed=[[True], [True, False]])
    with pytest.raises(ModelError, match=r"^tau has entries that are not finite"):
        hybrid_dynamics(system, six, None, np.where(mask, 0.0, np.nan), six, prescribed=mask)
    with pytest.raises(ModelError, match=r"^a has entries that are not finite"):
        hybrid_dynamics(system, six, None, six, np.where(mask, np.nan, 0.0), prescribed=mask)
    with pytest.raises(ShapeError, match=r"^a must have shape"):
        hybrid_dynamics(system, six, None, six, np.zeros(5), prescribed=mask)
