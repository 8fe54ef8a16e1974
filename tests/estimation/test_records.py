"""Records and workspaces of the engine's sweeps: their code is part of what is compiled, their parts do not overlap."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kfdyn.estimation.recursions.linalg.lanes import SPARE
from kfdyn.estimation.recursions.linalg.products import Flow
from kfdyn.estimation.recursions.riccati.riccati import Gather
from kfdyn.sweeps import Checked

EVERYTHING = """
import numpy as np
import kfdyn as kf
from kfdyn.sweeps import jit as call
from kfdyn.sweeps.compiler import cache

seen, code = set(), call._code


def watched(function, flags, args, kinds):
    for x in args:
        if hasattr(x, "_fields"):
            seen.add(type(x).__name__)
            assert type(x).__module__ in cache.closure(function.__module__), (function.__name__, type(x).__name__)
    return code(function, flags, args, kinds)


call._code = watched
rng = np.random.default_rng(0)
ss = kf.StateSpace([1, 2, -1], rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 1, 2)), [np.eye(2)] * 3, [np.eye(1)] * 3)
T = rng.normal(size=(2, 3))
for method in ("block", "square_root"):
    smooth = kf.bryson_frazier(kf.kalman_filter(ss, T, method=method))
    score = kf.score(ss, T, method=method)
    score.phi, score.H, score.Q, score.R, score.eta
op, cov, factor = kf.Operators(ss), kf.Covariances(ss), kf.innovations_factor(ss)
op.output_cov.forward(T), op.psi.backward(rng.normal(size=6)), cov.x, cov.psi, factor.inverse(), factor.unwhiten(T)
kf.backward_lyapunov(ss.tree, list(ss.phi), list(ss.Q))
print(*sorted(seen))
"""


def test_the_code_of_a_record_is_part_of_what_is_compiled():
    """Else an edited method of a record would go unnoticed: the name of code on disk is a digest of what it imports."""
    told = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", EVERYTHING], env=told, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    found = set(done.stdout.split())
    assert {"Ragged", "Parts", "Roots", "Share", "Covariances", "Product", "Sum", "Steps", "RootedRows"} <= found


def test_parts_of_a_workspace_lie_one_behind_the_other():
    n, m = 3, 2
    work = Checked(np.zeros(Gather.size(n, m)))
    parts = Gather.layout(n, m)
    assert sum(parts.values()) == Gather.size(n, m)

    class Model:
        most, most_outputs = n, m

    gather = Gather(Model, None, work)
    for i, (name, count) in enumerate(parts.items()):
        part = getattr(gather, name)
        for at in range(count):
            part[at] = i + 1.0
        with pytest.raises(IndexError):
            part[count]
    np.testing.assert_array_equal(work.numbers, np.repeat(np.arange(1.0, 1.0 + len(parts)), list(parts.values())))
    assert Flow.size(7, n, m) == 7 + n + m + SPARE
