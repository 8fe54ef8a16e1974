"""Every block of code in the pages runs as printed and prints what it shows; links and figures lead somewhere."""

import ast
import contextlib
import doctest
import io
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from matplotlib.image import imread

import kfdyn as kf
from kfdyn import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILT = {"_build", "_static", "generated", "gallery"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if not BUILT & set(page.relative_to(DOCS).parts))
FIGURES = sorted(path for path in (DOCS / "figures").glob("*.py") if path.stem != "style")
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

#: Pages whose blocks are read but not run, and why.
NOT_RUN = {"cross_check.md": "asks for a Dask scheduler and 10⁸ samples; howto pages run the same calls on less"}

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def name_of(path):
    return str(path.relative_to(ROOT))


def fences(page):
    """(language, text, line of the text) of each fenced block."""
    text = page.read_text(encoding="utf-8")
    return [(m[1].strip(), m[2], text.count("\n", 0, m.start(2))) for m in FENCE.finditer(text)]


def run(page):
    """Run the Python of a page, in order and in one namespace; return how many blocks ran."""
    names: dict = {"__name__": "__main__"}
    printed, count = None, 0
    for language, source, line in fences(page):
        if language == "python":
            tree = compile("\n" * line + source, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(tree, names)
            printed = out.getvalue()
        elif language == "pycon":
            test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), line)
            test.globs = names
            report = io.StringIO()
            failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=report.write, clear_globs=False)
            assert failed == 0, report.getvalue()
            assert tried > 0, f"{page}:{line}: no >>> in a pycon block"
        elif language == "text" and printed is not None:
            assert source == printed, f"{page}:{line}: printed\n{printed}"
            printed = None
        count += language in ("python", "pycon")
    return count


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in NOT_RUN], ids=lambda page: str(page.relative_to(DOCS))
)
def test_code_runs_as_printed(page):
    expected = sum(language in ("python", "pycon") for language, *_ in fences(page))
    assert run(page) == expected


@pytest.mark.parametrize("name", sorted(NOT_RUN))
def test_what_is_not_run_at_least_exists(name):
    for language, source, _ in fences(DOCS / name):
        if language == "python":
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kf":
                    assert hasattr(kf, node.attr), node.attr


def test_the_guide_is_there():
    """Pages that promise to run have something to run."""
    promised = ["for_estimation", "for_roboticists", "lecture/lecture", "load", "inspect", "simulate", "check_robot"]
    promised += ["thermal", "logdet", "task_space", "gaussian_process", "scale_out"]
    for stem in promised:
        assert sum(lang in ("python", "pycon") for lang, *_ in fences(DOCS / f"{stem}.md")) >= 2, stem


def test_a_wrong_page_would_be_found(tmp_path):
    for text in (
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nx = 1\n```\n\n```pycon\n>>> x\n2\n```\n",
    ):
        page = tmp_path / "page.md"
        page.write_text(text, encoding="utf-8")
        with pytest.raises(AssertionError):
            run(page)


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_languages_are_known(page):
    """A block in a language nobody runs would be untested code."""
    known = {"python", "pycon", "sh", "text", "toml", "bibtex"}
    for language, _, line in fences(page):
        assert language in known or language.startswith("{"), f"{page}:{line}: '{language}'"


def test_no_cluster_asks_for_a_port_of_its_own():
    """Dask takes one port of the machine: the second of two clusters at once gets a warning, here an error."""
    texts = [*TEXTS, *(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    starts = [
        text for text in (path.read_text(encoding="utf-8") for path in texts) if re.search(r"LocalCluster\(", text)
    ]
    assert len(starts) >= 2
    for text in starts:
        assert re.findall(r'dashboard_address(?:=|": )([^,)}]+)', text) == ['":0"'], text
        # Within one process it asks for the way to 8.8.8.8 unless told otherwise, and warns where there is no network.
        assert re.search(r'processes(?:=|": )True|protocol="tcp"', text), text


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)\s#]+)", text):
        if not target.startswith("gallery/") and ("." in target or "/" in target):
            assert (page.parent / target).exists(), f"{page}: {target}"
    for script in re.findall(r"gallery/(plot_\w+)", text):
        assert (ROOT / "examples" / f"{script}.py").exists(), f"{page}: {script}"


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_commands_exist(page):
    text = page.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shell = "".join(source for language, source, _ in fences(page) if language == "sh")
    shell += "\n".join(re.findall(r"`([^`\n]+)`", FENCE.sub("", text)))
    for command in re.findall(r"^(?:nice )?make ([a-z-]+)", shell, re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command
    for command in re.findall(r"^(?:\.venv/bin/)?kfdyn ([a-z]+)", shell, re.MULTILINE):
        with contextlib.redirect_stdout(io.StringIO()):
            assert cli.main([command, "--help"]) == 0, command
    for script in re.findall(r"^(?:\S*/)?python (docs/\S+\.py)", shell, re.MULTILINE):
        assert (ROOT / script).exists(), script


def test_every_page_with_equations_has_its_letter():
    """Else (3) of one page and (3) of another look alike where they are cited; see PAGE_LETTERS in docs/conf.py."""
    source = (DOCS / "conf.py").read_text(encoding="utf-8")
    assigned = (node for node in ast.parse(source).body if isinstance(node, ast.Assign))
    letters = next(ast.literal_eval(node.value) for node in assigned if node.targets[0].id == "PAGE_LETTERS")
    assert len(set(letters.values())) == len(letters)
    numbered = {page for page in PAGES if ":label:" in page.read_text(encoding="utf-8")}
    names = {str(page.relative_to(DOCS).with_suffix("")) for page in numbered}
    assert names - {"theory"} == set(letters)


def test_no_page_takes_the_place_of_a_file_that_is_copied():
    """Pages named as such a file are written over it, and every link to it shows the wrong page."""
    source = (DOCS / "conf.py").read_text(encoding="utf-8")
    assigned = (node for node in ast.parse(source).body if isinstance(node, ast.Assign))
    copied = next(ast.literal_eval(node.value) for node in assigned if node.targets[0].id == "html_extra_path")
    assert copied and not {Path(name).stem for name in copied} & {page.stem for page in PAGES if page.parent == DOCS}


def test_formulas_cited_by_the_reference_exist():
    rooms = tomllib.loads((DOCS / "formulas.toml").read_text(encoding="utf-8"))["kfdyn"]
    labels = {
        label for page in PAGES for label in re.findall(r"^:label: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    }
    listed = (DOCS / "api.md").read_text(encoding="utf-8")
    for room, names in rooms.items():
        for name, cited in names.items():
            assert pkgutil.resolve_name(f"kfdyn.{room}.{name}"), name
            assert re.search(rf"^   {re.escape(name)}$", listed, re.MULTILINE), name
            assert set(cited) <= labels, name


def test_the_citation_is_of_this_version():
    for path in (DOCS / "references.md", ROOT / "CITATION.cff"):
        versions = re.findall(r"^ *version(?: = \{|: )([\d.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert kf.__version__ in versions, path


@pytest.mark.parametrize("script", FIGURES, ids=lambda script: script.stem)
def test_figures_are_drawn_by_their_scripts(script, tmp_path):
    """The script runs, asserts what its figure shows, and draws a figure of the size that is committed."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", script, tmp_path],
        env=os.environ | {"MPLBACKEND": "Agg"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    drawn, kept = imread(tmp_path / f"{script.stem}.png"), imread(script.with_suffix(".png"))
    # Releases of matplotlib round a tight box to one pixel more or less.
    assert drawn.ndim == kept.ndim and all(abs(a - b) <= 1 for a, b in zip(drawn.shape, kept.shape))
    assert drawn[..., :3].std() > 0.02, "the figure is blank"
    assert script.with_suffix(".png").stat().st_size < 300_000


def test_every_figure_is_used_and_has_its_script():
    used = {Path(name).name for page in TEXTS for name in re.findall(r"figures/\w+\.png", page.read_text("utf-8"))}
    assert {path.name for path in (DOCS / "figures").glob("*.png")} == used
    assert used == {f"{script.stem}.png" for script in FIGURES}
