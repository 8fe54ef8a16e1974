"""Loops in lanes: compiled rows and forward dynamics against NumPy's rows and a dense null space; planes, units."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from test_closed import close, dense, looped_tree

import kfdyn as kf
from kfdyn.dynamics.loops.closed import CUT_JOINT
from kfdyn.dynamics.loops.cut_joint import cut_joint
from kfdyn.errors import ModelError
from kfdyn.multibody.kinematics import Pose
from kfdyn.multibody.loops.closure import rows_that_hold_positions
from kfdyn.multibody.loops.loop_tables import loop_readings, loop_tables
from kfdyn.multibody.loops.relative_motion import Moving, both_ends, gap, relative_rows
from kfdyn.sweeps.jit import Checks

METHODS = ("cut", "embedding", "proximal")


def numpy_rows(s, q, v):
    """J, J̇v and the gap by frames' Jacobians and accelerations: no line in common with the compiled walk."""
    base, J, drift, gaps = s.without_loops, [], [], []
    for loop in s.loops:
        moving = [
            None if n is None else Moving(*kf.frame_pose(base, q, n), kf.frame_velocity(base, q, v, n))
            for n in (loop.frame_a, loop.frame_b)
        ]
        a, b = both_ends(loop, *moving)
        rows = relative_rows(loop, a, b)
        ends = [(K, n) for K, n in ((rows.of_a, loop.frame_a), (rows.of_b, loop.frame_b)) if n]
        J.append(sum(K @ kf.jacobian(base, q, n) for K, n in ends))
        bias = np.zeros(base.nv)
        drift.append(rows.drift + sum(K @ kf.frame_acceleration(base, q, v, bias, n) for K, n in ends))
        gaps.append(gap(loop, Pose(a.rotation, a.position), Pose(b.rotation, b.position)))
    return np.concatenate(J), np.concatenate(drift), np.concatenate(gaps)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_against_frames(seed):
    s, rng = looped_tree(seed)
    if s is None:
        return
    q, v = s.without_loops.random_configuration(rng), rng.normal(size=s.nv)
    J, drift, gaps = numpy_rows(s, q, v)
    found, held = loop_readings(s, q, v), rows_that_hold_positions(s)
    for x, y in ((found.J, J), (found.drift, drift), (found.gap * held, gaps * held)):
        assert np.abs(x - y).max() <= 1e-12 * (1 + np.abs(y).max())
    assert (2 * found.made_of * (1 + 1e-12) >= found.J**2).all()
    several = loop_readings(s, np.array([q] * 9), np.array([v] * 9))
    for one, many in zip(found, several):
        np.testing.assert_array_equal(many, np.broadcast_to(one, many.shape))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_lanes_against_a_dense_null_space(seed):
    """A batch of states, each its own answer, external forces and gravity included."""
    s, rng = looped_tree(seed)
    if s is None:
        return
    size, base = 9, s.without_loops
    q = np.array([base.random_configuration(rng) for _ in range(size)])
    v, tau = rng.normal(size=(2, size, s.nv))
    force, g = rng.normal(size=(size, s.n_bodies, 6)), rng.normal(size=3)
    J = loop_readings(s, q).J
    least = np.linalg.svd(J / np.maximum(np.linalg.norm(J, axis=-1, keepdims=True), 1e-300), compute_uv=False)[:, -1]
    if least.min() < 1e-3 or np.linalg.norm(J, axis=-1).min() < 1e-9:
        return
    a = kf.forward_dynamics(s, q, v, tau, force, g)
    f = np.concatenate(kf.constraint_forces(s, q, v, tau, force, g), axis=-1)
    for b in range(size):
        expected, _ = dense(s, q[b], v[b], tau[b], force[b], g)
        close(a[b], expected, 1e-9)
        inertial, bias = kf.mass_matrix(base, q[b]) @ expected, kf.bias_forces(base, q[b], v[b], force[b], g)
        # what is left where larger forces cancel is known to their rounding, not to its own
        size_of_terms = max(np.abs(inertial).max(), np.abs(bias).max(), np.abs(tau[b]).max())
        assert np.abs(J[b].T @ f[b] - (inertial + bias - tau[b])).max() <= 1e-10 * size_of_terms
    quick, fine = in_lanes(s, q, v, tau, force, g)
    if fine:
        long = cut_joint(s, q, v, tau, force, g)
        close(quick[0], long.a, 1e-9)
        assert (quick[2] == long.rank).all()


def in_lanes(s, q, v, tau, force=None, g=None):
    """Accelerations, forces and ranks by the compiled sweep, and whether it decides all rows."""
    tables = loop_tables(s)
    return CUT_JOINT.attempt(s.open_tree, (*tables.of, q, v, tau, force, g, tables.ends, None, None))


def configured(make):
    return getattr(kf.models, f"{make}_configuration")({"four_bar": 0.7, "peaucellier": 0.3}[make])


@pytest.mark.parametrize("make", ["four_bar", "peaucellier", "stewart_platform", "delta_robot"])
def test_the_same_text_runs_plain(make):
    """Compiled and as it stands on Python's floats, every index checked."""
    s, rng = getattr(kf.models, make)(), np.random.default_rng(0)
    q = s.random_configuration(rng) if "_r" in make or "_p" in make else configured(make)
    v, tau = kf.impact(s, q, rng.normal(size=s.nv)).v, rng.normal(size=s.nv)
    read, a = loop_readings(s, q, v), kf.forward_dynamics(s, q, v, tau)
    assert in_lanes(s, q, v, tau)[1]
    Checks.on = True
    try:
        plain, a_plain = loop_readings(s, q, v), kf.forward_dynamics(s, q, v, tau)
    finally:
        Checks.on = False
    close(a_plain, a, 1e-12)
    for x, y in zip(plain, read):
        assert np.abs(x - y).max() <= 1e-13 * (1 + np.abs(y).max())


def tilted(s, R):
    """The same linkage in another plane."""
    tree = s.open_tree
    bodies = [
        replace(body, rotation=R @ body.rotation, position=R @ body.position) if body.parent is None else body
        for body in tree.bodies
    ]
    return kf.System(bodies, R @ tree.gravity, dict(tree.frames), "tilted").with_loops(s.loops)


@pytest.mark.parametrize("make", ["four_bar", "peaucellier"])
@pytest.mark.parametrize("method", METHODS)
def test_a_planar_linkage_in_any_plane(make, method):
    """Out of plane nothing moves but rounding, which is not to be taken for a row of full rank."""
    s, rng = getattr(kf.models, make)(), np.random.default_rng(2)
    q = configured(make)
    v, tau = kf.impact(s, q, rng.normal(size=s.nv)).v, rng.normal(size=s.nv)
    expected, forces = kf.forward_dynamics(s, q, v, tau, method=method), kf.constraint_forces(s, q, v, tau)
    for turn in rng.normal(size=(5, 3)):
        other = tilted(s, Rotation.from_rotvec(turn).as_matrix())
        close(kf.forward_dynamics(other, q, v, tau, method=method), expected, 1e-10)
        close(kf.mass_matrix_inverse(other, q), kf.mass_matrix_inverse(s, q), 1e-10)
        assert cut_joint(other, q, v, tau).rank == cut_joint(s, q, v, tau).rank < sum(len(l.rows) for l in s.loops)
        for f, g in zip(kf.constraint_forces(other, q, v, tau), forces):
            close(f, g, 1e-9)


@pytest.mark.parametrize("length", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("mass", [1e-6, 1e6])
def test_units(length, mass):
    """A linkage in micrometres or megametres, milligrams or kilotonnes moves as it does in metres."""
    s, rng = kf.models.four_bar(), np.random.default_rng(3)
    q = kf.models.four_bar_configuration(0.7)
    v, tau = kf.minimal_coordinates(s, q).X @ [1.7], rng.normal(size=3)
    L = np.diag([length] * 3 + [1.0] * 3)
    bodies = [replace(b, inertia=mass * L @ b.inertia @ L, position=length * b.position) for b in s.open_tree.bodies]
    frames = {k: kf.Frame(f.body, f.rotation, length * f.position) for k, f in s.open_tree.frames.items()}
    other = kf.System(bodies, length * s.gravity, frames).with_loops(s.loops)
    expected = kf.forward_dynamics(s, q, v, tau)
    for method in METHODS:
        close(kf.forward_dynamics(other, q, v, mass * length**2 * tau, method=method), expected, 1e-9)


def test_a_batch_of_which_some_states_are_singular():
    """Rows whose rank is not plain to see go the long way, the others do not wait for it; gravity is one for all."""
    s = kf.models.four_bar()
    q = np.array([kf.models.four_bar_configuration(x) for x in np.linspace(0.3, 1.2, 12)])
    v, tau = np.zeros((12, 3)), np.ones((12, 3))
    tight = kf.Loop(s.loops[0].frame_a, s.loops[0].frame_b, s.loops[0].rows)
    twice = s.without_loops.with_loops([tight, replace_name(tight)])  # every row twice
    a = kf.forward_dynamics(twice, q, v, tau, gravity=np.array([0.0, 0.0, -5.0]))
    close(a, kf.forward_dynamics(s, q, v, tau, gravity=np.array([0.0, 0.0, -5.0])), 1e-10)
    f, g = kf.constraint_forces(twice, q, v, tau), kf.constraint_forces(s, q, v, tau)
    close(f[0], f[1], 1e-9)  # of least norm: shared alike
    close(f[0] + f[1], g[0], 1e-9)


def replace_name(loop):
    return kf.Loop(loop.frame_a, loop.frame_b, loop.rows, name="again")


def test_contradictions_are_told_from_the_lanes_too():
    s = kf.models.four_bar()
    q = kf.models.four_bar_configuration(0.7)
    body = s.loops[0].frame_b
    held = s.with_loops([kf.Loop(None, body, "point", anchor=kf.frame_pose(s, q, body).position)])
    v = kf.minimal_coordinates(s, q).X @ [2.0]  # the contact does not let it move
    assert not in_lanes(held, q, v, np.zeros(3))[1]
    with pytest.raises(ModelError, match="contradict"):
        kf.forward_dynamics(held, q, v, np.zeros(3))


def test_couplings_and_loops_in_one_batch():
    """A geared four-bar: the dense way, the same for one state and for many."""
    s, rng = kf.models.four_bar(), np.random.default_rng(5)
    rotor = kf.Body("rotor", np.diag([0.01, 0.01, 0.01, 0, 0, 0]), kf.Hinge.revolute())
    first = s.hinge_names[0]
    tree = kf.System([*s.open_tree.bodies, rotor], frames=dict(s.open_tree.frames))
    geared = kf.System(tree.bodies, frames=dict(tree.frames), couplings=[kf.Coupling([first, "rotor"], [1.0, -7.0])])
    geared = geared.with_loops(s.loops)
    q = np.array([kf.models.four_bar_configuration(x) for x in np.linspace(0.3, 1.2, 9)])
    v, tau = kf.impact(geared, q, rng.normal(size=(9, 3))).v, rng.normal(size=(9, 3))
    many = {method: kf.forward_dynamics(geared, q, v, tau, method=method) for method in METHODS}
    for b in range(9):
        expected, _ = dense(geared, q[b], v[b], tau[b])
        for method in METHODS:
            close(many[method][b], expected, 1e-9)
