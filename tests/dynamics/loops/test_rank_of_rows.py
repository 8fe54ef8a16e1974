"""Loops that hold nothing new, say twice what others say, or hold: every function against a dense KKT system."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.multibody.loops.closure import constraint_drift, constraint_jacobian, gaps
from kfdyn.spatial import spatial_inertia

METHODS = ("filter", "cut", "embedding", "proximal")
REVOLUTE, PRISMATIC, BALL = range(3)
# Rows that a hinge holds by itself, in axes whose z is its own.
HELD = {REVOLUTE: (0, 1, 3, 4, 5), PRISMATIC: (0, 1, 2, 3, 4), BALL: (3, 4, 5)}


def rotation(rng):
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.sign(np.linalg.det(Q))


def frame_with_z(axis, rng):
    z = axis / np.linalg.norm(axis)
    x = np.cross(z, rng.normal(size=3))
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def random_tree(rng, size, special):
    """Bodies on hinges of three kinds; ``special`` ones are straight, with axes and places along coordinate axes."""
    bodies, kinds, axes = [], [], []
    for k in range(size):
        kind = int(rng.choice(3, p=[0.7, 0.15, 0.15]))
        axis = np.eye(3)[rng.integers(3)] if special else rng.normal(size=3)
        hinge = [kf.Hinge.revolute, kf.Hinge.prismatic][kind](axis) if kind < 2 else kf.Hinge.ball()
        parent = None if k == 0 else f"b{rng.integers(max(0, k - 2), k)}"
        arm = np.eye(3)[rng.integers(3)] * rng.uniform(0.3, 1.0) if special else rng.normal(size=3)
        inertia = spatial_inertia(rng.uniform(0.5, 3.0), rng.normal(size=3) * 0.2, np.eye(3) * rng.uniform(0.1, 0.5))
        turn = np.eye(3) if special else rotation(rng)
        bodies.append(kf.Body(f"b{k}", inertia, hinge, parent, position=arm, rotation=turn))
        kinds.append(kind)
        axes.append(axis)
    return kf.System(bodies, gravity=[0.0, 0.0, -9.81]), kinds, axes


class Mixture:
    """A tree with frames and loops that are closed at q; ``real`` are those that hold."""

    def __init__(self, seed, vacuous=1, redundant=1, real=1):
        self.rng = rng = np.random.default_rng(seed)
        special = bool(rng.integers(3) == 0)
        self.tree, self.kinds, self.axes = random_tree(rng, int(rng.integers(2, 8)), special)
        self.q = self.tree.neutral() if special and rng.integers(2) else self.tree.random_configuration(rng)
        if special and rng.integers(2):
            turns = rng.integers(-1, 3, size=self.tree.nv) * np.pi / 2
            self.q = kf.integrate(self.tree, self.tree.neutral(), turns)
        self.frames, loops, real_loops = {}, [], []
        for _ in range(vacuous):
            loops.append(self.vacuous())
        room = self.tree.nv - 1
        for _ in range(real):
            rows = self.rows(room)
            if rows:
                room -= len(rows)
                a, b, x, R = self.place()
                real_loops.append((self.loop(a, b, x, R, rows), (a, b, x, R, rows)))
        loops += [loop for loop, _ in real_loops]
        for _ in range(redundant if real_loops else 0):
            loops.append(self.redundant(real_loops[int(rng.integers(len(real_loops)))][1]))
        order = rng.permutation(len(loops))
        tree = kf.System(self.tree.bodies, gravity=self.tree.gravity, frames=self.frames)
        self.open = tree
        self.system = tree.with_loops([loops[i] for i in order]) if loops else tree
        self.real = tree.with_loops([loop for loop, _ in real_loops]) if real_loops else tree

    def rows(self, room):
        """All rows of a point or of a pose, or some of them."""
        choices = [(3, 4, 5), (3, 4), (5,), (0, 1, 2), (0, 1, 2, 3, 4, 5), (2, 4)]
        fitting = [rows for rows in choices if len(rows) <= room]
        return fitting[int(self.rng.integers(len(fitting)))] if fitting else None

    def place(self):
        """Two bodies (or a body and the world), a point in space and axes."""
        b = int(self.rng.integers(len(self.kinds)))
        a = None if len(self.kinds) == 1 or self.rng.integers(2) else int(self.rng.integers(len(self.kinds)))
        return (None if a == b else a), b, self.rng.normal(size=3), rotation(self.rng)

    def frame(self, k, x, R):
        """A frame of body k at a point in space; its place in the body is a difference, and rounded."""
        pose, name = kf.frame_pose(self.tree, self.q, f"b{k}"), f"f{len(self.frames)}"
        self.frames[name] = kf.Frame(f"b{k}", pose.rotation.T @ R, pose.rotation.T @ (x - pose.position))
        return name

    def loop(self, a, b, x, R, rows):
        name = f"loop {len(self.frames)}"
        if a is None:
            return kf.Loop(None, self.frame(b, x, R), rows, anchor=(R, x), name=name)
        return kf.Loop(self.frame(a, x, R), self.frame(b, x, R), rows, name=name)

    def vacuous(self):
        """What a hinge holds already, or some of it, at a point of its axis."""
        k = int(self.rng.integers(len(self.kinds)))
        pose, kind = kf.frame_pose(self.tree, self.q, f"b{k}"), self.kinds[k]
        axis = pose.rotation @ self.axes[k]
        x = pose.position if kind == BALL else pose.position + axis * self.rng.choice([0.0, 0.7])
        held = HELD[kind]
        if kind == REVOLUTE and self.rng.integers(2):
            held = (3, 4, 5)  # a second pin
        parent = self.tree.bodies[k].parent
        return self.loop(None if parent is None else int(parent[1:]), k, x, frame_with_z(axis, self.rng), held)

    def redundant(self, of):
        """The same point, or the same pose elsewhere, in other axes where all rows of a kind are held."""
        a, b, x, R, rows = of
        if rows in ((3, 4, 5), (0, 1, 2, 3, 4, 5)):
            R = rotation(self.rng)
        if rows == (0, 1, 2, 3, 4, 5):
            x = x + self.rng.normal(size=3)
        return self.loop(a, b, x, R, rows)

    def on_loops(self):
        """Velocities that the real loops allow, by the null space of their rows."""
        v = self.rng.normal(size=self.tree.nv)
        if not self.real.loops:
            return v
        J = constraint_jacobian(self.real, self.q)
        return v - np.linalg.pinv(J, rcond=1e-8) @ (J @ v)


def kkt(case, v, tau):
    """Accelerations, 𝓜⁻¹ on the loops and the freedom, by the dense KKT system of the real loops alone."""
    tree, q, n = case.open, case.q, case.open.nv
    M, c = kf.mass_matrix(tree, q), kf.bias_forces(tree, q, v)
    if not case.real.loops:
        return np.linalg.solve(M, tau - c), np.linalg.inv(M), n
    J, drift = constraint_jacobian(case.real, q), constraint_drift(case.real, q, v)
    whole = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    found = np.linalg.solve(whole, np.concatenate([tau - c, -drift]))[:n]
    return found, np.linalg.inv(whole)[:n, :n], n - len(J)


def regular(case):
    """Whether the real loops are independent by far: then a loop beside them has the rank that it was made with."""
    if not case.real.loops:
        return True
    J = constraint_jacobian(case.real, case.q)
    return bool(np.linalg.svd(J, compute_uv=False)[-1] > 0.03)


def close(actual, expected, tolerance):
    assert np.abs(actual - expected).max(initial=0.0) <= tolerance * max(np.abs(expected).max(initial=0.0), 1.0)


def check(case):
    """All functions in one state of a mixture."""
    s, q, rng = case.system, case.q, case.rng
    v, tau = case.on_loops(), rng.normal(size=s.nv)
    a, inverse, freedom = kkt(case, v, tau)
    for method in METHODS:
        close(kf.forward_dynamics(s, q, v, tau, method=method), a, 1e-9)
    close(kf.mass_matrix_inverse(s, q), inverse, 1e-9)
    again = kf.inverse_dynamics(s, q, v, a)
    close(kf.forward_dynamics(s, q, v, again), a, 1e-8)
    assert np.linalg.norm(again) <= np.linalg.norm(tau) * (1 + 1e-9)
    one = kf.minimal_coordinates(s, q, v)
    assert one.X.shape == (s.nv, freedom)
    assert kf.as_estimation(s, q).n_outputs == freedom
    none = np.zeros(s.nv, dtype=bool)
    close(kf.hybrid_dynamics(s, q, v, tau, np.zeros(s.nv), none)[1], a, 1e-8)
    J = kf.jacobian(case.open, q, "b0")
    close(kf.operational_space_compliance(s, q, ["b0"]), J @ inverse @ J.T, 1e-8)
    if s.loops:
        forces = np.concatenate(kf.constraint_forces(s, q, v, tau))
        balance = kf.mass_matrix(case.open, q) @ a + kf.bias_forces(case.open, q, v) - tau
        close(constraint_jacobian(s, q).T @ forces, balance, 1e-8)
        assert int(kf.cut_joint(s, q, v, tau).rank) == s.nv - freedom


MIXTURES = [(1, 0, 0), (2, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1), (2, 2, 2)]


@pytest.mark.parametrize("counts", MIXTURES, ids=str)
def test_every_function_agrees_with_dense_kkt(counts):
    seen = 0
    for seed in range(12):
        case = Mixture(seed, *counts)
        if regular(case):
            seen += 1
            check(case)
    assert seen >= 5


@pytest.mark.slow
def test_ten_thousand_mixtures():
    seen = 0
    for seed in range(2000, 4300):
        for counts in MIXTURES:
            case = Mixture(seed, *counts)
            if regular(case):
                seen += 1
                check(case)
    assert seen >= 10_000


def outcomes(s, q, v, tau):
    """What each method answers, None where it refuses."""
    found = {}
    for method in METHODS:
        try:
            found[method] = kf.forward_dynamics(s, q, v, tau, method=method)
        except ModelError:
            found[method] = None
    return found


@pytest.mark.parametrize("speed", [1e-3, 1.0, 30.0])
def test_methods_agree_or_refuse_alike_off_the_loops(speed):
    """Velocities that the loops do not allow: redundant rows may contradict each other then."""
    refused = 0
    for seed in range(20):
        case = Mixture(seed, 0, 2, 1)
        if not regular(case) or not case.system.loops:
            continue
        v, tau = speed * case.rng.normal(size=case.tree.nv), case.rng.normal(size=case.tree.nv)
        found = outcomes(case.system, case.q, v, tau)
        if any(a is None for a in found.values()):
            assert all(a is None for a in found.values())
            refused += 1
        else:
            for a in found.values():
                close(a, found["cut"], 1e-8)
    assert refused


def test_every_method_refuses_loops_that_contradict_each_other():
    """The tip is held at a place and the elbow, too, while both move: no force lets both hold at this velocity."""
    frames = {"tip": kf.Frame("lower", position=[0.0, 0.0, -1.0])}
    arm = kf.System(kf.models.double_pendulum().bodies, frames=frames)
    q = np.array([0.4, 0.9])
    tip = kf.frame_pose(arm, q, "tip").position
    s = arm.with_loops([kf.Loop(None, "tip", (3, 5), anchor=tip), kf.Loop(None, "lower", (3, 5), name="second")])
    for v in ([1.0, -2.0], [2.0, 0.0]):
        assert set(outcomes(s, q, np.array(v), np.zeros(2)).values()) == {None}
        with pytest.raises(ModelError, match=r"second.*contradict each other"):
            kf.forward_dynamics(s, q, v, np.zeros(2), method="proximal")
    for a in outcomes(s, q, np.zeros(2), np.ones(2)).values():
        close(a, np.zeros(2), 1e-12)


def door(x, mass=2.0):
    """A door with a second pin, x beside the axis of its hinge."""
    inertia = spatial_inertia(mass, [0.4, 0.0, 0.5], np.diag([0.2, 0.2, 0.1]))
    body = kf.Body("door", inertia, kf.Hinge.revolute([0.0, 0.0, 1.0]), position=[1.0, 2.0, 0.0])
    frames = {"pin": kf.Frame("door", position=[x, 0.0, 0.9])}
    return kf.System([body], frames=frames)


@pytest.mark.parametrize(("x", "held"), [(0.0, 0), (1e-17, 0), (3e-16, 0), (1e-9, 0), (1e-4, 1), (0.1, 1)])
def test_a_second_pin_of_a_door(x, held):
    """On the hinge's axis it holds nothing, whatever rounding says; beside it the door is locked."""
    tree = door(x)
    for q in (np.zeros(1), np.array([0.7]), np.array([0.5 * np.pi])):
        v, tau = np.array([0.0 if held else 1.3]), np.array([0.8])
        s = tree.with_loops([kf.Loop("pin", None, "point", anchor=kf.frame_pose(tree, q, "pin").position)])
        expected = np.zeros(1) if held else kf.forward_dynamics(tree, q, v, tau)
        inverse = np.zeros((1, 1)) if held else kf.mass_matrix_inverse(tree, q)
        for method in METHODS:
            close(kf.forward_dynamics(s, q, v, tau, method=method), expected, 1e-12)
        close(kf.mass_matrix_inverse(s, q), inverse, 1e-12)
        assert kf.minimal_coordinates(s, q).X.shape == (1, 1 - held)
        assert kf.as_estimation(s, q).n_outputs == 1 - held
        assert int(kf.cut_joint(s, q, v, tau).rank) == held
        if not held:
            close(kf.inverse_dynamics(s, q, v, expected), tau, 1e-12)
            close(kf.cut_joint(s, q, v, tau).force_covariance(), np.zeros((3, 3)), 0.0)
            prescribed = kf.hybrid_dynamics(s, q, v, np.zeros(1), expected, np.array([True]))[0]
            close(prescribed, tau, 1e-12)
            close(kf.computed_torque(s, q, v, q, v, expected, 0.0, 0.0), tau, 1e-12)
            assert kf.cross_check(s, q, samples=500, seed=1).passed


def test_units_of_length_do_not_matter():
    """The same door a million times larger or smaller."""
    for factor in (1e-6, 1e6):
        inertia = spatial_inertia(2.0, [0.4 * factor, 0.0, 0.0], 0.1 * factor**2 * np.eye(3))
        body = kf.Body("door", inertia, kf.Hinge.revolute([0.0, 0.0, 1.0]))
        for x, held in ((1e-16, 0), (0.01, 1)):
            tree = kf.System([body], frames={"pin": kf.Frame("door", position=[x * factor, 0.0, 0.9 * factor])})
            q = np.array([0.3])
            s = tree.with_loops([kf.Loop("pin", None, "point", anchor=kf.frame_pose(tree, q, "pin").position)])
            a = kf.forward_dynamics(tree, q, np.zeros(1), [factor**2])
            for method in METHODS:
                close(kf.forward_dynamics(s, q, np.zeros(1), [factor**2], method=method), a * (1 - held), 1e-10)


def test_batches_of_mixtures():
    case = Mixture(3, 2, 0, 0)
    q = np.array([case.tree.random_configuration(i) for i in range(5)])
    v, tau = case.rng.normal(size=(2, 5, case.tree.nv))
    expected = kf.forward_dynamics(case.open, q, v, tau)
    for method in METHODS:
        close(kf.forward_dynamics(case.system, q, v, tau, method=method), expected, 1e-9)


DOOR = """<mujoco><worldbody>
  <body name="frame" pos="0.3 0.1 0.7" euler="10 20 30"><joint name="base" axis="1 0 0"/>
    <inertial pos="0 0 0.1" mass="3" diaginertia="0.1 0.1 0.1"/>
    <body name="door" pos="0.1 0.2 0.3" euler="15 25 35"><joint name="hinge" axis="0.3 0.2 0.7"/>
      <inertial pos="0.4 0 0.5" mass="2" diaginertia="0.2 0.2 0.1"/></body></body></worldbody>
  <equality><connect body1="door" body2="frame" anchor="0.27 0.18 0.63"/></equality></mujoco>"""


def test_a_second_pin_by_connect():
    pytest.importorskip("mujoco")
    s = kf.load(DOOR)
    assert len(s.loops) == 1
    q, v, tau = np.array([0.4, -1.1]), np.array([0.5, 1.5]), np.array([0.3, -0.2])
    expected = kf.forward_dynamics(s.without_loops, q, v, tau)
    for method in METHODS:
        close(kf.forward_dynamics(s, q, v, tau, method=method), expected, 1e-12)
    assert kf.minimal_coordinates(s, q).X.shape == (2, 2)


def four_bar(tilt):
    """A planar four-bar closed by ``connect``; axes and places leave the plane by ``tilt``."""
    bar = '<inertial pos="0.05 0.02 0" mass="0.2" diaginertia="1e-4 1e-4 1e-4"/>'
    return kf.load(f"""<mujoco><compiler angle="radian"/><worldbody>
      <body name="crank" pos="0 0 0.5"><joint name="a" axis="0 {tilt} 1"/>{bar}
        <body name="coupler" pos="0.1 0 {tilt / 10}"><joint name="b" axis="{tilt} 0 1"/>{bar}</body></body>
      <body name="rocker" pos="0.2 0 0.5"><joint name="c" axis="{tilt} {-tilt} 1"/>{bar}</body></worldbody>
      <equality><connect body1="coupler" body2="rocker" anchor="0.2 0.05 {tilt / 10}"/></equality></mujoco>""")


def test_loops_that_the_digits_of_a_file_leave_open():
    """Rows across the plane are dependent but for the seventh digit: closed in the plane, told, and gone on with."""
    pytest.importorskip("mujoco")
    plain, s = four_bar(0.0), four_bar(1e-7)
    guess = np.array([0.3, 0.0, 0.2])
    q = kf.assemble(plain, guess)
    with pytest.warns(UserWarning, match=r"stays open by \d(\.\d)?e-0[89] \(m or rad\).*as far as they can be"):
        found = kf.assemble(s, np.array([guess, guess]))
    close(found[0], q, 1e-6)
    gap = gaps(s, found[0])[0]
    assert 1e-10 < np.abs(gap).max() < 1e-7
    J = constraint_jacobian(s, found[0])
    assert np.abs(J.T @ gap).max() < 1e-13  # least squares
    with pytest.warns(UserWarning, match="stays open by"):
        drawn = s.random_configuration(3)
    assert np.abs(gaps(s, drawn)[0]).max() < 1e-7
    v = kf.impact(plain, q, [1.0, 0.0, 0.0]).v
    expected = kf.forward_dynamics(plain, q, v, np.zeros(3))
    assert np.abs(expected).max() > 1.0
    for method in METHODS:
        close(kf.forward_dynamics(s, found[0], v, np.zeros(3), method=method), expected, 1e-5)
    assert kf.minimal_coordinates(s, found[0]).X.shape == (3, 1)
    t = np.linspace(0.0, 0.2, 21)
    for method in ("rk4", "implicit", "symplectic"):
        with pytest.warns(UserWarning, match="stays open by"):
            moved = kf.simulate(s, found[0], v, t, method=method)
        close(moved.q, kf.simulate(plain, q, v, t, method=method).q, 1e-5)
        assert np.abs(gaps(s, moved.q)[0]).max() < 1e-7


def test_loops_that_are_open_beyond_the_digits_of_a_file_are_refused():
    pytest.importorskip("mujoco")
    bent = four_bar(0.0)
    end = {
        "end": kf.Frame("coupler", position=[0.1, 0.05, 1e-5]),
        "hold": kf.Frame("rocker", position=[0.0, 0.05, 0.0]),
    }
    s = kf.System(bent.open_tree.bodies, frames=end).with_loops([kf.Loop("end", "hold", "point")])
    with pytest.raises(ModelError, match=r"does not close: 1e-05"):
        kf.assemble(s, [0.3, 0.0, 0.2])
