"""Time of whole fits beside statsmodels', alternating in one run, shortest of ten: processor time of one thread."""

import time
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from test_series import PASSENGERS, S, track

from kfdyn.estimation.datasets import nile

CASES = {
    "nile": (S.local_level(), nile().flow, {"level": "local level"}, 3.0),
    "airline": (
        S.local_trend() + S.seasonal(12), PASSENGERS, {"level": "local linear trend", "seasonal": 12}, 10.0,
    ),
    "track with gaps": (S.local_trend(smooth=True), track(), {"level": "smooth trend"}, 10.0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_fits_are_faster_than_statsmodels(name):
    """Measured on one of two shared cores: Nile 3.7 times, airline 12.5, track 22."""
    model, y, options, least = CASES[name]

    def peer():  # of the same likelihood; the model is made anew, as by ours
        return sm.tsa.UnobservedComponents(y, **options, use_exact_diffuse=True).fit(disp=0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = (lambda: model.fit(y), peer)
        taken = np.array([[_time(call) for call in calls] for _ in range(10)]).min(axis=0)
    print(f"{name}: {1e3 * taken[0]:.1f} ms, statsmodels {1e3 * taken[1]:.1f} ms, {taken[1] / taken[0]:.1f} times")
    assert taken[1] > least * taken[0]


def _time(call):
    begin = time.thread_time()
    call()
    return time.thread_time() - begin
