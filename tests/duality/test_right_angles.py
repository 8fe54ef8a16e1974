"""Honest robots pass where levers vanish: neutral and right-angle poses, in which entries have variance 0."""

import numpy as np
import pytest
from duality_cases import heavier, outcomes
from exact import exact_smoother
from right_angle_poses import poses, right_angles, samples_for
from robot_agreement import bullet_robots, example_robots, label, mjcf_models

import kfdyn as kf
from kfdyn.duality import claims, cross_check, rounding_bound
from kfdyn.duality.tolerance import rounding as module
from kfdyn.duality.tolerance.unit_groups import unit_groups
from kfdyn.errors import KfdynError, SingularError

EXAMPLES = {file.stem: file for file in example_robots()}
pytestmark = [
    pytest.mark.filterwarnings("ignore::kfdyn.io.load_result.LoadWarning"),
    pytest.mark.skipif(not EXAMPLES, reason="example-robot-data is not installed"),
]
#: Robots and the numbers of poses that were rejected while every component was measured by its own size.
WOLVES = {
    "panda": (0,),
    "allegro_right_hand": (2, 4),
    "hextilt_flying_arm_5": (1, 4, 6),
    "borinot_flying_arm_2": (1, 10, 13),
    "talos_left_arm": (0,),
}


def check(system, numbers):
    """Verdicts of some poses; a pose in which a hinge moves no mass has none."""
    for i, (q, v) in enumerate(poses(system, max(numbers))):
        if i not in numbers:
            continue
        try:
            report = cross_check(system, q, v, samples=samples_for(system), seed=i)
            if not report.passed:  # once in a thousand it may be chance, which does not repeat itself
                report = cross_check(system, q, v, samples=samples_for(system), seed=1000 + i)
            yield i, report
        except KfdynError:
            # Refused rightly: in double precision the mass matrix has no inverse.
            if np.linalg.cond(kf.mass_matrix(system, q)) < 1e13:
                raise


@pytest.mark.parametrize("name", WOLVES)
def test_robots_that_were_rejected_pass(name):
    system = kf.load(EXAMPLES[name])
    for i, report in check(system, WOLVES[name]):
        assert report.passed, (i, report.verdict())


@pytest.mark.slow
@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("file", example_robots(), ids=label)
def test_every_example_robot_passes(file, floating_base):
    try:
        system = kf.load(file, floating_base=floating_base)
    except KfdynError:
        pytest.skip("is no robot that can be: see test_urdf_robots")
    for i, report in check(system, range(5 if floating_base else 21)):
        assert report.passed, (i, report.verdict())


@pytest.mark.slow
@pytest.mark.parametrize("file", [*bullet_robots(), *mjcf_models()], ids=label)
def test_every_other_public_robot_passes(file):
    try:
        system = kf.load(file)
    except (KfdynError, ValueError):
        pytest.skip("nothing moves, or its own tools refuse it")
    for i, report in check(system, range(21)):
        assert report.passed, (i, report.verdict())


def test_axes_of_the_world_as_units_cry_wolf(monkeypatch):
    """What was wrong: each component measured by its own size, however it came about. The test above can fail, then."""
    system = kf.load(EXAMPLES["panda"])
    monkeypatch.setattr(module, "unit_groups", lambda ss: [np.arange(n) for n in ss.n.tolist()])
    monkeypatch.setattr(module, "_handed", lambda deviation, terms, floor: np.maximum(deviation, floor * terms))
    _, report = next(check(system, [0]))
    assert any("cov[λ]" in line or "entries of λ" in line for line in report.rejected)


@pytest.mark.parametrize("name", ["panda", "talos_left_arm"])
def test_units_do_not_depend_on_the_axes_of_the_world(name):
    """The robot bolted to a base turned at random has the same bound, and terms of the same size at every body."""
    system = kf.load(EXAMPLES[name], mimic="free")
    turned = _turned(system, np.random.default_rng(3))
    q = right_angles(system, np.random.default_rng(1))
    one, other = (kf.as_estimation(each, q) for each in (system, turned))
    assert rounding_bound(one) == pytest.approx(rounding_bound(other), rel=1e-9)
    for quantity, claim in claims(one).items():
        if quantity in ("x", "costate"):
            there = claims(other)[quantity].units.terms
            np.testing.assert_allclose(_largest(claim.units.terms), _largest(there), rtol=1e-6)


def _largest(terms):
    return terms.reshape(-1, 2, 3).max(-1)


def _turned(system, rng):
    from dataclasses import replace

    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R *= np.linalg.det(R)
    bodies = [
        replace(body, rotation=R @ body.rotation, position=R @ body.position) if body.parent is None else body
        for body in system.bodies
    ]
    return kf.System(bodies, R @ system.gravity, name=system.name)


def test_bound_holds_where_levers_vanish():
    """Λ, S and P of Panda's right-angle poses in doubles, against fifty digits on the same numbers."""
    system = kf.load(EXAMPLES["panda"], mimic="free")
    for q, _ in poses(system, 1):
        ss = kf.as_estimation(system, q)
        bound, claimed, cov = rounding_bound(ss), claims(ss), kf.Covariances(ss)
        exact = exact_smoother(ss, np.zeros(ss.n_outputs))
        for name, ours, theirs in (
            ("costate", cov.riccati.smoothed.Lambda, exact.Lambda),
            ("smoothed_error", cov.riccati.smoothed.S, exact.S),
            ("filter_error", cov.riccati.P, exact.P),
        ):
            for k, unit in enumerate(np.split(claimed[name].units.terms, len(ss))):
                gap = np.abs((ours[k] - theirs[k]).astype(float)) / np.outer(unit, unit)
                assert gap.max() < bound, (name, k)


@pytest.mark.parametrize("link", [0, 6])
def test_a_wrong_mass_is_found_where_levers_vanish(link):
    """The power is not gone with the alarms: one link of Panda in its neutral pose 5 % too heavy."""
    system = kf.load(EXAMPLES["panda"])
    ss = kf.as_estimation(system, system.neutral())
    _, smallest = outcomes(ss, 30_000, 0, truth=heavier(ss, link, 1.05))
    assert smallest < 1e-3


def test_a_robot_without_an_inverse_is_refused_by_the_hinge_at_fault():
    """In its neutral pose the axis of iCub's neck passes through a mass that is a point: cond 𝓜 = 3e16."""
    system = kf.load(EXAMPLES["icub"])
    with pytest.raises(SingularError, match=r"hinge 'neck_(roll|yaw|pitch)': "):
        cross_check(system, system.neutral(), samples=500)


def test_bodies_are_told_from_other_nodes():
    tree = kf.models.random_tree(6, seed=1)
    assert all(starts.tolist() == [0, 3] for starts in unit_groups(kf.as_estimation(tree, tree.neutral())))
    # a point in space with its velocity has six components as well, and another transition
    F = np.block([[np.eye(3), 0.1 * np.eye(3)], [np.zeros((3, 3)), np.eye(3)]])
    track = kf.StateSpace.chain(F, np.eye(3, 6), np.eye(6), np.eye(3), np.zeros(6), np.eye(6), steps=4)
    assert all(starts.tolist() == list(range(6)) for starts in unit_groups(track))
