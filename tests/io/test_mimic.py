"""Mimic joints and equality constraints are obeyed on loading, unless they are to be free."""

from dataclasses import replace

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
    assert kf.to_mujoco(s, model, [0.4], tau=[1.0]).tau.tolist() == [1.0, 0.0]
    assert kf.from_mujoco(s, model, state.q, qfrc=[1.0, 2.0]).tau.tolist() == [1.0 - 1.5 * 2.0]


def test_forces_of_coupled_hinges_there_and_back():
    """Pinocchio's open tree, X by hand: the forces do the same work, move the system alike, and come back."""
    import pinocchio as pin

    rng = np.random.default_rng(5)
    tree = kf.models.random_tree(7, 3, hinges=("revolute", "prismatic"))
    on_bus = [replace(b, parent=b.parent or "bus", armature=0.0) for b in tree.bodies]  # Pinocchio reads no rotors
    flying = kf.System([kf.Body("bus", np.eye(6), kf.Hinge.free()), *on_bus])
    names = tree.hinge_names
    differential = kf.Coupling(names[:3], [[1.0, 1.0], [1.0, -1.0], [0.3, 2.0]], [0.1, 0.0, 0.2])
    locked = kf.Coupling([names[3]], np.zeros((1, 0)), [0.4])
    system = flying.with_couplings([differential, kf.Coupling([names[5], names[4]], [1.0, -2.5]), locked])
    model = pin.buildModelFromXML(kf.save_urdf(flying))
    data = model.createData()
    q = kf.integrate(system, system.neutral(), 0.2 * rng.normal(size=(3, system.nv)))
    v, tau = rng.normal(size=(2, 3, system.nv))
    there = kf.to_pinocchio(system, model, q, v, tau=tau)
    np.testing.assert_allclose((there.tau * there.v).sum(-1), (tau * v).sum(-1), rtol=1e-12)
    back = kf.from_pinocchio(system, model, there.q, there.v, tau=there.tau)
    np.testing.assert_allclose(back.tau, tau, rtol=0, atol=1e-13)
    for i in range(3):
        X = kf.to_pinocchio(system, model, np.tile(q[i], (system.nv, 1)), np.eye(system.nv)).v.T
        upper = np.triu(pin.crba(model, data, there.q[i]))
        M, c = upper + np.triu(upper, 1).T, pin.nonLinearEffects(model, data, there.q[i], there.v[i])
        a = kf.forward_dynamics(system, q[i], v[i], tau[i])  # X is constant: a base and hinges of one dof
        np.testing.assert_allclose(a, np.linalg.solve(X.T @ M @ X, X.T @ (there.tau[i] - c)), rtol=1e-10, atol=1e-10)
    one = kf.to_pinocchio(system, model, q[0], tau=tau)  # leading axes broadcast
    np.testing.assert_array_equal(one.tau[0], there.tau[0])
    vain = flying.with_couplings([kf.Coupling(names[:3], [[1.0, 1.0], [1.0, 1.0], [0.3, 2.0]])])
    with pytest.raises(ModelError, match="do not move with all coordinates that are named after them"):
        kf.to_pinocchio(vain, model, vain.neutral(), tau=np.zeros(vain.nv))


POLYNOMIALS = """<mujoco><compiler angle="radian"/><worldbody>
<body name="one"><joint name="a" axis="0 0 1" ref="0.2"/><geom size="0.1" pos="0.1 0 0"/>
<body name="two" pos="0.3 0 0"><joint name="b" axis="0 1 0" ref="-0.5"/><geom size="0.1" pos="0.1 0.1 0"/>
<body name="three" pos="0.3 0 0"><joint name="c" type="slide" ref="1.5"/><geom size="0.1" pos="0.1 0.1 0"/>
<body name="four" pos="0.3 0 0"><joint name="d"/><geom size="0.1" pos="0.1 0.1 0"/></body></body></body></body>
</worldbody><equality><joint joint1="b" joint2="a" polycoef="0.1 -1.5 0.3 0 0.2"/>
<joint joint1="c" joint2="b" polycoef="0 0.5 1 0 0"/><joint joint1="d" polycoef="0.7 5 5 5 5"/></equality></mujoco>"""


def test_mjcf_polynomials_of_polynomials_and_a_lock():
    """MuJoCo says that its rows hold: positions less references, which both sides of a polynomial are of."""
    import mujoco

    loaded, model = kio.read(POLYNOMIALS), mujoco.MjModel.from_xml_string(POLYNOMIALS)
    s = loaded.system
    assert (s.nv, s.open_tree.nv, loaded.notes) == (1, 4, ())
    assert loaded.mimics[0] == kio.Mimic("b", "a", -1.5, 0.1, (0.3, 0.0, 0.2))
    data = mujoco.MjData(model)
    for q, v in ((0.0, 1.0), (0.4, 2.0), (-1.1, -0.3)):
        state = kf.to_mujoco(s, model, [q], [v], [0.5])
        data.qpos[:], data.qvel[:] = state.q, state.v
        mujoco.mj_forward(model, data)
        assert data.ne == 3
        assert np.abs(data.efc_pos[:3]).max() < 1e-14
        mujoco.mj_mulJacVec(model, data, rates := np.zeros(data.nefc), state.v)
        assert np.abs(rates[:3]).max() < 1e-14 * (1 + np.abs(state.v).max())
        back = kf.from_mujoco(s, model, state.q, state.v, state.a)
        assert np.allclose([back.q, back.v, back.a], [[q], [v], [0.5]], rtol=0, atol=1e-14)
    with pytest.raises(ModelError, match="breaks a coupling"):
        kf.from_mujoco(s, model, state.q + 1e-3 * np.eye(4)[2])
    with pytest.warns(kio.LoadWarning, match="3 equality constraints not modelled"):
        assert kf.load(POLYNOMIALS, mimic="free").nv == 4


def test_a_joint_that_follows_two_others_follows_the_first_and_says_so():
    text = POLYNOMIALS.replace("</equality>", '<joint joint1="c" joint2="a" polycoef="0 1 0 0 0"/></equality>')
    with pytest.warns(kio.LoadWarning, match="follow the first alone: 'c'"):
        s = kf.load(text)
    assert np.array_equal(s.expand([0.4]), kf.load(POLYNOMIALS).expand([0.4]))
