"""pandas: which steps rows are, what follows them, and what is no series."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

S = kf.series
LEVEL, THETA = S.local_level(), [1.0, 0.5]
VALUES = np.random.default_rng(0).normal(size=40).cumsum()
DAYS_15 = pd.DatetimeIndex([f"{2020 + i // 12}-{i % 12 + 1:02d}-15" for i in range(24)])


def bare(index):
    """Without its frequency."""
    return pd.DatetimeIndex(list(index))


REGULAR = {
    "days": pd.date_range("2020-01-01", periods=24, freq="D"),
    "months": pd.date_range("2020-01-01", periods=24, freq="MS"),
    "ends of months": pd.date_range("2020-01-31", periods=24, freq="ME"),
    "quarters": pd.date_range("2010-03-31", periods=24, freq="QE"),
    "years": pd.date_range("1990-01-01", periods=24, freq="YS"),
    "weeks": pd.date_range("2020-01-01", periods=24, freq="W-WED"),
    "business days": pd.date_range("2020-01-01", periods=24, freq="B"),
    "hours in spring": pd.date_range("2020-03-28 20:00", periods=24, freq="h", tz="Europe/Berlin"),
    "days in spring": pd.date_range("2020-03-05", periods=24, freq="D", tz="Europe/Berlin"),
    "minutes": pd.date_range("2020-01-01 23:00", periods=24, freq="15min"),
}
DROPPED = [3, 10, 11]


def forecast(index, values=None, steps=4):
    y = pd.Series(VALUES[: len(index)] if values is None else values, index=index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return LEVEL.forecast(THETA, y, steps)


@pytest.mark.parametrize("name", REGULAR)
def test_absent_rows_are_missing_measurements(name):
    """Beside pandas' own dates and NaN."""
    full = REGULAR[name]
    future = pd.date_range(full[-1], periods=5, freq=full.freq)[1:]
    whole = forecast(full)
    assert whole.mean.index.equals(future)
    assert forecast(bare(full)).mean.index.equals(future)
    filled = pd.Series(VALUES[:24], index=full)
    filled.iloc[DROPPED] = np.nan
    expected = LEVEL.forecast(THETA, filled, 4)
    less = filled.drop(full[DROPPED])
    less.index = bare(less.index)
    found = forecast(less.index, less.to_numpy())
    assert found.mean.index.equals(future)
    assert_allclose(found.mean, expected.mean, rtol=1e-14)
    assert_allclose(found.std, expected.std, rtol=1e-14)
    (part,), (right,) = LEVEL.components(THETA, less), LEVEL.components(THETA, filled)
    assert part.mean.index.equals(less.index)
    assert_allclose(part.mean, right.mean.drop(full[DROPPED]), rtol=1e-12)
    assert LEVEL.likelihood(less)(THETA)[0] == pytest.approx(LEVEL.likelihood(filled)(THETA)[0], rel=1e-14)
    assert_allclose(LEVEL.fit(less).params, LEVEL.fit(filled).params, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("index", "following"),
    [
        (pd.period_range("2020-01", periods=24, freq="M"), ["2022-01", "2022-02"]),
        (pd.period_range("2020Q1", periods=24, freq="Q"), ["2026Q1", "2026Q2"]),
        (pd.period_range("2020-01", periods=24, freq="2M"), ["2024-01", "2024-03"]),
        (DAYS_15, ["2022-01-15 00:00:00", "2022-02-15 00:00:00"]),
        (pd.RangeIndex(1871, 1895), ["1895", "1896"]),
        (pd.Index(range(0, 48, 2)), ["48", "50"]),
        (pd.Index(0.1 * np.arange(24)), [str(2.3000000000000003 + 0.1), str(2.3000000000000003 + 0.2)]),
        (pd.timedelta_range("0s", periods=24, freq="90s"), ["0 days 00:36:00", "0 days 00:37:30"]),
    ],
    ids=str,
)
def test_other_times_with_absent_rows(index, following):
    assert str(forecast(index, steps=2).mean.index[0]) == following[0]
    filled = np.where(np.isin(np.arange(24), DROPPED), np.nan, VALUES[:24])
    expected = LEVEL.forecast(THETA, filled, 2)
    keep = np.delete(np.arange(24), DROPPED)
    found = forecast(index[keep], VALUES[keep], 2)
    if index.dtype == float:
        assert_allclose(found.mean.index, [float(x) for x in following])
    else:
        assert [str(x) for x in found.mean.index] == following
    assert_allclose(found.mean, expected.mean, rtol=1e-14)
    assert_allclose(found.upper, expected.upper, rtol=1e-14)


def test_a_day_that_short_months_lack():
    index = pd.DatetimeIndex(["2022-08-30", "2022-10-30", "2022-11-30", "2022-12-30"])
    assert [str(x.date()) for x in forecast(index).mean.index] == [
        "2023-01-30",
        "2023-02-28",
        "2023-03-30",
        "2023-04-30",
    ]


def test_several_outputs_and_several_series_with_absent_rows():
    index = pd.date_range("2020-01-01", periods=20, freq="D")
    full = pd.DataFrame({"x": VALUES[:20], "y": VALUES[20:]}, index=index)
    full.iloc[DROPPED] = np.nan
    less = full.drop(index[DROPPED])
    plane = S.constant_velocity(1.0, 2)
    assert_allclose(plane.forecast([0.1, 0.1], less, 2).mean, plane.forecast([0.1, 0.1], full, 2).mean, rtol=1e-12)
    assert plane.components([0.1, 0.1], less)[0].mean.index.equals(less.index)
    assert LEVEL.likelihood(less)(THETA)[0] == pytest.approx(LEVEL.likelihood(full)(THETA)[0], rel=1e-14)


@pytest.mark.parametrize(
    ("index", "word"),
    [
        (pd.DatetimeIndex(["2020-01-01", "2020-01-02", "2020-01-04", "2020-02-10"]).repeat(1), r"asfreq\('D'\)"),
        (pd.DatetimeIndex(["2020-01-01 00:00", "2020-01-01 07:13", "2020-01-02 01:00", "2020-01-03"]), "not regular"),
        (pd.DatetimeIndex(["2020-01-02", "2020-01-01", "2020-01-03"]), "sort_index"),
        (pd.DatetimeIndex(["2020-01-01"] * 3), "duplicated"),
        (pd.DatetimeIndex(["2020-01-01", None, "2020-01-03"]), "without a date"),
        (pd.date_range("2020-01-01", periods=5, freq="D")[::-1], "sort_index"),
        (pd.PeriodIndex(["2020-03", "2020-02"], freq="M"), "sort_index"),
        (pd.Index([0, 1, 5, 9, 13]), r"reset_index\(drop=True\)"),
        (pd.Index([0, 1, 2, 0, 1]), "not regular: 0 follows 2"),
        (pd.Index([0.0, 1.0, np.nan]), "not regular"),
        (pd.Index([0, 1, 2, 3, 10**9]), "absent"),
    ],
)
def test_an_index_that_is_not_regular_is_refused(index, word):
    y = pd.Series(VALUES[: len(index)], index=index)
    for ask in (lambda: LEVEL.fit(y), lambda: LEVEL.forecast(THETA, y, 1), lambda: LEVEL.components(THETA, y)):
        with pytest.raises(ModelError, match=word):
            ask()


def test_dates_that_do_not_tell_the_next():
    for index in (pd.DatetimeIndex(["2020-01-01", "2020-02-01"]), pd.Index([1871])):
        y = pd.Series(VALUES[: len(index)], index=index)
        assert np.isfinite(LEVEL.components(THETA, y)[0].mean).all()
        with pytest.raises(ModelError, match="do not tell"):
            LEVEL.forecast(THETA, y, 1)
    known = pd.Series(VALUES[:2], index=pd.DatetimeIndex(["2020-01-01", "2020-02-01"], freq="MS"))
    assert str(LEVEL.forecast(THETA, known, 1).mean.index[0].date()) == "2020-03-01"


def test_parts_that_know_their_steps():
    """Regressors are given row by row, so that nothing can be put between; times say themselves what the rows are."""
    index = pd.date_range("2020-01-01", periods=20, freq="D").delete(5)
    y = pd.Series(VALUES[:19], index=index)
    with pytest.raises(ModelError, match="lacks 1 rows, and regressors"):
        (S.regression(np.arange(19.0)) + S.noise()).fit(y)
    times = np.cumsum(np.random.default_rng(1).uniform(0.1, 2.0, size=21))
    ahead = S.matern(1.5, times).forecast([0.1, 1.0, 2.0], y, 2)
    assert_allclose(ahead.mean.index, times[19:])
    assert_allclose(ahead.mean, S.matern(1.5, times).forecast([0.1, 1.0, 2.0], VALUES[:19], 2).mean)


def test_words_are_no_series():
    with pytest.raises(ShapeError, match="column 's' of the series must hold real numbers"):
        LEVEL.fit(pd.DataFrame({"a": VALUES[:3], "s": list("xyz")}))
    with pytest.raises(ShapeError, match=r"must hold real numbers.*'a'"):
        LEVEL.forecast(THETA, pd.Series(list("ab")), 1)
    assert_allclose(LEVEL.fit(pd.array(VALUES)).params, LEVEL.fit(VALUES).params)


@pytest.mark.parametrize(
    "bounds",
    [[(5000.0, None), (0.0, 2000.0)], [(1e6, None), (None, 1e-3)], [(1.0, 2.0), (1.0, 2.0)], [(0.0, None), None]],
)
def test_a_search_begins_within_the_callers_bounds(bounds):
    from kfdyn.estimation.datasets import nile

    fit = LEVEL.fit(nile().flow, bounds=bounds)
    for value, bound in zip(fit.params, bounds):
        low, high = bound or (None, None)
        assert (low is None or value >= low) and (high is None or value <= high)


@pytest.mark.parametrize("model", [LEVEL, S.local_trend() + S.cycle((3, 20)), S.ar(1)], ids=repr)
def test_a_series_of_which_nothing_is_measured_says_nothing(model):
    y = np.stack([VALUES, np.full(40, np.nan), VALUES[::-1]])
    theta = model.start(VALUES)
    both = model.likelihood(y)(theta), model.likelihood(y[[0, 2]])(theta)
    assert both[0][0] == pytest.approx(both[1][0], rel=1e-14)
    assert_allclose(both[0][1], both[1][1], rtol=1e-12)
    assert model.fit(y).llf == pytest.approx(model.fit(y[[0, 2]]).llf, rel=1e-8)
    with pytest.raises(ModelError, match="nothing to fit"):
        model.fit(y[1])


def test_regressors_have_the_index_of_the_series():
    """Their index was ignored: rows in another order, or of other dates, were accepted."""
    rng, dates = np.random.default_rng(3), pd.date_range("2020-01-31", periods=46, freq="ME")
    x = rng.normal(size=46)
    y = pd.Series(3.0 * x[:40] + 0.1 * rng.normal(size=40), dates[:40])

    def fit(X, y=y):
        return (S.regression(X) + S.noise()).fit(y)

    X = pd.Series(x, dates)
    known = fit(x)
    for same in (X, pd.DataFrame({"x": X}), pd.Series(x), X[:40]):
        assert fit(same).params == pytest.approx(known.params, rel=1e-12)
    assert_allclose(fit(X).forecast(6).mean, known.forecast(6).mean, rtol=1e-12)
    assert fit(X, y.to_numpy()).params == pytest.approx(known.params, rel=1e-12)
    later = X.set_axis(dates + pd.offsets.MonthEnd(1))
    for other in (X[::-1], later, X.drop(dates[7]), X.set_axis(dates.to_period("M"))):
        with pytest.raises(ModelError, match=r"row \d of the regressors is that of .*; call X\.reindex\(...\)"):
            fit(other)
    with pytest.raises(ModelError, match="row 0 of the regressors is that of 0, but that of the series is 5"):
        fit(pd.Series(x), y.reset_index(drop=True).iloc[5:])
    with pytest.raises(ModelError, match="row 41 of the regressors"):
        fit(X.drop(dates[41])).forecast(3)
