"""No choice of units, however far from the robot's size, may reject an honest robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality import claims, identity_residuals, independent_checks
from kfdyn.duality.hypothesis.hypothesis_tests import judge
from kfdyn.duality.identities import identity_tolerance
from kfdyn.duality.monte_carlo import Plan, stream
from kfdyn.duality.tolerance.natural_units import in_natural_units
from kfdyn.errors import ModelError
from kfdyn.spatial import spatial_inertia


def in_other_units(system: kf.System, mass: float, length: float, hinges: float | None = None) -> kf.System:
    """Return the same robot with every mass and every length multiplied; gravity stays, so that means grow.

    ``hinges`` multiplies the places of the hinges and their pitches instead: then it is another robot.
    """
    hinges = length if hinges is None else hinges
    shift = np.diag([length] * 3 + [1.0] * 3)
    bodies = []
    for body in system.bodies:
        screws = np.array(body.hinge.screws)
        slides = ~screws[:, :3].any(1)
        screws[~slides, 3:] *= hinges
        bodies.append(
            replace(
                body,
                inertia=mass * shift @ np.asarray(body.inertia) @ shift,
                position=hinges * np.asarray(body.position),
                hinge=replace(body.hinge, screws=screws),
                armature=mass * np.where(slides, 1.0, length**2) * np.asarray(body.armature),
            )
        )
    return kf.System(bodies, gravity=system.gravity)


@pytest.mark.filterwarnings("ignore::kfdyn.spatial.validate.TriangleInequalityWarning")  # the PUMA as published
@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("model", ["pendulum", "double_pendulum", "puma560"])
def test_heavy_and_fast_robots_pass(model: str, mass: float, length: float) -> None:
    """Means are up to 1e9 deviations there; what their rounding leaves in the samples is no error of a formula."""
    rng = np.random.default_rng(0)
    robot = in_other_units(getattr(kf.models, model)(), mass, length)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    for seed in range(4):
        report = kf.cross_check(robot, q, v, samples=100, seed=seed)
        assert report.passed, report.rejected


@pytest.mark.parametrize("seed", [56, 78, 119, 163, 184, 258])
def test_point_masses_pass_with_few_samples(seed: int) -> None:
    """A point mass beside an axis has a singular inertia up to rounding, whose root leaves the range by 1e-9."""
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(4):
        p, mass = rng.normal(size=3) * [1, 1, 10.0 ** rng.integers(-3, 1)], rng.uniform(0.1, 2)
        inertia, hinge = spatial_inertia(mass, p, np.zeros((3, 3))), kf.Hinge.revolute(np.eye(3)[rng.integers(3)])
        bodies.append(kf.Body(f"b{k}", inertia, hinge, f"b{k - 1}" if k else None, position=rng.normal(size=3)))
    report = kf.cross_check(kf.System(bodies), rng.uniform(-3, 3, 4), samples=24, seed=seed)
    assert report.passed, report.rejected


@pytest.mark.parametrize("length", [1e-6, 1e-3, 1e3, 1e6])
def test_identities_do_not_depend_on_units(length: float) -> None:
    """Moments of a robot of micrometres are 1e-12 of its forces, and are not rounding."""
    robot = in_other_units(kf.models.humanoid(), 1.0, length)
    q = robot.random_configuration(np.random.default_rng(1))
    worst = max(identity_residuals(kf.as_estimation(robot, q)).values())
    assert worst < 1e-11


@pytest.mark.parametrize("seed", [7, 19, 33, 89])
def test_identities_hold_where_the_mass_matrix_is_all_but_singular(seed: int) -> None:
    """With 𝓜⁻¹ by an LU factor, φQφ*H*𝓜⁻¹HφQφ* had not one right digit where rounding excuses a twentieth."""
    robot = in_other_units(kf.models.random_tree(7, seed=2436, armature=False), 1.0, 1e-5, hinges=1.0)
    ss = kf.as_estimation(robot, robot.random_configuration(np.random.default_rng(seed)))
    assert max(identity_residuals(ss).values()) < 0.1 * identity_tolerance(ss) < 0.01


def test_natural_units_round_nothing() -> None:
    """Units are powers of two: the mass matrix in other units has the same digits."""
    robot = in_other_units(kf.models.random_tree(5, seed=2), 1e-3, 1e4)
    ss = kf.as_estimation(robot, robot.random_configuration(np.random.default_rng(2)))
    natural = in_natural_units(ss)
    ours, theirs = (np.frexp(kf.kalman_filter(model, np.zeros(ss.n_outputs)).D.flat)[0] for model in (ss, natural))
    np.testing.assert_array_equal(ours, theirs)
    assert np.all(np.abs(np.log2(np.diag(kf.Covariances(natural).T.dense()))) <= 1 + 1e-12)


@pytest.mark.parametrize("seed", [0, 10, 23, 34])
def test_hinges_that_move_next_to_no_mass_pass_as_far_as_anybody_knows_them(seed: int) -> None:
    """Bodies of 10 µm on levers of metres, κ up to 3e11: filterpy's gain is a quotient of what is all but 0."""
    robot = in_other_units(kf.models.random_tree(6, seed=seed), 1.0, 1e-5, hinges=1.0)
    report = kf.cross_check(robot, robot.random_configuration(np.random.default_rng(seed)), samples=60, seed=seed)
    assert report.passed, report.rejected


def test_a_filter_of_another_body_is_seen_by_filterpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is excused above is excused there alone: of an ordinary arm filterpy sees a link 1e-8 too heavy."""
    arm, q = kf.models.puma560(), [0.3, -0.8, 0.3, 0.1, 0.5, 0.2]
    passed = [party.subject for party in kf.cross_check(arm, q, samples=100).parties if party.name == "filterpy"]

    def heavier(ss: kf.StateSpace, T: np.ndarray, **known: np.ndarray) -> kf.Filtered:
        return kf.kalman_filter(ss.replace(Q=[(1 + 1e-8 * (k == 5)) * Q for k, Q in enumerate(ss.Q)]), T, **known)

    monkeypatch.setattr(independent_checks, "kalman_filter", heavier)
    report = kf.cross_check(arm, q, samples=100)
    assert [party.subject for party in report.parties if not party.passed] == passed


@pytest.mark.parametrize("seed", range(4))
def test_slides_beside_hinges_of_kilometres_pass(seed: int) -> None:
    """𝓜 holds masses beside moments of 1e12 times their size; an LU factor rounds by the largest."""
    robot = in_other_units(kf.models.stanford_arm(), 1.0, 1e6)
    report = kf.cross_check(robot, robot.random_configuration(np.random.default_rng(seed)), samples=100, seed=seed)
    assert report.passed, report.rejected


def test_innovations_are_measured_by_the_terms_of_their_means() -> None:
    """Rods of 1000 km at right angles: forces whose moment about the next hinge is 0 have moments about the others."""
    robot, rng = in_other_units(kf.models.uniform_chain(8), 1.0, 1e6), np.random.default_rng(2)
    q = 0.5 * np.pi * rng.integers(-2, 3, robot.nv)
    report = kf.cross_check(robot, q, np.random.default_rng(2).normal(size=robot.nv), samples=100, seed=2)
    assert report.passed, report.rejected


def test_a_light_body_below_heavy_ones_has_its_rank() -> None:
    """x and x − z = ψw have one rank where R = 0, however little a body adds to what it carries."""
    rods = kf.models.uniform_chain(4).bodies
    light = [replace(rod, inertia=1e-12 * np.asarray(rod.inertia)) if k == 1 else rod for k, rod in enumerate(rods)]
    claimed = claims(kf.as_estimation(kf.System(light), [0.1, 0.2, 0.3, 0.4]))
    assert claimed["x"].rank == claimed["filter_error"].rank == 20


def test_means_beyond_double_precision_are_refused() -> None:
    """Links of 1000 km at 1000 rad/s: a sample holds sixteen digits of its mean, and none of its deviation."""
    robot = in_other_units(kf.models.chain(10, seed=384), 5e4, 1e6)
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng), 1e3 * rng.normal(size=10)
    with pytest.raises(ModelError, match=r"joint_\d: the mean of its generalised force is made of terms .* lower v"):
        kf.cross_check(robot, q, v, samples=789)
    assert kf.cross_check(robot, q, samples=789).passed


@pytest.mark.parametrize("n", [20, 60])
def test_every_direction_of_a_long_chain_is_tested(n: int) -> None:
    """Sizes of means were carried along by Frobenius norms, √3 for a rotation: 1e9 in forty, and most of 𝓜 untested."""
    rods = kf.models.uniform_chain(n)
    ss = kf.as_estimation(rods, rods.neutral() + 0.3)
    plan, claimed = Plan.of(ss, ss, 0), claims(ss)
    (moments,) = stream(plan, 16 * n)
    found = judge(plan, moments, claimed).findings
    assert {name: one.tested_rank for name, one in found.items()} == {name: one.rank for name, one in claimed.items()}


@pytest.mark.parametrize("spare", [0, 1, 2, 5])
def test_as_many_samples_as_dimensions_keep_the_level(spare: int) -> None:
    """The least number that is allowed, for 114 dimensions: p was 0 or 1 there, or no number."""
    robot = kf.models.humanoid()
    q = robot.random_configuration(np.random.default_rng(spare))
    for seed in range(5):
        report = kf.cross_check(robot, q, samples=114 + spare, seed=seed)
        assert report.passed, report.rejected
        assert all(test.p_value > 0 for test in report.tests)
        assert sum(test.p_value == 1 for test in report.tests if test.kind == "covariance") == 0


@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-8, 1e-7, 1e-5, 1e-3])
def test_rods_next_to_an_axis(angle):
    """The moment about the rod is what rotation left of the others: known to the rounding of theirs, and 0 at 1e-9."""
    rods = kf.models.uniform_chain(3)
    for quarter in range(4):
        q = [quarter * np.pi / 2 + angle, angle, -angle]
        report = kf.cross_check(rods, q, samples=60, seed=quarter)
        assert report.passed, report.verdict()
