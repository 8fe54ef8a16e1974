"""No choice of units, however far from the robot's size, may reject an honest robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality import identity_residuals
from kfdyn.duality.rounding import in_natural_units
from kfdyn.spatial import spatial_inertia


def in_other_units(system: kf.System, mass: float, length: float) -> kf.System:
    """Return the same robot with every mass and every length multiplied; gravity stays, so that means grow."""
    shift = np.diag([length] * 3 + [1.0] * 3)
    bodies = [
        replace(
            body,
            inertia=mass * shift @ np.asarray(body.inertia) @ shift,
            position=length * np.asarray(body.position),
            armature=mass * length**2 * np.asarray(body.armature),
        )
        for body in system.bodies
    ]
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


def test_natural_units_round_nothing() -> None:
    """Units are powers of two: the mass matrix in other units has the same digits."""
    robot = in_other_units(kf.models.random_tree(5, seed=2), 1e-3, 1e4)
    ss = kf.as_estimation(robot, robot.random_configuration(np.random.default_rng(2)))
    natural = in_natural_units(ss)
    ours, theirs = (np.frexp(kf.kalman_filter(model, np.zeros(ss.n_outputs)).D.flat)[0] for model in (ss, natural))
    np.testing.assert_array_equal(ours, theirs)
    assert np.all(np.abs(np.log2(np.diag(kf.Covariances(natural).T.dense()))) <= 1 + 1e-12)
