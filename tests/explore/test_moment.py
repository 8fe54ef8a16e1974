"""The explorer's numbers against dense algebra and hybrid dynamics."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.explore.moment import Mode, Moment, pulled, solve


def random_moment(seed, n=7):
    rng = np.random.default_rng(seed)
    system = kf.models.random_tree(n, seed=seed)
    moment = Moment(
        system,
        system.random_configuration(rng),
        rng.normal(size=system.nv),
        rng.normal(size=system.nv),
        tuple(rng.choice(list(Mode), n)),
        rng.uniform(0.1, 1, system.nv),
        rng.normal(size=system.nv),
    )
    return moment


@pytest.mark.parametrize("seed", range(12))
def test_accelerations_are_hybrid_dynamics(seed):
    moment = random_moment(seed)
    s, known = moment.system, moment.known
    extra = np.diag(np.where(moment.dofs(Mode.ROTOR), moment.rotor, 0.0))
    M = kf.mass_matrix(s, moment.q) + extra
    c = kf.bias_forces(s, moment.q, moment.v)
    f = np.flatnonzero(~known)
    wanted = moment.given.copy()
    wanted[f] = np.linalg.solve(M[np.ix_(f, f)], (moment.tau - c - M[:, known] @ moment.given[known])[f])
    got = solve(moment)
    np.testing.assert_allclose(got.a, wanted, rtol=1e-9, atol=1e-9 * (1 + abs(wanted).max()))
    np.testing.assert_allclose(got.causes.sum(axis=0)[f], wanted[f], rtol=1e-9, atol=1e-9 * (1 + abs(wanted).max()))
    np.testing.assert_allclose(got.mass_matrix, M, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got.inverse[np.ix_(f, f)] @ M[np.ix_(f, f)], np.eye(f.size), atol=1e-8)
    assert np.isclose(got.logdet, np.linalg.slogdet(M[np.ix_(f, f)])[1])
    assert np.array_equal(np.isnan(got.D), known)


def test_articulated_inertia_of_a_free_hinge_gives_way():
    arm = kf.models.puma560()
    moment = Moment.at_rest(arm, [0.1, -0.8, 0.3, 0.2, 0.5, 0.1])
    free, locked = solve(moment), solve(moment.with_mode("joint_3", Mode.LOCKED))
    k = arm.hinge_index("joint_3")
    assert np.linalg.eigvalsh(free.P[k] - free.P_plus[k]).max() > 0.01
    np.testing.assert_array_equal(locked.P[k], locked.P_plus[k])


def test_parts_are_the_forces_of_newton_euler():
    moment = random_moment(3)
    moment = Moment(moment.system, moment.q, moment.v, moment.tau, (Mode.FREE,) * 7, moment.rotor, moment.rate)
    parts = solve(moment).parts
    split = kf.decompose_forces(moment.system, moment.q, moment.v, moment.tau)
    for k in range(7):
        np.testing.assert_allclose(parts[k, 0], split.terminal.force[k], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(parts[k, 3], split.articulated.inertial[k], rtol=1e-8, atol=1e-8)


def test_pulled_leaves_locked_hinges_alone_and_stretches_without_a_jump():
    arm = kf.models.puma560()
    start = Moment.at_rest(arm, [0.1, -0.8, 0.3, 0.2, 0.5, 0.1]).with_mode("joint_1", Mode.LOCKED)
    there = pulled(start, arm.body_names[-1], solve(start).position[-1] + [0.02, 0.0, 0.03], steps=30)
    assert there.q[0] == start.q[0]
    far = pulled(start, arm.body_names[-1], [100.0, 0.0, 0.0], steps=30)
    assert np.isfinite(far.q).all()


def test_all_locked():
    moment = Moment.at_rest(kf.models.double_pendulum())
    for hinge in moment.system.hinge_names:
        moment = moment.with_mode(hinge, Mode.LOCKED)
    numbers = solve(moment)
    assert not numbers.a.any()
    assert numbers.logdet == 0.0
    assert np.array_equal(pulled(moment, moment.system.body_names[-1], [1, 1, 1]).q, moment.q)


def test_ellipsoids_are_the_blocks():
    """Turning and stretching a unit ball gives the points of Σ^½ u; a ball that is not chosen has no size."""
    from kfdyn.explore.scene import ellipsoids
    from kfdyn.spatial import quaternion_to_matrix

    rng = np.random.default_rng(0)
    roots = rng.normal(size=(5, 3, 3))
    blocks = roots @ roots.swapaxes(1, 2)
    turn, stretch = ellipsoids(blocks, 2.0, [0, 1, 3])
    for k in (0, 1, 3):
        R = quaternion_to_matrix(np.roll(turn[k].astype(float), -1))
        np.testing.assert_allclose(
            R @ np.diag(stretch[k].astype(float) ** 2) @ R.T, 4.0 * blocks[k], rtol=1e-5, atol=1e-4
        )
    assert stretch[[2, 4]].max() < 1e-8
