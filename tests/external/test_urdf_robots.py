"""Every public URDF that Pinocchio loads: mass matrix, inverse and forward dynamics, both bases."""

import numpy as np
import pytest
from robot_agreement import INDEFINITE, bullet_robots, example_robots, label, with_pinocchio

import kfdyn.dynamics as dy
import kfdyn.io as kio
import kfdyn.multibody as mb
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.errors import ModelError, SingularError

pin = pytest.importorskip("pinocchio")

BASES = pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
EXAMPLES, BULLET = example_robots(), bullet_robots()
SINGULAR = {"romeo", "romeo_laas_small"}
TOLERANCE = 1e-9


def check(found, singular):
    if found is None:
        return
    assert found.mass_matrix < TOLERANCE
    assert found.inverse < TOLERANCE
    if singular:
        assert found.forward is None
        assert "hinge '" in found.refusal
    else:
        # Two different eliminations differ by up to eps times the condition number of the mass matrix.
        assert found.forward is not None, found.refusal
        assert found.forward < max(TOLERANCE, 4 * np.finfo(float).eps * found.condition)


@pytest.mark.skipif(not EXAMPLES, reason="example-robot-data is not installed")
def test_the_whole_set_is_there():
    assert len(EXAMPLES) > 60
    assert {*INDEFINITE, *SINGULAR, "icub", "panda", "talos_full_v2"} <= {file.stem for file in EXAMPLES}


@BASES
@pytest.mark.parametrize("file", EXAMPLES, ids=label)
def test_example_robot(file, floating_base):
    check(with_pinocchio(file, floating_base), file.stem in SINGULAR)


@BASES
@pytest.mark.parametrize("file", [f for f in EXAMPLES if f.stem in INDEFINITE], ids=label)
def test_impossible_robot_is_refused_until_asked_for(file, floating_base):
    body = "base_link" if floating_base else "LHipPitch_link"
    fault = rf"link .*'{body}': principal moment of inertia -0\.\d+ .* is negative"
    with pytest.raises(ModelError, match=rf"urdf:\d+: {fault}.*indefinite_inertia=\"warn\""):
        kio.read(file, floating_base=floating_base)
    with pytest.warns(kio.LoadWarning, match=fault):
        system = kio.load(file, floating_base=floating_base, indefinite_inertia="warn")
    # Its mass matrix is singular (grippers without mass), so there is no acceleration to miss, for Pinocchio either.
    model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floating_base else []))
    upper = np.triu(pin.crba(model, model.createData(), pin.neutral(model)))
    lowest, *_, highest = np.linalg.eigvalsh(upper + np.triu(upper, 1).T)
    assert abs(lowest) < 1e-12 * highest
    q, v, tau = system.neutral(), np.zeros(system.nv), np.ones(system.nv)
    for method in ("filter", "engine"):
        with pytest.raises(SingularError, match=r"hinge '[lr]_gripper_joint': nothing outboard of it has mass"):
            dy.forward_dynamics(system, q, v, tau, method=method)
    # With rotors in the grippers there is one, and both find it.
    rotors = np.zeros(system.nv)
    for hinge in ("l_gripper_joint", "r_gripper_joint"):
        rotors[system.v_slice(hinge)] = 0.01
    geared = with_armature(system, rotors)
    rng = np.random.default_rng(6)
    q, (v, tau) = geared.random_configuration(rng), rng.normal(size=(2, geared.nv))
    there = kio.to_pinocchio(geared, model, q, v, tau=tau)
    for joint, value in zip(geared.hinge_names, (rotors[geared.v_slice(name)] for name in geared.hinge_names)):
        if value.any():
            model.armature[model.joints[model.getJointId(joint)].idx_v] = value[0]
    expected = pin.aba(model, model.createData(), there.q, there.v, there.tau)
    for method in ("filter", "engine"):
        found = kio.to_pinocchio(geared, model, q, v, dy.forward_dynamics(geared, q, v, tau, method=method)).a
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


@BASES
@pytest.mark.parametrize("file", BULLET, ids=label)
def test_bullet_robot(file, floating_base):
    found = with_pinocchio(file, floating_base)
    check(found, found is not None and found.forward is None)
    if found is not None and found.forward is None:
        # Refused rightly: in double precision Pinocchio's own mass matrix has no inverse.
        assert found.condition > 1e13


@pytest.mark.parametrize(
    "file", [f for f in EXAMPLES if f.stem in ("talos_reduced", "kinova", "baxter", "solo12")], ids=label
)
def test_keeping_fixed_joints_changes_nothing(file):
    merged, kept = (kio.read(file, merge_fixed=flag, mimic="free").system for flag in (True, False))
    assert kept.n_bodies > merged.n_bodies
    moving = [name for name in kept.hinge_names if kept.v_slice(name).stop > kept.v_slice(name).start]
    assert moving == list(merged.hinge_names)
    rng = np.random.default_rng(5)
    q, (v, tau) = merged.random_configuration(rng), rng.normal(size=(2, merged.nv))
    a, b = (dy.forward_dynamics(system, q, v, tau) for system in (merged, kept))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * np.abs(a).max())
    for frame in merged.frames:
        J, L = (mb.jacobian(system, q, frame) for system in (merged, kept))
        np.testing.assert_allclose(J, L, rtol=0, atol=1e-12)


@pytest.mark.parametrize("file", [f for f in EXAMPLES if f.stem in ("panda", "talos_full_v2", "pr2")], ids=label)
def test_frames_are_where_pinocchio_has_them(file):
    system = kio.read(file, floating_base=True).system
    model = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
    data, q = model.createData(), system.random_configuration(7)
    pin.framesForwardKinematics(model, data, kio.to_pinocchio(system, model, q).q)
    for name in [*system.body_names, *system.frames]:
        there = data.oMf[model.getFrameId(name, pin.FrameType.BODY)]
        here = mb.frame_pose(system, q, name)
        np.testing.assert_allclose(here.position, there.translation, rtol=0, atol=1e-12)
        np.testing.assert_allclose(here.rotation, there.rotation, rtol=0, atol=1e-12)


@pytest.mark.parametrize("file", [f for f in EXAMPLES if f.stem in ("panda", "tiago", "romeo", "solo")], ids=label)
def test_written_back_it_is_the_same_robot_to_both(file, tmp_path):
    loaded = kio.read(file, floating_base=True, mimic="free")  # Pinocchio reads the joints free, too
    path = tmp_path / "again.urdf"
    kio.save_urdf(loaded, path)
    again = kio.read(path, mimic="free")
    assert again.system.hinge_names == loaded.system.hinge_names
    assert again.system.body_names == loaded.system.body_names
    assert again.mimics == loaded.mimics
    assert again.friction == loaded.friction
    for key in ("lower", "upper", "speed", "effort", "damping"):
        there, here = (getattr(read.system.open_tree, key) for read in (again, loaded))
        np.testing.assert_array_equal(there, here)
    rng = np.random.default_rng(2)
    q, (v, a) = loaded.system.random_configuration(rng), rng.normal(size=(2, loaded.system.nv))
    expected = dy.inverse_dynamics(loaded.system, q, v, a)
    np.testing.assert_allclose(
        dy.inverse_dynamics(again.system, q, v, a), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )
    model = pin.buildModelFromUrdf(str(path))
    there = kio.to_pinocchio(again.system, model, q, v, a, expected)
    tau = pin.rnea(model, model.createData(), there.q, there.v, there.a)
    np.testing.assert_allclose(tau, there.tau, rtol=0, atol=1e-11 * np.abs(expected).max())
