"""Many motions marched a block after the other: to the bit what they are together."""

import numpy as np
import pytest
from multibody_cases import forest, state

import kfdyn as kf
from kfdyn.dynamics.simulation import compiled_stepper
from kfdyn.errors import KfdynError

PARTS = ("q", "v", "tau", "kinetic", "potential", "work", "momentum")


@pytest.fixture
def in_blocks(monkeypatch):
    """Marches in blocks of eight motions; their sizes."""
    sizes, whole = [], compiled_stepper.March.whole

    def seen(self, q, *more):
        sizes.append(len(q))
        return whole(self, q, *more)

    def begin():
        monkeypatch.setattr(compiled_stepper, "_TOGETHER", 1)
        monkeypatch.setattr(compiled_stepper, "_FEW", 2)
        monkeypatch.setattr(compiled_stepper.March, "whole", seen)
        return sizes

    return begin


@pytest.mark.parametrize("method", ["euler", "rk4", "implicit"])
@pytest.mark.parametrize("lead", [(19,), (3, 7)])
def test_blocks_of_motions(method, lead, in_blocks):
    system, rng = forest(3)
    q, v = state(system, rng, lead)
    tau, drag = rng.normal(size=(*lead, system.nv)), rng.uniform(0.1, 0.5, system.nv)
    follow = kf.LinearFeedback(system, kd=0.3, v=rng.normal(size=(*lead, 1, system.nv)), t=[0.0])
    given = {"method": method, "substeps": 3, "damping": drag, "gravity": rng.normal(size=(*lead, 3))}
    given["external_forces"] = rng.normal(size=(*lead, system.n_bodies, 6))
    wanted = [kf.simulate(system, q, v, [0.0, 0.01, 0.025], law, **given) for law in (tau, follow, None)]
    sizes = in_blocks()
    for law, whole in zip((tau, follow, None), wanted):
        found = kf.simulate(system, q, v, [0.0, 0.01, 0.025], law, **given)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(found, part), getattr(whole, part), part)
    assert sizes == ([8, 8, 3] if lead == (19,) else [8, 8, 5]) * 3


@pytest.mark.parametrize("method", ["euler", "implicit"])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_blocks_of_robots_that_differ(method, lead, in_blocks, rng):
    arm = kf.models.stanford_arm()
    drag = {"damping": rng.uniform(0.1, 0.5, (21, 6)), "armature": rng.uniform(0.1, 0.2, (21, 6))}
    robots = kf.with_parameters(arm, masses=rng.uniform(5.0, 6.0, (21, 6)), **drag)
    q, v = 0.3 * rng.normal(size=(2, *lead, 21, 6))
    whole = kf.simulate(robots, q, v, [0.0, 0.01, 0.03], method=method, substeps=2, damping=True)
    sizes = in_blocks()
    found = kf.simulate(robots, q, v, [0.0, 0.01, 0.03], method=method, substeps=2, damping=True)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(found, part), getattr(whole, part), part)
    assert sizes == ([8] * 5 + [2] if lead else [8, 8, 5])


def test_the_bar_moves_once_from_end_to_end(in_blocks):
    arm, reached = kf.models.double_pendulum(), []
    driven = kf.dynamics.simulation.motion_arguments.motion(arm, None)
    in_blocks()
    marching = compiled_stepper.March(driven, "euler", 1, (20,))
    marching.in_blocks(np.ones((20, 2)), np.zeros((20, 2)), np.array([1.0, 2.0, 4.0]), reached.append)
    np.testing.assert_allclose(reached, [2.0, 3.0, 4.0])


def test_a_motion_that_fails_is_named_by_its_place(in_blocks):
    in_blocks()
    robots = kf.with_parameters(kf.models.double_pendulum(), damping={"shoulder": [0.1] * 11 + [1e9]})
    with pytest.raises(KfdynError, match=r"motion \[11\]"):
        kf.simulate(robots, [0.1, 0.2], [1.0, 0.0], np.linspace(0, 0.1, 11), method="euler", damping=True)
