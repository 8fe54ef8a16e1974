"""
Ancestors of the primates, with their uncertainty
=================================================

A trait that evolves along a phylogeny is a Markov process on a tree that branches outward. Its posterior is the
co-state of the dual model, so the two sweeps that accelerate a robot reconstruct every ancestor at once. Here: body
mass of fifteen primates (round numbers of common handbooks, as logarithms) by Brownian motion, with divergences in
millions of years.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize_scalar

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

TREE = """((((((((human:6.5,chimpanzee:6.5):2.5,gorilla:9):6.7,orangutan:15.7):4.6,gibbon:20.3):8.7,
    (baboon:10,macaque:10):19):14,((spider_monkey:16,capuchin:16):4,(marmoset:17,squirrel_monkey:17):3):23):24,
    tarsier:67)haplorhini:7,((ring_tailed_lemur:37,mouse_lemur:37):22,bushbaby:59):15)primates;"""
MASS = {
    "human": 60, "chimpanzee": 45, "gorilla": 120, "orangutan": 55, "gibbon": 6, "baboon": 18, "macaque": 7,
    "spider_monkey": 8, "capuchin": 3, "marmoset": 0.35, "squirrel_monkey": 0.8, "tarsier": 0.12,
    "ring_tailed_lemur": 2.2, "mouse_lemur": 0.06, "bushbaby": 0.2,
}  # fmt: skip

tree = kf.Phylogeny.from_newick(TREE)
y = tree.traits({name: np.log(mass) for name, mass in MASS.items()})

# %%
# The rate of evolution
# ---------------------
#
# The likelihood at any rate is one gather and one scatter. With a flat root its maximum is known in closed form too:
# the sum of squares at rate 1, divided by the number of contrasts.


def loss(log_rate):
    return -tree.brownian(np.exp(log_rate)).smooth(y).llf


found = np.exp(minimize_scalar(loss, bounds=(-8, 2), method="bounded", options={"xatol": 1e-9}).x)
contrasts = tree.brownian().smooth(y).quadratic / (len(MASS) - 1)
assert abs(found / contrasts - 1) < 1e-6

# %%
# Every ancestor
# --------------
#
# Bars are 95 % intervals. An ancestor near its descendants is known well; the common ancestor of all is known to a
# factor of ten.

post = tree.brownian(found).smooth(y)
mean, std = post.mean.flat, post.std.flat
age = tree.heights.max() - tree.heights

# the same by the dense normal: covariance of the tips from the time they share
tips, root = tree.tips, tree.tree.roots[0]
shared = np.array([[tree.heights[tree.tree.nearest_common_ancestor(int(a), int(b))] for b in tips] for a in tips])
weight = np.linalg.solve(shared, np.ones(len(tips)))
assert abs(mean[root] - weight @ y / weight.sum()) < 1e-10
assert abs(std[root] ** 2 - found / weight.sum()) < 1e-10

figure, ax = plt.subplots(figsize=(7.5, 4.6))
for k, p in enumerate(tree.parent):
    if p >= 0:
        ax.plot([age[p], age[k]], np.exp([mean[p], mean[k]]), color=COLORS["grey"], lw=1, zorder=1)
inner = np.setdiff1d(np.arange(len(tree.parent)), tips)
low, high = np.exp(mean - 1.96 * std), np.exp(mean + 1.96 * std)
ax.vlines(age[inner], low[inner], high[inner], color=COLORS["blue"], lw=3, alpha=0.45, label="ancestor, 95 %")
ax.plot(age[inner], np.exp(mean[inner]), "o", color=COLORS["blue"], ms=4)
ax.plot(age[tips], np.exp(y), "o", color=COLORS["vermilion"], ms=4, label="today")
crowded = {"human": 6, "chimpanzee": -5, "spider_monkey": 6, "gibbon": -6}  # points to move a name up by
for name in MASS:
    k, lift = tree.node(name), crowded.get(name, 0)
    ax.annotate(
        name.replace("_tailed", "-tailed").replace("_", " "),
        (age[k], np.exp(mean[k])),
        (6, lift - 3),
        textcoords="offset points",
        fontsize=8,
    )
ax.set(yscale="log", xlabel="millions of years ago", ylabel="body mass [kg]", xlim=(78, -18))
ax.legend(loc="upper left")

# %%
# A species left out
# ------------------
#
# Forget the gorilla: a missing tip gets a posterior as any ancestor does. Its weight is a surprise, but not an
# impossible one.

y[np.flatnonzero(tips == tree.node("gorilla"))] = np.nan
without = tree.brownian(found).smooth(y)
k = tree.node("gorilla")
surprise = (np.log(MASS["gorilla"]) - without.mean[k].item()) / without.std[k].item()
assert 0 < surprise < 3
print(f"expected {np.exp(without.mean[k].item()):.0f} kg, weighs 120 kg: {surprise:.1f} standard deviations more")
plt.show()
