"""Loops and contacts against Pinocchio's constraintDynamics, and soft ones against MuJoCo."""

import numpy as np
import pytest
from robot_agreement import apart, example_robots

import kfdyn as kf
import kfdyn.io as kio
from kfdyn.multibody.loops.closure import constraint_drift, constraint_jacobian

METHODS = ("cut", "embedding", "proximal")


def talos():
    return next((f for f in example_robots() if f.stem == "talos_reduced"), None)


def pinocchio_constraints(pin, model, system, loops, q_pin):
    """Rigid constraint models with the frames of our loops; joint 1 is the frame that rows are expressed in."""
    models = []
    for loop in loops:
        kind = pin.ContactType.CONTACT_6D if len(loop.rows) == 6 else pin.ContactType.CONTACT_3D
        places = []
        for name in (loop.frame_a, loop.frame_b):
            if name is None:
                pose = loop.anchor or (np.eye(3), np.zeros(3))
                places.append((0, pin.SE3(np.array(pose[0]), np.array(pose[1]))))
                continue
            frame = model.frames[model.getFrameId(name)]
            places.append((frame.parentJoint, frame.placement))
        (j1, M1), (j2, M2) = places
        models.append(pin.RigidConstraintModel(kind, model, j1, M1, j2, M2, pin.ReferenceFrame.LOCAL))
    return models


def compare(system, pin, model, q, v, tau, methods=METHODS, tolerance=1e-9, mu=1e-14):
    there = kio.to_pinocchio(system.open_tree, model, q, v, tau=tau)
    data = model.createData()
    constraints = pinocchio_constraints(pin, model, system, system.loops, there.q)
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in constraints:
        models.append(c)
        datas.append(c.createData())
    constraints = models
    pin.initConstraintDynamics(model, data, constraints, datas)
    settings = pin.ProximalSettings(1e-14, 1e-14, mu, 100)
    a = pin.constraintDynamics(model, data, there.q, there.v, there.tau, constraints, datas, settings).copy()
    for method in methods:
        ours = kf.forward_dynamics(system, q, v, tau, method=method)
        assert apart(kio.to_pinocchio(system.open_tree, model, q, v, ours).a, a) < tolerance, method


@pytest.mark.skipif(talos() is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize("kind", ["pose", "point"])
def test_talos_on_two_feet(kind):
    pin = pytest.importorskip("pinocchio")
    file = talos()
    robot = kio.read(file, floating_base=True).system.open_tree
    model = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
    feet = ("left_sole_link", "right_sole_link")
    rng = np.random.default_rng(0)
    q, tau = robot.random_configuration(rng), 10 * rng.normal(size=robot.nv)
    loops = [kf.Loop(None, foot, kind, anchor=tuple(kf.frame_pose(robot, q, foot))) for foot in feet]
    standing = robot.with_loops(loops)
    v = kf.impact(standing, q, rng.normal(size=robot.nv)).v
    compare(standing, pin, model, q, v, tau)


def test_four_bar_with_redundant_rows():
    pin = pytest.importorskip("pinocchio")
    s, q = kf.models.four_bar(), kf.models.four_bar_configuration(0.7)
    model = pin.buildModelFromXML(kf.save_urdf(s.open_tree))
    rng = np.random.default_rng(1)
    v, tau = kf.minimal_coordinates(s, q).X @ [1.7], rng.normal(size=3)
    # one row has rank zero: Pinocchio needs its regularisation, and iterates it away
    compare(s, pin, model, q, v, tau, tolerance=1e-8, mu=1e-8)


def test_spatial_loop_between_bodies():
    pin = pytest.importorskip("pinocchio")
    arm = kf.models.chain(6, seed=4)
    two = kf.System(
        [*(_renamed(b, "l") for b in arm.bodies), *(_renamed(b, "r", shift=[0.8, 0.1, 0.2]) for b in arm.bodies)],
        name="two arms",
    )
    ends = [f"{x}_{arm.body_names[-1]}" for x in "lr"]
    s = two.with_loops([kf.Loop(*ends, rows="point")])
    model = pin.buildModelFromXML(kf.save_urdf(two))
    rng = np.random.default_rng(3)
    q = kf.assemble(s, rng.normal(size=12))
    v, tau = kf.impact(s, q, rng.normal(size=12)).v, rng.normal(size=12)
    for body in model.names:
        index = model.getJointId(body)
        model.armature[model.joints[index].idx_v : model.joints[index].idx_v + 1] = (
            two.armature[two.v_slice(body)] if body in two.hinge_names else 0
        )
    compare(s, pin, model, q, v, tau)


@pytest.mark.parametrize("make", ["stewart_platform", "delta_robot", "peaucellier"])
def test_parallel_robots(make):
    pin = pytest.importorskip("pinocchio")
    s = getattr(kf.models, make)()
    pose = {"stewart_platform": [0.05, 0.1, 1.2], "delta_robot": [0.05, 0.1, -0.7], "peaucellier": 0.3}[make]
    q = getattr(kf.models, make.split("_")[0] + "_configuration")(pose)
    text = kf.save_urdf(s.open_tree)
    model, split = pin.buildModelFromXML(text), kf.load(text)  # hinges of several dofs become as many joints
    s = split.with_loops(s.loops)
    rng = np.random.default_rng(5)
    v, tau = kf.impact(s, q, rng.normal(size=s.nv)).v, rng.normal(size=s.nv)
    if make == "peaucellier":  # redundant rows: Pinocchio needs its regularisation, and iterates it away
        compare(s, pin, model, q, v, tau, tolerance=1e-8, mu=1e-8)
    else:
        compare(s, pin, model, q, v, tau)


def _renamed(body, side, shift=(0.0, 0, 0)):
    from dataclasses import replace

    position = body.position + (np.array(shift) if body.parent is None else 0)
    parent = None if body.parent is None else f"{side}_{body.parent}"
    return replace(
        body, name=f"{side}_{body.name}", parent=parent, hinge_name=f"{side}_{body.hinge_name}", position=position
    )


MJCF = """<mujoco><option><flag contact="disable"/></option><compiler angle="radian"/><worldbody>
<body name="crank"><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0"/>
<body name="coupler" pos="0.5 0 0"><joint name="b" axis="0 1 0" armature="0.01"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.8 0 0.1"/></body></body>
<body name="rocker" pos="1 0 0"><joint name="c" axis="0 1 0"/><joint name="d" axis="1 0 0"/>
<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.7"/></body>
<body name="base" pos="1.1 0.2 0.5"><freejoint/><geom type="box" size="0.1 0.2 0.3"/>
<body name="tool" pos="0 0 0.3"><joint name="e" type="ball"/><geom size="0.1" pos="0.1 0.2 0.1"/></body></body>
</worldbody><equality>
<connect body1="coupler" body2="rocker" anchor="0.8 0 0.1"/>
<connect body1="tool" body2="rocker" anchor="0.1 0.2 0.3"/>
<connect body1="base" body2="world" anchor="0.1 0.1 0.1"/>
</equality></mujoco>"""


def test_soft_equalities_are_measurement_noise():
    """SKO:cut-joint with R > 0: MuJoCo's qacc from its efc_R as noise and its efc_aref as reference."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF)
    model.opt.tolerance, model.opt.iterations = 0.0, 200  # let its solver go on to rounding
    s = kio.load(MJCF)
    assert [loop.rows for loop in s.loops] == [(3, 4, 5)] * 3
    rng = np.random.default_rng(0)
    start = kio.from_mujoco(s, model, model.qpos0).q
    for _ in range(3):
        q = kf.assemble(s, kf.integrate(s, start, 0.3 * rng.normal(size=s.nv)))
        v, tau = rng.normal(size=(2, s.nv))
        state = kio.to_mujoco(s, model, q, v, tau=tau)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = state.q, state.v, state.tau
        mujoco.mj_forward(model, data)
        assert np.abs(data.efc_pos).max() < 1e-12  # closed for both
        inverse, J = np.zeros((model.nv, model.nv)), data.efc_J.reshape(data.nefc, model.nv)
        mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
        # where no row is limited the solver's answer is this
        soft = np.linalg.solve(J @ inverse @ J.T + np.diag(data.efc_R), data.efc_aref - J @ data.qacc_smooth)
        expected = data.qacc_smooth + inverse @ J.T @ soft
        assert apart(data.qacc, expected) < 1e-10
        # MuJoCo's rows are a − b in the world's axes, ours b − a in the axes of a. Its target is for J qacc alone, so
        # that what its qacc = 0 is to us, and J̇v, are no part of it.
        turn = [np.array(kf.frame_pose(s, q, loop.frame_a).rotation).T for loop in s.loops]
        assert np.allclose(data.efc_R.reshape(3, 3), data.efc_R.reshape(3, 3)[:, :1])  # any axes will do
        aref = np.concatenate([-R @ x for R, x in zip(turn, data.efc_aref.reshape(3, 3))])
        nothing = kio.from_mujoco(s, model, state.q, state.v, np.zeros(model.nv)).a
        reference = aref + constraint_drift(s, q, v) + constraint_jacobian(s, q) @ nothing
        cut = kf.cut_joint(s, q, v, tau, noise=data.efc_R, reference=reference)
        assert apart(kio.to_mujoco(s, model, q, v, cut.a).a, expected) < 1e-10
        forces = np.concatenate([-R.T @ f for R, f in zip(turn, cut.forces)])
        assert apart(forces, soft) < 1e-9
        rigid = kf.forward_dynamics(s, q, v, tau)
        assert apart(rigid, cut.a) > 1e-4


def test_weld_is_read_as_mujoco_means_it():
    mujoco = pytest.importorskip("mujoco")
    weld = '<weld body1="tool" body2="rocker" anchor="0.1 0 0" relpose="0.1 0.2 0.3 0.9 0.1 0.2 0.1"/>'
    text = MJCF[: MJCF.index("<equality>")] + f"<equality>{weld}</equality></mujoco>"
    model, s = mujoco.MjModel.from_xml_string(text), kio.load(text)
    q = kf.assemble(s, kio.from_mujoco(s, model, model.qpos0).q)
    data = mujoco.MjData(model)
    data.qpos[:] = kio.to_mujoco(s, model, q).q
    mujoco.mj_forward(model, data)
    assert data.nefc == 6
    assert np.abs(data.efc_pos).max() < 1e-11
