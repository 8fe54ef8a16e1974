"""Loops that hold nothing new, say twice what others say, or hold: every function against a dense KKT system."""

import itertools

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody.closure import constraint_drift, constraint_jacobian
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
    """Accelerations and the inverse of the mass matrix on the loops, by the dense KKT system of the real loops alone."""
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
    for seed in range(2000, 3700):
        for counts in MIXTURES:
            case = Mixture(seed, *counts)
            if regular(case):
                seen += 1
                check(case)
    assert seen > 5000
