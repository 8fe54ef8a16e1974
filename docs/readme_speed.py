"""Write the tables of speeds in the README and on the page of costs from what ``make bench`` measured.

python docs/readme_speed.py
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
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


def measured(name):
    """What a part of the benchmarks has recorded."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def speeds():
    """The tables of the README, and the machine."""
    parts = [dynamics(measured("dynamics")), engine(measured("engine"))]
    parts.append(
        f"One thread of an {measured('engine')['environment']['processor']}; shortest processor time of many runs, the "
        "peers taking turns. Loops over peers include their calls from Python; an empty cell is a call that was not "
        "measured."
    )
    return "\n\n".join(parts)


#: What is written between the marks of each page.
PAGES = {
    ROOT / "README.md": speeds,
    ROOT / "docs" / "costs.md": lambda: beside_pinocchio(measured("dynamics")),
}


def filled(page):
    """Text of a page with its tables put between the marks."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    text = page.read_text(encoding="utf-8")
    if not pattern.search(text):
        raise ValueError(f"{page.name} has lost the marks of its table of speeds")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{PAGES[page]()}\n\n{END}", text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page), encoding="utf-8")
