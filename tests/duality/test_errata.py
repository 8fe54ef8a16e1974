"""Every row of the errata page: what is printed fails, what stands on the right holds."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import SingularError
from kfdyn.textbook import part, r86, sko
from kfdyn.textbook.srb import inertia_rate

sys.path.append(str(Path(__file__).parents[1] / "textbook"))
from r86_cases import arm_case

ROOT = Path(__file__).parents[2]
ROWS = []


def row(*marks):
    """Register the rows of the page, by words that stand in them, that a test is about."""
    ROWS.extend(marks)
    return lambda test: test


def apart(wrong, right, share=1e-3):
    """Whether two arrays differ by more than rounding, relative to the right one."""
    wrong, right = np.asarray(wrong, float), np.asarray(right, float)
    return wrong.shape != right.shape or np.abs(wrong - right).max() > share * np.abs(right).max()


def same(mine, theirs, tolerance=1e-9):
    return not apart(mine, theirs, tolerance)


@pytest.fixture
def case():
    return arm_case(5)


@pytest.fixture
def form(case):
    return r86.ClosedForm(case.chain, case.tau[::-1])


@pytest.fixture
def model():
    """A tree of the engine with branches, R = 0 and several dofs a hinge."""
    robot = kf.models.random_tree(6, seed=4, hinges=("universal", "revolute", "gimbal"), branching=1.0, armature=False)
    return kf.as_estimation(robot, robot.random_configuration(np.random.default_rng(0)))


@row("| (3.5), text |")
def test_R86_3_5():
    L, T, f = np.random.default_rng(0).normal(size=(3, 3))
    right = np.concatenate([T + np.cross(L, f), f])  # L from joint k to joint m
    assert same(r86.transition_3_5(L) @ np.concatenate([T, f]), right)
    assert apart(r86.transition_3_5(-L) @ np.concatenate([T, f]), right)


@row("| (4.4), (4.10), (4.11), linear row |")
def test_R86_4_4(case):
    theirs = kf.forward_dynamics(case.system, case.q, case.v, case.tau)
    printed = r86.chain_of(case.arm, case.q[::-1], case.v[::-1], as_printed=True)
    assert same(r86.forward_dynamics_8(case.chain, case.tau[::-1])[::-1], theirs)
    assert apart(r86.forward_dynamics_8(printed, case.tau[::-1])[::-1], theirs)


@row("| (8.6) |")
def test_R86_8_6(case):
    """With x for z the innovation is zero whatever τ: the filter would learn nothing."""
    tau = case.tau[::-1]
    filtered = r86.filter_8(case.chain, tau)
    smoothed = r86.smoother_8(case.chain, filtered)
    x = r86.forces_4_1_to_4_3(case.chain, smoothed.lam_minus)
    for k in range(1, case.chain.N + 1):
        assert abs(r86.innovation_8_6(tau[k - 1], case.chain.H[k], x[k])[0]) < 1e-9
    assert max(abs(e[0]) for e in filtered.e_minus[1:]) > 0.1


@row("| after (8.9) |")
def test_R86_after_8_9(case):
    """D is the inertia of the articulated body about its axis; the composite body's is larger."""
    filtered = r86.filter_8(case.chain, case.tau)
    composite = r86.composites_7_9(case.chain)
    N = case.chain.N
    D = kf.riccati(kf.as_estimation(case.system, case.q)).D
    for k in range(1, N + 1):
        assert same(filtered.D[k], D[N - k])
    printed = [case.chain.H[k] @ composite[k] @ case.chain.H[k].T for k in range(2, N + 1)]
    assert all(wrong[0, 0] > 1.01 * filtered.D[k][0, 0] for k, wrong in enumerate(printed, start=2))


@row("| (9.9) |")
def test_R86_9_9(case):
    """H and H* in each other's place: the shapes do not fit."""
    filtered = r86.filter_8(case.chain, case.tau)
    P, H, D = filtered.P_minus[2], case.chain.H[2], filtered.D[2]
    assert same(r86.update_9_9(P, H, D), r86.conditional(_still(case.chain), case.tau, 2, 2)[1])
    with pytest.raises(ValueError, match=r"mismatch|matmul"):
        _ = P @ H @ np.linalg.inv(D) @ H.T @ P


@row("| (10.2), $\\alpha^2$ |")
def test_R86_10_2(case, form):
    every = range(1, case.chain.N + 1)
    M = r86.inertia_matrix_7_11(case.chain)
    right = -np.linalg.solve(M, r86.bias_moments_7_11(_still(case.chain)))
    assert same([form.alpha2_10_2(k) for k in every], right)
    assert apart([form.alpha2_10_2(k, as_printed=True) for k in every], right)


@row("| (10.23) |")
def test_R86_10_23(case, form):
    """Summed over j with terms in i, the sum repeats one term; with one index it is right."""
    k, N = 1, case.chain.N
    right = kf.forward_dynamics(case.system, case.q, case.v, case.tau)[::-1][k - 1]
    assert form.acceleration_10_23(k) == pytest.approx(right, rel=1e-9)
    H, P = case.chain.H[k][0], form.filtered.P_minus[k]
    for i in range(k + 1, N + 1):
        repeated = (N - k) * form.psi_10_6(i, k).T @ form.eta_tilde_10_15(i)
        wrong = form.D_inverse(k) * (form.tau_tilde_10_24(k) - H @ P @ repeated)
        assert abs(wrong - right) > 1e-3 * abs(right)


@row("| (10.27) |", "| (10.28) |", "| (10.29) |")
def test_R86_10_27_to_10_29(case, form):
    k, N = 2, case.chain.N
    both = {(i, j) for i in range(k + 1, N + 1) for j in range(1, i)}
    assert both == {(i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N + 1)}
    assert both != {(i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N)}
    left = form.double_sum_10_28_left(k)
    assert same(form.double_sum_10_28_right(k), left)
    assert apart(form.double_sum_10_28_right(k, as_printed=True), left)
    assert same(form.Lambda_plus_10_29(k), form.Lambda_plus[k])
    assert apart(form.Lambda_plus_10_29(k, as_printed=True), form.Lambda_plus[k])


@row("| covariance of the filter estimate |")
def test_ATBI_covariance_of_the_estimate(model):
    op = kf.Operators(model)
    phi, K, D = op.phi.dense(), op.K.dense(), op.D.dense()
    right = kf.Covariances(model).z.dense()
    assert same(phi @ K @ D @ K.T @ phi.T, right)
    assert apart(phi @ K @ np.linalg.inv(D) @ K.T @ phi.T, right)


@row("| 6-dof hinge |")
def test_ATBI_six_dofs():
    flyer = kf.models.free_flyer()
    cov = kf.riccati(kf.as_estimation(flyer, flyer.neutral()))
    root = int(np.flatnonzero(np.asarray(flyer.parent) < 0)[0])
    assert same(cov.D[root], cov.P[root])
    assert same(cov.G[root], np.eye(6))
    assert apart(cov.G[root], cov.P[root])


@row("| locked hinge |")
def test_ATBI_locked():
    """A locked hinge has no D: m = 0, P⁺ = P. D = 0 would have to be inverted."""
    ss = kf.StateSpace([1, -1], np.ones((2, 2, 2)), [np.zeros((0, 2)), np.eye(2)], np.stack([np.eye(2)] * 2))
    cov = kf.riccati(ss)
    assert cov.D[0].shape == (0, 0)
    assert cov.G[0].shape == (2, 0)
    assert same(cov.P_plus[0], cov.P[0])
    with pytest.raises(SingularError):
        kf.riccati(kf.StateSpace([-1], [None], [np.zeros((1, 2))], [np.eye(2)]))


@row("| filtering |")
def test_ATBI_filtering(case):
    """z(k) does not know T(k); z⁺(k) does."""
    moved = case.tau.copy()
    moved[2] += 1.0
    one, other = r86.filter_8(case.chain, case.tau), r86.filter_8(case.chain, moved)
    assert same(other.z_minus[3], one.z_minus[3])
    assert apart(other.z_plus[3], one.z_plus[3])
    assert apart(other.z_minus[4], one.z_minus[4])


@row("| terminal body |")
def test_ATBI_terminal_body(case):
    """f(k) = Mα + φ f(k−1): without φ the force of the outer body acts at the wrong point, in the wrong frame."""
    chain = case.chain
    lam, _ = r86.accelerations_5_4_5_5(chain, case.tau)
    x = r86.forces_4_1_to_4_3(chain, lam)
    for k in range(2, chain.N + 1):
        assert same(chain.M[k] @ lam[k] + chain.xi[k] + chain.phi[k] @ x[k - 1], x[k])
        assert apart(chain.M[k] @ lam[k] + chain.xi[k] + x[k - 1], x[k])


@row("| slide 43, walk to the root |")
def test_SKO_43():
    """Where states differ in number A is not square, and no φ of a rigid body takes its place; A gives the element."""
    rng = np.random.default_rng(3)
    A, H = [rng.normal(size=(2, 3)), None], [rng.normal(size=(1, 3)), rng.normal(size=(2, 2))]
    ss = kf.StateSpace([1, -1], A, H, [np.eye(3), np.eye(2)])
    X = np.eye(3) @ H[0].T
    assert same(H[1] @ A[0] @ X, sko.mass_matrix(sko.model_of(ss))[1:, :1])
    for n in (2, 6):
        with pytest.raises(ValueError, match=r"mismatch|matmul"):
            _ = np.eye(n) @ X


@row("| slide 65, title |")
def test_SKO_65(model):
    """The identity holds; AKDK*A* has blocks where each of the other terms has its own."""
    op = kf.Operators(model)
    A, K, D, P = (getattr(op, name).dense() for name in ("phi", "K", "D", "P"))
    strict = A - np.eye(len(A))
    last = A @ K @ D @ K.T @ A.T
    terms = P, strict @ P, P @ strict.T
    assert same(sum(terms) + last, A @ op.Q.dense() @ A.T)
    for term in terms:
        assert (np.abs(last)[np.abs(term) > 1e-9] > 1e-9).any()
    psi = op.psi.dense()
    disjoint = P, strict @ P, P @ (psi - np.eye(len(psi))).T  # of AMψ*, on the slide before: these are
    assert not any((np.abs(a) * np.abs(b)).any() for i, a in enumerate(disjoint) for b in disjoint[:i])


@row("| first term of $\\dot M$ |")
def test_SRB_rate_of_the_inertia():
    """Ṁ = V~M − MV~ with M in inertial axes in both terms; the body's own M does not change."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(6, 6))
    M_body = kf.models.puma560().bodies[1].inertia + 0.1 * (root @ root.T)
    omega, h = rng.normal(size=3), 1e-6
    turn = kf.spatial.rotation_vector_to_matrix(rng.normal(size=3))

    def turned(t):
        X = np.kron(np.eye(2), kf.spatial.rotation_vector_to_matrix(omega * t) @ turn)
        return X @ M_body @ X.T

    rate = (turned(h) - turned(-h)) / (2 * h)
    V = np.concatenate([omega, np.zeros(3)])
    assert same(inertia_rate(turned(0), V), rate, 1e-8)
    tilde = np.kron(np.eye(2), np.array([np.cross(omega, e) for e in np.eye(3)]).T)
    assert same(tilde @ turned(0) - turned(0) @ tilde, rate, 1e-8)
    assert apart(tilde @ M_body - turned(0) @ tilde, rate)


def _split(seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    P, phi = root @ root.T + np.eye(6), rng.normal(size=(6, 6))
    both = part.parts_8(P, phi, rng.normal(size=(2, 6)), rng.normal(size=(3, 6)))
    H = both.H_whole
    D = H @ P @ H.T
    return rng, both, H, D, np.linalg.solve(D, H @ P).T


@row("| §2, line of $\\phi^{-1} H^*$ |")
def test_PART_2():
    """Seen from k′ the whole's columns are φ⁻*H*: those of k′ are H*(k′) again. φ⁻¹H* are others."""
    _, both, H, _, _ = _split()
    moved = np.linalg.inv(both.phi).T @ H.T
    assert same(moved[:, 2:], both.H_prime.T)
    assert apart((np.linalg.inv(both.phi) @ H.T)[:, 2:], both.H_prime.T)


@row("| (8) |")
def test_PART_8():
    """P⁺(k) = τ̄(k) P(k): of its own body, not of the next."""
    chain = arm_case(6).chain
    filtered = r86.filter_8(chain, np.zeros(chain.N))
    for k in range(1, chain.N):
        tau_bar = np.eye(6) - filtered.G[k] @ chain.H[k]
        assert same(tau_bar @ filtered.P_minus[k], filtered.P_plus[k])
        assert apart(tau_bar @ filtered.P_minus[k + 1], filtered.P_plus[k])


@row("| (9) |", "| (9), proof |", "| (10), proof |")
def test_PART_9_and_10():
    """H_C(h) means H_C(k); H(k″) in the proof of (9) must be H*(k″), and a second H_C in (10) does not fit."""
    _, both, _, D, G = _split()
    assert same(part.D_inverse_9(both), np.linalg.inv(D))
    assert same(part.G_10(both), G)
    P, H_C, H = both.P, both.H_C, both.H
    F2 = H_C @ P @ H_C.T - H_C @ P @ H.T @ np.linalg.inv(both.D) @ H @ P @ H_C.T
    assert same(F2, both.D_prime)
    with pytest.raises(ValueError, match=r"mismatch|matmul"):
        _ = H_C @ P @ H @ np.linalg.inv(both.D)
    reach = np.hstack([-H_C @ both.G, np.eye(3)])
    gain = P @ both.tau_bar.T @ H_C.T @ np.linalg.inv(both.D_prime)
    assert same(np.hstack([both.G, np.zeros((6, 3))]) + gain @ reach, G)
    with pytest.raises(ValueError, match=r"mismatch|matmul"):
        _ = gain @ H_C @ reach


@row("| (16), proof |")
def test_PART_16():
    _, both, H, D, _ = _split()
    right = H.T @ np.linalg.inv(D) @ H
    first = both.H.T @ np.linalg.inv(both.D) @ both.H
    weight = both.tau_bar.T @ both.H_C.T @ np.linalg.inv(both.D_prime)
    assert same(first + weight @ both.H_C @ both.tau_bar, right)
    assert apart(first + weight @ both.H_C + both.tau_bar, right)


@row("| (19) |")
def test_PART_19():
    _, both, H, _, G = _split()
    right = both.phi @ (both.P - G @ H @ both.P) @ both.phi.T
    middle = both.tau_bar_prime @ both.phi @ both.tau_bar @ both.P @ both.tau_bar.T @ both.phi.T
    assert same(middle @ both.tau_bar_prime.T, right, 1e-8)
    assert apart(middle @ both.tau_bar_prime, right)


@row("| (21) |")
def test_PART_21(model):
    """Ω = Υ + ψ̃*Υ + Υψ̃ on a chain; on a tree the common ancestors' term is missing."""
    for ss, holds in ((kf.as_estimation(kf.models.uniform_chain(5), np.full(5, 0.4)), True), (model, False)):
        cov, op = kf.riccati(ss), kf.Operators(ss)
        psi, H, D = op.psi.dense(), op.H.dense(), op.D.dense()
        right = psi.T @ H.T @ np.linalg.inv(D) @ H @ psi
        Upsilon = np.zeros_like(right)
        for k, L in enumerate(cov.smoothed.Lambda):
            Upsilon[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = L
        strict = psi - np.eye(len(psi))
        printed = Upsilon + strict.T @ Upsilon + Upsilon @ strict
        assert same(printed, right) if holds else apart(printed, right)


@row("| (24), proof |")
def test_PART_24():
    rng, both, H, D, G = _split()
    root, inner = rng.normal(size=(6, 6)), rng.normal(size=(6, 6))
    above = root @ root.T
    tau_bar = np.eye(6) - G @ H
    plus = (inner @ both.phi).T @ above @ (inner @ both.phi)
    information = H.T @ np.linalg.inv(D) @ H
    _, prime, own = part.upsilon_23(both, above, inner)
    right = tau_bar.T @ plus @ tau_bar + information
    assert same(own, right)
    assert apart(tau_bar.T @ plus @ tau_bar @ information, right)  # no sign before H*D⁻¹H
    stray = both.tau_bar.T @ both.phi.T @ prime @ both.tau_bar_prime @ both.phi @ both.tau_bar
    assert apart(stray + both.H.T @ np.linalg.inv(both.D) @ both.H, right)


def test_every_row_of_the_page_is_asserted():
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| (?!where|---)", line)]
    unasserted = [line for line in rows if not any(line.startswith(mark) for mark in ROWS)]
    assert unasserted == []
    assert all(any(line.startswith(mark) for line in rows) for mark in ROWS), "a test of a row that is gone"


def _still(chain):
    """The chain with η = 0."""
    return chain._replace(eta=[None] + [np.zeros(6)] * chain.N)
