"""Many right-hand sides against one tree: vectors per second, and how near that is to what the machine can do."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

import kfdyn as kf
from benchmarks.models import covariances, output_covariance, random_parent, transitions
from benchmarks.report import Report, seconds
from benchmarks.timing import Clock, best_of, environment

STATE, OUTPUT, NODES, VECTORS = 6, 1, 100, 100_000


def clock_for(threads: int) -> Clock:
    """The processor's clock for one thread, which ignores other work; the wall's for several."""
    return time.process_time if threads == 1 else time.perf_counter


def bandwidth(threads: int, budget: float, size: int = 2**24) -> float:
    """Bytes a second that ``b[:] = a`` reads and writes, arrays of 128 MB (beyond any cache), shared by threads."""
    a, b = np.ones(size), np.zeros(size)
    cuts = np.linspace(0, size, threads + 1).astype(int)
    parts = [slice(lo, hi) for lo, hi in pairwise(cuts)]
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            list(pool.map(lambda part: np.copyto(b[part], a[part]), parts))

        return 2 * a.nbytes / best_of(copy, budget, clock=clock_for(threads))


def peak_flops(threads: int, budget: float, size: int = 1024) -> float:
    """Flops a second of a BLAS matrix product: the multiply-add rate the processor reaches in practice."""
    a = np.random.default_rng(0).normal(size=(size, size))
    return 2 * size**3 / best_of(lambda: a @ a, budget, clock=clock_for(threads))


def limited(threads: int, run: Callable[[], float]) -> float:
    """``run()`` with that many threads, in kfdyn and in BLAS."""
    from threadpoolctl import threadpool_limits

    before = os.environ.get("KFDYN_NUM_THREADS")
    os.environ["KFDYN_NUM_THREADS"] = str(threads)
    try:
        with threadpool_limits(threads):
            return run()
    finally:
        if before is None:
            del os.environ["KFDYN_NUM_THREADS"]
        else:
            os.environ["KFDYN_NUM_THREADS"] = before


def reference(threads: int, budget: float) -> tuple[float, float]:
    """Bandwidth and peak flops that this many threads reach now."""
    return bandwidth(threads, budget), limited(threads, lambda: peak_flops(threads, budget))


def run(quick: bool = False) -> Report:
    from scipy.linalg import cho_factor, cho_solve

    vectors, budget = (4096, 0.2) if quick else (VECTORS, 4.0)
    rng = np.random.default_rng(0)
    parent = random_parent(rng, NODES)
    phi, Q = transitions(rng, NODES, STATE), covariances(rng, NODES, STATE)
    H, R = rng.normal(size=(NODES, OUTPUT, STATE)), covariances(rng, NODES, OUTPUT)
    F = kf.innovations_factor(kf.StateSpace(parent, phi, H, Q, R))
    T = rng.normal(size=(vectors, NODES * OUTPUT))
    dense = output_covariance(parent, phi, H, Q, R)
    lower, dense_inverse = cho_factor(dense), np.linalg.inv(dense)
    expected = np.linalg.solve(dense, T[:64].T).T
    gap = float(np.abs(F.solve(T)[:64] - expected).max() / np.abs(expected).max())
    if not gap < 1e-10:
        raise AssertionError(f"the dense solution is another one (relative difference {gap:.1e})")
    peers = {
        "kfdyn F.solve": lambda: F.solve(T),
        "dense Cholesky solve (scipy)": lambda: cho_solve(lower, T.T, check_finite=False),
        "product with a stored dense inverse": lambda: T @ dense_inverse,
    }
    least = 2 * T.nbytes  # T read once, a written once
    # two sweeps; in each, n × n blocks meet a vector once, n × m blocks twice
    flops = vectors * NODES * 2 * (2 * STATE**2 + 4 * STATE * OUTPUT)
    available = sorted({1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1})
    rows, runs, machine = [], {}, {}
    for threads in available:
        before = reference(threads, budget / 4)
        clock = clock_for(threads)
        times = {
            name: limited(threads, lambda run=call, clock=clock: best_of(run, budget, clock=clock))
            for name, call in peers.items()
        }
        # The better of two: other work can only hide what a machine can do.
        speed, peak = machine[threads] = tuple(map(max, before, reference(threads, budget / 4)))
        for name, best in times.items():
            label = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
            of_peak = f"{flops / best / peak:.0%}" if name.startswith("kfdyn") else ""
            rows.append([label, seconds(best), f"{vectors / best:,.0f}", f"{least / best / speed:.0%}", of_peak])
            runs[label] = best
    speeds = ", ".join(f"{t}: {speed / 1e9:.1f}" for t, (speed, _) in machine.items())
    peaks = ", ".join(f"{t}: {peak / 1e9:.0f}" for t, (_, peak) in machine.items())
    return Report(
        "batch",
        f"{vectors:,} right-hand sides on a random tree of {NODES} nodes: state {STATE}, output {OUTPUT}",
        ["", "time", "vectors per second", "of bandwidth", "of peak flops"],
        rows,
        environment(["kfdyn", "numpy", "scipy", "llvmlite"]),
        [
            f"Bandwidth (numpy copy, read + write), GB/s by threads: {speeds}. The fraction counts only T "
            "in and a out; F.solve also writes ε and ν and reads ν again, 2.5 times as much.",
            "One thread by the processor's clock; several by the wall's, so that their rows need an idle machine.",
            f"All agree with 𝓜 formed densely from its definition: relative difference {gap:.0e}.",
            f"Peak (BLAS matrix product), Gflop/s by threads: {peaks}.",
            f"At {NODES} nodes the dense peers need about as many flops as the tree ({2 * NODES**2:,} against "
            f"{flops // vectors:,} a vector), all in BLAS; their cost grows as N², that of the tree as N.",
        ],
        {
            "vectors": vectors,
            "nodes": NODES,
            "flops": flops,
            "least_bytes": least,
            "seconds": runs,
            "bandwidth_and_peak_flops": machine,
            "relative_difference": gap,
        },
    )
