"""The project's reason to be on a robot: the PUMA 560 as a random process, every covariance confronted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import kfdyn as kf
from kfdyn.cli.slide import show_verdict, slide_table
from kfdyn.viz.cross_check import save_figures

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
    gaps = {party.name: 0.0 for party in report.parties}
    for party in report.parties:
        gaps[party.name] = max(gaps[party.name], party.gap)
    console.print(
        "Largest gap, in standard deviations, to " + ", ".join(f"{name}: {gap:.0e}" for name, gap in gaps.items()) + "."
    )
    console.print(
        f"Largest residual of {len(report.identities)} operator identities: {max(report.identities.values()):.0e}."
    )
    show_verdict(console, report)
    return report
