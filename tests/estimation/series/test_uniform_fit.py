"""``kf.fit`` takes a ready-made model of a series as it takes a function that builds a model."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.estimation.datasets import nile

FLOW = nile().flow


def test_a_model_of_a_series_is_fitted_by_the_same_verb():
    model = kf.series.local_level()
    mine, theirs = kf.fit(model, FLOW), model.fit(FLOW)
    np.testing.assert_array_equal(mine.params, theirs.params)
    assert mine.llf == theirs.llf and mine.forecast(2).mean.shape == (2,)
    begun = kf.fit(model, [1e4, 1e3], FLOW, bounds=[(0, None)] * 2)
    np.testing.assert_array_equal(begun.params, model.fit(FLOW, theta0=[1e4, 1e3], bounds=[(0, None)] * 2).params)


def test_what_does_not_go_together_is_said():
    with pytest.raises(kf.errors.ModelError, match="has its own names and derivatives"):
        kf.fit(kf.series.local_level(), FLOW, names=["noise", "level"])
    with pytest.raises(kf.errors.ModelError, match="fit takes build, theta0 and the measurements T"):
        kf.fit(lambda theta: None, FLOW)
