"""Sphinx configuration. The pages build and open without a network: no web fonts, no CDN."""

from pathlib import Path

import kfdyn

HERE = Path(__file__).parent

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
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"kfdyn {release}"
html_static_path = ["_static"]
html_css_files = ["kfdyn.css"]
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# `make docs` copies MathJax here. Without it the pages show TeX source; they never ask a CDN for it.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {
    "tex": {"macros": {"M": r"\mathcal{M}", "E": r"\mathcal{E}", "cov": r"\operatorname{cov}"}},
    "options": {"enableMenu": False},
    "svg": {"fontCache": "global"},
}

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
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
}


def skip_tuple_fields(app, what, name, obj, skip, options):
    """Leave out the bare fields of named tuples: the class docstring tells what they hold."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def keep_bars(app, what, name, obj, options, lines):
    """Read |x| in a docstring's prose as bars, not as a substitution; leave code and literals alone."""
    literal = None  # indent of the line whose "::" opened a literal block
    doctest = False
    for i, line in enumerate(lines):
        text = line.lstrip()
        indent = len(line) - len(text)
        if literal is not None and text and indent <= literal:
            literal = None
        doctest = bool(text) and (doctest or text.startswith(">>>"))
        if literal is None and not doctest:
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[i] = "``".join(parts)
            if text.endswith("::"):
                literal = indent


def setup(app):
    app.connect("autodoc-skip-member", skip_tuple_fields)
    app.connect("autodoc-process-docstring", keep_bars, priority=600)  # after numpydoc
