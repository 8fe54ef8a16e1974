"""What docs/numerics.md says of wide priors: a warning where fewer than five digits are left, silence before."""

import warnings

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import LostDigitsWarning


def trend(P0):
    return kf.StateSpace.chain(
        [[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], 0.1 * np.eye(2), [[1.0]], steps=100, P0=P0 * np.eye(2)
    )


def test_a_wide_prior_warns_once_it_costs_too_much():
    T = np.arange(100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for P0 in (1.0, 1e6, 1e10):
            kf.kalman_filter(trend(P0), T)
    with pytest.warns(LostDigitsWarning, match="flat prior"):
        kf.kalman_filter(trend(1e12), T)
