"""Jacobians by complex step and by differences, and which of them a model says it uses."""

import mpmath
import numpy as np
import pytest
from dense_mode import between, right_jacobian, turn

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.nonlinear.manifold import Manifold


def smooth_step(x, w, u, k):
    return np.stack(
        [x[:, 0] * np.cos(x[:, 1]) + np.exp(0.3 * w[:, 0]) * u[:, 0], x[:, 1] ** 3 + w[:, 0] * x[:, 0]], axis=1
    )


def exact(x, w, u):
    """F and B of smooth_step in extended precision."""
    with mpmath.workdps(40):

        def f(a, b, c):
            return (a * mpmath.cos(b) + mpmath.exp(mpmath.mpf("0.3") * c) * u, b**3 + c * a)

        at = tuple(map(mpmath.mpf, (*x, w)))
        J = [
            [float(mpmath.diff(lambda *z, i=i: f(*z)[i], at, tuple(int(j == l) for l in range(3)))) for j in range(3)]
            for i in range(2)
        ]
    return np.array(J)


@pytest.mark.parametrize(("kind", "tol"), [("complex step", 1e-14), ("central differences", 1e-9), ("auto", 1e-14)])
def test_against_extended_precision(kind, tol):
    model = kf.NonlinearModel(smooth_step, lambda x, k: x, 1.0, np.ones(2), np.zeros(2), np.eye(2), jacobians=kind)
    rng = np.random.default_rng(0)
    x, w, u = rng.normal(size=(5, 2)), rng.normal(size=(5, 1)), rng.normal(size=(5, 1))
    _, F, B = model.linear_step(x, w, u, np.arange(5))
    for i in range(5):
        np.testing.assert_allclose(np.concatenate([F[i], B[i]], axis=1), exact(x[i], w[i, 0], u[i, 0]), atol=tol * 10)
    assert model.jacobians["step"] == ("complex step" if kind == "auto" else kind)


def test_auto_takes_differences_where_a_complex_step_would_be_wrong():
    def modulus(x, k):
        return np.abs(x) * 2

    def drops(x, k):
        return np.real(x) ** 2

    def refuses(x, k):
        return np.arctan2(x, 1.0)

    for function, slope in ((modulus, 2.0), (drops, 1.4), (refuses, 1 / 1.49)):
        model = kf.NonlinearModel(function, lambda x, k: x, 1.0, 1.0, 0.0, 1.0)
        assert "step auto" in repr(model)
        F = model.linear_step(np.array([[0.7]]), np.zeros((1, 1)), None, np.array([0]))[1]
        np.testing.assert_allclose(F.ravel(), slope, rtol=1e-8)
        assert model.jacobians["step"] == "central differences"
        assert "step central differences" in repr(model)


def test_given_jacobians_are_used_and_checked():
    def step(x, k):
        return np.sin(x)

    called = []

    def jacobian(x, k):
        called.append(len(x))
        return np.cos(x)[:, :, None]

    model = kf.NonlinearModel(step, lambda x, k: x, 1.0, 1.0, 0.0, 1.0, step_jacobian=jacobian)
    assert model.jacobians["step"] == "given"
    kf.iterated_kalman_smoother(model, np.zeros(9), start=np.zeros((9, 1)))
    assert called and set(called) == {8}  # all steps in one call
    wrong = kf.NonlinearModel(step, lambda x, k: x, 1.0, 1.0, 0.0, 1.0, step_jacobian=lambda x, k: np.cos(x))
    with pytest.raises(ShapeError, match="step_jacobian returned shape"):
        kf.iterated_kalman_smoother(wrong, np.zeros(4), start="prior")
    single = kf.NonlinearModel(
        lambda x, w, k: x + w, lambda x, k: x, 1.0, 1.0, 0.0, 1.0, step_jacobian=lambda x, w, k: np.ones((len(x), 1, 1))
    )
    with pytest.raises(ShapeError, match="must return a pair"):
        kf.extended_kalman_filter(single, np.zeros(3))


@pytest.mark.parametrize("given", [True, False])
def test_jacobians_of_rotations(given):
    space = Manifold(turn, between, right_jacobian if given else None)
    rng = np.random.default_rng(1)
    x = turn(np.tile([0.0, 0, 0, 1], (4, 1)), rng.normal(size=(4, 3)))
    d, e = rng.normal(size=(4, 3)), 1e-6 * rng.normal(size=(4, 3))
    J, tol = space.plus_jacobian(x, d), 1e-11  # of second order in e
    moved = between(turn(x, d + e), turn(x, d))
    np.testing.assert_allclose((J @ e[:, :, None])[:, :, 0], moved, atol=tol)
    y = turn(x, d)
    L = space.minus_jacobian(y, x)
    np.testing.assert_allclose(d - (L @ e[:, :, None])[:, :, 0], between(y, turn(x, e)), atol=tol)


def test_plus_and_minus_must_undo_each_other():
    args = (lambda x, k: x, lambda x, k: x, 1.0, 1.0, [0.0], [1.0])
    with pytest.raises(ModelError, match="do not undo each other"):
        kf.NonlinearModel(*args, plus=lambda x, d: x + d, minus=lambda y, x: x - y)
    with pytest.raises(ModelError, match="without minus"):
        kf.NonlinearModel(*args, plus=lambda x, d: x + d)
    with pytest.raises(ModelError, match="jacobians must be"):
        kf.NonlinearModel(*args, jacobians="symbolic")


def test_an_angle_needs_only_a_minus_that_wraps():
    def wrap(y, x):
        return (y - x + np.pi) % (2 * np.pi) - np.pi

    model = kf.NonlinearModel(
        lambda x, k: x + 0.3, lambda x, k: x, 1e-3, 0.01, [3.0], [0.1], minus=wrap, reading_minus=wrap
    )
    truth = 3.0 + 0.3 * np.arange(30)
    y = wrap(truth + 0.05 * np.random.default_rng(0).normal(size=30), 0.0)
    for estimate in (kf.extended_kalman_filter, kf.unscented_kalman_filter, kf.iterated_kalman_smoother):
        found = estimate(model, y)
        assert np.abs(wrap(found.x[:, 0], truth)).max() < 0.3


def test_a_subclass_with_its_own_arrays_is_a_model():
    """What a robot's model does: batched methods of its own, points longer than tangents."""

    class Turning(kf.NonlinearModel):
        calls = 0

        def __init__(self):
            super().__init__(
                lambda x, k: x, lambda x, k: x[:, :3], 0.1 * np.eye(3), 0.1 * np.eye(3), [0.0, 0, 0, 1.0],
                0.5 * np.eye(3), plus=turn, minus=between, plus_jacobian=right_jacobian,
            )  # fmt: skip

        def advance(self, x, w, u, k):
            return turn(turn(x, np.tile([0.2, 0.1, 0.0], (len(x), 1))), w)

        def linear_step(self, x, w, u, k):
            Turning.calls += 1
            d = np.array([0.2, 0.1, 0.0])
            from scipy.spatial.transform import Rotation

            A = (Rotation.from_rotvec(d) * Rotation.from_rotvec(w)).as_matrix().transpose(0, 2, 1)
            return self.advance(x, w, u, k), A, right_jacobian(w)

        def read(self, x, w, u, k):
            return self.vector(x)

        @staticmethod
        def vector(q):
            from scipy.spatial.transform import Rotation

            return Rotation.from_quat(q).inv().apply([1.0, 2.0, 3.0])

        def linear_read(self, x, w, u, k):
            h = self.vector(x)
            zero = np.zeros(len(h))
            a, b, c = h.T
            H = np.stack([zero, -c, b, c, zero, -a, -b, a, zero], axis=1).reshape(-1, 3, 3)
            return h, H, None

    own = Turning()
    plain = kf.NonlinearModel(
        lambda x, k: turn(x, np.tile([0.2, 0.1, 0.0], (len(x), 1))), lambda x, k: Turning.vector(x), 0.1 * np.eye(3),
        0.1 * np.eye(3), [0.0, 0, 0, 1.0], 0.5 * np.eye(3), plus=turn, minus=between,
    )  # fmt: skip
    y = Turning.vector(turn(np.tile([0.0, 0, 0, 1], (8, 1)), np.random.default_rng(2).normal(size=(8, 3)) * 0.5))
    for estimate in (kf.extended_kalman_filter, kf.unscented_kalman_filter, kf.iterated_kalman_smoother):
        one, other = estimate(own, y), estimate(plain, y)
        np.testing.assert_allclose(between(one.x, other.x), 0, atol=1e-8)
        np.testing.assert_allclose(one.cov, other.cov, atol=1e-8)
    Turning.calls = 0
    post = kf.iterated_kalman_smoother(own, y, start=one.x)
    assert Turning.calls == post.iterations + 1  # one call for all steps of each linearisation
