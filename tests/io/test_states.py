"""States to other tools and back; the other tools' own integrators say what velocities mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from urdf_cases import ALL_JOINTS, joint, link, robot

import kfdyn.io as kio
import kfdyn.multibody as mb
from kfdyn.errors import ModelError, ShapeError

pin = pytest.importorskip("pinocchio")
mujoco = pytest.importorskip("mujoco")

SYSTEM = kio.read(ALL_JOINTS, floating_base=True, mimic="free").system
PIN = pin.buildModelFromXML(ALL_JOINTS, pin.JointModelFreeFlyer())
MJCF = """<mujoco><default><geom size="0.1"/></default><worldbody>
<body name="a" pos="1 0 0"><freejoint name="f"/><geom/><body name="b"><joint name="s" type="slide" ref="0.3"/>
<joint name="h" ref="20" pos="0 1 0"/><geom/><body name="c"><joint name="q" type="ball"/><geom/></body></body></body>
</worldbody></mujoco>"""
MJ_SYSTEM = kio.load(MJCF)
MJ = mujoco.MjModel.from_xml_string(MJCF)
PAIRS = [(SYSTEM, PIN, kio.to_pinocchio, kio.from_pinocchio), (MJ_SYSTEM, MJ, kio.to_mujoco, kio.from_mujoco)]
seeds = st.integers(0, 10**6)


@pytest.mark.parametrize("pair", PAIRS, ids=["pinocchio", "mujoco"])
@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_there_and_back(pair, seed):
    system, model, to, back = pair
    rng = np.random.default_rng(seed)
    lead = [(), (3,), (2, 3)][seed % 3]
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(lead)))]).reshape((*lead, system.nq))
    v, a, tau = rng.normal(size=(3, *lead, system.nv))
    there = to(system, model, q, v, a, tau)
    assert there.q.shape == (*lead, model.nq)
    assert there.v.shape == there.a.shape == there.tau.shape == (*lead, model.nv)
    for found, expected in zip(back(system, model, *there), (q, v, a, tau)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    # Power is the same in both: tau and v are dual.
    np.testing.assert_allclose((there.tau * there.v).sum(-1), (tau * v).sum(-1), rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_pinocchio_integrates_to_the_same_place(seed):
    rng = np.random.default_rng(seed)
    q, v = SYSTEM.random_configuration(rng), rng.normal(size=SYSTEM.nv)
    v[SYSTEM.v_slice("plane").stop - 1] = 0.0  # Pinocchio's plane follows an arc, ours the rates: alike without spin
    there = kio.to_pinocchio(SYSTEM, PIN, q, v)
    again = kio.to_pinocchio(SYSTEM, PIN, mb.integrate(SYSTEM, q, v)).q
    expected = pin.integrate(PIN, there.q, there.v)
    assert pin.isSameConfiguration(PIN, again, expected, 1e-12)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_mujoco_integrates_to_the_same_place(seed):
    rng = np.random.default_rng(seed)
    q, v = MJ_SYSTEM.random_configuration(rng), rng.normal(size=MJ_SYSTEM.nv)
    v[:3] *= seed % 2  # MuJoCo turns and shifts a free body apart, ours goes along the twist: alike when one is zero
    v[3:6] *= 1 - seed % 2
    there = kio.to_mujoco(MJ_SYSTEM, MJ, q, v)
    expected = there.q.copy()
    mujoco.mj_integratePos(MJ, expected, there.v, 0.7)
    found = kio.to_mujoco_q(MJ_SYSTEM, MJ, mb.integrate(MJ_SYSTEM, q, 0.7 * v))
    for at in (slice(3, 7), slice(9, 13)):  # q and −q are one rotation
        np.testing.assert_allclose(abs(found[at] @ expected[at]), 1, rtol=0, atol=1e-13)
        found[at] *= np.sign(found[at] @ expected[at])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("pair", PAIRS, ids=["pinocchio", "mujoco"])
def test_accelerations_are_derivatives_of_velocities(pair):
    system, model, to, _ = pair
    rng = np.random.default_rng(4)
    q, (v, a) = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    h = 1e-5
    ahead, behind = (to(system, model, mb.integrate(system, q, s * h * v), v + s * h * a).v for s in (1, -1))
    np.testing.assert_allclose((ahead - behind) / (2 * h), to(system, model, q, v, a).a, rtol=0, atol=1e-8)


def test_mujoco_q_alone():
    q = MJ_SYSTEM.random_configuration(1)
    qpos = kio.to_mujoco_q(MJ_SYSTEM, MJ, q)
    assert qpos[7] == pytest.approx(q[7] + 0.3) and qpos[8] == pytest.approx(q[8] + np.deg2rad(20))
    np.testing.assert_allclose(kio.from_mujoco_q(MJ_SYSTEM, MJ, qpos), q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(kio.from_mujoco_q(MJ_SYSTEM, MJ, MJ.qpos0)[:7], [1, 0, 0, 0, 0, 0, 1])


def test_faults():
    q = SYSTEM.neutral()
    with pytest.raises(ModelError, match="an acceleration needs the velocity"):
        kio.to_pinocchio(SYSTEM, PIN, q, a=np.zeros(SYSTEM.nv))
    with pytest.raises(ShapeError, match=r"v must have shape \(..., 18\)"):
        kio.from_pinocchio(SYSTEM, PIN, pin.neutral(PIN), np.zeros(3))
    with pytest.raises(ModelError, match="q has entries that are not finite"):
        kio.from_mujoco(MJ_SYSTEM, MJ, np.full(MJ.nq, np.nan))
    with pytest.raises(ModelError, match=r"load both from one file"):
        kio.to_pinocchio(SYSTEM, pin.buildModelFromXML(ALL_JOINTS), q)
    with pytest.raises(
        ModelError, match="joint 'f' of the MuJoCo model is no hinge of 'test'; load both from one file"
    ):
        kio.to_mujoco(SYSTEM, MJ, q)
    parts = [link("a"), link("b", 1), link("c", 1), joint("j", "continuous", "a", "b")]
    gear = robot(*parts, joint("k", "continuous", "b", "c", '<mimic joint="j"/>'))
    system = kio.load(gear)
    with pytest.raises(ModelError, match=r"joint 'k' of the Pinocchio model follows another.*without mimic=True"):
        kio.to_pinocchio(system, pin.buildModelFromXML(gear, mimic=True), system.neutral())
    assert kio.to_pinocchio(system, pin.buildModelFromXML(gear), system.neutral()).q.size >= 2  # the cure
    tilted = robot(link("a"), link("b", 1), joint("p", "planar", "a", "b", '<axis xyz="1 0 0"/>'))
    system = kio.load(tilted)
    with pytest.raises(ModelError, match="hinge 'p': Pinocchio's planar joint moves in the x-y plane"):
        kio.to_pinocchio(system, pin.buildModelFromXML(tilted), system.neutral())


@pytest.mark.parametrize("pair", PAIRS, ids=["pinocchio", "mujoco"])
def test_a_model_that_was_forgotten(pair):
    system, _, to, back = pair
    q, v = system.neutral(), np.zeros(system.nv)
    for call in (to, back):
        with pytest.raises(
            ModelError, match=r"model, the second argument, must be a .*odel, got ndarray; give \(system"
        ):
            call(system, q, v)
