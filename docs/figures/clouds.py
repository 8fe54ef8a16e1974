"""Torques scatter with the mass matrix, accelerations with its inverse: shoulder and elbow of a PUMA 560.

python docs/figures/clouds.py
"""

import matplotlib.pyplot as plt
import numpy as np
from style import BLUE, ORANGE, save

import kfdyn as kf
from kfdyn.viz import draw_ellipse

SHOWN, JOINTS = 4000, [1, 2]

arm = kf.models.puma560()
q = np.radians([0.0, -35.0, 115.0, 0.0, 20.0, 0.0])
ss = kf.as_estimation(arm, q, gravity=np.zeros(3))
T = kf.draw(ss, np.random.default_rng(2), SHOWN).T
a = kf.bryson_frazier(ss, kf.kalman_filter(ss, T), covariances=False).a

figure, axes = plt.subplots(1, 2, figsize=(9, 4.1), layout="constrained")
for ax, cloud, cov, what, name in (
    (axes[0], T, kf.mass_matrix(arm, q), "torque", r"$\mathcal{M}$"),
    (axes[1], a, kf.mass_matrix_inverse(arm, q), "acceleration", r"$\mathcal{M}^{-1}$"),
):
    block = cov[np.ix_(JOINTS, JOINTS)]
    ax.plot(*cloud[:, JOINTS].T, ".", color=ORANGE, markersize=2.5, alpha=0.6, zorder=1)
    for sigmas in (1, 2, 3):
        draw_ellipse(ax, block, size=sigmas, facecolor="none", edgecolor=BLUE, linewidth=1.8, zorder=2)
    ax.set(xlabel=f"{what} of the shoulder", ylabel=f"{what} of the elbow")
    ax.set_title(f"{what}s: ellipses of {name} at 1, 2, 3 σ")
    square = np.einsum("si,ij,sj->s", cloud[:, JOINTS], np.linalg.inv(block), cloud[:, JOINTS])
    inside = (square[:, None] < np.array([1, 4, 9])).mean(axis=0)
    chi2 = 1 - np.exp([-0.5, -2.0, -4.5])  # two degrees of freedom
    assert np.all(np.abs(inside - chi2) < 4 * np.sqrt(chi2 * (1 - chi2) / SHOWN)), inside
save(figure, "clouds")
