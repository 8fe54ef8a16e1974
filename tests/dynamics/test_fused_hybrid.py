"""The fused hybrid dynamics against the generic engine, and what it reads of what it is given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.hybrid import HYBRID
from kfdyn.errors import KfdynError
from kfdyn.multibody.calls.packed_model import model_of


def motion(system, rng, size):
    q = np.stack([system.random_configuration(rng) for _ in range(size)]) if size else np.zeros((0, system.nq))
    return q, *rng.normal(size=(3, size, system.nv)), rng.normal(size=(size, system.n_bodies, 6))


def engine(system, q, v, tau, a, mask, force, gravity):
    """All of tau and a by the generic filter with measurements missing, one state after the other."""
    given = np.where(mask, a, 0.0)
    out = np.empty((2, *tau.shape))
    for b in range(len(q)):
        ss = kf.as_estimation(system, q[b], v[b], force[b], gravity)
        op = kf.Operators(ss)
        filt = kf.kalman_filter(ss, np.where(mask, np.nan, tau[b]), eta=ss.eta + op.H.H @ given[b])
        smooth = kf.bryson_frazier(ss, filt, covariances=False)
        out[1, b] = given[b] + smooth.a
        out[0, b] = op.H @ smooth.x.flat + op.R @ out[1, b]
    return out


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from([1, 2, 7, 8, 9, 17]), st.floats(0, 1))
def test_hybrid_is_the_engine(n, seed, size, share):
    """SKO:hybrid on random trees of every hinge, hinges split; 1e-12 of the largest force, through 𝓜 for a."""
    system, rng = kf.models.random_tree(n, seed=seed), np.random.default_rng(seed)
    q, v, tau, a, force = motion(system, rng, size)
    g, mask = rng.normal(size=3), rng.random(system.nv) < share
    unread = np.where(mask, np.nan, tau), np.where(mask, a, np.nan)
    answers, fine = HYBRID.attempt(system, (mask.astype(np.int64), q, v, *unread, force, g))
    assert fine
    expected = engine(system, q, v, tau, a, mask, force, g)
    np.testing.assert_array_equal(answers[0][:, ~mask], tau[:, ~mask])
    np.testing.assert_array_equal(answers[1][:, mask], a[:, mask])
    M = kf.mass_matrix(system, q)
    scale = (np.abs(M) @ np.abs(expected[1])[..., None]).max(initial=0.0) + np.abs(expected[0]).max(initial=1.0)
    residual = M @ (answers[1] - expected[1])[..., None]
    np.testing.assert_array_less(np.abs(residual), 1e-12 * scale)
    np.testing.assert_array_less(np.abs(answers[0] - expected[0]), 1e-12 * scale)


def test_nothing_prescribed_is_forward_dynamics_to_the_bit():
    system, rng = kf.models.random_tree(11, seed=2), np.random.default_rng(0)
    q, v, tau, a, force = motion(system, rng, 9)
    marked = np.zeros(system.nv, dtype=np.int64)
    got, fine = HYBRID.attempt(system, (marked, q, v, tau, a, force, None))
    assert fine
    np.testing.assert_array_equal(got[0], tau)
    np.testing.assert_array_equal(got[1], kf.forward_dynamics(system, q, v, tau, force))


@pytest.mark.parametrize("size", [0, 1, 7, 17, 4097])
def test_results_do_not_depend_on_batch_size_or_threads(size, monkeypatch):
    system, rng = kf.models.random_tree(9, seed=5), np.random.default_rng(size)
    q, v, tau, a, force = motion(system, rng, size)
    mask = np.arange(system.nv) % 2 == 0
    answers = []
    for workers in ("1", "2", "3"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", workers)
        answers.append(np.array(kf.hybrid_dynamics(system, q, v, tau, a, mask, force)))
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0], other)
    for b in range(0, size, 1000):
        alone = kf.hybrid_dynamics(system, q[b], v[b], tau[b], a[b], mask, force[b])
        np.testing.assert_array_equal(alone, answers[0][:, b])


def test_arguments_of_any_kind():
    """Broadcast, strided, read-only and 32-bit arguments, and lists: the answers of plain arrays."""
    system, rng = kf.models.puma560(), np.random.default_rng(1)
    q, v, tau, a, force = (x.astype(np.float32) for x in motion(system, rng, 6))
    mask = [False, True, True, False, True, False]
    plain = [x.astype(float) for x in (q, v, tau, a)]
    expected = kf.hybrid_dynamics(system, *plain, mask, force.astype(float))
    strided = [np.asfortranarray(x) for x in plain]
    for x in plain:
        x.flags.writeable = False
    for given_ in ((q, v, tau, a), strided, plain, [x.tolist() for x in plain]):
        np.testing.assert_array_equal(kf.hybrid_dynamics(system, *given_, mask, force), expected)
    whole = kf.hybrid_dynamics(system, plain[0][:, None], plain[1], plain[2], plain[3][2], mask)
    assert whole[0].shape == whole[1].shape == (6, 6, 6)
    one = kf.hybrid_dynamics(system, plain[0][3], plain[1][4], plain[2][4], plain[3][2], mask)
    np.testing.assert_array_equal(np.array(whole)[:, 3, 4], one)
    np.testing.assert_array_equal(
        kf.hybrid_dynamics(system, plain[0], None, *plain[2:], mask),
        kf.hybrid_dynamics(system, plain[0], np.zeros((6, 6)), *plain[2:], mask),
    )


@pytest.mark.parametrize("which", range(4))
def test_only_what_is_read_is_looked_at(which):
    """NaN in the last row: refused by name where it is read, of no effect where it is not."""
    system, rng = kf.models.puma560(), np.random.default_rng(1)
    given_ = list(motion(system, rng, 300)[:4])
    mask = np.arange(6) < 3
    expected = kf.hybrid_dynamics(system, *given_, mask)
    for dof in (1, 4):
        faulty = [x.copy() for x in given_]
        faulty[which][299, dof] = np.nan
        if (which == 2 and mask[dof]) or (which == 3 and not mask[dof]):
            np.testing.assert_array_equal(kf.hybrid_dynamics(system, *faulty, mask), expected)
        else:
            with pytest.raises(KfdynError, match=rf"^{('q', 'v', 'tau', 'a')[which]} has entries that are not finite"):
                kf.hybrid_dynamics(system, *faulty, mask)


def test_lanes_and_plain_numbers_do_not_show():
    from kfdyn.dynamics.recursions.hybrid import HYBRID

    system, rng = kf.models.random_tree(9, seed=3), np.random.default_rng(0)
    q, v, tau, a, force = motion(system, rng, 11)
    mask, model = np.arange(system.nv) % 3 == 1, model_of(system)
    expected = kf.hybrid_dynamics(system, q, v, tau, a, mask, force)
    for rows, enter in ((11, HYBRID.compiled(2)), (1, lambda address, _, *args: HYBRID.plain(model, *args))):
        got = np.full((2, rows, system.nv), np.nan)
        arrays = [x[:rows] for x in (q, v, tau, a, force)]
        assert enter(model.address, 0, mask.astype(np.int64), *arrays, system.gravity, *got) == 1
        for one, wanted in zip(got, expected):
            # a float may be rounded otherwise than a lane: the compiler fuses other products
            atol = 1e-11 * np.abs(wanted).max() * (rows == 1)
            np.testing.assert_allclose(one, wanted[:rows], rtol=0, atol=atol)
