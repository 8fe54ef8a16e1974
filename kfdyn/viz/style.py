"""Style of all figures: a colour-blind-safe palette and quiet axes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

#: The palette of Okabe and Ito (2008), by name.
COLORS: Mapping[str, str] = MappingProxyType(
    {
        "blue": "#0072B2",
        "orange": "#E69F00",
        "green": "#009E73",
        "vermilion": "#D55E00",
        "sky": "#56B4E9",
        "purple": "#CC79A7",
        "grey": "#404040",
        "pale": "#B8B8B8",
    }
)

#: Settings of matplotlib: ``plt.style.use(STYLE)``, or ``with plt.style.context(STYLE)`` for one figure.
STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "figure.constrained_layout.use": True,
}
