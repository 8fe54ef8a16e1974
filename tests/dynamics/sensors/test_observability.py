"""What a layout promises against the null space and pseudo-inverse of the dense system; greedy placement; figures."""

import numpy as np
import pytest
from dense_sensors import dense
from multibody_cases import forest, state
from sensor_cases import S, case, wrist

import kfdyn as kf
from kfdyn.dynamics.sensors.solver import unobservable
from kfdyn.errors import ModelError, UnobservableError


def dense_std(system, q, v, sensors, readings):
    """Standard deviations with infinity where a null vector of the unknowns leads."""
    d = dense(system, q, v, sensors, readings)
    G, R = d.G, d.R
    total = G.shape[1]
    K = np.block([[np.zeros((total, total)), G.T], [G, -R]])
    scale = np.ones(len(K))
    for _ in range(20):
        largest = np.abs(K * np.outer(scale, scale)).max(1)
        scale /= np.sqrt(np.where(largest > 0, largest, 1.0))
    Ks = K * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(Ks)
    null = np.abs(values) < 1e-11
    inverse = (vectors[:, ~null] / values[~null]) @ vectors[:, ~null].T * np.outer(scale, scale)
    free = vectors[:total, null] * scale[:total, None]
    out = {}
    for key, (A, _) in d.maps.items():
        moves = np.abs(A @ free).max(1, initial=0.0) > 1e-7
        variance = np.einsum("ij,jk,ik->i", A, inverse[:total, :total], A)
        if not null.any():  # known better: solved with refinement
            variance = d.cov[key].diagonal()
        variance = np.maximum(variance, 0)
        out[key] = np.where(moves, np.inf, np.sqrt(variance))
    return out, int(null.sum()), d.condition


def test_undetermined_quantities_are_infinite_and_the_others_right():
    lost = 0
    for seed in range(40):
        system, q, v, sensors, _ = case(seed, 1 + seed % 5)
        if not sensors or not system.nv:
            continue
        blank = [np.zeros(s.size(system)) for s in sensors]
        expected, nulls, condition = dense_std(system, q, v, sensors, blank)
        if 1e10 < condition < 1e14:
            continue
        seen = kf.observability(system, q, sensors, v)
        assert bool(seen.determined) == (nulls == 0), seed
        assert bool(seen.text) == (nulls > 0)
        lost += nulls > 0
        for key, value in expected.items():
            value = value.reshape(seen.std(key).shape)
            np.testing.assert_array_equal(np.isinf(seen.std(key)), np.isinf(value), err_msg=f"{seed} {key}")
            finite = np.isfinite(value)
            # a standard deviation of exactly zero is known to the root of a rounding
            size = max(1.0, value[finite].max(initial=0.0))
            np.testing.assert_allclose(seen.std(key)[finite], value[finite], rtol=1e-5, atol=1e-5 * size)
    assert lost >= 3


def test_batches_and_the_estimate_agree():
    system, rng = forest(3, 6)
    q, v = state(system, rng, (2, 3))
    sensors = [S.JointTorque(0.1), S.Imu("tool", 0.2)]
    seen = kf.observability(system, q, sensors)
    est = kf.estimate_dynamics(system, q, v, sensors, [np.zeros(system.nv), np.zeros(6)])
    for key in ("a", "tau", "hinge_forces"):
        np.testing.assert_allclose(seen.std(key), est.std(key), rtol=1e-9, atol=1e-10)
    assert seen.determined.shape == (2, 3) and seen.determined.all() and str(seen).startswith("the sensors determine")


def test_greedy_placement_takes_the_best_of_all_pairs_first():
    robot = kf.models.humanoid()
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(2)])
    base = robot.hinge_names[0]
    rest = [h for h in robot.hinge_names[1:] if robot.bodies[robot.hinge_index(h)].hinge.nv]
    have = [S.JointTorque(0.0, base), S.JointTorque(0.5, rest), S.ExternalForce(robot.body_names[-1], 25.0)]
    candidates = [S.Imu(body, 0.01) for body in robot.body_names[:6]]
    placed = kf.place_sensors(robot, q, have, candidates, count=2, target="a")
    rms = [np.sqrt(np.mean(kf.observability(robot, q, [*have, c]).std("a") ** 2)) for c in candidates]
    assert placed.chosen[0] == candidates[int(np.argmin(rms))]
    np.testing.assert_allclose(placed.rms[1], min(rms), rtol=1e-10)
    assert placed.rms[0] > placed.rms[1] > placed.rms[2] and placed.undetermined == (0, 0, 0)
    assert "+ Imu(" in repr(placed)
    with pytest.raises(ModelError, match="cannot choose 9 of 6"):
        kf.place_sensors(robot, q, have, candidates, count=9)


def test_what_is_no_sensor_is_named():
    arm, good = kf.models.double_pendulum(), [S.JointTorque(1.0)]
    q = [0.3, 0.4]
    for bad, match in (
        ([None], "0 is a NoneType, not one of"),
        (None, "must be a list"),
        (good[0], "must be a list"),
    ):
        with pytest.raises(ModelError, match="sensors? " + match):
            kf.observability(arm, q, bad)
        with pytest.raises(ModelError, match="sensors? " + match):
            kf.place_sensors(arm, q, bad, good)
        with pytest.raises(ModelError, match="candidates? " + match):
            kf.place_sensors(arm, q, good, bad)


@pytest.mark.parametrize(("tilt", "cov"), [(1e-2, 1e4), (3e-4, 1e4), (3e-5, 1e6)])
def test_near_a_lock_the_words_say_why_and_what_they_say_cures_it(tilt, cov):
    """𝓜⁻¹ is known in closed form: ω = E v. Exact torques are answered there, and so are wide ones, sharpened."""
    system, q = wrist(), np.array([0.3, tilt, 0.2])
    s, c, sr, cr = np.sin(tilt), np.cos(tilt), np.sin(q[2]), np.cos(q[2])
    E = np.array([[-s * cr, sr, 0.0], [s * sr, cr, 0.0], [c, 0.0, 1.0]])
    inverse = np.linalg.inv(E) @ np.diag([1.0, 0.5, 0.4]) @ np.linalg.inv(E).T
    tau = np.array([1.0, 2.0, 3.0])
    with pytest.raises(
        UnobservableError, match=r"near a singular state .* such as 1e\+16: the estimate stays the same"
    ):
        kf.estimate_dynamics(system, q, None, [kf.sensors.JointTorque(cov)], [tau])
    est = kf.estimate_dynamics(system, q, None, [kf.sensors.JointTorque(cov / 1e16)], [tau])
    np.testing.assert_allclose(est.a, inverse @ tau, rtol=1e-15 / tilt**2)
    deviation = np.sqrt(cov * (inverse**2).sum(axis=1))
    np.testing.assert_allclose(1e8 * est.std("a"), deviation, rtol=1e-15 / tilt**2)


def test_in_a_lock_a_torque_that_is_read_is_not_called_a_cure():
    with pytest.raises(UnobservableError, match="undetermined: hinge 'hand' with hinge 'pan'; a JointAcceleration at"):
        kf.estimate_dynamics(wrist(), [0.3, 0.0, 0.2], None, [kf.sensors.JointTorque(1.0)], [[1.0, 2.0, 3.0]])


def test_where_torques_alone_leave_no_digits_nothing_is_called_determined():
    """What an estimate refuses is not determined; other states of the batch are, to the same deviations as alone."""
    light = np.zeros((6, 6))
    ball = kf.Body("ball", np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), kf.Hinge.revolute([0, 1, 0]), "gimbal")
    gimbal = kf.Body("gimbal", light, kf.Hinge.revolute([1, 0, 0]))
    last = kf.Body("last", light, kf.Hinge.revolute([0, 0, 1]), "ball")
    sensors = [S.JointTorque(0.1)]
    for system in (kf.System([gimbal, ball, last]), wrist()):
        states = np.array([system.neutral() + np.array([0.1, 0.7, 0.2]), system.neutral()])
        seen = kf.observability(system, states, sensors)
        for q, determined, std in zip(states, seen.determined, seen.std("a")):
            try:
                est = kf.estimate_dynamics(system, q, None, sensors, [np.zeros(3)])
            except UnobservableError:
                assert not determined and np.isinf(std).any() and "hinge" in seen.text and seen.unseen[0]
            else:
                assert determined
                np.testing.assert_allclose(std, est.std("a"), rtol=1e-12)
    assert not seen.determined.all()


def test_long_chains_are_told_what_they_lack_without_a_dense_matrix(monkeypatch):
    """What follows wide priors is what null vectors move; an unread hinge, an unknown force, a reading told twice."""
    chain, q = kf.models.uniform_chain(12), np.random.default_rng(0).normal(size=12)
    unread = [S.JointTorque(0.1, [h for h in chain.hinge_names if h != "joint_5"])]
    pushed = [S.JointTorque(0.1), S.JointPrior(2.0), S.ExternalForce("rod_3", np.inf)]
    twice = [S.JointTorque(0.0), S.JointTorque(0.0, "joint_3", name="spare")]
    small = [kf.observability(chain, q, sensors) for sensors in (unread, pushed, twice)]
    monkeypatch.setattr(unobservable, "LARGE", 0)
    large = [kf.observability(chain, q, sensors) for sensors in (unread, pushed, twice)]
    for one, other in zip(small[:2], large):
        assert not other.determined
        np.testing.assert_array_equal(np.isinf(other.std("a")), np.isinf(one.std("a")))
    assert "hinge 'joint_" in large[0].text and "external force on 'rod_3'" in large[1].text
    assert "say the same twice" in large[2].text and "spare" in large[2].text
