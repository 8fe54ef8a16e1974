"""What a user waits for before the first dynamics: compilation once, then loading what was compiled."""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.report import Report, seconds
from benchmarks.timing import environment

# Wall and processor seconds of the first call of each kind in a fresh process; the import of llvmlite is apart.
FIRST_CALLS = """
import json, time
laps = {}
def clock():
    return time.perf_counter(), time.process_time()
def lap(name, run):
    start = clock()
    run()
    laps[name] = [now - then for now, then in zip(clock(), start)]
import numpy as np
lap("import kfdyn, llvmlite and the recursions", lambda: __import__("kfdyn.dynamics.recursions.forward"))
import kfdyn as kf
arm = kf.models.puma560()
q, v, tau = np.zeros((3, 6))
lap("forward dynamics", lambda: kf.forward_dynamics(arm, q, v, tau))
lap("then of a batch", lambda: kf.forward_dynamics(arm, *np.zeros((3, 100, 6))))
lap("inverse dynamics", lambda: kf.inverse_dynamics(arm, q, v, tau))
lap("mass matrix", lambda: kf.mass_matrix(arm, q))
lap("inverse mass matrix", lambda: kf.mass_matrix_inverse(arm, q))
lap("hybrid dynamics", lambda: kf.hybrid_dynamics(arm, q, v, tau, tau, q > 0))
lap("operational space compliance", lambda: kf.operational_space_compliance(arm, q, "link_6"))
lap("kinetic energy", lambda: kf.kinetic_energy(arm, q, v))
lap("potential energy", lambda: kf.potential_energy(arm, q))
lap("Jacobian", lambda: kf.jacobian(arm, q, "link_6"))
print(json.dumps(laps))
"""


def first_calls(cache: str) -> dict[str, list[float]]:
    environ = os.environ | {"KFDYN_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, check=True, env=environ)
    return json.loads(done.stdout)


def run(quick: bool = False) -> Report:
    installs, sessions = (1, 1) if quick else (2, 4)
    first, later = [], []
    for _ in range(installs):
        with tempfile.TemporaryDirectory() as cache:
            first.append(first_calls(cache))
            later += [first_calls(cache) for _ in range(sessions)]
    best = {
        name: {
            when: [min(r[name][i] for r in runs) for i in (0, 1)] for when, runs in (("cold", first), ("warm", later))
        }
        for name in first[0]
    }
    return Report(
        "compilation",
        "Waiting for the first dynamics",
        ["", "cold", "of the processor", "from the cache", "of the processor"],
        [[name, *(seconds(t) for when in ("cold", "warm") for t in b[when])] for name, b in best.items()],
        environment(["kfdyn", "numpy", "llvmlite"]),
        [
            "Cold: an empty compilation cache, as after installation. From the cache: a new process that finds it "
            "filled. Shortest of a few; the processor's own time tells what a busy machine hides.",
            "One state has code of its own; a batch runs in as many lanes as the processor has: another function.",
        ],
        {"wall_and_processor": best},
    )
