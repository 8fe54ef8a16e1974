"""Hybrid dynamics, log-determinants, compliances and controllers of coupled systems, against X*𝓜X of the open tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from test_coupled import close, coupled_tree

import kfdyn as kf
from kfdyn.dynamics import control
from kfdyn.dynamics.hybrid import HYBRID
from kfdyn.dynamics.loops import coupled
from kfdyn.dynamics.mass_matrix import VARIANCES
from kfdyn.dynamics.operational_space import COMPLIANCE, _frames
from kfdyn.errors import KfdynError, ModelError, SingularError
from kfdyn.multibody import Pose
from kfdyn.multibody.calls.packed_model import frame_of, gears_of, model_of

AXES = (4, 0, 3)


class Dense:
    """One state of a coupled system by matrices of its open tree: columns of inverse dynamics, X, and NumPy."""

    def __init__(self, system, q, v, force=None, gravity=None):
        self.system, self.tree, self.q, self.v = system, system.open_tree, q, v
        self.every, self.X = system.expand(q), system.expansion()
        self.M = self.X.T @ kf.mass_matrix(self.tree, self.every, method="columns") @ self.X
        self.c = self.X.T @ kf.bias_forces(self.tree, self.every, self.X @ v, force, gravity)

    @property
    def condition(self):
        unit = np.sqrt(np.diag(self.M))
        return np.linalg.cond(self.M / np.outer(unit, unit)) if unit.all() else np.inf

    def apart(self, q2):
        """q2 ⊖ q: plain hinges by the tree, coordinates of couplings by their difference."""
        e = self.system._expansion
        out = np.empty(self.system.nv)
        out[e.here_v] = kf.difference(self.tree, self.every, self.system.expand(q2))[e.plain_v]
        out[e.own_v] = q2[e.own_q] - self.q[e.own_q]
        return out

    def jacobian(self, *frames):
        return np.concatenate([kf.jacobian(self.tree, self.every, name) @ self.X for name in frames])

    def compliance(self, *frames):
        J = self.jacobian(*frames)
        return J @ np.linalg.solve(self.M, J.T)

    def hybrid(self, tau, a, held):
        a_all, free = np.where(held, a, 0.0), ~held
        rest = (tau - self.c - self.M @ a_all)[free]
        a_all[free] = np.linalg.solve(self.M[np.ix_(free, free)], rest)
        return np.where(held, self.M @ a_all + self.c, tau), a_all

    def computed_torque(self, q_d, v_d, a_d, kp, kd):
        return self.M @ (a_d + kd @ (v_d - self.v) + kp @ self.apart(q_d)) + self.c

    def task(self, frame, target, kp, kd, velocity, acceleration, posture):
        rows = list(AXES)
        now = kf.frame_pose(self.tree, self.every, frame)
        turn = Rotation.from_matrix(target.rotation @ now.rotation.T).as_rotvec()
        J = self.jacobian(frame)
        error = np.concatenate([turn, target.position - now.position])[rows]
        wanted = acceleration[rows] + kd @ (velocity - J @ self.v)[rows] + kp @ error
        drift = kf.frame_bias_acceleration(self.tree, self.every, self.X @ self.v, frame)
        free = (J @ np.linalg.solve(self.M, posture - self.c) + drift)[rows]
        J = J[rows]
        return posture + J.T @ np.linalg.solve(J @ np.linalg.solve(self.M, J.T), wanted - free)


class Case:
    """Nine states of a random tree with couplings, and what every function is asked there."""

    def __init__(self, system, rng):
        self.system, n = system, system.nv
        self.q = np.stack([system.random_configuration(rng) for _ in range(9)])
        self.q_d = kf.integrate(system, self.q, 0.1 * rng.normal(size=(9, n)))  # where custom hinges can go, too
        self.v, self.v_d, self.a, self.tau = rng.normal(size=(4, 9, n))
        self.force, self.gravity = rng.normal(size=(9, system.n_bodies, 6)), rng.normal(size=3)
        self.held = rng.random(n) < 0.4
        self.frames = [system.body_names[i] for i in rng.integers(0, system.n_bodies, size=2)]
        self.kp, self.kd = rng.normal(size=(2, n, n))
        self.task_gains = rng.normal(size=(2, 3, 3))
        self.velocity, self.acceleration = rng.normal(size=(2, 9, 6))
        self.target = Pose(
            Rotation.random(9, random_state=int(rng.integers(2**31))).as_matrix(), rng.normal(size=(9, 3))
        )
        self.movable = self._is_movable()

    def _is_movable(self):
        """Whether the last body can be accelerated along the controlled axes in all states, with some digits left."""
        for b in range(9):
            Omega = Dense(self.system, self.q[b], self.v[b]).compliance(self.frames[0])[np.ix_(AXES, AXES)]
            if np.linalg.eigvalsh(Omega)[0] <= 1e-5 * np.linalg.eigvalsh(Omega)[-1]:
                return False
        return True

    def found(self, b, as_given=np.asarray):
        """What the public functions say of state b, a slice or a number."""
        s, q, v, g = self.system, as_given(self.q[b]), as_given(self.v[b]), self.gravity
        yield "logdet", kf.mass_matrix_logdet(s, q)
        tau, a = kf.hybrid_dynamics(s, q, v, self.masked("tau", b), self.masked("a", b), self.held, self.force[b], g)
        yield "tau", tau
        yield "a", a
        yield "compliance", kf.operational_space_compliance(s, q, self.frames)
        more = self.q_d[b], self.v_d[b], self.a[b], self.kp, self.kd, self.force[b], g
        yield "computed torque", kf.computed_torque(s, q, v, *more)
        if self.movable:
            goal = Pose(self.target.rotation[b], self.target.position[b])
            yield (
                "task",
                kf.operational_space_control(
                    s, q, v, self.frames[0], goal, *self.task_gains, self.velocity[b], self.acceleration[b],
                    self.tau[b], AXES, self.force[b], g,
                ),
            )  # fmt: skip

    def masked(self, name, b):
        """What is not given is NaN."""
        return np.where(self.held == (name == "a"), getattr(self, name)[b], np.nan)

    def expected(self, b):
        dense = Dense(self.system, self.q[b], self.v[b], self.force[b], self.gravity)
        tau, a = dense.hybrid(self.tau[b], self.a[b], self.held)
        goal = Pose(self.target.rotation[b], self.target.position[b])
        task = (self.frames[0], goal, *self.task_gains, self.velocity[b], self.acceleration[b], self.tau[b])
        answers = {
            "logdet": np.linalg.slogdet(dense.M)[1],
            "tau": tau,
            "a": a,
            "compliance": dense.compliance(*self.frames),
            "computed torque": dense.computed_torque(self.q_d[b], self.v_d[b], self.a[b], self.kp, self.kd),
        }
        return answers | ({"task": dense.task(*task)} if self.movable else {}), dense.condition


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_against_the_dense_reduction(seed):
    """Any hinges, gears, differentials, offsets; a state gets the same bits alone, in a batch, and from a list."""
    system, rng = coupled_tree(seed)
    if system is None or not system.nv:
        return
    case = Case(system, rng)
    every = dict(case.found(slice(None)))
    for b in (0, 4, 8):
        expected, condition = case.expected(b)
        for name, one in case.found(b):
            np.testing.assert_array_equal(one, every[name][b], err_msg=name)
            loss = condition * (1e5 if name == "task" else 10.0)
            close(one, expected[name], 1e-11, loss)
        for name, one in case.found(b, as_given=list):
            np.testing.assert_array_equal(one, every[name][b], err_msg=name)
    Omega = every["compliance"]
    np.testing.assert_array_equal(Omega, Omega.mT)


def test_compiled_code_answers_all_of_it(monkeypatch):
    """No call of a small coupled system falls back on Python."""

    def refuse(*_):
        raise AssertionError("this is the long way")

    for module, names in (
        (control, ("_torque_by_parts", "_control_by_parts")),
        (coupled, ("by_embedding", "dense_inverse")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, refuse)
    system, rng = coupled_tree(5)
    case = Case(system, rng)
    assert case.movable
    for b in (slice(None), 3):
        assert len(dict(case.found(b))) == 6


def test_plain_recursions_agree():
    """The same texts, every index checked."""
    system, rng = coupled_tree(5)
    case = Case(system, rng)
    model, tree, n, wide = gears_of(system), model_of(system.open_tree), system.nv, 12
    every = dict(case.found(slice(None)))
    located = [system.locate(name) for name in case.frames]
    bodies, positions = np.array([x[0] for x in located]), np.array([x[2] for x in located])
    out = {name: np.empty_like(every[name]) for name in ("tau", "a", "compliance", "computed torque", "task")}
    d = np.empty((9, n))
    length, path, arm, turn = frame_of(system, case.frames[0])
    gains, task_gains = np.stack([case.kp, case.kd]), np.ascontiguousarray(case.task_gains)
    rows = np.array(AXES)
    calls = (
        (VARIANCES, (case.q, d)),
        (
            HYBRID,
            (
                case.held.astype(np.int64), case.q, case.v, case.tau, case.a, case.force, case.gravity,
                out["tau"], out["a"],
            ),
        ),
        (COMPLIANCE, (wide, *_frames(tree, system, bodies, positions), case.q, out["compliance"])),
        (
            control.COMPUTED_TORQUE,
            (
                1, gains, model_of(system.coordinates).left_inverse, np.array([1e-9]), case.q, case.v, case.q_d,
                case.v_d, case.a, case.force, case.gravity, out["computed torque"],
            ),
        ),
        (
            control.OPERATIONAL_SPACE_CONTROL,
            (
                1, task_gains, 3, rows, int(path[-1]), arm, turn, length, path, case.q, case.v, case.target.rotation,
                case.target.position, case.velocity, case.acceleration, case.tau, case.force, case.gravity,
                out["task"],
            ),
        ),
    )  # fmt: skip
    for later, arguments in calls:
        assert later.variants["geared"].entry.plain(model, *arguments) == 1
    close(np.log(d).sum(-1), every["logdet"], 1e-12)
    for name, plain in out.items():
        close(plain, every[name], 1e-10)


def test_a_compliance_goes_where_it_is_told():
    system, rng = coupled_tree(5)
    q = np.stack([system.random_configuration(rng) for _ in range(4)])
    frames = system.body_names[-2:]
    expected = kf.operational_space_compliance(system, q, frames)
    for out in (np.empty((4, 12, 12)), np.empty((4, 12, 24))[..., ::2]):
        assert kf.operational_space_compliance(system, q, frames, out=out) is out
        np.testing.assert_array_equal(out, expected)


def test_all_held_is_inverse_and_none_is_forward_dynamics():
    system, rng = coupled_tree(8)
    q, (v, u, w) = system.random_configuration(rng), rng.normal(size=(3, system.nv))
    tau, a = kf.hybrid_dynamics(system, q, v, u, w, np.ones(system.nv, dtype=bool))
    np.testing.assert_array_equal(a, w)
    close(tau, kf.inverse_dynamics(system, q, v, w), 1e-13)
    tau, a = kf.hybrid_dynamics(system, q, v, u, w, np.zeros(system.nv, dtype=bool))
    np.testing.assert_array_equal(tau, u)
    close(a, kf.forward_dynamics(system, q, v, u), 1e-11)


def test_a_held_coordinate_may_move_nothing():
    """The finger without mass is led: whatever is free has inertia, so that there is an answer."""
    turn = kf.Hinge.revolute([0, 0, 1])
    bodies = [kf.Body("arm", np.eye(6), turn), *(kf.Body(n, np.zeros((6, 6)), turn, "arm") for n in ("a", "b"))]
    light = kf.System(bodies, couplings=[kf.Coupling(["a", "b"], [1.0, 3.0])])
    tau, a = kf.hybrid_dynamics(light, np.zeros(2), None, [2.0, np.nan], [np.nan, 5.0], np.array([False, True]))
    np.testing.assert_array_equal(a, [2.0, 5.0])
    np.testing.assert_array_equal(tau, [2.0, 0.0])
    with pytest.raises(SingularError, match="'a'"):
        kf.hybrid_dynamics(light, np.zeros(2), None, np.zeros(2), np.zeros(2), np.zeros(2, dtype=bool))


def test_what_is_wrong_gets_words():
    system, rng = coupled_tree(5)
    q, v = np.stack([system.random_configuration(rng) for _ in range(3)]), np.zeros((3, system.nv))
    frame = system.body_names[-1]
    wrong = q.copy()
    wrong[2, 0] = np.nan
    here = kf.frame_pose(system, q, frame)
    held = np.arange(system.nv) % 2 == 0
    for call in (
        lambda q: kf.mass_matrix_logdet(system, q),
        lambda q: kf.operational_space_compliance(system, q, frame),
        lambda q: kf.hybrid_dynamics(system, q, v, v, v, held),
        lambda q: kf.computed_torque(system, q, v, q, v, v, 1.0, 1.0),
        lambda q: kf.operational_space_control(system, q, v, frame, here, 1.0, 1.0, axes=(3,)),
    ):
        call(q)
        with pytest.raises(KfdynError, match="q has entries that are not finite"):
            call(wrong)
    with pytest.raises(KfdynError, match="posture"):
        kf.operational_space_control(system, q, v, frame, here, 1.0, 1.0, posture=np.full(system.nv, np.inf))
    with pytest.raises(ModelError, match=r"target\.rotation"):
        kf.operational_space_control(system, q, v, frame, (2 * here.rotation, here.position), 1.0, 1.0)
    arm, still = kf.models.chain(2), np.zeros(1)
    gear, tip = arm.with_couplings([kf.Coupling(arm.hinge_names, [1.0, 2.0])]), arm.body_names[-1]
    there = kf.frame_pose(gear, still, tip)
    with pytest.raises(SingularError, match="cannot be accelerated"):
        kf.operational_space_control(gear, still, still, tip, there, 1.0, 1.0)
