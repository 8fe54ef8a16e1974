r"""
A tree of futures is a branched robot
=====================================

A cart must hold its place. After a second and a half the wind begins to blow from the left or from the right, and half
a second later it may turn. Nobody knows which until it happens, so the first controls must serve all four futures.
Such a plan is a tree: a step is a node, and where the future splits, a node has two children.

The engine solves it as the dynamics of a robot: a trunk, two arms, two fingers each. What :func:`kfdyn.lqr` calls the
Hessian of the cost to go is the articulated inertia, and where the futures meet their inertias add up.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# The tree
# --------

dt = 0.1
parent: list[int] = []
push: list[float] = []
share: list[float] = []


def grow(after, steps, wind, likely):
    """Append steps in a row, and return the last."""
    for _ in range(steps):
        parent.append(after)
        push.append(wind)
        share.append(likely)
        after = len(parent) - 1
    return after


trunk = grow(-1, 15, 0.0, 1.0)
left, right = grow(trunk, 5, 0.5, 0.7), grow(trunk, 5, -0.5, 0.3)
tips = [grow(left, 20, 0.5, 0.5), grow(left, 20, -0.3, 0.2), grow(right, 20, 0.3, 0.1), grow(right, 20, -0.5, 0.2)]

# %%
# The plan
# --------
#
# Every weight is that of its scenario times its probability. The wind changes the speed of the cart at each step.

A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[0.5 * dt**2], [dt]])
Q, R, likely = np.diag([4.0, 0.2]), np.array([[0.3]]), np.array(share)[:, None, None]
c = np.stack([np.zeros(len(push)), dt * np.array(push)], axis=1)
plan = kf.lqr(A, B, likely * Q, likely * R, [0.0, 0.0], parent, c=c)

# %%
# Nobody tells the cart of the wind before it blows, and yet it moves against the likelier one. A cart that hopes for
# calm air until it feels the wind pays more:


def cost_if_surprised():
    """Follow the plan for calm air along the trunk, and the best plan from there."""
    calm = kf.lqr(A, B, Q, R, [0.0, 0.0], steps=15)  # which stays where it is, at no cost
    rest = kf.lqr(
        A, B, likely[15:] * Q, likely[15:] * R, calm.x[-1], np.maximum(np.array(parent[15:]) - 15, -1), c=c[15:]
    )
    return rest.cost


def cost_if_known():
    """What it would cost if the future of each scenario were known from the start."""
    total = 0.0
    for tip in tips:
        path = [tip]
        while parent[path[-1]] >= 0:
            path.append(parent[path[-1]])
        path.reverse()
        total += share[tip] * kf.lqr(A, B, Q, R, [0.0, 0.0], c=c[path], steps=len(path)).cost
    return total


surprised, known = cost_if_surprised(), cost_if_known()
print(f"cost: {known:.3f} if the wind were known, {plan.cost:.3f} for the tree, {surprised:.3f} for a cart that hopes")
assert known < plan.cost < surprised

# %%
# The mechanics
# -------------
#
# Where futures meet, inertias add: the Hessian before the split is that of both arms, each seen through its own joint.

P, P_plus = plan.value_hessian, plan.solved.filt.P_plus
arms = [k for k, p in enumerate(parent) if p == trunk]
met = likely[trunk] * Q + sum(A.T @ P_plus[k] @ A for k in arms)
assert np.allclose(P[trunk], met, rtol=1e-12)
print("a tree of", len(parent), "bodies; articulated inertia at the fork:", P[trunk].round(2).tolist())

# %%
# The figure
# ----------
#
# Left, the states and controls. Right, the robot: a body is a step, drawn as thick as its articulated inertia is large.

names = ["blue", "sky", "orange", "vermilion"]
color = ["grey"] * 15 + ["blue"] * 5 + ["orange"] * 5 + [name for name in names for _ in range(20)]
depth = np.zeros(len(parent), int)
for k, p in enumerate(parent):
    depth[k] = depth[p] + 1 if p >= 0 else 1

figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), width_ratios=[1.0, 1.0, 1.3], layout="constrained")
for k, p in enumerate(parent):
    before, now = dt * (depth[k] - 1), dt * depth[k]
    place_before, force_before = (plan.x[p, 0], plan.u[p, 0]) if p >= 0 else (0.0, plan.u[0, 0])
    axes[0].plot([before, now], [place_before, plan.x[k, 0]], color=COLORS[color[k]], linewidth=1.8)
    force = [force_before, plan.u[k, 0], plan.u[k, 0]]  # one force for the whole step
    axes[1].plot([before, before, now], force, color=COLORS[color[k]], linewidth=1.8)
axes[0].set(title="Where the cart is", xlabel="time [s]", ylabel="position [m]")
axes[1].set(title="What it does", xlabel="time [s]", ylabel="force [N]")
for axis in axes[:2]:
    for split in (1.5, 2.0):
        axis.axvline(split, color=COLORS["pale"], linewidth=0.8, linestyle="--")
    axis.axhline(0, color=COLORS["pale"], linewidth=0.6)

angle, place = np.zeros(len(parent)), np.zeros((len(parent), 2))
fork = {arms[0]: 0.5, arms[1]: -0.5}
for end, turn in ((left, 0.3), (right, 0.3)):
    first, second = [k for k, p in enumerate(parent) if p == end]
    fork[first], fork[second] = turn, -turn
for k, p in enumerate(parent):
    angle[k] = (angle[p] if p >= 0 else 0.0) + fork.get(k, 0.0)
    start = place[p] if p >= 0 else np.zeros(2)
    place[k] = start + np.array([np.cos(angle[k]), np.sin(angle[k])])
    axes[2].plot(
        *np.array([start, place[k]]).T, color=COLORS[color[k]], linewidth=1.0 + 1.3 * np.sqrt(P[k][0, 0]),
        solid_capstyle="butt",
    )  # fmt: skip
    axes[2].plot(*start, "o", color="white", markersize=1.5, zorder=3)
for tip in tips:
    axes[2].text(*(place[tip] + [1.0, -0.5]), f"{100 * share[tip]:.0f} %", color=COLORS[color[tip]])
axes[2].plot(0, 0, "s", color=COLORS["grey"], markersize=9)
axes[2].set(title="The robot that it is, base at the left", aspect="equal")
axes[2].axis("off")
plt.show()
