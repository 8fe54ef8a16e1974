"""The quick way beside the long one: the same answers to the bit, the same words where there is no answer."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import KfdynError
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.quantities import quantities
from kfdyn.sweeps import entry as entries
from kfdyn.sweeps import thread_pool

SYSTEMS = {
    "arm": kf.models.puma560,
    "humanoid": kf.models.humanoid,
    "every hinge": lambda: kf.models.random_tree(14, seed=3),
}
CALLS = {
    name: lambda s, q, v, u, f=None, g=None, of=of: of(s, q=q, v=v, tau=u, a=u, external_forces=f, gravity=g)
    for name, of in quantities().items()
    if not name.endswith("_derivatives")  # which answer three arrays
} | {
    "hybrid": lambda s, q, v, u, f=None, g=None: np.stack(
        kf.hybrid_dynamics(s, q, v, u, u, np.arange(s.nv) % 3 == 2, f, g), -1
    ),
    "compliance": lambda s, q, v, u, f=None, g=None: kf.operational_space_compliance(s, q, s.body_names[::3]),
}


class Subclass(np.ndarray):
    """An array that is not plainly one."""


@pytest.fixture(params=SYSTEMS)
def system(request):
    return SYSTEMS[request.param]()


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


def states(system, size, seed=0):
    rng = np.random.default_rng(seed)
    q = np.stack([system.random_configuration(rng) for _ in range(size)])
    return q, *rng.normal(size=(2, size, system.nv)), rng.normal(size=(size, system.n_bodies, 6)), rng.normal(size=3)


@pytest.fixture
def no_long_way(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("went the long way")

    monkeypatch.setattr(States, "of", refuse)


def test_one_state_is_a_batch_of_one_is_a_list(system, call):
    q, v, u, f, g = states(system, 9)
    batch = call(system, q, v, u, f, g)
    for b in range(9):
        np.testing.assert_array_equal(call(system, q[b], v[b], u[b], f[b], g), batch[b])
    for b in (0, 8):  # the long way
        lists = [x[b].tolist() for x in (q, v, u, f)]
        np.testing.assert_array_equal(call(system, *lists, g.tolist()), batch[b])
    np.testing.assert_array_equal(call(system, q, None, u), call(system, q, np.zeros_like(v), u))
    np.testing.assert_array_equal(call(system, q[0], None, u[0]), call(system, q[0], np.zeros_like(v[0]), u[0]))


@pytest.mark.usefixtures("no_long_way")
def test_plain_arrays_never_go_the_long_way(system, call):
    """Rows, columns, negative strides and read-only arrays of one state; contiguous batches with any leading axes."""
    q, v, u, f, g = states(system, 6)
    expected = call(system, q, v, u, f, g)
    shaped = [x.reshape(2, 3, *x.shape[1:]) for x in (q, v, u, f)]
    np.testing.assert_array_equal(call(system, *shaped, g), expected.reshape(2, 3, *expected.shape[1:]))
    np.testing.assert_array_equal(call(system, *(np.asfortranarray(x)[1] for x in (q, v, u, f)), g), expected[1])
    backwards = [x[1, ..., ::-1].copy()[..., ::-1] for x in (q, v, u, f)]
    assert backwards[0].strides[0] < 0
    np.testing.assert_array_equal(call(system, *backwards, g), expected[1])
    for x in (q, v, u, f, g):
        x.flags.writeable = False
    np.testing.assert_array_equal(call(system, q[1], v[1], u[1], f[1], g), expected[1])
    np.testing.assert_array_equal(call(system, q, v, u, f, g), expected)
    assert len(call(system, q[:0], v[:0], u[:0], f[:0], g)) == 0
    for result in (call(system, q[1], v[1], u[1]), call(system, q, v, u)):
        assert result.flags.c_contiguous and result.flags.writeable and result.dtype == np.float64


def test_other_types_come_to_the_same(system, call):
    q, v, u, f, g = states(system, 5)
    if system.nq == system.nv:  # a quaternion of floats32 is not of unit length to 1e-6
        q = q.astype(np.float32)
    v, u, f = (x.astype(np.float32) for x in (v, u, f))
    expected = call(system, q.astype(float), v.astype(float), u.astype(float), f.astype(float), g)
    np.testing.assert_array_equal(call(system, q, v, u, f, g), expected)
    np.testing.assert_array_equal(call(system, q[2], v[2], u[2], f[2], g), expected[2])
    np.testing.assert_array_equal(call(system, q[2].astype(">f8"), v[2], u[2], f[2], g), expected[2])
    np.testing.assert_array_equal(call(system, q[2].view(Subclass), v[2], u[2], f[2], g), expected[2])


@pytest.mark.parametrize("fault", ["nan", "inf", "short", "long", "too many axes", "empty", "words", "complex"])
@pytest.mark.parametrize("which", range(5), ids=["q", "v", "u", "external_forces", "gravity"])
@pytest.mark.parametrize("size", [None, 9])
def test_errors_are_those_of_the_long_way(size, which, fault):
    """Whatever is wrong with an array, it is said as it would be of the same numbers in a list."""
    system = kf.models.humanoid()
    given = [np.array(x) for x in states(system, 9)]
    if size is None:
        given = [x[0] if i < 4 else x for i, x in enumerate(given)]
    bad = given[which]
    if fault in ("nan", "inf"):
        bad.reshape(-1)[-1] = float(fault)
    elif fault == "short":
        bad = bad[..., :-1]
    elif fault == "long":
        bad = np.concatenate([bad, bad[..., :1]], -1)
    elif fault == "too many axes":
        bad = np.broadcast_to(bad[..., None], (*bad.shape, 2)).copy()
    elif fault == "empty":
        bad = np.empty(0)
    else:
        bad = bad.astype(str if fault == "words" else complex)
    given[which] = bad
    for name in ("forward_dynamics", "inverse_dynamics"):
        with pytest.raises(KfdynError) as quickly:
            CALLS[name](system, *given)
        with pytest.raises(KfdynError) as slowly:
            CALLS[name](system, *(x.tolist() for x in given))
        if fault not in ("words", "complex"):  # these print what they were given
            assert str(quickly.value) == str(slowly.value)
        label = ("q", "v", {"forward_dynamics": "tau", "inverse_dynamics": "a"}[name], "external_forces", "gravity")[
            which
        ]
        assert str(quickly.value).startswith((label, "hinge", "the leading axes"))


def test_a_quaternion_too_long_is_named(call):
    system = kf.models.humanoid()
    q, v, u, _, _ = states(system, 300)
    q[299, 3:7] *= 1.001
    for one in ((q, v, u), (q[299], v[299], u[299])):
        with pytest.raises(KfdynError, match=r"the quaternion \(x, y, z, w\) in q has length 1.001, not 1"):
            call(system, *one)
    q[299, 3:7] /= 1.001 * (1 + 1e-7)  # an integrator's drift
    call(system, q, v, u)


def test_a_hinge_without_inertia_is_named():
    """In one state and in the last block of a batch alike."""
    system = kf.models.humanoid()
    light = kf.System([*system.bodies, kf.Body("tool", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), "head")])
    q, v, u, _, _ = states(light, 270)
    for one in ((q, v, u), (q[0], v[0], u[0])):
        for call in (CALLS[name] for name in ("forward_dynamics", "mass_matrix_inverse", "hybrid", "compliance")):
            with pytest.raises(KfdynError, match=r"hinge 'tool'.*nothing outboard of it has mass"):
                call(light, *one)
        assert np.isfinite(CALLS["inverse_dynamics"](light, *one)).all()


def test_results_are_fresh_and_inputs_untouched(system, call):
    q, v, u, f, g = states(system, 4)
    kept = [x.copy() for x in (q, v, u, f, g)]
    first = call(system, q[0], v[0], u[0], f[0], g)
    copied = first.copy()
    second = call(system, q[1], v[1], u[1], f[1], g)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, copied)
    for x, before in zip((q, v, u, f, g), kept):
        np.testing.assert_array_equal(x, before)


def test_many_threads_at_once(system, call):
    q, v, u, f, g = states(system, 64)
    expected = call(system, q, v, u, f, g)

    def ask(b):
        return [call(system, q[b], v[b], u[b], f[b], g) for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        for b, answers in enumerate(pool.map(ask, range(64))):
            for answer in answers:
                np.testing.assert_array_equal(answer, expected[b])


def test_a_batch_in_threads_is_the_batch(system, call, monkeypatch):
    monkeypatch.setattr(entries, "_LEAST", 64)  # so that a small batch is shared
    q, v, u, f, g = states(system, 301)
    answers = []
    for workers in ("1", "2", "5", "300"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", workers)
        answers.append(call(system, q, v, u, f, g))
        q[300, 0] = np.nan  # in the part of the last thread
        with pytest.raises(KfdynError, match="q has entries that are not finite"):
            call(system, q, v, u, f, g)
        q[300, 0] = 0.0
        answers[-1] = answers[-1][:300]
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0], other)


def test_every_row_is_done_once_and_one_failure_is_told(monkeypatch):
    """Whichever thread comes first; rows that nobody did would stay NaN."""
    arm = kf.models.puma560()
    monkeypatch.setattr(entries, "_LEAST", 1)
    for workers in (1, 2, 3, 7):
        monkeypatch.setenv("KFDYN_NUM_THREADS", str(workers))
        for rows in (0, 1, 7, 8, 9, 127, 128, 129, 1000):
            q, v, u, _, _ = states(arm, rows) if rows else (np.zeros((0, 6)),) * 5
            a = kf.forward_dynamics(arm, q, v, u)
            for b in range(0, rows, 100):
                np.testing.assert_array_equal(a[b], kf.forward_dynamics(arm, q[b], v[b], u[b]))
            assert np.isfinite(a).all()


def test_what_threads_work_on_outlives_an_interrupted_call(monkeypatch):
    """They have only addresses: of the counter, and of the system's table."""
    monkeypatch.setattr(entries, "_LEAST", 1)
    monkeypatch.setenv("KFDYN_NUM_THREADS", "2")
    begun, interrupted, ended, alive = *(threading.Event() for _ in range(3)), []
    arm, here = kf.models.puma560(), threading.get_ident()
    addressed = [weakref.ref(model_of(arm).tables["index"])]
    monkeypatch.setattr(entries, "address_of", lambda array: addressed.append(weakref.ref(array)) or 1)

    def enter(*args):
        if threading.get_ident() == here:
            assert begun.wait(600)
            raise KeyboardInterrupt
        begun.set()
        interrupted.wait(600)
        alive.extend(array() is not None for array in addressed)
        ended.set()
        return 1

    from kfdyn.dynamics.recursions.forward import FORWARD

    monkeypatch.setattr(FORWARD, "wide", enter)
    share = thread_pool.POOL.share

    def shared(work, threads):
        try:
            return share(work, threads)
        finally:
            interrupted.set()

    monkeypatch.setattr(thread_pool.POOL, "share", shared)
    q, v, u, _, _ = states(arm, 100)
    helper = threading.Timer(0.5, interrupted.set)
    helper.start()
    try:
        kf.forward_dynamics(arm, q, v, u)
    except KeyboardInterrupt:  # pytest.raises would keep the frame
        del arm
    gc.collect()
    assert ended.wait(600) and all(alive) and len(alive) >= 2
    helper.join()


def test_without_dofs_numbers_are_looked_at_all_the_same():
    bench = kf.System([kf.Body("bench", np.diag([0, 0, 0, 1.0, 1.0, 1.0]), kf.Hinge.fixed())])
    none = np.zeros((5, 0))
    for call in (kf.forward_dynamics, kf.inverse_dynamics):
        assert call(bench, none, none, none).shape == (5, 0)
        with pytest.raises(KfdynError, match="gravity"):
            call(bench, none, none, none, None, np.array([0.0, np.nan, 0.0]))


def test_threads_share_a_system_and_its_room():
    """One thread works in the system's own room, the others in new room: same answers, and the room is free again."""
    system = kf.models.random_tree(20, seed=1)
    q, v, u, f, _ = states(system, 64)
    alone = kf.forward_dynamics(system, q, v, u, f)
    with ThreadPoolExecutor(8) as pool:
        for a in pool.map(lambda _: kf.forward_dynamics(system, q, v, u, f), range(64)):
            np.testing.assert_array_equal(a, alone)
    assert system._kept[0].tables["busy"][0] == 0


FORKED = """
import os, numpy as np, kfdyn as kf
os.environ["KFDYN_NUM_THREADS"] = "2"
arm, rng = kf.models.puma560(), np.random.default_rng(0)
q, v, tau = rng.normal(size=(3, 4096, 6))
here = kf.forward_dynamics(arm, q, v, tau)
child = os.fork()
if not child:
    same = (kf.forward_dynamics(arm, q, v, tau) == here).all()  # hangs if it waits for its parent's threads
    os._exit(0 if same else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_process_has_threads_of_its_own():
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=1200, check=False).returncode == 0


def test_a_system_carries_its_table(system):
    """A table holds addresses: copies must have their own, which live as long as they do."""
    q, v, u, _, _ = states(system, 1)
    expected = kf.forward_dynamics(system, q[0], v[0], u[0])
    copies = [pickle.loads(pickle.dumps(system)), copy.copy(system), copy.deepcopy(system)]
    assert all(other.address == 0 for other in copies)  # prepared when first asked
    for other in copies:
        kf.mass_matrix(other, q)
    assert len({system.address, *(other.address for other in copies)}) == 4
    del system
    gc.collect()
    for other in copies:
        np.testing.assert_array_equal(kf.forward_dynamics(other, q[0], v[0], u[0]), expected)


def test_threads_prepare_a_system_once():
    """All that come at once get the one table, which nobody replaces while another reads it."""
    for seed in range(20):
        fresh = kf.models.random_tree(30, seed=seed)
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(lambda _, fresh=fresh: model_of(fresh).address, range(8)))) == 1
