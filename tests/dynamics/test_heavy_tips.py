"""Heavy tips: a mass matrix of condition 1e16, which the square-root form takes in its stride."""

import warnings

import numpy as np
import pytest
from exact import exact_smoother, relative_error

import kfdyn as kf
from kfdyn.errors import LostDigitsWarning


@pytest.mark.parametrize("ratio", [1e8, 1e16])
def test_accelerations_of_an_arm_with_a_heavy_hand(ratio):
    arm, q = kf.models.chain(8), np.linspace(0.3, 1.0, 8)
    light = kf.as_estimation(arm, q)
    inertia = [block.copy() for block in light.Q]
    inertia[light.tree.leaves[0]] *= ratio
    ss = kf.StateSpace(light.tree, light.phi, light.H, inertia, light.R)  # at rest and without gravity
    assert np.linalg.cond(kf.Covariances(ss).T.dense()) > ratio
    T = np.arange(1.0, 9.0)
    want = exact_smoother(ss, T)
    roots = kf.kalman_filter(ss, T, method="square_root")
    with warnings.catch_warnings():  # the covariance form warns where it has lost the digits that are asked for below
        warnings.simplefilter("ignore", LostDigitsWarning)
        plain = kf.kalman_filter(ss, T, method="block")
    assert relative_error(roots.D, want.D) < 1e-13
    assert relative_error(ss.output_blocks(kf.bryson_frazier(ss, roots).a), want.a) < 1e-12
    solved = kf.innovations_factor(ss, method="square_root").solve(T)
    assert relative_error(ss.output_blocks(solved), want.a) < 1e-12
    assert relative_error(plain.D, want.D) > 1e-12  # what it is for
