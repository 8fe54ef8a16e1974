"""Every script of the gallery runs as it stands, draws something in the gallery's style, and asserts its point."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))

# Runs the script block by block, as the gallery does: a figure is taken at the end of the block that opened it, and
# must be finished by then. Exits 3 when there is none, 4 when one has empty axes.
RUNNER = r"""
import re, sys
import matplotlib.pyplot as plt
path, folder = sys.argv[1:]
source = open(path, encoding="utf-8").read()
starts = [0, *(found.start() for found in re.finditer("^# %%", source, re.MULTILINE)), len(source)]
names, drawn = {"__name__": "__main__", "__file__": path}, 0
for start, stop in zip(starts, starts[1:]):
    exec(compile("\n" * source.count("\n", 0, start) + source[start:stop], path, "exec"), names)
    for number in plt.get_fignums():
        figure = plt.figure(number)
        if not all(ax.has_data() or ax.texts or not ax.axison for ax in figure.axes):
            sys.exit(4)
        figure.savefig(f"{folder}/{drawn}.png", dpi=50)
        drawn += 1
    plt.close("all")
sys.exit(0 if drawn else 3)
"""

# What the gallery must show, by script: the list of the documentation's plan.
POINTS = """
    acceleration_causes armature articulated_inertia control convergence cross_check double_pendulum duality
    force_decompositions gp hybrid implicit_damping information nile operational_space partition riccati_lyapunov
    single_body thermal tree whitening dial payload push one_more_imu collision
    phylogeny four_forms
"""


def test_there_are_examples():
    assert {path.stem for path in EXAMPLES} >= {f"plot_{name}" for name in POINTS.split()}


def test_the_way_through_the_gallery_names_every_example_once():
    """Else it stands behind the last theme, in the order of the alphabet."""
    header = (EXAMPLES[0].parent / "GALLERY_HEADER.rst").read_text(encoding="utf-8")
    assert sorted(re.findall(r"sphx_glr_gallery_(plot_\w+)\.py", header)) == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title_a_style_and_asserts_its_point(path):
    source = path.read_text(encoding="utf-8")
    script = ast.parse(source)
    title, underline, *_ = ast.get_docstring(script).splitlines()
    assert len(underline) >= len(title) > 10 and set(underline) == {"="}
    assert any(isinstance(node, ast.Assert) for node in ast.walk(script)), "state the point as an assertion"
    assert "plt.style.use(STYLE)" in source and source.rstrip().endswith("plt.show()")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-W", "error::RuntimeWarning", "-c", RUNNER, path, tmp_path],
        env=os.environ | {"MPLBACKEND": "Agg"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    figures = list(tmp_path.glob("*.png"))
    assert figures
    for figure in figures:
        assert imread(figure)[..., :3].std() > 0.02, "the figure is blank"
