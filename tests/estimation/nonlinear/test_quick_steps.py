"""Steps towards the mode by compiled code of their own: those of the engine, wherever they are given at all."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.estimation import consistency
from kfdyn.estimation.nonlinear import quick_step
from kfdyn.estimation.nonlinear.losses import Huber
from kfdyn.estimation.nonlinear.trajectory import Trajectory
from kfdyn.sweeps import Tag

WAYS = {
    "registers": lambda n, m, p: (Tag(1), (Tag(n), Tag(m), Tag(p)), Tag(0)),
    "tiles": lambda *_: (Tag(1), None, Tag(1)),
    "loops": lambda *_: (Tag(1), None, Tag(0)),
    "lanes": lambda *_: (Tag(4), None, Tag(0)),
    "lanes of known sizes": lambda n, m, p: (Tag(4), (Tag(n), Tag(m), Tag(p)), Tag(0)),
}


def problem(B, N, n, m, p, seed, varying=False, singular=False, **more):
    """A model of random matrices in N steps, a trajectory somewhere, and the problem of finding the best."""
    rng = np.random.default_rng(seed)
    A, C = rng.normal(size=(N, n, n)) / np.sqrt(n), rng.normal(size=(N, m, n))
    A[0], C[0] = 0.9 * np.eye(n), np.eye(m, n)
    G = rng.normal(size=(N - 1, n, p)) if varying else rng.normal(size=(n, p))

    def covariances(size, count):
        half = rng.normal(size=(count, size, size))
        full = half @ half.transpose(0, 2, 1) + 0.1 * np.eye(size)
        return full if varying else full[0]

    Q, R = covariances(p, N - 1), covariances(m, N)
    if singular:
        Q = 0.0 * Q
    P0 = np.diag([0.0] * (n // 2) + [2.0] * (n - n // 2))
    model = kf.NonlinearModel(
        lambda x, k: np.einsum("rij,rj->ri", A[k], np.sin(x)), lambda x, k: np.einsum("rij,rj->ri", C[k], x), Q, R,
        np.zeros(n), P0, noise_input=G,
        step_jacobian=lambda x, k: A[k] * np.cos(x)[:, None, :], observe_jacobian=lambda x, k: C[k],
    )  # fmt: skip
    y = rng.normal(size=(B, N, m))
    y[:, 1], y[0, 2, 0] = np.nan, np.nan
    found = Trajectory(model, y, None, model.prior, more.get("robust"), more.get("method", "block"))
    return found, found.linearise(0.3 * rng.normal(size=(B, N, n)), 0.2 * rng.normal(size=(B, N - 1, p)))


def expect_the_engines(problem, point, weights=None):
    quick, engine = problem.quick_step(point, weights), problem.solve(point, weights, None, False)
    assert quick.smooth is None
    for name in ("d", "w", "costate", "a", "before", "after"):
        wanted = getattr(engine, name)
        scale = max(np.abs(wanted).max(initial=0.0), 1e-3)
        np.testing.assert_allclose(getattr(quick, name), wanted, atol=1e-10 * scale, err_msg=name)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("sizes", [(3, 2, 1), (1, 1, 1), (5, 3, 4), (2, 4, 2)])
def test_steps_are_the_engines(sizes, varying, way):
    if way in ("registers", "lanes", "lanes of known sizes") and quick_step.Checks.on:
        pytest.skip("registers and lanes are of compiled code")
    for series in (2, 4, 7):  # fewer than lanes, as many, and some that look back
        found, point = problem(series, 7, *sizes, seed=sum(sizes), varying=varying)
        found._quick._tags = WAYS[way](*sizes)
        expect_the_engines(found, point)


def test_robust_weights_and_no_noise_at_all():
    found, point = problem(1, 9, 3, 2, 2, seed=5, robust=Huber(0.5), singular=True)
    weights = found.weights(point.at)
    assert weights.min() < 0.9
    found.R = np.diag(np.diag(found.R))
    expect_the_engines(found, point, weights)


def test_a_long_series_goes_into_registers_and_one_of_many_states_by_tiles():
    short, _ = problem(1, 7, 3, 2, 1, seed=0)
    long, point = problem(1, 120, 3, 2, 1, seed=0)
    large, at = problem(1, 5, 20, 6, 4, seed=0)
    if not quick_step.Checks.on:
        assert (short._quick._tags[1], long._quick._tags[1]) == (None, (3, 2, 1))
    assert large._quick._tags == (1, None, 1)
    expect_the_engines(long, point)
    expect_the_engines(large, at)


@pytest.mark.parametrize("case", ["exact", "flat", "wide", "square_root"])
def test_where_the_engine_is_more_careful_there_is_none(case):
    found, point = problem(1, 7, 3, 2, 1, seed=1, method="square_root" if case == "square_root" else "block")
    if case == "exact":
        model = kf.NonlinearModel(lambda x, k: x, lambda x, k: x, 1.0, 0.0, 0.0, 1.0)
        found = Trajectory(model, np.zeros((1, 3, 1)), None, model.prior, None, "block")
    if case == "flat":
        found = Trajectory(found.model, found.y, None, found.model.check_prior((np.zeros(3), None)), None, "block")
    if case == "wide":
        found.prior = found.prior._replace(P0=1e12 * np.eye(3))
    assert found.quick_step(point, None) is None
    assert found.quick_step(point, None) is None  # not tried again


def test_many_series_go_side_by_side():
    found, point = problem(19, 9, 3, 2, 1, seed=2)
    assert quick_step.Checks.on or found._quick._tags[0] > 1
    expect_the_engines(found, point)
    one = point.F.reshape(19, 8, 3, 3)[17].copy()
    point.F.reshape(19, 8, 3, 3)[17] = np.nan  # one series alone has lost all digits
    assert found.quick_step(point, None) is None
    found, _ = problem(19, 9, 3, 2, 1, seed=2)
    point.F.reshape(19, 8, 3, 3)[17] = 1e7 * one
    assert found.quick_step(point, None) is None


def test_what_the_engine_alone_knows_comes_when_it_is_asked_for():
    y = np.sin(0.1 * np.arange(30))
    model = kf.NonlinearModel(lambda x, k: np.sin(x) + 0.1, lambda x, k: x + 0.1 * x**3, 0.01, 0.01, 0.0, 1.0)
    means, whole = (kf.iterated_kalman_smoother(model, y, covariances=given) for given in (False, True))
    assert means._last._smooth is None and whole._last._smooth is not None
    np.testing.assert_allclose(means.x, whole.x, atol=1e-9)
    np.testing.assert_allclose(means.costate, whole.costate, atol=1e-9)
    assert means.llf == pytest.approx(whole.llf, rel=1e-12)
    assert consistency.nis(means.filt).p_value == pytest.approx(consistency.nis(whole.filt).p_value, rel=1e-9)


def test_the_engine_has_the_last_word(monkeypatch):
    """A step that is wrong by a little cannot end the iterations."""
    y = np.sin(0.1 * np.arange(30))
    model = kf.NonlinearModel(lambda x, k: np.sin(x) + 0.1, lambda x, k: x + 0.1 * x**3, 0.01, 0.01, 0.0, 1.0)
    right = kf.iterated_kalman_smoother(model, y)
    honest = Trajectory.quick_step

    def hasty(self, point, weights):
        step = honest(self, point, weights)
        return step._replace(d=np.zeros_like(step.d))

    monkeypatch.setattr(Trajectory, "quick_step", hasty)
    post = kf.iterated_kalman_smoother(model, y)
    assert post.converged
    np.testing.assert_allclose(post.x, right.x, atol=1e-9)
