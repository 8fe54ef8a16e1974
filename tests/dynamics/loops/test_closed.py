"""Loops: three methods, one answer, against a dense null space; redundant rows; what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody.loops.closure import constraint_drift, constraint_jacobian, gaps

METHODS = ("cut", "embedding", "proximal")


def null_space(J):
    _, s, Vt = np.linalg.svd(J / np.maximum(np.abs(J).max(axis=1, keepdims=True), 1e-300))
    return Vt[int((s > 1e-9 * s[:1]).sum()) :].T


def dense(s, q, v, tau, force=None, g=None):
    """a by the null space of J: N(N*𝓜N)⁻¹N*(tau − c − 𝓜γ) + γ; and N(N*𝓜N)⁻¹N*."""
    base = s.without_loops
    J, M = constraint_jacobian(s, q), kf.mass_matrix(base, q)
    N = null_space(J)
    particular = -np.linalg.pinv(J, rcond=1e-9) @ constraint_drift(s, q, v)
    rhs = tau - kf.bias_forces(base, q, v, force, g) - M @ particular
    inverse = N @ np.linalg.solve(N.T @ M @ N, N.T)
    return inverse @ rhs + particular, inverse


def looped_tree(seed):
    """A random tree with one to three loops between random bodies or with the world, any subset of rows."""
    rng = np.random.default_rng(seed)
    tree = kf.models.random_tree(int(rng.integers(6, 18)), seed=int(seed))
    names = list(tree.body_names)
    loops, used = [], 0
    for _ in range(int(rng.integers(1, 4))):
        rows = sorted(rng.choice(6, size=int(rng.integers(1, 7)), replace=False).tolist())
        if used + len(rows) > tree.nv - 2:
            continue
        used += len(rows)
        a, b = rng.choice(names, 2, replace=False).tolist()
        kind = rng.integers(4)
        if kind == 0:
            loops.append(kf.Loop(a, None, rows))
        elif kind == 1:
            loops.append(kf.Loop(None, b, rows, anchor=rng.normal(size=3)))
        else:
            loops.append(kf.Loop(a, b, rows))
    return (tree.with_loops(loops) if loops else None), rng


def close(actual, expected, tolerance):
    assert np.abs(actual - expected).max(initial=0.0) <= tolerance * max(np.abs(expected).max(initial=0.0), 1e-300)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
@example(826090)  # rows nearly dependent: they settle long before the accelerations do
@example(256)
def test_three_methods_one_answer(seed):
    s, rng = looped_tree(seed)
    if s is None:
        return
    q, (v, tau) = s.without_loops.random_configuration(rng), rng.normal(size=(2, s.nv))
    force, g = rng.normal(size=(s.n_bodies, 6)), rng.normal(size=3)
    J = constraint_jacobian(s, q)
    size = np.linalg.norm(J, axis=1)
    if (size < 1e-9).any() or np.linalg.svd(J / size[:, None], compute_uv=False)[-1] < 1e-3:
        return  # dependent rows of a loop that is not closed contradict each other; the linkages have some
    expected, inverse = dense(s, q, v, tau, force, g)
    for method in METHODS:
        close(kf.forward_dynamics(s, q, v, tau, force, g, method=method), expected, 1e-9)
    close(kf.mass_matrix_inverse(s, q), inverse, 1e-9)
    f = kf.constraint_forces(s, q, v, tau, force, g)
    base = s.without_loops
    balance = kf.mass_matrix(base, q) @ expected + kf.bias_forces(base, q, v, force, g) - tau
    close(J.T @ np.concatenate(f), balance, 1e-8)
    again = kf.inverse_dynamics(s, q, v, expected, force, g)
    close(kf.forward_dynamics(s, q, v, again, force, g), expected, 1e-9)
    assert np.linalg.norm(again) <= np.linalg.norm(tau) * (1 + 1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_drift_is_the_derivative_of_the_rates(seed):
    """J̇v by differences of J along the motion; and J by differences of the gap on a closed loop."""
    s, rng = looped_tree(seed)
    if s is None:
        return
    q, v = s.without_loops.random_configuration(rng), rng.normal(size=s.nv)
    base, h = s.without_loops, 1e-5
    rates = [constraint_jacobian(s, kf.integrate(base, q, e * v)) @ v for e in (-h, h)]
    found = (rates[1] - rates[0]) / (2 * h)
    assert np.abs(found - constraint_drift(s, q, v)).max() < 1e-6 * (1 + np.abs(found).max())


def closed_linkages():
    four = kf.models.four_bar()
    return [
        (four, kf.models.four_bar_configuration(0.7)),
        (kf.models.slider_crank(), kf.assemble(kf.models.slider_crank(), [0.5, -0.7, -0.2, 3.0])),
        (kf.models.peaucellier(), kf.models.peaucellier_configuration(0.3)),
        (kf.models.four_bar_chain(4), kf.assemble(kf.models.four_bar_chain(4), np.tile([1.2, -1.2, 1.2], 4))),
    ]


@pytest.mark.parametrize(("s", "q"), closed_linkages(), ids=lambda x: getattr(x, "name", ""))
def test_redundant_rows_are_normal(s, q):
    """SKO:cut-joint, SKO:embedding: planar linkages closed in space have more rows than rank."""
    rng = np.random.default_rng(4)
    one = kf.minimal_coordinates(s, q)
    v, tau = one.X @ rng.normal(size=one.X.shape[1]), rng.normal(size=s.nv)
    expected, inverse = dense(s, q, v, tau)
    for method in METHODS:
        close(kf.forward_dynamics(s, q, v, tau, method=method), expected, 1e-10)
    close(kf.mass_matrix_inverse(s, q), inverse, 1e-11)
    cut = kf.cut_joint(s, q, v, tau)
    close(cut.a, expected, 1e-10)
    J, M = constraint_jacobian(s, q), kf.mass_matrix(s.without_loops, q)
    close(cut.compliance, J @ np.linalg.solve(M, J.T), 1e-10)
    close(J.T @ np.concatenate(cut.forces), M @ expected + kf.bias_forces(s.without_loops, q, v) - tau, 1e-9)
    assert cut.rank == s.nv - one.X.shape[1] < sum(len(loop.rows) for loop in s.loops)
    # the same in minimal coordinates: M u̇ + c = X*tau
    here = kf.minimal_coordinates(s, q, v)
    u = np.linalg.solve(here.mass_matrix, here.X.T @ tau - here.bias)
    close(here.X @ u + here.drift, expected, 1e-10)
    assert np.isclose(here.logdet, np.linalg.slogdet(here.mass_matrix)[1], atol=1e-11)
    close(np.asarray(here.factor.inverse()), np.linalg.inv(here.mass_matrix), 1e-11)
    close(here.X[here.independent], np.eye(len(here.independent)), 1e-12)
    assert kf.cross_check(s, q, samples=2000, seed=1).passed


def test_assemble_reaches_all_branches_of_a_four_bar_or_says_why():
    s = kf.models.four_bar()
    for crossed in (False, True):
        target = kf.models.four_bar_configuration(0.9, crossed=crossed)
        q = kf.assemble(s, target + np.array([0.0, 0.05, -0.05]))
        assert max(np.abs(g).max() for g in gaps(s, q)) < 1e-12
        off = (q - kf.models.four_bar_configuration(q[0], crossed=crossed) + np.pi) % (2 * np.pi) - np.pi
        assert np.abs(off).max() < 1e-9
    short = kf.models.four_bar(ground=9.0)
    with pytest.raises(ModelError, match=r"coupler to rocker.*does not close: 4\.[12]"):
        kf.assemble(short, [0.0, 0.0, 3.0])
    drawn = np.array([s.random_configuration(i) for i in range(6)])
    assert max(np.abs(g).max() for g in gaps(s, drawn)) < 1e-11


def test_dead_centre_is_named_by_one_method_and_passed_by_the_others():
    """A crank as long as the rocker on a ground as long as the coupler folds flat."""
    s = kf.models.four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    q, tau = np.zeros(3), np.array([1.0, 2.0, 3.0])
    with pytest.raises(SingularError, match=r"coupler to rocker.*dead centre.*'cut' or 'proximal'"):
        kf.forward_dynamics(s, q, None, tau, method="embedding")
    cut, proximal = (kf.forward_dynamics(s, q, None, tau, method=m) for m in ("cut", "proximal"))
    close(cut, proximal, 1e-9)
    close(kf.forward_dynamics(s, q + 0.0, None, tau), dense(s, q, np.zeros(3), tau)[0], 1e-10)


@pytest.mark.parametrize(("name", "off"), [("four_bar", 0.4), ("delta_robot", 1.29), ("peaucellier", 2)])
def test_a_loop_that_is_open_is_not_taken_for_a_dead_centre(name, off):
    s = getattr(kf.models, name)()
    for call in (kf.as_estimation, kf.minimal_coordinates, kf.cross_check):
        with pytest.raises(ModelError, match=rf"is open by {off} \(m or rad\).*kf\.assemble"):
            call(s, s.neutral())


def test_a_configuration_that_does_not_exist_is_not_certified():
    s = kf.models.four_bar()
    open_by = max(np.abs(g).max() for g in gaps(s, [0.3, 0.2, 0.1]))
    with pytest.raises(ModelError, match=rf"coupler to rocker.*open by {open_by:.3g} .*kf\.assemble"):
        kf.cross_check(s, [0.3, 0.2, 0.1], samples=200)
    q = kf.models.four_bar_configuration(0.9)
    assert kf.cross_check(s, q.round(6), samples=2000).passed  # as it may be typed
    with pytest.raises(ModelError, match="open by"):
        kf.cross_check(s, q.round(3), samples=2000)


def test_loops_that_contradict_are_named():
    tree = kf.models.chain(6, seed=2)
    tip = tree.body_names[-1]
    s = tree.with_loops([kf.Loop(tip, None, "pose"), kf.Loop(None, tip, (3,), anchor=[0.0, 0, 0], name="second")])
    q = tree.random_configuration(1)
    with pytest.raises(ModelError, match="contradict"):
        kf.cut_joint(s, q, np.ones(6), np.zeros(6), reference=[0, 0, 0, 0, 0, 0, 50.0])
    with pytest.raises(ModelError, match=r"break loop"):
        kf.inverse_dynamics(s, q, np.zeros(6), np.ones(6))


def test_batches_pickles_and_couplings():
    """A floating humanoid with a coupled pair of joints, both feet on the ground."""
    robot = kf.models.humanoid()
    one = [b.hinge_name for b in robot.bodies if b.hinge.nv == 1]
    geared = kf.System(robot.bodies, frames=dict(robot.frames), couplings=[kf.Coupling(one[:2], [1.0, -0.5])])
    leaves = [b for b in robot.body_names if b not in {x.parent for x in robot.bodies}]
    s = geared.with_loops([kf.Loop(None, leaves[-1], "pose"), kf.Loop(None, leaves[-2], "point")])
    s = pickle.loads(pickle.dumps(s))
    rng = np.random.default_rng(0)
    q = np.stack([geared.random_configuration(rng) for _ in range(10)])
    v, tau = rng.normal(size=(2, 10, s.nv))
    a = kf.forward_dynamics(s, q, v, tau)
    for i in (0, 9):
        close(a[i], dense(s, q[i], v[i], tau[i])[0], 1e-9)
    close(kf.forward_dynamics(s, q, v, tau, method="embedding"), a, 1e-8)
    close(kf.forward_dynamics(s, q, v, tau, method="proximal"), a, 1e-8)
    assert [f.shape for f in kf.constraint_forces(s, q.reshape(2, 5, -1), None, tau[0])] == [(2, 5, 6), (2, 5, 3)]


def test_impacts():
    s, rng = kf.models.humanoid(), np.random.default_rng(1)
    s = s.with_loops([kf.Loop(None, s.body_names[-1], "point"), kf.Loop(None, s.body_names[4], "pose")])
    q, v = s.without_loops.random_configuration(rng), rng.normal(size=s.nv)
    J, M = constraint_jacobian(s, q), kf.mass_matrix(s.without_loops, q)
    for e in (0.0, 0.3, 1.0):
        after, impulses = kf.impact(s, q, v, restitution=e)
        close(J @ after, -e * J @ v, 1e-11) if e else None
        assert np.abs(J @ after + e * (J @ v)).max() < 1e-11
        close(M @ (after - v), J.T @ np.concatenate(impulses), 1e-10)
        lost = kf.kinetic_energy(s, q, v) - kf.kinetic_energy(s, q, after)
        gone = 0.5 * (v - after) @ M @ (v - after)
        assert np.isclose(lost, gone * (1 - e) / (1 + e), atol=1e-10)
    with pytest.raises(ModelError, match="from 0 to 1"):
        kf.impact(s, q, v, restitution=2.0)


def test_what_needs_a_choice_of_coordinates_says_so():
    s = kf.models.four_bar()
    for function in (kf.mass_matrix, kf.bias_forces, kf.mass_matrix_logdet, kf.mass_matrix_trace):
        with pytest.raises(ModelError, match="minimal_coordinates"):
            function(s, np.zeros(3))
    with pytest.raises(ModelError, match="no loops"):
        kf.constraint_forces(s.open_tree, np.zeros(3), None, np.zeros(3))
    with pytest.raises(ModelError, match="no loops"):
        kf.save_urdf(s)
    with pytest.raises(ModelError, match="method must be"):
        kf.forward_dynamics(s, np.zeros(3), None, np.zeros(3), method="mass_matrix")


EMPTY = {
    "filter": lambda s, q, v, **more: kf.forward_dynamics(s, q, v, v, **more),
    "embedding": lambda s, q, v, **more: kf.forward_dynamics(s, q, v, v, method="embedding", **more),
    "cut": lambda s, q, v, **more: kf.forward_dynamics(s, q, v, v, method="cut", **more),
    "proximal": lambda s, q, v, **more: kf.forward_dynamics(s, q, v, v, method="proximal", **more),
    "inverse": lambda s, q, v, **more: kf.inverse_dynamics(s, q, v, v, **more),
}


@pytest.mark.parametrize("how", EMPTY)
def test_no_states_have_no_answers(how):
    """A batch that happens to be empty, of two axes too, and with room for what there is not."""
    system = kf.models.delta_robot()
    for lead in ((0,), (3, 0, 2)):
        q, v = np.zeros((*lead, system.nq)), np.zeros((*lead, system.nv))
        out = np.empty((*lead, system.nv))
        assert EMPTY[how](system, q, v).shape == out.shape
        assert EMPTY[how](system, q, v, out=out) is out


def test_no_motions_and_no_impacts_of_a_closed_mechanism():
    system = kf.models.four_bar()
    q, v = np.zeros((0, system.nq)), np.zeros((0, system.nv))
    for method in ("rk4", "implicit", "euler", "symplectic"):
        assert kf.simulate(system, q, v, [0.0, 0.1], method=method).q.shape == (2, 0, system.nq)
    struck = kf.impact(system, q, v)
    assert struck.v.shape == (0, system.nv) and struck.impulses[0].shape == (0, len(system.loops[0].rows))
    assert kf.constraint_forces(system, q, v, v)[0].shape == (0, len(system.loops[0].rows))
    with pytest.raises(kf.errors.ShapeError, match=r"as_estimation takes one configuration, .* leading axes \(0,\)"):
        kf.as_estimation(system, q)
