"""Sphinx configuration of the slides. reveal.js comes with sphinx-revealjs; its own themes and its mathematics plug-in
ask a network for fonts and for MathJax, so neither is used here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mathjax_config import MATHJAX_CONFIG

project = "kfdyn: the lecture"
author = "kfdyn founders"
copyright = "2026, kfdyn founders"

extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx_revealjs"]
myst_enable_extensions = ["colon_fence", "dollarmath"]

# The slides are built below the pages, docs/_build/html/slides, and share their copy of MathJax.
mathjax_path = "../../_static/mathjax/tex-svg-full.js"
mathjax3_config = MATHJAX_CONFIG | {"svg": {"fontCache": "local"}}  # a slide that is not shown cannot lend its letters

html_copy_source = False
revealjs_static_path = ["_static"]
revealjs_html_theme = "revealjs-simple"
revealjs_style_theme = "slides.css"
revealjs_use_section_ids = True
revealjs_script_plugins = [{"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"}]
revealjs_script_files = ["slides.js"]
# JavaScript, not JSON. All slides keep their place in the layout, shown or not (viewDistance), so that MathJax can
# measure in them.
revealjs_script_conf = """{
    margin: 0.02, ...shape(), center: false, hash: true, slideNumber: "c/t", transition: "none", viewDistance: 100,
    mobileViewDistance: 100, scrollActivationWidth: null, pdfSeparateFragments: false,
}"""
