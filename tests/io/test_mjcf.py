import sys
from pathlib import Path

import numpy as np
import pytest
from robot_agreement import mujoco_dynamics

import kfdyn.dynamics as dy
import kfdyn.io as kio
import kfdyn.multibody as mb
from kfdyn.duality.peers import ask_peers
from kfdyn.errors import ModelError

mujoco = pytest.importorskip("mujoco")

# Joints off the body's origin, several per body, a slide between them, references, a ball after a slide, a nested
# weld, unnamed things, sites, armature.
MACHINE = """
<mujoco model="machine">
  <compiler angle="radian"/>
  <option gravity="0.3 -1 -9"/>
  <default><joint armature="0.05" damping="0.2"/><geom type="capsule" size="0.05 0.2" density="800"/></default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="pole" pos="0 0 2"><geom/>
      <body name="upper" pos="0.1 0.2 -0.3" quat="0.8 0.6 0 0">
        <joint name="a" type="hinge" axis="1 2 0" pos="0.1 0 0.3" ref="0.4" range="-1 2" limited="true"/>
        <joint name="b" type="slide" axis="0 1 1" ref="-0.2" stiffness="3" springref="0.5"/>
        <joint name="c" type="hinge" axis="0 0 1" pos="-0.2 0.1 0"/>
        <geom pos="0.1 0.1 0.1"/><site name="eye" pos="0.3 0 0" quat="0 1 0 0"/>
        <body name="plate" pos="0 0.4 0" quat="0.6 0 0.8 0"><geom/><site name="upper" pos="0.1 0 0"/>
          <body pos="0.2 0 0.1"><joint type="slide" axis="1 0 0"/><joint name="socket" type="ball" pos="0 0.1 0.2"/>
            <geom pos="0 0 0.1"/></body>
        </body>
      </body>
    </body>
    <body name="drone" pos="1 2 3" quat="0.6 0.8 0 0"><freejoint name="fly"/><geom/><geom pos="0.3 0 0"/>
      <body name="rotor" pos="0 0 0.2"><joint name="spin" pos="0 0.05 0"/><geom size="0.02 0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def machine():
    loaded = kio.read(MACHINE)
    return loaded, loaded.system, mujoco.MjModel.from_xml_string(MACHINE)


def test_names_and_data(machine):
    loaded, system, _ = machine
    assert system.name == "machine"
    assert system.hinge_names == ("a", "b", "c", "body4:joint0", "socket", "fly", "spin")
    assert system.body_names[:3] == ("upper:a", "upper:b", "upper:c")
    assert {"upper", "plate", "eye", "rotor", "body4", "upper:site"} == set(system.frames)
    assert set(loaded.world_frames) == {"pole"}
    np.testing.assert_array_equal(system.gravity, [0.3, -1, -9])
    # The compiler converts neither the slide's reference nor, in radians, the hinge's.
    np.testing.assert_allclose(system.bodies[0].lower, -1.4)
    np.testing.assert_allclose(system.bodies[0].upper, 1.6)
    assert loaded.spring_reference == {"b": pytest.approx(0.7)}
    assert system.bodies[1].stiffness == 3
    np.testing.assert_array_equal(system.armature, np.r_[np.full(7, 0.05), np.zeros(6), 0.05])
    assert system.damping[0] == 0.2
    assert system.mass == pytest.approx(sum(mujoco.MjModel.from_xml_string(MACHINE).body_mass[2:]))


@pytest.mark.parametrize("merge_fixed", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_dynamics_are_mujocos(machine, seed, merge_fixed):
    model, rng = machine[2], np.random.default_rng(seed)
    system = kio.read(MACHINE, merge_fixed=merge_fixed).system
    q, (v, a, tau) = system.random_configuration(rng), rng.normal(size=(3, system.nv))
    data = mujoco.MjData(model)
    there = kio.to_mujoco(system, model, q, v, a, tau)
    M, smooth, required = mujoco_dynamics(model, data, there)
    X = kio.to_mujoco(system, model, np.tile(q, (system.nv, 1)), np.eye(system.nv)).v.T
    np.testing.assert_allclose(X @ dy.mass_matrix(system, q) @ X.T, M, rtol=0, atol=1e-12 * np.abs(M).max())
    found = kio.to_mujoco(system, model, q, tau=dy.inverse_dynamics(system, q, v, a)).tau
    np.testing.assert_allclose(found, required, rtol=0, atol=1e-12 * np.abs(required).max())
    found = kio.to_mujoco(system, model, q, v, dy.forward_dynamics(system, q, v, tau)).a
    np.testing.assert_allclose(found, smooth, rtol=0, atol=1e-11 * np.abs(smooth).max())
    for name, at in (("upper", data.body("upper")), ("plate", data.body("plate")), ("rotor", data.body("rotor"))):
        np.testing.assert_allclose(mb.frame_pose(system, q, name).position, at.xpos, rtol=0, atol=1e-13)
        np.testing.assert_allclose(mb.frame_pose(system, q, name).rotation.ravel(), at.xmat, rtol=0, atol=1e-13)
    eye = mb.frame_pose(system, q, "eye")
    np.testing.assert_allclose(eye.position, data.site("eye").xpos, rtol=0, atol=1e-13)
    np.testing.assert_allclose(eye.rotation.ravel(), data.site("eye").xmat, rtol=0, atol=1e-13)
    J, linear, angular = mb.jacobian(system, q, "rotor"), np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacBody(model, data, linear, angular, model.body("rotor").id)
    np.testing.assert_allclose(J @ X.T, np.r_[angular, linear], rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("inside", "note"),
    [
        (
            '<tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>'
            '<equality><tendon tendon1="t"/></equality>',
            "1 equality constraint not modelled",
        ),
        (
            '<tendon><fixed><joint joint="a" coef="1"/></fixed><fixed><joint joint="b" coef="1"/></fixed></tendon>',
            "2 tendons",
        ),
        ('<option density="1.2"/>', "drag"),
        ('<worldbody><body name="m" mocap="true"/></worldbody>', "mocap bodies.*'m'"),
        (
            '<worldbody><body name="g" gravcomp="1"><joint/><geom size="1"/></body></worldbody>',
            "gravity compensation.*'g'",
        ),
        (
            '<worldbody><body><joint name="loose" type="free"/><geom size="1"/></body></worldbody>',
            "armature of a free joint.*'loose'; set armature",  # the file's default has one
        ),
    ],
)
def test_what_is_not_modelled_is_told(inside, note):
    with pytest.warns(kio.LoadWarning, match=note):
        kio.load(MACHINE.replace("</mujoco>", inside + "</mujoco>"))


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_armature"), reason="MuJoCo 4 has rotors of actuators")
def test_rotors_and_dampers_of_actuators_are_their_joints():
    motors = """<actuator><motor joint="a" gear="-5" armature="0.1" damping="0.3"/><motor joint="b" gear="3"/>
      <motor joint="a" gear="2" armature="0.2"/><motor jointinparent="socket" gear="3 1 2" armature="0.4"/>
      </actuator>"""
    text = MACHINE.replace("</mujoco>", motors + "</mujoco>")
    model, system, rng = mujoco.MjModel.from_xml_string(text), kio.load(text), np.random.default_rng(0)
    q, (v, a, tau) = system.random_configuration(rng), rng.normal(size=(3, system.nv))
    M, smooth, _ = mujoco_dynamics(model, mujoco.MjData(model), kio.to_mujoco(system, model, q, v, a, tau))
    X = kio.to_mujoco(system, model, np.tile(q, (system.nv, 1)), np.eye(system.nv)).v.T
    np.testing.assert_allclose(X @ dy.mass_matrix(system, q) @ X.T, M, rtol=0, atol=1e-12 * np.abs(M).max())
    found = kio.to_mujoco(system, model, q, v, dy.forward_dynamics(system, q, v, tau)).a
    np.testing.assert_allclose(found, smooth, rtol=0, atol=1e-11 * np.abs(smooth).max())
    data = mujoco.MjData(model)
    data.qvel[0] = 1.0  # joint a's
    mujoco.mj_forward(model, data)
    assert system.damping[0] == pytest.approx(-data.qfrc_passive[0], rel=1e-14)


def test_nonlinear_damping_of_an_actuator_is_told():
    motor = '<actuator><motor joint="a" gear="5" damping="0.3 0.2"/></actuator>'
    try:
        mujoco.MjModel.from_xml_string(MACHINE.replace("</mujoco>", motor + "</mujoco>"))
    except ValueError:
        pytest.skip("MuJoCo 4 has dampers of actuators")
    with pytest.warns(kio.LoadWarning, match="nonlinear damping"):
        kio.load(MACHINE.replace("</mujoco>", motor + "</mujoco>"))


@pytest.mark.parametrize("flag", ["equality", "constraint"])
def test_equalities_switched_off_bind_nothing(flag):
    inside = f"""<option><flag {flag}="disable"/></option><equality><joint joint1="a" joint2="b"/>
      <weld body1="drone"/></equality>"""
    with pytest.warns(kio.LoadWarning, match="2 equality constraints not modelled"):
        system = kio.load(MACHINE.replace("</mujoco>", inside + "</mujoco>"))
    assert not system.loops and not system.couplings


def test_a_path_is_no_model_of_mujocos():
    with pytest.raises(ModelError, match=r"model must be a mujoco\.MjModel, got 'humanoid\.xml'; kfdyn\.io\.read"):
        kio.from_mujoco_model("humanoid.xml")


def test_gravity_switched_off_or_given():
    off = MACHINE.replace("</mujoco>", '<option><flag gravity="disable"/></option></mujoco>')
    np.testing.assert_array_equal(kio.read(off).system.gravity, 0)
    np.testing.assert_array_equal(kio.read(MACHINE, gravity=(1, 2, 3)).system.gravity, [1, 2, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "MuJoCo's compiler refuses it"),
        ("<mujoco><nonsense/></mujoco>", "MuJoCo's compiler refuses it.*nonsense"),
        ('<mujoco><include file="nowhere.xml"/></mujoco>', "MuJoCo's compiler refuses it"),
        ("<mujoco/>", "nothing moves"),
        (
            '<mujoco><worldbody><body name="x" pos="nan 0 0"><joint/><geom size="1"/></body></worldbody></mujoco>',
            "<string>: ",
        ),
    ],
)
def test_faults(text, message):
    with pytest.raises(ModelError, match=message):
        kio.load(text)


def test_a_floating_base_is_the_files_own_affair():
    with pytest.raises(ModelError, match="<freejoint/>"):
        kio.load(MACHINE, floating_base=True)


def test_without_mujoco_the_cure_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "\.\[mujoco\]"'):
        kio.load(MACHINE)


def test_file_by_path_resolves_includes_and_leaves_no_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.xml").write_text('<mujocoinclude><body><joint name="j"/><geom size="1"/></body></mujocoinclude>')
    path = tmp_path / "model.urdf"  # the suffix lies
    path.write_text('<mujoco><compiler settotalmass="2"/><worldbody><include file="part.xml"/></worldbody></mujoco>')
    loaded = kio.read(path)
    assert loaded.system.hinge_names == ("j",)
    assert loaded.system.mass == pytest.approx(2)
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


def test_an_indefinite_inertia_is_read_on_request():
    """The compiler refuses one, but a compiled model can be changed."""
    model = mujoco.MjModel.from_xml_string(MACHINE)
    rotor = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "rotor")
    model.body_inertia[rotor, 2] = -0.7
    with pytest.raises(ModelError, match=r"MjModel: 'rotor.*principal moment.*indefinite_inertia=\"warn\""):
        kio.from_mujoco_model(model)
    loaded = kio.from_mujoco_model(model, indefinite_inertia="warn")
    assert any("'rotor" in note and "principal moment of inertia -0.7" in note for note in loaded.notes)
    assert kio.read(MACHINE, indefinite_inertia="warn").notes == kio.read(MACHINE).notes
    system, rng = loaded.system, np.random.default_rng(8)
    q, (v, a) = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    there = kio.to_mujoco(system, model, q, v, a, np.zeros(system.nv))
    required = mujoco_dynamics(model, mujoco.MjData(model), there)[2]
    found = kio.to_mujoco(system, model, q, tau=dy.inverse_dynamics(system, q, v, a)).tau
    np.testing.assert_allclose(found, required, rtol=0, atol=1e-12 * np.abs(required).max())


MESHES = """
<mujoco><compiler meshdir="looks"/>
  <asset><mesh name="shell" file="shell.stl"/><mesh file="finger.obj"/><texture name="wood" type="2d" file="wood.png"/>
    <material name="oak" texture="wood"/><hfield name="hills" file="hills.png" size="1 1 1 1"/></asset>
  <worldbody><geom type="hfield" hfield="hills"/>
    <body name="arm"><inertial pos="0.1 0.2 0" mass="2" fullinertia="3 2 2 0.1 0.2 0"/><joint name="a"/>
      <geom name="skin" type="mesh" mesh="shell" material="oak"/>
      <body name="hand"><joint name="b"/><geom size="0.1"/>{0}</body></body></worldbody>
  <contact><pair geom1="skin" geom2="palm"/></contact></mujoco>
"""
PALM = '<geom name="palm" type="mesh" mesh="finger"{}/>'


def test_missing_meshes_that_no_inertia_depends_on():
    """Their looks are in no system; the mass of a geom that counts is."""
    loaded = kio.read(MESHES.format(PALM.format(' mass="0"')))
    bare = '<body name="hand"><joint name="b"/><geom size="0.1"/></body></body></worldbody></mujoco>'
    arm = MESHES[MESHES.index('<body name="arm">') : MESHES.index('<geom name="skin"')]
    plain = kio.read(f"<mujoco><worldbody>{arm}{bare}")
    for one, two in zip(loaded.system.bodies, plain.system.bodies, strict=True):
        np.testing.assert_array_equal(one.inertia, two.inertia)
    assert loaded.warnings == () and "'shell.stl', 'finger.obj', 'hills.png', 'wood.png'" in loaded.quiet[0]
    for density in ("", ' density="7"'):
        with pytest.raises(ModelError, match=r"body 'hand' has no <inertial>.*'finger\.obj'; put the file there"):
            kio.read(MESHES.format(PALM.format(density)))
    text = MESHES.format(PALM.format(' mass="0"'))
    from_geoms = text.replace("<compiler ", '<compiler inertiafromgeom="true" ')  # in the place of what is given
    with pytest.raises(ModelError, match="body 'arm'"):
        kio.read(from_geoms)
    with pytest.raises(ModelError, match="MuJoCo's compiler refuses it"):  # and not for what is missing alone
        kio.read(text.replace('mesh="shell"', 'mesh="shall"'))


def test_missing_meshes_of_a_published_arm(tmp_path):
    """Inertias as its meshes have them, written to the file: with the meshes and without them the same system."""
    packaged = pytest.importorskip("dm_control")
    (file,) = (p for p in Path(packaged.__file__).parent.rglob("jaco_arm.xml"))
    spec = mujoco.MjSpec.from_file(str(file))
    spec.compiler.saveinertial = True
    spec.compile()
    text = spec.to_xml()
    folder = (file.parent / spec.meshdir).resolve()
    assert f'meshdir="{spec.meshdir}"' in text
    with_meshes = kio.read(text.replace(f'meshdir="{spec.meshdir}"', f'meshdir="{folder}"'))
    path = tmp_path / "arm.xml"
    path.write_text(text)
    without = kio.read(path)
    assert "base.stl" in without.quiet[0] and not any("missing" in note for note in with_meshes.notes)
    assert without.system.body_names == with_meshes.system.body_names
    for one, two in zip(without.system.bodies, with_meshes.system.bodies, strict=True):
        for key in ("inertia", "rotation", "position", "armature", "damping", "friction", "lower", "upper", "effort"):
            np.testing.assert_array_equal(getattr(one, key), getattr(two, key))
    answers, said = ask_peers(without.system, without.system.neutral())  # MuJoCo can be asked about it
    assert [answer.peer for answer in answers] == ["MuJoCo"] and not said


ACTUATED = """
<mujoco><worldbody>
  <body name="a"><joint name="a" frictionloss="0.3"/><geom size="0.1"/>
    <body name="b"><joint name="b" actuatorfrcrange="-5 7"/><geom size="0.1"/>
      <body name="c"><joint name="c"/><geom size="0.1"/>
        <body name="d"><joint name="d"/><geom size="0.1"/>
          <body name="e"><joint name="e" type="ball" frictionloss="0.2"/><geom size="0.1"/></body></body></body></body>
  </body></worldbody>
  <actuator><motor joint="a" ctrlrange="-1 2" gear="-50"/><motor joint="a" forcerange="-3 3"/>
    <motor joint="b" gear="2" ctrlrange="-4 4"/><position joint="c" ctrlrange="-1 1"/>
    <motor joint="c" ctrlrange="-1 1"/></actuator></mujoco>
"""


def test_effort_friction_and_actuators():
    """Motors at one hinge add up; a servo whose force has no limit leaves the hinge without one."""
    loaded = kio.read(ACTUATED)
    np.testing.assert_array_equal(loaded.system.effort, [2 * 50 + 3, 7, np.inf, np.inf, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(loaded.system.friction, [0.3, 0, 0, 0, 0.2, 0.2, 0.2])
    assert loaded.friction == {"a": 0.3, "e": 0.2}
    assert loaded.warnings == () and loaded.quiet[0].startswith("5 actuators not modelled")
    assert "effort limits of 2 hinges (effort=True), Coulomb friction of 2 hinges (friction=True)" in loaded.quiet[1]
