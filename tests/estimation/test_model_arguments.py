"""What is no model, or no result of a filter, is refused in words by everything that takes one."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

ARM = kf.models.puma560()
ONE = [[1.0]]
SS = kf.StateSpace.chain(ONE, ONE, ONE, ONE, x0=[0.0], P0=ONE, steps=3)
RNG = np.random.default_rng(0)
OF_A_MODEL = {
    "kalman_filter": lambda x: kf.kalman_filter(x, np.zeros(6)),
    "score": lambda x: kf.score(x, np.zeros(6)),
    "score of a batch": lambda x: kf.score(x, np.zeros((2, 6))),
    "smooth_batch": lambda x: kf.smooth_batch(x, np.zeros((2, 6))),
    "innovations_factor": kf.innovations_factor,
    "inverse_element": lambda x: kf.inverse_element(x, 0, 0),
    "Operators": kf.Operators,
    "draw": lambda x: kf.draw(x, RNG),
}
OF_A_FILTER = {
    "bryson_frazier": kf.bryson_frazier,
    "draw_posterior": lambda x: kf.draw_posterior(x, RNG),
}
NO_MODEL = {"System": ARM, "ndarray": np.zeros(6), "str": "panda.urdf", "NoneType": None}


@pytest.mark.parametrize("kind", NO_MODEL)
@pytest.mark.parametrize("name", OF_A_MODEL)
def test_what_is_no_model(name, kind):
    said = rf"(ss|model) must be a kfdyn\.StateSpace, got {kind} .*kf\.as_estimation\(system, q\)$"
    with pytest.raises(ModelError, match=said):
        OF_A_MODEL[name](NO_MODEL[kind])


@pytest.mark.parametrize("kind", NO_MODEL)
@pytest.mark.parametrize("name", OF_A_FILTER)
def test_what_is_no_result_of_a_filter(name, kind):
    said = rf"{name} .*filt must be the result of kf\.kalman_filter\(ss, T\), got {kind} "
    with pytest.raises(ModelError, match=said):
        OF_A_FILTER[name](NO_MODEL[kind])


def test_measurements_in_place_of_what_the_filter_made_of_them():
    y = np.zeros(3)
    with pytest.raises(ModelError, match=r"filt must be the result of kf\.kalman_filter\(ss, T\), got ndarray"):
        kf.bryson_frazier(SS, y)
    smooth = kf.bryson_frazier(SS, kf.kalman_filter(SS, y))
    with pytest.raises(ModelError, match=r"got Smoothed"):
        kf.bryson_frazier(SS, smooth)
    with pytest.raises(ModelError, match=r"got StateSpace"):
        kf.draw_posterior(SS, RNG)


def test_the_advice_works():
    q = np.full(6, 0.3)
    ss = kf.as_estimation(ARM, q)
    a = kf.bryson_frazier(kf.kalman_filter(ss, np.ones(6))).a
    np.testing.assert_allclose(a, kf.forward_dynamics(ARM, q, None, np.ones(6)), rtol=1e-10)


def test_results_of_flat_models_are_taken():
    flat = kf.StateSpace.chain(ONE, ONE, ONE, ONE, steps=3)
    filt = kf.kalman_filter(flat, [1.0, 2.0, 3.0])
    assert kf.bryson_frazier(filt).x[2].shape == (1,) and kf.bryson_frazier(flat, filt).ss is flat


def test_what_is_no_model_is_told_what_it_has_instead():
    one = np.ones((1, 1))
    ss, flat = (kf.StateSpace.chain(one, one, one, one, P0=P0, steps=4) for P0 in (one, None))
    outward = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, np.zeros((0, 1))])
    filt = kf.kalman_filter(ss, np.arange(4.0))
    for ask in (lambda: kf.draw(outward, np.random.default_rng(0)), lambda: kf.Covariances(outward)):
        with pytest.raises(ModelError, match=r"got OutwardTree .* branches outward has smooth\(y\)"):
            ask()
    for ask in (lambda: kf.Covariances(filt), lambda: kf.Covariances(kf.kalman_filter(flat, np.arange(4.0)))):
        with pytest.raises(ModelError, match="this is a result, whose model is its attribute ss"):
            ask()
    for wrong in (None, outward, kf.models.pendulum()):
        with pytest.raises(ModelError, match=r"must be a kfdyn\.StateSpace"):
            kf.fast_filter(wrong, np.arange(4.0))
    from kfdyn.estimation.consistency import nis
    from kfdyn.estimation.series.arma import coefficients_of

    for wrong in (None, ss, kf.kalman_filter(flat, np.arange(4.0))):
        with pytest.raises(ModelError, match="without flat priors"):
            nis(wrong)
    with pytest.raises(ShapeError, match=r"partial autocorrelations, such as those in fit\.params"):
        coefficients_of(filt)
    for wrong in (np.s_[:, 0], "a", [0, 1], None):
        with pytest.raises(ShapeError, match=r"counted by node.* x\.stacked\(\)"):
            filt.predicted_state[wrong]
