"""The symplectic step on loops and couplings: closed, of order 2, reversible, and without drift."""

import itertools

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import KfdynError, ModelError
from kfdyn.multibody.loops.closure import constraint_jacobian, gaps
from kfdyn.spatial import spatial_inertia


def swinging(rate=1.7):
    s, q = kf.models.four_bar(), kf.models.four_bar_configuration(0.7)
    return s, q, kf.minimal_coordinates(s, q).X @ [rate]


def floating_ring():
    """Two arms on a free base whose hands hold each other, far from any weight."""
    base = kf.Body("base", spatial_inertia(3.0, [0, 0, 0], np.diag([0.3, 0.4, 0.5])), kf.Hinge.free())
    arms = []
    for side, y in (("l", 0.3), ("r", -0.3)):
        up = "base"
        for i, axis in enumerate(([0, 0, 1], [0, 1, 0], [0, 0, 1])):
            name = f"{side}{i}"
            M = spatial_inertia(1.0, [0.25, 0, 0], np.diag([0.01, 0.06, 0.06]) + 0.01 * np.eye(3))
            where = [0.0, y, 0.0] if i == 0 else [0.5, 0.0, 0.0]
            arms.append(kf.Body(name, M, kf.Hinge.revolute(axis), parent=up, position=where))
            up = name
    frames = {f"{side} hand": kf.Frame(f"{side}2", position=[0.4, 0.0, 0.0]) for side in "lr"}
    tree = kf.System([base, *arms], gravity=[0, 0, 0], frames=frames)
    return tree.with_loops([kf.Loop("l hand", "r hand", rows="point")])


def test_closed_and_without_drift():
    s, q, v = swinging()
    motion = kf.simulate(s, q, v, np.linspace(0, 4, 401), method="symplectic")
    assert np.abs(gaps(s, motion.q)[0]).max() < 1e-12
    assert np.abs(constraint_jacobian(s, motion.q) @ motion.v[..., None]).max() < 1e-11
    early, late = (np.ptp(motion.energy[part]) for part in (slice(0, 200), slice(200, 401)))
    assert late < 1.2 * early  # the band that it moves in stays as wide
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-3 * np.ptp(motion.kinetic)


def test_of_order_two():
    s, q, v = swinging()
    exact = kf.simulate(s, q, v, [0.0, 0.5], substeps=400).q[-1]
    errors = [
        np.abs(kf.simulate(s, q, v, [0.0, 0.5], method="symplectic", substeps=n).q[-1] - exact).max()
        for n in (25, 50, 100)
    ]
    assert all(3.8 < a / b < 4.2 for a, b in itertools.pairwise(errors)), errors


def test_reversible():
    """Back by the same steps, to rounding: what makes the energy's error periodic."""
    s, q, v = swinging()
    there = kf.simulate(s, q, v, np.linspace(0, 1, 51), method="symplectic")
    back = kf.simulate(s, there.q[-1], -there.v[-1], np.linspace(0, 1, 51), method="symplectic")
    assert np.abs(back.q[-1] - q).max() < 1e-10
    assert np.abs(back.v[-1] + v).max() < 1e-10


def test_momentum_of_a_ring_afloat():
    s, rng = floating_ring(), np.random.default_rng(0)
    q = kf.assemble(s, kf.assemble(s, s.open_tree.neutral() + np.r_[np.zeros(7), 0.5, 0.2, 0.9, -0.6, 0.1, -0.8]))
    v = kf.impact(s, q, 0.6 * rng.normal(size=s.nv)).v
    motion = kf.simulate(s, q, v, np.linspace(0, 2, 201), method="symplectic")
    momentum = motion.momentum[:, 3:]
    assert np.abs(momentum - momentum[0]).max() < 1e-11
    angular = motion.momentum[:, :3]
    assert np.abs(angular - angular[0]).max() < 1e-10
    assert np.abs(gaps(s, motion.q)[0]).max() < 1e-12
    assert np.abs(motion.energy - motion.energy[0]).max() < 2e-3 * motion.kinetic[0]


def test_a_batch_moves_as_each_alone():
    s, q, _ = swinging()
    rates = np.array([0.5, 1.0, 1.7])
    v = np.array([kf.minimal_coordinates(s, q).X @ [x] for x in rates])
    t = np.linspace(0, 0.2, 21)
    many = kf.simulate(s, np.array([q] * 3), v, t, method="symplectic")
    for b in range(3):
        alone = kf.simulate(s, q, v[b], t, method="symplectic")
        assert np.abs(many.q[:, b] - alone.q).max() < 1e-11


def test_couplings_too():
    """A gear: in its own coordinates the same step as on a tree, against the same motion by rk4."""
    tree = kf.models.chain(4, seed=1)
    s = kf.System(tree.bodies, couplings=[kf.Coupling(tree.hinge_names[:2], [1.0, 2.0], [0.0, 0.3])])
    t = np.linspace(0, 0.4, 9)
    exact = kf.simulate(s, s.neutral(), np.ones(3), t, substeps=40)
    apart = [
        np.abs(kf.simulate(s, s.neutral(), np.ones(3), t, method="symplectic", substeps=n).q[-1] - exact.q[-1]).max()
        for n in (10, 20)
    ]
    assert 3.7 < apart[0] / apart[1] < 4.3


def test_what_is_refused():
    skate = kf.System([kf.Body("skate", np.eye(6), kf.Hinge.planar())]).with_loops([kf.Loop("skate", None, rows=(4,))])
    with pytest.raises(ModelError, match="non-holonomic"):
        kf.simulate(skate, np.zeros(3), [1.0, 0.0, 1.0], [0.0, 0.1], method="symplectic")
    s, q, v = swinging(30.0)
    with pytest.raises(KfdynError, match="shorter step"):
        kf.simulate(s, q, v, [0.0, 1.0], method="symplectic")


@pytest.mark.slow
def test_a_hundred_thousand_steps():
    """A conservative four-bar for 10⁵ steps of 2 ms: closed to 1e-12, and the energy's error does not grow."""
    s, q, v = swinging()
    motion = kf.simulate(s, q, v, np.linspace(0, 200, 1001), method="symplectic", substeps=100)
    assert motion.steps == 100_000
    assert np.abs(gaps(s, motion.q)[0]).max() < 1e-12
    error = motion.energy - motion.energy[0]
    band = np.abs(error[:101]).max()
    assert np.abs(error).max() < 1.5 * band < 1e-4 * np.ptp(motion.kinetic)
    slope = np.polyfit(motion.t, error, 1)[0]
    assert abs(slope) * 200 < 0.5 * band
