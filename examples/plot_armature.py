r"""
A rotor is measurement noise
============================

A geared motor adds the inertia of its rotor to its own joint and to no other: :math:`\mathcal M = H \varphi M \varphi^*
H^* + R`. In the filter :math:`R` is the variance of the measurement noise. A noisy sensor is trusted less: the
share of an innovation that the filter takes over, :math:`HG = 1 - R/D`, falls from one (a direct drive, a perfect
measurement) to zero (a rotor so heavy that the hinge hardly yields). In between, all of dynamics passes from the
articulated inertia of a floppy arm to the composite inertia of a frozen one.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation, composite_inertias
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# All gears at once
# -----------------
#
# A PUMA 560. The rotors are those published, scaled by a factor from a millionth to a million.

puma = kf.models.puma560()
q = np.array([0.3, -0.9, 0.6, 0.4, 0.7, 0.2])
factor = np.geomspace(1e-6, 1e6, 97)
trust, seen, condition = [], [], []
for f in factor:
    arm = with_armature(puma, f * puma.armature)
    ss = as_estimation(arm, q)
    seen.append([(H @ P @ H.T).item() for H, P in zip(ss.H, kf.riccati(ss).P)])
    trust.append(seen[-1] / (seen[-1] + arm.armature))  # HG = HPH*/D
    condition.append(np.linalg.cond(kf.mass_matrix(arm, q)))
trust, seen, condition = np.array(trust), np.array(seen), np.array(condition)

# %%
# The two ends are exact: without rotors the filter sees the articulated inertia, with infinite ones the composite.

ss = as_estimation(with_armature(puma, np.zeros(6)), q)
floppy = kf.riccati(ss).D.flat
frozen = np.array([(H @ R @ H.T).item() for H, R in zip(ss.H, composite_inertias(ss))])
assert np.allclose(seen[0], floppy, rtol=1e-2) and np.allclose(seen[-1], frozen, rtol=1e-4)
assert (np.diff(seen, axis=0) > -1e-9 * frozen).all() and (np.diff(trust, axis=0) < 0).all()

# %%
# What it costs and what it buys
# ------------------------------
#
# Rotors make the arm slow, and make it tame: the mass matrix is better conditioned the more its own diagonal
# dominates, and the joints take less notice of each other. With the published rotors one joint's torque hardly moves
# the others.


def coupling(f):
    """Correlations of the joint accelerations that random torques cause."""
    inverse = kf.mass_matrix_inverse(with_armature(puma, f * puma.armature), q)
    return inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))


assert condition[-1] < condition[0] / 10
off = ~np.eye(6, dtype=bool)
assert np.abs(coupling(1.0))[off].max() < 0.5 * np.abs(coupling(1e-6))[off].max()

figure = plt.figure(figsize=(11, 6.6))
above, below = figure.subfigures(2, 1)
left, right = above.subplots(1, 2)
palette = ("blue", "orange", "green", "vermilion", "sky", "purple")
for k, name in enumerate(palette):
    left.semilogx(factor, trust[:, k], color=COLORS[name], label=f"joint {k + 1}")
for k in range(3):
    right.semilogx(factor, seen[:, k], color=COLORS[palette[k]])
    right.plot(factor[0], floppy[k], "<", color=COLORS[palette[k]], markersize=6, clip_on=False)
    right.plot(factor[-1], frozen[k], ">", color=COLORS[palette[k]], markersize=6, clip_on=False)
right.plot([], [], "<", color=COLORS["grey"], label="articulated, no rotors")
right.plot([], [], ">", color=COLORS["grey"], label="composite, hinges locked")
for ax in (left, right):
    ax.axvline(1, color=COLORS["grey"], linestyle=":", linewidth=1)
    ax.set(xlabel="rotors / published rotors", xlim=(factor[0], factor[-1]))
left.text(1.4, 0.9, "as published", fontsize=8)
left.set(ylabel="HG = 1 − R/D", title="how far each hinge is trusted", ylim=(-0.02, 1.05))
left.legend(loc="center right")
right.set(ylabel="HPH* [kg m²]", title="the links as three hinges feel them", ylim=(0, 1.25 * frozen.max()))
right.legend(loc="upper left")

matrices = below.subplots(1, 4, width_ratios=(1, 1, 1, 1.25))
for ax, f, title in zip(matrices, (1e-6, 1e-2, 1.0), ("no rotors to speak of", "a hundredth", "as published")):
    image = ax.imshow(coupling(f), cmap="PuOr", vmin=-1, vmax=1)
    ax.set(title=title, xticks=range(6), yticks=range(6))
    ax.set_xticklabels(range(1, 7))
    ax.set_yticklabels(range(1, 7))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
below.colorbar(image, ax=matrices[2], shrink=0.8, label=r"correlation, from $\mathcal{M}^{-1}$")
matrices[3].loglog(factor, condition, color=COLORS["blue"])
matrices[3].axvline(1, color=COLORS["grey"], linestyle=":", linewidth=1)
matrices[3].set(xlabel="rotors / published rotors", title=r"condition number of $\mathcal{M}$")

plt.show()
