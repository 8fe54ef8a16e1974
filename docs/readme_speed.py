"""Write the tables of speeds in the README from what ``make bench`` measured, so that the two cannot differ.

python docs/readme_speed.py
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- speeds: written by docs/readme_speed.py -->", "<!-- end of speeds -->"

ROBOTS = ("UR5", "TALOS")
CALLS = ("forward dynamics", "inverse dynamics", "mass matrix", "inverse mass matrix", "forward dynamics, one state")
PEERS = ("kfdyn", "Pinocchio loop", "Pinocchio's batch", "MuJoCo loop")


def dynamics(found):
    """Microseconds a state of kfdyn and its peers; a peer without the call has an empty cell."""
    rows = []
    for robot in ROBOTS:
        for call in CALLS:
            seconds = found["seconds_per_state"][robot][call]
            name = f"{robot}, {found['dofs'][robot]} dof: {call}" + (" a call" if "one state" in call else "")
            rows.append([name, *(digits(1e6 * seconds[peer]) if peer in seconds else "" for peer in PEERS)])
    head = [f"µs a state, batches of {found['batch']}", "kfdyn", "Pinocchio, Python loop", *PEERS[2:3], "MuJoCo, loop"]
    return table(head, rows)


def engine(found):
    """Microseconds a step of the filter and smoother beside statsmodels and filterpy, each at its best."""
    cost = found["us_per_step"]
    least = [
        min(value for name, value in cost.items() if name.startswith(peer)) for peer in ("statsmodels", "filterpy")
    ]
    what = f"filter and smoother with covariances, {found['steps']} steps, 6 states"
    head = ["µs a step", "kfdyn", "statsmodels, compiled loops", "filterpy"]
    return table(head, [[what, *map(digits, (cost["kfdyn"], *least))]])


def table(head, rows):
    """Markdown, numbers to the right."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def digits(value):
    """Two significant digits, without an exponent."""
    return f"{float(f'{value:.2g}'):g}"


def speeds():
    """All tables, and the machine."""
    parts, machine = [], {}
    for name, write in (("dynamics", dynamics), ("engine", engine)):
        path = RESULTS / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            parts.append(write(found))
            machine = found["environment"]
    parts.append(
        f"One thread of an {machine['processor']}; shortest processor time of many runs, the peers taking turns. Loops "
        "over peers include their calls from Python; an empty cell is a call that was not measured."
    )
    return "\n\n".join(parts)


def filled(text):
    """``text`` with the tables put between the marks."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(text):
        raise ValueError("the README has lost the marks of its table of speeds")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{speeds()}\n\n{END}", text)


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
