"""The series carried along are the published ones."""

import numpy as np
from statsmodels.datasets import nile as peer

import kfdyn as kf
from kfdyn.estimation.datasets import nile


def test_nile_is_the_series_of_statsmodels():
    published = peer.load_pandas().data
    year, flow = nile()
    np.testing.assert_array_equal(year, published["year"].to_numpy())
    np.testing.assert_array_equal(flow, published["volume"].to_numpy())


def test_nile_has_the_published_likelihood():
    # Durbin and Koopman's variances with P0 = 1e7: -641.58558 (statsmodels prints the same).
    one = np.ones((1, 1))
    flow = nile().flow
    ss = kf.StateSpace.chain(one, one, 1469.1 * one, 15099.0 * one, [0.0], 1e7 * one, steps=flow.size)
    assert abs(kf.kalman_filter(ss, flow).llf + 641.58558) < 5e-6


def test_nile_gives_fresh_arrays():
    nile().flow[:] = 0.0
    assert nile().flow[0] == 1120.0
