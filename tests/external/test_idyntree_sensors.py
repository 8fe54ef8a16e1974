"""Against iDynTree's BERDY: its own matrices, solved as constrained least squares.

The time of its estimator is in ``benchmarks/sensing.py``.
"""

import numpy as np
import pytest

import kfdyn as kf

idyntree = pytest.importorskip("idyntree.bindings", reason="iDynTree is among the further oracles: kfdyn[peers]")
pytestmark = pytest.mark.slow

S = kf.sensors


def file_of(name):
    from benchmarks.robots import packaged

    return packaged("example-robot-data", name)


def berdy(file, q, v):
    """Helper and matrices D, bD, Y, bY of a fixed-base robot whose torques, accelerations and wrenches are read."""
    loader = idyntree.ModelLoader()
    assert loader.loadModelFromFile(str(file))
    model = loader.model().copy()  # the loader owns the other
    options = idyntree.BerdyOptions()
    options.berdyVariant = idyntree.ORIGINAL_BERDY_FIXED_BASE
    options.includeAllJointTorquesAsSensors = True
    options.includeAllJointAccelerationsAsSensors = True
    options.includeAllNetExternalWrenchesAsDynamicVariables = True
    options.includeAllNetExternalWrenchesAsSensors = True
    options.includeFixedBaseExternalWrench = False
    helper = idyntree.BerdyHelper()
    assert helper.init(model, options)
    position, rate = idyntree.JointPosDoubleArray(model), idyntree.JointDOFsDoubleArray(model)
    for i in range(model.getNrOfDOFs()):
        position.setVal(i, float(q[i]))
        rate.setVal(i, float(v[i]))
    gravity = idyntree.Vector3()
    for i, g in enumerate((0.0, 0.0, -9.81)):
        gravity.setVal(i, g)
    base = model.getFrameIndex(model.getLinkName(model.getDefaultBaseLink()))
    assert helper.updateKinematicsFromFixedBase(position, rate, base, gravity)
    D, Y = idyntree.MatrixDynSize(), idyntree.MatrixDynSize()
    bD, bY = idyntree.VectorDynSize(), idyntree.VectorDynSize()
    helper.resizeAndZeroBerdyMatrices(D, bD, Y, bY)
    assert helper.getBerdyMatrices(D, bD, Y, bY)
    return helper, model, D.toNumPy(), bD.toNumPy(), Y.toNumPy(), bY.toNumPy()


def places(range_):
    return slice(range_.offset, range_.offset + range_.size)


@pytest.mark.parametrize("name", ["ur5_robot.urdf", "panda.urdf"])
def test_constrained_least_squares_on_berdys_matrices(name, tmp_path):
    system = kf.read(file_of(name), mimic="free").system
    file = tmp_path / name  # without fixed joints, which BERDY does not take
    kf.save_urdf(system, file)
    rng = np.random.default_rng(0)
    q, v = system.random_configuration(rng), rng.normal(size=system.nv)
    tau_read, a_read = 5 * rng.normal(size=system.nv), rng.normal(size=system.nv)
    push_read = rng.normal(size=(system.n_bodies, 6))
    R_tau, R_a, R_push = 0.3, 0.7, 0.2
    helper, model, D, bD, Y, bY = berdy(file, q, v)
    assert [model.getJointName(i) for i in range(system.nv)] == list(system.hinge_names)

    y, weight = np.zeros(len(bY)), np.zeros(len(bY))
    for i in range(system.nv):
        for kind, value, R in (
            (idyntree.DOF_TORQUE_SENSOR, tau_read[i], R_tau),
            (idyntree.DOF_ACCELERATION_SENSOR, a_read[i], R_a),
        ):
            at = helper.getRangeDOFSensorVariable(kind, i)
            y[places(at)], weight[places(at)] = value, 1 / R
    for k, body in enumerate(system.body_names):
        at = helper.getRangeLinkSensorVariable(idyntree.NET_EXT_WRENCH_SENSOR, model.getLinkIndex(body))
        y[places(at)], weight[places(at)] = np.r_[push_read[k, 3:], push_read[k, :3]], 1 / R_push  # theirs: force first
    n, m = D.shape[1], D.shape[0]
    K = np.block([[Y.T @ (weight[:, None] * Y), D.T], [D, np.zeros((m, m))]])
    right = np.concatenate([Y.T @ (weight * (y - bY)), -bD])
    d = np.linalg.lstsq(K, right, rcond=1e-13)[0][:n]
    a = np.array([d[places(helper.getRangeDOFVariable(idyntree.DOF_ACCELERATION, i))] for i in range(system.nv)])[:, 0]
    tau = np.array([d[places(helper.getRangeDOFVariable(idyntree.DOF_TORQUE, i))] for i in range(system.nv)])[:, 0]

    sensors = [S.JointTorque(R_tau), S.JointAcceleration(R_a)]
    sensors += [S.ExternalForce(body, R_push, axes="frame") for body in system.body_names]
    est = kf.estimate_dynamics(system, q, v, sensors, [tau_read, a_read, *push_read])
    np.testing.assert_allclose(est.a, a, rtol=0, atol=1e-8 * np.abs(a).max())
    np.testing.assert_allclose(est.tau, tau, rtol=0, atol=1e-8 * np.abs(tau).max())
