"""Dynamics of arms and a humanoid beside Pinocchio and MuJoCo: batches on one core, one state, two threads."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.batch import limited
from benchmarks.dynamics_peers import (
    CALLS,
    Peer,
    kfdyn_calls,
    mjx_batches,
    mujoco_calls,
    mujoco_rollout,
    pinocchio_batches,
    pinocchio_calls,
)
from benchmarks.more_calls import (
    DERIVATIVES,
    OF_ENGINE,
    READINGS,
    engine_calls,
    kfdyn_derivatives,
    kfdyn_readings,
    kfdyn_without_peer,
    pinocchio_derivatives,
    pinocchio_readings,
)
from benchmarks.report import BLUE, GREEN, GREY, ORANGE, RED, Report
from benchmarks.robots import ARMS, HUMANOIDS, Robot, States, robot, states
from benchmarks.timing import environment, race

BATCH, LOOPED, SINGLE = 4096, 512, 200

#: Multiples of the Pinocchio loop to reach, arms and humanoid: for ourselves, in the JSON file; no page shows them.
TARGETS = {
    "forward dynamics": (20, 15),
    "inverse dynamics": (15, 10),
    "mass matrix": (6, 4),
    "inverse mass matrix": (6, 4),
    "kinetic energy": (1, 1),
    "potential energy": (1, 1),
    "Jacobian": (1, 1),
    "forward dynamics derivatives": (10, 10),
    "inverse dynamics derivatives": (10, 10),
    "forward dynamics, one state": (1, 1),
    "two threads over one": (1.7, 1.7),
}
PEERS = {
    "kfdyn, specialised": lambda subject, many: of_its_own(subject, many),
    "Pinocchio's batch": pinocchio_batches,
    "MuJoCo loop": mujoco_calls,
    "MuJoCo rollout": mujoco_rollout,
    "MJX (JAX)": mjx_batches,
}
OURS, BASE, ENGINE = "kfdyn", "Pinocchio loop", "kfdyn's engine"


def measured(subject: Robot, size: int, budget: float, laps: int) -> dict[str, dict[str, float]]:
    """Processor seconds per state of each call by each library, all taking turns in one run."""
    many = states(subject.system, size)
    few = States(*(x[:LOOPED] for x in many))
    peers: dict[str, tuple[dict[str, Peer], int]] = {
        OURS: (
            kfdyn_calls(subject, many)
            | kfdyn_readings(subject, many)
            | kfdyn_derivatives(subject, many)
            | kfdyn_without_peer(subject, many),
            size,
        ),
        BASE: (
            pinocchio_calls(subject, few) | pinocchio_readings(subject, few) | pinocchio_derivatives(subject, few),
            len(few.q),
        ),
        ENGINE: (engine_calls(subject, few), len(few.q)),
    }
    for name, make in PEERS.items():
        own = few if name == "MuJoCo loop" else many
        found = make(subject, own)
        if found:
            peers[name] = (found, len(own.q))
    times: dict[str, dict[str, float]] = {}
    for call in (*CALLS, *READINGS, *DERIVATIVES, *OF_ENGINE):
        able = {name: (found[call], count) for name, (found, count) in peers.items() if call in found}
        for name, (peer, _) in able.items():
            agree(subject, call, name, peer, able[OURS][0])
        least = race({name: peer.run for name, (peer, _) in able.items()}, budget, laps)
        times[call] = {name: least[name] / count for name, (_, count) in able.items()}
    return times


def of_its_own(subject: Robot, many: States) -> dict[str, Peer]:
    """The calls that have straight-line code for this robot; none for a humanoid, where it would not pay."""
    if subject.name in HUMANOIDS:
        return {}
    own = kf.specialise(subject.system)
    return kfdyn_calls(subject, many, own) | kfdyn_derivatives(subject, many, own)


def agree(subject: Robot, call: str, name: str, peer: Peer, ours: Peer) -> None:
    gap = np.abs(peer.first - ours.first).max() / np.abs(ours.first).max()
    if not gap < 1e-10:
        raise AssertionError(f"{name} computes another {call} of {subject.name} (relative difference {gap:.1e})")


def one_state(subject: Robot, s: States, budget: float, laps: int) -> dict[str, float]:
    """Processor seconds of one call with one state, both libraries called from the same kind of loop."""
    import pinocchio as pin

    system, model, data = subject.system, subject.pinocchio, subject.pinocchio.createData()
    there = kf.to_pinocchio(system, model, s.q, s.v, tau=s.tau)
    here, their = [list(x) for x in (s.q, s.v, s.tau)], [list(x) for x in (there.q, there.v, there.tau)]

    def ours() -> None:
        for x in zip(*here):
            kf.forward_dynamics(system, *x)

    def base() -> None:
        for x in zip(*their):
            pin.aba(model, data, *x)

    runs: dict[str, Callable[[], object]] = {OURS: ours, BASE: base}
    return {name: least / len(s.q) for name, least in race(runs, budget, laps).items()}


def in_threads(subject: Robot, size: int, budget: float) -> dict[str, float]:
    """Wall seconds of forward dynamics with one thread and with two, taking turns; needs an idle machine."""
    s, system = states(subject.system, size), subject.system
    least = {"1": float("inf"), "2": float("inf")}
    before, begun = os.environ.get("KFDYN_NUM_THREADS"), time.perf_counter()
    try:
        while time.perf_counter() - begun < budget:
            for threads in least:
                os.environ["KFDYN_NUM_THREADS"] = threads
                start = time.perf_counter()
                kf.forward_dynamics(system, s.q, s.v, s.tau)
                least[threads] = min(least[threads], time.perf_counter() - start)
    finally:
        os.environ.pop("KFDYN_NUM_THREADS")
        if before is not None:
            os.environ["KFDYN_NUM_THREADS"] = before
    return {threads: best / size for threads, best in least.items()}


def run(quick: bool = False) -> Report:
    from threadpoolctl import threadpool_limits

    size, budget, laps = (256, 0.05, 1) if quick else (BATCH, 2.0, 5)
    robots = [robot(name) for name in (("UR5",) if quick else (*ARMS, *HUMANOIDS))]
    results: dict[str, dict[str, dict[str, float]]] = {}
    for subject in robots:
        with threadpool_limits(1):
            times = limited(1, lambda subject=subject: measured(subject, size, budget, laps))
        times["forward dynamics, one state"] = one_state(subject, states(subject.system, SINGLE), budget, laps)
        times["two threads over one"] = in_threads(subject, size, 2 * budget)
        results[subject.name] = times
    dofs = {subject.name: subject.system.nv for subject in robots}
    columns = [OURS, BASE, *(name for name in PEERS if any(name in t for r in results.values() for t in r.values()))]
    missed = list(shortfalls(results))
    return Report(
        "dynamics",
        f"Dynamics: batches of {size:,} on one core, in multiples of Pinocchio called in a Python loop",
        ["robot", "call", "kfdyn, µs a state", "Pinocchio loop, µs", "kfdyn", *columns[2:]],
        list(rows(results, dofs, columns[2:])),
        environment(["kfdyn", "numpy", "llvmlite", "pin", "mujoco", "mujoco-mjx", "example-robot-data"]),
        [
            "Multiples: how many times as fast as the Pinocchio loop. Checks of arguments are part of kfdyn's times, "
            "and so is room for all results but matrices, which go to `out=`; the peers find their rows cut and their "
            "coordinates converted, "
            "their loops do not keep the results, and of Pinocchio's mass matrices only the upper half is filled.",
            "All libraries agree on every quantity to 1e-10 before they are timed. Shortest processor time of many "
            "runs, the peers taking turns; one thread.",
            "kfdyn, specialised: `kf.specialise(system)`, the same recursions compiled for one robot. Derivatives: "
            "beside Pinocchio's analytical ones.",
            "Jacobian: of the body farthest out. Hybrid dynamics, every third dof prescribed, and the compliance of "
            "the same body are in multiples of the generic engine on the assembled model: no peer has them.",
            "Two threads: shortest wall time of forward dynamics with one thread over that with two.",
            "MuJoCo loop: the stages each call needs and no others, no constraints or contacts; PUMA 560 has a link "
            "without mass, which it does not take. MuJoCo rollout: one step a state.",
        ],
        {"batch": size, "dofs": dofs, "targets": TARGETS, "seconds_per_state": results, "missed": missed},
        lambda path: draw(results, dofs, columns[2:], path),
        words=2,
    )


def multiple(times: dict[str, float], name: str = OURS) -> float:
    """How many times as fast as the base a library is, or the engine without one; for threads, two over one."""
    return times["1"] / times["2"] if "2" in times else times.get(BASE, times.get(ENGINE, 0.0)) / times[name]


def target(name: str, call: str) -> float | None:
    return TARGETS[call][name in HUMANOIDS] if call in TARGETS else None


def rows(results: dict[str, Any], dofs: dict[str, int], others: list[str]):
    for name, calls in results.items():
        for call, times in calls.items():
            own, base = times.get(OURS, times.get("2", 0.0)), times.get(BASE)
            yield [
                f"{name}, {dofs[name]} dof",
                call,
                f"{1e6 * own:.3g}",
                "" if base is None else f"{1e6 * base:.3g}",
                f"{multiple(times):.3g}×",
                *(f"{multiple(times, other):.2g}×" if other in times else "" for other in others),
            ]


def shortfalls(results: dict[str, Any]):
    for name, calls in results.items():
        for call, times in calls.items():
            goal = target(name, call)
            if goal is not None and multiple(times) < goal:
                yield f"{name}, {call}, {multiple(times):.3g}× of {goal:g}×"


def draw(results: dict[str, Any], dofs: dict[str, int], others: list[str], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    colours = dict(zip((OURS, *others), (BLUE, ORANGE, GREEN, RED, GREY)))
    panels = figure.subplots(2, 2).ravel()
    for axes, call in zip(panels, CALLS):
        for place, name in enumerate(results):
            times = results[name][call]
            able = [peer for peer in colours if peer in times]
            height = 0.8 / len(colours)
            for i, peer in enumerate(able):
                value = multiple(times, peer)
                at = place + (i - (len(able) - 1) / 2) * height
                axes.barh(at, value, height, color=colours[peer], label=peer)
                # Right of the dotted line, so that neither crosses the other.
                axes.annotate(
                    f"{value:.2g}",
                    (max(value, 1), at),
                    (4, 0),
                    textcoords="offset points",
                    va="center_baseline",
                    fontsize=7,
                )
        axes.axvline(1, color=GREY, linewidth=0.8, linestyle=":", label="Pinocchio loop")
        axes.set_yticks(range(len(results)), [f"{name}\n{dofs[name]} dof" for name in results])
        axes.invert_yaxis()
        axes.set_title(call, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[2:]:
        axes.set_xlabel("times as fast as Pinocchio called in a Python loop")
    handles = {label: h for axes in panels for h, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=150)
