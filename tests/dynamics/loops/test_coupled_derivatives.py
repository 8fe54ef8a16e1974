"""Derivatives of systems with couplings: by differences of order six, and by dense algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coupled import coupled_tree
from test_derivatives import CALLS, differences, some_states

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError

PAIRS = ((kf.inverse_dynamics_derivatives, kf.inverse_dynamics), (kf.forward_dynamics_derivatives, kf.forward_dynamics))


def assert_derivatives(derivatives, function, s, q, v, u, gravity, tolerance):
    expected = (
        differences(lambda d: function(s, kf.integrate(s, q, d), v, u, gravity=gravity), s.nv),
        differences(lambda d: function(s, q, v + d, u, gravity=gravity), s.nv),
        differences(lambda d: function(s, q, v, u + d, gravity=gravity), s.nv),
    )
    for got, want in zip(derivatives(s, q, v, u, gravity), expected):
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max(initial=0.0)))


@pytest.mark.parametrize("seed", [0, 1, 2, 6, 9, 12, 20, 22])
def test_against_differences(seed):
    """Ragged trees of all hinges, with gears, differentials, offsets and zero ratios."""
    s, rng = coupled_tree(seed)
    q, (v, u), g = s.random_configuration(rng), rng.normal(size=(2, s.nv)), rng.normal(size=3)
    assert s.open_tree.nv > s.nv
    for derivatives, function in PAIRS:
        assert_derivatives(derivatives, function, s, q, v, u, g, 1e-8)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_everywhere(seed):
    """By differences where these tell (forces), by dense algebra beyond: ∂a = −(X*𝓜X)⁻¹ ∂τ at the same a."""
    s, rng = coupled_tree(seed)
    if s is None:
        return
    q, (v, tau) = s.random_configuration(rng), rng.normal(size=(2, s.nv))
    assert_derivatives(*PAIRS[0], s, q, v, tau, None, 1e-8)
    a = kf.forward_dynamics(s, q, v, tau)
    by_force, by_motion = kf.forward_dynamics_derivatives(s, q, v, tau), kf.inverse_dynamics_derivatives(s, q, v, a)
    M = by_motion.dtau_da
    np.testing.assert_array_equal(M, M.mT)
    np.testing.assert_array_equal(by_force.da_dtau, kf.mass_matrix_inverse(s, q))
    if s.nv:
        bound = max(1e-10, 8 * np.finfo(float).eps * np.linalg.cond(M))
        np.testing.assert_allclose(M, kf.mass_matrix(s, q), rtol=0, atol=1e-12 * np.abs(M).max())
        for one, other in zip(by_force, by_motion[:2]):
            expected = -np.linalg.solve(M, other)
            np.testing.assert_allclose(one, expected, rtol=0, atol=bound * max(1.0, np.abs(expected).max()))


def test_batches_and_what_broadcasts():
    s, rng = coupled_tree(8)
    q, v, u = some_states(s, (3, 4))
    g = rng.normal(size=(4, 3))
    for call in (kf.forward_dynamics_derivatives, kf.inverse_dynamics_derivatives):
        every = call(s, q, v, u, g)
        for k in ((0, 0), (2, 3)):
            for one, all_ in zip(call(s, q[k], v[k], u[k], g[k[1]]), every):
                np.testing.assert_allclose(one, all_[k], rtol=0, atol=1e-11 * np.abs(one).max())
        rest = call(s, list(q[0, 0]), None, u)
        assert rest[0].shape == (3, 4, s.nv, s.nv) and not rest[1].any()


@CALLS
def test_out_holds_the_answer(call):
    """A new array, an earlier answer, and one that an argument lies in; three matrices that overlap are refused."""
    s, _ = coupled_tree(8)
    q, v, u = some_states(s, (4,))
    expected, earlier = call(s, q, v, u), call(s, *some_states(s, (4,), 1))
    room = np.zeros((3, 4, s.nv, s.nv))
    room[1, 0, :4] = u
    for out, force in ((earlier, u), (room, room[1, 0, :4])):
        got = call(s, q, v, force, out=out)
        assert type(got) is type(expected)
        for one, where, other in zip(got, out, expected):
            assert np.shares_memory(one, where)
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ModelError, match="the three arrays must not overlap"):
        call(s, q, v, u, out=[room[0], room[1], room[0]])
    with pytest.raises(ShapeError, match="out must have the shape of the answer"):
        call(s, q, v, u, out=room[:, :3])


def test_large_systems_go_the_same_way():
    """Beyond the dofs for which accelerations are solved densely, the embedded filter lends them."""
    tree = kf.models.chain(90)
    s = tree.with_couplings([kf.Coupling(tree.hinge_names[40:43], [1.0, -2.0, 0.5])])
    q, v, u = some_states(s, ())
    by, M = kf.forward_dynamics_derivatives(s, q, v, u), kf.mass_matrix(s, q)
    of = kf.inverse_dynamics_derivatives(s, q, v, kf.forward_dynamics(s, q, v, u, method="embedding"))
    bound = 8 * np.finfo(float).eps * np.linalg.cond(M)
    for one, other in zip(by, of[:2]):
        expected = -np.linalg.solve(M, other)
        np.testing.assert_allclose(one, expected, rtol=0, atol=bound * np.abs(expected).max())


def test_nothing_left_to_move():
    """A coupling without coordinates holds its hinges: matrices of no rows."""
    tree = kf.models.double_pendulum()
    s = tree.with_couplings([kf.Coupling(tree.hinge_names, np.zeros((2, 0)), [0.3, 0.4])])
    for call in (kf.forward_dynamics_derivatives, kf.inverse_dynamics_derivatives):
        assert [x.shape for x in call(s, np.zeros((9, 0)), None, np.zeros((9, 0)))] == [(9, 0, 0)] * 3
        assert [x.shape for x in call(s, np.zeros(0), None, np.zeros(0))] == [(0, 0)] * 3


def test_what_is_wrong_is_named():
    s, _ = coupled_tree(8)
    q, v, u = some_states(s, ())
    with pytest.raises(ShapeError, match="tau must have shape"):
        kf.forward_dynamics_derivatives(s, q, v, u[:-1])
    with pytest.raises(ModelError, match=r"too large for a double.*v reaches"):
        kf.inverse_dynamics_derivatives(s, q, v + 1e200, u)
    (rod,) = kf.models.uniform_chain(1).bodies
    tips = [kf.Body(name, np.zeros((6, 6)), kf.Hinge.revolute(), rod.name) for name in ("a", "b")]
    light = kf.System([rod, *tips], couplings=[kf.Coupling(["a", "b"], [1.0, 2.0])])
    with pytest.raises(SingularError, match=r"hinges 'a', 'b'.*give"):
        kf.forward_dynamics_derivatives(light, [0.0, 0.0], None, [1.0, 1.0])


def test_stiffness_of_a_coupled_robot_is_exact():
    """Modes take the weight's part from here: V = −m g l (cos q + cos 3q) of two rods, one three times as fast."""
    rod = kf.models.pendulum(length=1.0, mass=1.0).bodies[0]
    other = kf.Body("other", rod.inertia, rod.hinge, hinge_name="fast")
    s = kf.System([rod, other], couplings=[kf.Coupling([rod.hinge_name, "fast"], [1.0, 3.0])])
    for q in (0.0, 0.4, 2.0):
        K = 9.81 * (np.cos(q) + 9 * np.cos(3 * q))
        np.testing.assert_allclose(kf.modes(s, [q]).stiffness, [[K]], rtol=0, atol=1e-13 * 98.1)
