"""plot_fit draws what it says, for models of time series and for any other."""

import matplotlib as mpl
import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.estimation.datasets import nile

mpl.use("Agg")


def test_a_series_with_its_forecast():
    import matplotlib.pyplot as plt

    fit = kf.series.local_level().fit(nile().flow)
    figure = kf.viz.plot_fit(fit, steps=12)
    series, innovations, histogram, correlogram = figure.axes
    measured, signal, ahead = series.lines
    np.testing.assert_array_equal(measured.get_ydata(), nile().flow)
    np.testing.assert_allclose(signal.get_ydata(), fit.components()[0].mean)
    np.testing.assert_allclose(ahead.get_ydata(), fit.forecast(12).mean)
    assert innovations.lines[0].get_ydata().size == 99  # the first only tells the level
    assert histogram.patches and correlogram.collections
    plt.close(figure)


def test_any_model():
    import matplotlib.pyplot as plt

    one = np.ones((1, 1))
    y = np.random.default_rng(0).normal(size=12)
    fit = kf.fit(
        lambda t: kf.StateSpace.chain(one, one, t[0] * one, one, [0.0], one, steps=12), [1.0], y, bounds=[(0, None)]
    )
    figure = kf.viz.plot_fit(fit)
    assert len(figure.axes) == 4
    plt.close(figure)
    with pytest.raises(ModelError, match="too few"):
        kf.viz.plot_fit(kf.fit(lambda t: kf.StateSpace.chain(None, one, None, t[0] * one, [0.0], one), [1.0], [2.0]))
    plt.close("all")
