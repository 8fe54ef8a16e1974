"""What is read off systems with couplings, by compiled entries: alone as in a batch, plain, and refused by name."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import energy, kinematics
from kfdyn.multibody.calls.kernel import Kernel
from kfdyn.multibody.calls.packed_model import frame_of, gears_of
from kfdyn.sweeps import Checks

CALLS = {
    "frame_pose": lambda s, q, v, a: np.concatenate(
        [kf.frame_pose(s, q, "hand").rotation, kf.frame_pose(s, q, "hand").position[..., None, :]], axis=-2
    ),
    "frame_velocity": lambda s, q, v, a: kf.frame_velocity(s, q, v, "hand"),
    "frame_acceleration": lambda s, q, v, a: kf.frame_acceleration(s, q, v, a, "hand"),
    "frame_bias_acceleration": lambda s, q, v, a: kf.frame_bias_acceleration(s, q, v, "hand"),
    "jacobian": lambda s, q, v, a: kf.jacobian(s, q, "hand"),
    "kinetic_energy": lambda s, q, v, a: kf.kinetic_energy(s, q, v),
    "potential_energy": lambda s, q, v, a: kf.potential_energy(s, q),
    "center_of_mass": lambda s, q, v, a: kf.center_of_mass(s, q),
    "momentum": lambda s, q, v, a: kf.momentum(s, q, v),
    "centroidal_momentum": lambda s, q, v, a: kf.centroidal_momentum(s, q, v),
    "integrate": lambda s, q, v, a: kf.integrate(s, q, v),
    "expand": lambda s, q, v, a: s.expand(q),
    "forward_derivatives": lambda s, q, v, a: np.stack(kf.forward_dynamics_derivatives(s, q, v, a), axis=-3),
    "inverse_derivatives": lambda s, q, v, a: np.stack(kf.inverse_dynamics_derivatives(s, q, v, a), axis=-3),
}


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


def gripper():
    """On a free base: a turn, a finger with offset that follows it, and a slide that two coordinates share."""
    inertia = kf.models.chain(5, seed=4).bodies
    bodies = [
        kf.Body("base", inertia[0].inertia, kf.Hinge.free()),
        kf.Body("left", inertia[1].inertia, kf.Hinge.revolute([0, 1, 0]), "base", position=[0.1, 0, 0.2]),
        kf.Body("right", inertia[2].inertia, kf.Hinge.revolute([0, 0, 1]), "base", position=[0, 0.3, 0]),
        kf.Body("rail", inertia[3].inertia, kf.Hinge.prismatic([1, 0, 0]), "right"),
        kf.Body("tip", inertia[4].inertia, kf.Hinge.ball(), "rail", position=[0, 0, 0.4], armature=0.1),
    ]
    frames = {"hand": kf.Frame("tip", position=[0.1, -0.2, 0.3])}
    X = [[1.0, 0.0], [-2.0, 0.5], [0.0, 3.0]]
    return kf.System(bodies, frames=frames, couplings=[kf.Coupling(["left", "right", "rail"], X, [0.0, 0.2, -0.1])])


def states(system, *lead):
    rng = np.random.default_rng(5)
    q = np.empty((*lead, system.nq))
    for at in np.ndindex(lead):
        q[at] = system.random_configuration(rng)
    return q, *rng.normal(size=(2, *lead, system.nv))


def test_a_state_gets_the_same_bits_alone_and_in_any_batch(call):
    system = gripper()
    q, v, a = states(system, 21)
    every = call(system, q, v, a)
    for some in (slice(0, 3), slice(4, 21)):
        np.testing.assert_array_equal(call(system, q[some], v[some], a[some]), every[some])
    for b in (0, 20):
        np.testing.assert_array_equal(call(system, q[b], v[b], a[b]), every[b])
    shaped = call(system, *(x.reshape(3, 7, -1) for x in (q, v, a)))
    np.testing.assert_array_equal(shaped.reshape(every.shape), every)


def test_any_kind_of_array_and_what_broadcasts(call):
    system = gripper()
    q, v, a = states(system, 4)
    every, one = call(system, q, v, a), call(system, q[0], v[0], a[0])
    np.testing.assert_array_equal(call(system, q[0].tolist(), v[0].tolist(), a[0].tolist()), one)
    apart = [np.asfortranarray(np.stack([x, x], axis=-1))[..., 0] for x in (q, v, a)]
    np.testing.assert_array_equal(call(system, *apart), every)
    np.testing.assert_allclose(call(system, q, v[0], a[0])[0], one, rtol=1e-14, atol=1e-14)


@pytest.mark.skipif(Checks.on, reason="where every index is checked no code is compiled")
def test_one_state_never_leaves_compiled_code(call, monkeypatch):
    """Nothing is checked, expanded or broadcast in Python on the way."""
    system = gripper()
    q, v, a = states(system)
    expected = call(system, q, v, a)

    def refuse(*_, **__):
        raise AssertionError("went the long way")

    monkeypatch.setattr(type(system._expansion), "positions", refuse)
    monkeypatch.setattr(type(system._expansion), "rates", refuse)
    for module in ("calls.states", "energy", "coordinates.open_tree_state"):
        monkeypatch.setattr(f"kfdyn.multibody.{module}.configuration", refuse, raising=False)
    np.testing.assert_array_equal(call(system, q, v, a), expected)


def test_entries_run_plain():
    """The recursions as they stand, every index checked, beside the compiled ones."""
    system = gripper()
    q, v, a = states(system, 3)
    length, path, arm, turn = frame_of(system, "hand")
    for name, of, given, shapes in (
        ("JACOBIAN", (length, path, arm), (q,), [(6, system.nv)]),
        ("POSE", (length, path, arm, turn), (q,), [(3, 3), (3,)]),
        ("VELOCITY", (length, path, arm), (q, v), [(6,)]),
        ("ACCELERATION", (length, path, arm), (q, v, a), [(6,)]),
        ("ACCELERATION", (length, path, arm), (q, v, None), [(6,)]),
        ("KINETIC", (), (q, v), [()]),
        ("POTENTIAL", (), (q, system.gravity), [()]),
        ("MOMENT", (), (q,), [(3,)]),
        ("MOMENTUM", (), (q, v), [(6,)]),
        ("CENTROIDAL", (), (q, v), [(6,)]),
    ):
        kernel = getattr(kinematics, name, None) or getattr(energy, name)
        compiled, plain = ([np.empty((3, *shape)) for shape in shapes] for _ in range(2))
        assert kernel(system, 3, *of, *given, *compiled) == 1
        assert kernel.variants["geared"].entry.plain(gears_of(system), *of, *given, *plain) == 1
        for one, other in zip(compiled, plain):
            np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-13)


def test_quaternions_and_sizes_are_told_in_the_system_s_own_coordinates(call):
    system = gripper()
    assert (system.nq, system.nv, system.open_tree.nq) == (13, 11, 14)
    q, v, a = states(system, 9)
    call(system, q, v, a)
    place = system.q_slice("tip")
    for rows in (slice(None), 4):
        wrong = q.copy()
        wrong[4, place] *= 1.1
        with pytest.raises(ModelError, match=r"hinge 'tip'.*length 1.1"):
            call(system, wrong[rows], v[rows], a[rows])
        wrong[4] = np.nan
        with pytest.raises(ModelError, match="q has entries that are not finite"):
            call(system, wrong[rows], v[rows], a[rows])
        with pytest.raises(ShapeError, match=r"q must have shape \(..., 13\)"):
            call(system, system.expand(q)[rows], v[rows], a[rows])


def test_too_large_rates_and_ratios_are_told():
    system = gripper()
    q, v, _ = states(system, 9)
    for rows in (slice(None), 4):
        with pytest.raises(ModelError, match=r"kinetic energy.*too large for a double.*v reaches 1e\+200"):
            kf.kinetic_energy(system, q[rows], np.full_like(v, 1e200)[rows])
    arm = kf.models.chain(2)
    steep = kf.System(arm.bodies, couplings=[kf.Coupling(arm.hinge_names, [1.0, 1e150])])
    for positions in ([1e200], [[1e200]]):
        with pytest.raises(ModelError, match="not finite"):
            kf.jacobian(steep, np.array(positions), arm.body_names[-1])


def test_a_jacobian_goes_where_it_is_told():
    system = gripper()
    q, _, _ = states(system, 9)
    out, spaced = np.empty((9, 6, system.nv)), np.empty((9, 6, 2 * system.nv))[..., ::2]
    expected = kf.jacobian(system, q, "hand")
    for room in (out, spaced):
        assert kf.jacobian(system, q, "hand", out=room) is room
        np.testing.assert_array_equal(room, expected)
    one = np.empty((6, system.nv))
    assert kf.jacobian(system, q[3], "hand", out=one) is one
    np.testing.assert_array_equal(one, expected[3])
    with pytest.raises(ShapeError, match="out must have the shape of the answer"):
        kf.jacobian(system, q, "hand", out=one)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.endswith("derivatives")])
def test_loops_change_nothing_that_is_read_off(name):
    system = gripper()
    closed = system.with_loops([kf.Loop("hand", None, rows="point")])
    tree = kf.System(system.bodies, frames=dict(system.frames))
    held = tree.with_loops([kf.Loop("hand", None, rows="point")])
    for base, constrained in ((system, closed), (tree, held)):
        for lead in ((), (9,)):
            given = states(base, *lead)
            np.testing.assert_array_equal(CALLS[name](constrained, *given), CALLS[name](base, *given))


def test_coordinates_move_as_hinges_of_their_own():
    """The tree that tells how q moves has the hinges that have coordinates, and knows no body's inertia."""
    system = gripper()
    own = system.coordinates
    assert own.is_tree and own.hinge_names == system.hinge_names and (own.nq, own.nv) == (system.nq, system.nv)
    for hinge in ("base", "left", "right", "tip"):
        assert own.q_slice(hinge) == system.q_slice(hinge) and own.v_slice(hinge) == system.v_slice(hinge)
    assert own.v_slice("rail") == slice(8, 8)
    assert system.coordinates is own
    q, v, _ = states(system, 5)
    np.testing.assert_allclose(kf.difference(system, q, kf.integrate(system, q, v)), v, rtol=0, atol=1e-12)


def test_a_pickled_system_is_prepared_anew():
    import pickle

    system = gripper()
    q, v, _ = states(system)
    expected = kf.kinetic_energy(system, q, v)
    again = pickle.loads(pickle.dumps(system))
    assert not again.gears
    np.testing.assert_array_equal(kf.kinetic_energy(again, q, v), expected)
    assert system.gears != again.gears or Checks.on


def test_what_is_no_tree_and_has_no_gears_has_no_quick_answer():
    kernel = Kernel("kfdyn.multibody.recursions.energy", "KINETIC", kind="geared")
    system = gripper()
    q, v, _ = states(system)
    for other in (None, system.open_tree, system.with_loops([kf.Loop("hand", None, rows="point")])):
        assert kernel.one(other, q, v) is None
    if not Checks.on:
        assert kernel.one(system, q, v) is not None
        for other in (None, system.open_tree, system.with_loops([kf.Loop("hand", None, rows="point")])):
            assert kernel.one(other, q, v) is None
