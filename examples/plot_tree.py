r"""
The same engine on a branching tree
===================================

Time need not be a line. Here it runs from the tips of a tree to its root, and where branches meet, their states add:

.. math:: x(k) = \sum_{j \in c(k)} \varphi(k,j)\, x(j) + w(k) .

Some nodes measure their two-dimensional state, most of them in one direction only. The filter, on its
way from the tips, knows at each node what was measured outboard of it; the smoother, on its way back, brings the
rest of the tree.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

BEFORE, AFTER, WOOD, GAUGE = COLORS["orange"], COLORS["blue"], "#B0A898", "black"

# %%
# The tree
# --------
#
# Five generations, 31 nodes, each with two branches outboard. The tips are spread over a fan, and every other node
# stands between its two branches.

GENERATIONS = 5
N = 2**GENERATIONS - 1
parent = (np.arange(N) - 1) // 2  # −1 at the root
generation = np.log2(np.arange(N) + 1).astype(int)
bearing = np.zeros(N)
bearing[N // 2 :] = np.radians(np.linspace(172, 8, N - N // 2))
for k in range(N // 2 - 1, -1, -1):
    bearing[k] = (bearing[2 * k + 1] + bearing[2 * k + 2]) / 2
radius = np.array([0.0, 1.15, 2.15, 3.0, 3.75])[generation]
place = radius[:, None] * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
along = place[1:] - place[parent[1:]]
heading = np.concatenate([[np.pi / 2], np.arctan2(along[:, 1], along[:, 0])])


def turn(angle):
    """Rotation of the plane."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


# %%
# The model
# ---------
#
# A node's state is written along and across its branch, so that φ turns it by the angle between two branches. What a
# node adds is uncertain mostly along the branch. The root measures both components; nine nodes have a gauge that
# measures one direction; the others have no output at all (m_k = 0), which the engine takes as it comes.

phi = [None if p < 0 else 0.85 * turn(heading[k] - heading[p]) for k, p in enumerate(parent)]
Q = np.broadcast_to(np.diag([0.022, 0.006]), (N, 2, 2))
gauges = {1: 0.3, 5: 1.1, 6: 1.6, 9: 0.8, 13: 0.2, 15: 1.0, 19: 0.1, 22: 1.3, 28: 0.6}  # node: angle to its branch
H = [np.zeros((0, 2))] * N
H[0] = np.eye(2)
for k, angle in gauges.items():
    H[k] = turn(angle).T[:1]
R = [0.002 * np.eye(len(h)) for h in H]
ss = kf.StateSpace(parent, phi, H, Q, R)
print(ss)

# %%
# What each node learns
# ---------------------
#
# The covariances need no measurement. Half the logarithm of their determinants counts information in nats: from P to P⁺
# by the node's own gauge, from P⁺ to S by all gauges that are not outboard of it.

filt = kf.kalman_filter(ss, np.zeros(ss.n_outputs))
smooth = kf.bryson_frazier(ss, filt)
P, P_plus, S = filt.P.stacked(), filt.P_plus.stacked(), smooth.S.stacked()
own = 0.5 * np.log(np.linalg.det(P) / np.linalg.det(P_plus))
rest = 0.5 * np.log(np.linalg.det(P_plus) / np.linalg.det(S))
assert np.linalg.eigvalsh(P - P_plus).min() > -1e-12 and np.linalg.eigvalsh(P_plus - S).min() > -1e-12
print(f"information gained: {own.sum():.2f} nats by own gauges, {rest.sum():.2f} nats from the rest of the tree")

# %%
# The figure
# ----------


def ellipse(centre, covariance, angle, **style):
    """One standard deviation of a covariance, turned from the branch's direction to the page's."""
    size, axes = np.linalg.eigh(turn(angle) @ covariance @ turn(angle).T)
    tilt = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    return Ellipse(centre, *(2 * np.sqrt(size[::-1])), angle=tilt, **style)


figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), width_ratios=[1.9, 1])

for k, p in enumerate(parent):
    if p >= 0:
        left.plot(*place[[p, k]].T, color=WOOD, linewidth=5 - generation[k], solid_capstyle="round", zorder=1)
    left.add_patch(ellipse(place[k], P[k], heading[k], facecolor=BEFORE, edgecolor="none", alpha=0.4, zorder=2))
    left.add_patch(ellipse(place[k], P[k], heading[k], facecolor="none", edgecolor=BEFORE, linewidth=1.2, zorder=3))
    left.add_patch(ellipse(place[k], S[k], heading[k], facecolor=AFTER, edgecolor="none", alpha=0.85, zorder=4))
    for row in H[k]:
        arm = 0.26 * turn(heading[k]) @ row
        left.plot(*np.array([place[k] - arm, place[k] + arm]).T, color=GAUGE, linewidth=1.2, zorder=5)
left.plot([], [], "o", color=BEFORE, alpha=0.7, markersize=9, label="P, known from outboard")
left.plot([], [], "o", color=AFTER, markersize=7, label="S, known from the whole tree")
left.plot([], [], "-", color=GAUGE, linewidth=1.2, label="measured direction")
left.set(aspect="equal", title="One standard deviation at each node")
left.axis("off")
left.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=3, columnspacing=1.5)

nodes = np.arange(N)
right.barh(nodes, own, color=GAUGE, height=0.75, label="from its own gauge, P → P⁺")
right.barh(nodes, rest, left=own, color=AFTER, height=0.75, label="from what is not outboard, P⁺ → S")
for g in range(1, GENERATIONS):
    right.axhline(2**g - 1.5, color="#C8C8C8", linewidth=0.7, zorder=0)
right.set_yticks([(2**g - 1 + 2 ** (g + 1) - 2) / 2 for g in range(GENERATIONS)])
right.set_yticklabels(["root", "1", "2", "3", "tips"])
right.tick_params(axis="y", length=0)
right.set(xlabel="information gained [nat]", ylabel="generation", ylim=(-0.8, N - 0.2), xlim=(0, 3.95))
right.set(title="What each node learns")
right.legend(loc="upper right", fontsize=8, handlelength=1.2, borderaxespad=0.0)
plt.show()
