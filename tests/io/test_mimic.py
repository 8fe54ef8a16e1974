"""Mimic joints and equality constraints are obeyed on loading, unless they are to be free."""

import numpy as np
import pytest
from urdf_cases import joint, link, robot

import kfdyn as kf
import kfdyn.io as kio
from kfdyn.errors import ModelError


def mimic(of, multiplier=1.0, offset=0.0):
    return f'<axis xyz="0 0 1"/><mimic joint="{of}" multiplier="{multiplier}" offset="{offset}"/>'


LINKS = [link(name) for name in ("base", "a", "b", "c", "d")]


def test_chain_of_mimics():
    text = robot(
        *LINKS,
        joint("jc", "continuous", "base", "c", mimic("jb", -2.0, 0.25)),
        joint("jb", "continuous", "base", "b", mimic("ja", 3.0, 0.5)),
        joint("ja", "continuous", "base", "a", '<axis xyz="0 0 1"/>'),
        joint("jd", "prismatic", "base", "d", mimic("ja", 0.0, 0.125) + '<limit lower="-1" upper="1"/>'),
    )
    s = kf.load(text)
    assert s.nv == 1
    assert np.allclose(s.expand([0.1]), [-2 * (0.3 + 0.5) + 0.25, 0.8, 0.1, 0.125])
    assert np.allclose(s.expansion()[:, 0], [-6, 3, 1, 0])
    free = kf.read(text, mimic="free").system
    assert free.nv == 4
    assert free.is_tree
    again = kf.load(kf.save_urdf(kf.System(s.bodies, couplings=s.couplings)))
    assert np.allclose(again.expand([0.1]), s.expand([0.1]))


def test_circle_of_mimics_is_named():
    text = robot(
        *LINKS,
        joint("ja", "continuous", "base", "a", mimic("jb")),
        joint("jb", "continuous", "base", "b", mimic("ja")),
    )
    with pytest.raises(ModelError, match=r"circle: 'ja' -> 'jb' -> 'ja'|circle: ja -> jb -> ja"):
        kf.load(text)
    assert kf.read(text, mimic="free").system.nv == 2


def test_mimic_of_a_fixed_joint_stands_still():
    text = robot(
        *LINKS,
        joint("ja", "fixed", "base", "a"),
        joint("jb", "continuous", "base", "b", mimic("ja", 2.0, 0.75)),
        joint("jc", "continuous", "base", "c"),
        joint("jd", "continuous", "base", "d", mimic("jc")),
    )
    s = kf.load(text)
    assert s.nv == 1
    assert np.allclose(s.expand([0.3]), [0.75, 0.3, 0.3])
    with pytest.raises(ModelError, match="follow one other joint"):
        kf.save_urdf(s)


def test_word_is_checked():
    with pytest.raises(ModelError, match="'obey' or 'free'"):
        kf.load(robot(*LINKS), mimic="no")


def test_differentials_are_not_urdf():
    s = kf.models.uniform_chain(2)
    both = kf.System(s.bodies, couplings=[kf.Coupling(s.hinge_names, [[1, 1], [1, -1]])])
    with pytest.raises(ModelError, match="follow one other joint"):
        kf.save_urdf(both)
    assert "follows" in kio.describe(kf.System(s.bodies, couplings=[kf.Coupling(s.hinge_names, [1, 1])]))


MJCF = """<mujoco><compiler angle="radian"/><worldbody>
<body name="one"><joint name="a" axis="0 0 1" ref="0.2"/><geom size="0.1" pos="0.1 0 0"/>
<body name="two" pos="0.3 0 0"><joint name="b" axis="0 1 0"/><geom size="0.1" pos="0.1 0.1 0"/></body></body>
</worldbody><equality><joint joint1="b" joint2="a" polycoef="0.1 -1.5 0 0 0"/></equality></mujoco>"""


def test_mjcf_joint_equality_and_states():
    import mujoco

    s, model = kf.load(MJCF), mujoco.MjModel.from_xml_string(MJCF)
    assert s.nv == 1
    state = kf.to_mujoco(s, model, [0.4], [2.0])
    assert np.allclose(state.q, [0.6, 0.1 - 1.5 * 0.4])
    assert np.allclose(state.v, [2.0, -3.0])
    data = mujoco.MjData(model)
    data.qpos[:] = state.q
    mujoco.mj_forward(model, data)
    rows = [i for i in range(data.nefc) if data.efc_type[i] == 0]
    assert np.abs(data.efc_pos[rows]).max() < 1e-12
    back = kf.from_mujoco(s, model, state.q, state.v)
    assert np.allclose(back.q, [0.4])
    assert np.allclose(back.v, [2.0])
    with pytest.raises(ModelError, match="breaks a coupling"):
        kf.from_mujoco(s, model, [0.6, 0.0])
    with pytest.raises(ModelError, match="leave tau out"):
        kf.to_mujoco(s, model, [0.4], tau=[1.0])
