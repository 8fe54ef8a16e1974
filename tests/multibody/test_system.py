"""Systems: numbering, validation, immutability."""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from multibody_cases import close, forest, seeds, state

import kfdyn.multibody as mb
from kfdyn.errors import KfdynError, ModelError, ShapeError, TreeError
from kfdyn.multibody import Body, Frame, Hinge, System
from kfdyn.spatial import IndefiniteInertiaWarning, TriangleInequalityWarning, spatial_inertia

UNIT = spatial_inertia(1.0, [0.1, 0.2, 0.3], np.eye(3))


def body(name, parent=None, hinge=None, **more):
    return Body(name, UNIT, Hinge.revolute() if hinge is None else hinge, parent, **more)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_slices_tile_q_and_v(seed):
    system, rng = forest(seed)
    assert [system.q_slice(h).start for h in system.hinge_names[1:]] == [
        system.q_slice(h).stop for h in system.hinge_names[:-1]
    ]
    assert system.v_slice(system.hinge_names[-1]).stop == system.nv
    assert system.q_slice(system.hinge_names[-1]).stop == system.nq
    assert system.neutral().shape == system.random_configuration(rng).shape == (system.nq,)
    for k, b in enumerate(system.bodies):
        assert system.parent[k] == (-1 if b.parent is None else system.body_names.index(b.parent))
    # a scatter order: every parent before its children
    place = np.argsort(system.layout.order)
    assert all(place[p] < place[k] for k, p in enumerate(system.parent) if p >= 0)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_the_order_of_bodies_does_not_matter(seed):
    system, rng = forest(seed)
    turned = System(system.bodies[::-1], system.gravity, system.frames)
    q, v = state(system, rng)
    q2 = np.concatenate([q[system.q_slice(h)] for h in turned.hinge_names])
    v2 = np.concatenate([v[system.v_slice(h)] for h in turned.hinge_names])
    close(mb.kinetic_energy(turned, q2, v2), mb.kinetic_energy(system, q, v), 1e-13)
    for name in (*system.body_names, "tool"):
        close(mb.frame_velocity(turned, q2, v2, name), mb.frame_velocity(system, q, v, name), 1e-13)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: System([]), ModelError, "no bodies"),
        (lambda: System(body("a")), ModelError, r"body 'a' is one; write \[body\]"),
        (lambda: System([body("a"), body("a")]), TreeError, "two bodies are called 'a'"),
        (
            lambda: System([body("a", hinge_name="h"), body("b", hinge_name="h")]),
            TreeError,
            "two hinges are called 'h'",
        ),
        (lambda: System([body("arm"), body("b", "arn")]), TreeError, "'b'.*'arn'.*mean 'arm'"),
        (
            lambda: System([body("root"), body("a", "c"), body("b", "a"), body("c", "b"), body("d", "a")]),
            TreeError,
            "loop: a -> c -> b -> a.*cut",
        ),
        (lambda: System([body("a", "a")]), TreeError, "loop: a -> a"),
        (
            lambda: System([body("ok"), Body("bad", spatial_inertia(-1.0, np.zeros(3), np.eye(3)))]),
            ModelError,
            "'bad'.*mass -1",
        ),
        (
            lambda: System([Body("bad", spatial_inertia(1.0, np.zeros(3), np.diag([1, 1, -1.0])))]),
            ModelError,
            "'bad'.*negative",
        ),
        (lambda: Body("bad", np.eye(5)), ShapeError, "'bad'.*\\(6, 6\\)"),
        (lambda: Body("bad", [[1, 2], [3]]), ShapeError, "'bad'.*real numbers"),
        (lambda: body("bad", armature="heavy"), ShapeError, "hinge 'bad'.*armature.*real numbers"),
        (lambda: Body("bad", np.full((6, 6), np.nan)), ModelError, "'bad'.*finite"),
        (lambda: body("bad", rotation=np.diag([1, 1, -1.0])), ModelError, "'bad'.*rotation"),
        (lambda: body("bad", rotation=2 * np.eye(3)), ModelError, "'bad'.*rotation"),
        (lambda: body("bad", position=[1, 2]), ShapeError, "'bad'.*position"),
        (lambda: body("bad", armature=-1), ModelError, "hinge 'bad'.*armature"),
        (lambda: body("bad", armature=np.inf), ModelError, "hinge 'bad'.*armature"),
        (lambda: body("bad", armature=[1, 2]), ShapeError, "hinge 'bad'.*armature"),
        (lambda: body("bad", damping=np.nan), ModelError, "hinge 'bad'.*damping"),
        (lambda: body("bad", lower=1.0, upper=-1.0), ModelError, "hinge 'bad'.*lower"),
        (lambda: body("bad", hinge=Hinge.ball(), lower=-1.0), ModelError, "no limits"),
        (lambda: body(""), ModelError, "non-empty"),
        (lambda: Body("bad", UNIT, "revolute"), ModelError, "must be a Hinge"),
        (lambda: System([body("a")], gravity=[0, 0]), ShapeError, "gravity"),
        (lambda: System([body("a")], frames={"a": Frame("a")}), ModelError, "name of a body"),
        (lambda: System([body("a")], frames={"f": Frame("b")}), ModelError, "'f'.*no body"),
    ],
)
def test_bad_systems_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_broken_triangle_inequality_only_warns():
    inertia = spatial_inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))
    with pytest.warns(TriangleInequalityWarning, match="'odd'"):
        system = System([body("fine"), Body("odd", inertia)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(system)).mass == system.mass


def test_an_indefinite_inertia_is_taken_on_request_and_by_every_copy():
    inertia = spatial_inertia(1.0, np.zeros(3), np.diag([1.0, -0.5, 3.0]))
    bodies = [body("fine"), Body("odd", inertia)]
    with pytest.raises(ModelError, match=r"'odd': principal moment of inertia -0.5 .*indefinite_inertia=\"warn\""):
        System(bodies)
    with pytest.warns(IndefiniteInertiaWarning, match="'odd': principal moment of inertia -0.5") as said:
        system = System(bodies, indefinite_inertia="warn")
    assert len(said) == 1
    np.testing.assert_array_equal(system.layout.J[1], inertia[:3, :3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for twin in (pickle.loads(pickle.dumps(system)), copy.deepcopy(system), copy.copy(system)):
            assert twin.indefinite_inertia == "warn"
            np.testing.assert_array_equal(twin.layout.J, system.layout.J)
    assert System([body("fine")]).indefinite_inertia == "refuse"
    with pytest.raises(ModelError, match="'odd': mass -1 is negative"):
        System([Body("odd", -np.eye(6))], indefinite_inertia="warn")
    with pytest.raises(ModelError, match='must be "refuse" or "warn", got True'):
        System(bodies, indefinite_inertia=True)


def test_unknown_names_get_a_hint():
    system = mb.models.puma560()
    with pytest.raises(KfdynError, match=r"no hinge 'joint_7'.*mean 'joint_"):
        system.v_slice("joint_7")
    with pytest.raises(KfdynError, match=r"no body or frame 'lnk_3'.*mean 'link_3'"):
        mb.frame_pose(system, system.neutral(), "lnk_3")
    with pytest.raises(KfdynError, match="no body 'hand'"):
        mb.models.stanford_arm().body_index("hand")


def test_a_system_is_immutable():
    system = mb.models.pendulum()
    with pytest.raises(AttributeError, match="immutable"):
        system.gravity = np.zeros(3)
    with pytest.raises(AttributeError, match="immutable"):
        del system.gravity
    with pytest.raises(TypeError):
        system.frames["tool"] = Frame("bob")
    for array in (*system.layout, system.gravity, system.parent, system.bodies[0].inertia):
        assert not array.flags.writeable
    with pytest.raises(AttributeError):
        system.bodies[0].armature = 3.0


def test_pickle_and_copy():
    system, rng = forest(5)
    q, v = state(system, rng)
    for twin in (pickle.loads(pickle.dumps(system)), copy.deepcopy(system)):
        assert twin.body_names == system.body_names
        assert mb.kinetic_energy(twin, q, v) == mb.kinetic_energy(system, q, v)
        close(mb.frame_pose(twin, q, "tool").position, mb.frame_pose(system, q, "tool").position, 1e-15)


def test_repr_tells_bodies_dofs_and_mass():
    text = repr(mb.models.puma560())
    assert "6 bodies, 6 dofs, mass 23.45 kg" in text
    assert "link_3: revolute on link_2, 4.8 kg" in text
    assert "and 19 more" in repr(mb.models.chain(30))
    assert "2 trees" in repr(mb.models.random_tree(4, trees=2))


def test_random_configurations_respect_limits():
    system = System([body("a", lower=0.2, upper=0.3), body("b", "a", Hinge.prismatic(), lower=-0.1, upper=4)])
    rng = np.random.default_rng(0)
    q = np.array([system.random_configuration(rng) for _ in range(200)])
    assert (q >= [0.2, -0.1]).all() and (q <= [0.3, 4]).all() and np.ptp(q[:, 1]) > 3
    assert (system.random_configuration(7) == mb.random_configuration(system, 7)).all()


def test_a_matrix_typed_with_few_digits_becomes_a_rotation():
    s = 0.7071068
    R = body("a", rotation=[[s, -s, 0], [s, s, 0], [0, 0, 1]]).rotation
    close(R @ R.T, np.eye(3), 1e-15)
    close(R[0, 0], np.sqrt(0.5), 1e-15)


def test_long_chains_build_without_recursion():
    n = 20_000
    system = mb.models.uniform_chain(n)
    assert system.nv == n
    tip = mb.frame_pose(system, system.neutral(), f"rod_{n - 1}").position
    close(tip, [n - 1, 0, 0])
    turned = System(system.bodies[::-1])  # children before parents
    close(mb.frame_pose(turned, turned.neutral(), f"rod_{n - 1}").position, [n - 1, 0, 0])


def test_building_a_system_does_not_load_the_compiler():
    """It takes a tenth of a second to import, and is loaded with the first sweep."""
    code = "import sys, kfdyn.multibody as mb; mb.models.puma560(); sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_rotation_is_projected_once():
    """What placement returns it returns again, bit by bit, of rotations typed with 6 to 16 digits."""
    from kfdyn.multibody.parts.body import placement

    rng = np.random.default_rng(0)
    for digits in rng.integers(7, 17, 2000):
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        typed = np.round(R * np.sign(np.linalg.det(R)), digits)
        once, _ = placement(typed, np.zeros(3), "frame")
        twice, _ = placement(once.copy(), np.zeros(3), "frame")
        np.testing.assert_array_equal(once, twice)
        assert np.abs(once @ once.T - np.eye(3)).max() < 1.1e-14
        assert np.abs(once - typed).max() < 10.0 ** (1 - digits) + 1e-14


def test_every_entry_of_v_has_a_name():
    """The hinge's own, numbered where it has several dofs; what follows another hinge has none."""
    system = mb.models.free_flyer()
    for name, body in zip(system.hinge_names, system.bodies):
        own = system.dof_names[system.v_slice(name)]
        assert own == ((name,) if body.hinge.nv == 1 else tuple(f"{name}[{i}]" for i in range(body.hinge.nv)))
    arm = mb.models.puma560()
    geared = arm.with_couplings([mb.Coupling(arm.hinge_names[1:3], [1.0, -0.5])])
    assert geared.dof_names == (arm.hinge_names[0], arm.hinge_names[1], *arm.hinge_names[3:])
