"""Sphinx configuration. The pages build and open without a network: no web fonts, no CDN."""

import logging
import re
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx_gallery.directives import imgsgnode

import kfdyn

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside it

from mathjax_config import MATHJAX_CONFIG
from theory_links import linked

HERE = Path(__file__).parent
logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every letter it takes from another font
# Of limits that equal axes widen, and of which writer makes a GIF, it need not tell either.
for noisy in ("matplotlib.axes._base", "matplotlib.animation"):
    logging.getLogger(noisy).setLevel(logging.ERROR)

project = "kfdyn"
author = "kfdyn founders"
copyright = "2026, kfdyn founders"
release = version = kfdyn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "figures", "slides", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"kfdyn {release}"
html_static_path = ["_static"]
html_extra_path = ["explore.html"]  # one file that needs nothing else: copied as it stands
html_css_files = ["kfdyn.css"]
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# `make docs` copies MathJax here. Without it the pages show TeX source; they never ask a CDN for it.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = MATHJAX_CONFIG

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrtalpha"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "matplotlib_animations": True,
    "write_computation_times": False,
    "within_subsection_order": "gallery_order.ByTheme",
    "capture_repr": (),  # what a page shows it prints
}


def skip_tuple_fields(app, what, name, obj, skip, options):
    """Leave out the bare fields of named tuples: the class docstring tells what they hold."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def prose(lines):
    """Yield (number, parts) of each line outside code blocks; every other part is code in double backquotes."""
    literal = None  # indent of the line whose "::" opened a literal block
    doctest = False
    for i, line in enumerate(lines):
        text = line.lstrip()
        indent = len(line) - len(text)
        if literal is not None and text and indent <= literal:
            literal = None
        doctest = bool(text) and (doctest or text.startswith(">>>"))
        if literal is None and not doctest:
            yield i, line.split("``")
            if text.endswith("::"):
                literal = indent


def keep_bars(app, what, name, obj, options, lines):
    """Read |x| in a docstring's prose as bars, not as a substitution; leave code and literals alone."""
    for i, parts in prose(lines):
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[i] = "``".join(parts)


#: Letter before the number of an equation, so that (3) and (M3) are told apart; the theory page has none.
PAGE_LETTERS = {
    "mechanics": "M",
    "conventions": "C",
    "numerics": "N",
    "for_roboticists": "R",
    "logdet": "D",
    "lecture/lecture": "L",
}


def letter_equations(app, doctree):
    """Put the page's letter before the numbers of its equations, where they stand and where they are cited."""
    letter = PAGE_LETTERS.get(app.env.docname, "")
    equations = app.env.get_domain("math").equations
    for node in doctree.findall(nodes.math_block):
        if letter and node.get("number"):
            node["number"] = f"{letter}{node['number']}"
            equations[node["label"]] = (app.env.docname, node["number"])


def keep_punctuation(app, doctree):
    """Keep the comma after a formula on its line: a browser may break a line on either side of a picture."""
    for formula in list(doctree.findall(nodes.math)):
        siblings = formula.parent.children
        after = siblings.index(formula) + 1
        text = siblings[after] if after < len(siblings) else ""
        mark = re.match(r"[,.;:)\]?]+", text) if isinstance(text, nodes.Text) else None
        if mark:
            siblings[after] = nodes.Text(text[mark.end() :])
            siblings[after].parent = formula.parent
            formula.replace_self(nodes.inline("", "", formula.deepcopy(), nodes.Text(mark[0]), classes=["together"]))


def break_names(app, doctree, docname):
    """Let names of code in a table break after their dots, slashes and underscores, and nowhere else."""
    for entry in doctree.findall(nodes.entry):
        for code in entry.findall(nodes.literal):
            parts = re.split(r"(?<=[._/:(,])(?=\w)", code.astext())
            if len(parts) > 1 and all(isinstance(child, nodes.Text) for child in code):
                code.children = []
                for i, part in enumerate(parts):
                    code += [nodes.raw("", "<wbr>", format="html")] * bool(i) + [nodes.Text(part)]


def figure_first(app, doctree):
    """Show the first figure of a gallery page below its title: it is the point, the script only draws it."""
    if not app.env.docname.startswith("gallery/plot_"):
        return
    section = next(doctree.findall(nodes.section))
    for node in doctree.findall():
        if isinstance(node, imgsgnode) or "sphx-glr-animation" in getattr(node, "attributes", {}).get("classes", ()):
            node.parent.remove(node)
            section.insert(section.first_child_matching_class(nodes.title) + 1, node)
            return


def formulas():
    """Labels of equations by the full name of what computes them."""
    rooms = tomllib.loads((HERE / "formulas.toml").read_text(encoding="utf-8"))["kfdyn"]
    return {f"kfdyn.{room}.{name}": labels for room, names in rooms.items() for name, labels in names.items()}


FORMULAS = formulas()


def cite_formulas(app, what, name, obj, options, lines):
    """Put the equations that a function computes below its first line."""
    if name in FORMULAS:
        begin = next(i for i, line in enumerate(lines) if line)
        end = next((i for i in range(begin, len(lines)) if not lines[i]), len(lines))
        cited = ", ".join(f":eq:`{label}`" for label in FORMULAS[name])
        lines[end:end] = ["", f"Equations of the theory: {cited}."]


def link_theory(app, what, name, obj, options, lines):
    """Link citations of the theory to its page, and the short names of the sources to their list."""
    seen = set()

    def source(match):
        if match[0] in seen:
            return match[0]
        seen.add(match[0])
        return f":ref:`{match[0]} <sources>`"

    for i, parts in prose(lines):
        for j, part in enumerate(parts[::2]):
            parts[2 * j] = re.sub(r"\b(R86|ATBI|SKO|SRB|PART)\b(?=[ ,])", source, linked(part))
        lines[i] = "``".join(parts)


def setup(app):
    app.connect("doctree-read", letter_equations)
    app.connect("doctree-read", figure_first)
    app.connect("doctree-read", keep_punctuation)
    app.connect("doctree-resolved", break_names)
    app.connect("autodoc-skip-member", skip_tuple_fields)
    app.connect("autodoc-process-docstring", keep_bars, priority=600)  # after numpydoc
    app.connect("autodoc-process-docstring", link_theory, priority=610)
    app.connect("autodoc-process-docstring", cite_formulas, priority=620)
