"""Covariances that keep their sign, units in which rounding is small, and the bound on what it may do."""

import mpmath as mp
import numpy as np
import pytest
from duality_cases import heavier, outcomes
from exact import exact_smoother
from hypothesis import given
from random_models import cases, few
from robot_agreement import example_robots

import kfdyn as kf
from kfdyn.duality import claims, cross_check
from kfdyn.duality.noise_operators import noise_maps
from kfdyn.duality.tolerance.rounding import EPS, resolution, rounding_bound

HARD = {file.stem: file for file in example_robots()}
pytestmark = pytest.mark.filterwarnings("ignore::kfdyn.io.load_result.LoadWarning")


def icub(floating_base):
    if "icub" not in HARD:
        pytest.skip("example-robot-data is not installed")
    system = kf.load(HARD["icub"], floating_base=floating_base)
    rng = np.random.default_rng(0)
    return system, system.random_configuration(rng), rng.standard_normal(system.nv)


@given(cases(noise=True))
@few
def test_maps_of_white_noise_are_square_roots_of_the_covariances(case):
    """Closed forms by recursion on one side, products of sweeps with a factor of the noise on the other."""
    bound = rounding_bound(case.ss)
    for name, claim in claims(case.ss).items():
        factor, units = claim.covariance.factor, np.outer(claim.units.terms, claim.units.terms)
        A = factor.dense()
        np.testing.assert_allclose(A @ A.T / units, claim.covariance.closed.dense() / units, rtol=0, atol=bound)
        size = np.abs(A).max(initial=0.0)
        np.testing.assert_allclose(factor.H.dense().T, A, rtol=0, atol=1e-10 * max(size, claim.scale.max(initial=0.0)))
        assert name in noise_maps(case.ss)


def test_a_sketch_of_a_map_is_a_sketch_of_its_covariance():
    ss = kf.as_estimation(kf.models.random_tree(9, seed=3), kf.models.random_tree(9, seed=3).neutral())
    rng = np.random.default_rng(0)
    for claim in claims(ss).values():
        V = rng.standard_normal((len(claim.mean), 4)) / claim.scale[:, None]
        expected = V.T @ claim.matrix @ V
        np.testing.assert_allclose(claim.covariance.seen_in(V), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("floating_base", [False, True])
def test_covariances_of_a_badly_conditioned_robot_keep_their_sign(floating_base):
    """icub: cond 𝓜 up to 1e9, links without moments of inertia about an axis. No variance is negative in any direction,
    but for the rounding of the eigenvalues themselves."""
    system, q, v = icub(floating_base)
    ss = kf.as_estimation(system, q, v)
    for name, claim in claims(ss).items():
        unit = claim.matrix / np.outer(claim.scale, claim.scale)
        eigenvalue = np.linalg.eigvalsh(unit)
        assert eigenvalue[0] > -len(unit) * EPS * eigenvalue[-1], name
        # and the rank that theory has shows as a gap of five decades; the cut lies in it, a decade above the lower end
        rank, cut = claim.rank, resolution(rounding_bound(ss))
        assert eigenvalue[-rank] > cut, name
        assert rank == len(unit) or eigenvalue[-rank - 1] < 0.1 * cut, name
        assert rank == len(unit) or eigenvalue[-rank - 1] < 1e-5 * eigenvalue[-rank], name


@pytest.mark.parametrize("floating_base", [False, True])
def test_a_badly_conditioned_robot_passes(floating_base):
    system, q, v = icub(floating_base)
    report = cross_check(system, q, v, samples=5000)
    assert report.passed, report.verdict()
    assert {party.name for party in report.parties} >= {"closed forms", "dense algebra", "filterpy"}
    assert all(finding.tested_rank == finding.rank for finding in report.findings.values())


@pytest.mark.parametrize("name", ["kinova", "panda", "talos_reduced"])
def test_components_that_are_all_rounding_are_not_taken_for_variances(name):
    """Kinova's hinge axes are 1e-12 off the axes of the world, gravity is not."""
    if name not in HARD:
        pytest.skip("example-robot-data is not installed")
    system = kf.load(HARD[name])
    rng = np.random.default_rng(0)
    report = cross_check(system, system.random_configuration(rng), rng.standard_normal(system.nv), samples=2000)
    assert report.passed, report.verdict()


@pytest.mark.parametrize("link", ["head", "r_upper_leg", "torso_1"])
def test_and_a_wrong_mass_of_it_does_not(link):
    system, q, _ = icub(False)
    ss = kf.as_estimation(system, q)
    _, smallest = outcomes(ss, 20_000, 0, truth=heavier(ss, system.body_names.index(link), 1.2))
    assert smallest < 1e-3


def test_nor_a_wrong_formula():
    """S = P − PΛP with Λ⁺ for Λ; 𝓜⁻¹ off by a part in a million in one entry."""
    from dataclasses import replace

    from kfdyn.duality.noise_operators import Given

    system, q, _ = icub(False)
    ss = kf.as_estimation(system, q)
    claim = claims(ss)["a"]
    wrong = claim.matrix.copy()
    wrong[3, 3] *= 1 + 1e-6
    report = cross_check(
        system, q, samples=2000, claimed={"a": replace(claim, covariance=Given(wrong, ss.arrays.output))}
    )
    assert not report.passed
    assert any(line.startswith("dense algebra: cov[a]") for line in report.rejected)
    cov = kf.Covariances(ss)
    S = cov.smoothed_error.dense().copy()
    k = system.body_names.index("r_upper_leg")
    own = slice(ss.arrays.state[k], ss.arrays.state[k + 1])
    P, Lambda = cov.riccati.P[k], cov.riccati.smoothed.Lambda[k]
    phi, p = ss.phi[k], ss.tree.parent[k]
    S[own, own] = P - P @ (phi.T @ cov.riccati.smoothed.Lambda[p] @ phi) @ P
    assert np.abs(S[own, own] - (P - P @ Lambda @ P)).max() > 1e-3 * np.abs(P).max()
    claim = replace(claims(ss)["smoothed_error"], covariance=Given(S, ss.arrays.state))
    report = cross_check(system, q, samples=2000, claimed={"smoothed_error": claim})
    assert any("x − x̂" in line for line in report.rejected)


# --- the bound


@given(cases(noise=False))
@few
def test_bound_holds_against_fifty_digits(case):
    """Riccati and smoother in doubles against fifty digits: P, S by the state's variances, D by its own."""
    bound = rounding_bound(case.ss)
    exact, cov = exact_smoother(case.ss, case.T), kf.Covariances(case.ss)
    for k in range(len(case.ss)):
        unit = np.sqrt(np.diag(cov.x.diagonal[k]))
        unit = np.where(unit > 0, unit, 1.0)
        for ours, theirs, by in (
            (cov.riccati.P[k], exact.P[k], unit),
            (cov.riccati.smoothed.S[k], exact.S[k], unit),
            (cov.riccati.D[k], exact.D[k], np.sqrt(np.diag(cov.riccati.D[k]))),
        ):
            gap = np.abs((ours - theirs).astype(float)) / np.outer(by, by)
            assert gap.max(initial=0.0) < bound


@pytest.mark.parametrize("delta", [1.0, 1e-2, 1e-4, 1e-5])  # at 1e-6 the model is refused as singular
def test_bound_follows_the_condition_of_the_mass_matrix(delta):
    """Two hinges about one axis, the outer one's inertia δ² of the inner one's: 𝓜 = [[1 + δ², δ²], [δ², δ²]].

    The outer body is a point at distance δ from its hinge, itself at distance 1 − δ from the first: 𝓜 = [[1, δ], [δ,
    δ²]] would be singular, so the inner body has an inertia of δ² of its own.
    """
    J = np.array([[1.0 + delta**2, delta], [delta, delta**2]])
    ss = kf.StateSpace([-1], [None], [np.eye(2)], [J])
    bound = rounding_bound(ss)
    with mp.workdps(50):
        exact = mp.inverse(mp.matrix(J.tolist()))
    inverse = np.linalg.inv(J)
    off = max(
        abs(float(mp.mpf(inverse[i, j]) - exact[i, j])) / float(mp.sqrt(exact[i, i] * exact[j, j]))
        for i in range(2)
        for j in range(2)
    )
    assert off < bound
    condition = 2 * (1 + delta**2) / delta**2  # Σ 𝓜_ii (𝓜⁻¹)_ii
    assert bound == pytest.approx(64 * EPS * (1 + condition), rel=1e-3)


def test_a_gap_beyond_rounding_is_rejected_where_nothing_cancels():
    """A well-conditioned arm is held to a tighter bound than the badly conditioned one."""
    arm = kf.models.puma560()
    q = np.linspace(-1, 1, 6)
    ss = kf.as_estimation(arm, q)
    assert rounding_bound(ss) < 1e-10
    inverse = np.linalg.inv(kf.mass_matrix(arm, q))
    assert cross_check(arm, q, samples=500, peers={"me": inverse}).passed
    assert not cross_check(arm, q, samples=500, peers={"me": inverse * (1 + 1e-9)}).passed
