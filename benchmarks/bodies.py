"""Forward dynamics as the number of bodies grows: time per body and memory, one state on a chain and on a random tree.

Every point is measured in a process of its own (``python -m benchmarks.bodies chain 1000 2.0``), so that its peak
memory is its own.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.report import BLUE, ORANGE, RED, Report, seconds
from benchmarks.timing import best_of, environment

SHAPES = {"chain": "chain", "tree": "random tree", "pinocchio": "chain, Pinocchio"}
#: Bodies at most; Pinocchio's workspace grows as the cube of the dofs, and it takes a minute to build a large tree.
LARGEST = {"chain": 100_000, "tree": 10_000, "pinocchio": 316}


def resident() -> int:
    """Bytes of memory this process has ever held."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure(shape: str, bodies: int, budget: float) -> dict[str, float]:
    """Processor time of one forward dynamics, and the memory it needs beside model and arguments."""
    import kfdyn as kf

    model = kf.models.random_tree if shape == "tree" else kf.models.chain
    small = model(2)
    rng = np.random.default_rng(bodies)
    if shape == "pinocchio":
        return measure_pinocchio(model(bodies), rng, budget)
    kf.forward_dynamics(small, small.neutral(), np.zeros(small.nv), np.zeros(small.nv))  # compiles
    system = model(bodies)
    q, (v, tau) = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    before = resident()
    kf.forward_dynamics(system, q, v, tau)
    grown = resident() - before
    least = best_of(lambda: kf.forward_dynamics(system, q, v, tau), budget, repeats=5)
    return {"bodies": bodies, "dofs": system.nv, "time": least, "bytes": grown}


def measure_pinocchio(system, rng: np.random.Generator, budget: float) -> dict[str, float]:
    import tempfile

    import pinocchio as pin

    import kfdyn as kf

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "robot.urdf"
        kf.save_urdf(system, file)
        model = pin.buildModelFromUrdf(str(file))
    q, (v, tau) = pin.neutral(model), rng.normal(size=(2, model.nv))
    before = resident()
    data = model.createData()
    pin.aba(model, data, q, v, tau)
    grown = resident() - before
    least = best_of(lambda: pin.aba(model, data, q, v, tau), budget, repeats=5)
    return {"bodies": system.n_bodies, "dofs": system.nv, "time": least, "bytes": grown}


def run(quick: bool = False) -> Report:
    sizes = [10, 100, 1000] if quick else [10, 32, 100, 316, 1000, 3162, 10_000, 31_623, 100_000]
    points: dict[str, list[dict[str, float]]] = {shape: [] for shape in SHAPES}
    for shape, measured in points.items():
        for bodies in sizes:
            if bodies > LARGEST[shape]:
                continue
            command = [sys.executable, "-m", "benchmarks.bodies", shape, str(bodies), "0.1" if quick else "1.0"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            measured.append(json.loads(done.stdout))
    return report(points, environment(["kfdyn", "numpy", "llvmlite", "pin"]))


def report(points: dict[str, list[dict[str, float]]], machine: dict[str, str]) -> Report:
    """What the points say, measured just now or recorded."""
    rows = [
        [
            SHAPES[shape],
            f"{p['bodies']:,}",
            f"{p['dofs']:,}",
            seconds(p["time"]),
            f"{1e9 * p['time'] / p['bodies']:.0f}",
            f"{1e9 * p['time'] / p['dofs']:.0f}",
        ]
        for shape, measured in points.items()
        for p in measured
    ]
    spread = {
        shape: max(costs) / min(costs)
        for shape, costs in ((s, [p["time"] / p["dofs"] for p in points[s]]) for s in ("chain", "tree"))
    }
    most = max(p["bytes"] for shape in ("chain", "tree") for p in points[shape]) / 2**20
    grown = f"grew by {most:,.0f} MB at most" if most else "did not grow"
    largest = points["pinocchio"][-1]
    return Report(
        "bodies",
        "Forward dynamics of one state: linear in the number of bodies",
        ["", "bodies", "dofs", "time", "ns per body", "ns per dof"],
        rows,
        machine,
        [
            "One thread; shortest processor time of at least five runs, each size in a process of its own.",
            "Of few bodies the time is that of a call; of more than ten thousand the workspace no longer fits the "
            "cache and comes from memory.",
            f"Dearest over cheapest dof: chain {spread['chain']:.2g}, random tree {spread['tree']:.2g} (its bodies "
            "have hinges of every kind, up to 6 dofs).",
            f"Memory: the peak of the process {grown} when kfdyn was first called; its workspace uses what building "
            "the model has left free. Pinocchio's workspace holds arrays of dofs cubed: "
            f"{largest['bytes'] / 2**20:,.0f} MB at {largest['dofs']:,} dofs, which makes "
            f"{largest['bytes'] * (1000 / largest['dofs']) ** 3 / 2**30:,.0f} GB at 1000.",
        ],
        {"points": points, "dearest_over_cheapest_dof": spread},
        lambda path: draw(points, path),
        words=1,
    )


def draw(points: dict[str, list[dict[str, float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots()
    for (shape, measured), colour, marker in zip(points.items(), (BLUE, ORANGE, RED), "os^"):
        cost = [1e9 * p["time"] / p["dofs"] for p in measured]
        axes.plot([p["bodies"] for p in measured], cost, color=colour, marker=marker, markersize=5, label=SHAPES[shape])
    axes.set(xscale="log", ylim=(0, None), xlabel="bodies", ylabel="ns per degree of freedom")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
