import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
import kfdyn.dynamics as dy
import kfdyn.io as kio
import kfdyn.multibody as mb
from kfdyn.errors import ModelError
from kfdyn.io.load_result import Loaded
from kfdyn.spatial import rotation_from_rpy, spatial_inertia

seeds = st.integers(0, 10**6)


def unit(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def hinges(rng):
    """Hinges that URDF can say, one by one or as a chain of joints."""
    x, y = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
    screws = [np.r_[w := unit(rng), np.cross(rng.normal(size=3), w)], np.r_[np.zeros(3), unit(rng)]]
    return [
        mb.Hinge.revolute(unit(rng)),
        mb.Hinge.prismatic(unit(rng)),
        mb.Hinge.free(),
        mb.Hinge.fixed(),
        mb.Hinge.planar(),
        mb.Hinge.planar(x, y),
        mb.Hinge.universal(x, y),
        mb.Hinge.gimbal(),
        mb.Hinge.cylindrical(unit(rng)),
        mb.Hinge.succession([*screws, screws[0][[1, 2, 0, 4, 5, 3]]]),
    ]


def system(seed):
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(int(rng.integers(1, 8))):
        hinge = hinges(rng)[int(rng.integers(10))] if k else mb.Hinge.revolute(unit(rng))
        one = hinge.nv == 1
        L = rng.normal(size=(3, 3))
        bodies.append(
            mb.Body(
                f"b<{k}>&\"'é",
                spatial_inertia(rng.uniform(0.5, 2), rng.normal(size=3), L @ L.T + np.eye(3) * np.trace(L @ L.T)),
                hinge,
                bodies[int(rng.integers(k))].name if k and rng.uniform() < 0.8 else None,
                rotation_from_rpy(rng.uniform(-3, 3, 3)),
                rng.normal(size=3),
                f"h{k}\t\n",
                armature=rng.uniform(0.1, 1, hinge.nv if hinge.coordinates == 0 else None),
                damping=rng.uniform(0, 1),
                friction=rng.uniform(0, 1) if rng.uniform() < 0.5 else 0.0,
                lower=-rng.uniform(0, 2) if one and rng.uniform() < 0.5 else -np.inf,
                upper=rng.uniform(0, 2) if one and rng.uniform() < 0.5 else np.inf,
                effort=rng.uniform(1, 2) if rng.uniform() < 0.5 else np.inf,
            )
        )
    frame = mb.Frame(bodies[0].name, rotation_from_rpy(rng.uniform(-3, 3, 3)), rng.normal(size=3))
    order = rng.permutation(len(bodies))
    return mb.System([bodies[k] for k in order], rng.normal(size=3), {"tool": frame}, "a robot"), rng


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_round_trip(seed):
    before, rng = system(seed)
    after = kio.load(kio.save_urdf(before), gravity=before.gravity)
    assert (after.nq, after.nv, after.name) == (before.nq, before.nv, before.name)
    assert [h for h in after.hinge_names if h in before.hinge_names] == [
        b.hinge_name for b in before.bodies if b.hinge.nv
    ]
    for key in ("armature", "damping", "stiffness", "friction", "lower", "upper", "speed", "effort"):
        np.testing.assert_array_equal(getattr(after, key), getattr(before, key))
    q, (v, a) = before.random_configuration(rng), rng.normal(size=(2, before.nv))
    expected = dy.inverse_dynamics(before, q, v, a)
    size = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(dy.inverse_dynamics(after, q, v, a), expected, rtol=0, atol=1e-11 * size)
    moving = {b.name for b in before.bodies if b.hinge.nv} & {*after.body_names, *after.frames}
    for name in ["tool", *moving]:
        J = mb.jacobian(before, q, name)
        np.testing.assert_allclose(mb.jacobian(after, q, name), J, rtol=0, atol=1e-11 * max(1, np.abs(J).max()))


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_second_trip_changes_no_name(seed):
    once = kio.load(kio.save_urdf(system(seed)[0]))
    twice = kio.load(kio.save_urdf(once))
    assert twice.hinge_names == once.hinge_names
    assert twice.body_names == once.body_names
    assert [b.hinge.kind for b in twice.bodies] == [b.hinge.kind for b in once.bodies]


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 0.0])
def test_rotations_survive_at_every_pitch(pitch):
    R = rotation_from_rpy([0.3, pitch, -2.0])
    body = mb.Body("b", np.eye(6), mb.Hinge.revolute(), rotation=R)
    again = kio.load(kio.save_urdf(mb.System([body]))).bodies[0].rotation
    np.testing.assert_allclose(again, body.rotation, rtol=0, atol=5e-16)


@pytest.mark.parametrize(
    ("hinge", "message"),
    [
        (mb.Hinge.ball(), "hinge 'h': URDF has no ball joint"),
        (mb.Hinge.custom(np.eye(6)[:2]), "URDF has no custom joint"),
        (mb.Hinge.helical(pitch=0.1), "no helical joint"),
        (mb.Hinge.succession([[0, 0, 0, 2, 0, 0]]), "1 m per unit of q, this one 2"),
    ],
)
def test_what_urdf_cannot_say_is_refused(hinge, message):
    with pytest.raises(ModelError, match=message):
        kio.save_urdf(mb.System([mb.Body("b", np.eye(6), hinge, hinge_name="h")]))


def test_one_number_per_joint_and_writable_names():
    uneven = mb.Body("b", np.eye(6), mb.Hinge.free(), armature=[1, 1, 1, 2, 2, 2])
    with pytest.raises(ModelError, match="hinge 'b': its dofs differ in armature"):
        kio.save_urdf(mb.System([uneven]))
    with pytest.raises(ModelError, match="no way to write"):
        kio.save_urdf(mb.System([mb.Body("b\x01", np.eye(6), mb.Hinge.free())]))


def test_a_body_called_world_keeps_its_name(tmp_path):
    world = mb.System([mb.Body("world", np.eye(6), mb.Hinge.revolute())])
    path = tmp_path / "world.urdf"
    text = kio.save_urdf(world, path)
    assert path.read_text(encoding="utf-8") == text
    assert kio.load(path).body_names == ("world",)


def test_pinocchio_reads_what_has_armature_and_no_damping():
    pin = pytest.importorskip("pinocchio")
    arm = mb.models.puma560()
    assert arm.armature.all() and not arm.damping.any()
    model = pin.buildModelFromXML(kio.save_urdf(arm))
    model.armature = arm.armature
    q, v, tau = np.linspace(-1, 1, 18).reshape(3, 6)
    there = kio.to_pinocchio(arm, model, q, v, tau=tau)
    a = pin.aba(model, model.createData(), there.q, there.v, there.tau)
    np.testing.assert_allclose(a, dy.forward_dynamics(arm, q, v, tau), rtol=1e-10)


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
def test_what_was_read_can_be_copied_and_sent_to_another_process(again):
    upper, lower = kf.models.double_pendulum().bodies
    rusty = kf.System([upper, replace(lower, friction=[0.3], stiffness=[2.0])])
    loaded = kf.read(kf.save_urdf(Loaded(rusty, "rusty")))._replace(spring_reference={"elbow": 0.1})
    other = again(loaded)
    assert type(other) is Loaded and (other.source, other.notes) == (loaded.source, loaded.notes)
    assert other.friction == {"elbow": 0.3} and other.spring_reference == {"elbow": 0.1}
    assert other.world_frames.keys() == loaded.world_frames.keys()
    q, v, tau = np.random.default_rng(0).normal(size=(3, 2))
    assert np.array_equal(kf.forward_dynamics(other.system, q, v, tau), kf.forward_dynamics(loaded.system, q, v, tau))
    with pytest.raises(TypeError, match="item assignment"):
        other.spring_reference["elbow"] = 0.0
