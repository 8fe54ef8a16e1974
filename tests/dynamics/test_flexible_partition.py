"""PART's split of modes from hinge: same answers, nodes of six behind the modes, and errors where it cannot be."""

import numpy as np
import pytest
from flexible_cases import random_tree, state, tree

import kfdyn as kf
from kfdyn.dynamics import behind_modes, partition_hinges, succession
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.inference.riccati import riccati


@pytest.mark.parametrize("seed", range(6))
def test_split_modes_give_the_same_accelerations_and_covariances(seed):
    """PART Lemmas 2.1, 3.3, 4.1 on ragged nodes; as many states behind the modes as a rigid body has."""
    system = random_tree(seed)
    q, v = state(system, seed)
    tau = np.random.default_rng(seed).normal(size=system.nv)
    whole = kf.as_estimation(system, q, v)
    split = partition_hinges(whole, succession(system), transitions=behind_modes(system))
    for k, (n, m) in enumerate(zip(system.modes, system.hinge_v, strict=True)):
        parts = np.flatnonzero(split.owner == k)
        if n and m:
            assert split.ss.n[parts].tolist() == [n + 6] + [6] * m
            assert split.ss.m[parts].tolist() == [n] + [1] * m
    filt = kf.kalman_filter(split.ss, split.split_outputs(tau))
    smooth = kf.bryson_frazier(split.ss, filt)
    wanted = kf.bryson_frazier(whole, kf.kalman_filter(whole, tau))
    a = split.merge_outputs(smooth.a)
    np.testing.assert_allclose(a, wanted.a, rtol=1e-8, atol=1e-8 * abs(wanted.a).max())
    np.testing.assert_allclose(a, kf.forward_dynamics(system, q, v, tau), rtol=1e-8, atol=1e-8 * abs(a).max())
    merged, found = split.merge(), riccati(whole)
    for name in ("P", "P_plus", "D", "G"):
        for mine, theirs in zip(getattr(merged, name), getattr(found, name), strict=True):
            if theirs.size:
                size = abs(theirs).max() or 1.0
                reference = 1.0 if name != "P_plus" else max(abs(x).max() for x in found.P) / size
                np.testing.assert_allclose(mine, theirs, atol=1e-9 * size * reference)


def test_states_that_are_asked_for_again_cannot_be_left_behind():
    system = tree(0)
    q, v = state(system, 0)
    whole = kf.as_estimation(system, q, v)
    k = int(np.flatnonzero(system.modes)[0])
    m, n = int(system.hinge_v[k]), int(system.modes[k])
    wrong = [None] * len(whole)
    wrong[k] = [[*range(m)], [m + i for i in range(n)]]  # the hinge first, and then modes that are no longer there
    with pytest.raises(ModelError, match="leave states behind that a later part"):
        partition_hinges(whole, wrong, transitions={k: [np.eye(n + 6)[n:]]})
    with pytest.raises(ShapeError, match="fewer states"):
        partition_hinges(whole, succession(system), transitions={k: [np.eye(6)]})
    with pytest.raises(ModelError, match="invertible"):
        partition_hinges(whole, succession(system), transitions={k: [np.zeros((6, n + 6))]})


def test_the_cross_check_takes_flexible_systems_and_their_parts():
    system = tree(1)
    q, v = state(system, 1)
    split = partition_hinges(kf.as_estimation(system, q, v), succession(system), transitions=behind_modes(system))
    assert kf.cross_check(split.ss, samples=4000, seed=0).passed
    assert kf.cross_check(system, q, v, samples=4000, seed=0).passed
