"""Terminal, composite and articulated force decompositions: that they hold, what they mean, what they depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import Case, cases, close, fast, few, random_case, seeds
from theory_cases import HINGES, motion, with_inputs

import kfdyn as kf
from kfdyn.dynamics import as_estimation, composite_inertias
from kfdyn.dynamics.theory.decomposition import composite_rest, decompose_forces, force_decompositions
from kfdyn.estimation.dense import dense_filter, dense_posterior
from kfdyn.textbook import sko

NAMES = ("terminal", "composite", "articulated", "inboard")


def smooth_of(case, T=None):
    ss = with_inputs(case)
    return kf.bryson_frazier(ss, kf.kalman_filter(ss, case.T if T is None else T), covariances=False)


def outboard_states(dense, k):
    """Mask over stacked states of the strict descendants of k."""
    mask = np.zeros(len(dense.Q), bool)
    for j, where in enumerate(dense.states):
        i = dense.parent[j]
        while i >= 0 and i != k:
            i = dense.parent[i]
        mask[where] = i == k
    return mask


@given(cases(missing=True))
@fast
def test_four_ways_to_one_force(case):
    """ATBI:decomp-terminal, ATBI:decomp-composite, ATBI:decomp-articulated, ATBI:smoothed. Dense conditioning."""
    parts, dense = force_decompositions(smooth_of(case)), dense_posterior(case.dense(), case.T)
    for name in NAMES:
        close(getattr(parts, name).force.flat, dense.mean)


@given(cases(missing=True))
@fast
def test_inertias(case):
    """ATBI:lyapunov-riccati. M, ℛ, P, P⁺ are the model's, the prior's, the predictor's and the filter's covariances."""
    parts, model = force_decompositions(smooth_of(case)), case.dense()
    filtered = dense_filter(model, case.T)
    for k, x in enumerate(model.states):
        close(parts.terminal.inertia[k], model.Q[x, x])
        close(parts.composite.inertia[k], model.state_cov[x, x])
        close(parts.articulated.inertia[k], filtered.P[k])
        close(parts.inboard.inertia[k], filtered.P_plus[k])


@given(cases(missing=True))
@fast
def test_composite_rest_is_the_force_at_rest(case):
    """ATBI:decomp-composite. y(k) is the force on a body held still while its outboard hinges accelerate."""
    smooth, model = smooth_of(case), case.dense()
    parts = force_decompositions(smooth)
    relative = smooth.a @ model.H + case.eta
    for k, x in enumerate(model.states):
        still = np.where(outboard_states(model, k), relative, 0.0) @ model.phi  # accelerations, that of k being 0
        close(parts.composite.rest[k], ((still @ model.Q + case.xi) @ model.phi.T)[x])


@given(cases(missing=True))
@fast
def test_articulated_rest_is_the_force_at_rest(case):
    """ATBI:decomp-articulated. z(k) is the force on a body held still while forces act on its outboard hinges."""
    parts, model = force_decompositions(smooth_of(case)), case.dense()
    for k, x in enumerate(model.states):
        T = np.where(model.outboard(k), case.T, np.nan)
        held = case.dense(eta=np.where(outboard_states(model, k), case.eta, 0.0))
        close(parts.articulated.rest[k], dense_posterior(held, T).mean[x])


def _changed(case, k, rng):
    """The case with every input and covariance that is not outboard of k (nor k's own Q, ξ) replaced."""
    ss, tree = case.ss, case.ss.tree
    keep = {k, *tree.descendants(k)}
    Q = [q if j in keep else q + np.eye(len(q)) * rng.uniform(1, 2) for j, q in enumerate(ss.Q)]
    phi = [None if p < 0 else f if j in keep - {k} else 1.1 * f for j, (p, f) in enumerate(zip(tree.parent, ss.phi))]
    xi, eta, T = case.xi.copy(), case.eta.copy(), case.T.copy()
    for j in range(len(ss)):
        states, outputs = slice(*ss.arrays.state[j : j + 2]), slice(*ss.arrays.output[j : j + 2])
        if j not in keep:
            xi[states] += rng.normal(size=xi[states].size)
        if j not in keep or j == k:
            eta[states] += rng.normal(size=eta[states].size)
            T[outputs] += rng.normal(size=T[outputs].size)
    return Case(kf.StateSpace(tree, phi, list(ss.H), Q, list(ss.R)), T, xi, eta)


@given(cases(min_nodes=2), st.data())
@fast
def test_what_each_depends_on(case, data):
    """ATBI:decomp-terminal, -composite, -articulated. Inboard changes leave ℛ, P, z and y(a) to the bit."""
    k = data.draw(st.sampled_from([j for j in range(len(case.ss)) if case.ss.tree.parent[j] >= 0] or [0]))
    rng = np.random.default_rng(data.draw(seeds))
    other = _changed(case, k, rng)
    mine, theirs = force_decompositions(smooth_of(case)), force_decompositions(smooth_of(other))
    for name in ("composite", "articulated"):
        np.testing.assert_array_equal(getattr(mine, name).inertia[k], getattr(theirs, name).inertia[k])
    np.testing.assert_array_equal(mine.articulated.rest[k], theirs.articulated.rest[k])
    a = rng.normal(size=case.ss.n_outputs)
    moved = a + np.where(case.dense().outboard(k), 0.0, rng.normal(size=a.size))
    before = composite_rest(case.ss, a, case.xi, case.eta)
    after = composite_rest(other.ss, moved, other.xi, other.eta)
    np.testing.assert_array_equal(before[k], after[k])


def test_what_each_does_depend_on():
    """The converse, on a chain 0 → 1 → 2 → 3: which T moves which rest of body 1."""
    case = random_case(7, 4, n=4, m=1, parent=[1, 2, 3, -1])
    base = force_decompositions(smooth_of(case))
    for j in range(4):
        parts = force_decompositions(smooth_of(case, case.T + np.eye(4)[j]))
        moved = {name: np.abs(getattr(parts, name).rest[1] - getattr(base, name).rest[1]).max() for name in NAMES}
        assert moved["terminal"] > 1e-3  # all of them
        assert moved["composite"] > 1e-3  # through the accelerations, which all of them change
        assert (moved["articulated"] > 1e-3) == (j < 1)
        assert (moved["inboard"] > 1e-3) == (j <= 1)
    ss = with_inputs(case)
    y = [composite_rest(ss, row)[1] for row in np.vstack([np.zeros(4), np.eye(4)])]
    assert [bool(np.abs(row - y[0]).max() > 1e-3) for row in y[1:]] == [True, False, False, False]


@given(cases(noise=False))
@fast
def test_floppy(case):
    """ATBI:floppy. No force at the hinges and no bias but at the roots: f = P α = P⁺ α⁺, and a = −G* α⁺."""
    ss = case.ss
    roots = np.repeat(ss.tree.parent < 0, ss.n)
    eta = np.where(roots, case.eta, 0.0)
    filt = kf.kalman_filter(ss, np.zeros(ss.n_outputs), eta=eta)
    smooth = kf.bryson_frazier(ss, filt, covariances=False)
    parts, dense = force_decompositions(smooth), dense_posterior(case.dense(xi=0 * case.xi, eta=eta), 0 * case.T)
    close(parts.articulated.inertial.flat, dense.mean)
    inner = ~roots  # a root's α⁺ is 0, its whole acceleration is η
    close(parts.inboard.inertial.flat[inner], dense.mean[inner])
    close(parts.articulated.rest.flat, np.zeros(ss.n_states), digits=14)
    for k, p in enumerate(ss.tree.parent):
        above = smooth.costate_plus[k] if p >= 0 else ss.state_blocks(eta)[k]
        close(ss.output_blocks(smooth.a)[k], -filt.G[k].T @ above)
        close(smooth.costate[k], above - ss.H[k].T @ (filt.G[k].T @ above))  # α = τ̄* α⁺


@given(cases(missing=True))
@fast
def test_locked(case):
    """ATBI:locked. Where nothing is measured: P⁺ = P, z⁺ = z + P⁺η, no acceleration, α = α⁺ + η."""
    smooth = smooth_of(case)
    filt, parts = smooth.filt, force_decompositions(smooth)
    eta = case.ss.state_blocks(case.eta)
    for k in range(len(case.ss)):
        if filt.observed[slice(*case.ss.arrays.output[k : k + 2])].any():
            continue
        np.testing.assert_array_equal(parts.inboard.inertia[k], parts.articulated.inertia[k])
        close(parts.inboard.rest[k] - parts.articulated.rest[k], filt.P[k] @ eta[k])
        close(smooth.costate[k], smooth.costate_plus[k] + eta[k])
        assert not case.ss.output_blocks(smooth.a)[k].any()


@given(seeds)
@fast
def test_six_dofs_uncouple(seed):
    """ATBI:free. An exact measurement of the whole state: P⁺ = 0, G = H⁻¹, and nothing inboard is felt outboard."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, 5, n=3, m=1, noise=False, parent=[1, 2, 3, 4, -1])
    H = [np.linalg.qr(rng.normal(size=(3, 3)))[0] if k == 2 else h for k, h in enumerate(case.ss.H)]
    phi = [None if p < 0 else f for p, f in zip(case.ss.tree.parent, case.ss.phi)]
    ss = kf.StateSpace(case.ss.tree, phi, H, list(case.ss.Q), None, case.xi, case.eta)
    T = rng.normal(size=ss.n_outputs)
    parts = [
        force_decompositions(kf.bryson_frazier(ss, kf.kalman_filter(ss, T + change), covariances=False))
        for change in (0.0, np.r_[np.zeros(5), 1.0, 1.0])
    ]
    filt = kf.kalman_filter(ss, T)
    close(filt.P_plus[2], np.zeros((3, 3)), digits=13)
    close(filt.G[2], H[2].T)
    close(filt.D[2], H[2] @ filt.P[2] @ H[2].T)
    for k in range(3):
        close(parts[0].terminal.force[k], parts[1].terminal.force[k])
    close(parts[0].inboard.force[2], H[2].T @ T[2:5])  # the force is what is measured, wholly


@given(cases(missing=True))
@fast
def test_orderings(case):
    """ATBI:order, ATBI:spd. ℛ ⪰ P ⪰ M, P ⪰ P⁺ ⪰ 0."""
    cov = kf.kalman_filter(case.ss, case.T).covariances
    composite = composite_inertias(case.ss)
    for k in range(len(case.ss)):
        pairs = ((composite[k], cov.P[k]), (cov.P[k], case.ss.Q[k]), (cov.P[k], cov.P_plus[k]), (cov.P_plus[k], 0.0))
        for big, small in pairs:
            scale = max(1.0, np.abs(big).max())
            assert np.linalg.eigvalsh(big - small).min() > -1e-12 * scale
        seen = ~np.isnan(case.ss.output_blocks(case.T)[k])
        H, R = case.ss.H[k][seen], case.ss.R[k][np.ix_(seen, seen)]
        U = cov.P[k] @ H.T
        close(cov.P[k] - cov.P_plus[k], U @ np.linalg.solve(H @ U + R, U.T))  # no more and no less than is measured


def test_batch():
    case = random_case(11, 9)
    T = np.random.default_rng(0).normal(size=(2, 3, case.ss.n_outputs))
    parts, one = force_decompositions(smooth_of(case, T)), force_decompositions(smooth_of(case, T[1, 0]))
    for name in NAMES:
        assert getattr(parts, name).force.flat.shape == (2, 3, case.ss.n_states)
        close(getattr(parts, name).rest.flat[1, 0], getattr(one, name).rest.flat)
        close(getattr(parts, name).force.flat[1, 0], getattr(one, name).force.flat)


@given(seeds)
@few
def test_forces_of_pinocchio(seed):
    """ATBI:decomp-terminal, -composite, -articulated; R86:4.1-4.3. Inter-body forces of robots by Pinocchio's rnea."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_models import pinocchio_model

    # Pinocchio merges a body on a fixed hinge with its parent and knows no force between them
    system, q, v, tau, _ = motion(seed, hinges=[kind for kind in HINGES if kind != "fixed"])
    peer = pinocchio_model(system)
    applied = (peer.q(q), peer.v(v))
    pin.rnea(peer.model, peer.data, *applied, pin.aba(peer.model, peer.model.createData(), *applied, peer.v(tau)))
    forces = [peer.data.f[j].copy() for j in range(peer.model.njoints)]
    pin.framesForwardKinematics(peer.model, peer.data, peer.q(q))
    expected = []
    for name in system.body_names:
        joint = peer.model.frames[peer.frame[name]].parentJoint
        here = pin.SE3(np.eye(3), peer.data.oMf[peer.frame[name]].translation)
        f = here.actInv(peer.data.oMi[joint].act(forces[joint]))
        expected.append(np.r_[f.angular, f.linear])
    parts = decompose_forces(system, q, v, tau)
    scale = max(1.0, np.abs(expected).max())
    for name in NAMES:
        close(getattr(parts, name).force.flat / scale, np.ravel(expected) / scale)


def test_articulated_inertia_is_no_rigid_inertia():
    """ATBI:spd. P of a robot is dense and positive definite; P⁺ is singular along the hinge; ℛ is a rigid body's."""
    system = kf.models.puma560()
    ss = as_estimation(system, np.full(6, 0.4))
    bare = kf.StateSpace(ss.tree, [None if p < 0 else f for p, f in zip(ss.tree.parent, ss.phi)], ss.H, ss.Q)
    cov, composite = kf.riccati(bare), composite_inertias(bare)
    k = int(np.flatnonzero(ss.tree.parent < 0)[0])
    mass = composite[k][3:, 3:]
    np.testing.assert_allclose(mass, np.eye(3) * system.mass, atol=1e-12 * system.mass)
    assert np.abs(cov.P[k][3:, 3:] - np.eye(3) * np.trace(cov.P[k][3:, 3:]) / 3).max() > 0.1
    plain = sko.articulated(sko.model_of(bare))
    for j in range(6):
        close(cov.P[j], plain.P[j])
        close(cov.P_plus[j], plain.P_plus[j])
        assert np.linalg.eigvalsh(cov.P[j]).min() > 0
        close(cov.P_plus[j] @ ss.H[j].T, np.zeros((6, 1)))
