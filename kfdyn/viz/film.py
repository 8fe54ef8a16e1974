"""An animation whose HTML page needs no network for its buttons."""

from __future__ import annotations

import re
from typing import Any

from matplotlib.animation import FuncAnimation

#: The signs on the buttons of matplotlib's page, by the names of its font: letters that every system has.
SIGNS = {
    "minus": "−",
    "fast-backward": "|◀",
    "step-backward": "‹",
    "play fa-flip-horizontal": "◀",
    "pause": "||",
    "play": "▶",
    "step-forward": "›",
    "fast-forward": "▶|",
    "plus": "+",
}


class Film(FuncAnimation):
    """An animation that is shown without a network."""

    def to_jshtml(self, *args: Any, **options: Any) -> str:
        """Return a page with buttons, as matplotlib does, that needs no network."""
        page = re.sub(r'<link rel="stylesheet"\s+href="https?:[^>]*>\s*', "", super().to_jshtml(*args, **options))
        return re.sub(r'<i class="fa fa-([a-z -]+)"></i>', _sign, page)


def _sign(match: re.Match[str]) -> str:
    text = "\N{VARIATION SELECTOR-15}"  # a letter, not a coloured picture
    return f'<span aria-hidden="true">{SIGNS[match[1]]}{text}</span>'
