"""What the kernels do: operations per body beside the textbook's, and how near to the core's peak they run."""

from pathlib import Path

import numpy as np

import kfdyn as kf
from benchmarks.batch import limited
from benchmarks.counting import SERIES, counted
from benchmarks.dynamics_peers import CALLS, kfdyn_calls
from benchmarks.report import BLUE, GREY, ORANGE, Report
from benchmarks.robots import robot, states
from benchmarks.timing import best_of, environment
from kfdyn.sweeps.compiler.driver import machine

KERNELS = dict(zip(CALLS, ("forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse")))

#: Multiplications and additions for n revolute links, after Featherstone and Orin (2000); the same there for a chain
#: with Denavit and Hartenberg's frames, sines and cosines given.
TEXTBOOK = {
    "forward dynamics": (lambda n: 300 * n - 267, lambda n: 279 * n - 259),
    "inverse dynamics": (lambda n: 130 * n - 68, lambda n: 101 * n - 56),
    "mass matrix": (lambda n: 10 * n**2 + 22 * n - 32, lambda n: 6 * n**2 + 37 * n - 43),
}


def counts(system: kf.System, call: str, seed: int = 0) -> tuple[int, int, int]:
    """Multiplications, additions, and all the rest (divisions, roundings, comparisons) of one call for one state."""
    rng = np.random.default_rng(seed)
    q, given = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    of_state = call in ("forward dynamics", "inverse dynamics")
    done, _ = counted(system, KERNELS[call], q, *(given if of_state else ()))
    multiply, add = done.pop("multiply"), done.pop("add")
    return multiply, add, done.total()


def sine_cosine_counts() -> str:
    """Multiplications and additions of one sine and cosine."""
    return f"{SERIES['multiply']} + {SERIES['add']}"


def peak_flops(budget: float) -> float:
    """Flops a second of independent fused multiply-adds on machine vectors that never leave their registers."""
    from kfdyn.sweeps import LANEWISE, Tag, loop, loop_vars, sweep

    @sweep(flags=LANEWISE)
    def spin(times, out, lanes):
        numbers = out.lanes(lanes)
        state = loop_vars(*[numbers[0]] * 10)
        for _ in loop(times):
            x = numbers[1]  # read again, so that the compiler cannot foresee what it will be
            state.set(*(a * x + 0.25 for a in state.get()))
            numbers[2] = x
        total = numbers[0]
        for a in state.get():
            total = total + a
        numbers[0] = total

    lanes, times = machine().lanes, 100_000
    out = np.full(3 * lanes, 0.5)
    return 10 * 2 * lanes * times / best_of(lambda: spin(times, out, Tag(lanes)), budget)


def run(quick: bool = False) -> Report:
    budget = 0.05 if quick else 2.0
    size, links = (256, 6) if quick else (4096, 20)
    chain = kf.models.chain(links)
    rows, numbers = [], {}
    for call in CALLS:
        multiply, add, rest = counts(chain, call)
        own = {"multiply": multiply, "add": add, "rest": rest}
        book = [count(links) for count in TEXTBOOK[call]] if call in TEXTBOOK else None
        numbers[call] = own | ({"textbook": book} if book else {})
        rows.append(
            [
                f"chain of {links} links",
                call,
                f"{multiply / links:.0f} + {add / links:.0f}",
                f"{book[0] / links:.0f} + {book[1] / links:.0f}" if book else "",
                f"{rest / links:.0f}",
                "",
                "",
                "",
            ]
        )
    peaks, speeds = [peak_flops(budget)], {}
    for name in ("UR5",) if quick else ("UR5", "Panda", "TALOS"):
        subject = robot(name)
        runs = kfdyn_calls(subject, states(subject.system, size))
        speeds[name] = {}
        for call in CALLS:
            multiply, add, rest = counts(subject.system, call)
            least = limited(1, lambda call=call, runs=runs: best_of(runs[call].run, budget)) / size
            speeds[name][call] = {"flops": multiply + add, "seconds": least}
            bodies = subject.system.n_bodies
            rows.append(
                [
                    f"{name}, {bodies} bodies",
                    call,
                    f"{multiply / bodies:.0f} + {add / bodies:.0f}",
                    "",
                    f"{rest / bodies:.0f}",
                    f"{1e9 * least / bodies:.1f}",
                    f"{(multiply + add) / least / 1e9:.1f}",
                    "",
                ]
            )
        peaks.append(peak_flops(budget))
    peak = max(peaks)  # other work can only hide what a core can do
    timed = [found for calls in speeds.values() for found in calls.values()]
    for row, found in zip(rows[-len(timed) :], timed):
        row[7] = f"{found['flops'] / found['seconds'] / peak:.0%}"
    return Report(
        "operations",
        "Operations of the kernels, and how near to the peak of the core they run",
        [
            "robot",
            "call",
            "× and + per body",
            "textbook",
            "other per body",
            "ns per body and state",
            "Gflop/s",
            "of the peak",
        ],
        rows,
        environment(["kfdyn", "numpy", "llvmlite"]),
        [
            f"Counted by running the kernels' own source on numbers that count; a sine and cosine, "
            f"{sine_cosine_counts()}, are included for each angle. Other: divisions, roundings and comparisons.",
            "Textbook: Featherstone and Orin (2000), who start from given sines and cosines.",
            f"Peak: {peak / 1e9:.1f} Gflop/s, ten independent fused multiply-adds on vectors of {machine().lanes} "
            "doubles in registers, over and over. Only multiplications and additions count as work; a multiplication "
            "that finds no addition to fuse with takes a place of two.",
            f"Batches of {size:,}, one thread, checks and allocation of the result included.",
        ],
        {"per_call": numbers, "links": links, "peak_flops": peak, "robots": speeds, "batch": size},
        lambda path: draw(speeds, peak, path),
        words=2,
    )


def draw(speeds: dict[str, dict[str, dict[str, float]]], peak: float, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    for i, (name, calls) in enumerate(speeds.items()):
        at = np.arange(len(calls)) + (i - (len(speeds) - 1) / 2) * 0.26
        height = [c["flops"] / c["seconds"] / 1e9 for c in calls.values()]
        axes.bar(at, height, 0.24, label=name, color=(BLUE, ORANGE, GREY)[i])
        for x, y in zip(at, height):
            axes.text(x, y, f"{y * 1e9 / peak:.0%}", ha="center", va="bottom", fontsize=8)
    axes.axhline(peak / 1e9, color="black", linewidth=1, linestyle="--")
    words = {"textcoords": "offset points", "ha": "right", "va": "bottom", "fontsize": 9}
    axes.annotate("peak of the core ", (len(CALLS) - 0.5, peak / 1e9), (0, 2), **words)
    axes.set_xticks(range(len(CALLS)), CALLS)
    axes.set(ylabel="Gflop/s, one core", ylim=(0, 1.1 * peak / 1e9))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    figure.savefig(path, dpi=150)
