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


def test_every_series_of_a_batch_is_drawn_whatever_it_lacks():
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=(8, 60)), axis=1) + rng.normal(size=(8, 60))
    y[1, 20:30] = np.nan
    model = kf.series.local_level()
    fit = model.fit(y)
    figure = kf.viz.plot_fit(fit, steps=5, entries=[0, 1, 7])
    rows = np.reshape(figure.axes, (3, 4))
    for i, (series, innovations, histogram, correlogram) in zip([0, 1, 7], rows):
        measured, signal, ahead = series.lines
        np.testing.assert_array_equal(measured.get_ydata(), y[i])
        np.testing.assert_allclose(signal.get_ydata(), model.components(fit.params, y[i])[0].mean)
        np.testing.assert_allclose(ahead.get_ydata(), model.forecast(fit.params, y[i], 5).mean)
        assert series.get_ylabel() == f"series {i}"
        assert innovations.lines[0].get_ydata().size == (~np.isnan(y[i])).sum() - 1
        assert histogram.patches and correlogram.collections
    assert rows[0, 0].get_title() == "level (3 of 8 series)"
    few = kf.viz.plot_fit(fit)
    assert len(few.axes) == 24
    np.testing.assert_allclose(few.axes[1].lines[0].get_ydata(), fit.residuals.reshape(-1, 60)[0][1:])
    with pytest.raises(ModelError, match="entries must name some of the series 0 to 7; got \\[8\\]"):
        kf.viz.plot_fit(fit, entries=[8])
    plt.close("all")


def test_series_of_any_model_are_drawn_in_their_order_whatever_they_lack():
    """Groups of equal gaps were drawn one after the other, under the numbers of others."""
    import matplotlib.pyplot as plt

    rng, one = np.random.default_rng(1), np.ones((1, 1))
    y = np.cumsum(rng.normal(size=(5, 40)), axis=1) + 100.0 * np.arange(5)[:, None]
    y[0, 5:9], y[2, 20:30], y[3] = np.nan, np.nan, np.nan
    fit = kf.fit(
        lambda t: kf.StateSpace.chain(one, one, t[0] * one, t[1] * one, steps=40), [1.0, 1.0], y, bounds=[(0, None)] * 2
    )
    rows = np.reshape(kf.viz.plot_fit(fit).axes, (4, 4))
    for i, (series, innovations, *_) in zip([0, 1, 2, 4], rows):
        assert series.get_ylabel() == f"series {i}"
        np.testing.assert_array_equal(series.lines[0].get_ydata(), y[i])
        seen = ~np.isnan(fit.residuals[i])
        np.testing.assert_array_equal(innovations.lines[0].get_xdata(), np.flatnonzero(seen))
        np.testing.assert_allclose(innovations.lines[0].get_ydata(), fit.residuals[i][seen])
    with pytest.raises(ModelError, match="series 3 has no measurement"):
        kf.viz.plot_fit(fit, entries=[3])
    with_all = kf.fit(
        lambda t: kf.StateSpace.chain(one, one, t[0] * one, t[1] * one, steps=40),
        [1.0, 1.0], y[[0, 1, 2, 4]], bounds=[(0, None)] * 2,
    )  # fmt: skip
    np.testing.assert_allclose([fit.llf, *fit.params], [with_all.llf, *with_all.params], rtol=1e-9)
    plt.close("all")


def test_rows_that_dates_lack_are_gaps():
    """They were closed up, so that the drawn signal was that of another model."""
    import matplotlib.pyplot as plt

    pd = pytest.importorskip("pandas")
    index = pd.date_range("2024-03-01", periods=60, freq="D", tz="Europe/Berlin")
    walks = np.cumsum(np.random.default_rng(2).normal(size=(60, 2)), axis=0)
    full = pd.DataFrame(walks, index=index, columns=["a", "b"])
    full.iloc[3:8, 0] = np.nan
    model, some = kf.series.local_level(), full.drop(full.index[25:40])
    fit = model.fit(some)
    missing = full.copy()
    missing.iloc[25:40] = np.nan
    for (series, *_), name in zip(np.reshape(kf.viz.plot_fit(fit, steps=4).axes, (2, 4)), "ab"):
        measured, signal, ahead = series.lines
        np.testing.assert_array_equal(measured.get_ydata(), missing[name])
        np.testing.assert_allclose(signal.get_ydata(), model.components(fit.params, missing[name].to_numpy())[0].mean)
        np.testing.assert_array_equal(ahead.get_xdata(), np.arange(60, 64))
    plt.close("all")


def test_every_output_is_drawn():
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(1)
    y = np.cumsum(np.cumsum(0.1 * rng.normal(size=(2, 50, 2)), axis=1), axis=1) + rng.normal(size=(2, 50, 2))
    model = kf.series.constant_velocity(1.0, 2)
    one, both = model.fit(y[0]), model.fit(y)
    figure = kf.viz.plot_fit(one, steps=4)
    position = model.components(one.params, y[0])[0]
    for j, (series, innovations, _, _) in enumerate(np.reshape(figure.axes, (2, 4))):
        measured, signal, ahead = series.lines
        np.testing.assert_array_equal(measured.get_ydata(), y[0, :, j])
        np.testing.assert_allclose(signal.get_ydata(), position.mean[:, j])
        band = series.collections[0].get_paths()[0].vertices[:, 1]
        assert np.isclose(band.max(), (position.mean[:, j] + 1.96 * position.std[:, j]).max())
        np.testing.assert_allclose(ahead.get_ydata(), one.forecast(4).mean[:, j])
        assert series.get_ylabel() == f"output {j}"
        np.testing.assert_allclose(innovations.lines[0].get_ydata(), one.residuals[j::2][2:])
    labels = [axes.get_ylabel() for axes in kf.viz.plot_fit(both).axes[::4]]
    assert labels == [f"series {i}, output {j}" for i in range(2) for j in range(2)]
    plt.close("all")


def test_a_chain_of_any_kind_shows_its_outputs_and_any_tree_its_nodes():
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(2)
    one, two = np.ones((1, 1)), np.eye(2)
    T = rng.normal(size=(2, 20))
    T[1, 3] = np.nan

    def chain(t):
        return kf.StateSpace.chain(one, np.ones((2, 1)), one, t[0] * two, [0.0], one, steps=10)

    figure = kf.viz.plot_fit(kf.fit(chain, [1.0], T, bounds=[(0, None)]))
    assert len(figure.axes) == 16
    drawn = [axes.lines[0].get_ydata() for axes in figure.axes[::4]]
    assert any(np.isnan(line).any() for line in drawn)

    def tree(t):
        return kf.StateSpace([2, 2, -1], [two] * 3, [two] * 3, [t[0] * two] * 3)

    figure = kf.viz.plot_fit(kf.fit(tree, [1.0], rng.normal(size=6), bounds=[(0, None)]))
    assert len(figure.axes) == 4 and figure.axes[0].lines[0].get_ydata().size == 6
    plt.close("all")
    phylogeny = kf.Phylogeny.from_newick("(A:1,B:2,C:1);")
    outward = kf.fit(lambda t: phylogeny.brownian(t[0]), [1.0], [1.0, 2.0, 4.0], bounds=[(0, None)])
    with pytest.raises(ModelError, match="branches outward"):
        kf.viz.plot_fit(outward)
