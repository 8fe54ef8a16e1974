"""Every script of the gallery runs as it stands and draws something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))

# Runs the script as a user would, then keeps the figures it left open; exits 3 when there are none.
RUNNER = """
import runpy, sys
import matplotlib.pyplot as plt
runpy.run_path(sys.argv[1], run_name="__main__")
for number in plt.get_fignums():
    plt.figure(number).savefig(f"{sys.argv[2]}/{number}.png", dpi=50)
sys.exit(0 if plt.get_fignums() else 3)
"""


def test_there_are_examples():
    assert {path.name for path in EXAMPLES} >= {"plot_gp.py", "plot_nile.py", "plot_tree.py"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-W", "error::RuntimeWarning", "-c", RUNNER, path, tmp_path],
        env=os.environ | {"MPLBACKEND": "Agg"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    figures = list(tmp_path.glob("*.png"))
    assert figures
    for figure in figures:
        assert imread(figure)[..., :3].std() > 0.02, "the figure is blank"
