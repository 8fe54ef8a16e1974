"""How a time is taken, and on what."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import kfdyn

Clock = Callable[[], float]


def best_of(run: Callable[[], object], budget: float, repeats: int = 3, clock: Clock = time.process_time) -> float:
    """Shortest time of ``run``, in seconds, over at least ``repeats`` calls and at least ``budget`` seconds.

    The minimum, because other work on a machine can only make a run slower; and by the processor's clock, because on
    a busy machine a short run may fit between two interruptions and a long one never does, which would flatter the
    faster peer. Work of several threads needs ``clock=time.perf_counter`` and an idle machine. The first call compiles
    and is not counted.
    """
    run()
    shortest, begun, done = float("inf"), time.perf_counter(), 0
    while done < repeats or time.perf_counter() - begun < budget:
        start = clock()
        run()
        took = clock() - start
        if took > 0:  # a process that is moved to another core may see its clock stand still
            shortest = min(shortest, took)
        done += 1
    return shortest


def race(runs: dict[str, Callable[[], object]], budget: float, laps: int = 3) -> dict[str, float]:
    """Shortest processor time of each run, the peers taking turns so that a busy spell hits all of them."""
    shortest = dict.fromkeys(runs, float("inf"))
    for _ in range(laps):
        for name, run in runs.items():
            shortest[name] = min(shortest[name], best_of(run, budget / laps))
    return shortest


def environment(packages: Sequence[str]) -> dict[str, str]:
    """Processor, cores, load, Python and the versions of what was timed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = kfdyn.__version__ if package == "kfdyn" else "not installed"  # it may be on the path alone
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "processor": _processor(),
        "cores": str(cores),
        "load at the start": load,
        "python": platform.python_version(),
        **found,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
