"""What a user waits for: the import, the first call after installation, the first call of a later session."""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.report import Report, seconds
from benchmarks.timing import environment

# Prints one JSON line: wall and processor seconds of each stage of a fresh process, its imports not counted.
CLOCK = """
import json, time
stages = {}
def clock():
    return time.perf_counter(), time.process_time()
def lap(name, start):
    stages[name] = [now - then for now, then in zip(clock(), start)]
import numpy as np
import kfdyn as kf
"""
STAGES = """
ragged = [1, 2, -1, 2], [6, 3, 6, 4], [1, 0, 2, 1]
parent, n, m = ragged
start = clock()
ss = kf.StateSpace(parent, [np.ones((n[p], k)) if p >= 0 else None for p, k in zip(parent, n)],
                   [np.ones((j, k)) * np.arange(1, j + 1)[:, None] ** np.arange(k) for j, k in zip(m, n)],
                   [np.eye(k) for k in n], [np.eye(j) for j in m])
T = np.ones(sum(m))
filt = kf.kalman_filter(ss, T)
smooth = kf.bryson_frazier(ss, filt)
smooth.x, smooth.S, filt.llf
lap("small ragged tree: StateSpace, kalman_filter, bryson_frazier", start)
start = clock()
one = np.ones((1, 1))
ss = kf.StateSpace.chain(one, one, one, one, [0.0], one, steps=100)
filt = kf.kalman_filter(ss, np.ones(100))
smooth = kf.bryson_frazier(ss, filt)
smooth.x, smooth.S, filt.llf
lap("then a uniform chain of 100", start)
start = clock()
batch = kf.kalman_filter(ss, np.ones((32, 100)))
kf.bryson_frazier(ss, batch).x
kf.innovations_factor(ss).solve(np.ones((32, 100)))
lap("then a batch of 32", start)
"""
ALONE = """
start = clock()
F, h, one = 0.9 * np.eye({n}), np.ones((1, {n})), np.ones((1, 1))
ss = kf.StateSpace.chain(F, h, np.eye({n}), one, np.zeros({n}), np.eye({n}), steps=100)
filt = kf.kalman_filter(ss, np.ones(100))
smooth = kf.bryson_frazier(ss, filt)
smooth.x, smooth.S, filt.llf
lap("nothing but a uniform chain of 100, states of {n}", start)
"""
PRINT = "print(json.dumps(stages))"


def stages(code: str, cache: str) -> dict[str, list[float]]:
    """Wall and processor seconds of each stage of the code, in a fresh process with the given cache."""
    code, environ = "\n".join((CLOCK, code, PRINT)), os.environ | {"KFDYN_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    return json.loads(done.stdout)


def waits(code: str, installs: int, sessions: int) -> dict[str, dict[str, list[float]]]:
    """Shortest times of each stage of the code, the cache empty at ``first`` and filled ``later``."""
    first, later = [], []
    for _ in range(installs):
        with tempfile.TemporaryDirectory() as cache:
            first.append(stages(code, cache))
            later += [stages(code, cache) for _ in range(sessions)]
    return {name: {"first": _least(first, name), "later": _least(later, name)} for name in first[0]}


def imported(statement: str) -> float:
    """Seconds of one import in a fresh process, the interpreter's own start not counted."""
    code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def run(quick: bool = False) -> Report:
    installs, sessions = (1, 1) if quick else (2, 3)
    best = waits(STAGES, installs, sessions)
    best["all calls"] = {when: [sum(b[when][i] for b in best.values()) for i in (0, 1)] for when in ("first", "later")}
    for n in (1, 6):
        best |= waits(ALONE.format(n=n), installs, sessions)
    names = "kf.StateSpace, kf.kalman_filter, kf.bryson_frazier, kf.innovations_factor"
    statements = {
        "import kfdyn": "import kfdyn",
        "import kfdyn, and reach for its functions (loads numpy)": f"import kfdyn as kf; {names}",
    }
    imports = {what: min(imported(code) for _ in range(1 if quick else 10)) for what, code in statements.items()}
    rows = [[what, "", "", seconds(time)] for what, time in imports.items()]
    rows += [[name, seconds(b["first"][0]), seconds(b["first"][1]), seconds(b["later"][0])] for name, b in best.items()]
    return Report(
        "startup",
        "Waiting for the first answer",
        ["", "after installation", "of the processor", "later sessions"],
        rows,
        environment(["kfdyn", "numpy", "llvmlite"]),
        [
            "After installation: an empty compilation cache. Later sessions: a new process that finds it filled.",
            "llvmlite is imported by the first call, not by import kfdyn, and is counted there.",
            "The processor's own time tells what a busy machine hides.",
        ],
        {"imports": imports, "wall_and_processor": best},
    )


def _least(runs: list[dict[str, list[float]]], name: str) -> list[float]:
    """Shortest wall and processor time of one stage."""
    return [min(run[name][i] for run in runs) for i in (0, 1)]
