"""The MJCF models inside gymnasium and dm_control: mass matrix with armature, bias and smooth acceleration."""

import numpy as np
import pytest
from robot_agreement import label, mjcf_models, with_mujoco

import kfdyn.io as kio
import kfdyn.multibody as mb

mujoco = pytest.importorskip("mujoco")

# MuJoCo's compiler takes seconds over this one's meshes, and its variant below is the same animal.
FILES = [file for file in mjcf_models() if file.name != "floor.xml"]


@pytest.mark.skipif(not FILES, reason="neither gymnasium nor dm_control is installed")
def test_the_whole_set_is_there():
    assert {"humanoid", "ant", "cheetah", "dog", "quadruped"} <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_model(file):
    found = with_mujoco(file)
    if found is None:
        pytest.skip(f"{label(file)} is a part of a model, or nothing in it moves")
    assert found.mass_matrix < 1e-12
    assert found.inverse < 1e-12
    assert found.forward < max(1e-11, 4 * np.finfo(float).eps * found.condition)


@pytest.mark.parametrize("file", [f for f in FILES if f.stem in ("humanoid", "quadruped", "fish")], ids=str)
def test_names_mean_what_they_mean_to_mujoco(file):
    model = mujoco.MjModel.from_xml_path(str(file))
    loaded = kio.read(file)
    system, data = loaded.system, mujoco.MjData(model)
    q = system.random_configuration(11)
    data.qpos[:] = kio.to_mujoco_q(system, model, q)
    mujoco.mj_kinematics(model, data)
    known = {*system.body_names, *system.frames}
    for b in range(1, model.nbody):
        name = model.body(b).name
        pose = loaded.world_frames[name] if name in loaded.world_frames else mb.frame_pose(system, q, name)
        np.testing.assert_allclose(pose.position, data.xpos[b], rtol=0, atol=1e-12)
        np.testing.assert_allclose(pose.rotation.ravel(), data.xmat[b], rtol=0, atol=1e-12)
    for s in range(model.nsite):
        name = model.site(s).name
        if name and name in known and name not in {model.body(b).name for b in range(model.nbody)}:
            np.testing.assert_allclose(mb.frame_pose(system, q, name).position, data.site_xpos[s], rtol=0, atol=1e-12)
