"""A smoothed motion is the optimum that Crocoddyl finds: forces for torques, readings for costs; it needs pin 4.0."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf

pytest.importorskip("crocoddyl", reason="Crocoddyl is not installed")
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.motions import ByCrocoddyl, Case
from benchmarks.robots import packaged


@pytest.mark.parametrize(("file", "floats"), [("ur5_robot.urdf", False), ("solo12.urdf", True)])
def test_the_mode_is_crocoddyls_optimum(file, floats):
    source = packaged("example-robot-data", file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a file says and dynamics does not use
        system = kf.load(source, floating_base=floats)
    case = Case.of(kf.dynamics.with_armature(system, np.zeros(system.nv)), 40)
    other = ByCrocoddyl(case, source, floats)
    other.solve()
    post = case.smoothed(False)
    assert post.converged
    torques = (case.tau + post.force)[:, other.v]
    bound = 1e-8 * np.abs(torques).max()
    np.testing.assert_allclose(np.array(other.solver.us), torques, rtol=0, atol=bound)
    np.testing.assert_allclose(other.solver.cost, post.cost[-1], rtol=1e-9)
