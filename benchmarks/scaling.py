"""Time and memory of filter and smoother as the number of nodes grows: linear, on a chain and on a random tree.

Every point is measured in a process of its own (``python -m benchmarks.scaling chain 1000 2.0``), so that its peak
memory is its own.
"""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np

from benchmarks.models import chain_parent, covariances, random_parent, transitions
from benchmarks.report import BLUE, GREY, ORANGE, Report, seconds
from benchmarks.timing import best_of, environment

STATE, OUTPUT = 6, 1
SHAPES = {"chain": "chain", "tree": "random tree"}


def measure(shape: str, nodes: int, budget: float) -> dict[str, float]:
    """Times of construction and of filter + smoother with covariances; peak memory of both together."""
    import resource

    import kfdyn as kf

    rng = np.random.default_rng(nodes)
    # A thousand different matrices in turn: drawing a million would take longer than filtering them.
    kinds = np.arange(nodes) % 1000
    phi, Q = transitions(rng, 1000, STATE)[kinds], covariances(rng, 1000, STATE)[kinds]
    H, R = rng.normal(size=(1000, OUTPUT, STATE))[kinds], covariances(rng, 1000, OUTPUT)[kinds]
    parent = chain_parent(nodes) if shape == "chain" else random_parent(rng, nodes)
    T = rng.normal(size=nodes * OUTPUT)

    def build() -> kf.StateSpace:
        return kf.StateSpace(parent, phi, H, Q, R)

    def estimate(ss: kf.StateSpace) -> tuple:
        ss._cache.clear()
        filt = kf.kalman_filter(ss, T)
        smooth = kf.bryson_frazier(ss, filt)
        return filt, smooth, filt.z, filt.llf, smooth.x, smooth.S

    ss = build()
    times = {"build": best_of(build, budget / 3), "estimate": best_of(lambda: estimate(ss), budget)}
    del ss
    tracemalloc.start()  # numpy reports its arrays to it; the caller's own phi, H, Q, R are not counted
    ss = build()
    model = tracemalloc.get_traced_memory()[0]
    kept = estimate(ss)
    peak = tracemalloc.get_traced_memory()[1]
    del kept
    unit = 1 if sys.platform == "darwin" else 1024
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"nodes": nodes, **times, "model_bytes": model, "peak_bytes": peak, "resident_bytes": resident}


def run(quick: bool = False) -> Report:
    sizes = [100, 1000, 10_000] if quick else [100, 316, 1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000]
    points: dict[str, list[dict[str, float]]] = {shape: [] for shape in SHAPES}
    for shape in SHAPES:
        for nodes in sizes:
            command = [sys.executable, "-m", "benchmarks.scaling", shape, str(nodes), "0.2" if quick else "1.0"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            points[shape].append(json.loads(done.stdout))
    rows = [
        [
            f"{SHAPES[shape]}, N = {p['nodes']:,}",
            seconds(p["estimate"]),
            f"{1e6 * p['estimate'] / p['nodes']:.3g}",
            f"{1e6 * p['build'] / p['nodes']:.3g}",
            f"{p['peak_bytes'] / p['nodes'] / 1024:.3g}",
            f"{p['peak_bytes'] / 2**20:,.1f}",
        ]
        for shape in SHAPES
        for p in points[shape]
    ]
    return Report(
        "scaling",
        f"Linear in the number of nodes: state {STATE}, output {OUTPUT}, filter and smoother with covariances",
        ["", "time", "µs per node", "µs per node to build", "kB per node", "peak MB"],
        rows,
        environment(["kfdyn", "numpy", "llvmlite"]),
        [
            "One thread; shortest processor time of at least three runs.",
            "Peak memory is that of the model and all results together, as numpy reports it to tracemalloc.",
            f"Resident memory of the whole process at the largest chain: "
            f"{points['chain'][-1]['resident_bytes'] / 2**20:,.0f} MB, the caller's own arrays included.",
            "The random tree visits memory in no order, so that large ones wait for it.",
        ],
        {"points": points},
        lambda path: draw(points, path),
    )


def draw(points: dict[str, list[dict[str, float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    for (shape, measured), colour, marker in zip(points.items(), (BLUE, ORANGE), "os"):
        nodes = np.array([p["nodes"] for p in measured])
        style = {"color": colour, "marker": marker, "markersize": 7, "label": SHAPES[shape]}
        style |= {"markerfacecolor": "none", "linestyle": "-" if shape == "chain" else "--"}  # they lie on each other
        time_axes.loglog(nodes, [p["estimate"] for p in measured], **style)
        memory_axes.loglog(nodes, [p["peak_bytes"] / 2**20 for p in measured], **style)
    first = points["chain"][-1]
    for axes, last in ((time_axes, first["estimate"]), (memory_axes, first["peak_bytes"] / 2**20)):
        axes.loglog(nodes, last * nodes / nodes[-1], color=GREY, linestyle=":", linewidth=1.5, label="∝ N", zorder=0)
        axes.set_xlabel("nodes N")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
        axes.legend(frameon=False)
    time_axes.set(ylabel="seconds", title="Filter and smoother, all covariances")
    memory_axes.set(ylabel="MB", title="Peak memory of model and results")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
