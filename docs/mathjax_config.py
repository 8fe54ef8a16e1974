"""What MathJax is told, on the pages and on the slides: the letters they share, and no menu."""

MATHJAX_CONFIG = {
    "tex": {"macros": {"M": r"\mathcal{M}", "E": r"\mathcal{E}", "cov": r"\operatorname{cov}"}},
    "options": {"enableMenu": False},
    "svg": {"fontCache": "global"},
}
