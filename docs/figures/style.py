"""What the figures of the pages have in common: colours that colour-blind readers tell apart, no frames, one size."""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, RED, GREY, BLACK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#7F7F7F", "#262626"

mpl.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "savefig.facecolor": "white",
    }
)


def save(figure, name, dpi=110):
    """Write a figure beside its script, or into the folder named on the command line."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    figure.savefig(folder / f"{name}.png", dpi=dpi, metadata={"Software": None})
