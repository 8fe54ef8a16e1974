"""Every block of shell commands in the README and in the pages runs, as every block of Python does.

In a folder with a robot and a ``.venv``; ``make`` says what it would do, since it would build all this again, and
``pip`` is asked whether it could. What serves a page until it is stopped is run with ``--help``;
the slides are printed by a browser among the tests of the pages, not here.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BUILT = {"_build", "_static", "generated", "gallery"}
PAGES = [
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not BUILT & set(page.relative_to(ROOT / "docs").parts)),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]
BLOCKS = {
    f"{page.relative_to(ROOT)}-{i}": block
    for page in PAGES
    for i, block in enumerate(FENCE.findall(page.read_text(encoding="utf-8")))
}
LINK = (
    '<link name="{0}"><inertial><mass value="1"/><origin xyz="0.1 0 0.2"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
URDF = (
    '<robot name="arm">'
    + LINK.format("base")
    + LINK.format("upper")
    + '<joint name="elbow" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>'
    + "</robot>"
)
SERVES = re.compile(r"^(\s*(?:\S*/)?kfdyn explore)(?!.*--record)[^#\n]*", re.MULTILINE)


@pytest.fixture
def folder(tmp_path):
    """A checkout as a reader has it: documents, a robot, an environment."""
    for name in ("robot.urdf", "panda.urdf"):
        (tmp_path / name).write_text(URDF)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    few = '$(test "$1" = check && echo --samples 4000)'  # enough to see that it runs
    tools = {
        ".venv/bin/kfdyn": f'exec "{sys.executable}" -m kfdyn "$@" {few}',
        ".venv/bin/python": f'exec "{sys.executable}" "$@"',
        "bin/kfdyn": f'exec "{sys.executable}" -m kfdyn "$@" {few}',
        "bin/make": f'exec /usr/bin/env -i PATH="{os.environ["PATH"]}" make -n -C "{ROOT}" "$@" > /dev/null',
        "bin/pip": "true",
        "bin/chromium": "true",
    }
    for name, line in tools.items():
        tool = tmp_path / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(f"#!/bin/sh\n{line}\n")
        tool.chmod(0o755)
    return tmp_path


def run(block, folder):
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["sh", "-e", "-c", SERVES.sub(r"\1 --help ", block)],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.parametrize("name", BLOCKS)
def test_it_runs(name, folder):
    done = run(BLOCKS[name], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr


def test_a_wrong_block_would_be_found(folder):
    for block in ("kfdyn check robot.urdf --json report.json\n", "kfdyn inspect robot.urdf\n", "make cake\n"):
        assert run(block, folder).returncode != 0, block
