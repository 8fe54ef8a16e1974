"""How a time is taken, and on what."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def best_of(run: Callable[[], object], seconds: float, repeats: int = 3) -> float:
    """Shortest time of ``run``, in seconds, over at least ``repeats`` calls and at least ``seconds``.

    The minimum, because other work on a machine can only make a run slower. The first call compiles and is not
    counted.
    """
    run()
    shortest, begun, done = float("inf"), time.perf_counter(), 0
    while done < repeats or time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        run()
        shortest = min(shortest, time.perf_counter() - start)
        done += 1
    return shortest


def race(runs: dict[str, Callable[[], object]], seconds: float, laps: int = 3) -> dict[str, float]:
    """Shortest time of each run, the peers taking turns so that a busy spell of the machine hits all of them."""
    shortest = dict.fromkeys(runs, float("inf"))
    for _ in range(laps):
        for name, run in runs.items():
            shortest[name] = min(shortest[name], best_of(run, seconds / laps))
    return shortest


def environment(packages: Sequence[str]) -> dict[str, str]:
    """Processor, cores, load, Python and the versions of what was timed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
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
