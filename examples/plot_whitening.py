r"""
The filter whitens a whole tree
===============================

The joints of a humanoid are coupled: what one does, the others feel. As random variables its torques
:math:`T \sim N(0, \mathcal M)` are correlated. The innovations of the filter are the same torques without what could
be foreseen from outboard, and they are uncorrelated over the whole tree:

.. math::

   \varepsilon = (I + H\varphi K)^{-1}\, T, \qquad \operatorname{cov}(\varepsilon) = D, \qquad
   \mathcal M = (I + H\varphi K)\, D\, (I + H\varphi K)^* .

Scaled to unit variance they are the robot's modal velocities: with :math:`T = \mathcal M \dot q` the momentum, half
their square is the kinetic energy.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.estimation.consistency import whiteness
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Torques and innovations
# -----------------------
#
# Draw the torques of a humanoid in mid-stride, and filter them.

robot = kf.models.humanoid()
rng = np.random.default_rng(3)
q = kf.integrate(robot, robot.neutral(), 0.4 * rng.normal(size=robot.nv))
ss = as_estimation(robot, q, gravity=np.zeros(3))
n = 20_000
T = kf.draw(ss, rng, n).T
eps = kf.kalman_filter(ss, T).eps

# %%
# An exact test of independence between the nodes: it accepts the innovations, and rejects the torques at any level.
# (Within a hinge of several degrees of freedom the innovations are correlated, with covariance D.)

verdict, refused = whiteness(eps, ss.m), whiteness(T, ss.m)
print(f"innovations: p = {verdict.p_value:.2f}; torques: p = {refused.p_value:.0e}")
assert verdict.p_value > 0.001 and refused.p_value < 1e-100

# %%
# Kinetic energy
# --------------
#
# The whitened momentum has half its square for kinetic energy, whatever the velocity.

v = rng.normal(size=(5, robot.nv))
modal = kf.innovations_factor(ss).whiten(np.einsum("ij,...j->...i", kf.mass_matrix(robot, q), v))
assert np.allclose(0.5 * (modal**2).sum(axis=-1), kf.kinetic_energy(robot, q, v), rtol=1e-10)

# %%
# The figure
# ----------
#
# The correlations of the torques show who carries whom: a left arm is no ancestor of a right leg, and they are
# uncorrelated. Left of the filter there is structure; right of it only the blocks on the diagonal, one for each hinge.


def correlations(samples):
    """Sample correlation matrix."""
    S = samples.T @ samples / n
    return S / np.sqrt(np.outer(np.diag(S), np.diag(S)))


owner = np.repeat(np.arange(len(ss)), ss.m)
apart = np.triu(owner[:, None] != owner[None, :], 1)
figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), width_ratios=(1, 1, 0.85))
edges = np.flatnonzero(np.diff(owner)) + 0.5
where = [np.flatnonzero(owner == k).mean() for k in range(len(ss))]
for ax, samples, title in zip(axes, (T, eps), ("torques T: cov = 𝓜", "innovations ε: cov = D")):
    image = ax.imshow(correlations(samples), cmap="PuOr", vmin=-1, vmax=1)
    ax.set_title(title.replace("𝓜", r"$\mathcal{M}$"))
    ax.set_yticks(where, [name.replace("_", " ") for name in robot.body_names] if ax is axes[0] else [], fontsize=7)
    ax.set_xticks([])
    for edge in edges:
        ax.axhline(edge, color="white", linewidth=0.4)
        ax.axvline(edge, color="white", linewidth=0.4)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
figure.colorbar(image, ax=axes[:2], shrink=0.8, label="correlation of the samples")

ax, grid = axes[2], np.linspace(-4, 4, 200)
score = np.sqrt(n) * correlations(eps)[apart]
ax.hist(score, bins=24, range=(-4, 4), density=True, color=COLORS["blue"], alpha=0.75, label="innovations")
ax.plot(grid, np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi), color=COLORS["orange"], linewidth=2.2, label="N(0, 1)")
ax.set(
    xlabel="√n × correlation between nodes", ylabel="density", title=f"{score.size} pairs, as white as they should be"
)
ax.legend()

plt.show()
