"""The command line: ``kfdyn demo`` shows the engine on a time series and on a tree, and checks what it shows.

Exit status: 0 all checks passed, 1 a check failed or a file could not be written, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import kfdyn as kf
from kfdyn.estimation.blocks import FloatArray, IntArray

if TYPE_CHECKING:
    from rich.console import Console

#: Durbin and Koopman's local level model of the Nile, and the log-likelihood published for it.
NILE_Q, NILE_R, NILE_P0, NILE_LLF = 1469.1, 15099.0, 1e7, -641.58558

#: A torso with two arms: name, parent, hinge axis, hinge point seen from the parent's (m), length (m), mass (kg).
ARM = (
    ("torso", -1, "z", (0.0, 0.0, 0.0), (0.0, 0.0, 0.6), 30.0),
    ("L shoulder", 0, "x", (0.0, 0.2, 0.5), (0.0, 0.1, -0.3), 3.0),
    ("L elbow", 1, "y", (0.0, 0.1, -0.3), (0.2, 0.0, -0.2), 2.0),
    ("L wrist", 2, "z", (0.2, 0.0, -0.2), (0.1, 0.0, 0.0), 0.5),
    ("R shoulder", 0, "x", (0.0, -0.2, 0.5), (0.0, -0.2, -0.2), 3.0),
    ("R elbow", 4, "y", (0.0, -0.2, -0.2), (0.1, 0.1, -0.2), 2.0),
    ("R wrist", 5, "x", (0.1, 0.1, -0.2), (0.0, 0.1, 0.1), 0.5),
)
SAMPLES, SEED = 50_000, 0
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#404040"


class Check(NamedTuple):
    """One claim, what was found, and whether it holds."""

    claim: str
    found: str
    passed: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if not given.

    Returns
    -------
    int
        0, 1 or 2, see above.
    """
    parser = argparse.ArgumentParser(prog="kfdyn", description="Robot dynamics is a Kalman filter.")
    parser.add_argument("--version", action="version", version=f"kfdyn {kf.__version__}")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="command", required=True)
    about = "show the engine on the Nile series and on an arm-shaped tree, and check it against dense algebra"
    demo_parser = commands.add_parser("demo", help=about, description=about)
    demo_parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where the figures go (%(default)s)"
    )
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    try:
        return demo(args.output)
    except OSError as error:
        print(f"kfdyn: cannot write the figures: {error}", file=sys.stderr)
        return 1


def demo(output: Path) -> int:
    """Show both examples, write their figures, and return 0 if every check passed, else 1."""
    from rich.console import Console

    if hasattr(sys.stdout, "reconfigure"):  # a terminal without Greek letters gets question marks, not a traceback
        sys.stdout.reconfigure(errors="replace")
    output.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    console.print(
        "One engine, a Kalman filter and smoother on trees, shown on a time series and\non a tree. "
        "The first run compiles it, which takes some seconds.\n"
    )
    checks = show_nile(console, output / "nile.png") + show_arm(console, output / "arm.png")
    show_table(
        console,
        "Checks",
        ("claim", "found", ""),
        [(c.claim, c.found, "holds" if c.passed else "FAILS") for c in checks],
    )
    console.print(f"Figures: {output / 'nile.png'}, {output / 'arm.png'}", soft_wrap=True)
    return 0 if all(check.passed for check in checks) else 1


def show_table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the first column to the left, numbers to the right."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def show_nile(console: Console, path: Path) -> list[Check]:
    """The chain: x(k+1) = x(k) + w, T = x + r, on the annual flow of the Nile."""
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
    """The flow, the filtered and the smoothed level with their 95 % bands."""
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


def arm_blocks() -> tuple[list[int], list[FloatArray | None], list[FloatArray], list[FloatArray]]:
    """Parents, force shifts φ, hinge maps H and inertias Q of the two-armed tree (THEORY section 6).

    ::

        φ(p,k) = [[1, l~], [0, 1]]     H(k) = [axis, 0]     Q(k) = [[J, m p~], [−m p~, m 1]]

    with l from the parent's hinge point to this one and p from the hinge point to the mass centre of a rod.
    """
    parents, phi, H, Q = [], [], [], []
    one = np.eye(3)
    for _, parent, axis, lever, rod, mass in ARM:
        l_cross, p_cross, rod_cross = (_tilde(np.array(v)) for v in (lever, np.array(rod) / 2, rod))
        about_centre = -mass / 12 * rod_cross @ rod_cross + mass * 0.03**2 * one  # a rod, three centimetres thick
        about_hinge = about_centre - mass * p_cross @ p_cross
        parents.append(parent)
        phi.append(None if parent < 0 else np.block([[one, l_cross], [0 * one, one]]))
        H.append(np.concatenate([one["xyz".index(axis)], np.zeros(3)])[None])
        Q.append(np.block([[about_hinge, mass * p_cross], [-mass * p_cross, mass * one]]))
    return parents, phi, H, Q


def _tilde(v: FloatArray) -> FloatArray:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def show_arm(console: Console, path: Path) -> list[Check]:
    """The tree: spatial forces add up from the hands to the base; the outputs are the hinge torques, without noise."""
    from scipy.linalg import block_diag

    from kfdyn.estimation.consistency import covariance_test

    parents, phi, H, Q = arm_blocks()
    names = [row[0] for row in ARM]
    ss = kf.StateSpace(parents, phi, H, Q, names=names)
    F = kf.innovations_factor(ss)
    cov = F.covariances
    inverse = F.inverse()

    # The same from the definition 𝓜 = Hφ Q φ*H* with φ = (1 − ℰ)⁻¹, all of it dense.
    shift = np.zeros((ss.n_states, ss.n_states))
    for k, block in enumerate(phi):
        if block is not None:
            shift[6 * parents[k] : 6 * parents[k] + 6, 6 * k : 6 * k + 6] = block
    to_torque = block_diag(*H) @ np.linalg.inv(np.eye(ss.n_states) - shift)
    mass_matrix = to_torque @ block_diag(*Q) @ to_torque.T
    dense = np.linalg.inv(mass_matrix)

    # And by chance: inertias as covariances of forces, torques of these forces, accelerations by the smoother.
    rng = np.random.default_rng(SEED)
    w = rng.standard_normal((SAMPLES, ss.n_states)) @ np.linalg.cholesky(block_diag(*Q)).T
    a = F.solve(w @ to_torque.T)
    sampled = a.T @ a / SAMPLES
    verdict = covariance_test(a, dense)

    show_table(
        console,
        "A torso with two arms, a tree of 7 nodes: covariance is inertia",
        ("hinge", "P (kg)", "D (kg m²)", "|G|", "𝓜⁻¹ filter", "numpy", "sampled"),
        [
            (
                name,
                f"{cov.P[k][3:, 3:].trace() / 3:.2f}",
                f"{cov.D[k][0, 0]:.4g}",
                f"{np.linalg.norm(cov.G[k]):.4g}",
                *(f"{matrix[k, k]:.4g}" for matrix in (inverse, dense, sampled)),
            )
            for k, name in enumerate(names)
        ],
    )
    draw_arm(path, names, inverse, sampled)
    # Each entry against its own variances: the wrists' would hide an error of the torso's.
    deviation = np.sqrt(np.diag(dense))
    gap = float((np.abs(inverse - dense) / np.outer(deviation, deviation)).max())
    logdet_gap = abs(F.logdet() - float(np.linalg.slogdet(mass_matrix)[1]))
    return [
        Check("arm: inverse mass matrix by innovations = dense", f"gap {gap:.1e}", gap < 1e-10),
        Check("arm: log det 𝓜 = Σ log D = dense", f"gap {logdet_gap:.1e}", logdet_gap < 1e-10),
        Check(
            f"arm: {SAMPLES:,} sampled accelerations have covariance 𝓜⁻¹",
            f"p = {verdict.p_value:.2f}",
            verdict.p_value > 1e-3,
        ),
    ]


def draw_arm(path: Path, names: Sequence[str], inverse: FloatArray, sampled: FloatArray) -> None:
    """Correlations of the joint accelerations: from the filter, and from samples."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    pair = figure.subplots(1, 2, sharey=True)
    for axes, matrix, title in zip(pair, (inverse, sampled), ("by the filter", f"of {SAMPLES:,} samples")):
        scale = np.sqrt(np.diag(matrix))
        correlation = matrix / np.outer(scale, scale)
        image = axes.imshow(correlation, cmap="PuOr", vmin=-1, vmax=1)
        for (i, j), value in np.ndenumerate(correlation):
            axes.text(
                j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color="w" if abs(value) > 0.7 else "k"
            )
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_title(title)
        axes.tick_params(length=0)
    pair[0].set_yticks(range(len(names)), names)
    figure.colorbar(image, ax=pair, label="correlation of accelerations", shrink=0.8)
    figure.suptitle("The inverse mass matrix is a covariance")
    figure.savefig(path, dpi=150)
