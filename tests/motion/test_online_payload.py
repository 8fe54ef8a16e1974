"""A payload as a state of the online filter, against the payload that kf.identify finds in the same log."""

import numpy as np

import kfdyn as kf
from kfdyn.spatial import spatial_inertia

DT, N, ENCODER, FORCE, LOAD = 0.01, 400, 1e-8, 0.01, 0.7
Q0 = np.array([0.3, -0.2])
PRIOR = (Q0, np.zeros(2), 1e-4 * np.eye(4))


def arm(load):
    """Two links in a vertical plane, and a load in the hand."""
    link, about = spatial_inertia(1.0, [0.0, 0.0, -0.3], 0.03 * np.eye(3)), kf.Hinge.revolute([0, 1, 0])
    held = load * spatial_inertia(1.0, [0.05, 0.0, 0.0], 1e-3 * np.eye(3))
    return kf.System(
        [
            kf.Body("upper", link, about, damping=0.2),
            kf.Body("lower", link, about, parent="upper", position=[0, 0, -0.6], damping=0.2),
            kf.Body("load", held, kf.Hinge.fixed(), parent="lower", position=[0, 0, -0.6]),
        ]
    )


def batch(load):
    sensors = [kf.sensors.JointPosition(ENCODER, name="encoders")]
    return kf.MotionModel(arm(load), DT, sensors, [FORCE, FORCE], damping=True, prior=PRIOR)


def online():
    """The same motion with the load as a third number of the state; the equations of motion are affine in it."""
    one, two = arm(1.0), arm(2.0)

    def at(load, f):
        each = load.reshape(-1, *[1] * (f(one).ndim - 1))
        return (2.0 - each) * f(one) + (each - 1.0) * f(two)

    def step(x, w, u, k):
        q, v, load = np.ascontiguousarray(x[:, :2]), np.ascontiguousarray(x[:, 2:4]), x[:, 4]
        M = at(load, lambda robot: kf.mass_matrix(robot, q))
        bias = at(load, lambda robot: kf.inverse_dynamics(robot, q, v, np.zeros_like(v)))
        v = v + DT * np.linalg.solve(M, (u + w - 0.2 * v - bias)[..., None])[..., 0]
        return np.concatenate([q + DT * v, v, x[:, 4:]], axis=1)

    x0, P0 = np.array([*Q0, 0.0, 0.0, 0.5]), np.diag([1e-4] * 4 + [1.0])
    Q, R = [FORCE, FORCE], [ENCODER, ENCODER]
    return kf.NonlinearModel(step, lambda x, k: x[:, :2], Q, R, x0, P0, jacobians="central differences")


def log(seed):
    rng, model, t = np.random.default_rng(seed), batch(LOAD), DT * np.arange(N)
    tau = np.stack([6.0 * np.sin(3.0 * t), 3.0 * np.cos(5.0 * t)], axis=1)
    x = np.concatenate([Q0, [0.0, 0.0]])[None] + 1e-2 * rng.normal(size=(1, 4))
    y = np.empty((N, 2))
    for k in range(N):
        y[k] = x[0, :2] + np.sqrt(ENCODER) * rng.normal(size=2)
        x = model.advance(x, np.sqrt(FORCE) * rng.normal(size=(1, 2)), tau[k : k + 1], np.array([k]))
    return y, tau


def test_a_payload_followed_online_is_the_one_that_a_log_tells():
    for seed in range(3):
        y, tau = log(seed)
        found = kf.identify(batch(0.5), [y], tau[:-1], ["load/mass"])
        live = kf.OnlineFilter(online())
        for row, u in zip(y, tau):
            live.step(row, u)
        followed, error = live.x[4], np.sqrt(live.cov[4, 4])
        assert found.converged and error < 0.01 * LOAD
        assert abs(followed - found.params[0]) < 0.1 * np.hypot(error, found.stderr[0])  # far nearer than to the truth
        np.testing.assert_allclose(error, found.stderr[0], rtol=0.02)
        assert abs(followed - LOAD) < 3.0 * error


def test_a_wrong_model_does_not_pass():
    """Torques that are a twentieth smaller than the filter is told."""
    y, tau = log(0)
    found = kf.identify(batch(0.5), [y], tau[:-1], ["load/mass"])
    live = kf.OnlineFilter(online())
    for row, u in zip(y, tau):
        live.step(row, 1.05 * u)
    assert abs(live.x[4] - found.params[0]) > np.hypot(np.sqrt(live.cov[4, 4]), found.stderr[0])
