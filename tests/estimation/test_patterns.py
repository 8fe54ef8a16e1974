"""Batches whose entries lack different measurements: each as if it were alone."""

import numpy as np
import pytest
from random_models import close, random_case

import kfdyn as kf
from kfdyn.errors import ShapeError


@pytest.mark.parametrize("seed", range(3))
def test_each_entry_as_if_alone(seed):
    case = random_case(seed, 9)
    rng = np.random.default_rng(seed)
    T = rng.normal(size=(4, 3, case.ss.n_outputs))
    T[rng.random(T.shape) < 0.15] = np.nan
    T[3] = rng.normal(size=(3, case.ss.n_outputs))  # some lack nothing
    eta = rng.normal(size=(3, case.ss.n_states))
    found = kf.smooth_batch(case.ss, T, case.xi, eta)
    assert found.batch == (4, 3) and found.llf.shape == (4, 3) and found.a.shape == T.shape
    for at in np.ndindex(4, 3):
        filt = kf.kalman_filter(case.ss, T[at], case.xi, eta[at[1]])
        alone = kf.bryson_frazier(case.ss, filt)
        assert found.llf[at] == pytest.approx(filt.llf, rel=1e-12)
        close(found.a[at], alone.a)
        for k in range(len(case.ss)):
            close(found.x[k][at], alone.x[k])
            close(found.costate[k][at], alone.costate[k])
            close(found.S(*at)[k], alone.S[k])


def test_one_vector_and_an_empty_batch():
    case = random_case(1, 5)
    assert kf.smooth_batch(case.ss, case.T).llf == pytest.approx(kf.kalman_filter(case.ss, case.T).llf)
    assert kf.smooth_batch(case.ss, np.zeros((0, case.ss.n_outputs))).llf.shape == (0,)
    with pytest.raises(ShapeError, match="smooth_batch"):
        kf.kalman_filter(case.ss, np.stack([case.T, np.full_like(case.T, np.nan)]))
