r"""
The cross-check: what is right passes, what is wrong is found
=============================================================

One call draws random forces with the robot's inertias for covariances, filters and smooths the torques that come of
them, and holds the sample covariance of every quantity of the theory against its closed form: nine covariances, each
by tests whose false alarms are known. A check that cannot fail would be worth nothing, so here it is also given a robot
whose masses are wrong, by less and less, until the samples cannot tell.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# A robot that is right
# ---------------------
#
# Six bodies on random hinges of one to three degrees of freedom, without gravity, so that nothing but covariances can
# tell right from wrong.

bodies = kf.models.random_tree(6, seed=4, hinges=["revolute", "universal", "ball"], armature=False).bodies
robot = kf.System(bodies, gravity=(0.0, 0.0, 0.0))
q = robot.random_configuration(1)
SAMPLES = 10_000
right = kf.cross_check(robot, q, samples=SAMPLES, progress=False)
print(f"{len(right.tests)} tests, smallest p-value after Holm's rule {right.adjusted.min():.2f}")
assert right.passed

# %%
# A robot that is wrong
# ---------------------
#
# Now the samples come from a robot whose last body is 10 % heavier than the model says. The scores of
# the accelerations point at its hinge.


def heavier(bodies, factor):
    """The robot with some of its inertias multiplied by a factor, as a model to draw from."""
    changed = [
        kf.Body(
            b.name, (factor if i in bodies else 1.0) * b.inertia, b.hinge, b.parent, b.rotation, b.position,
            b.hinge_name, armature=b.armature,
        )
        for i, b in enumerate(robot.bodies)
    ]  # fmt: skip
    return as_estimation(kf.System(changed, gravity=robot.gravity), q)


wrong = kf.cross_check(robot, q, samples=SAMPLES, truth=heavier({5}, 1.1), progress=False)
print(f"{len(wrong.rejected)} complaints, the first: {wrong.rejected[0]}")
assert not wrong.passed

# %%
# How small an error is found?
# ----------------------------
#
# If all masses are off by δ, so is all of :math:`\mathcal M^{-1}`. The report says beforehand what it can see, with a
# probability of 95 %; and so it does.

seen, limit = right.detectable.whole, right.level / len(right.tests)
errors = seen * np.array([0.0, 0.4, 0.8, 1.2, 1.6])
everything = set(range(robot.n_bodies))
p = []
for error in errors:
    report = kf.cross_check(robot, q, samples=SAMPLES, seed=7, truth=heavier(everything, 1 + error), progress=False)
    p.append(report.p_value("covariance", "a"))
assert p[0] > limit > max(p[3:])

# %%
# The figure
# ----------

figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), width_ratios=(1, 1, 1.1, 1.1))
for ax, report, title in zip(axes, (right, wrong), ("masses right", "last body 10 % heavier")):
    image = ax.imshow(report.findings["a"].scores, cmap="RdBu_r", vmin=-5, vmax=5)
    ax.set(title=f"cov(a): {title}", xlabel="degree of freedom", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
axes[0].set_ylabel("degree of freedom")
figure.colorbar(image, ax=axes[:2], shrink=0.8, label="difference in standard errors")

for report, color, marker, label in (
    (right, "blue", "o", "right"),
    (wrong, "vermilion", "s", "last body 10 % heavier"),
):
    ordered = np.sort([max(test.p_value, 1e-30) for test in report.tests])
    rank = (np.arange(ordered.size) + 0.5) / ordered.size
    axes[2].loglog(rank, ordered, marker, color=COLORS[color], markersize=4, label=label)
axes[2].plot(rank, rank, color=COLORS["grey"], linewidth=1, label="uniform, as it should be")
axes[2].set(xlabel="rank / number of tests", ylabel="p-value", title="all tests", ylim=(1e-21, 2))
axes[2].legend(loc="lower right")

axes[3].semilogy(100 * errors, np.maximum(p, 1e-30), "o-", color=COLORS["vermilion"])
axes[3].axhline(limit, color=COLORS["grey"], linewidth=1)
axes[3].text(0, 0.4 * limit, "rejected below", va="top", fontsize=8)
axes[3].axvline(100 * seen, color=COLORS["orange"], linewidth=4, alpha=0.5, label="foretold:\nfound in 95 %")
axes[3].set(xlabel="error of all masses [%]", ylabel="p-value of cov(a)", title="what 10,000 samples see")
axes[3].legend(loc="lower left")

plt.show()
