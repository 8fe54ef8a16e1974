"""Write measured numbers into the README and the pages, from the files in which they are recorded.

python docs/readme_speed.py     after ``make bench``, docs/numerics_study.py or docs/cross_check_study.py
"""

import json
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- speeds: written by docs/readme_speed.py -->", "<!-- end of speeds -->"

ROBOTS = ("UR5", "TALOS")
CALLS = ("forward dynamics", "inverse dynamics", "mass matrix", "inverse mass matrix", "forward dynamics, one state")
PEERS = ("kfdyn", "Pinocchio loop", "Pinocchio's batch", "MuJoCo loop")


def dynamics(found):
    """Microseconds per state of kfdyn and its peers; a peer without the call has an empty cell."""
    rows = []
    for robot in ROBOTS:
        for call in CALLS:
            seconds = found["seconds_per_state"][robot][call]
            name = f"{robot}, {found['dofs'][robot]} dof: {call}" + (" per call" if "one state" in call else "")
            rows.append([name, *(digits(1e6 * seconds[peer]) if peer in seconds else "" for peer in PEERS)])
    head = [
        f"µs per state, batches of {found['batch']:,}",
        "kfdyn",
        "Pinocchio, Python loop",
        *PEERS[2:3],
        "MuJoCo, loop",
    ]
    return table(head, rows)


def engine(found):
    """Microseconds per step of the filter and smoother beside statsmodels and filterpy, each at its best."""
    cost = found["us_per_step"]
    least = [
        min(value for name, value in cost.items() if name.startswith(peer)) for peer in ("statsmodels", "filterpy")
    ]
    what = f"filter and smoother with covariances, {found['steps']} steps, 6 states"
    head = ["µs per step", "kfdyn", "statsmodels, compiled loops", "filterpy"]
    return table(head, [[what, *map(digits, (cost["kfdyn"], *least))]])


def specialised(found):
    """How many times as fast as code for all robots the code for one is, where it is compiled."""
    calls = (
        ("forward dynamics", "forward dynamics"),
        ("inverse dynamics", "inverse dynamics"),
        ("mass matrix", "𝓜"),
        ("inverse mass matrix", "𝓜⁻¹"),
        ("forward dynamics derivatives", "derivatives of forward dynamics"),
        ("inverse dynamics derivatives", "derivatives of inverse dynamics"),
    )
    rows = []
    for robot, timed in found["seconds_per_state"].items():
        costs = [timed[call] for call, _ in calls]
        if all("kfdyn, specialised" in cost for cost in costs):
            ratios = [digits(cost["kfdyn"] / cost["kfdyn, specialised"]) for cost in costs]
            rows.append([f"{robot}, {found['dofs'][robot]} dof", *ratios])
    return table(["", *(title for _, title in calls)], rows)


def sensing(found):
    """What estimation of a humanoid's dynamics takes, in words."""
    seconds = found["seconds"]
    one, batch = seconds["TALOS, means"]
    one_std, batch_std = seconds["TALOS, with all standard deviations"]
    geared = seconds["Panda, fingers geared, means"][0] / seconds["Panda, fingers free, means"][0]
    text = (
        "TALOS on a floating base, with 44 joint torques, six inertial units and two force–torque sensors, takes "
        f"{digits(1e6 * one)} µs for the means of one state, and {digits(1e6 * batch)} µs per state in a batch; with "
        f"all standard deviations it takes {digits(one_std / one)} and {digits(batch_std / batch)} times as long."
    )
    if "BERDY, means" in seconds:
        berdy = seconds["BERDY, means"][0]
        text += f" BERDY, the sparse least squares of iDynTree, takes {digits(1e3 * berdy)} ms without them."
    text += (
        f" An arm with geared fingers takes {digits(geared)} times as long as one whose fingers are free "
        "([benchmarks](benchmarks.md))."
    )
    return textwrap.fill(text, 120)


def checking(found):
    """What the cross-check of a model costs."""
    rows = [
        [
            row["model"],
            str(row["joints"]),
            f"{row['samples']:,}",
            f"{digits(row['processor_seconds'])} s",
            f"{max(row['megabytes'], 0):.0f} MB",
        ]
        for row in found["costs"]
    ]
    return table(["model", "joints", "samples", "processor time", "memory beyond a short check's"], rows)


def errors(head, rows, letters, name):
    """Relative errors of the engine: a row for each model, whose value ``name`` makes a formula of."""
    return table(
        [head, *(LETTERS[letter] for letter in letters)],
        [[name(value), *(power(row[letter]) for letter in letters)] for value, row in rows.items()],
    )


def four_forms(found):
    """What is left of the digits by covariances, output by output, by dense algebra and by roots."""
    forms = ("block", "univariate", "dense", "square_root")
    rows = [
        [name + as_power("P_0")(prior), *(power(found["track"][prior][form]) for form in forms)]
        for name, prior in (("track, ", "1"), ("", "10000"), ("", "1e+08"), ("", "1e+12"))
    ]
    rows += [
        [name.format(as_power("")(ratio).replace(" = ", "")), *(power(found["arm"][ratio][form]) for form in forms)]
        for name, ratio in (("arm, hand {} times as heavy", "1e+08"), ("{} times", "1e+12"), ("{} times", "1e+16"))
    ]
    return table(["", "covariance", "output by output", "dense", "square root"], rows)


LETTERS = {"P": "$P$", "D": "$D$", "x": "$\\hat x$", "S": "$S$", "P - P Lambda P": "by $P - P \\Lambda P$"}


def power(error):
    """One digit and a power of ten."""
    return "useless" if error > 0.5 else f"{error:.0e}".replace("e-0", "e-")


def as_power(letter):
    """Write a value of a letter as a power of ten, in TeX."""

    def written(value):
        exponent = f"{float(value):.0e}".partition("e")[2]
        plain = value in ("0", "1")
        return f"${letter} = {value}$" if plain else f"${letter} = 10^{{{int(exponent)}}}$"

    return written


def beside_pinocchio(found):
    """How many times as fast as Pinocchio in a Python loop; an empty cell is left to the code for all robots."""
    robots = list(found["seconds_per_state"])
    rows = []
    for call, title in (
        ("forward dynamics", "forward dynamics"),
        ("forward dynamics derivatives", "derivatives of forward dynamics"),
        ("inverse dynamics derivatives", "derivatives of inverse dynamics"),
    ):
        for ours, name in (("kfdyn", title), ("kfdyn, specialised", "the same, specialised")):
            costs = [found["seconds_per_state"][robot][call] for robot in robots]
            rows.append(
                [name, *(digits(cost["Pinocchio loop"] / cost[ours]) if ours in cost else "" for cost in costs)]
            )
    return table(["", *(f"{robot}, {found['dofs'][robot]} dof" for robot in robots)], rows)


def table(head, rows):
    """Markdown, numbers to the right."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def digits(value):
    """Two significant digits, without an exponent."""
    return f"{float(f'{value:.2g}'):g}"


def measured(name, folder=RESULTS):
    """What a part of the benchmarks, or a study, has recorded."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def digits_left(part, head, letters, name):
    """A table of the page on numerics."""
    return lambda: errors(head, measured("numerics_study", DOCS)[part], letters, name)


def speeds():
    """The tables of the README, and the machine."""
    parts = [dynamics(measured("dynamics")), engine(measured("engine"))]
    parts.append(
        f"One thread of an {measured('engine')['environment']['processor']}; shortest processor time of many runs, the "
        "peers taking turns. Loops over peers include their calls from Python; an empty cell is a call that was not "
        "measured. Matrices are written into an array that is there (`out=`): without it each call finds new memory "
        "for them, and TALOS' mass matrix takes about three times as long."
    )
    return "\n\n".join(parts)


#: What is written between the marks of each page, in their order.
PAGES = {
    ROOT / "README.md": [speeds],
    DOCS / "costs.md": [lambda: specialised(measured("dynamics")), lambda: beside_pinocchio(measured("dynamics"))],
    DOCS / "sensors.md": [lambda: sensing(measured("sensing"))],
    DOCS / "cross_check.md": [lambda: checking(measured("cross_check_study", DOCS))],
    DOCS / "numerics.md": [
        digits_left("exact", "local linear trend, 100 steps", "PDxS", as_power("R")),
        digits_left("level", "local level, 100 steps", ("x", "S", "P - P Lambda P"), as_power("P_0")),
        digits_left("trend", "local linear trend, 100 steps", ("P", "x", "S", "P - P Lambda P"), as_power("P_0")),
        lambda: four_forms(measured("numerics_study", DOCS)),
    ],
}


def filled(page):
    """Text of a page with its numbers put between the marks."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    text, parts = page.read_text(encoding="utf-8"), iter(PAGES[page])
    if len(pattern.findall(text)) != len(PAGES[page]):
        raise ValueError(f"{page.name} has lost the marks of its numbers")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{next(parts)()}\n\n{END}", text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page), encoding="utf-8")
