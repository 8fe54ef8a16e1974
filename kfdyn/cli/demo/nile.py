"""The engine on a chain: the level of the Nile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import kfdyn as kf
from kfdyn.cli.terminal import show_table
from kfdyn.estimation.model.blocks import FloatArray, IntArray

if TYPE_CHECKING:
    from rich.console import Console


class Check(NamedTuple):
    """One claim, what was found, and whether it holds."""

    claim: str
    found: str
    passed: bool


#: Durbin and Koopman's local level model of the Nile, and the log-likelihood published for it.
NILE_Q, NILE_R, NILE_P0, NILE_LLF = 1469.1, 15099.0, 1e7, -641.58558

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#404040"


def show_nile(console: Console, path: Path) -> list[Check]:
    """Show the chain: x(k+1) = x(k) + w, T = x + r, on the annual flow of the Nile."""
    from kfdyn.estimation.datasets import nile

    year, flow = nile()
    one = np.ones((1, 1))
    ss = kf.StateSpace.chain(one, one, NILE_Q * one, NILE_R * one, [0.0], NILE_P0 * one, steps=flow.size)
    filt = kf.kalman_filter(ss, flow)
    smooth = kf.bryson_frazier(ss, filt)

    # The same without a recursion: levels of years i and j share the noise up to the earlier one.
    common = np.minimum.outer(np.arange(flow.size), np.arange(flow.size))
    cov_x = NILE_P0 + NILE_Q * common
    cov_T = cov_x + NILE_R * np.eye(flow.size)
    llf = -0.5 * (flow.size * np.log(2 * np.pi) + np.linalg.slogdet(cov_T)[1] + flow @ np.linalg.solve(cov_T, flow))
    level = cov_x @ np.linalg.solve(cov_T, flow)
    spread = np.sqrt(np.diag(cov_x - cov_x @ np.linalg.solve(cov_T, cov_x)))

    k = int(np.flatnonzero(year == 1899)[0])
    show_table(
        console,
        "The Nile, a chain of 100 years: what is known of 1899",
        ("what", "letter", "10⁸ m³", "variance"),
        [
            ("level, predicted from the past", "z, P", f"{filt.z[k][0]:.1f}", f"{filt.P[k][0, 0]:.0f}"),
            ("innovation, what came as a surprise", "ε, D", f"{filt.eps[k]:.1f}", f"{filt.D[k][0, 0]:.0f}"),
            ("level, its own year included", "z⁺, P⁺", f"{filt.z_plus[k][0]:.1f}", f"{filt.P_plus[k][0, 0]:.0f}"),
            ("level, smoothed from all years", "x̂, S", f"{smooth.x[k][0]:.1f}", f"{smooth.S[k][0, 0]:.0f}"),
        ],
    )
    console.print(f"Kalman gain G = {filt.G[k][0, 0]:.4f}, log-likelihood of the series {filt.llf:.5f}\n")
    draw_nile(path, year, flow, filt, smooth)
    # The dense side subtracts variances of 1e7 to find some of 1e3, so that it keeps about eleven digits.
    llf_gap = float(abs(filt.llf - llf) / abs(llf))
    mean_gap = float(np.abs(smooth.x.flat / level - 1).max())
    spread_gap = float(np.abs(np.sqrt(smooth.S.flat) / spread - 1).max())
    return [
        Check("Nile: the published log-likelihood", f"{filt.llf:.5f}", abs(filt.llf - NILE_LLF) < 5e-6),
        Check("Nile: log-likelihood = dense", f"gap {llf_gap:.1e}", llf_gap < 1e-12),
        Check("Nile: smoothed levels = dense", f"gap {mean_gap:.1e}", mean_gap < 1e-9),
        Check("Nile: their deviations = dense", f"gap {spread_gap:.1e}", spread_gap < 1e-9),
    ]


def draw_nile(path: Path, year: IntArray, flow: FloatArray, filt: kf.Filtered, smooth: kf.Smoothed) -> None:
    """Draw the flow, the filtered and the smoothed level with their 95 % bands."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(year, flow, ".", color=GREY, markersize=5, label="measured")
    for mean, variance, colour, label in (
        (filt.z_plus.flat, filt.P_plus.flat, ORANGE, "filtered, from the past"),
        (smooth.x.flat, smooth.S.flat, BLUE, "smoothed, from all years"),
    ):
        half = 1.96 * np.sqrt(variance)
        axes.fill_between(year, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
        axes.plot(year, mean, color=colour, linewidth=1.8, label=label)
    axes.set(xlabel="year", ylabel="flow (10⁸ m³ a year)", title="The Nile at Aswan, with 95 % bands", ylim=(420, 1500))
    axes.legend(frameon=False, ncols=3, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
