"""Prediction and update, in time and in space: the variance of the Nile's level, and the inertia of a robot arm.

python docs/figures/saw_tooth.py
"""

import matplotlib.pyplot as plt
import numpy as np
from style import BLUE, GREY, ORANGE, save

import kfdyn as kf
from kfdyn.dynamics import with_armature

STEPS = 8


def saw(ax, before, after, total):
    """Draw prediction (up), update (down) and, where nothing is measured, the growing covariance."""
    at = np.arange(1, before.size + 1)
    ax.plot(np.repeat(at, 2), np.stack([before, after], axis=1).ravel(), color=GREY, linewidth=0.9, zorder=1)
    ax.plot(at, total, "--", color=ORANGE, linewidth=1.8)
    ax.plot(at, before, "o", color=BLUE, markersize=6)
    ax.plot(at, after, "o", color=BLUE, markerfacecolor="white", markersize=6)
    ax.set_ylim(bottom=0)


river = kf.StateSpace.chain([[1.0]], [[1.0]], [[1469.0]], [[15099.0]], [1100.0], [[9000.0]], steps=STEPS)
arm = kf.models.uniform_chain(STEPS)  # all axes parallel
arm = with_armature(arm, np.full(arm.nv, 0.5))  # kg m²
robot = kf.as_estimation(arm, np.full(arm.nq, 0.3))

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.7), layout="constrained")
for ax, ss, order in ((axes[0], river, range(STEPS)), (axes[1], robot, range(STEPS - 1, -1, -1))):
    cov, total = kf.riccati(ss), kf.composite_inertias(ss)
    seen = [[(ss.H[k] @ X[k] @ ss.H[k].T)[0, 0] for k in order] for X in (cov.P, cov.P_plus, total)]
    before, after, free = np.array(seen)
    R = np.array([ss.R[k][0, 0] for k in order])
    assert np.allclose(after, before * R / (before + R))  # what one measurement leaves
    saw(ax, before, after, free)
axes[0].set(xlabel="year", ylabel=r"variance of the level", title="in time: the level of the Nile")
axes[1].set(xlabel="joint, from the hand to the base", ylabel=r"inertia about the joint [kg m²]")
axes[1].set_title("in space: an arm of eight links")
axes[1].set_ylim(-0.8, 8)
OCHRE = "#A06C00"
axes[0].text(2.6, 15500, "never measured", color=OCHRE)
axes[0].text(5.2, 6700, "predicted, $P$", color=BLUE)
axes[0].text(5.2, 2500, "updated, $P^+$", color=BLUE)
axes[1].text(2.95, 6.6, "outer joints welded", color=OCHRE)
axes[1].text(3.7, 3.2, "outer joints free: articulated inertia $P$", color=BLUE)
axes[1].text(2.9, -0.4, "this joint free as well: $P^+$", color=BLUE)
save(figure, "saw_tooth")
