import numpy as np
import pytest
from urdf_cases import ALL_JOINTS, LIMIT, joint, link, robot

import kfdyn.dynamics as dy
import kfdyn.io as kio
import kfdyn.multibody as mb
from kfdyn.errors import ModelError, TreeError

pin = pytest.importorskip("pinocchio")


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_joint_type_moves_as_pinocchio_says(seed, floating_base):
    loaded = kio.read(ALL_JOINTS, floating_base=floating_base, mimic="free")
    system = loaded.system
    model = pin.buildModelFromXML(ALL_JOINTS, *([pin.JointModelFreeFlyer()] if floating_base else []))
    data, rng = model.createData(), np.random.default_rng(seed)
    q, (v, a, tau) = system.random_configuration(rng), rng.normal(size=(3, system.nv))
    there = kio.to_pinocchio(system, model, q, v, a, tau)
    expected = pin.rnea(model, data, there.q, there.v, there.a)
    found = kio.to_pinocchio(system, model, q, tau=dy.inverse_dynamics(system, q, v, a)).tau
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    expected = pin.aba(model, data, there.q, there.v, there.tau)
    found = kio.to_pinocchio(system, model, q, v, dy.forward_dynamics(system, q, v, tau)).a
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_data_of_the_joints():
    loaded = kio.read(ALL_JOINTS, mimic="free")
    system = loaded.system
    assert system.hinge_names == ("turn", "slide", "plane", "fly", "roll")
    assert system.body_names == ("arm", "slider", "puck", "drone", "wheel")
    turn = system.bodies[0]
    assert (turn.lower, turn.upper, turn.speed, turn.effort, turn.damping) == (-1, 2, 4, 30, 0.1)
    np.testing.assert_allclose(turn.hinge.screws, [[0, 0.5**0.5, 0.5**0.5, 0, 0, 0]], rtol=1e-15)
    np.testing.assert_array_equal(system.bodies[1].hinge.screws, [[0, 0, 0, 1, 0, 0]])  # the default axis
    assert np.isinf(system.bodies[4].upper).all()
    assert loaded.friction == {"turn": 0.2} and system.friction.tolist() == [0.2] + [0.0] * 11
    assert loaded.mimics == (kio.Mimic("roll", "turn", 2.0, 0.1),)
    assert set(system.frames) == {"flange", "tool"}
    assert set(loaded.world_frames) == {"base"}
    with pytest.warns(kio.LoadWarning, match="mimic joints move freely.*'roll'"):
        kio.load(ALL_JOINTS, mimic="free")


def test_merged_frames_are_where_the_links_are():
    merged, kept = (kio.read(ALL_JOINTS, merge_fixed=flag, mimic="free").system for flag in (True, False))
    assert kept.body_names == ("arm", "slider", "flange", "tool", "puck", "drone", "wheel")
    q = merged.random_configuration(1)
    for frame in ("flange", "tool", "slider", "puck"):
        np.testing.assert_allclose(mb.jacobian(merged, q, frame), mb.jacobian(kept, q, frame), rtol=0, atol=1e-14)
    here = dy.operational_space_compliance(merged, q, ["tool", "wheel"])
    there = dy.operational_space_compliance(kept, q, ["tool", "wheel"])
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-12 * np.abs(here).max())
    np.testing.assert_allclose(dy.mass_matrix(merged, q), dy.mass_matrix(kept, q), rtol=0, atol=1e-13)


def test_floating_base_is_body_zero():
    system = kio.read(ALL_JOINTS, floating_base=True, mimic="free").system
    assert system.body_names[0] == "base"
    assert system.hinge_names[0] == "floating_base"
    assert system.bodies[0].hinge.kind == "free"
    clash = robot(link("a", 1), link("b", 1), joint("floating_base", "continuous", "a", "b"))
    assert kio.read(clash, floating_base=True).system.hinge_names == ("floating_base_", "floating_base")


def test_several_roots_make_a_forest():
    text = robot(link("a", 1), link("b", 1), link("c", 1), joint("j", "continuous", "a", "c"))
    loaded = kio.read(text, floating_base=True)
    assert loaded.system.hinge_names == ("floating_base:a", "floating_base:b", "j")
    assert any("'a', 'b' have no parent" in note for note in loaded.notes)


def test_q_follows_the_order_of_the_joints_in_the_file():
    parts = [link(x, 1) for x in "abcd"]
    joints = [joint("third", "continuous", "c", "d"), joint("first", "continuous", "a", "b")]
    assert kio.read(robot(*parts, *joints, joint("second", "continuous", "b", "c"))).system.hinge_names == (
        "third",
        "first",
        "second",
    )


def test_planar_joint_moves_normal_to_its_axis():
    for axis in ("1 0 0", "0 -1 0", "0.3 -0.4 2"):
        text = robot(link("a"), link("b", 1), joint("p", "planar", "a", "b", f'<axis xyz="{axis}"/>'))
        screws = kio.read(text).system.bodies[0].hinge.screws
        normal = np.array(axis.split(), dtype=float) / np.linalg.norm(np.array(axis.split(), dtype=float))
        np.testing.assert_allclose(screws[2, :3], normal, atol=1e-15)
        np.testing.assert_allclose(screws[:2, 3:] @ normal, 0, atol=1e-15)


def test_gravity_can_be_given():
    np.testing.assert_array_equal(kio.read(ALL_JOINTS, gravity=(1, 2, 3)).system.gravity, [1, 2, 3])
    np.testing.assert_array_equal(kio.read(ALL_JOINTS).system.gravity, [0, 0, -9.81])


def test_content_decides_and_not_the_suffix(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text("\n \n" + '<?xml version="1.0"?>\n' + ALL_JOINTS)
    assert kio.read(path).system.nv == kio.read(str(path)).system.nv == kio.read(ALL_JOINTS.encode()).system.nv == 11
    assert kio.read(ALL_JOINTS.encode("utf-16")).system.nv == 11
    assert kio.read('<?xml version="1.0" encoding="latin-1"?>' + ALL_JOINTS.replace("tool", "tööl")).system.frames[
        "tööl"
    ]


def test_oddities_are_noted_and_not_refused():
    parts = [link("a"), link("b", 1), link("c", 1)]
    odd = robot(*parts, joint("j", "revolute", "a", "b", "<axis/><axis/>"), joint("k", "revolute", "b", "c", LIMIT))
    notes = kio.read(odd).notes
    assert any("line 5: joint 'j' has several <axis>" in note for note in notes)
    assert any("without the <limit>" in note and "'j'" in note and "'k'" not in note for note in notes)
    crossed = robot(*parts, joint("j", "revolute", "a", "b", '<limit lower="1" upper="-1"/>'))
    loaded = kio.read(crossed)
    assert np.isinf(loaded.system.bodies[-1].lower).all() and "lies above" in loaded.notes[0]
    lost = robot(*parts, joint("j", "continuous", "a", "b", '<mimic joint="nobody"/>'))
    for choice in ("obey", "free"):
        (note,) = (note for note in kio.read(lost, mimic=choice).notes if "mimic" in note)
        assert note == (
            "mimic joints move freely, for they follow joints which are not in the file: 'j' (which follow 'nobody')"
        )
    stiff = robot(*parts, joint("j", "continuous", "a", "b"), joint("k", "fixed", "b", "c", '<mimic joint="j"/>'))
    assert not any("mimic" in note for note in kio.read(stiff, mimic="free").notes)  # what is fixed does not move
    thin = link("b", 1).replace('izz="0.4"', 'izz="1.4"')
    assert any(
        "that no positive mass has: links 'b'" in n
        for n in kio.read(robot(link("a"), thin, joint("j", "continuous", "a", "b"))).notes
    )


A, B, J = link("a"), link("b", 1), joint("j", "continuous", "a", "b")
FAULTS = {
    "two links of a name": ((A, B, B, J), TreeError, r":4: link 'b': there is a link of this name in line 3"),
    "two joints of a name": ((A, B, J, J), TreeError, r":5: joint 'j': there is a joint of this name in line 4"),
    "no such parent": (
        (A, B, joint("j", "fixed", "aa", "b")),
        TreeError,
        r":4: joint 'j': its parent link is 'aa'.*mean 'a'",
    ),
    "no such child": ((A, B, joint("j", "fixed", "a", "zz")), TreeError, r":4: joint 'j': its child link is 'zz'"),
    "two parents": (
        (A, B, J, joint("k", "fixed", "a", "b")),
        TreeError,
        r":5: link 'b' is the child of joint 'k' and of .* line 4",
    ),
    "loop": ((A, B, J, joint("k", "fixed", "b", "a")), TreeError, r"loop: .*a.* -> "),
    "own parent": ((A, joint("j", "fixed", "a", "a")), TreeError, "loop: a -> a"),
    "unknown type": ((A, B, joint("j", "hinge", "a", "b")), ModelError, r":4: joint 'j': type 'hinge' is none of"),
    "no links": ((), ModelError, "has no links"),
    "link without a name": (("<link/>",), ModelError, ":2: <link>: has no name"),
    "joint without a child": ((A, B, J.replace('<child link="b"/>', "")), ModelError, ":4: joint 'j': has no <child"),
    "no mass": (('<link name="a"><inertial/></link>',), ModelError, ":2: <inertial> of link 'a': has no <mass"),
    "no inertia": (('<link name="a"><inertial><mass value="1"/></inertial></link>',), ModelError, "has no <inertia"),
    "negative mass": ((link("a", -1),), ModelError, ":2: <mass> of link 'a': mass -1 is negative"),
    "negative moment": (
        (A, link("b", 1).replace('ixx="0.5"', 'ixx="-9"'), J),
        ModelError,
        ":3: link .*'b': principal moment",
    ),
    "missing moment": ((link("a", 1).replace('iyz="0.01" ', ""),), ModelError, ":2: <inertia> of link 'a': has no iyz"),
    "NaN": ((link("a", "nan"),), ModelError, "value='nan' is not finite"),
    "infinite": (
        (A, B, J.replace("0.3 0.1", "inf 0.1")),
        ModelError,
        ":4: <origin> of joint 'j': xyz='inf 0.1 -0.2' is not finite",
    ),
    "huge": ((link("a", "1e200"),), ModelError, "larger than 1e"),
    "two numbers": ((A, B, J.replace("0.3 0.1", "0.1")), ModelError, "xyz='0.1 -0.2' is not 3 numbers"),
    "commas": ((A, B, J.replace("0.3 0.1", "0.3, 0.1,")), ModelError, "not 3 numbers; numbers are separated by blanks"),
    "underscores": ((link("a", "1_0"),), ModelError, "value='1_0' is not a number"),
    "other digits": ((link("a", "١"),), ModelError, "is not a number"),
    "xacro number": ((link("a", "${m}"),), ModelError, "expand xacro first"),
    "xacro element": (("<xacro:include filename='x'/>",), ModelError, "is xacro.*expand the file first"),
    "xacro inside": (
        ("<link name='a'><xacro:inertia/></link>",),
        ModelError,
        ":2: <xacro:inertia> of link 'a': .* is xacro",
    ),
    "zero axis": (
        (A, B, joint("j", "continuous", "a", "b", '<axis xyz="0 0 0"/>')),
        ModelError,
        ":4: <axis> of joint 'j': .*no direction",
    ),
    "negative damping": (
        (A, B, joint("j", "continuous", "a", "b", '<dynamics damping="-1"/>')),
        ModelError,
        "damping -1 is negative",
    ),
    "mimic of nothing": ((A, B, joint("j", "continuous", "a", "b", "<mimic/>")), ModelError, "names no joint"),
    "nothing moves": ((A,), ModelError, "nothing moves.*floating_base=True"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_told_with_file_line_element_and_cure(fault, tmp_path):
    parts, kind, message = FAULTS[fault]
    path = tmp_path / "bad.urdf"
    path.write_text(robot(*parts), encoding="utf-8")
    with pytest.raises(kind, match=r"bad\.urdf.*" + message.removeprefix(r"bad\.urdf")):
        kio.load(path)
    with pytest.raises(kind, match=message):
        kio.read(robot(*parts))


INDEFINITE = link("b", 1).replace('ixx="0.5"', 'ixx="-9"')


def test_an_indefinite_inertia_is_read_on_request():
    text = robot(A, INDEFINITE, J)
    with pytest.raises(ModelError, match=r":3: link .*'b': principal moment.*indefinite_inertia=\"warn\""):
        kio.load(text)
    with pytest.warns(kio.LoadWarning, match=r"link .*'b': principal moment of inertia -9\.\d+ .* is negative"):
        system = kio.load(text, indefinite_inertia="warn")
    assert system.indefinite_inertia == "warn"
    loaded = kio.read(text, indefinite_inertia="warn")  # the notes are the warning
    assert any("'b': principal moment of inertia -9" in note for note in loaded.notes)
    model = pin.buildModelFromXML(text)
    q, v, a = np.random.default_rng(4).normal(size=(3, 1))
    there = kio.to_pinocchio(system, model, q, v, a)
    expected = pin.rnea(model, model.createData(), there.q, there.v, there.a)
    np.testing.assert_allclose(dy.inverse_dynamics(system, q, v, a), expected, rtol=1e-12)
    again = kio.read(kio.save_urdf(loaded), indefinite_inertia="warn").system
    np.testing.assert_allclose(again.layout.J, system.layout.J, rtol=0, atol=1e-13)


def test_many_indefinite_inertias_are_counted():
    n = 9
    links = [INDEFINITE.replace('"b"', f'"b{i}"') for i in range(n)]
    joints = [joint(f"j{i}", "continuous", "a", f"b{i}") for i in range(n)]
    notes = kio.read(robot(A, *links, *joints), indefinite_inertia="warn").notes
    assert sum("'b" in note and "is negative" in note for note in notes) == 4
    assert "and 5 more with a negative principal moment of inertia" in notes


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "negative moment"])
def test_no_other_fault_passes_with_an_indefinite_inertia(fault):
    parts, kind, message = FAULTS[fault]
    with pytest.raises(kind, match=message):
        kio.read(robot(*parts), indefinite_inertia="warn")
