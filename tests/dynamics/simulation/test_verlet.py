"""The variational step in compiled code: against Python's, alone as in a batch, and what is left to Python."""

from dataclasses import replace

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics.simulation.motion_arguments import motion
from kfdyn.dynamics.simulation.symplectic import variational
from kfdyn.multibody.calls.packed_model import model_of

SPRUNG = ("revolute", "prismatic", "ball", "helical")


def moving(seed, bodies=14):
    """Five states of a tree with all kinds of hinges and springs, and what drives it."""
    rng = np.random.default_rng(seed)
    tree = kf.models.random_tree(bodies, seed=seed)
    tree = kf.System([replace(b, stiffness=2.0 if b.hinge.kind in SPRUNG else 0.0) for b in tree.bodies])
    q = np.stack([tree.random_configuration(rng) for _ in range(5)])
    v, tau = rng.normal(size=(2, 5, tree.nv))
    driven = {"stiffness": True, "damping": 0.3, "external_forces": rng.normal(size=(tree.n_bodies, 6))}
    return tree, q, v, tau, driven


@pytest.mark.parametrize("seed", [0, 2, 7])
def test_beside_the_step_of_pythons_pieces(seed):
    tree, q, v, tau, driven = moving(seed)
    whole = motion(tree, tau, **driven)
    found, expected = (step(whole, 0.0, 0.004, q, v) for step in (variational._swept, variational._by_parts))
    for name, one, other in zip(found._fields, found, expected):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * np.abs(other).max(), err_msg=name)
    alone = variational._swept(motion(tree, tau[3], **driven), 0.0, 0.004, q[3], v[3])
    for one, every in zip(alone, found):
        np.testing.assert_array_equal(one, every[3])


def test_no_piece_is_pythons(monkeypatch):
    def refuse(*_):
        raise AssertionError("this is the long way")

    monkeypatch.setattr(variational, "_by_parts", refuse)
    tree, q, v, tau, driven = moving(2)
    kf.simulate(tree, q, v, [0.0, 0.01, 0.02], tau, method="symplectic", **driven)
    kf.simulate(tree, q[0], v[0], [0.0, 0.01, 0.02], method="symplectic")


def test_the_recursion_as_it_stands():
    """Every index checked."""
    tree, q, v, tau, _ = moving(2, bodies=8)
    found = variational._swept(motion(tree, tau), 0.0, 0.01, q, v)
    plain = [np.empty_like(x) for x in found[:4]]
    arguments = np.array([0.01]), np.zeros(tree.nv), q, v, tau, None, tree.gravity
    assert variational.VARIATIONAL_STEP.entry.plain(model_of(tree), *arguments, *plain) == 1
    for one, other in zip(plain, found):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * np.abs(other).max())


def test_only_the_row_that_does_not_contract_takes_the_long_way(monkeypatch):
    """The fast one: the others keep the bits that they have without it, and it those that it has alone."""
    asked = []
    by_parts = variational._by_parts
    monkeypatch.setattr(
        variational, "_by_parts", lambda m, t, h, q, v: asked.append(v.shape) or by_parts(m, t, h, q, v)
    )
    arm = kf.models.double_pendulum()
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, 2, 3, 2))
    usual = kf.simulate(arm, q, v, [0.0, 0.05], method="symplectic", damping=0.1)
    assert not asked
    fast = v.copy()
    fast[1, 2] = [30.0, -30.0]
    found = kf.simulate(arm, q, fast, [0.0, 0.05], method="symplectic", damping=0.1)
    assert asked == [(1, 2)]
    alone = kf.simulate(arm, q[1, 2], fast[1, 2], [0.0, 0.05], method="symplectic", damping=0.1)
    others = np.ones((2, 3), dtype=bool)
    others[1, 2] = False
    for name in ("q", "v", "work"):
        np.testing.assert_array_equal(getattr(found, name)[:, others], getattr(usual, name)[:, others])
        np.testing.assert_array_equal(getattr(found, name)[:, 1, 2], getattr(alone, name))


def test_a_fast_spin_is_left_to_pythons_step():
    """Beyond twenty terms of exp(ad) a momentum is carried along by as many as it takes."""
    top = kf.System([kf.Body("top", np.diag([1.0, 1.5, 2.0, 1.0, 1.0, 1.0]), kf.Hinge.ball())], gravity=[0.0, 0.0, 0.0])
    q, spin, off = top.neutral(), np.array([0.0, 0.0, 80.0]), np.array([1e-3, 0.0, 0.0])
    assert variational._swept(motion(top), 0.0, 0.01, q, spin) is None
    assert variational._swept(motion(top), 0.0, 0.001, q, spin) is not None
    run = kf.simulate(top, q, spin + off, 0.01 * np.arange(50), method="symplectic")
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-11 * np.abs(run.momentum[0]).max()


@pytest.mark.parametrize(("part", "contracts"), [(0.45, True), (0.55, False)])
def test_corrections_must_halve(part, contracts):
    """A damper alone: each correction is hB/2I of the one before."""
    wheel, h = kf.models.pendulum(mass=2.0, length=0.5), 0.01
    damping = part * 2 * kf.mass_matrix(wheel, [0.0])[0, 0] / h
    free = motion(wheel, damping=damping, gravity=[0.0, 0.0, 0.0])
    assert (variational._swept(free, 0.0, h, np.zeros(1), np.ones(1)) is not None) == contracts
