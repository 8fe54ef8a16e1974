"""Write the table of speeds in the README from what ``make bench`` measured, so that the two cannot differ.

python docs/readme_speed.py
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- speeds: written by docs/readme_speed.py -->", "<!-- end of speeds -->"


def engine():
    """Rows of the filter and smoother beside statsmodels and filterpy, and the machine."""
    found = json.loads((RESULTS / "engine.json").read_text(encoding="utf-8"))
    cost = found["us_per_step"]
    ours = cost["kfdyn"]
    statsmodels = min(value for name, value in cost.items() if name.startswith("statsmodels"))
    filterpy = min(value for name, value in cost.items() if name.startswith("filterpy"))
    what = "filter and smoother with covariances, 1000 steps, 6 states"
    rows = [
        (what, "statsmodels, compiled loops", f"{digits(statsmodels)} µs a step", ours, statsmodels),
        (what, "filterpy", f"{digits(filterpy)} µs a step", ours, filterpy),
    ]
    return [(what, f"{digits(a)} µs a step", peer, text, f"{digits(b / a)}") for what, peer, text, a, b in rows], found


def digits(value):
    """Two significant digits, without an exponent."""
    return f"{float(f'{value:.2g}'):g}"


def table():
    """The table and a line on the machine, as Markdown."""
    rows, found = engine()
    lines = ["| task | kfdyn | peer | takes | peer / kfdyn |", "|---|--:|---|--:|--:|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    machine = found["environment"]
    return "\n".join(lines) + f"\n\nOne thread of an {machine['processor']}, shortest processor time of many runs.\n"


def filled(text):
    """``text`` with the table put between the marks."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(text):
        raise ValueError("the README has lost the marks of its table of speeds")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{table()}\n{END}", text)


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
