"""Cross-check the PUMA 560 as a random process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import kfdyn as kf
from kfdyn.cli.slide import show_verdict, slide_table
from kfdyn.duality import QUANTITIES
from kfdyn.viz.cross_check_figures import save_figures

if TYPE_CHECKING:
    from rich.console import Console

SAMPLES, SEED = 200_000, 0


def show_robot(console: Console, folder: Path) -> kf.Report:
    """Cross-check the PUMA 560 in a random state, print the slide and draw the figures."""
    puma = kf.models.puma560()
    rng = np.random.default_rng(SEED)
    q, v = puma.random_configuration(rng), rng.standard_normal(puma.nv)
    report = kf.cross_check(puma, q, v, samples=SAMPLES, seed=SEED)
    save_figures(report, folder)
    console.print(slide_table(report, console.width))
    images = ", ".join(QUANTITIES[name].symbol for name in report.groups[0].quantities)
    console.print(f"{images} are linear images of each other: one likelihood ratio, counted once.\n")
    console.print(report.tests_table())
    show_verdict(console, report)
    return report
