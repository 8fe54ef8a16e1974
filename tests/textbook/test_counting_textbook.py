"""Operation counts: growth with N, what zeros save, and whether PART's split pays."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.textbook import sko
from kfdyn.textbook.counting import count, modal_chain


def chain(n):
    q, v = np.random.default_rng(n).normal(size=(2, n))
    return sko.model_of(kf.as_estimation(kf.models.chain(n), q, v))


def test_counts_are_of_what_is_done():
    """A chain of two one-state nodes, by hand: products with 0 and ±1 are free unless all are counted."""
    ss = kf.StateSpace([1, -1], np.full((2, 1, 1), 2.0), np.full((2, 1, 1), 3.0), np.full((2, 1, 1), 5.0))
    model = sko.model_of(ss)
    # composites: A ℛ A* two products, one sum; every=True adds nothing here, for nothing is 0 or 1
    assert count(sko.composite_bodies, model) == (2, 1, 0) == count(sko.composite_bodies, model, every=True)
    ones = sko.model_of(kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1))))
    assert count(sko.composite_bodies, ones) == (0, 1, 0)


def test_orders_of_growth():
    """Doubling N doubles O(N), and multiplies O(N²) by up to 4, O(N³) by up to 8."""
    growth = {}
    for solve in (
        sko.newton_euler,
        sko.composite_inverse_dynamics,
        sko.forward_dynamics,
        sko.forward_dynamics_quadratic,
        sko.forward_dynamics_cubic,
    ):
        few, many = (count(solve, chain(n), np.ones(n)).total for n in (12, 24))
        growth[solve.__name__] = many / few
    for name in ("newton_euler", "composite_inverse_dynamics", "forward_dynamics"):
        assert growth[name] == pytest.approx(2, abs=0.15), name
    assert 2.3 < growth["forward_dynamics_quadratic"] < 4
    assert 4.5 < growth["forward_dynamics_cubic"] < 8


def test_whether_the_split_pays():
    """PART 1: the split saves where a hinge has many dofs, and costs where each has few."""
    for modes, pays in ((1, False), (8, True)):
        whole, split = modal_chain(3, modes)
        T = np.random.default_rng(0).normal(size=3 * (modes + 1))
        np.testing.assert_allclose(
            sko.forward_dynamics(whole, T), sko.forward_dynamics(split, T), rtol=1e-6, atol=1e-9
        )  # random inertias have condition numbers up to 1e6
        unsplit, parted = (count(sko.forward_dynamics, model, T, every=True).total for model in (whole, split))
        assert (parted < unsplit) == pays, (modes, unsplit, parted)


def test_one_pass_against_inverse_dynamics_first():
    """R86 11: with full blocks two passes more cost a fifth; where zeros are known next to nothing, for P a is free."""
    for n in (6, 12):
        ways = sko.forward_dynamics, sko.forward_dynamics_inverse_first
        inside, first = (count(solve, chain(n), np.ones(n), every=True).total for solve in ways)
        assert 1.15 < first / inside < 1.25, (n, inside, first)
        inside, first = (count(solve, chain(n), np.ones(n)).total for solve in ways)
        assert 1 < first / inside < 1.02, (n, inside, first)
