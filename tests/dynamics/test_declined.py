"""States near a singular one are left to the engine by the compiled sweeps: they alone, exactly, named by place."""

import re

import mpmath as mp
import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics.loops.coupled import explain_forward_dynamics_derivatives
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import SingularError
from kfdyn.sweeps import Entry

J = (1.0, 2.0, 2.5)
NEAR = 3e-7  # radians from a gimbal lock, where pivots are close to what the sweeps take for rounding


def wrist():
    """Axes z, y, z through the centre of one body; the other two links have no mass."""
    inertia, none = np.diag([*J, 1.0, 1.0, 1.0]), np.zeros((6, 6))
    hand = kf.Body("hand", inertia, kf.Hinge.revolute([0, 0, 1]), "second")
    first = kf.Body("first", none, kf.Hinge.revolute([0, 0, 1]), hinge_name="pan")
    return kf.System([first, kf.Body("second", none, kf.Hinge.revolute([0, 1, 0]), "first", hinge_name="tilt"), hand])


def coupled_wrist():
    """The wrist with two geared fingers on the hand."""
    link, x = np.diag([0.1, 0.2, 0.25, 1.0, 1.0, 1.0]), kf.Hinge.revolute([1, 0, 0])
    left = kf.Body("left", link, x, "hand", position=[0.3, 0.0, 0.0])
    right = kf.Body("right", link, x, "left", position=[0.3, 0.1, 0.0])
    return kf.System([*wrist().bodies, left, right], couplings=[kf.Coupling(["left", "right"], [1.0, -2.0])])


def mass_of(q):
    """𝓜 = E*JE with ω = E v in the body's axes, for angles z, y, z: known to all of mpmath's digits."""
    s, c, sr, cr = mp.sin(q[1]), mp.cos(q[1]), mp.sin(q[2]), mp.cos(q[2])
    E = mp.matrix([[-s * cr, sr, 0], [s * sr, cr, 0], [c, 0, 1]])
    return E.T * mp.diag(J) * E


def lagrange(q, v, tau):
    """Accelerations 𝓜⁻¹(τ − 𝓜̇v + ½∂(v*𝓜v)/∂q)."""
    q, v, tau = (mp.matrix([mp.mpf(float(x)) if not isinstance(x, mp.mpf) else x for x in y]) for y in (q, v, tau))

    def moved(i, h):
        return mass_of([x + (h if i == j else 0) for j, x in enumerate(q)])

    h = mp.mpf(10) ** -25
    dM = [(moved(i, h) - moved(i, -h)) / (2 * h) for i in range(3)]
    rate = dM[0] * v[0] + dM[1] * v[1] + dM[2] * v[2]
    bias = rate * v - mp.matrix([(v.T * D * v)[0] / 2 for D in dM])
    return mp.lu_solve(mass_of(q), tau - bias)


def derivative(of, x):
    """∂of/∂x (3, 3) by central differences of 20 digits in 80."""
    x, h, columns = [mp.mpf(float(y)) for y in x], mp.mpf(10) ** -12, []
    for i in range(3):
        ahead, behind = (of([y + (s * h if i == j else 0) for j, y in enumerate(x)]) for s in (1, -1))
        columns.append((ahead - behind) / (2 * h))
    return np.array([[float(column[i]) for column in columns] for i in range(3)])


@pytest.mark.parametrize("angle", [5e-4, 1e-4, 1e-5])
def test_derivatives_close_to_a_gimbal_lock(angle):
    """Lagrange's equations in 80 digits: off by rounding times the condition number of 𝓜, and not refused."""
    system, rng = wrist(), np.random.default_rng(0)
    q, (v, tau) = np.array([0.4, angle, 0.7]), rng.normal(size=(2, 3))
    with mp.workdps(80):
        expected = (
            derivative(lambda x: lagrange(x, v, tau), q),
            derivative(lambda x: lagrange(q, x, tau), v),
            np.array(mp.inverse(mass_of([mp.mpf(float(x)) for x in q])).tolist(), dtype=float),
        )
        a = np.array([float(x) for x in lagrange(q, v, tau)])
    found = kf.forward_dynamics_derivatives(system, q, v, tau)
    bound = 8 * np.finfo(float).eps * np.linalg.cond(kf.mass_matrix(system, q))
    np.testing.assert_allclose(kf.forward_dynamics(system, q, v, tau), a, rtol=0, atol=bound * np.abs(a).max())
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound * np.abs(theirs).max())


CALLS = {
    "forward_dynamics": lambda s, q, v, u: kf.forward_dynamics(s, q, v, u),
    "mass_matrix_inverse": lambda s, q, v, u: kf.mass_matrix_inverse(s, q),
    "hybrid_dynamics": lambda s, q, v, u: kf.hybrid_dynamics(s, q, v, u, v, np.zeros(3, bool)),
    "compliance": lambda s, q, v, u: kf.operational_space_compliance(s, q, ["hand", "first"]),
    "logdet": lambda s, q, v, u: kf.mass_matrix_logdet(s, q),
    "logdet_gradient": lambda s, q, v, u: kf.mass_matrix_logdet_gradient(s, q),
    "derivatives": lambda s, q, v, u: kf.forward_dynamics_derivatives(s, q, v, u),
    "control": lambda s, q, v, u: kf.operational_space_control(
        s, q, v, "hand", kf.multibody.Pose(np.eye(3), np.zeros(3)), 2.0, 1.0, axes=(2,)
    ),
}  # fmt: skip


def batch(rows, near, angle):
    rng = np.random.default_rng(1)
    q, v, u = rng.uniform(0.5, 2.5, size=(3, rows, 3))
    moved = q.copy()
    moved[near, 1] = angle
    return q, moved, v, u


def rows_of(answer):
    return answer if isinstance(answer, tuple) else (answer,)


@pytest.mark.parametrize("name", CALLS)
def test_only_the_row_that_is_declined_goes_to_the_engine(name, monkeypatch):
    """Its neighbours keep their bits, it has those that it has alone, and no other tree is assembled."""
    system, call = wrist(), CALLS[name]
    q, moved, v, u = batch(300, 17, NEAR)
    usual = rows_of(call(system, q, v, u))
    assembled, forest = [], States.forest

    def counted(self, part):
        assembled.append(len(range(self.size)[part]))
        return forest(self, part)

    monkeypatch.setattr(States, "forest", counted)
    found = rows_of(call(system, moved, v, u))
    assert assembled and set(assembled) == {1}
    alone = rows_of(call(system, moved[17], v[17], u[17]))
    others = np.arange(300) != 17
    for before, after, single in zip(usual, found, alone):
        np.testing.assert_array_equal(after[others], before[others])
        np.testing.assert_array_equal(after[17], single)
        assert np.isfinite(single).all()


def swept(monkeypatch):
    """Names of the entries that run over more than a row, as they do."""
    names, call = [], Entry.__call__

    def counted(self, *arrays, rows=1, **more):
        if rows > 1:
            names.append(self.name)
        return call(self, *arrays, rows=rows, **more)

    monkeypatch.setattr(Entry, "__call__", counted)
    return names


@pytest.mark.parametrize("name", CALLS)
def test_the_other_rows_are_not_swept_again(name, monkeypatch):
    """The first run hands on what it found, into an array of the caller's as into a new one, whatever its axes."""
    system, call, names = wrist(), CALLS[name], swept(monkeypatch)
    _, q, v, u = batch(300, 17, NEAR)
    found = rows_of(call(system, q, v, u))
    assert len(names) == 1
    shaped = rows_of(call(system, *(x.reshape(30, 10, 3) for x in (q, v, u))))
    assert len(names) == 2
    for flat, other in zip(found, shaped):
        np.testing.assert_array_equal(flat, other.reshape(flat.shape))


def test_rows_that_were_declined_are_mended_in_the_callers_array(monkeypatch):
    system, names = wrist(), swept(monkeypatch)
    _, q, v, u = batch(300, 17, NEAR)
    a, inverse, of = np.empty((300, 3)), np.empty((300, 3, 3)), [np.empty((300, 3, 3)) for _ in range(3)]
    assert kf.forward_dynamics(system, q, v, u, out=a) is a
    assert kf.mass_matrix_inverse(system, q, out=inverse) is inverse
    assert kf.forward_dynamics_derivatives(system, q, v, u, out=of).da_dq is of[0]
    assert len(names) == 3
    np.testing.assert_array_equal(a, kf.forward_dynamics(system, q, v, u))
    np.testing.assert_array_equal(inverse, kf.mass_matrix_inverse(system, q))
    np.testing.assert_array_equal(of, kf.forward_dynamics_derivatives(system, q, v, u))


def test_nor_are_those_of_a_coupled_system(monkeypatch):
    system, names = coupled_wrist(), swept(monkeypatch)
    q, v, u = np.random.default_rng(3).uniform(0.5, 2.5, size=(3, 30, 4))
    q[17, 1] = 3e-7
    assert np.isfinite(kf.forward_dynamics(system, q, v, u)).all()
    assert names == ["geared_forward_dynamics"]


@pytest.mark.parametrize("name", [name for name in CALLS if name != "control"])
def test_the_first_singular_state_is_named_by_its_place(name):
    system, call = wrist(), CALLS[name]
    _, q, v, u = batch(12, [5, 8, 11], 0.0)
    shaped = [x.reshape(3, 4, 3) for x in (q, v, u)]
    with pytest.raises(SingularError, match=r"\(at q\[1, 1\]\)"):
        call(system, *shaped)
    q[:, 1] = 0.0
    with pytest.raises(SingularError, match=r"\(at q\[0\]\)"):
        call(system, q, v, u)
    with pytest.raises(SingularError, match=r"pan") as error:
        call(system, q[0], v[0], u[0])
    assert "at q" not in str(error.value)


def test_a_hinge_that_never_has_inertia_is_at_no_state_in_particular():
    light = kf.System([kf.Body("tip", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), hinge_name="turn")])
    with pytest.raises(SingularError, match=r"^hinge 'turn': nothing outboard of it has mass"):
        kf.forward_dynamics(light, np.zeros((4, 1)), None, np.zeros((4, 1)))


def test_couplings_have_the_same_derivatives_by_their_inverse():
    tree, rng = kf.models.random_tree(6, 5, hinges=("revolute", "prismatic")), np.random.default_rng(2)
    pair = [kf.Coupling(tree.hinge_names[1:3], [1.0, -2.0], [0.0, 0.5])]
    system = kf.System(tree.bodies, couplings=pair)
    q, v, tau = rng.normal(size=(3, 4, system.nv))
    expected = kf.forward_dynamics_derivatives(system, q, v, tau)
    explained = explain_forward_dynamics_derivatives(States.of(system, q, v, tau=tau))
    for found, other in zip(explained.values(), expected):
        np.testing.assert_allclose(found, other, rtol=0, atol=1e-11 * np.abs(other).max())


@pytest.mark.parametrize("angle", [NEAR, 1e-5])
def test_a_coupled_wrist_close_to_its_lock(angle):
    """−𝓜⁻¹ ∂τ/∂q by a dense solve; the other states keep their bits."""
    system = coupled_wrist()
    q, v, u = np.random.default_rng(3).uniform(0.5, 2.5, size=(3, 20, system.nv))
    moved = q.copy()
    moved[7, 1] = angle
    usual, found = (kf.forward_dynamics_derivatives(system, x, v, u) for x in (q, moved))
    others = np.arange(20) != 7
    M, a = kf.mass_matrix(system, moved[7]), kf.forward_dynamics(system, moved[7], v[7], u[7])
    tau = kf.inverse_dynamics_derivatives(system, moved[7], v[7], a)
    expected = -np.linalg.solve(M, tau.dtau_dq), -np.linalg.solve(M, tau.dtau_dv), np.linalg.inv(M)
    bound = 16 * np.finfo(float).eps * np.linalg.cond(M)
    for before, after, dense in zip(usual, found, expected):
        np.testing.assert_array_equal(after[others], before[others])
        np.testing.assert_allclose(after[7], dense, rtol=0, atol=bound * np.abs(dense).max())


def test_overflow_in_one_row_is_still_told():
    system = kf.models.double_pendulum()
    v = np.ones((5, 2))
    v[3] = 1e160
    for call in (kf.forward_dynamics, kf.forward_dynamics_derivatives):
        with pytest.raises(kf.errors.ModelError, match=r"too large for a double.*v reaches 1e"):
            call(system, np.ones((5, 2)), v, np.ones((5, 2)))


def test_only_the_declined_row_of_a_coupled_system_takes_another_way():
    system, rng = coupled_wrist(), np.random.default_rng(3)
    q, v, tau = rng.uniform(0.5, 2.5, size=(3, 30, 4))
    near = q.copy()
    near[17, 1] = 3e-7
    others = np.arange(30) != 17
    a = kf.forward_dynamics(system, near, v, tau)
    assert (a[others] == kf.forward_dynamics(system, q, v, tau)[others]).all()
    X, tree = system.expansion(near[17]), (system.open_tree, system.expand(near[17]))
    M = X.T @ kf.mass_matrix(*tree) @ X
    residual = M @ a[17] + X.T @ kf.bias_forces(*tree, X @ v[17]) - tau[17]
    assert np.abs(residual).max() < 1e-14 * np.abs(M).max() * np.abs(a[17]).max()


@pytest.mark.parametrize("lead", [(), (3,), (20,)])
@pytest.mark.parametrize("function", [kf.forward_dynamics, kf.forward_dynamics_derivatives])
def test_an_acceleration_of_a_coupled_system_beyond_doubles_is_refused(function, lead):
    """It came back as NaN and infinity."""
    tau = np.ones((*lead, 4))
    tau[0] = 1e308  # of one state a force, of several all forces of the first
    with pytest.raises(kf.errors.ModelError, match=r"too large for a double.*tau reaches 1e\+308"):
        function(coupled_wrist(), np.full((*lead, 4), 0.7), np.zeros((*lead, 4)), tau)


def functions_that_invert(system, held):
    """Every function that has no answer where the mass matrix is singular, for q (..., nq)."""
    tip = system.body_names[-1]

    def still(q):
        return np.zeros((*q.shape[:-1], system.nv))

    return {
        "forward_dynamics": lambda q: kf.forward_dynamics(system, q, None, still(q)),
        "mass_matrix_inverse": lambda q: kf.mass_matrix_inverse(system, q),
        "mass_matrix_logdet": lambda q: kf.mass_matrix_logdet(system, q),
        "hybrid_dynamics": lambda q: kf.hybrid_dynamics(system, q, None, still(q), still(q), held),
        "compliance": lambda q: kf.operational_space_compliance(system, q, tip),
        "derivatives": lambda q: kf.forward_dynamics_derivatives(system, q, still(q), still(q)),
        "control": lambda q: kf.operational_space_control(
            system, q, still(q), tip, kf.frame_pose(system, q, tip), 1.0, 1.0, axes=(2,)
        ),
    }


@pytest.mark.parametrize("of", [wrist, coupled_wrist])
@pytest.mark.parametrize(("angle", "answers"), [(3e-7, True), (1e-7, False), (0.0, False)])
def test_all_functions_agree_on_what_is_singular_in_double_precision(of, angle, answers):
    """With gears as without, alone as in a batch; and the state is named by its place."""
    system = of()
    q = np.full((2, 3, system.nv), 0.7)
    q[1, 2, 1] = angle
    held = np.arange(system.nv) == 3
    for name, call in functions_that_invert(system, held).items():
        for states, at in ((q[1, 2], r"^((?!at q).)*$"), (q, r"at q\[1, 2\]")):
            if answers:
                call(states)
                continue
            with pytest.raises(SingularError, match="'pan'") as raised:
                call(states)
            assert re.search(at, str(raised.value)), (name, str(raised.value))
            assert "innovations of node" not in str(raised.value)


def test_a_coupling_that_carries_nothing_is_named_by_its_place():
    """Neither finger has mass, in any state: the first that was given is told."""
    turn = kf.Hinge.revolute([0, 0, 1])
    bodies = [kf.Body("arm", np.eye(6), turn), *(kf.Body(n, np.zeros((6, 6)), turn, "arm") for n in ("a", "b"))]
    light = kf.System(bodies, couplings=[kf.Coupling(["a", "b"], [1.0, 3.0])])
    for name, call in functions_that_invert(light, np.zeros(2, dtype=bool)).items():
        with pytest.raises(SingularError, match=r"at q\[0\].*'a', 'b'|'a', 'b' \(at q\[0\]\)"):
            call(np.zeros((3, 2)))
        with pytest.raises(SingularError, match="'a', 'b'") as raised:
            call(np.zeros(2))
        assert "at q" not in str(raised.value), name
