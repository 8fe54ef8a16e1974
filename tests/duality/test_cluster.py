"""The cross-check on a real Dask cluster of two processes, one of which dies on the way."""

import os
import signal
import threading
import time
from unittest import mock

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality import cross_check, monte_carlo
from kfdyn.duality.monte_carlo import chunk_size, stream

distributed = pytest.importorskip("distributed")

# The peers' own warnings and log lines on the death of a worker are no errors of ours.
pytestmark = pytest.mark.filterwarnings("ignore")

ARM, Q = kf.models.double_pendulum(), [0.3, 0.4]


def process_id():
    return os.getpid()


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    # Dask leaves hash seed and numbers of threads for its workers in this process: other tests are not to hand them on
    with (
        mock.patch.dict(os.environ),
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(cross_check, ARM, Q, samples=100)
        yield client


def test_a_cluster_gives_the_same_numbers(client):
    size = chunk_size(kf.as_estimation(ARM, Q))
    alone = cross_check(ARM, Q, [1.0, -1.0], samples=3 * size + 7, seed=4)
    together = cross_check(ARM, Q, [1.0, -1.0], samples=3 * size + 7, seed=4, client=client)
    for name, finding in alone.findings.items():
        np.testing.assert_allclose(together.findings[name].sampled, finding.sampled, rtol=1e-13, atol=1e-15)
    assert [t.p_value for t in together.tests] == pytest.approx([t.p_value for t in alone.tests], rel=1e-9)
    np.testing.assert_array_equal(together.histogram, alone.histogram)


def test_a_cluster_sees_loops_and_gears(client):
    """What goes to the workers is the closed system, not its open tree."""
    chain = kf.models.uniform_chain(3)
    geared = kf.System(chain.bodies, couplings=[kf.Coupling(list(chain.hinge_names[:2]), [1.0, 2.0])])
    for system, q in (
        (kf.models.four_bar(), kf.models.four_bar_configuration(0.4)),
        (geared, geared.neutral() + 0.3),
    ):
        alone = cross_check(system, q, samples=2000, seed=4)
        together = cross_check(system, q, samples=2000, seed=4, client=client)
        assert alone.passed and together.passed
        for name, finding in alone.findings.items():
            np.testing.assert_allclose(together.findings[name].sampled, finding.sampled, rtol=1e-12, atol=1e-14)
        there = client.submit(kf.mass_matrix_inverse, system, q).result()
        np.testing.assert_array_equal(there, kf.mass_matrix_inverse(system, q))
        assert not np.allclose(
            there, kf.mass_matrix_inverse(system.open_tree, system.expand(q))[: len(there), : len(there)]
        )


def test_a_worker_killed_on_the_way_loses_nothing(client, monkeypatch):
    """It is stopped first, and killed once the scheduler has given it work that nobody else has done by then."""
    size = chunk_size(kf.as_estimation(ARM, Q))
    samples = 60 * size
    address, victim = next(iter(client.run(process_id).items()))
    on_the_way, stopped, done = threading.Event(), threading.Event(), {}

    def held(*args):
        for i, chunk in enumerate(stream(*args)):
            if i == 3:
                on_the_way.set()
                stopped.wait()
            yield chunk

    def run():
        done["report"] = cross_check(ARM, Q, samples=samples, seed=4, client=client)

    def wait_for(condition):
        while not condition():
            assert thread.is_alive(), "the run was over before a worker could be killed"
            time.sleep(0.01)

    monkeypatch.setattr(monte_carlo, "stream", held)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for(on_the_way.is_set)
    os.kill(victim, signal.SIGSTOP)
    stopped.set()
    wait_for(lambda: client.processing()[address])
    os.kill(victim, signal.SIGKILL)
    thread.join()
    monkeypatch.undo()
    report = done["report"]
    assert report.samples == samples
    assert report.passed
    alone = cross_check(ARM, Q, samples=samples, seed=4)
    np.testing.assert_array_equal(report.histogram, alone.histogram)
    np.testing.assert_allclose(report.findings["a"].sampled, alone.findings["a"].sampled, rtol=1e-13)
    client.wait_for_workers(2)  # a cluster that is closed while it replaces a worker waits for that one in vain
