"""The order of the gallery: that of the way through it in its header, theme by theme."""

import re
from pathlib import Path

HEADER = Path(__file__).parents[1] / "examples" / "GALLERY_HEADER.rst"


class ByTheme:
    """Sort key of sphinx-gallery: where the header names a script; those it does not name come last, by name."""

    def __init__(self, src_dir):
        self.named = re.findall(r"sphx_glr_gallery_(plot_\w+\.py)", HEADER.read_text(encoding="utf-8"))

    def __call__(self, filename):
        """Return the place of a script."""
        return self.named.index(filename) if filename in self.named else len(self.named), filename

    def __repr__(self):
        return "<ByTheme>"
