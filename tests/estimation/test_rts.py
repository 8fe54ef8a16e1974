"""Rauch–Tung–Striebel's form of S takes the place of Bryson–Frazier's where it rounds off less, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest
from exact import exact_smoother

import kfdyn as kf

EPS = np.finfo(float).eps


def small_arm(length):
    """A Stanford arm whose bodies are that small and whose joints are a metre apart: points to their parents."""
    arm, unit = kf.models.stanford_arm(), np.array([length] * 3 + [1.0] * 3)
    bodies = [
        replace(body, inertia=np.outer(unit, unit) * body.inertia, armature=length**2 * np.asarray(body.armature))
        for body in arm.bodies
    ]
    return kf.System(bodies, gravity=arm.gravity)


def levers(seed):
    """A chain of which each step mixes states of very different sizes."""
    rng = np.random.default_rng(seed)
    n, steps = int(rng.integers(2, 5)), 4
    mixed = [np.triu(rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-6, 6), 1) for _ in range(steps - 1)]
    Q, P0 = np.diag(10.0 ** rng.uniform(-12, 6, n)), np.diag(10.0 ** rng.uniform(-2, 12, n))
    R = np.eye(1) * 10.0 ** rng.uniform(-8, 8)
    return kf.StateSpace.chain([np.eye(n) + A for A in mixed], rng.normal(size=(1, n)), Q, R, np.zeros(n), P0)


def bryson_frazier_form(ss, cov, k):
    """P⁺ − P⁺Λ⁺P⁺, and the deviations whose products it is a sum of: P⁺ + |P⁺||φ|*|Λ||φ||P⁺|."""
    P, phi, Lambda = cov.P_plus[k], ss.phi[k], cov.smoothed.Lambda[ss.tree.parent[k]]
    steps = np.abs(phi) @ np.abs(P)
    return P - P @ phi.T @ Lambda @ phi @ P, np.sqrt(np.diag(np.abs(P) + steps.T @ np.abs(Lambda) @ steps))


def rauch_tung_striebel_form(ss, cov, k, S):
    """The same from S of the parent."""
    p, P, phi = ss.tree.parent[k], cov.P_plus[k], ss.phi[k]
    J = np.linalg.solve(cov.P[p], phi @ P).T
    E = np.eye(len(P)) - J @ phi
    others = [ss.phi[j] @ cov.P_plus[j] @ ss.phi[j].T for j in ss.tree.children(p) if j != k]
    return E @ P @ E.T + J @ (sum(others, ss.Q[p]) + S) @ J.T


def expect_the_better_form(ss):
    """S is as near to the truth as Bryson–Frazier's form in its units, and as Rauch–Tung–Striebel's in those of S."""
    cov, exact = kf.riccati(ss), exact_smoother(ss, np.zeros(ss.n_outputs)).S
    S = cov.smoothed.S
    for k in range(len(ss)):
        p = ss.tree.parent[k]
        if p < 0 or not (np.diag(S[k]) < 0.01 * np.diag(cov.P_plus[k])).any():
            continue
        difference, terms = bryson_frazier_form(ss, cov, k)
        forms = difference, rauch_tung_striebel_form(ss, cov, k, S[p])
        units = terms, np.sqrt(np.diag(exact[k]).astype(float))
        for i, (form, unit, floor) in enumerate(zip(forms, units, (8 * EPS, 1e-8))):
            mine, theirs = (np.abs((one - exact[k]).astype(float) / np.outer(unit, unit)).max() for one in (S[k], form))
            assert mine <= (4, 100)[i] * max(floor, theirs), (k, i)


@pytest.mark.parametrize("length", [1e-6, 1e-4, 1e-2])
def test_a_small_body_on_a_long_lever(length):
    """P(p) is that of a point mass but for its last digits, so that J S(p) J* has next to none."""
    arm = small_arm(length)
    for seed in range(3):
        expect_the_better_form(kf.as_estimation(arm, arm.random_configuration(np.random.default_rng(seed))))


@pytest.mark.filterwarnings("ignore::kfdyn.errors.LostDigitsWarning")
@pytest.mark.parametrize("seed", sorted(set(range(24)) - {4, 18}))  # in which P(p) is singular to rounding
def test_states_of_all_sizes(seed):
    """Each form is far better than the other in some of these; S follows the better one."""
    expect_the_better_form(levers(seed))
