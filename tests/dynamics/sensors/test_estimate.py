"""The door: both ends of the theorem, batches, missing readings, conventions, and what it refuses."""

import tracemalloc

import mujoco
import numpy as np
import pytest
from multibody_cases import forest, state

import kfdyn as kf
from kfdyn.dynamics.sensors.solver.layout import make_layout
from kfdyn.dynamics.sensors.solver.problem import make_problem
from kfdyn.dynamics.sensors.solver.programs import program_of
from kfdyn.errors import ModelError, ShapeError, UnobservableError

S = kf.sensors


@pytest.mark.parametrize("seed", range(12))
def test_exact_torques_are_forward_dynamics_and_exact_accelerations_inverse(seed):
    """By the estimator's own recursion, to 1e-13 of the condition of the mass matrix."""
    system, rng = forest(seed)
    if not system.nv:
        return
    q, v = state(system, rng, (4,))
    tau = rng.normal(size=(4, system.nv))
    a = kf.forward_dynamics(system, q, v, tau)
    condition = np.linalg.cond(kf.mass_matrix(system, q)).max()
    est = kf.estimate_dynamics(system, q, v, [S.JointTorque(0.0)], [tau])
    np.testing.assert_allclose(est.a, a, rtol=0, atol=1e-13 * condition * np.abs(a).max())
    np.testing.assert_allclose(est.std("a"), 0, atol=1e-7)
    est = kf.estimate_dynamics(system, q, v, [S.JointAcceleration(0.0)], [a])
    c = np.abs(kf.bias_forces(system, q, v)).max()
    np.testing.assert_allclose(est.tau, tau, rtol=0, atol=1e-13 * condition * max(c, np.abs(tau).max()))


def test_hybrid_dynamics_is_a_mixed_set():
    system = kf.models.puma560()
    rng = np.random.default_rng(0)
    q, v, tau, a = rng.normal(size=(4, 6))
    mask = np.array([True, False, False, True, False, True])
    whole_tau, whole_a = kf.hybrid_dynamics(system, q, v, tau, a, prescribed=mask)
    sensors = [S.JointTorque(0.0), S.JointAcceleration(0.0)]
    est = kf.estimate_dynamics(system, q, v, sensors, [np.where(mask, np.nan, tau), np.where(mask, a, np.nan)])
    np.testing.assert_allclose(est.a, whole_a, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(est.tau, whole_tau, rtol=1e-11, atol=1e-11)


def test_no_base_wrench_and_accelerometers_of_a_floating_robot():
    """Floating base: six dofs without a motor, the acceleration of the base found from torques."""
    system = kf.models.humanoid()
    rng = np.random.default_rng(1)
    q, v = state(system, rng)
    base = system.hinge_names[0]
    assert system.bodies[0].hinge.nv == 6
    rest = [h for h in system.hinge_names if h != base and system.bodies[system.hinge_index(h)].hinge.nv]
    tau = rng.normal(size=system.nv)
    tau[system.v_slice(base)] = 0
    sensors = [S.JointTorque(0.0, base), S.JointTorque(0.0, rest)]
    est = kf.estimate_dynamics(system, q, v, sensors, [np.zeros(6), tau[6:]])
    a = kf.forward_dynamics(system, q, v, tau)
    np.testing.assert_allclose(est.a, a, rtol=0, atol=1e-11 * np.abs(a).max())


def test_a_batch_is_its_entries_whatever_is_missing():
    system, rng = forest(3, 6)
    q, v = state(system, rng, (2, 5))
    sensors = [S.JointTorque(0.1), S.JointPrior(5.0), S.Imu(system.body_names[-1], 0.2)]
    tau, imu = rng.normal(size=(2, 5, system.nv)), rng.normal(size=(2, 5, 6))
    tau[0, 1, :2] = imu[1, 3, 2] = imu[1, 4] = np.nan
    readings = [tau, None, imu]
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    assert est.dof.tolist() == (np.isfinite(tau).sum(-1) + np.isfinite(imu).sum(-1)).tolist()
    for i in np.ndindex(2, 5):
        one = kf.estimate_dynamics(system, q[i], v[i], sensors, [tau[i], None, imu[i]])
        for key in ("a", "tau", "body_accelerations", "hinge_forces", "external_forces"):
            np.testing.assert_allclose(getattr(est, key)[i], getattr(one, key), rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(est.std(key)[i], one.std(key), rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(est.llf[i], one.llf, rtol=1e-12)
        np.testing.assert_allclose(est.predicted[2][i], one.predicted[2], rtol=1e-10, atol=1e-12)
    assert np.isnan(est.residuals[2][1, 4]).all() and np.isfinite(est.predicted[2]).all()


def test_a_state_where_the_choice_does_not_suit_gets_its_own():
    """Folded so that the second hinge does not move the tip along y, an exact reading there goes further inward."""
    arm = kf.models.uniform_chain(3)
    q = np.array([[0.3, 0.7, -0.4], [0.0, 0.5 * np.pi, 0.0], [0.1, 0.2, 0.3]])
    sensors = [S.JointTorque(0.1), S.Accelerometer("rod_2", 0.0)]
    tau = np.zeros((3, 3))
    seen = np.full((3, 3), np.nan)
    seen[:, 1] = 0.5
    est = kf.estimate_dynamics(arm, q, None, sensors, [tau, seen], gravity=np.zeros(3))
    for i in range(3):
        one = kf.estimate_dynamics(arm, q[i], None, sensors, [tau[i], seen[i]], gravity=np.zeros(3))
        np.testing.assert_allclose(est.a[i], one.a, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(est.predicted[1][i, 1], 0.5, rtol=1e-12)


MJCF = """<mujoco><option gravity="0.3 -0.4 -9.81"/><worldbody><body name="base" pos="0 0 1"><freejoint name="root"/>
<geom type="box" size=".2 .15 .1" mass="5"/><site name="imu" pos=".1 .05 .2" euler="20 -30 40"/>
<body name="upper" pos=".2 0 .1"><joint name="shoulder" axis="0 1 .3" armature=".05"/>
<geom type="capsule" fromto="0 0 0 .4 0 .1" size=".05" mass="2"/>
<body name="fore" pos=".4 0 .1"><joint name="elbow" axis="0 0 1"/>
<geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04" mass="1"/>
<site name="wrist" pos=".05 .02 -.03" euler="-50 10 70"/>
</body></body></body></worldbody><sensor><accelerometer site="imu"/><accelerometer site="wrist"/><force site="wrist"/>
<torque site="wrist"/></sensor></mujoco>"""


def test_conventions_are_mujocos():
    """Its accelerometers and force-torque sensors read what ours predict, signs and lever arms included."""
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    data.qpos[:3], data.qpos[7:] = rng.normal(size=3), rng.normal(size=2)
    data.qpos[3:7] = rng.normal(size=4)
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.qvel[:] = rng.normal(size=8)
    data.qfrc_applied[:] = rng.normal(size=8)
    mujoco.mj_forward(model, data)
    system = kf.load(MJCF)
    loaded = kf.from_mujoco(system, model, data.qpos, data.qvel, data.qacc)
    sensors = [S.JointAcceleration(0.0), S.Accelerometer("imu", 1.0), S.Accelerometer("wrist", 1.0)]
    sensors += [S.ForceTorque("elbow", 1.0, frame="wrist", direction="parent_to_child")]
    missing = [np.full(3, np.nan), np.full(3, np.nan), np.full(6, np.nan)]
    est = kf.estimate_dynamics(system, loaded.q, loaded.v, sensors, [loaded.a, *missing])
    read = data.sensordata
    np.testing.assert_allclose(est.predicted[1], read[:3], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(est.predicted[2], read[3:6], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(est.predicted[3], np.r_[read[9:12], read[6:9]], rtol=1e-9, atol=1e-9)


def test_what_is_undetermined_is_named():
    arm = kf.models.double_pendulum()
    with pytest.raises(UnobservableError, match=r"hinge 'elbow'.*JointTorque or JointAcceleration") as caught:
        kf.estimate_dynamics(arm, [0.3, 0.2], None, [S.JointAcceleration(0.1, "shoulder")], [[0.0]])
    assert caught.value.unseen == (("hinge 'elbow'",),)
    sensors = [S.JointTorque(0.1), S.ExternalForce("lower", np.inf)]
    with pytest.raises(UnobservableError, match=r"external force on 'lower' .*ForceTorque inboard of 'lower'"):
        kf.estimate_dynamics(arm, [0.3, 0.2], None, sensors, [np.zeros(2), None])
    twice = [S.JointTorque(0.0), S.JointTorque(0.0, "elbow", name="spare")]
    with pytest.raises(UnobservableError, match=r"say the same twice: .*(spare|JointTorque).*give one") as caught:
        kf.estimate_dynamics(arm, [0.3, 0.2], None, twice, [np.zeros(2), np.zeros(1)])
    assert set(caught.value.repeated[0]) == {"JointTorque() at hinge 'elbow'", "spare"}
    with pytest.raises(UnobservableError, match="batch entry"):
        kf.estimate_dynamics(arm, np.zeros((3, 2)), None, [S.JointTorque(0.1)], [[[0, 0], [0, np.nan], [0, 0]]])


def test_bad_input_is_named():
    arm = kf.models.double_pendulum()
    cases = [
        ([S.JointTorque(0.1)], [None], ModelError, "NaN for one that is missing"),
        ([S.JointTorque(0.1)], [], ShapeError, "0 readings for 1 sensors"),
        ([S.JointTorque(0.1)], [np.zeros(3)], ShapeError, r"\(\.\.\., 2\)"),
        ([S.JointTorque([0.1, 0.2, 0.3])], [np.zeros(2)], ShapeError, "reads 2 numbers"),
        ([S.JointTorque([[1.0, 0.5], [0.5, 1.0]])], [np.zeros(2)], ModelError, "couples different hinges"),
        ([S.JointTorque(-1.0)], [np.zeros(2)], ModelError, "not positive semi-definite"),
        ([S.JointTorque(np.inf)], [np.zeros(2)], ModelError, "infinite variance is no reading"),
        ([S.Imu("lower", [[1.0, 2], [3, 4]])], [np.zeros(6)], ShapeError, "reads 6 numbers"),
        ([S.Accelerometer("lower", np.arange(9.0).reshape(3, 3))], [np.zeros(3)], ModelError, "not symmetric"),
        ([S.Accelerometer("hand", 1.0)], [np.zeros(3)], ModelError, "no body or frame 'hand'"),
        ([S.ExternalForce("lower", 1.0)], [np.full(6, np.nan)], ModelError, "cannot be missing"),
        ([S.JointTorque(0.1)], [[np.inf, 0.0]], ModelError, "infinite entries"),
        (["torque"], [np.zeros(2)], ModelError, "not one of kf.sensors"),
    ]
    for sensors, readings, error, match in cases:
        with pytest.raises(error, match=match):
            kf.estimate_dynamics(arm, [0.1, 0.2], None, sensors, readings)


def test_a_chain_of_four_thousand_links_carries_nothing_inward():
    """Inertias of 1e9 beside pivots of 1 are no sign of rounding: unknowns carried inward would take O(N³)."""
    n, rng = 4000, np.random.default_rng(0)
    chain = kf.models.uniform_chain(n)
    q, tau = rng.normal(size=(2, n))
    sensors, unread = [S.JointTorque(0.0), S.Imu(chain.body_names[-1], 0.04)], np.full(6, np.nan)
    est = kf.estimate_dynamics(chain, q, None, sensors, [tau, unread])
    a = kf.forward_dynamics(chain, q, np.zeros(n), tau)
    np.testing.assert_allclose(est.a, a, rtol=0, atol=1e-12 * np.abs(a).max())
    problem = make_problem(chain, q, None, sensors, [tau, np.zeros(6)], None)
    assert program_of(problem, problem.groups[0]).n_values == 0


def test_sensors_of_a_long_chain_take_memory_of_its_length_alone():
    n, rng = 2000, np.random.default_rng(0)
    chain, variances = kf.models.chain(n), rng.uniform(0.1, 1.0, 2000)
    sensors = S.JointTorque(variances), S.JointPrior(2.0)
    tracemalloc.start()
    layout = make_layout(chain, sensors, ((True,) * n,) * 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n**2  # one matrix of all readings
    np.testing.assert_array_equal([node.rows[0].R[0, 0] for node in layout.nodes], variances)


def test_sensors_are_values():
    assert S.Imu("head", 0.1) == S.Imu("head", 0.1) != S.Imu("head", 0.2)
    assert len({S.JointTorque(0.0), S.JointTorque(0.0), S.JointAcceleration(0.0)}) == 2
    with pytest.raises(AttributeError, match="immutable"):
        S.Imu("head", 0.1).cov = 3
