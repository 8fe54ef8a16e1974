r"""
Three ways to split a force
===========================

The force between two links of a moving arm is an inertia times an acceleration, plus a rest. There is a choice of
inertias, and each comes with its own rest:

.. math::

   f = \underbrace{M \alpha + \dots}_{\text{terminal}}
     = \underbrace{\mathcal R \alpha + y}_{\text{composite}}
     = \underbrace{P \alpha + z}_{\text{articulated}} .

The link alone, all links outboard frozen, or all links outboard floppy. The sum is the same; what the rest depends on
is not. Only the articulated rest :math:`z` can be computed from the torques outboard alone, before any
acceleration is known. In the other reading it is the filter's prediction, and that is why forward dynamics can start
at the tip.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import kfdyn as kf
from kfdyn.dynamics.theory.decomposition import decompose_forces
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)
NAMES = ("terminal", "composite", "articulated")
FORMULAS = (r"$M\alpha + \varphi f + \xi$", r"$\mathcal{R}\alpha + y$", r"$P\alpha + z$")

# %%
# An arm that sinks
# -----------------
#
# Six rods, held out level, and swinging a little; the motors bear most of their weight, but not all of it.

N = 6
arm = kf.models.uniform_chain(N, length=0.3, mass=0.5, hinge=kf.Hinge.revolute([0, 1, 0]))
k = np.arange(N)
q, v = 0.15 * np.cos(2 * k), 0.5 * np.sin(k + 1)
tau = 0.9 * kf.bias_forces(arm, q, 0 * v)
parts = decompose_forces(arm, q, v, tau)
force = parts.terminal.force.stacked()
for name in NAMES:
    assert np.allclose(getattr(parts, name).force.stacked(), force, rtol=1e-9, atol=1e-9)

# %%
# What does the rest depend on?
# -----------------------------
#
# Change one torque at a time. Nothing below the diagonal of the last panel is coloured: :math:`z(k)` depends on the
# torques outboard of hinge k and no other. The composite rest :math:`y(k)` depends on the *accelerations* outboard, and
# they depend on all the torques.


def rests(name, tau):
    """The rest at every hinge, (..., N, 6)."""
    return getattr(decompose_forces(arm, q, v, tau), name).rest.stacked()


def dependence(name):
    """Change of the rest (its force, not its moment) at hinge k, in norm, by a unit torque at hinge j: (N, N)."""
    return np.linalg.norm((rests(name, tau + np.eye(N)) - rests(name, tau))[..., 3:], axis=-1).T


heeds = {name: dependence(name) for name in NAMES}
outboard = np.triu(np.ones((N, N), dtype=bool), 1)
assert heeds["articulated"][~outboard].max() < 1e-10 < heeds["articulated"][outboard].min()
assert heeds["composite"][~outboard].max() > 0.01 and heeds["terminal"][~outboard].max() > 0.01

# %%
# The figure
# ----------
#
# Above, the vertical force at each hinge in its two parts, seen from free fall. The link's own inertia explains little
# of it, the floppy inertia a little more, the frozen inertia most, at some hinges more than there is.

figure, axes = plt.subplots(2, 3, figsize=(11, 6.6), height_ratios=(1, 1.15))
scale = LogNorm(0.1, max(matrix.max() for matrix in heeds.values()))
bars = [np.stack([part.inertial.stacked(), part.rest.stacked()])[..., 5] for part in (parts.terminal, parts.composite)]
lowest, highest = 1.1 * np.min(bars), 1.1 * np.max(bars)
for column, (name, formula) in enumerate(zip(NAMES, FORMULAS)):
    above, below = axes[:, column]
    split = getattr(parts, name)
    inertial, rest = split.inertial.stacked()[:, 5], split.rest.stacked()[:, 5]
    above.bar(k + 0.81, inertial, 0.36, color=COLORS["blue"], label="inertia × acceleration")
    above.bar(k + 1.19, rest, 0.36, color=COLORS["orange"], label="rest")
    above.plot(k + 1, force[:, 5], "D", color="black", markersize=4, label="their sum, the force")
    above.axhline(0, color=COLORS["grey"], linewidth=0.6)
    above.set(title=f"{name}: {formula}", xlabel="hinge k, base to tip", xticks=k + 1)
    above.set_ylim(lowest, highest)
    image = below.imshow(np.where(heeds[name] > 1e-10, heeds[name], np.nan), cmap="cividis_r", norm=scale)
    below.set(xlabel="torque at hinge j", xticks=k, yticks=k)
    below.set_title("rest: depends on outboard torques" if name == "articulated" else "rest: depends on all torques")
    below.set_xticklabels(k + 1)
    below.set_yticklabels(k + 1)
    below.tick_params(length=0)
axes[0, 0].set_ylabel("vertical force [N]")
axes[1, 0].set_ylabel("rest at hinge k")
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
figure.colorbar(image, ax=axes[1, 2], shrink=0.85, label="change of the rest [N]\nfor a torque of 1 N m")

plt.show()
