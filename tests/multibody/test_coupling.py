"""Couplings as data: coordinates, names, limits, motion, and what is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError


def fingers():
    """Two fingers and a wrist; the second finger turns back at twice the speed."""
    bodies = [
        kf.Body("palm", np.diag([1.0, 2, 2, 3, 3, 3]), kf.Hinge.free()),
        kf.Body("one", np.diag([1.0, 1, 1, 1, 1, 1]), kf.Hinge.revolute(), "palm", lower=-1.0, upper=2.0, speed=3.0),
        kf.Body("wrist", np.diag([1.0, 1, 1, 1, 1, 1]), kf.Hinge.ball(), "palm"),
        kf.Body("two", np.diag([1.0, 1, 1, 2, 2, 2]), kf.Hinge.revolute([1, 0, 0]), "one", lower=-0.5, upper=1.5),
    ]
    return kf.System(bodies, couplings=[kf.Coupling(["one", "two"], [1.0, -2.0], [0.0, 0.5])])


def test_sizes_slices_and_expansion():
    s = fingers()
    assert (s.nq, s.nv, s.open_tree.nq, s.open_tree.nv) == (12, 10, 13, 11)
    assert s.q_slice("one") == slice(7, 8)
    assert s.v_slice("wrist") == slice(7, 10)
    q = s.neutral()
    assert np.array_equal(s.expand(q), [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0.5])
    q[7] = 0.2
    assert np.allclose(s.expand(q)[[7, 12]], [0.2, 0.1])
    X = s.expansion(np.stack([q, q]))
    assert X.shape == (2, 11, 10)
    v = np.arange(1.0, 11)
    assert np.allclose(X[0] @ v, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -14])
    with pytest.raises(ModelError, match=r"hinge 'two' follows 'one' .*system.expand\(q\)"):
        s.q_slice("two")


def test_the_advice_for_a_hinge_that_follows_works():
    system, v = fingers(), np.arange(1.0, 11)
    q = system.neutral()
    for what, expected in (("q", 0.5), ("v", -14.0)):
        with pytest.raises(ModelError) as said:
            getattr(system, f"{what}_slice")("two")
        advice = str(said.value).split("its own is ")[1]
        assert eval(advice, {"system": system, "q": q, "v": v}) == [expected]


def test_limits_are_the_tightest():
    s = fingers()
    at = s.v_slice("one")
    # the second: −0.5 ≤ 0.5 − 2 q ≤ 1.5
    assert np.allclose([s.lower[at], s.upper[at]], [[-0.5], [0.5]])
    assert s.speed[at] == 3.0
    for _ in range(20):
        q = s.expand(s.random_configuration(_))
        assert -1 <= q[7] <= 2
        assert -0.5 <= q[12] <= 1.5


def test_limits_without_room_leave_those_of_the_driver():
    rod = kf.models.uniform_chain(2).bodies
    names = [b.hinge_name for b in rod]

    bodies = [replace(b, lower=0.0, upper=1.0) for b in rod]
    s = kf.System(bodies, couplings=[kf.Coupling(names, [1.0, -1.0])])
    assert (s.lower[0], s.upper[0]) == (0.0, 1.0)


def test_readings_are_those_of_the_tree():
    s, rng = fingers(), np.random.default_rng(0)
    q, (v, a) = s.random_configuration(rng), rng.normal(size=(2, s.nv))
    tree, Q, V, A = s.open_tree, s.expand(q), s.expansion() @ v, s.expansion() @ a
    assert np.allclose(kf.jacobian(s, q, "two") @ v, kf.frame_velocity(tree, Q, V, "two"), rtol=1e-14)
    for ours, theirs in (
        (kf.frame_velocity(s, q, v, "two"), kf.frame_velocity(tree, Q, V, "two")),
        (kf.frame_acceleration(s, q, v, a, "two"), kf.frame_acceleration(tree, Q, V, A, "two")),
        (kf.frame_pose(s, q, "two").position, kf.frame_pose(tree, Q, "two").position),
        (kf.kinetic_energy(s, q, v), kf.kinetic_energy(tree, Q, V)),
        (kf.potential_energy(s, q), kf.potential_energy(tree, Q)),
        (kf.momentum(s, q, v), kf.momentum(tree, Q, V)),
        (kf.centroidal_momentum(s, q, v), kf.centroidal_momentum(tree, Q, V)),
    ):
        assert np.array_equal(ours, theirs)
    assert np.isclose(kf.kinetic_energy(s, q, v), 0.5 * v @ kf.mass_matrix(s, q) @ v, rtol=1e-13)


def test_integrate_and_difference():
    s, rng = fingers(), np.random.default_rng(1)
    q, dv = np.stack([s.random_configuration(rng) for _ in range(3)]), rng.normal(size=(3, s.nv))
    q2 = kf.integrate(s, q, dv)
    assert np.allclose(kf.difference(s, q, q2), dv, atol=1e-13)
    assert np.allclose(s.expand(q2), kf.integrate(s.open_tree, s.expand(q), dv @ s.expansion().T), atol=1e-14)


def test_pickled_it_is_the_same_system():
    s = fingers()
    again = pickle.loads(pickle.dumps(s))
    assert again.nv == s.nv
    assert np.array_equal(again.expansion(), s.expansion())
    assert np.array_equal(again.expand(again.neutral()), s.expand(s.neutral()))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: kf.Coupling([], []), ModelError, "names of its hinges"),
        (lambda: kf.Coupling(["a", "a"], [1, 1]), ModelError, "'a' is named twice"),
        (lambda: kf.Coupling(["a", "b"], [1, 1, 1]), ShapeError, "one row for each of the 2"),
        (lambda: kf.Coupling(["a", "b"], [[1, 1], [1, 1]]), ModelError, "linearly dependent"),
        (lambda: kf.Coupling(["a", "b"], [0, 0]), ModelError, "linearly dependent"),
        (lambda: kf.Coupling(["a", "b"], [1, np.nan]), ModelError, "finite"),
        (lambda: kf.Coupling(["a", "b"], [1, 1], [1, 2, 3]), ShapeError, "offset"),
        (lambda: fingers().open_tree.with_couplings([kf.Coupling(["one", "nobody"], [1, 1])]), ModelError, "no h"),
        (lambda: fingers().open_tree.with_couplings([kf.Coupling(["wrist"], [1])]), ModelError, "ball hinge"),
        (
            lambda: kf.System(fingers().bodies, couplings=[kf.Coupling(["one"], [1.0]), kf.Coupling(["one"], [2.0])]),
            ModelError,
            "two couplings",
        ),
        (lambda: kf.System(fingers().bodies, couplings=["one"]), ModelError, "must be Couplings"),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_rotors_of_coupled_hinges():
    """X*RX: a diagonal where every hinge follows one coordinate, else refused; the mass matrix is the oracle."""
    bodies = kf.models.chain(3).bodies
    armed = [replace(body, armature=r, damping=2 * r, stiffness=3 * r) for body, r in zip(bodies, (0.5, 0.2, 0.1))]
    geared = kf.System(armed, couplings=[kf.Coupling([armed[0].hinge_name, armed[2].hinge_name], [1.0, -4.0])])
    bare = kf.System([replace(b, armature=0.0) for b in armed], couplings=geared.couplings)
    q = geared.neutral()
    np.testing.assert_allclose(
        np.diag(geared.armature), kf.mass_matrix(geared, q) - kf.mass_matrix(bare, q), atol=1e-12
    )
    assert geared.armature[0] == 0.5 + 16 * 0.1
    np.testing.assert_allclose(geared.damping, 2 * geared.armature, rtol=1e-15)
    np.testing.assert_allclose(geared.stiffness, 3 * geared.armature, rtol=1e-15)
    names = [body.hinge_name for body in armed]
    differential = kf.System(armed, couplings=[kf.Coupling(names, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])])
    with pytest.raises(ModelError, match=r"armature is a full matrix"):
        _ = differential.armature


def test_what_is_for_trees_refuses_it_in_words():
    s = fingers()
    with pytest.raises(ModelError, match=r"1 coupling.*open_tree"):
        _ = s.layout
    with pytest.raises(ModelError, match=r"open_tree"):
        kf.decompose_forces(s, s.neutral(), np.zeros(s.nv), np.zeros(s.nv))
    with pytest.raises(ModelError, match=r"open_tree"):
        kf.acceleration_causes(s, s.neutral(), np.zeros(s.nv), np.zeros(s.nv))
    with pytest.raises(ModelError, match=r"for trees"):
        kf.BoundaryValueProblem.of_system(s, s.neutral(), None, np.zeros(s.nv))
    assert not hasattr(s, "nonsense")
