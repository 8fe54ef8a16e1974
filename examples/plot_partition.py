r"""
A ball joint is three pins
==========================

A ball joint measures three components of a moment at once, and the filter would invert a 3 × 3 matrix. Or it can take
them one by one, each a scalar division: the univariate treatment of a vector measurement. In mechanics the same trick
is a ball joint made of three pins with mass-less bodies between them. The order does not matter to the result, and

.. math:: \log\det D = \sum_i \log d_i .
"""

from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation, partition_hinges
from kfdyn.spatial import spatial_inertia
from kfdyn.viz import COLORS, STYLE, ellipse_points

plt.style.use(STYLE)

# %%
# The joint
# ---------
#
# A hip: a thigh on a ball joint, and a shank on a knee that is free. The hip's moments are taken in all six orders.

hip = kf.System(
    [
        kf.Body("thigh", spatial_inertia(8.0, [0.03, 0, -0.2], np.diag([0.14, 0.13, 0.03])), kf.Hinge.ball()),
        kf.Body(
            "shank",
            spatial_inertia(4.0, [0, 0.02, -0.2], np.diag([0.07, 0.06, 0.01])),
            kf.Hinge.revolute([0, 1, 0]),
            "thigh",
            position=[0, 0, -0.4],
        ),
    ]
)
q = kf.integrate(hip, hip.neutral(), [0.3, -0.5, 0.4, 0.9])
v, tau = np.array([1.0, -2.0, 0.5, 3.0]), np.array([5.0, -2.0, 1.0, 4.0])
whole = as_estimation(hip, q, v)
vector = kf.kalman_filter(whole, tau)
a = kf.forward_dynamics(hip, q, v, tau)

# %%
# One at a time
# -------------
#
# After each scalar the covariance of the moment shrinks by one dimension; after three nothing is left. Each order
# takes another way, with other divisors, to the same end.

STAGES = ("P, nothing measured", "after one", "after two", "after three: P⁺")
ways = {}
for order in permutations(range(3)):
    split = partition_hinges(whole, [[[i] for i in order], [[0]]])
    assert (split.ss.m == 1).all()  # scalars only
    parts = kf.kalman_filter(split.ss, split.split_outputs(tau))
    nodes = np.flatnonzero(split.owner == 0)  # outermost first
    d = np.array([parts.D[k].item() for k in nodes])
    P = [parts.P[nodes[0]], *(parts.P_plus[k] for k in nodes)]
    assert np.isclose(np.log(d).sum(), np.linalg.slogdet(vector.D[0])[1], rtol=1e-12)
    assert np.allclose(P[-1], vector.P_plus[0], atol=1e-12)
    assert np.allclose(split.merge_outputs(kf.bryson_frazier(split.ss, parts).a), a, rtol=1e-9)
    ways[order] = d, [moment[:3, :3] for moment in P]

# %%
# The figure
# ----------
#
# Left, the shadow of the moment's covariance on the x-z plane: an ellipse, then a thinner one, then a line, then a
# point. Right, the logarithms of the divisors add up to the same log-determinant, six ways.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), width_ratios=(1, 1, 1))
tones = (COLORS["pale"], COLORS["sky"], COLORS["blue"], COLORS["vermilion"])
for ax, order in zip(axes, ((0, 1, 2), (2, 1, 0))):
    for stage, tone, moment in zip(STAGES, tones, ways[order][1]):
        outline = ellipse_points(moment[np.ix_([0, 2], [0, 2])])
        point = np.ptp(outline, axis=0).max() < 1e-6
        ax.plot(*(outline[:1] if point else outline).T, "o" if point else "-", color=tone, linewidth=2, label=stage)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel=r"moment about x [$\sqrt{\mathrm{kg\,m^2}}$]")
    ax.set_title("order " + ", ".join("xyz"[i] for i in order))
    ax.margins(0.08)
axes[0].set_ylabel(r"moment about z [$\sqrt{\mathrm{kg\,m^2}}$]")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

ax = axes[2]
palette = ("blue", "orange", "green", "vermilion", "sky", "purple")
for tone, style, (order, (d, _)) in zip(palette, ("-", "--", "-", "--", "-", "--"), ways.items()):
    label = ", ".join("xyz"[i] for i in order)
    ax.plot(range(4), [0, *np.cumsum(np.log(d))], style, marker="o", markersize=4, color=COLORS[tone], label=label)
ax.axhline(np.linalg.slogdet(vector.D[0])[1], color="black", linestyle=":", linewidth=1)
ax.text(0, -2.05, "dotted: log det D, of the 3 × 3 matrix", fontsize=8, va="top")
ax.set(xlabel="scalars measured", ylabel="Σ log d", xticks=range(4), title="six ways, one end")
ax.legend(loc="upper right", ncols=2, title="order of the axes", title_fontsize=8)
ax.set_ylim(-2.2, 1.7)

plt.show()
