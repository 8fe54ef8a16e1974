"""The engine on a tree: a torso with two arms, its inverse mass matrix thrice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import kfdyn as kf
from kfdyn.cli.demo.nile import Check
from kfdyn.cli.terminal import show_table
from kfdyn.estimation.model.blocks import FloatArray

if TYPE_CHECKING:
    from rich.console import Console

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


def arm_blocks() -> tuple[list[int], list[FloatArray | None], list[FloatArray], list[FloatArray]]:
    """Return parents, force shifts φ, hinge maps H and inertias Q of the two-armed tree (THEORY section 6).

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
    """Show the tree: spatial forces add up from the hands to the base; the outputs are the hinge torques."""
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
    """Draw correlations of the joint accelerations: from the filter, and from samples."""
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
