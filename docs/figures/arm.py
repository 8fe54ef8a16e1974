"""The figure of the front page: inertia ellipsoids are covariance ellipsoids, and cov(a) is the inverse mass matrix.

python docs/figures/arm.py
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from style import BLACK, BLUE, GREY, ORANGE, save

import kfdyn as kf
from kfdyn.dynamics import with_armature
from kfdyn.spatial import TriangleInequalityWarning, spatial_inertia
from kfdyn.viz import draw_inertias, draw_system, skeleton

SAMPLES, SHOWN = 200_000, 500
SIGMAS, METRES = 2.0, 0.085  # an ellipsoid of two standard deviations; metres that stand for the root of one kg m²
HINGES = (1, 2, 4)

puma = kf.models.puma560()
box = kf.Body("box", spatial_inertia(4.0, [0, 0, 0], 0.02 * np.eye(3)), parent="link_6", position=[0, 0, 0.3])
with warnings.catch_warnings():
    warnings.simplefilter("ignore", TriangleInequalityWarning)  # link 3 as it was published
    arm = kf.System([*puma.bodies, box])
arm = with_armature(arm, np.zeros(arm.nv))  # direct drives: the torques are exact measurements
q = np.radians([0.0, -50.0, 130.0, 40.0, 50.0, 0.0])

# Random forces, with the inertias of the links for covariances; filter and smooth the torques they cause.
ss = kf.as_estimation(arm, q, gravity=[0, 0, 0])
draw = kf.draw(ss, np.random.default_rng(0), SAMPLES)
filt = kf.kalman_filter(ss, draw.T)
a = kf.bryson_frazier(ss, filt, covariances=False).a
sampled, inverse = a.T @ a / SAMPLES, kf.mass_matrix_inverse(arm, q)
unit = np.sqrt(np.diag(inverse))
scale = np.outer(unit, unit)
error = (draw.x - filt.z.flat).reshape(SAMPLES, arm.n_bodies, 6)

figure = plt.figure(figsize=(9.4, 3.95))
ax = figure.add_axes((-0.02, 0.02, 0.5, 0.95), projection="3d", computed_zorder=False)
points = skeleton(arm, q).hinges
draw_inertias(
    ax, arm, q, filt.P, SIGMAS * METRES, block="angular", bodies=HINGES, color=BLUE, alpha=0.22, n=40, shade=True
)
for k in HINGES:
    cloud = points[k] + METRES * error[:SHOWN, k, :3]
    ax.scatter(*cloud.T, s=2.5, color=ORANGE, alpha=0.7, linewidths=0, depthshade=False)
foot = points[0] - [0, 0, 0.42]
ax.plot(*np.stack([foot, points[0]]).T, color=GREY, linewidth=9, alpha=0.35, solid_capstyle="butt")
draw_system(ax, arm, q, color=BLACK, linewidth=3.5)
ax.plot(*points[-1:].T, "s", color=BLACK, markersize=15)
ax.set(xlim=(-0.22, 1.08), ylim=(-0.4, 0.5), zlim=(-0.42, 0.43))
ax.set_box_aspect((1.3, 0.9, 0.85), zoom=1.4)
ax.view_init(elev=14, azim=-68)
ax.set_axis_off()
figure.text(0.02, 0.93, "Inertia is covariance", fontsize=13, weight="bold")
figure.text(0.02, 0.09, "ellipsoids: articulated inertia $P$ at hinges 2, 3, 5 (two σ)", color=BLUE, fontsize=10)
figure.text(0.02, 0.03, "dots: sampled moment there, minus the filter's prediction", color="#A06C00", fontsize=10)

names = [str(k + 1) for k in range(6)]
for left, matrix, title in (
    (0.50, sampled, "sampled covariance of $a$"),
    (0.735, inverse, r"$\mathcal{M}^{-1}$ by the filter"),
):
    ax = figure.add_axes((left, 0.14, 0.225, 0.7))
    ax.imshow(matrix / scale, cmap="PuOr", vmin=-1, vmax=1)
    for i, j in np.ndindex(6, 6):
        value = matrix[i, j] / scale[i, j]
        text = f"{value:.2f}".replace("-0.00", "0.00").replace("0.", ".").replace("-", "−")
        ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if abs(value) > 0.6 else BLACK)
    ax.set_title(title)
    ax.set_xticks(range(6), names)
    ax.set_yticks(range(6), names if left < 0.6 else [""] * 6)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
figure.text(0.5, 0.93, r"and accelerations have covariance $\mathcal{M}^{-1}$", fontsize=13, weight="bold")
caption = f"{SAMPLES:,} random forces → torques → smoother → $a$; unit variances"
figure.text(0.5, 0.03, caption, fontsize=9, color="#5A5A5A")
save(figure, "arm", dpi=130)

standard = np.sqrt((1 + (inverse / scale) ** 2) / SAMPLES)  # of an entry of the sampled matrix, scaled
worst = float(np.abs((sampled - inverse) / scale / standard).max())
assert worst < 4.5, worst
