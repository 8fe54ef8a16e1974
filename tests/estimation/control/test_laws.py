"""The compiled laws of many chains against the engine's plan of each, whichever way matrices go."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.estimation.control.recursions import laws
from kfdyn.sweeps import Tag


def drawn(rng, chains, N, n, p):
    """Random problems with cross terms; the first step has none, as x before it is 0."""
    A, B = 0.9 * np.eye(n) + 0.1 * rng.normal(size=(chains, N, n, n)), 0.3 * rng.normal(size=(chains, N, n, p))
    root = rng.normal(size=(chains, N, n, n))
    Q, M = root @ root.swapaxes(2, 3) + np.eye(n), 0.1 * rng.normal(size=(chains, N, p, n))
    M[:, 0] = 0.0
    c, q, g = (rng.normal(size=(chains, N, size)) for size in (n, n, p))
    return laws.Given(A, B, Q, M, c, q, g, 1.0 + rng.random(chains))


def solved(given, sizes, tiled, crossed, run=laws.laws_found):
    """What is found, and how many chains fail."""
    chains, N, n, p = given.B.shape
    found = laws.Found(*(np.full((chains, N, *size), np.nan) for size in ((n,), (n,), (p,), (p,), (p, n))))
    tags = (Tag(n), Tag(p)) if sizes else None, Tag(tiled), Tag(crossed)
    flat = laws.Given(*map(np.ravel, given)), laws.Found(*(part.reshape(-1) for part in found))
    return found, run(*tags, *flat, np.empty(laws.Room.size(n, p, N)), n, p, N, chains)


@pytest.mark.parametrize("way", ["registers", "tiles", "loops", "plain"])
@pytest.mark.parametrize("crossed", [True, False])
def test_laws_are_those_of_the_engine(rng, way, crossed):
    given = drawn(rng, 3, 7, 5, 2)
    run = laws.laws_found.plain if way == "plain" else laws.laws_found
    found, lost = solved(given, way == "registers", way == "tiles", crossed, run)
    assert not lost
    for i in range(3):
        one = laws.Given(*(part[i] for part in given))
        R, N = one.r * np.eye(2), one.M if crossed else None
        plan = kf.lqr(one.A, one.B, one.Q, R, np.zeros(5), c=one.c, q=one.q, r=one.g, N=N)
        for mine, its in (
            (found.x, plan.x),
            (found.u, plan.u),
            (found.costate, plan.costate),
            (found.gains, plan.gains),
        ):
            np.testing.assert_allclose(mine[i], its, rtol=0, atol=1e-13 * np.abs(its).max())
        before = np.vstack([np.zeros(5), found.x[i, :-1]])
        by_law = found.shift[i] + np.einsum("kij,kj->ki", found.gains[i], before)
        np.testing.assert_allclose(by_law, found.u[i], rtol=0, atol=1e-13)


@pytest.mark.parametrize("sizes", [True, False])
def test_a_control_that_is_held_is_a_failed_actuator(rng, sizes):
    given = drawn(rng, 1, 6, 4, 3)
    given.g[0, [1, 1, 4], [0, 2, 1]] = np.nan
    found, lost = solved(given, sizes, False, False)
    A, B, Q, _, c, q, g, r = (part[0] for part in given)
    plan = kf.lqr(A, B, Q, r * np.eye(3), np.zeros(4), c=c, q=q, r=g)
    assert not lost and not found.u[0][np.isnan(g)].any() and not found.gains[0][np.isnan(g)].any()
    np.testing.assert_allclose(found.u[0], plan.u, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.gains[0], plan.gains, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [True, False])
def test_the_chain_without_a_minimum_is_named(rng, sizes):
    given = drawn(rng, 4, 6, 4, 2)
    given.Q[2, 3] = -100.0 * np.eye(4)
    found, lost = solved(given, sizes, False, True)
    assert lost == 1 and np.isnan(found.x[2, 0, 0]) and np.isfinite(found.x[[0, 1, 3]]).all()
