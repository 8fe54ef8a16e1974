"""What a visitor types in the first ten minutes: shapes as they come, short tables, and a real notebook."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import KfdynError, ModelError

TREND = [[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], np.eye(2), [[1.0]]
T = np.arange(30.0) ** 1.5


def trend(**more):
    return kf.StateSpace.chain(*TREND, [0.0, 0.0], 10 * np.eye(2), steps=30, **more)


def test_a_row_for_each_step_is_taken_as_stacked():
    ss = trend()
    flat, rows = kf.kalman_filter(ss, T), kf.kalman_filter(ss, T[:, None])
    np.testing.assert_array_equal(flat.eps, rows.eps)
    many = kf.kalman_filter(ss, np.stack([T[:, None], 2 * T[:, None]]))
    assert many.eps.shape == (2, 30)
    two = kf.StateSpace.chain(np.eye(2), np.eye(2), np.eye(2), np.eye(2), [0, 0], np.eye(2), steps=5)
    y = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(kf.kalman_filter(two, y).eps, kf.kalman_filter(two, y.ravel()).eps)
    with pytest.raises(KfdynError, match="last axis must stack"):
        kf.kalman_filter(two, y.T)
    silent = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 0, 1)), np.ones((2, 1, 1)))
    assert kf.kalman_filter(silent, np.zeros((2, 0))).eps.shape == (2, 0)  # a batch of two, of no outputs


def test_the_filters_result_is_enough_for_the_smoother():
    ss = trend()
    filt = kf.kalman_filter(ss, T)
    old, new = kf.bryson_frazier(ss, filt), kf.bryson_frazier(filt)
    np.testing.assert_array_equal(old.x.flat, new.x.flat)
    assert not kf.bryson_frazier(filt, covariances=False).with_covariances
    flat = kf.StateSpace.chain(*TREND, steps=30)
    assert np.isfinite(kf.bryson_frazier(kf.kalman_filter(flat, T)).x.flat).all()
    with pytest.raises(ModelError, match="smooths what a filter has found"):
        kf.bryson_frazier(ss)


def test_numbers_stand_for_small_matrices():
    one = [[1.0]]
    short = kf.StateSpace.chain(0.9, 1.0, 2.0, 0.5, 1.0, 3.0, steps=9)
    long = kf.StateSpace.chain([[0.9]], one, [[2.0]], [[0.5]], [1.0], [[3.0]], steps=9)
    assert kf.kalman_filter(short, T[:9]).llf == kf.kalman_filter(long, T[:9]).llf
    flat = kf.StateSpace.chain(0.9, 1.0, 2.0, 0.5, steps=9)
    assert np.isfinite(kf.kalman_filter(flat, T[:9]).llf)


def test_a_prior_is_called_by_its_name():
    with pytest.raises(ModelError, match=r"^P0 is not positive semi-definite"):
        kf.StateSpace.chain(*TREND, [0.0, 0.0], np.diag([1.0, -1.0]), steps=5)
    bad = np.stack([np.eye(2), np.diag([1.0, -1.0]), np.eye(2)])
    with pytest.raises(ModelError, match=r"^Q\[1\] is not positive semi-definite"):
        kf.StateSpace.chain(TREND[0], TREND[1], bad, TREND[3], [0.0, 0.0], np.eye(2))


def test_rooms_that_people_look_for():
    assert kf.viz.draw_system and kf.errors.KfdynError


def results():
    robot = kf.models.humanoid()
    ss = trend()
    filt = kf.kalman_filter(ss, np.where(np.arange(30) == 4, np.nan, T))
    batch = kf.kalman_filter(ss, np.stack([T, T]))
    flat = kf.kalman_filter(kf.StateSpace.chain(*TREND, steps=30), T)
    smooth = [kf.bryson_frazier(f) for f in (filt, batch, flat)]
    return [robot, ss, filt, batch, *smooth, kf.bryson_frazier(filt, covariances=False)]


def test_results_are_short():
    for result in results():
        assert len(repr(result).splitlines()) <= 14, type(result)
        assert max(map(len, repr(result).splitlines())) < 120
        page = result._repr_html_()
        assert page.startswith("<table>") and 2 <= page.count("<tr>") <= 9, type(result)


def test_a_name_does_not_steer_the_page():
    body = kf.Body("<script>x</script>", np.eye(6), kf.Hinge.revolute())
    assert "<script>" not in kf.System([body])._repr_html_()


def test_a_real_notebook(run_notebook, tmp_path):
    """Jupyter's kernel shows each result once, as a table."""
    nbformat = pytest.importorskip("nbformat")
    cells = [
        "import numpy as np, kfdyn as kf\nkf.models.puma560()",
        "ss = kf.StateSpace.chain(0.9, 1.0, 2.0, 0.5, 1.0, 3.0, steps=9); ss",
        "filt = kf.kalman_filter(ss, np.arange(9.0)); filt",
        "kf.bryson_frazier(filt)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    run_notebook(book, tmp_path)
    for cell in book.cells:
        shown = [out for out in cell.outputs if out.output_type == "execute_result"]
        assert len(shown) == 1 == len(cell.outputs), cell.source
        assert shown[0]["data"]["text/html"].count("<tr>") <= 10
        assert len(shown[0]["data"]["text/plain"].splitlines()) <= 14
