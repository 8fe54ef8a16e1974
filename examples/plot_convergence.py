r"""
The inverse mass matrix as a covariance
=======================================

Take the inertias of a robot's links for covariances of random forces :math:`w \sim N(0, M)`, let the links hand them
inward, :math:`x = \varphi w`, and read the torques at the hinges, :math:`T = Hx + r`. Forward dynamics turns these
torques into accelerations :math:`a = \mathcal M^{-1} T`. Then

.. math:: \operatorname{cov}(a) = \mathcal M^{-1} ,

and the error of a covariance estimated from :math:`n` draws falls like :math:`1/\sqrt n`: not about, but with a
mean square that is known,

.. math:: \mathrm E\, \| S - \Sigma \|^2 = \frac{\|\Sigma\|^2 + (\operatorname{tr}\Sigma)^2}{n} .
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Draws
# -----
#
# A PUMA 560 with direct drives (its rotors would hide the coupling of its joints). Nothing in the sampling knows of
# a mass matrix; nothing in the mass matrix (a composite-body algorithm, inverted by a dense solver) knows of a filter.
# All is measured in units of standard deviations, so that joints of different inertia count alike.

puma = with_armature(kf.models.puma560(), np.zeros(6))
q = np.array([0.3, -0.9, 0.6, 0.4, 0.7, 0.2])
ss = as_estimation(puma, q, gravity=np.zeros(3))
forward_dynamics = kf.innovations_factor(ss).solve

Sigma = np.linalg.inv(kf.mass_matrix(puma, q))
unit = np.sqrt(np.diag(Sigma))
correlation = Sigma / np.outer(unit, unit)

RUNS, SIZES = 40, 2 ** np.arange(4, 15)
rng = np.random.default_rng(1)
error = np.empty((RUNS, SIZES.size))
for run in range(RUNS):
    a = forward_dynamics(kf.draw(ss, rng, SIZES[-1]).T) / unit
    for i, n in enumerate(SIZES):
        error[run, i] = np.linalg.norm(a[:n].T @ a[:n] / n - correlation) / np.linalg.norm(correlation)

# %%
# The rate
# --------
#
# Forty runs. Their root mean square follows the formula; a fitted slope is −½.

expected = np.sqrt((np.linalg.norm(correlation) ** 2 + np.trace(correlation) ** 2) / SIZES) / np.linalg.norm(
    correlation
)
found = np.sqrt((error**2).mean(axis=0))
slope = np.polyfit(np.log(SIZES), np.log(found), 1)[0]
print(f"slope {slope:.3f}; found / expected {np.round(found / expected, 2)}")
assert abs(slope + 0.5) < 0.03
assert np.abs(found / expected - 1).max() < 0.25

# %%
# Three of the estimates
# ----------------------

figure = plt.figure(figsize=(11, 5.6))
grid = figure.add_gridspec(2, 4, width_ratios=(1, 1, 0.06, 2.3))
places = (grid[0, 0], grid[0, 1], grid[1, 0], grid[1, 1])
shown = [(f"n = {n:,}", a[:n].T @ a[:n] / n) for n in (16, 256, 16384)]
for place, (title, matrix) in zip(places, [*shown, (r"$\mathcal{M}^{-1}$", correlation)]):
    ax = figure.add_subplot(place)
    image = ax.imshow(matrix, cmap="PuOr", vmin=-1.2, vmax=1.2)
    ax.set_title(title)
    ax.set_xticks(range(6), range(1, 7))
    ax.set_yticks(range(6), range(1, 7))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
figure.colorbar(
    image, cax=figure.add_subplot(grid[:, 2]), label="covariance of joint accelerations / standard deviations"
)

ax = figure.add_subplot(grid[:, 3])
ax.loglog(SIZES, error.T, color=COLORS["pale"], linewidth=0.7)
ax.loglog([], [], color=COLORS["pale"], linewidth=0.7, label="forty runs")
ax.loglog(SIZES, expected, color=COLORS["orange"], linewidth=4, alpha=0.6, label=r"expected, $\propto 1/\sqrt{n}$")
ax.loglog(SIZES, found, "o", color=COLORS["blue"], markersize=5, label="their root mean square")
ax.set(
    xlabel="draws n", ylabel=r"$\|S - \mathcal{M}^{-1}\| \,/\, \|\mathcal{M}^{-1}\|$", title="the error falls like 1/√n"
)
ax.legend(loc="lower left")

plt.show()
